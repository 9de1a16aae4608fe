//! Arguments of commands about notices to stewards.

use clap::{Args as ClapArgs, Subcommand};

/// Help text about setting up a receiver.
const RECEIVER: &str = "\
A steward names a webhook and triggers in the Atlas. cra then sends notices by POST, as JSON,
signed as in Standard Webhooks: the header webhook-signature is `v1,` and the base64 of the
HMAC-SHA256 over `ID.TIMESTAMP.BODY`, with the bytes after `whsec_` as the key. A notice may arrive
twice, with the same webhook-id. Answer 2xx to accept a notice, or 410 to stop it; after any other
answer cra tries again for three days.

Close the console before `retry` and `forget`: they need the store for themselves. When the console
starts, it sends failed notices once more.";

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, after_long_help = RECEIVER)]
pub(in crate::cli) struct NoticesArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<NoticesCommand>,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum NoticesCommand {
    /// Send notices again when the console starts, as if they were new
    Retry(NoticeNamesArgs),
    /// Delete notices without sending them; the record keeps the events
    Forget(NoticeNamesArgs),
    /// Show where the signing secret of notices is, or print it for the receiver
    Secret(NoticeSecretArgs),
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct NoticeNamesArgs {
    /// Identifiers that cra notices lists
    #[arg(value_name = "ID", required_unless_present = "failed")]
    pub(in crate::cli) ids: Vec<String>,

    /// All failed notices
    #[arg(long, conflicts_with = "ids")]
    pub(in crate::cli) failed: bool,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct NoticeSecretArgs {
    /// Print the secret; create it if it does not exist
    #[arg(long)]
    pub(in crate::cli) show: bool,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
