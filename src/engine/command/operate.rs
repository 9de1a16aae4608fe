//! What operators do beside deciding. Nothing passes by any of it.

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{GateId, SessionId};

/// What an operator does beside deciding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operate {
    /// Says who looks after a held request.
    Claim(Claiming),
    /// Says that they know of something.
    Acknowledge(Acknowledge),
    /// Sits down at the console.
    TakeSeat(TakeSeat),
}

/// An operator says who looks after a held request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claiming {
    /// Which.
    pub gate: GateId,
    /// Who says so.
    pub operator: String,
    /// Whose claim the operator saw. Another one by now: nothing is changed.
    pub seen: Option<String>,
    /// What is to become of it.
    pub wish: ClaimWish,
}

/// What an operator wants of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimWish {
    /// To have it.
    Take,
    /// That nobody has it.
    Release,
}

/// An operator says that they know of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledge {
    /// Who.
    pub operator: String,
    /// Of what.
    pub of: Known,
}

/// What an operator can know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// The record does not hold, or cannot be read.
    Fault(RecordFault),
    /// Denials were overruled: the requests.
    Overruled(Vec<GateId>),
}

/// What is wrong with the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFault {
    /// Digest of everything that is wrong: another fault has another one.
    pub mark: Digest,
    /// The first session that does not hold, where one does not.
    pub session: Option<SessionId>,
    /// What is wrong, in words.
    pub what: String,
}

/// Somebody sits down at the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeSeat {
    /// Who they say they are.
    pub operator: String,
    /// Who sat there before.
    pub before: String,
}

/// A denial that was overruled, until somebody says that they know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overruled {
    /// The request.
    pub gate: GateId,
    /// Its session.
    pub session: SessionId,
    /// The action.
    pub action: String,
    /// Who overruled.
    pub by: String,
    /// When.
    pub at: Timestamp,
}
