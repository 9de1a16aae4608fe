//! Operator actions other than decisions. Nothing passes by any of them.

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{HeldRequestId, SessionId};

/// An operator action that is not a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperatorAction {
    /// Claims or releases a held request.
    Claim(ClaimChange),
    /// Acknowledges a fault or overruled denials.
    Acknowledge(OperatorAcknowledgement),
    /// Becomes the current operator of the console.
    ChangeOperator(OperatorChange),
}

/// A change of the claim on a held request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimChange {
    /// The held request.
    pub gate: HeldRequestId,
    /// The operator who makes the change.
    pub operator: String,
    /// Holder of the claim that the operator saw. If it has changed, nothing happens.
    pub seen: Option<String>,
    /// The wanted change.
    pub wish: ClaimChangeKind,
}

/// A change of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimChangeKind {
    /// Take the claim.
    Take,
    /// Give the claim up, so that no operator has it.
    Release,
}

/// An acknowledgement by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorAcknowledgement {
    /// The operator.
    pub operator: String,
    /// Subject of the acknowledgement.
    pub of: AcknowledgedSubject,
}

/// Subjects that an operator can acknowledge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcknowledgedSubject {
    /// The record is broken, or cannot be read.
    Fault(RecordFault),
    /// Overruled denials, by request.
    Overruled(Vec<HeldRequestId>),
}

/// A fault of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFault {
    /// Digest of all problems: a different fault has a different digest.
    pub mark: Digest,
    /// The first session with a broken chain, if any.
    pub session: Option<SessionId>,
    /// Description of the fault.
    pub what: String,
}

/// A change of the operator at the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorChange {
    /// Name of the new operator, as typed.
    pub operator: String,
    /// Name of the previous operator.
    pub before: String,
}

/// An overruled denial that no operator has acknowledged yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverruledDenial {
    /// The held request.
    pub gate: HeldRequestId,
    /// Its session.
    pub session: SessionId,
    /// The action.
    pub action: String,
    /// The operator who overruled.
    pub by: String,
    /// Time of the decision.
    pub at: Timestamp,
}
