//! Replies to operators, and the outcomes of held requests.

use serde::{Deserialize, Serialize};

use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::base::id::{HeldRequestId, SessionId};
use crate::engine::gates::held::Held;

/// A reply to an operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorReply {
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

/// The outcome of a held request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledRequest {
    /// The held request.
    pub gate: HeldRequestId,
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
    NotHeld(HeldRequestId),
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
    #[error("not recorded, so without effect: {0}")]
    Unavailable(String),
}
