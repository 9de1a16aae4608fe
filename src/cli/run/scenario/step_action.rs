//! Actions of scenario steps.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{optional_text, text, wrapper};
use crate::atlas::diagnostic::Code;
use crate::atlas::located_values::{FileProblems, LocatedValue};
use crate::base::id::SessionId;
use crate::engine::command::{ActionError, ContextRequest, ErrorReport, FinalStatus, InputReport};
use crate::engine::command::{
    AgentReport, DeliveryTime, EndSession, InputSource, ResolveRequest, StartSession,
};
use crate::memento::{ExternalName, SummaryShape};
use crate::runtime::SessionTurn;

mod reports;

/// Action of a step.
pub(in crate::cli::run) enum StepAction {
    Start(StartSession),
    Request {
        session: SessionId,
        action: String,
        params: Value,
        /// Resolution that the request relies on.
        resolution: Option<String>,
    },
    /// The agent answers a question addressed to it.
    Answer {
        session: SessionId,
        gate: String,
        answers: AgentAnswers,
    },
    /// The agent requests a resolution.
    Resolve(ResolveRequest),
    /// Result of the oldest uncompleted run of an action.
    Complete {
        session: SessionId,
        action: String,
        result: Result<String, ActionError>,
    },
    /// Waiting requesters disconnect.
    Leave {
        session: SessionId,
        action: Option<String>,
    },
    Input(InputReport),
    Context(ContextRequest),
    Error(ErrorReport),
    /// The agent reports an event that is only recorded.
    Report(AgentReport),
    /// The agent reports recovery from the last error of its session.
    Recovered(ErrorRecovery),
    /// A handler asks for the policy answer about an action.
    Policy(PolicyQuestion),
    /// A turn of a conversation.
    Turn(Box<SessionTurn>),
    /// An operator rewrites the summary of a conversation.
    Edit {
        thread: ExternalName,
        shape: Box<SummaryShape>,
    },
    Pass(ApprovalStep),
    Deny(DenialStep),
    /// Time passes, in seconds.
    Wait(u64),
    End(EndSession),
}

/// Recovery from the last error of a session.
pub(in crate::cli::run) struct ErrorRecovery {
    pub(in crate::cli::run) session: SessionId,
    pub(in crate::cli::run) method: String,
    pub(in crate::cli::run) success: bool,
}

/// Question to the policies about an action.
pub(in crate::cli::run) struct PolicyQuestion {
    pub(in crate::cli::run) session: SessionId,
    pub(in crate::cli::run) action: String,
    pub(in crate::cli::run) params: Value,
}

/// Approval of a held request.
pub(in crate::cli::run) struct ApprovalStep {
    pub(in crate::cli::run) gate: String,
    pub(in crate::cli::run) answers: OperatorAnswers,
    pub(in crate::cli::run) justification: Option<String>,
    /// Name of the operator, if it is not the default one.
    pub(in crate::cli::run) operator: Option<String>,
}

/// Denial of a held request.
pub(in crate::cli::run) struct DenialStep {
    pub(in crate::cli::run) gate: String,
    pub(in crate::cli::run) reason: String,
    /// Name of the operator, if it is not the default one.
    pub(in crate::cli::run) operator: Option<String>,
}

/// Answers of an agent: by checkpoint, then by question.
pub(in crate::cli::run) type AgentAnswers = BTreeMap<String, BTreeMap<String, Value>>;

/// Answers of an operator.
pub(in crate::cli::run) enum OperatorAnswers {
    /// Generated answers that follow the rules.
    Generated,
    /// Given answers, by question.
    Explicit(BTreeMap<String, Value>),
}

/// Keys of the step types.
pub(super) const STEP_KEYS: [&str; 21] = [
    "start",
    "request",
    "answer",
    "resolve",
    "complete",
    "leave",
    "input",
    "context",
    "feedback",
    "output",
    "error",
    "recovered",
    "policy",
    "turn",
    "edit",
    "wrapper_constructed",
    "wrapper_verified",
    "pass",
    "deny",
    "wait",
    "end",
];

const STATUSES: [(&str, FinalStatus); 4] = [
    ("completed", FinalStatus::Completed),
    ("error", FinalStatus::Error),
    ("timeout", FinalStatus::Timeout),
    ("cancelled", FinalStatus::Cancelled),
];

