//! Requests to the driver about snapshot files, and its responses.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::id::SessionId;
use crate::memento::Name;
use crate::reconstruct::{Artifact, Reconstruction};
use crate::runtime::file::There;
use crate::runtime::snapshot_file::SnapshotFileError;

/// Request about a snapshot file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SnapshotAsk {
    /// Read a file.
    Open(PathBuf),
    /// Load an artifact that the file at this path names.
    Load(PathBuf, Box<Artifact>),
    /// Write a snapshot of a thread's session.
    Write(Writing),
}

/// A snapshot file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writing {
    /// The thread.
    pub(crate) thread: Name,
    /// Session of the thread.
    pub(crate) session: SessionId,
    /// Path to write to.
    pub(crate) path: PathBuf,
    /// Handling of a file that already exists.
    pub(crate) there: There,
}

/// Response to a [`SnapshotAsk`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SnapshotTold {
    /// A file was read, or the read failed.
    Opened(PathBuf, Result<Arc<Reconstruction>, Unusable>),
    /// Content of an artifact; `None` if the file has neither its content nor its path.
    Loaded(Box<Artifact>, Result<Option<String>, Unusable>),
    /// A file was written, or the write failed.
    Written(Writing, Result<(), Unwritten>),
}

/// Reason why nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unusable {
    /// The error, as text.
    pub(crate) what: String,
    /// Remedy, if there is one.
    pub(crate) help: Option<&'static str>,
}

impl From<SnapshotFileError> for Unusable {
    fn from(error: SnapshotFileError) -> Self {
        Self {
            what: error.to_string(),
            help: error.help(),
        }
    }
}

/// Reason why nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// A file with this name exists.
    There,
    /// Another error, as text.
    Failed(String),
}
