//! Commands that the engine receives, and the effects that it returns.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::digest::Digest;
use crate::base::id::{ExecutionId, HeldRequestId, SessionId};
use crate::trace::event::{Draft, Payload};
pub use crate::trace::event::{FinalStatus, InputSource};

use super::extensions::consultation::Consultation;
use super::extensions::{CallId, CallResult, ExtensionCall};
use super::records::notice::StewardNotice;

mod agent_reply;
mod caller;
mod operator_action;
mod operator_reply;
mod report;

pub use agent_reply::*;
pub use caller::*;
pub use operator_action::*;
pub use operator_reply::*;
pub use report::*;

/// Number of a pending reply; one for each command whose caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyId(pub u64);

/// Input of the engine: an event or request. The engine never looks for events itself.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineCommand {
    /// An agent starts a session.
    StartSession(ReplyId, StartSession),
    /// An agent ends its session.
    EndSession(ReplyId, EndSession),
    /// An agent wants to run an action.
    RequestAction(ReplyId, ActionRequest),
    /// An agent has run an action.
    CompleteAction(ReplyId, ActionCompletion),
    /// An agent received input.
    Input(ReplyId, InputReport),
    /// An agent reports an error.
    ReportError(ReplyId, ErrorReport),
    /// An agent asks for context, or for a checkpoint by its name.
    RequestContext(ReplyId, ContextRequest),
    /// An agent reports something that is only recorded.
    Report(ReplyId, AgentReport),
    /// The caller of the pending reply is gone.
    CallerDisconnected(ReplyId),
    /// An operator decides about a held request.
    Decide(ReplyId, DecisionRequest),
    /// An operator does something other than deciding. Nothing passes by it.
    Operate(ReplyId, OperatorAction),
    /// The runtime found something about a session that is only recorded. Agents cannot send this command.
    RecordFinding(ReplyId, SessionId, Box<RuntimeFinding>),
    /// Every chain was verified and is intact.
    RecordIntact,
    /// The wall clock was set. Durations continue unchanged.
    ClockMoved(ClockStep),
    /// An agent answers gates that it may answer.
    Answer(ReplyId, AgentAnswer),
    /// An agent asks what it may do.
    Resolve(ReplyId, ResolveRequest),
    /// A client asks a question that changes nothing.
    Consult(ReplyId, Consultation),
    /// The deadline of a held request has passed.
    DeadlineReached(HeldRequestId),
    /// An extension answered, or failed to answer.
    ExtensionReturned(CallId, CallResult),
}

impl EngineCommand {
    /// Returns the session whose commands are handled one after the other.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::StartSession(_, start) => Some(&start.session),
            Self::EndSession(_, end) => Some(&end.session),
            Self::RequestAction(_, request) => Some(&request.session),
            Self::CompleteAction(_, completed) => Some(&completed.session),
            Self::Input(_, input) => Some(&input.session),
            Self::ReportError(_, error) => Some(&error.session),
            Self::RequestContext(_, request) => Some(&request.session),
            Self::Report(_, report) => Some(report.session()),
            Self::Answer(_, answer) => Some(&answer.session),
            Self::Resolve(_, resolve) => Some(&resolve.session),
            // Handlers of a suspended command ask these questions: they must not wait behind that command.
            Self::Consult(..)
            | Self::CallerDisconnected(_)
            | Self::Decide(..)
            | Self::Operate(..)
            // A finding is independent of the session's requests.
            | Self::RecordFinding(..)
            | Self::RecordIntact
            | Self::ClockMoved(_)
            | Self::DeadlineReached(_)
            | Self::ExtensionReturned(..) => None,
        }
    }

    /// Returns the session that the command names, if it names one.
    #[must_use]
    pub fn named_session(&self) -> Option<&SessionId> {
        match self {
            Self::Consult(_, consult) => Some(consult.session()),
            Self::RecordFinding(_, session, _) => Some(session),
            _ => self.session(),
        }
    }

    /// Returns the number of the reply that the caller waits for.
    pub(crate) fn reply_id(&self) -> Option<ReplyId> {
        match self {
            Self::StartSession(reply_id, _)
            | Self::EndSession(reply_id, _)
            | Self::RequestAction(reply_id, _)
            | Self::CompleteAction(reply_id, _)
            | Self::Input(reply_id, _)
            | Self::ReportError(reply_id, _)
            | Self::RequestContext(reply_id, _)
            | Self::Report(reply_id, _)
            | Self::Decide(reply_id, _)
            | Self::Operate(reply_id, _)
            | Self::RecordFinding(reply_id, ..)
            | Self::Answer(reply_id, _)
            | Self::Resolve(reply_id, _)
            | Self::Consult(reply_id, _) => Some(*reply_id),
            Self::CallerDisconnected(_)
            | Self::RecordIntact
            | Self::ClockMoved(_)
            | Self::DeadlineReached(_)
            | Self::ExtensionReturned(..) => None,
        }
    }
}

