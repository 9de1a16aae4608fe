//! What a key of a snapshot file does.

/// What a key of a snapshot file does, beside what keys do in other lists too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotKey {
    /// What is read.
    Retrieve,
    /// What follows from it.
    Infer,
    /// What is clear and what is not.
    Validate,
    /// The text to go on with.
    Engage,
    /// What was made and can be loaded.
    Artifacts,
    /// Copies the text to go on with.
    Copy,
    /// Opens another file.
    Other,
    /// Writes one of the chosen conversation's session.
    Write,
}
