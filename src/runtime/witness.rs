//! External copy of the log's head: on another disk, in a repository, on a colleague's machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::atomic_file::{self, FileAccess};
use crate::trace::head::{HeadError, KnownHead};

/// Reason why an external copy of the head cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeadFileError {
    /// The file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("`{}`: {source}", path.display())]
    NotAHead {
        /// The file.
        path: PathBuf,
        /// Problem of the text.
        source: HeadError,
    },
    /// The file system did not respond in time.
    #[error("it takes too long to write")]
    Timeout,
    /// The task that wrote the file ended early.
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
}

/// Reads the head from a file, if the file exists.
///
/// # Errors
/// Fails when the file holds something else or cannot be read.
pub fn read_head(path: &Path) -> Result<Option<KnownHead>, HeadFileError> {
    let io_error = |source| HeadFileError::Io {
        path: path.to_owned(),
        source,
    };
    match fs::read_to_string(path) {
        Ok(text) => {
            let head = KnownHead::read(&text).map_err(|source| HeadFileError::NotAHead {
                path: path.to_owned(),
                source,
            })?;
            Ok(Some(head))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(error)),
    }
}

/// Writes a signed head to a file. A reader of the file finds the old head or the new one, never a partial
/// one.
///
/// # Errors
/// Fails when the file cannot be written.
pub fn write_head(path: &Path, note: &str) -> Result<(), HeadFileError> {
    atomic_file::replace(path, FileAccess::Default, note.as_bytes()).map_err(|source| {
        HeadFileError::Io {
            path: path.to_owned(),
            source,
        }
    })
}
