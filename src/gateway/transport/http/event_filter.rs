//! Filter for the records that an agent may read of its session: its own statements, and what it was told.
//!
//! The record has more: operators' reasons and answers, claims of requests, inputs of a steward's rules.
//! The agent must not read those. An event of a type that is not listed here is sent without its details.

use serde_json::{Map, Value};

use crate::trace::event::Event;

/// Visible fields of each event type.
#[rustfmt::skip]
pub(super) const VISIBLE_FIELDS: &[(&str, &[&str])] = &[
    ("session_started", &["agent_type", "agent_version", "wrapper_version", "atlas_ids", "initial_contexts", "intent"]),
    ("session_ended", &["duration_ms", "event_count", "actions_taken", "contexts_injected", "final_status", "summary"]),
    ("context_requested", &["request_type", "query", "hints"]),
    ("context_injected", &["context_ids", "atlas_ids", "total_size_bytes", "trigger"]),
    ("context_feedback", &["context_id", "helpful", "reason", "usage_outcome"]),
    ("action_attempted", &["action_type", "action_params"]),
    ("action_completed", &["action_type", "success", "duration_ms", "result_summary", "error"]),
    // The reason equals the one in the denial.
    ("action_blocked", &["action_type", "action_params", "policy_id", "reason", "override_available"]),
    ("policy_checked", &["policy_id", "action_type", "decision"]),
    // The answer names the approver; the justification stays hidden.
    ("policy_override", &["policy_id", "action_type", "approver"]),
    ("checkpoint_triggered", &["checkpoint_id", "checkpoint_type", "mode"]),
    ("checkpoint_completed", &["checkpoint_id", "checkpoint_type", "contexts_injected", "action_taken"]),
    ("checkpoint_skipped", &["checkpoint_id", "checkpoint_type"]),
    ("checkpoint_response", &["checkpoint_id", "validation_result"]),
    ("checkpoint_passed", &["checkpoint_id", "unlocked_capabilities", "injected_contexts", "passed_by"]),
    ("checkpoint_blocked", &["checkpoint_id", "reason", "blocked_action", "outcome"]),
    // The agent knows its own reports. Messages about attempts of other callers are for operators.
    ("error_occurred", &["error_type", "error_code", "recoverable"]),
    ("error_recovered", &["original_error_id", "recovery_method", "success"]),
    ("input_received", &["input_hash", "input_size_bytes", "source"]),
    ("output_produced", &["output_hash", "output_size_bytes", "output_type", "contains_action"]),
    ("atlas_loaded", &["atlas_id", "version"]),
    ("breakpoint_decided", &["summary", "metadata", "thread"]),
];

/// Returns an event with only the fields that its agent may know.
pub(super) fn filter_event(mut event: Event) -> Event {
    let visible = VISIBLE_FIELDS
        .iter()
        .find(|(name, _)| *name == event.event_type);
    let visible = visible.map_or(&[] as &[&str], |(_, fields)| fields);
    let details = std::mem::take(&mut event.payload);
    let kept = details.into_iter();
    let kept = kept.filter(|(name, _)| visible.contains(&name.as_str()));
    event.payload = kept.collect::<Map<String, Value>>();
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::event::Payload;

    #[test]
    fn visible_fields_exist_in_their_event_type() {
        for (name, fields) in VISIBLE_FIELDS {
            let all = Payload::field_names(name);
            assert!(!all.is_empty(), "{name}");
            for field in *fields {
                assert!(all.contains(field), "{name}: {field}");
            }
        }
    }

    #[test]
    fn fields_that_operators_write_for_each_other_are_hidden() {
        let secret = [
            "justification",
            "answers",
            "approvers",
            "claim",
            "by",
            "problems",
        ];
        for (name, fields) in VISIBLE_FIELDS {
            for field in *fields {
                assert!(!secret.contains(field), "{name}: {field}");
            }
        }
    }
}
