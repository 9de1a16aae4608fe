//! What each call is told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::clock::Timestamp;
use crate::base::id::{EventId, ExecutionId, GateId, SessionId};
use crate::engine::command::{self as engine, FinalStatus, InputSource};
use crate::memento::{Name, Turn};
use crate::runtime::{HandOver, TakeTurn};
use crate::trace::event::{OutputType, UsageOutcome};

/// `session.start`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The session's identifier; the console makes one when there is none.
    #[serde(default)]
    pub session: Option<SessionId>,
    /// What kind of agent.
    pub agent: String,
    /// Its version.
    #[serde(default)]
    pub version: Option<String>,
    /// What the session is for, in the agent's own words.
    #[serde(default)]
    pub intent: Option<String>,
    /// What it shows to be let in, where an Atlas wants to see something.
    #[serde(default)]
    pub api_key: Option<String>,
}

/// `session.end`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The session.
    pub session: SessionId,
    /// How it ended.
    #[serde(default = "completed")]
    pub status: FinalStatus,
    /// What it did.
    #[serde(default)]
    pub summary: Option<String>,
    /// The answer that takes along what the agent is handed at last.
    #[serde(default)]
    pub given: engine::GivenWhen,
}

fn completed() -> FinalStatus {
    FinalStatus::Completed
}

impl From<End> for engine::EndSession {
    fn from(it: End) -> Self {
        Self {
            session: it.session,
            status: it.status,
            summary: it.summary,
            delivery: it.given,
        }
    }
}

/// `input`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heard {
    /// The session.
    pub session: SessionId,
    /// The text. Only its hash is kept.
    pub text: String,
    /// Where it came from.
    #[serde(default = "from_user")]
    pub source: InputSource,
    /// Tells whether the agent gets the text as soon as it is asked something about it.
    #[serde(default)]
    pub reaches_asked_agent: bool,
}

fn from_user() -> InputSource {
    InputSource::User
}

impl From<Heard> for engine::Input {
    fn from(it: Heard) -> Self {
        Self {
            session: it.session,
            text: it.text,
            source: it.source,
            reaches_asked_agent: it.reaches_asked_agent,
        }
    }
}

/// `action.request`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The session.
    pub session: SessionId,
    /// The action's name.
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// When the asker stops waiting. What is not decided by then is denied.
    #[serde(default, deserialize_with = "Timestamp::deserialize_rfc3339")]
    pub deadline: Option<Timestamp>,
    /// The resolution it relies on.
    #[serde(default)]
    pub resolution: Option<String>,
    /// What the agent calls the run; it may say later what came of it by that name. The same request with the
    /// same reference, asked again while the first waits, is one call.
    #[serde(default)]
    pub reference: Option<Name>,
    /// Identifier of this call, where identical calls share a reference.
    #[serde(default)]
    pub call: Option<Name>,
}

impl Request {
    /// The identifier of this call, where it has one.
    pub(super) fn call_id(&self) -> Option<String> {
        let id = self.call.as_ref().or(self.reference.as_ref());
        id.map(ToString::to_string)
    }
}

impl From<Request> for engine::ActionRequest {
    fn from(it: Request) -> Self {
        Self {
            call: it.call_id(),
            session: it.session,
            action: it.action,
            params: it.params.into(),
            deadline: it.deadline,
            resolution: it.resolution,
        }
    }
}

/// A run, as an agent names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// As the console named it.
    Execution(ExecutionId),
    /// As the agent did when it asked.
    Reference(Name),
}

/// `action.completed`: of an `execution` or a `reference`, with a `result` or with an `error`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "WrittenCompleted")]
pub struct Completed {
    /// The session.
    pub session: SessionId,
    /// The run that was allowed.
    pub run: Run,
    /// What came of it.
    pub result: Result<String, engine::ActionError>,
    /// The answer that takes along what the agent is handed because of it.
    pub given: engine::GivenWhen,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCompleted {
    session: SessionId,
    execution: Option<ExecutionId>,
    reference: Option<Name>,
    result: Option<String>,
    error: Option<engine::ActionError>,
    #[serde(default)]
    given: engine::GivenWhen,
}

impl TryFrom<WrittenCompleted> for Completed {
    type Error = &'static str;

    fn try_from(it: WrittenCompleted) -> Result<Self, Self::Error> {
        let result = match (it.result, it.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(String::new()),
            (Some(_), Some(_)) => return Err("there is a `result` or an `error`, and not both"),
        };
        let run = match (it.execution, it.reference) {
            (Some(execution), None) => Run::Execution(execution),
            (None, Some(reference)) => Run::Reference(reference),
            (None, None) | (Some(_), Some(_)) => {
                return Err("a run is named by its `execution` or by its `reference`");
            }
        };
        Ok(Self {
            session: it.session,
            run,
            result,
            given: it.given,
        })
    }
}

/// `context.request`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The session.
    pub session: SessionId,
    /// What is looked for.
    #[serde(default)]
    pub query: Option<String>,
    /// Contexts by identifier.
    #[serde(default)]
    pub hints: Vec<String>,
    /// An interactive checkpoint to fire.
    #[serde(default)]
    pub checkpoint: Option<String>,
}