/// A request to start a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartSession {
    /// The session's identifier, unique in the store.
    pub session: SessionId,
    /// The kind of agent, such as `claude-code` or `support-bot`.
    pub agent: String,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// Purpose of the session, in the agent's words.
    pub intent: Option<String>,
    /// Owner of the session, if the agent connects through a server. Only this owner can resume the session.
    #[serde(default)]
    pub owner: Option<SessionOwner>,
    /// Reply that carries the injections caused by this call.
    #[serde(default)]
    pub delivery: DeliveryTime,
}

/// The owner of a session that was started through a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOwner {
    /// Digest of a secret that only the owner knows.
    pub secret: Digest,
    /// API key that the owner shows. It is not persisted.
    #[serde(skip)]
    pub api_key: Option<String>,
    /// Caller that started the session, if known. It is not persisted.
    #[serde(skip)]
    pub from: Option<Caller>,
}

impl std::fmt::Debug for SessionOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owner").finish_non_exhaustive()
    }
}

/// The reply that carries contexts and guidance to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryTime {
    /// The reply to the call itself.
    #[default]
    Now,
    /// A later reply: the caller cannot show the agent anything now.
    Later,
}

/// A request to end a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndSession {
    /// The session.
    pub session: SessionId,
    /// Final status.
    pub status: FinalStatus,
    /// Summary of the session, in the agent's words.
    pub summary: Option<String>,
    /// Reply that carries the injections caused by this call.
    #[serde(default)]
    pub delivery: DeliveryTime,
}

/// A request to run an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionRequest {
    /// The session.
    pub session: SessionId,
    /// The action's name.
    pub action: String,
    /// Its parameters.
    pub params: Value,
    /// Time at which the caller stops waiting, if it does.
    pub deadline: Option<Timestamp>,
    /// Resolution that the request relies on, if any.
    #[serde(default)]
    pub resolution: Option<String>,
    /// The agent's own identifier of this call, if it has one. Repeating the call does not run it twice.
    #[serde(default)]
    pub call: Option<String>,
    /// Reply that carries the injections caused by this call.
    #[serde(default)]
    pub delivery: DeliveryTime,
    /// End of the held request when its caller disconnects.
    #[serde(default)]
    pub on_disconnect: OnDisconnect,
}

/// End of a held request when the caller that waits for it disconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// The request stays held: the caller may come back for it.
    #[default]
    Kept,
    /// The request is withdrawn: its agent was denied when the connection broke.
    Denied,
}

impl OnDisconnect {
    /// Returns whether the request stays held.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        *self == Self::Kept
    }
}

/// Answers of an agent to gates that it may answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentAnswer {
    /// The session.
    pub session: SessionId,
    /// The held request.
    pub gate: HeldRequestId,
    /// Answers by checkpoint, then by question.
    pub answers: BTreeMap<String, BTreeMap<String, Value>>,
    /// Caller that may run the action once the request passes.
    #[serde(default)]
    pub release: ReleaseTo,
}

/// Caller that may run an action once the agent's answers let it pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseTo {
    /// The caller that answers: the reply names the run.
    #[default]
    Answer,
    /// The next caller that asks for an identical request: a permit waits for it. Hooks need this, because
    /// the process that answers is not the process that asks.
    Repeat,
}

/// A question of an agent: which actions may it run?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveRequest {
    /// The session.
    pub session: SessionId,
    /// Task that the agent was given. It is handled like any other input.
    pub input: Option<String>,
    /// Actions that the agent asks about. When empty, every action that is known by name.
    pub actions: Vec<ResolveAction>,
}

/// An action that an agent asks about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveAction {
    /// The action.
    pub action: String,
    /// Its parameters.
    pub params: Value,
}

/// The report that an action has run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionCompletion {
    /// The session.
    pub session: SessionId,
    /// The allowed run.
    pub execution: ExecutionId,
    /// Result of the run.
    pub result: Result<String, ActionError>,
    /// Reply that carries the injections caused by this call.
    #[serde(default)]
    pub delivery: DeliveryTime,
}

/// Error of a failed action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionError {
    /// Error code, for programs.
    pub code: String,
    /// Error message, for people.
    pub message: String,
}

/// Input that an agent received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputReport {
    /// The session.
    pub session: SessionId,
    /// The text. It is scanned for keywords, and only its hash is kept.
    pub text: String,
    /// Source of the text.
    pub source: InputSource,
    /// True when the agent sees the text as soon as it is asked about it: otherwise it could not answer.
    #[serde(default)]
    pub reaches_asked_agent: bool,
    /// True when the caller keeps the text from the agent until the session's start gate is passed.
    #[serde(default)]
    pub waits_for_start: bool,
    /// Time at which the caller stops waiting, if it does.
    #[serde(default)]
    pub deadline: Option<Timestamp>,
}

