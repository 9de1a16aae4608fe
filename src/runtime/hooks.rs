//! Event hooks: code that sees records before they are sealed, and again when they are on disk.
//!
//! Contract: a hook can change the details of an event, but not its type, its session or its position in
//! the chain. A hook that panics, or returns details that do not fit the event type, changes nothing: the
//! event is recorded as it was.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::base::limits::HOOK_QUEUE;
use crate::base::pattern::Pattern;
use crate::trace::event::{Draft, Event, Payload, REDACTED, RegisteredEvent};
use crate::trace::record::Record;

use super::extension::EventTypes;

/// Observes events.
pub trait EventHook: Send + Sync {
    /// Returns the details to record. The runtime calls this before the event is sealed, and waits: it has
    /// to be quick.
    fn before_event(&self, event_type: &str, details: Map<String, Value>) -> Map<String, Value> {
        let _ = event_type;
        details
    }

    /// Handles an event that is on disk. The runtime does not wait for this.
    fn on_event(&self, event: &Event) {
        let _ = event;
    }
}

/// A hook, and the pattern of its event types.
pub(super) type RegisteredHook = (Pattern, Arc<dyn EventHook>);

/// All registered hooks.
pub(super) struct EventHooks {
    all: Vec<RegisteredHook>,
    types: EventTypes,
    sender: Option<mpsc::Sender<Event>>,
}

impl EventHooks {
    pub(super) fn new(hooks: Vec<RegisteredHook>, types: EventTypes) -> Self {
        let sender = (!hooks.is_empty()).then(|| {
            let (sender, receiver) = mpsc::channel(HOOK_QUEUE);
            tokio::spawn(run_hooks(hooks.clone(), receiver));
            sender
        });
        Self {
            all: hooks,
            types,
            sender,
        }
    }

    /// Creates hooks that are called only before events: the caller shows them recorded events.
    pub(super) fn before_only(hooks: Vec<RegisteredHook>, types: EventTypes) -> Self {
        Self {
            all: hooks,
            types,
            sender: None,
        }
    }

    /// Returns true if hooks receive recorded events.
    pub(super) fn has_listeners(&self) -> bool {
        self.sender.is_some()
    }

    /// Returns an event after the hooks changed it.
    pub(super) fn apply_before(&self, mut draft: Draft) -> Draft {
        for (pattern, hook) in &self.all {
            let event_type = draft.payload.event_type();
            if !pattern.matches(event_type) {
                continue;
            }
            let details = draft.payload.fields();
            let changed = catch_unwind(AssertUnwindSafe(|| hook.before_event(event_type, details)));
            let changed = changed.map_err(|_| "it crashed".to_owned());
            match changed.and_then(|details| self.read(event_type, details)) {
                Ok(payload) => draft.payload = payload,
                Err(what) => {
                    tracing::error!(event_type, what, "the result of an event hook was ignored");
                }
            }
        }
        draft
    }

    /// Converts details from a hook into a payload. Fails if they do not fit the event type.
    fn read(&self, event_type: &str, details: Map<String, Value>) -> Result<Payload, String> {
        if !self.types.contains(event_type) {
            return Payload::read(event_type, details).map_err(|error| error.to_string());
        }
        // Redacted fields stay redacted; their list is not a field of the type.
        let mut own = details.clone();
        own.remove(REDACTED);
        match self.types.fault(event_type, &own) {
            Some(fault) => Err(fault),
            None => RegisteredEvent::new(event_type, details)
                .map(Payload::from)
                .ok_or("events of this type cannot be recorded".to_owned()),
        }
    }

    /// Passes durable events to the hooks. Slow hooks miss some; the record has them all. Returns the
    /// number of missed events.
    pub(super) fn notify_after(&self, records: &[Record]) -> u64 {
        let Some(sender) = &self.sender else { return 0 };
        let mut missed = 0;
        // INVARIANT: records sealed here read back.
        for event in records.iter().filter_map(|record| record.event_of().ok()) {
            if sender.try_send(event).is_err() {
                tracing::warn!("event hooks are too slow and missed an event");
                missed += 1;
            }
        }
        missed
    }
}

async fn run_hooks(hooks: Vec<RegisteredHook>, mut events: mpsc::Receiver<Event>) {
    while let Some(event) = events.recv().await {
        for (pattern, hook) in &hooks {
            if pattern.matches(&event.event_type) {
                let called = catch_unwind(AssertUnwindSafe(|| hook.on_event(&event)));
                if called.is_err() {
                    tracing::error!(event.event_type, "an event hook crashed");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Timestamp;
    use crate::base::id::SessionId;
    use crate::trace::chain::Chain;
    use crate::trace::event::Durability;

    struct NoopHook;

    impl EventHook for NoopHook {}

    fn records(count: usize) -> Vec<Record> {
        let session: SessionId = "s-1".parse().unwrap();
        let mut chain = Chain::new(session.clone());
        let fields = serde_json::json!({
            "original_error_id": "x", "recovery_method": "r", "success": true,
        });
        let fields = fields.as_object().cloned().unwrap();
        let draft = Draft {
            session_id: session,
            event_id: "e".parse().unwrap(),
            trace_id: "t".parse().unwrap(),
            span_id: "p".parse().unwrap(),
            parent_span_id: None,
            timestamp: Timestamp::from_micros(0),
            payload: Payload::read("error_recovered", fields).unwrap(),
            durability: Durability::Sync,
        };
        (0..count).map(|_| chain.seal(&draft)).collect()
    }

    #[tokio::test]
    async fn events_that_slow_hooks_miss_are_counted() {
        let all = Pattern::new("*");
        let hooks = EventHooks::new(vec![(all, Arc::new(NoopHook))], EventTypes::default());
        assert_eq!(hooks.notify_after(&records(HOOK_QUEUE)), 0);
        assert_eq!(
            hooks.notify_after(&records(3)),
            3,
            "nobody has heard one yet"
        );
    }
}
