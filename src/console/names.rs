//! Plain words for the names that records and Atlases use.
//!
//! Operators read these words on the screens. The raw names appear only in the view of a raw record and in files.
//! Filters accept both.

use crate::base::text::one_line;
use crate::engine::held::{Held, HeldSubject};
use crate::trace::event::{Event, Payload, canonical_type};
use crate::trace::summary::short_description;

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
        other => return with_blanks(other),
    };
    words.to_owned()
}

/// Returns the words for what a request asks: its action on one line, or the session's start or end.
pub(crate) fn action_words(held: &Held) -> String {
    match &held.subject {
        HeldSubject::SessionStart => with_blanks(held.action()),
        HeldSubject::Moment(moment) if moment.label == "session_end" => with_blanks(&moment.label),
        HeldSubject::Moment(_) | HeldSubject::Action(_) => one_line(held.action()),
    }
}

/// Returns the words for an event type.
pub(crate) fn event_words(event_type: &str) -> String {
    let words = match canonical_type(event_type) {
        "action_attempted" => "action requested",
        "checkpoint_approved" => "first approval",
        "checkpoint_blocked" => "gate not passed",
        "checkpoint_completed" => "checkpoint done",
        "checkpoint_passed" => "gate passed",
        "checkpoint_response" => "gate answered",
        "checkpoint_triggered" => "checkpoint fired",
        "context_injected" => "context given",
        "policy_checked" => "policy decided",
        "wrapper_constructed" => "wrapper built",
        "wrapper_verified" => "wrapper checked",
        other => return with_blanks(other),
    };
    words.to_owned()
}

/// Lists the built-in event types whose words a test accepts. The test gets the words in lower case.
pub(crate) fn event_types_by_words(test: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let types = Payload::TYPES.iter().copied();
    types
        .filter(|event_type| test(&event_words(event_type).to_lowercase()))
        .collect()
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
        other => return with_blanks(other),
    };
    words.to_owned()
}

/// Returns the words for a field of an event. A name that does not belong to the event's type was written by a
/// steward, and stays as it is.
pub(crate) fn event_field_words(event_type: &str, field: &str) -> String {
    if Payload::field_names(event_type).contains(&field) {
        field_words(field)
    } else {
        one_line(field)
    }
}

/// Returns the words for the value of an event's field, if its values come from a fixed list.
pub(crate) fn value_words(field: &str, value: &str) -> Option<String> {
    match field {
        "checkpoint_type" => Some(trigger_words(value)),
        "decision"
        | "final_status"
        | "justification_source"
        | "mode"
        | "outcome"
        | "output_type"
        | "recommended_action"
        | "request_type"
        | "risk_tier"
        | "source"
        | "trigger"
        | "usage_outcome"
        | "validation_result" => Some(with_blanks(value)),
        _ => None,
    }
}

/// Returns the subject and the outcome of an event on one line, in words.
pub(crate) fn description_words(event: &Event) -> String {
    let text = short_description(event);
    let outcomes = ["decision", "outcome", "final_status"].into_iter();
    let mut outcomes = outcomes.filter_map(|field| event.payload.get(field)?.as_str());
    match outcomes.next() {
        Some(outcome) if outcome.contains('_') => text.replacen(
            &format!(" {outcome}"),
            &format!(" {}", with_blanks(outcome)),
            1,
        ),
        Some(_) | None => text,
    }
}

/// Returns the words for the path of a field in a snapshot file.
pub(crate) fn path_words(path: &str) -> String {
    with_blanks(path).replace("[]", "").replace('.', " > ")
}

fn with_blanks(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::document::CheckpointTrigger;

    #[test]
    fn words_for_event_types_contain_no_underscore_and_differ() {
        let mut known = std::collections::BTreeSet::new();
        for name in Payload::TYPES {
            let words = event_words(name);
            assert!(!words.contains('_'), "{name}: {words}");
            assert!(known.insert(words), "{name} has the words of another type");
        }
        assert_eq!(event_words("risk_checkpoint"), "risk detected");
    }

    #[test]
    fn words_for_fields_contain_no_underscore() {
        for name in Payload::TYPES {
            for field in Payload::field_names(name) {
                let words = event_field_words(name, field);
                assert!(!words.contains('_'), "{name}: {words}");
            }
        }
        assert_eq!(event_field_words("atlas_event", "my_field"), "my_field");
    }

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
