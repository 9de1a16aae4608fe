//! Plain words for the names that records and Atlases use.
//!
//! Operators read these words on the screens. The raw names appear only in the view of a raw record, in
//! filters and in files.

use crate::base::text::one_line;
use crate::engine::held::{Held, HeldSubject};

/// Returns the words for a checkpoint type or trigger type, or for the kind of a policy's gate.
pub(crate) fn trigger_words(kind: &str) -> String {
    let words = match kind {
        "action_pre" => "before an action",
        "action_post" => "after an action",
        "keyword" | "keyword_match" => "keyword",
        "risk_threshold" => "risk",
        "capability_access" | "capability_gate" => "locked capability",
        "count_interval" => "number of actions",
        "explicit_request" => "context request",
        "error_occurred" => "error",
        "interactive" => "requested by name",
        "approval" => "policy approval",
        "override" => "override of a denial",
        other => return spaced(other),
    };
    words.to_owned()
}

/// Returns the words for what a request asks: its action on one line, or the session's start or end.
pub(crate) fn action_words(held: &Held) -> String {
    match &held.subject {
        HeldSubject::SessionStart => spaced(held.action()),
        HeldSubject::Moment(moment) if moment.label == "session_end" => spaced(&moment.label),
        HeldSubject::Moment(_) | HeldSubject::Action(_) => one_line(held.action()),
    }
}

/// Returns the words for an event type.
pub(crate) fn event_words(event_type: &str) -> String {
    spaced(event_type)
}

/// Returns the words for a field of a record.
pub(crate) fn field_words(field: &str) -> String {
    let words = match field {
        "action_type" => "action",
        "checkpoint_id" => "checkpoint",
        "gate_id" => "request",
        "injected_contexts" => "contexts given",
        "needed" => "approvals needed",
        "policy_id" => "policy",
        "risk_tier" => "risk",
        "unlocked_capabilities" => "capabilities unlocked",
        "validation_result" => "validation",
        other => return spaced(other),
    };
    words.to_owned()
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::document::CheckpointTrigger;

    #[test]
    fn words_for_trigger_types_contain_no_underscore() {
        let names = CheckpointTrigger::NAMES.iter();
        for name in names.chain(&CheckpointTrigger::TYPES) {
            let words = trigger_words(name);
            assert!(!words.is_empty() && !words.contains('_'), "{name}: {words}");
        }
        assert_eq!(trigger_words("action_pre"), "before an action");
        assert_eq!(trigger_words("session_start"), "session start");
    }
}
