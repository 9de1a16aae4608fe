//! Drafts on their way to the runtime.
//!
//! Contract: of each request and conversation only the newest draft waits, and one is under way at a time. However fast
//! somebody types and however slow the runtime is, nothing piles up and no key waits.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::clock::Boxed;
use crate::runtime::{Desk, DraftOf};

type HandOver = Box<dyn Fn(DraftOf, Option<Value>) -> Boxed<'static, ()> + Send + Sync>;

/// Drafts on their way to the runtime.
pub(super) struct Outbox {
    hand_over: HandOver,
    waiting: BTreeMap<DraftOf, Option<Value>>,
    under_way: Option<Boxed<'static, ()>>,
}

impl Outbox {
    pub(super) fn new(desk: Desk) -> Self {
        Self::with(Box::new(move |of, draft| {
            let desk = desk.clone();
            Box::pin(async move { desk.keep_draft(of, draft).await })
        }))
    }

    fn with(hand_over: HandOver) -> Self {
        Self {
            hand_over,
            waiting: BTreeMap::new(),
            under_way: None,
        }
    }

    /// Takes in a draft, in place of an older one of the same request or conversation.
    pub(super) fn put(&mut self, of: DraftOf, draft: Option<Value>) {
        self.waiting.insert(of, draft);
    }

    /// Whether everything was handed over.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_none()
    }

    /// Hands one draft over. Whoever stops waiting for it can wait again: nothing is lost.
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

    /// Hands over what is left.
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

    type Handed = Arc<Mutex<Vec<(String, Option<Value>)>>>;

    /// An outbox, what was handed over from it, and how often the runtime is ready to take one.
    fn outbox() -> (Outbox, Handed, Arc<Semaphore>) {
        let (handed, ready) = (Handed::default(), Arc::new(Semaphore::new(0)));
        let (log, gate) = (Arc::clone(&handed), Arc::clone(&ready));
        let hand_over: HandOver = Box::new(move |id, draft| {
            let (log, gate) = (Arc::clone(&log), Arc::clone(&gate));
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                log.lock().unwrap().push((name(&id), draft));
            })
        });
        (Outbox::with(hand_over), handed, ready)
    }

    fn name(of: &DraftOf) -> String {
        match of {
            DraftOf::Gate(gate) => gate.to_string(),
            DraftOf::Thread(thread) => thread.to_string(),
        }
    }

    #[test]
    fn the_newest_draft_of_each_request_is_handed_over_and_none_piles_up() {
        let (mut outbox, handed, ready) = outbox();
        let gate = |id: &str| DraftOf::Gate(id.parse().unwrap());
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
