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
    send_draft: SendDraftFn,
    waiting: BTreeMap<DraftSubject, Option<Value>>,
    in_flight: Option<Boxed<'static, ()>>,
}

impl DraftOutbox {
    pub(super) fn new(operator_handle: OperatorHandle) -> Self {
        Self::with(Box::new(move |key, draft| {
            let operator_handle = operator_handle.clone();
            Box::pin(async move { operator_handle.store_draft(key, draft).await })
        }))
    }

    fn with(send_draft: SendDraftFn) -> Self {
        Self {
            send_draft,
            waiting: BTreeMap::new(),
            in_flight: None,
        }
    }

    /// Queues a draft, and replaces an older one of the same request or thread.
    pub(super) fn queue_draft(&mut self, key: DraftSubject, draft: Option<Value>) {
        self.waiting.insert(key, draft);
    }

    /// Returns true if all drafts were sent.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_none()
    }

    /// Sends one draft. Cancel-safe: a caller that stops waiting can call again, and nothing is lost.
    pub(super) async fn send_next(&mut self) {
        if self.in_flight.is_none() {
            let next = self.waiting.pop_first();
            self.in_flight = next.map(|(key, draft)| (self.send_draft)(key, draft));
        }
        if let Some(under_way) = &mut self.in_flight {
            under_way.await;
            self.in_flight = None;
        }
    }

    /// Sends all remaining drafts.
    pub(super) async fn send_all(mut self) {
        while !self.is_empty() {
            self.send_next().await;
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

    fn name(key: &DraftSubject) -> String {
        match key {
            DraftSubject::Gate(gate) => gate.to_string(),
            DraftSubject::Thread(thread) => thread.to_string(),
        }
    }

    #[test]
    fn outbox_sends_only_the_newest_draft_of_each_request() {
        let (mut outbox, handed, ready) = outbox();
        let gate = |id: &str| DraftSubject::Gate(id.parse().unwrap());
        outbox.queue_draft(gate("c-1"), Some(json!("a")));
        assert!(outbox.send_next().now_or_never().is_none(), "it is slow");
        for typed in ["ab", "abc", "abcd"] {
            outbox.queue_draft(gate("c-1"), Some(json!(typed)));
            outbox.queue_draft(gate("c-2"), None);
            assert!(outbox.send_next().now_or_never().is_none());
        }
        assert_eq!(outbox.waiting.len(), 2);
        ready.add_permits(3);
        assert!(outbox.send_all().now_or_never().is_some());
        let key = |id: &str, draft| (id.to_owned(), draft);
        assert_eq!(
            *handed.lock().unwrap(),
            [
                key("c-1", Some(json!("a"))),
                key("c-1", Some(json!("abcd"))),
                key("c-2", None),
            ]
        );
    }
}
