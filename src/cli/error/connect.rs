//! Failures of connecting an agent.

use std::io;
use std::path::PathBuf;

use super::exit;
use crate::gateway::connect::JsonEditError;

/// Reason why the settings of an agent were not changed.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ConnectFailure {
    #[error("`{}` is left alone: {}", .0.display(), .1)]
    Form(PathBuf, JsonEditError),
    #[error("`{}` is left alone: {}", .0.display(), .1)]
    File(PathBuf, io::Error),
    #[error("nobody can be asked here, so nothing was written")]
    NotAsked,
    #[error("this program is called `{}`, and hooks are known by the name `cra`", .0.display())]
    Name(PathBuf),
    #[error("the path of this program cannot be found: {0}")]
    Program(io::Error),
    #[error("the path of this program cannot be written down: `{}`", .0.display())]
    ProgramText(PathBuf),
    #[error("the list of connections `{}` cannot be kept: {}", .0.display(), .1)]
    List(PathBuf, io::Error),
}

impl ConnectFailure {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::NotAsked => exit::USAGE,
            Self::Form(..)
            | Self::File(..)
            | Self::Name(_)
            | Self::Program(_)
            | Self::ProgramText(_)
            | Self::List(..) => exit::FAILURE,
        }
    }

    pub(super) fn help(&self) -> &'static str {
        match self {
            Self::Form(_, JsonEditError::Syntax { .. }) => {
                "only strict JSON is changed, because comments and trailing commas would be lost; take them \
                 out, or put the entries in by hand: cra connect AGENT --dry-run in an empty folder shows them"
            }
            Self::Form(
                _,
                JsonEditError::WrongType { .. } | JsonEditError::DuplicateName { .. },
            ) => "nothing was changed; put it right, and try again",
            Self::File(..) => "nothing was changed; look at the file, and try again",
            Self::NotAsked => "say --yes to write, or --dry-run to look only",
            Self::Name(_) => "call the program `cra`, and run it by that name",
            Self::Program(_) | Self::ProgramText(_) => {
                "install it elsewhere, and run it from there"
            }
            Self::List(..) => {
                "the console cannot look after what it does not know of; put the file right, and try again"
            }
        }
    }
}
