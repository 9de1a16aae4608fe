//! State changes of a conversation turn.

use super::ReplayState;
use super::state::{RECENT, ThreadPosition};
use crate::trace::details::Details;
use crate::trace::event::Event;
use crate::trace::summary::is_frozen;

impl ReplayState {
    pub(super) fn turn(&mut self, event: &Event, details: Details<'_>) {
        let Some(thread) = details.nested("thread") else {
            return;
        };
        let Some(id) = thread.text("thread_id") else {
            return;
        };
        let decided = details.nested("metadata");
        let decision = decided.and_then(|metadata| metadata.text("decision"));
        let known = self.threads.contains_key(id);
        if !known && self.threads.len() >= RECENT {
            // The thread with the oldest last turn is dropped.
            let oldest = self
                .threads
                .iter()
                .min_by_key(|(_, thread)| thread.sequence);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|id| self.threads.remove(&id));
        }
        let at = ThreadPosition {
            phase: thread.text_or_empty("affect_phase"),
            intensity: thread.text_or_empty("intensity"),
            frozen: is_frozen(details),
            decision: decision.unwrap_or_default().to_owned(),
            rule: thread.number("rule").unwrap_or(0),
            version: thread.number("version").unwrap_or(0),
            etag: thread.text_or_empty("etag"),
            sequence: event.sequence,
            at: event.timestamp,
        };
        self.threads.insert(id.to_owned(), at);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::trace::outline::EventMarks;
    use crate::trace::replay::tests::event;
    use crate::trace::summary::{Tone, event_subject, sentence, short_description, tone};

    fn turned(sequence: u64, thread: &str, frozen: bool, update: &str) -> Event {
        let payload = json!({
            "actor": "solserver",
            "phase": "breakpoint",
            "status": "completed",
            "summary": "Breakpoint decision: SHOULD",
            "metadata": {
                "kind": "breakpoint_engine",
                "decision": "should",
                "peakGuardrailActive": frozen,
                "source": "stored_latest",
            },
            "thread": {
                "thread_id": thread,
                "message_id": "m-1",
                "rule": 3,
                "signals": [],
                "affect_phase": "peak",
                "intensity": "high",
                "update": update,
                "version": 4,
                "etag": "0123456789abcdef",
            },
        });
        event(sequence, "breakpoint_decided", payload)
    }

    // covers D17
    #[test]
    fn turns_have_a_readable_summary() {
        let frozen = turned(1, "t-31", true, "kept_at_peak");
        assert_eq!(
            sentence(&frozen),
            "turn m-1 of t-31 is SHOULD (rule 3), peak/high, FROZEN: proposal saved for later"
        );
        assert_eq!(tone(&frozen), Tone::Care);
        assert_eq!(event_subject(&frozen), Some("t-31"));
        assert_eq!(short_description(&frozen), "t-31 should");
        assert_eq!(EventMarks::from_event(&frozen).label(), "FROZEN");
        let open = turned(1, "t-31", false, "updated");
        assert_eq!(
            sentence(&open),
            "turn m-1 of t-31 is SHOULD (rule 3), peak/high: summary updated to version 4"
        );
        assert_eq!(
            (tone(&open), EventMarks::from_event(&open).label()),
            (Tone::Plain, "")
        );
        let about = json!({"thread_id": "t-31", "by": "op-1", "before": "a", "now": "b"});
        let edited = event(1, "memento_edited", about.clone());
        assert_eq!(sentence(&edited), "op-1 rewrites the summary of t-31");
        let drifts = event(1, "drift_flagged", about);
        assert_eq!(sentence(&drifts), "op-1 flags drift in t-31");
        assert_eq!((tone(&edited), tone(&drifts)), (Tone::Care, Tone::Care));
        let empty = event(1, "breakpoint_decided", json!({"thread": 7}));
        assert!(sentence(&empty).starts_with("turn ? of ? is ?"));
    }

    #[test]
    fn state_keeps_each_thread_after_its_last_turn() {
        let mut state = ReplayState::default();
        state.apply(&turned(1, "t-31", true, "kept_at_peak"));
        state.apply(&turned(2, "t-32", false, "updated"));
        let at = &state.threads["t-31"];
        assert_eq!((at.phase.as_str(), at.intensity.as_str()), ("peak", "high"));
        assert_eq!((at.frozen, at.version, at.rule), (true, 4, 3));
        state.apply(&turned(3, "t-31", false, "updated"));
        assert!(!state.threads["t-31"].frozen);
        assert_eq!(state.threads["t-31"].sequence, 3);
        state.apply(&event(4, "breakpoint_decided", json!({"thread": []})));
        assert_eq!(state.threads.len(), 2);
        for number in 0..60 {
            let thread = format!("more-{number}");
            state.apply(&turned(5 + number, &thread, false, "updated"));
        }
        assert_eq!(state.threads.len(), RECENT);
        assert!(!state.threads.contains_key("t-32"), "the oldest goes first");
    }
}