const SOURCES: [(&str, InputSource); 3] = [
    ("user", InputSource::User),
    ("system", InputSource::System),
    ("other_agent", InputSource::OtherAgent),
];

/// Parses the action of a step of this type.
pub(super) fn parse_action(
    kind: &str,
    value: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<StepAction> {
    match kind {
        "start" => start(value, faults),
        "request" => request(value, faults),
        "answer" => answer(value, faults),
        "resolve" => resolve(value, faults),
        "complete" => complete(value, faults),
        "leave" => leave(value, faults),
        "input" => input(value, faults),
        "context" => context(value, faults),
        "feedback" => reports::feedback(value, faults),
        "output" => reports::output(value, faults),
        "error" => reports::error(value, faults),
        "recovered" => reports::recovered(value, faults),
        "policy" => policy(value, faults),
        "turn" => turn(value, faults),
        "edit" => edit(value, faults),
        "wrapper_constructed" => wrapper::constructed(value, faults),
        "wrapper_verified" => wrapper::verified(value, faults),
        "pass" => pass(value, faults),
        "deny" => deny(value, faults),
        "wait" => value.count(faults).map(StepAction::Wait),
        _ => end(value, faults),
    }
}

fn start(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "agent", "version", "intent"], faults);
    let session = session(value, faults);
    let agent = optional_text(value, "agent", faults);
    let agent_version = optional_text(value, "version", faults);
    let intent = optional_text(value, "intent", faults);
    Some(StepAction::Start(StartSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: session?,
        agent: agent.unwrap_or_else(|| "agent".to_owned()),
        agent_version,
        intent,
        owner: None,
    }))
}

fn request(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "action", "params", "resolution"], faults);
    let session = session(value, faults);
    let action = text(value, "action", faults);
    let params = value.get("params").map(|params| params.json());
    let resolution = optional_text(value, "resolution", faults);
    Some(StepAction::Request {
        session: session?,
        action: action?,
        params: params.unwrap_or_else(|| json!({})),
        resolution,
    })
}

fn answer(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "gate", "answers"], faults);
    let session = session(value, faults);
    let gate = text(value, "gate", faults);
    let place = value.require("answers", faults)?;
    let Ok(answers) = serde_json::from_value(place.json()) else {
        let message = "expected a map of answers by checkpoint, then by question";
        place.report(Code::WrongType, message, faults);
        return None;
    };
    Some(StepAction::Answer {
        session: session?,
        gate: gate?,
        answers,
    })
}

fn resolve(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "input"], faults);
    let session = session(value, faults);
    let input = optional_text(value, "input", faults);
    Some(StepAction::Resolve(ResolveRequest {
        session: session?,
        input,
        actions: Vec::new(),
    }))
}

fn complete(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "action", "result", "error"], faults);
    let session = session(value, faults);
    let action = text(value, "action", faults);
    let summary = optional_text(value, "result", faults);
    let failure = value.get("error");
    if let (Some(_), Some(failure)) = (&summary, &failure) {
        let message = "`complete` takes a `result` or an `error`, not both";
        failure.report(Code::Contradiction, message, faults);
    }
    let result = match failure {
        Some(failure) => {
            failure.reject_unknown_keys(&["code", "message"], faults);
            let code = text(&failure, "code", faults);
            let message = optional_text(&failure, "message", faults);
            Err(ActionError {
                code: code?,
                message: message.unwrap_or_default(),
            })
        }
        None => Ok(summary.unwrap_or_default()),
    };
    Some(StepAction::Complete {
        session: session?,
        action: action?,
        result,
    })
}

fn leave(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "action"], faults);
    let session = session(value, faults);
    let action = optional_text(value, "action", faults);
    Some(StepAction::Leave {
        session: session?,
        action,
    })
}

fn input(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "text", "source"], faults);
    let session = session(value, faults);
    let written = text(value, "text", faults);
    let source = optional_word(value, "source", &SOURCES, faults);
    Some(StepAction::Input(InputReport {
        session: session?,
        text: written?,
        source: source.unwrap_or(InputSource::User),
        reaches_asked_agent: false,
        waits_for_start: false,
        deadline: None,
    }))
}

