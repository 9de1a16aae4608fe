//! Failures of commands about notices to stewards.

use crate::runtime::notices::SecretError;

/// Failure of a command about notices.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum NoticeFailure {
    #[error("no notice `{0}` waits or failed")]
    Unknown(String),
    #[error("no notice failed")]
    NoneFailed,
    #[error("CRA_WEBHOOK_SECRET is no secret: {0}")]
    Given(SecretError),
    #[error("{0}")]
    Secret(String),
}

impl NoticeFailure {
    /// Help for the user.
    pub(super) fn help(&self) -> &'static str {
        match self {
            Self::Unknown(_) | Self::NoneFailed => "cra notices lists them",
            Self::Given(_) => {
                "set it right, or leave it unset: then a file beside the store has one"
            }
            Self::Secret(_) => "cra notices secret says where it is",
        }
    }
}
