//! Requests to the driver about snapshot files, and its responses.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::atomic_file::ExistingFile;
use crate::base::id::SessionId;
use crate::memento::ExternalName;
use crate::reconstruct::{Artifact, Reconstruction};
use crate::runtime::snapshot_file::SnapshotFileError;

/// Request about a snapshot file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SnapshotRequest {
    /// Read a file.
    Open(PathBuf),
    /// Load an artifact that the file at this path names.
    Load(PathBuf, Box<Artifact>),
    /// Write a snapshot of a thread's session.
    Write(SnapshotWrite),
}

/// A snapshot file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotWrite {
    /// The thread.
    pub(crate) thread: ExternalName,
    /// Session of the thread.
    pub(crate) session: SessionId,
    /// Path to write to.
    pub(crate) path: PathBuf,
    /// Handling of a file that already exists.
    pub(crate) if_exists: ExistingFile,
}

/// Response to a [`SnapshotRequest`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SnapshotResponse {
    /// A file was read, or the read failed.
    Opened(PathBuf, Result<Arc<Reconstruction>, SnapshotReadFailure>),
    /// Content of an artifact; `None` if the file has neither its content nor its path.
    Loaded(Box<Artifact>, Result<Option<String>, SnapshotReadFailure>),
    /// A file was written, or the write failed.
    Written(SnapshotWrite, Result<(), SnapshotWriteFailure>),
}

/// Reason why nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotReadFailure {
    /// The error, as text.
    pub(crate) what: String,
    /// Remedy, if there is one.
    pub(crate) help: Option<&'static str>,
}

impl From<SnapshotFileError> for SnapshotReadFailure {
    fn from(error: SnapshotFileError) -> Self {
        Self {
            what: error.to_string(),
            help: error.help(),
        }
    }
}

/// Reason why nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotWriteFailure {
    /// A file with this name exists.
    AlreadyExists,
    /// Another error, as text.
    Failed(String),
}
