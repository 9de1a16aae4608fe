//! Replies to callers.

use serde::{Deserialize, Serialize};

use crate::atlas::document::{GuidanceBlock, RiskTier};
use crate::atlas::model::CompiledQuestion;
use crate::base::clock::Timestamp;
use crate::base::id::{EventId, ExecutionId, GateId, SessionId, SpanId, TraceId};
use crate::engine::consultation::ConsultationAnswer;
use crate::engine::held::Held;
use crate::engine::resolution::Resolution;
use crate::trace::event::InjectTrigger;

/// A reply to a caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The session is open.
    Started(StartedSession),
    /// The session is closed.
    Ended(Injected),
    /// An input, error or context request was accepted.
    Accepted(AcceptedEvent),
    /// The action may run, once.
    Allowed(RunPermission),
    /// The action may not run.
    Denied(DenialReply),
    /// The request is held, and the agent may answer some of its gates.
    Asked(AgentQuestions),
    /// The actions that the agent may run.
    Resolved(Box<Resolution>),
    /// The answer to a question that changes nothing.
    Consulted(ConsultationAnswer),
    /// The result was recorded. It carries injections for the agent.
    Completed(Injected),
    /// The agent's report was recorded.
    Noted(ReportReceipt),
    /// The operator's decision was accepted.
    Decided(SettledRequest),
    /// The operator's approval was accepted. It is the first of two: the request is still held.
    Approved(Box<Held>),
    /// An operator action other than a decision was recorded.
    Acted,
    /// The operator's answers break rules. The request is still held.
    Invalid(InvalidAnswers),
    /// The operator's decision was rejected.
    Refused(DecisionRefusal),
}

impl Reply {
    /// Returns the contexts and guidance that the reply carries.
    pub(crate) fn injected_mut(&mut self) -> Option<&mut Injected> {
        match self {
            Self::Started(started) => Some(&mut started.given),
            Self::Ended(given) | Self::Completed(given) => Some(given),
            Self::Accepted(accepted) => Some(&mut accepted.given),
            Self::Allowed(allowed) => Some(&mut allowed.given),
            Self::Denied(_)
            | Self::Asked(_)
            | Self::Resolved(_)
            | Self::Consulted(_)
            | Self::Noted(_)
            | Self::Decided(_)
            | Self::Approved(_)
            | Self::Acted
            | Self::Invalid(_)
            | Self::Refused(_) => None,
        }
    }
}

/// Reply to a started session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartedSession {
    /// Gates that hold the session's actions until an operator passes them.
    pub held: Vec<GateId>,
    /// Gates that the agent may answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AgentQuestions>,
    /// Contexts and guidance for the agent.
    pub given: Injected,
    /// True when the record describes how this session's agent is wrapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapper_reported: bool,
}

/// Gates of a held request that the agent may answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentQuestions {
    /// The held request.
    pub gate: GateId,
    /// The gates that the agent may answer.
    pub gates: Vec<AgentGate>,
    /// Time at which the request is denied if it is not answered.
    pub deadline: Timestamp,
    /// True when an operator has to answer as well.
    pub operator: bool,
}

/// A gate that an agent may answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentGate {
    /// The Atlas of the checkpoint. If two gates of a request have the same name, each is answered under
    /// `atlas_id/checkpoint_id`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub atlas_id: String,
    /// The checkpoint.
    pub checkpoint_id: String,
    /// Questions to answer.
    pub questions: Vec<CompiledQuestion>,
    /// The steward's guidance.
    pub guidance: Option<GuidanceBlock>,
}

/// Reply to an accepted input, error or context request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedEvent {
    /// Contexts and guidance for the agent.
    pub given: Injected,
    /// The input as an extension rewrote it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_input: Option<String>,
    /// The event that recorded an error. A recovery report names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventId>,
    /// Gates that block the session. Until they are passed, the session gets no contexts or guidance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<GateId>,
    /// Time until which an identical request runs, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permit_until: Option<Timestamp>,
    /// True when an operator also has to answer at the same gate before the request can run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_operator: bool,
}

/// Reply to a recorded report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportReceipt {
    /// Problems of the report: for a wrapper, every failed test.
    pub failures: Vec<String>,
    /// Contexts and guidance that the message of a turn matched.
    #[serde(default, skip_serializing_if = "Injected::is_empty")]
    pub given: Injected,
    /// Gates that block the session. Until they are passed, the session gets no contexts or guidance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<GateId>,
}

/// Contexts and guidance that a reply carries to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injected {
    /// Contexts, with their identifiers.
    pub contexts: Vec<InjectedContext>,
    /// Guidance, highest weight first.
    pub guidance: Vec<InjectedGuidance>,
    /// Checkpoints whose guidance is no longer in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<String>,
    /// Contexts that the agent asked for by name and did not get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_given: Vec<RefusedContext>,
    /// Answers at a gate that break a rule and were accepted anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Data for the `context_injected` records. Replies to agents never contain it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<InjectionRecord>,
}

/// Data of a `context_injected` record, kept until the contexts are delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectionRecord {
    /// The event, while it can still be retracted.
    #[serde(skip)]
    pub event: Option<EventId>,
    /// The session.
    pub session: SessionId,
    /// The trace that the contexts belong to.
    pub trace_id: TraceId,
    /// The span of the record.
    pub span_id: SpanId,
    /// The parent span.
    pub parent: Option<SpanId>,
    /// Identifiers of the contexts.
    pub context_ids: Vec<String>,
    /// Atlases of the contexts.
    pub atlas_ids: Vec<String>,
    /// Total size of the contexts in bytes.
    pub total_size_bytes: u64,
    /// The recorded reason.
    pub trigger: InjectTrigger,
    /// Type of the checkpoint that injects the contexts.
    pub checkpoint_type: Option<String>,
    /// True when all contexts came from a cache.
    pub cache_hit: bool,
}

