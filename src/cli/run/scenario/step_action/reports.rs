//! Steps in which an agent reports something: feedback, output, errors and recoveries.

use super::{ErrorRecovery, StepAction, optional_text, optional_word, session, text};
use crate::atlas::located_values::{FileProblems, LocatedValue};
use crate::engine::command::{AgentReport, ErrorReport, Feedback, OutputReport};
use crate::trace::event::{OutputType, UsageOutcome};

const OUTPUT_TYPES: [(&str, OutputType); 3] = [
    ("text", OutputType::Text),
    ("action", OutputType::Action),
    ("structured", OutputType::Structured),
];

const USAGE_OUTCOMES: [(&str, UsageOutcome); 3] = [
    ("applied", UsageOutcome::Applied),
    ("ignored", UsageOutcome::Ignored),
    ("partial", UsageOutcome::Partial),
];

pub(super) fn feedback(
    value: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<StepAction> {
    let known = [
        "session",
        "context_id",
        "helpful",
        "reason",
        "usage_outcome",
    ];
    value.reject_unknown_keys(&known, faults);
    let session = session(value, faults);
    let context_id = text(value, "context_id", faults);
    let helpful = value.require("helpful", faults);
    let helpful = helpful.and_then(|helpful| helpful.boolean(faults));
    let reason = optional_text(value, "reason", faults);
    let usage_outcome = optional_word(value, "usage_outcome", &USAGE_OUTCOMES, faults);
    Some(StepAction::Report(AgentReport::Feedback(Feedback {
        session: session?,
        context_id: context_id?,
        helpful: helpful?,
        reason,
        usage_outcome,
    })))
}

pub(super) fn output(
    value: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<StepAction> {
    let known = ["session", "text", "output_type", "contains_action"];
    value.reject_unknown_keys(&known, faults);
    let session = session(value, faults);
    let written = text(value, "text", faults);
    let output_type = optional_word(value, "output_type", &OUTPUT_TYPES, faults);
    let contains_action = value.get("contains_action");
    let contains_action = contains_action.and_then(|value| value.boolean(faults));
    Some(StepAction::Report(AgentReport::Output(OutputReport {
        session: session?,
        text: written?,
        output_type: output_type.unwrap_or(OutputType::Text),
        contains_action: contains_action.unwrap_or(false),
    })))
}

pub(super) fn error(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    let known = [
        "session",
        "type",
        "code",
        "message",
        "recoverable",
        "stack_trace",
    ];
    value.reject_unknown_keys(&known, faults);
    let session = session(value, faults);
    let error_type = text(value, "type", faults);
    let error_code = optional_text(value, "code", faults);
    let message = optional_text(value, "message", faults);
    let recoverable = value.get("recoverable");
    let recoverable = recoverable.and_then(|value| value.boolean(faults));
    let stack_trace = optional_text(value, "stack_trace", faults);
    Some(StepAction::Error(ErrorReport {
        error_code,
        stack_trace,
        session: session?,
        error_type: error_type?,
        message: message.unwrap_or_default(),
        recoverable: recoverable.unwrap_or(true),
    }))
}

pub(super) fn recovered(
    value: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "method", "success"], faults);
    let session = session(value, faults);
    let method = text(value, "method", faults);
    let success = value.get("success");
    let success = success.and_then(|value| value.boolean(faults));
    Some(StepAction::Recovered(ErrorRecovery {
        session: session?,
        method: method?,
        success: success.unwrap_or(true),
    }))
}
