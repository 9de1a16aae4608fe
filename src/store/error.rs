//! Errors of a store, each with help for the operator.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Error of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or created.
    #[error("cannot open the store `{path}`: {what}")]
    Open {
        /// The file.
        path: String,
        /// Cause of the failure.
        what: String,
    },
    /// The file belongs to another program.
    #[error("`{path}` is not a cra store: {what}")]
    Foreign {
        /// The file.
        path: String,
        /// Apparent kind of the file.
        what: String,
    },
    /// Another version wrote the file.
    #[error("`{path}` has store format {found}; this version of cra reads format {known}")]
    Version {
        /// The file.
        path: String,
        /// Format of the file.
        found: i64,
        /// Format that this version supports.
        known: i64,
    },
    /// The database is missing, but other files show that it existed.
    #[error("the database `{path}` {what}, but {relics} next to it belong to an existing record")]
    Missing {
        /// The file.
        path: String,
        /// State of the database file.
        what: &'static str,
        /// Names of the files that exist.
        relics: String,
    },
    /// The disk is full.
    #[error("{what}")]
    Full {
        /// Location, free space and needed space.
        what: String,
    },
    /// Another console uses the store.
    #[error("the store `{path}` is in use by another console{holder}")]
    InUse {
        /// The file.
        path: String,
        /// Process that holds it, if known.
        holder: String,
    },
    /// The content cannot be read.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// Description of the damage.
        what: String,
    },
    /// The caller cancelled the operation.
    #[error("the verification was stopped before its end")]
    Cancelled,
    /// A write failed; the store accepts nothing more.
    #[error("the store no longer accepts records: {0}")]
    Poisoned(#[source] CommitError),
}

/// Reason why a commit failed. The content of the disk is unknown then.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// Another program changed a file of the open store.
    #[error("`{}` was {change} while cra was running", path.display())]
    FileChanged {
        /// The file.
        path: PathBuf,
        /// Change of the file.
        change: FileChange,
    },
    /// A file of the store cannot be read.
    #[error("`{}` cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: Arc<io::Error>,
    },
    /// The disk is full.
    #[error("{shortage}")]
    Full {
        /// Location, free space and needed space.
        shortage: String,
        /// Error of the backend.
        source: BackendError,
    },
    /// The backend could not write.
    #[error(transparent)]
    Backend(BackendError),
    /// The record cannot be continued or read back.
    #[error("{0}")]
    Record(String),
    /// Another process opened the store.
    #[error("another process has opened the store")]
    TakenOver,
    /// The thread that writes has ended.
    #[error("the writer thread has stopped")]
    Stopped,
}

/// Error of a database, or of another part behind the store.
pub type BackendError = Arc<dyn std::error::Error + Send + Sync>;

impl CommitError {
    /// Wraps an error of the backend.
    #[must_use]
    pub fn backend(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Backend(Arc::new(error))
    }
}

// Errors of the system cannot be compared; their texts can.
impl PartialEq for CommitError {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for CommitError {}

/// Change of a store's file by another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// Another file has the name.
    Replaced,
    /// No file has the name.
    Removed,
    /// The file is shorter than before.
    Truncated,
    /// The file has other content.
    Overwritten,
    /// The file is shorter or has other content.
    TruncatedOrOverwritten,
    /// The structure of the file is damaged as described.
    Damaged(String),
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced => f.write_str("replaced"),
            Self::Removed => f.write_str("deleted or moved"),
            Self::Truncated => f.write_str("truncated"),
            Self::Overwritten => f.write_str("overwritten by another program"),
            Self::TruncatedOrOverwritten => f.write_str("truncated or overwritten"),
            Self::Damaged(fault) => write!(f, "damaged by another program ({fault})"),
        }
    }
}

impl StoreError {
    /// Help for the operator: how to resolve the error.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Open { .. } => {
                "check the folder and its permissions, or name another folder with --data-dir"
            }
            Self::Missing { .. } => {
                "nothing was changed; restore the database with its -wal from a backup; to start a new record \
                 instead, move those files to another folder, or name another folder with --data-dir"
            }
            Self::Full { .. } => "free some space, then try again; recorded events are kept",
            Self::Foreign { .. } => "nothing was changed; name another folder with --data-dir",
            Self::Version { found, known, .. } if found < known => {
                "start cra once: it updates the store"
            }
            Self::Version { .. } => {
                "nothing was changed; use the version of cra that wrote the store, or another --data-dir"
            }
            Self::InUse { .. } => "use that console, or name another folder with --data-dir",
            Self::Damaged { .. } => {
                "nothing was changed; keep the file, restore a backup to another folder, and name that folder with --data-dir"
            }
            Self::Cancelled => "verify again and wait for the end",
            Self::Poisoned(_) => {
                "check the disk (space, permissions, errors), then start cra again; acknowledged records are kept"
            }
        }
    }
}
