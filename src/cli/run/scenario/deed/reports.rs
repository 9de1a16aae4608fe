//! Steps in which an agent reports something: feedback, output, errors and recoveries.

use super::{Deed, Recovered, named, optional_text, session, text};
use crate::atlas::written::{Faults, Placed};
use crate::engine::command::{ErrorReport, Feedback, Output, Report};
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

pub(super) fn feedback(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Deed> {
    let known = [
        "session",
        "context_id",
        "helpful",
        "reason",
        "usage_outcome",
    ];
    value.only(&known, faults);
    let session = session(value, faults);
    let context_id = text(value, "context_id", faults);
    let helpful = value.need("helpful", faults);
    let helpful = helpful.and_then(|helpful| helpful.boolean(faults));
    let reason = optional_text(value, "reason", faults);
    let usage_outcome = named(value, "usage_outcome", &USAGE_OUTCOMES, faults);
    Some(Deed::Report(Report::Feedback(Feedback {
        session: session?,
        context_id: context_id?,
        helpful: helpful?,
        reason,
        usage_outcome,
    })))
}

pub(super) fn output(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Deed> {
    let known = ["session", "text", "output_type", "contains_action"];
    value.only(&known, faults);
    let session = session(value, faults);
    let written = text(value, "text", faults);
    let output_type = named(value, "output_type", &OUTPUT_TYPES, faults);
    let contains_action = value.get("contains_action");
    let contains_action = contains_action.and_then(|given| given.boolean(faults));
    Some(Deed::Report(Report::Output(Output {
        session: session?,
        text: written?,
        output_type: output_type.unwrap_or(OutputType::Text),
        contains_action: contains_action.unwrap_or(false),
    })))
}

pub(super) fn error(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Deed> {
    let known = [
        "session",
        "type",
        "code",
        "message",
        "recoverable",
        "stack_trace",
    ];
    value.only(&known, faults);
    let session = session(value, faults);
    let error_type = text(value, "type", faults);
    let error_code = optional_text(value, "code", faults);
    let message = optional_text(value, "message", faults);
    let recoverable = value.get("recoverable");
    let recoverable = recoverable.and_then(|given| given.boolean(faults));
    let stack_trace = optional_text(value, "stack_trace", faults);
    Some(Deed::Error(ErrorReport {
        error_code,
        stack_trace,
        session: session?,
        error_type: error_type?,
        message: message.unwrap_or_default(),
        recoverable: recoverable.unwrap_or(true),
    }))
}

pub(super) fn recovered(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Deed> {
    value.only(&["session", "method", "success"], faults);
    let session = session(value, faults);
    let method = text(value, "method", faults);
    let success = value.get("success");
    let success = success.and_then(|given| given.boolean(faults));
    Some(Deed::Recovered(Recovered {
        session: session?,
        method: method?,
        success: success.unwrap_or(true),
    }))
}
