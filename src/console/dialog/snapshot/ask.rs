//! What is asked of the driver about snapshot files, and what it tells.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::id::SessionId;
use crate::memento::Name;
use crate::reconstruct::{Artifact, Reconstruction};
use crate::runtime::file::There;
use crate::runtime::snapshot_file::SnapshotFileError;

/// Something to do with a snapshot file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SnapshotAsk {
    /// Read one.
    Open(PathBuf),
    /// Load an artifact that the file of that path names.
    Load(PathBuf, Box<Artifact>),
    /// Write one of a conversation's session.
    Write(Writing),
}

/// A snapshot file that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writing {
    /// The conversation.
    pub(crate) thread: Name,
    /// Its session.
    pub(crate) session: SessionId,
    /// Where to.
    pub(crate) path: PathBuf,
    /// What becomes of a file that is there.
    pub(crate) there: There,
}

/// What came of a [`SnapshotAsk`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SnapshotTold {
    /// A file was read, or not.
    Opened(PathBuf, Result<Arc<Reconstruction>, Unusable>),
    /// What an artifact says; nothing where nobody knows.
    Loaded(Box<Artifact>, Result<Option<String>, Unusable>),
    /// A file was written, or not.
    Written(Writing, Result<(), Unwritten>),
}

/// Why nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unusable {
    /// In words.
    pub(crate) what: String,
    /// The way out.
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

/// Why nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// A file of that name is there.
    There,
    /// Something else, in words.
    Failed(String),
}
