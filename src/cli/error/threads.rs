//! Failures of commands about conversations.

use std::path::PathBuf;

use crate::engine::command::DenialReply;
use crate::memento::MementoError;

/// Failure of a command about conversations.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ThreadFailure {
    #[error("cannot read turns from `{}`: {}", .0.display(), .1)]
    NoTurn(PathBuf, MementoError),
    #[error("turn {number} of {all} (message `{message}`) was rejected: {}", denied.reason)]
    Refused {
        number: usize,
        all: usize,
        message: String,
        denied: DenialReply,
    },
    #[error("{0} held under other Atlases and would be checked again")]
    OtherAtlases(String),
    #[error("thread `{0}` does not exist")]
    NoThread(String),
    #[error("there are no threads yet")]
    NoThreads,
}

impl ThreadFailure {
    /// Help for the user.
    pub(super) fn help(&self) -> Option<&str> {
        match self {
            Self::NoTurn(..) => Some("cra turn --help shows an example"),
            Self::Refused { denied, .. } => denied.help.as_deref(),
            Self::OtherAtlases(_) => {
                Some("nothing was changed; load the Atlases of the console with --atlas")
            }
            Self::NoThread(_) => Some("cra thread list shows the threads"),
            Self::NoThreads => Some("cra turn --help shows how to add a turn"),
        }
    }
}
