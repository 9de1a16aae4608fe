//! Arguments of commands about notices to stewards.

use clap::{Args as ClapArgs, Subcommand};

/// Help text about setting up a receiver.
const RECEIVER: &str = "\
An Atlas whose steward names a webhook and triggers is told of them by POST, as JSON, signed as the
Standard Webhooks convention has it: the header webhook-signature is `v1,` and the base64 of the
HMAC-SHA256 over `ID.TIMESTAMP.BODY`, with the bytes behind `whsec_` as the key. The same notice may come
twice, under the same webhook-id. 2xx takes it; 410 ends it; anything else is tried again for three days.

The store is opened as the console opens it to retry or forget, so no console may have it at the time.
Notices that failed are tried once more by themselves when the console starts.";

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
    /// Have notices tried again as if they were new, when the console starts
    Retry(NoticeNamesArgs),
    /// Give notices up for good; the record keeps what they were about
    Forget(NoticeNamesArgs),
    /// Say where the secret is that notices are signed with, or print it for whoever receives them
    Secret(NoticeSecretArgs),
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct NoticeNamesArgs {
    /// Notices, as cra notices lists them
    #[arg(value_name = "ID", required_unless_present = "failed")]
    pub(in crate::cli) ids: Vec<String>,

    /// All that failed
    #[arg(long, conflicts_with = "ids")]
    pub(in crate::cli) failed: bool,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct NoticeSecretArgs {
    /// Print the secret itself; it is made when it is not there yet
    #[arg(long)]
    pub(in crate::cli) show: bool,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