fn context(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "query", "hints", "checkpoint"], faults);
    let session = session(value, faults);
    let query = optional_text(value, "query", faults);
    let hints = value.get("hints").map(|hints| hints.texts(faults));
    let checkpoint = optional_text(value, "checkpoint", faults);
    Some(StepAction::Context(ContextRequest {
        session: session?,
        query,
        hints: hints.unwrap_or_default(),
        checkpoint,
    }))
}

fn policy(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "action", "params"], faults);
    let session = session(value, faults);
    let action = text(value, "action", faults);
    let params = value.get("params").map(|params| params.json());
    Some(StepAction::Policy(PolicyQuestion {
        session: session?,
        action: action?,
        params: params.unwrap_or_else(|| json!({})),
    }))
}

/// Parses a turn as `cra turn` does.
fn turn(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    let read = SessionTurn::read_all(value.json().to_string().as_bytes());
    match read.map(<[SessionTurn; 1]>::try_from) {
        Ok(Ok([take])) => Some(StepAction::Turn(Box::new(take))),
        Ok(Err(several)) => {
            let message = format!("expected one turn, found {}", several.len());
            value.report(Code::WrongType, &message, faults);
            None
        }
        Err(error) => {
            value.report(Code::WrongType, &error.to_string(), faults);
            None
        }
    }
}

/// Parses an edit: the thread, and the summary that the operator wants.
fn edit(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["thread", "summary"], faults);
    let place = value.require("thread", faults);
    let summary = value.require("summary", faults);
    let thread = place.and_then(|place| {
        let thread = serde_json::from_value::<ExternalName>(place.json());
        thread
            .map_err(|error| place.report(Code::BadId, &error.to_string(), faults))
            .ok()
    });
    let summary = summary?;
    let shape = SummaryShape::read_proposal(&summary.json());
    let shape = shape
        .map_err(|error| summary.report(Code::WrongType, &error.to_string(), faults))
        .ok();
    Some(StepAction::Edit {
        thread: thread?,
        shape: Box::new(shape?),
    })
}

fn pass(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["gate", "answers", "justification", "operator"], faults);
    let gate = text(value, "gate", faults);
    let answers = value.require("answers", faults);
    let justification = optional_text(value, "justification", faults);
    let operator = optional_text(value, "operator", faults);
    Some(StepAction::Pass(ApprovalStep {
        answers: answers_of(&answers?, faults)?,
        gate: gate?,
        justification,
        operator,
    }))
}

fn deny(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["gate", "reason", "operator"], faults);
    let gate = text(value, "gate", faults);
    let reason = optional_text(value, "reason", faults);
    let operator = optional_text(value, "operator", faults);
    Some(StepAction::Deny(DenialStep {
        gate: gate?,
        reason: reason.unwrap_or_default(),
        operator,
    }))
}

fn end(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<StepAction> {
    value.reject_unknown_keys(&["session", "status", "summary"], faults);
    let session = session(value, faults);
    let status = optional_word(value, "status", &STATUSES, faults);
    let summary = optional_text(value, "summary", faults);
    Some(StepAction::End(EndSession {
        delivery: DeliveryTime::Now,
        session: session?,
        status: status.unwrap_or(FinalStatus::Completed),
        summary,
    }))
}

fn answers_of(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<OperatorAnswers> {
    match value.json() {
        Value::Object(answers) => Some(OperatorAnswers::Explicit(answers.into_iter().collect())),
        Value::String(word) if word == "good" => Some(OperatorAnswers::Generated),
        _ => {
            let message = "expected `good`, or a map of answers by question";
            value.report(Code::WrongType, message, faults);
            None
        }
    }
}

/// Parses an optional key with a fixed set of words; the key also names them in errors.
fn optional_word<T: Copy>(
    value: &LocatedValue<'_>,
    key: &str,
    names: &[(&'static str, T)],
    faults: &mut FileProblems<'_>,
) -> Option<T> {
    let words: Vec<_> = names.iter().map(|(name, _)| *name).collect();
    let word = value.get(key)?.word(key, &words, faults)?;
    let mut found = names.iter().filter(|(name, _)| *name == word);
    found.next().map(|(_, named)| *named)
}

pub(super) fn session(
    value: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<SessionId> {
    let place = value.require("session", faults)?;
    let session = place.text(faults)?.parse::<SessionId>();
    session
        .map_err(|error| place.report(Code::BadId, &error.to_string(), faults))
        .ok()
}
