//! From a snapshot file to a conversation that can go on.
//!
//! A snapshot file says where a conversation stood when somebody saved it. The protocol takes it through four
//! phases: RETRIEVE reads it in a fixed order, INFER says what that means, VALIDATE looks for what is missing,
//! and ENGAGE writes the confirmation that a next agent begins with. The same file gives the same text, byte
//! for byte.
//!
//! Pure: whoever calls reads the file. What is missing or of the wrong kind is named, and what is there is used.

mod challenge;
mod engage;
mod glossary;
mod infer;
mod look;
mod retrieve;
mod snapshot;
mod subject;
mod validate;
mod words;
mod write;

pub use engage::confirmation;
pub use glossary::{
    COMPATIBLE_WITH, GLOSSARY, LOAD_ARTIFACTS_FOR, NEVER_LOAD_ARTIFACTS_FOR, PROTOCOL_VERSION,
    QUALITY, UPDATED,
};
pub use infer::{Inference, infer};
pub use look::Fault;
pub use retrieve::{Read, Step, retrieve};
pub use snapshot::{
    Artifact, Blocking, Certainty, ConversationState, Decided, Deferred, Insight, NextStep,
    OpenQuestion, Pivot, Snapshot, SnapshotError, Tradeoff,
};
pub use validate::{Check, Checklist, validate};
pub use write::{Account, AccountDecision, AccountFreeze, AccountHeld, Waits, written};

use serde::Serialize;

/// What came of a snapshot file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reconstruction {
    /// Phase 1: what was read, in its order.
    pub retrieved: Vec<Step>,
    /// Phase 2: what it means.
    pub inferred: Vec<Inference>,
    /// Phase 3: what is clear, and what is not.
    pub checklist: Checklist,
    /// Phase 4: the text to begin with.
    pub confirmation: String,
    /// What was made and can be asked for.
    pub artifacts: Vec<Artifact>,
}

impl Reconstruction {
    /// Takes a file through all four phases.
    ///
    /// # Errors
    /// When it is no snapshot file, or one of a version that cannot be read.
    pub fn of(text: &[u8]) -> Result<Self, SnapshotError> {
        Ok(Self::of_snapshot(&Snapshot::read(text)?))
    }

    /// Takes a snapshot through all four phases.
    #[must_use]
    pub fn of_snapshot(snapshot: &Snapshot) -> Self {
        let checklist = validate(snapshot);
        Self {
            retrieved: retrieve(snapshot),
            inferred: infer(snapshot),
            confirmation: confirmation(snapshot, &checklist),
            artifacts: snapshot.artifacts.clone(),
            checklist,
        }
    }
}
