//! What askers are told.

use serde::{Deserialize, Serialize};

use crate::atlas::compiled::Question;
use crate::atlas::document::{GuidanceBlock, RiskTier};
use crate::base::clock::Timestamp;
use crate::base::id::{EventId, ExecutionId, GateId, SessionId, SpanId, TraceId};
use crate::engine::consult::Consulted;
use crate::engine::held::Held;
use crate::engine::resolve::Resolution;
use crate::trace::event::InjectTrigger;

/// What an asker is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The session is open.
    Started(SessionStarted),
    /// The session is closed.
    Ended(Given),
    /// Input, an error or a request for context was taken in.
    Accepted(Accepted),
    /// The action may run, once.
    Allowed(Allowed),
    /// It may not.
    Denied(Denied),
    /// It is held, and some of what is asked is the agent's to answer.
    Asked(Asked),
    /// What the agent may do.
    Resolved(Box<Resolution>),
    /// The answer to a question that changes nothing.
    Consulted(Consulted),
    /// The result was noted. What the agent is given along with that.
    Completed(Given),
    /// What the agent told was noted.
    Noted(Noted),
    /// The operator's decision was taken.
    Decided(Decided),
    /// The operator's approval was taken. It is the first of two: the request is still held.
    Approved(Box<Held>),
    /// What an operator did beside deciding was recorded.
    Acted,
    /// The operator's answers break rules; the request is still held.
    Invalid(InvalidAnswers),
    /// The operator's decision was not taken.
    Refused(Refused),
}

impl Reply {
    /// Things handed to the agent with it.
    pub(crate) fn given_mut(&mut self) -> Option<&mut Given> {
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

/// A session is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// Gates that hold its actions until an operator passes them.
    pub held: Vec<GateId>,
    /// What is the agent's to answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// Texts handed to the agent.
    pub given: Given,
    /// Tells whether the record has how this session's agent is wrapped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapper_reported: bool,
}

/// What an agent is asked itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The held request.
    pub gate: GateId,
    /// The gates that are the agent's to answer.
    pub gates: Vec<AskedGate>,
    /// When silence denies it.
    pub deadline: Timestamp,
    /// Whether an operator has to answer as well.
    pub operator: bool,
}

/// A gate that is an agent's to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskedGate {
    /// The Atlas of the checkpoint. Where two gates of a request have one name, each is answered under
    /// `atlas_id/checkpoint_id`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub atlas_id: String,
    /// The checkpoint.
    pub checkpoint_id: String,
    /// What has to be answered.
    pub questions: Vec<Question>,
    /// What the steward says about it.
    pub guidance: Option<GuidanceBlock>,
}

/// Something beside an action was taken in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Texts handed to the agent.
    pub given: Given,
    /// The input as it should read, where an extension changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_input: Option<String>,
    /// The event that recorded it, where it was an error: who recovers from it names that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventId>,
    /// Gates that stand before the session: until they are passed it is handed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<GateId>,
    /// Time until which the identical request may be asked for again and then runs, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permit_until: Option<Timestamp>,
    /// Tells whether an operator has to answer at the same gate before the request can run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_operator: bool,
}

/// What an agent told was noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// What is wrong with it: of a wrapper, every test that failed.
    pub failures: Vec<String>,
    /// Texts handed to the agent: those that the message of a turn called for.
    #[serde(default, skip_serializing_if = "Given::is_empty")]
    pub given: Given,
    /// Gates that stand before the session: until they are passed it is handed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<GateId>,
}

/// What an agent is given along with an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Contexts, by identifier.
    pub contexts: Vec<GivenContext>,
    /// Guidance, the weightiest first.
    pub guidance: Vec<GivenGuidance>,
    /// Checkpoints whose guidance no longer holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<String>,
    /// Contexts that the agent asked for by name and was not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_given: Vec<NotGiven>,
    /// Answers at a gate that break a rule and were taken all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Records of the contexts, made when they are handed over. No answer to an agent has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<Injection>,
}

/// Contexts that are recorded when they are handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// The record, while it can be taken back.
    #[serde(skip)]
    pub event: Option<EventId>,
    /// The session.
    pub session: SessionId,
    /// The operation they belong to.
    pub trace_id: TraceId,
    /// The span of the record.
    pub span_id: SpanId,
    /// The span above.
    pub parent: Option<SpanId>,
    /// Contexts, by identifier.
    pub context_ids: Vec<String>,
    /// Atlases they are from.
    pub atlas_ids: Vec<String>,
    /// Bytes of them.
    pub total_size_bytes: u64,
    /// The reason on record.
    pub trigger: InjectTrigger,
    /// The type of the checkpoint that gives them.
    pub checkpoint_type: Option<String>,
    /// Tells whether all of them came from a cache.
    pub cache_hit: bool,
}

/// A context that an agent asked for by name and was not given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotGiven {
    /// The context, as the agent named it.
    pub context_id: String,
    /// Told to the agent.
    pub reason: String,
}

impl Given {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty()
            && self.guidance.is_empty()
            && self.withdrawn.is_empty()
            && self.not_given.is_empty()
            && self.warnings.is_empty()
    }
}

/// Guidance handed to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenGuidance {
    /// The checkpoint that gives it.
    pub checkpoint_id: String,
    /// What it says.
    pub block: GuidanceBlock,
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
    /// The operator who let it pass, where one had to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
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
    /// The session does not exist, or is somebody else's.
    Session,
    /// The session has ended.
    Ended,
    /// The thread belongs to another session.
    Thread,
    /// An Atlas wants to see a key, and saw none that it knows.
    Unauthorized,
    /// The request itself cannot be read.
    BadRequest,
    /// No Atlas knows the action.
    UnknownAction,
    /// A policy denies it.
    Policy,
    /// An extension says no, or could not be heard.
    Extension,
    /// The resolution it relies on does not cover it.
    Resolution,
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
    /// The operator gave the first approval, and another one has to give the second.
    #[error("{0} gave 1 of 2; somebody else gives 2 of 2")]
    SameOperator(String),
    /// Whoever asks can never let it pass.
    #[error("`{0}` is who asks, and can never approve it")]
    Requester(String),
    /// The claim is not the one that the operator saw.
    #[error("{}", .0.as_ref().map_or_else(|| "nobody claims it by now".to_owned(), |by| format!("{by} claims it by now")))]
    ClaimChanged(Option<String>),
    /// There is nothing of that kind to acknowledge.
    #[error("there is nothing to acknowledge")]
    NothingToAcknowledge,
    /// Nobody can be called that.
    #[error("{0}")]
    BadName(String),
    /// The record could not be made durable.
    #[error("it could not be recorded, so it does not count: {0}")]
    Unavailable(String),
}
