//! Commands of the snapshot dialog.

/// Snapshot command that other lists do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotKey {
    /// Shows the retrieve phase: the data read from the file.
    Retrieve,
    /// Shows the infer phase: the conclusions from that data.
    Infer,
    /// Shows the validate phase: what is clear and what is not.
    Validate,
    /// Shows the engage phase: the text to continue with.
    Engage,
    /// Lists the artifacts that can be loaded.
    Artifacts,
    /// Copies the text to continue with.
    Copy,
    /// Opens another file.
    Other,
    /// Writes a snapshot file of the selected conversation's session.
    Write,
}