/// A context that an agent asked for by name and did not get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedContext {
    /// The context, as the agent named it.
    pub context_id: String,
    /// Shown to the agent.
    pub reason: String,
}

impl Injected {
    /// Returns whether there is nothing for the agent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
            && self.guidance.is_empty()
            && self.withdrawn.is_empty()
            && self.not_given.is_empty()
            && self.warnings.is_empty()
    }
}

/// Guidance for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectedGuidance {
    /// The checkpoint that gives the guidance.
    pub checkpoint_id: String,
    /// The guidance.
    pub block: GuidanceBlock,
}

/// A context for an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectedContext {
    /// The context's identifier.
    pub context_id: String,
    /// The context's text.
    pub content: String,
}

/// Permission to run an action once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPermission {
    /// Identifier of the run; the report of its completion names it.
    pub execution: ExecutionId,
    /// Contexts and guidance for the agent.
    pub given: Injected,
    /// The operator who let the request pass, if one had to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
}

/// A denied action, or a rejected request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialReply {
    /// Reason, for programs.
    pub code: DenyCode,
    /// Reason, for people.
    pub reason: String,
    /// Possible remedy.
    pub help: Option<String>,
    /// The gate that held the request, if it was held.
    pub gate: Option<GateId>,
}

/// Reason of a denial, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenyCode {
    /// The session does not exist, or belongs to another agent.
    Session,
    /// The session has ended.
    Ended,
    /// The thread belongs to another session.
    Thread,
    /// An Atlas requires a known API key, and the agent showed none.
    Unauthorized,
    /// The request is malformed.
    BadRequest,
    /// No Atlas knows the action.
    UnknownAction,
    /// A policy denies the action.
    Policy,
    /// An extension denies the action, or could not be asked.
    Extension,
    /// The resolution that the request relies on does not cover the action.
    Resolution,
    /// A passed gate denies the action.
    DeniedAction,
    /// A capability is locked and no gate unlocks it.
    CapabilityLocked,
    /// The parameters break the action's schema.
    Parameters,
    /// A rate limit or budget is used up.
    Limit,
    /// An operator refused.
    Refused,
    /// An answer broke a rule whose consequence is a denial.
    InvalidAnswer,
    /// The request was not answered in time.
    Expired,
    /// The caller left, or its session ended.
    Withdrawn,
    /// The Atlases changed while the request was held.
    Changed,
    /// Too many requests are held.
    Overload,
    /// The console cannot record, so it cannot allow anything.
    Unavailable,
}

/// The outcome of a held request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledRequest {
    /// The held request.
    pub gate: GateId,
    /// Time of the outcome.
    pub at: Timestamp,
    /// The outcome.
    pub outcome: HeldOutcome,
    /// The operator, if one decided.
    pub by: Option<String>,
    /// The reason or justification.
    pub detail: String,
    /// The session that made the request.
    pub session: SessionId,
    /// The agent that made the request.
    pub agent: String,
    /// The requested action, or `session_start`.
    pub action: String,
    /// Risk tier of the request.
    pub tier: RiskTier,
}

/// Possible outcomes of a held request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldOutcome {
    /// An operator passed the request.
    Passed,
    /// An operator refused the request.
    Denied,
    /// The request was not answered in time.
    Expired,
    /// The caller withdrew the request.
    Withdrawn,
    /// The Atlases changed while the request was held.
    Voided,
}

impl HeldOutcome {
    /// Returns the outcome's name in records and on the screen.
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
    /// The problems: gate, question, rules.
    pub problems: Vec<AnswerProblem>,
}

/// A problem with one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerProblem {
    /// Index of the gate in `Held::gates`.
    pub gate: usize,
    /// The question.
    pub question: String,
    /// The broken rules.
    pub rules: Vec<String>,
}

/// Reason why an operator's decision was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum DecisionRefusal {
    /// The request is not held.
    #[error("{0} is not held")]
    NotHeld(GateId),
    /// The request ended before this decision arrived.
    #[error("{} was {} at {}{}", .0.gate, .0.outcome.as_str(), .0.at.time_of_day(),
        .0.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default())]
    AlreadySettled(Box<SettledRequest>),
    /// The request differs from the one that the operator saw.
    #[error("the request changed since you opened it; review it again")]
    RequestChanged,
    /// The Atlases under which the request was judged are no longer loaded.
    #[error("the Atlas changed since this request; you can only deny it")]
    AtlasChanged,
    /// A denial without a reason.
    #[error("enter a reason to deny a request of this risk")]
    ReasonMissing,
    /// The operator already gave the first approval; another operator has to give the second.
    #[error("{0} approved (1 of 2); a second operator must approve")]
    SameOperator(String),
    /// The requester of an action can never approve it.
    #[error("`{0}` made this request and cannot approve it")]
    Requester(String),
    /// The claim differs from the one that the operator saw.
    #[error("{}", .0.as_ref().map_or_else(|| "the claim was released".to_owned(), |by| format!("{by} claimed the request")))]
    ClaimChanged(Option<String>),
    /// There is nothing of that kind to acknowledge.
    #[error("nothing to acknowledge")]
    NothingToAcknowledge,
    /// The operator name is not valid.
    #[error("{0}")]
    BadName(String),
    /// The record could not be made durable.
    #[error("could not be recorded, so it has no effect: {0}")]
    Unavailable(String),
}
