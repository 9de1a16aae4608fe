//! What the engine is told, and what it answers with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::held::Held;
use crate::atlas::document::{GuidanceBlock, RiskTier};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{ExecutionId, GateId, SessionId};
use crate::trace::event::Draft;

/// Who waits for a reply: one number per question asked of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// Something that happened. The engine is told; it never looks.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// An agent begins a session.
    StartSession(AskId, StartSession),
    /// An agent ends its session.
    EndSession(AskId, EndSession),
    /// An agent wants to run an action.
    RequestAction(AskId, ActionRequest),
    /// An agent has run an action.
    CompleteAction(AskId, ActionCompleted),
    /// An agent was given input.
    Input(AskId, Input),
    /// An agent reports an error.
    ReportError(AskId, ErrorReport),
    /// An agent asks for context, or for a checkpoint by its name.
    RequestContext(AskId, ContextRequest),
    /// Whoever asked is no longer there to hear the answer.
    AskerLeft(AskId),
    /// An operator decides about a held request.
    Decide(AskId, Decide),
    /// A held request's time is up.
    DeadlineReached(GateId),
}

/// An agent begins a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartSession {
    /// The session's identifier, unique for the store.
    pub session: SessionId,
    /// What kind of agent: `claude-code`, `support-bot`.
    pub agent: String,
    /// Its version.
    pub agent_version: Option<String>,
    /// What the session is for, in its own words.
    pub intent: Option<String>,
}

/// An agent ends its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndSession {
    /// The session.
    pub session: SessionId,
    /// How it ended.
    pub status: FinalStatus,
    /// What it did, in its own words.
    pub summary: Option<String>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalStatus {
    /// It did what it wanted.
    Completed,
    /// Something failed.
    Error,
    /// It took too long.
    Timeout,
    /// Somebody stopped it.
    Cancelled,
}

impl FinalStatus {
    /// The status's name in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

/// An agent wants to run an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionRequest {
    /// The session.
    pub session: SessionId,
    /// The action's name.
    pub action: String,
    /// Its parameters.
    pub params: Value,
    /// When the asker stops waiting, if it does.
    pub deadline: Option<Timestamp>,
}

/// An agent has run an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionCompleted {
    /// The session.
    pub session: SessionId,
    /// The run that was allowed.
    pub execution: ExecutionId,
    /// What came of it.
    pub result: Result<String, ActionError>,
}

/// How an action failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionError {
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
}

/// An agent was given input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The session.
    pub session: SessionId,
    /// The text. It is looked at, and only its hash is kept.
    pub text: String,
    /// Where it came from.
    pub source: InputSource,
}

/// Where input came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputSource {
    /// A person.
    User,
    /// The system.
    System,
    /// Another agent.
    OtherAgent,
}

impl InputSource {
    /// The source's name in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::System => "system",
            Self::OtherAgent => "other_agent",
        }
    }
}

/// An agent reports an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// The session.
    pub session: SessionId,
    /// What kind of error.
    pub error_type: String,
    /// For people.
    pub message: String,
    /// Whether work can go on.
    pub recoverable: bool,
}

/// An agent asks for context, or for a checkpoint by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRequest {
    /// The session.
    pub session: SessionId,
    /// What is looked for.
    pub query: Option<String>,
    /// Contexts by identifier.
    pub hints: Vec<String>,
    /// An interactive checkpoint to fire.
    pub checkpoint: Option<String>,
}

/// An operator decides about a held request.
#[derive(Clone, Debug, PartialEq)]
pub struct Decide {
    /// Which.
    pub gate: GateId,
    /// Who decides.
    pub operator: String,
    /// How: `console`.
    pub method: String,
    /// The request the operator saw. Another one by now: the decision does not count.
    pub request_hash: Digest,
    /// The Atlases the operator saw it under.
    pub atlas_hash: Digest,
    /// What was decided.
    pub ruling: Ruling,
}

/// What an operator decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// Let it pass, with these answers: one map per gate, in the order of `Held::gates`.
    Pass {
        /// Answers by question.
        answers: Vec<BTreeMap<String, Value>>,
    },
    /// Refuse it.
    Deny {
        /// Why; the agent is told.
        reason: String,
    },
}

/// What happens because of a command, in order. The runtime does it; the engine does not.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Append to TRACE.
    Record(Draft),
    /// Keep, replace or drop a piece of the engine's state, together with the records around it.
    Persist(StateChange),
    /// Tell whoever asked, once everything before this is as durable as it must be.
    Reply(AskId, Reply),
    /// Wake the engine with `DeadlineReached` at that time.
    SetDeadline(GateId, Timestamp),
    /// A request is held: people may want to know.
    Held(GateId),
    /// A held request is no longer held.
    Settled(Decided),
}

/// A piece of the engine's state, as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct StateChange {
    /// What kind of piece.
    pub kind: StateKind,
    /// Which.
    pub key: String,
    /// Its content; `None` drops it.
    pub body: Option<Value>,
}

