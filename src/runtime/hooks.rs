//! Event hooks: what looks at records before they are sealed, and what is told when they are on disk.
//!
//! Contract: a hook can change the details of an event, never what kind it is, whose it is or where it
//! stands in its chain. One that breaks, or leaves details that the event does not have, changes
//! nothing: the event is recorded as it was.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::base::limits::HOOK_QUEUE;
use crate::base::pattern::Pattern;
use crate::trace::event::{Draft, Event, Payload};
use crate::trace::record::Record;

/// Looks at events.
pub trait EventHook: Send + Sync {
    /// The details as they should be recorded. Called before the event is sealed, and waited for: it
    /// has to be quick.
    fn before_event(&self, event_type: &str, details: Map<String, Value>) -> Map<String, Value> {
        let _ = event_type;
        details
    }

    /// An event is on disk. Nobody waits for this.
    fn on_event(&self, event: &Event) {
        let _ = event;
    }
}

/// A hook, and the pattern of the event types it is about.
pub(super) type Hooked = (Pattern, Arc<dyn EventHook>);

/// All hooks at work.
pub(super) struct Hooks {
    hooks: Vec<Hooked>,
    told: Option<mpsc::Sender<Event>>,
}

impl Hooks {
    pub(super) fn new(hooks: Vec<Hooked>) -> Self {
        if hooks.is_empty() {
            let told = None;
            return Self { hooks, told };
        }
        let (told, heard) = mpsc::channel(HOOK_QUEUE);
        tokio::spawn(tell(hooks.clone(), heard));
        Self {
            hooks,
            told: Some(told),
        }
    }

    /// Whether anybody wants to hear of events.
    pub(super) fn listen(&self) -> bool {
        self.told.is_some()
    }

    /// An event as hooks leave it.
    pub(super) fn before(&self, mut draft: Draft) -> Draft {
        for (pattern, hook) in &self.hooks {
            let event_type = draft.payload.event_type();
            if !pattern.matches(event_type) {
                continue;
            }
            let details = draft.payload.fields();
            let changed = catch_unwind(AssertUnwindSafe(|| hook.before_event(event_type, details)));
            let changed = changed.map_err(|_| "it broke down".to_owned());
            let changed = changed.and_then(|details| {
                Payload::read(event_type, details).map_err(|error| error.to_string())
            });
            match changed {
                Ok(payload) => draft.payload = payload,
                Err(what) => tracing::error!(event_type, what, "an event hook was ignored"),
            }
        }
        draft
    }

    /// Events are on disk. When hooks cannot keep up, they miss some: the record has them all.
    pub(super) fn after(&self, records: &[Record]) {
        let Some(told) = &self.told else { return };
        // INVARIANT: what was sealed here reads back.
        for event in records.iter().filter_map(|record| record.event().ok()) {
            if told.try_send(event).is_err() {
                tracing::warn!("event hooks are too slow and missed an event");
            }
        }
    }
}

async fn tell(hooks: Vec<Hooked>, mut heard: mpsc::Receiver<Event>) {
    while let Some(event) = heard.recv().await {
        for (pattern, hook) in &hooks {
            if pattern.matches(&event.event_type) {
                let told = catch_unwind(AssertUnwindSafe(|| hook.on_event(&event)));
                if told.is_err() {
                    tracing::error!(event.event_type, "an event hook broke down");
                }
            }
        }
    }
}
