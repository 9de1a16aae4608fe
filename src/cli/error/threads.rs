//! Failures of commands about conversations.

use std::path::PathBuf;

use crate::engine::command::DenialReply;
use crate::memento::MementoError;

/// Failure of a command about conversations.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ThreadFailure {
    #[error("`{}` has no turns to take: {}", .0.display(), .1)]
    NoTurn(PathBuf, MementoError),
    #[error("turn {number} of {all} (message `{message}`) was not taken: {}", denied.reason)]
    Refused {
        number: usize,
        all: usize,
        message: String,
        denied: DenialReply,
    },
    #[error("{0} held under other Atlases than these, and would be judged anew")]
    OtherAtlases(String),
    #[error("there is no thread `{0}`")]
    NoThread(String),
    #[error("no turn of a conversation was taken yet")]
    NoThreads,
}

impl ThreadFailure {
    /// Help for the user.
    pub(super) fn help(&self) -> Option<&str> {
        match self {
            Self::NoTurn(..) => Some("cra turn --help shows one"),
            Self::Refused { denied, .. } => denied.help.as_deref(),
            Self::OtherAtlases(_) => {
                Some("nothing was changed; name the Atlases of the console with --atlas")
            }
            Self::NoThread(_) => Some("cra thread list names them"),
            Self::NoThreads => Some("cra turn --help shows how one is taken"),
        }
    }
}