/// The kinds of state that survive a restart.
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
    /// What was used of a limit.
    Usage,
}

impl StateKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Session,
        Self::Held,
        Self::Permit,
        Self::Counter,
        Self::Usage,
    ];

    /// The kind's name in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Held => "held",
            Self::Permit => "permit",
            Self::Counter => "counter",
            Self::Usage => "usage",
        }
    }
}

/// What an asker is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The session is open.
    Started(SessionStarted),
    /// The session is closed.
    Ended,
    /// Input, an error or a request for context was taken in.
    Accepted(Accepted),
    /// The action may run, once.
    Allowed(Allowed),
    /// It may not.
    Denied(Denied),
    /// The result was noted.
    Completed,
    /// The operator's decision was taken.
    Decided(Decided),
    /// The operator's answers break rules; the request is still held.
    Invalid(InvalidAnswers),
    /// The operator's decision was not taken.
    Refused(Refused),
}

/// A session is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// Gates that hold its actions until an operator passes them.
    pub held: Vec<GateId>,
    /// Texts handed to the agent.
    pub given: Given,
}

/// Something beside an action was taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Texts handed to the agent.
    pub given: Given,
}

/// What an agent is given along with an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Contexts, by identifier.
    pub contexts: Vec<GivenContext>,
    /// Guidance.
    pub guidance: Vec<GuidanceBlock>,
}

/// A context handed to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenContext {
    /// Its identifier.
    pub context_id: String,
    /// Its text.
    pub content: String,
}

/// An action may run, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// This run; named again when it is completed.
    pub execution: ExecutionId,
    /// Texts handed to the agent.
    pub given: Given,
}

/// An action may not run, or a request cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Why, for programs.
    pub code: DenyCode,
    /// Why, for people.
    pub reason: String,
    /// What can be done about it.
    pub help: Option<String>,
    /// The gate it was held at, if it was.
    pub gate: Option<GateId>,
}

/// Why something is denied, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenyCode {
    /// The session does not exist, or has ended, or exists already.
    Session,
    /// The request itself cannot be read.
    BadRequest,
    /// No Atlas knows the action.
    UnknownAction,
    /// A policy denies it.
    Policy,
    /// A passed gate denies it.
    DeniedAction,
    /// A capability is locked and no gate unlocks it.
    CapabilityLocked,
    /// The parameters break the action's schema.
    Parameters,
    /// A rate limit or budget is used up.
    Limit,
    /// An operator refused.
    Refused,
    /// An answer broke a rule that says so.
    InvalidAnswer,
    /// Nobody answered in time.
    Expired,
    /// The asker left, or its session ended.
    Withdrawn,
    /// The Atlases changed while it was held.
    Changed,
    /// Too much is held already.
    Overload,
    /// The console cannot record, so it cannot allow.
    Unavailable,
}

/// How a held request ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Which.
    pub gate: GateId,
    /// When.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
    /// The operator, where one decided.
    pub by: Option<String>,
    /// The reason or justification.
    pub detail: String,
    /// The session that asked.
    pub session: SessionId,
    /// The agent that asked.
    pub agent: String,
    /// The action asked for, or `session_start`.
    pub action: String,
    /// How risky it was.
    pub tier: RiskTier,
}

/// How a held request can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// An operator let it pass.
    Passed,
    /// An operator refused it.
    Denied,
    /// Nobody answered.
    Expired,
    /// The asker took it back.
    Withdrawn,
    /// The Atlases changed under it.
    Voided,
}

impl Outcome {
    /// The outcome's name in records and on the screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Voided => "voided",
        }
    }
}

/// Answers that break rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvalidAnswers {
    /// The request as it is held now, with one more invalid attempt.
    pub held: Box<Held>,
    /// What is wrong: gate, question, rules.
    pub problems: Vec<Problem>,
}

/// What is wrong with one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Index of the gate in `Held::gates`.
    pub gate: usize,
    /// The question.
    pub question: String,
    /// The rules that are not kept.
    pub rules: Vec<String>,
}

/// Why an operator's decision was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// It is not held.
    #[error("{0} is not held")]
    NotHeld(GateId),
    /// It ended before this decision came.
    #[error("{} was {} at {}{}", .0.gate, .0.outcome.as_str(), .0.at.time_of_day(),
        .0.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default())]
    AlreadySettled(Box<Decided>),
    /// It is not the request the operator saw.
    #[error("the request changed since it was shown; look at it again")]
    RequestChanged,
    /// The Atlases it was judged under are no longer the loaded ones.
    #[error("the Atlas changed since this was asked; it can only be denied")]
    AtlasChanged,
    /// A refusal without a reason.
    #[error("a reason is needed to deny a request of this tier")]
    ReasonMissing,
    /// The record could not be made durable.
    #[error("it could not be recorded, so it does not count: {0}")]
    Unavailable(String),
}
