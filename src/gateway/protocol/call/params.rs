//! Parameters of each call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::clock::Timestamp;
use crate::base::id::{EventId, ExecutionId, HeldRequestId, SessionId};
use crate::engine::command::{self as engine, FinalStatus, InputSource};
use crate::memento::{ExternalName, Turn};
use crate::runtime::{SessionTurn, ThreadHandOver};
use crate::trace::event::{OutputType, UsageOutcome};

/// `session.start`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartParams {
    /// Identifier of the session. If it is missing, the console creates one.
    #[serde(default)]
    pub session: Option<SessionId>,
    /// Kind of agent.
    pub agent: String,
    /// Version of the agent.
    #[serde(default)]
    pub version: Option<String>,
    /// Purpose of the session, in the agent's own words.
    #[serde(default)]
    pub intent: Option<String>,
    /// Key that the agent presents, if an Atlas requires one.
    #[serde(default)]
    pub api_key: Option<String>,
    /// The answer that delivers pending contexts to the agent.
    #[serde(rename = "given", default)]
    pub delivery: engine::DeliveryTime,
}

/// `session.end`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndParams {
    /// The session.
    pub session: SessionId,
    /// Final status.
    #[serde(default = "completed")]
    pub status: FinalStatus,
    /// Summary of the session.
    #[serde(default)]
    pub summary: Option<String>,
    /// The answer that delivers the last contexts to the agent.
    #[serde(rename = "given", default)]
    pub delivery: engine::DeliveryTime,
}

fn completed() -> FinalStatus {
    FinalStatus::Completed
}

impl From<EndParams> for engine::EndSession {
    fn from(call: EndParams) -> Self {
        Self {
            session: call.session,
            status: call.status,
            summary: call.summary,
            delivery: call.delivery,
        }
    }
}

/// `input`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputParams {
    /// The session.
    pub session: SessionId,
    /// The text. Only its hash is kept.
    pub text: String,
    /// Source of the text.
    #[serde(default = "from_user")]
    pub source: InputSource,
    /// Tells whether the agent receives the text as soon as it is asked a question about it.
    #[serde(default)]
    pub reaches_asked_agent: bool,
    /// Tells whether the answer waits until the session's start gate is passed.
    #[serde(default)]
    pub waits_for_start: bool,
    /// Time at which the caller stops waiting. Input that waits until then is denied.
    #[serde(default, deserialize_with = "Timestamp::deserialize_rfc3339")]
    pub deadline: Option<Timestamp>,
}

fn from_user() -> InputSource {
    InputSource::User
}

impl From<InputParams> for engine::InputReport {
    fn from(call: InputParams) -> Self {
        Self {
            session: call.session,
            text: call.text,
            source: call.source,
            reaches_asked_agent: call.reaches_asked_agent,
            waits_for_start: call.waits_for_start,
            deadline: call.deadline,
        }
    }
}

/// `action.request`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestParams {
    /// The session.
    pub session: SessionId,
    /// The action's name.
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Time at which the caller stops waiting. A request that is undecided by then is denied.
    #[serde(default, deserialize_with = "Timestamp::deserialize_rfc3339")]
    pub deadline: Option<Timestamp>,
    /// Resolution that the request relies on.
    #[serde(default)]
    pub resolution: Option<String>,
    /// The agent's name for the run, to report its result later. A repeated request with an equal reference
    /// joins the first one while that waits: both are one call.
    #[serde(default)]
    pub reference: Option<ExternalName>,
    /// Identifier of this call, where identical calls share a reference.
    #[serde(default)]
    pub call: Option<ExternalName>,
    /// The answer that delivers contexts caused by this request.
    #[serde(rename = "given", default)]
    pub delivery: engine::DeliveryTime,
    /// End of the held request when its caller disconnects.
    #[serde(default)]
    pub on_disconnect: engine::OnDisconnect,
}

impl RequestParams {
    /// Returns the identifier of this call, if it has one.
    pub(in crate::gateway) fn call_id(&self) -> Option<String> {
        let id = self.call.as_ref().or(self.reference.as_ref());
        id.map(ToString::to_string)
    }
}

impl From<RequestParams> for engine::ActionRequest {
    fn from(call: RequestParams) -> Self {
        Self {
            call: call.call_id(),
            session: call.session,
            action: call.action,
            params: call.params.into(),
            deadline: call.deadline,
            resolution: call.resolution,
            delivery: call.delivery,
            on_disconnect: call.on_disconnect,
        }
    }
}

/// A run, named in one of two ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunName {
    /// Name from the console.
    Execution(ExecutionId),
    /// Name from the agent's request.
    Reference(ExternalName),
}

/// `action.completed`: of an `execution` or a `reference`, with a `result` or with an `error`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawCompletedParams")]
pub struct CompletedParams {
    /// The session.
    pub session: SessionId,
    /// The run that was allowed.
    pub run: RunName,
    /// Outcome of the run.
    pub result: Result<String, engine::ActionError>,
    /// The answer that delivers contexts caused by this result.
    pub delivery: engine::DeliveryTime,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCompletedParams {
    session: SessionId,
    execution: Option<ExecutionId>,
    reference: Option<ExternalName>,
    result: Option<String>,
    error: Option<engine::ActionError>,
    #[serde(rename = "given", default)]
    delivery: engine::DeliveryTime,
}

impl TryFrom<RawCompletedParams> for CompletedParams {
    type Error = &'static str;

