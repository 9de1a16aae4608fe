//! Failures of commands about notices to stewards.

use crate::runtime::notices::SecretError;

/// Failure of a command about notices.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum NoticeFailure {
    #[error("no waiting or failed notice `{0}`")]
    Unknown(String),
    #[error("there are no failed notices")]
    NoneFailed,
    #[error("CRA_WEBHOOK_SECRET is not a valid secret: {0}")]
    Given(SecretError),
    #[error("{0}")]
    Secret(String),
}

impl NoticeFailure {
    /// Help for the user.
    pub(super) fn help(&self) -> &'static str {
        match self {
            Self::Unknown(_) | Self::NoneFailed => "cra notices lists the notices",
            Self::Given(_) => "correct or unset it: without it cra uses a file next to the store",
            Self::Secret(_) => "cra notices secret shows where the secret is",
        }
    }
}
