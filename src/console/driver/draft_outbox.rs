//! Drafts that are being sent to the runtime.
//!
//! Contract: per request or thread only the newest draft waits, and one draft is sent at a time. With
//! a fast typist and a slow runtime, nothing accumulates and no key waits.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::clock::Boxed;
use crate::runtime::{DraftSubject, OperatorHandle};

type SendDraftFn = Box<dyn Fn(DraftSubject, Option<Value>) -> Boxed<'static, ()> + Send + Sync>;

/// Queue of drafts that are being sent to the runtime.
pub(super) struct DraftOutbox {
    hand_over: SendDraftFn,
    waiting: BTreeMap<DraftSubject, Option<Value>>,
    under_way: Option<Boxed<'static, ()>>,
}

impl DraftOutbox {
    pub(super) fn new(desk: OperatorHandle) -> Self {
        Self::with(Box::new(move |of, draft| {
            let desk = desk.clone();
            Box::pin(async move { desk.keep_draft(of, draft).await })
        }))
    }

    fn with(hand_over: SendDraftFn) -> Self {
        Self {
            hand_over,
            waiting: BTreeMap::new(),
            under_way: None,
        }
    }

    /// Queues a draft, and replaces an older one of the same request or thread.
    pub(super) fn put(&mut self, of: DraftSubject, draft: Option<Value>) {
        self.waiting.insert(of, draft);
    }

    /// Returns true if all drafts were sent.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_none()
    }

    /// Sends one draft. Cancel-safe: a caller that stops waiting can call again, and nothing is lost.
    pub(super) async fn hand_over(&mut self) {
        if self.under_way.is_none() {
            let next = self.waiting.pop_first();
            self.under_way = next.map(|(of, draft)| (self.hand_over)(of, draft));
        }
        if let Some(under_way) = &mut self.under_way {
            under_way.await;
            self.under_way = None;
        }
    }

    /// Sends all remaining drafts.
    pub(super) async fn finish(mut self) {
        while !self.is_empty() {
            self.hand_over().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt as _;
    use serde_json::json;
    use tokio::sync::Semaphore;

    use super::*;

    type SentDrafts = Arc<Mutex<Vec<(String, Option<Value>)>>>;

    /// Returns an outbox, the drafts sent from it, and a semaphore: one permit per draft that the
    /// runtime accepts.
    fn outbox() -> (DraftOutbox, SentDrafts, Arc<Semaphore>) {
        let (handed, ready) = (SentDrafts::default(), Arc::new(Semaphore::new(0)));
        let (log, gate) = (Arc::clone(&handed), Arc::clone(&ready));
        let hand_over: SendDraftFn = Box::new(move |id, draft| {
            let (log, gate) = (Arc::clone(&log), Arc::clone(&gate));
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                log.lock().unwrap().push((name(&id), draft));
            })
        });
        (DraftOutbox::with(hand_over), handed, ready)
    }

    fn name(of: &DraftSubject) -> String {
        match of {
            DraftSubject::Gate(gate) => gate.to_string(),
            DraftSubject::Thread(thread) => thread.to_string(),
        }
    }

    #[test]
    fn outbox_sends_only_the_newest_draft_of_each_request() {
        let (mut outbox, handed, ready) = outbox();
        let gate = |id: &str| DraftSubject::Gate(id.parse().unwrap());
        outbox.put(gate("c-1"), Some(json!("a")));
        assert!(outbox.hand_over().now_or_never().is_none(), "it is slow");
        for typed in ["ab", "abc", "abcd"] {
            outbox.put(gate("c-1"), Some(json!(typed)));
            outbox.put(gate("c-2"), None);
            assert!(outbox.hand_over().now_or_never().is_none());
        }
        assert_eq!(outbox.waiting.len(), 2);
        ready.add_permits(3);
        assert!(outbox.finish().now_or_never().is_some());
        let of = |id: &str, draft| (id.to_owned(), draft);
        assert_eq!(
            *handed.lock().unwrap(),
            [
                of("c-1", Some(json!("a"))),
                of("c-1", Some(json!("abcd"))),
                of("c-2", None),
            ]
        );
    }
}