    fn try_from(call: RawCompletedParams) -> Result<Self, Self::Error> {
        let result = match (call.result, call.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(String::new()),
            (Some(_), Some(_)) => return Err("send either `result` or `error`, not both"),
        };
        let run = match (call.execution, call.reference) {
            (Some(execution), None) => RunName::Execution(execution),
            (None, Some(reference)) => RunName::Reference(reference),
            (None, None) | (Some(_), Some(_)) => {
                return Err("send either `execution` or `reference`");
            }
        };
        Ok(Self {
            session: call.session,
            run,
            result,
            delivery: call.delivery,
        })
    }
}

/// `context.request`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextParams {
    /// The session.
    pub session: SessionId,
    /// Search text.
    #[serde(default)]
    pub query: Option<String>,
    /// Identifiers of contexts.
    #[serde(default)]
    pub hints: Vec<String>,
    /// Interactive checkpoint to fire.
    #[serde(default)]
    pub checkpoint: Option<String>,
}

impl From<ContextParams> for engine::ContextRequest {
    fn from(call: ContextParams) -> Self {
        Self {
            session: call.session,
            query: call.query,
            hints: call.hints,
            checkpoint: call.checkpoint,
        }
    }
}

/// `context.feedback`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackParams {
    /// The session.
    pub session: SessionId,
    /// The context.
    pub context_id: String,
    /// Tells whether the context helped.
    pub helpful: bool,
    /// Reason of the agent.
    #[serde(default)]
    pub reason: Option<String>,
    /// Use that the agent made of the context.
    #[serde(default)]
    pub usage_outcome: Option<UsageOutcome>,
}

impl From<FeedbackParams> for engine::Feedback {
    fn from(call: FeedbackParams) -> Self {
        Self {
            session: call.session,
            context_id: call.context_id,
            helpful: call.helpful,
            reason: call.reason,
            usage_outcome: call.usage_outcome,
        }
    }
}

/// `turn`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnParams {
    /// The session.
    pub session: SessionId,
    /// Conversation; without a name, the session's own thread.
    #[serde(default)]
    pub thread: Option<ExternalName>,
    /// The turn.
    pub turn: Turn,
}

impl From<TurnParams> for SessionTurn {
    fn from(call: TurnParams) -> Self {
        Self {
            session: call.session,
            thread: call.thread,
            turn: call.turn,
        }
    }
}

/// `thread.hand_over`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandOverParams {
    /// Session that owns the thread.
    pub session: SessionId,
    /// Name of the thread; without a name, the session's own thread.
    #[serde(default)]
    pub thread: Option<ExternalName>,
    /// Session that may continue the thread.
    pub to: SessionId,
}

impl From<HandOverParams> for ThreadHandOver {
    fn from(call: HandOverParams) -> Self {
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
pub struct AnswerParams {
    /// The session.
    pub session: SessionId,
    /// The held request.
    pub gate: HeldRequestId,
    /// Answers by checkpoint, then by question.
    pub answers: BTreeMap<String, BTreeMap<String, Value>>,
    /// Caller that may run the action once it passes: `answer` or `repeat`.
    #[serde(default)]
    pub release: engine::ReleaseTo,
}

impl From<AnswerParams> for engine::AgentAnswer {
    fn from(call: AnswerParams) -> Self {
        Self {
            session: call.session,
            gate: call.gate,
            answers: call.answers,
            release: call.release,
        }
    }
}

/// `error`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorParams {
    /// The session.
    pub session: SessionId,
    /// Kind of error.
    pub error_type: String,
    /// Code for programs.
    #[serde(default)]
    pub error_code: Option<String>,
    /// Message for people.
    pub message: String,
    /// Tells whether the agent can continue.
    #[serde(default)]
    pub recoverable: bool,
    /// Stack trace.
    #[serde(default)]
    pub stack_trace: Option<String>,
}

impl From<ErrorParams> for engine::ErrorReport {
    fn from(call: ErrorParams) -> Self {
        Self {
            session: call.session,
            error_type: call.error_type,
            error_code: call.error_code,
            message: call.message,
            recoverable: call.recoverable,
            stack_trace: call.stack_trace,
        }
    }
}

/// `error.recovered`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryParams {
    /// The session.
    pub session: SessionId,
    /// The error, by the event that recorded it.
    pub error: EventId,
    /// Method of the recovery.
    pub method: String,
    /// Tells whether the recovery worked.
    pub success: bool,
}

impl From<RecoveryParams> for engine::Recovery {
    fn from(call: RecoveryParams) -> Self {
        Self {
            session: call.session,
            error: call.error,
            method: call.method,
            success: call.success,
        }
    }
}

/// `output`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputParams {
    /// The session.
    pub session: SessionId,
    /// The text. Only its hash and its size are kept.
    pub text: String,
    /// Kind of output.
    #[serde(default = "words")]
    pub output_type: OutputType,
    /// Tells whether the output asks for an action.
    #[serde(default)]
    pub contains_action: bool,
}

fn words() -> OutputType {
    OutputType::Text
}

impl From<OutputParams> for engine::OutputReport {
    fn from(call: OutputParams) -> Self {
        Self {
            session: call.session,
            text: call.text,
            output_type: call.output_type,
            contains_action: call.contains_action,
        }
    }
}

/// `resolve`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolveParams {
    /// The session.
    pub session: SessionId,
    /// Task of the session, as the agent was given it.
    #[serde(default)]
    pub input: Option<String>,
    /// Actions to resolve; if empty, all known actions.
    #[serde(default)]
    pub actions: Vec<ResolvedAction>,
}

/// An action that an agent asks about in `resolve`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolvedAction {
    /// The action.
    pub action: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Map<String, Value>,
}

impl From<ResolveParams> for engine::ResolveRequest {
    fn from(call: ResolveParams) -> Self {
        let actions = call
            .actions
            .into_iter()
            .map(|action| engine::ResolveAction {
                action: action.action,
                params: action.params.into(),
            });
        Self {
            session: call.session,
            input: call.input,
            actions: actions.collect(),
        }
    }
}