/// A request for context, or for a checkpoint by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRequest {
    /// The session.
    pub session: SessionId,
    /// Search text.
    pub query: Option<String>,
    /// Identifiers of wanted contexts.
    pub hints: Vec<String>,
    /// Interactive checkpoint to fire.
    pub checkpoint: Option<String>,
}

/// Finding of the runtime about a session.
#[derive(Clone, Debug, PartialEq)]
pub enum RuntimeFinding {
    /// Event for the session's chain.
    Event(Payload),
    /// Refused call about a thread. It is recorded at most once a minute, and answered with the denial.
    ThreadRefused {
        /// Text for the record: the thread and the reason.
        what: String,
        /// Answer for the agent.
        denied: DenialReply,
    },
    /// Turn of a conversation, with its message. Contexts that match the message are injected.
    Turn {
        /// Event for the session's chain.
        event: Payload,
        /// Text of the turn.
        message: String,
    },
}

/// Decision of an operator about a held request.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRequest {
    /// The held request.
    pub gate: HeldRequestId,
    /// The operator.
    pub operator: String,
    /// The decision method, such as `console`.
    pub method: String,
    /// Hash of the request that the operator saw. The decision does not count if it has changed.
    pub request_hash: Digest,
    /// Hash of the Atlases under which the operator saw the request.
    pub atlas_hash: Digest,
    /// Justification of a pass, if no question asks for it.
    pub justification: Option<String>,
    /// The decision, with its answers or reason.
    pub ruling: Ruling,
}

/// The decision of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// Pass, with these answers: one map per gate, in the order of `Held::gates`.
    Pass {
        /// Answers by question.
        answers: Vec<BTreeMap<String, Value>>,
    },
    /// Refuse the request.
    Deny {
        /// Reason; the agent sees it.
        reason: String,
    },
    /// Invalid answers, as the console found: one map per gate. They are recorded and counted, and have the
    /// consequence that their questions define. Nothing passes by them.
    Invalid {
        /// Answers by question; only the invalid ones.
        answers: Vec<BTreeMap<String, Value>>,
    },
    /// A wrong text where the operator had to confirm a decision. It is recorded, and nothing else.
    WrongConfirmation {
        /// The expected text.
        wanted: Confirmation,
        /// The typed text.
        typed_text: String,
    },
}

/// A text that an operator types to confirm a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The first characters of the request's hash.
    RequestHash,
    /// The action's name.
    Action,
    /// The last word that passes a request, line by line.
    PassWord,
    /// The last word that denies a request, line by line.
    DenyWord,
}

/// Output of the engine. The runtime executes effects in order; the engine executes none.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append to TRACE.
    Record(Draft),
    /// Append to the log of the record itself. The entry concerns no session, or an ended one.
    AppendToLog(Payload),
    /// Make this operator the current operator of the console.
    SetOperator(String),
    /// Store, replace or delete a piece of the engine's state, together with the records around it.
    Persist(StateChange),
    /// Reply to the caller, once everything before this effect is as durable as required.
    Reply(ReplyId, Reply),
    /// Wake the engine with `DeadlineReached` at this time.
    SetDeadline(HeldRequestId, Timestamp),
    /// Call an extension, and return its answer as `Returned`, always and in bounded time.
    CallExtension(ExtensionCall),
    /// Report a newly held request to the operators.
    RequestHeld(HeldRequestId),
    /// Report that a held request is no longer held.
    RequestSettled(SettledRequest),
    /// Send a notice that a steward asked for.
    Notify(StewardNotice),
}

/// A reply, to an agent or to an operator. The two have no variant in common, so neither gets the other's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// A reply to an agent.
    Agent(AgentReply),
    /// A reply to an operator.
    Operator(OperatorReply),
}

impl From<AgentReply> for Reply {
    fn from(reply: AgentReply) -> Self {
        Self::Agent(reply)
    }
}

impl From<OperatorReply> for Reply {
    fn from(reply: OperatorReply) -> Self {
        Self::Operator(reply)
    }
}

/// A change to one piece of the engine's persistent state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateChange {
    /// Kind of the piece.
    pub kind: StateKind,
    /// Key of the piece.
    pub key: String,
    /// Content as JSON; `None` deletes the piece.
    pub body: Option<String>,
}

/// Kinds of state that survive a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateKind {
    /// A session.
    Session,
    /// A held request.
    Held,
    /// A permit for an agent that had left.
    Permit,
    /// A counter.
    Counter,
    /// Usage of a limit.
    Usage,
    /// An overruled denial that no operator has acknowledged.
    Overruled,
    /// The fault of the record that an operator has acknowledged.
    Fault,
}

impl StateKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Session,
        Self::Held,
        Self::Permit,
        Self::Counter,
        Self::Usage,
        Self::Overruled,
        Self::Fault,
    ];

    /// Returns the kind's name in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Held => "held",
            Self::Permit => "permit",
            Self::Counter => "counter",
            Self::Usage => "usage",
            Self::Overruled => "overruled",
            Self::Fault => "fault",
        }
    }
}
