//! How a command about notices to stewards fails.

use crate::runtime::notices::SecretError;

/// Why a command about notices failed.
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
    /// The way out.
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