impl From<Wanted> for engine::ContextRequest {
    fn from(it: Wanted) -> Self {
        Self {
            session: it.session,
            query: it.query,
            hints: it.hints,
            checkpoint: it.checkpoint,
        }
    }
}

/// `context.feedback`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Helped {
    /// The session.
    pub session: SessionId,
    /// The context.
    pub context_id: String,
    /// Whether it helped.
    pub helpful: bool,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// What the agent made of it.
    #[serde(default)]
    pub usage_outcome: Option<UsageOutcome>,
}

impl From<Helped> for engine::Feedback {
    fn from(it: Helped) -> Self {
        Self {
            session: it.session,
            context_id: it.context_id,
            helpful: it.helpful,
            reason: it.reason,
            usage_outcome: it.usage_outcome,
        }
    }
}

/// `turn`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taken {
    /// The session.
    pub session: SessionId,
    /// The conversation; without a name it is the session's own.
    #[serde(default)]
    pub thread: Option<Name>,
    /// The turn.
    pub turn: Turn,
}

impl From<Taken> for TakeTurn {
    fn from(it: Taken) -> Self {
        Self {
            session: it.session,
            thread: it.thread,
            turn: it.turn,
        }
    }
}

/// `thread.hand_over`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandsOver {
    /// Session that owns the thread.
    pub session: SessionId,
    /// The thread; the session's own if there is none.
    #[serde(default)]
    pub thread: Option<Name>,
    /// Session that may take it up.
    pub to: SessionId,
}

impl From<HandsOver> for HandOver {
    fn from(call: HandsOver) -> Self {
        Self {
            session: call.session,
            thread: call.thread,
            to: call.to,
        }
    }
}

/// `checkpoint.answer`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    /// The session.
    pub session: SessionId,
    /// The held request.
    pub gate: GateId,
    /// Answers by checkpoint, then by question.
    pub answers: BTreeMap<String, BTreeMap<String, Value>>,
    /// Caller that may run the action once it passes: `answer` or `repeat`.
    #[serde(default)]
    pub release: engine::ReleaseTo,
}

impl From<Answers> for engine::Answer {
    fn from(it: Answers) -> Self {
        Self {
            session: it.session,
            gate: it.gate,
            answers: it.answers,
            release: it.release,
        }
    }
}

/// `error`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erred {
    /// The session.
    pub session: SessionId,
    /// What kind of error.
    pub error_type: String,
    /// For programs.
    #[serde(default)]
    pub error_code: Option<String>,
    /// For people.
    pub message: String,
    /// Whether work can go on.
    #[serde(default)]
    pub recoverable: bool,
    /// Where it happened.
    #[serde(default)]
    pub stack_trace: Option<String>,
}

impl From<Erred> for engine::ErrorReport {
    fn from(it: Erred) -> Self {
        Self {
            session: it.session,
            error_type: it.error_type,
            error_code: it.error_code,
            message: it.message,
            recoverable: it.recoverable,
            stack_trace: it.stack_trace,
        }
    }
}

/// `error.recovered`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovered {
    /// The session.
    pub session: SessionId,
    /// The error, by the event that recorded it.
    pub error: EventId,
    /// How.
    pub method: String,
    /// Whether it worked.
    pub success: bool,
}

impl From<Recovered> for engine::Recovery {
    fn from(it: Recovered) -> Self {
        Self {
            session: it.session,
            error: it.error,
            method: it.method,
            success: it.success,
        }
    }
}

/// `output`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Produced {
    /// The session.
    pub session: SessionId,
    /// The text. Only its hash and its size are kept.
    pub text: String,
    /// What kind of output.
    #[serde(default = "words")]
    pub output_type: OutputType,
    /// Whether it asks for an action.
    #[serde(default)]
    pub contains_action: bool,
}

fn words() -> OutputType {
    OutputType::Text
}

impl From<Produced> for engine::Output {
    fn from(it: Produced) -> Self {
        Self {
            session: it.session,
            text: it.text,
            output_type: it.output_type,
            contains_action: it.contains_action,
        }
    }
}

/// `resolve`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// The session.
    pub session: SessionId,
    /// What it was asked to do.
    #[serde(default)]
    pub input: Option<String>,
    /// The actions it asks about; every one that is known when empty.
    #[serde(default)]
    pub actions: Vec<Asked>,
}

/// An action that an agent asks about.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The action.
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
}

impl From<Resolve> for engine::Resolve {
    fn from(it: Resolve) -> Self {
        let actions = it.actions.into_iter().map(|it| engine::ResolveAction {
            action: it.action,
            params: it.params.into(),
        });
        Self {
            session: it.session,
            input: it.input,
            actions: actions.collect(),
        }
    }
}
