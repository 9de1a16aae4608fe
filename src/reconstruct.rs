//! Reconstruction of a conversation from a snapshot file.
//!
//! A snapshot file holds the state of a conversation at the time it was saved. The protocol has four
//! phases: RETRIEVE reads the file in a fixed order, INFER derives its meaning, VALIDATE looks for
//! missing parts, and ENGAGE writes the confirmation that the next agent begins with. The same file
//! gives the same text, byte for byte.
//!
//! Pure: the caller reads the file. Missing or mistyped parts are named, and the rest is used.

mod challenge;
mod engage;
mod glossary;
mod infer;
mod json_view;
mod retrieve;
mod snapshot;
mod snapshot_writer;
mod subject;
mod validate;
mod wording;

pub use engage::confirmation;
pub use glossary::{
    COMPATIBLE_WITH, GLOSSARY, LOAD_ARTIFACTS_FOR, NEVER_LOAD_ARTIFACTS_FOR, PROTOCOL_VERSION,
    QUALITY, UPDATED,
};
pub use infer::{Inference, infer};
pub use json_view::SnapshotFault;
pub use retrieve::{RetrievalStep, RetrievedField, retrieve};
pub use snapshot::{
    Artifact, Blocker, ConfidenceLevel, ConversationSnapshot, ConversationState, DeferredItem,
    Insight, NextStep, OpenQuestion, Pivot, SnapshotDecision, SnapshotError, Tradeoff,
};
pub use snapshot_writer::{
    AccountDecision, AccountFreeze, AccountHeld, SessionAccount, WaitingSubject, snapshot_json,
};
pub use validate::{Checklist, ChecklistItem, validate};

use serde::Serialize;

/// Result of reconstructing a snapshot file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reconstruction {
    /// Phase 1: the fields read, in order.
    pub retrieved: Vec<RetrievalStep>,
    /// Phase 2: the inferences.
    pub inferred: Vec<Inference>,
    /// Phase 3: the checklist of clear and unclear points.
    pub checklist: Checklist,
    /// Phase 4: the text to begin with.
    pub confirmation: String,
    /// Artifacts that can be loaded.
    pub artifacts: Vec<Artifact>,
}

impl Reconstruction {
    /// Runs all four phases on a file.
    ///
    /// # Errors
    /// When it is not a snapshot file, or its version is not supported.
    pub fn from_file(text: &[u8]) -> Result<Self, SnapshotError> {
        Ok(Self::from_snapshot(&ConversationSnapshot::read(text)?))
    }

    /// Runs all four phases on a snapshot.
    #[must_use]
    pub fn from_snapshot(snapshot: &ConversationSnapshot) -> Self {
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
