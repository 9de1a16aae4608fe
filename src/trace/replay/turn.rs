//! How a turn of a conversation changes the state.

use super::State;
use super::state::{RECENT, ThreadAt};
use crate::trace::details::Details;
use crate::trace::event::Event;
use crate::trace::tell::is_frozen;

impl State {
    pub(super) fn turn(&mut self, event: &Event, details: Details<'_>) {
        let Some(thread) = details.within("thread") else {
            return;
        };
        let Some(id) = thread.text("thread_id") else {
            return;
        };
        let decided = details.within("metadata");
        let decision = decided.and_then(|it| it.text("decision"));
        let known = self.threads.contains_key(id);
        if !known && self.threads.len() >= RECENT {
            // The one whose last turn is the longest ago makes room.
            let oldest = self.threads.iter().min_by_key(|(_, it)| it.sequence);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|id| self.threads.remove(&id));
        }
        let at = ThreadAt {
            phase: thread.owned("affect_phase"),
            intensity: thread.owned("intensity"),
            frozen: is_frozen(details),
            decision: decision.unwrap_or_default().to_owned(),
            rule: thread.number("rule").unwrap_or(0),
            version: thread.number("version").unwrap_or(0),
            etag: thread.owned("etag"),
            sequence: event.sequence,
            at: event.timestamp,
        };
        self.threads.insert(id.to_owned(), at);
    }
}
