//! Failures of connecting an agent.

use std::io;
use std::path::PathBuf;

use super::exit;
use crate::gateway::connect::JsonEditError;

/// Reason why the settings of an agent were not changed.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ConnectFailure {
    #[error("cannot change `{}`: {}", .0.display(), .1)]
    Form(PathBuf, JsonEditError),
    #[error("cannot change `{}`: {}", .0.display(), .1)]
    File(PathBuf, io::Error),
    #[error("nothing was written: cra cannot ask for confirmation here")]
    NotAsked,
    #[error("this program is named `{}`, but hooks must run a program named `cra`", .0.display())]
    Name(PathBuf),
    #[error("cannot find the path of this program: {0}")]
    Program(io::Error),
    #[error("the path of this program is not valid text: `{}`", .0.display())]
    ProgramText(PathBuf),
    #[error("cannot read or write the list of connections `{}`: {}", .0.display(), .1)]
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
                "correct the syntax; cra accepts comments and trailing commas only where the agent reads them. Or \
                 add the entries by hand: cra connect AGENT --dry-run in an empty folder shows them"
            }
            Self::Form(
                _,
                JsonEditError::WrongType { .. } | JsonEditError::DuplicateName { .. },
            ) => "nothing was changed; correct the file and try again",
            Self::File(..) => "nothing was changed; check the file and try again",
            Self::NotAsked => "add --yes to write, or --dry-run to only show the change",
            Self::Name(_) => "rename the program to `cra` and run it again",
            Self::Program(_) | Self::ProgramText(_) => {
                "install cra in another folder and run it from there"
            }
            Self::List(..) => {
                "the console cannot watch a connection that is not listed; correct the file and try again"
            }
        }
    }
}
