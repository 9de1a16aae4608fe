//! Replies to agents. No agent reply can be used to decide.

use serde::{Deserialize, Serialize};

use super::InvalidAnswers;
use crate::atlas::document::GuidanceBlock;
use crate::atlas::model::CompiledQuestion;
use crate::base::clock::Timestamp;
use crate::base::id::{EventId, ExecutionId, HeldRequestId, SessionId, SpanId, TraceId};
use crate::engine::extensions::consultation::ConsultationAnswer;
use crate::engine::requests::resolution::Resolution;
use crate::trace::event::InjectTrigger;

/// A reply to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentReply {
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
    /// The agent's answers break rules. The request is still held.
    Invalid(InvalidAnswers),
    /// The actions that the agent may run.
    Resolved(Box<Resolution>),
    /// The answer to a question that changes nothing.
    Consulted(ConsultationAnswer),
    /// The result was recorded. It carries injections for the agent.
    Completed(Injected),
    /// The agent's report was recorded.
    Noted(ReportReceipt),
}

impl AgentReply {
    /// Returns the contexts and guidance that the reply carries.
    pub(crate) fn injected_mut(&mut self) -> Option<&mut Injected> {
        match self {
            Self::Started(started) => Some(&mut started.injected),
            Self::Ended(injected) | Self::Completed(injected) => Some(injected),
            Self::Accepted(accepted) => Some(&mut accepted.injected),
            Self::Allowed(allowed) => Some(&mut allowed.injected),
            Self::Denied(_)
            | Self::Asked(_)
            | Self::Invalid(_)
            | Self::Resolved(_)
            | Self::Consulted(_)
            | Self::Noted(_) => None,
        }
    }
}

/// Reply to a started session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartedSession {
    /// Gates that hold the session's actions until an operator passes them.
    pub held: Vec<HeldRequestId>,
    /// Gates that the agent may answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<AgentQuestions>,
    /// Contexts and guidance for the agent.
    #[serde(rename = "given")]
    pub injected: Injected,
    /// True when the record describes how this session's agent is wrapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapper_reported: bool,
}

/// Gates of a held request that the agent may answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentQuestions {
    /// The held request.
    pub gate: HeldRequestId,
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
    #[serde(rename = "given")]
    pub injected: Injected,
    /// The input as an extension rewrote it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_input: Option<String>,
    /// The event that recorded an error. A recovery report names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventId>,
    /// Gates that block the session. Until they are passed, the session gets no contexts or guidance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldRequestId>,
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
    #[serde(rename = "given", default, skip_serializing_if = "Injected::is_empty")]
    pub injected: Injected,
    /// Gates that block the session. Until they are passed, the session gets no contexts or guidance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldRequestId>,
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
    #[serde(rename = "not_given", default, skip_serializing_if = "Vec::is_empty")]
    pub refused_contexts: Vec<RefusedContext>,
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
            && self.refused_contexts.is_empty()
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
    #[serde(rename = "given")]
    pub injected: Injected,
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
    pub gate: Option<HeldRequestId>,
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
