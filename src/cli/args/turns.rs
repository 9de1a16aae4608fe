//! Arguments of commands about conversations.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::AtlasFileArgs;

/// Help text with an example turn; a test takes it.
const TURN: &str = "\
A turn is a JSON object, or a list of them, taken in their order:

  { \"session\": \"s-12\", \"thread\": \"t-31\", \"message_id\": \"m-1\",
    \"message\": \"please hurry, the export is on Friday\", \"author\": \"user\",
    \"affect\": { \"label\": \"pressed\", \"intensity\": 0.8, \"confidence\": \"high\", \"source\": \"model\" },
    \"signals\": [ { \"endMessageId\": \"m-1\", \"kind\": \"open_loop_created\", \"confidence\": \"high\",
                   \"source\": \"model\", \"summary\": \"confirm the export window\" } ],
    \"proposed\": { \"arc\": \"dedupe before Friday\", \"next\": [\"run the export dry-run\"] } }

Only session, message_id and message are needed. Without a thread it is the session's own; a thread that
another session began is refused. Further fields: context (thread_memento, thread_memento_ref: only the
newest counts, once one is stored), pressure (used, limit), drift, skip_updates (one
that only acknowledges takes its proposal too), and if_match, the etag of the memento that was read: a
turn that follows another one is refused.

The store is opened as the console opens it, so no console may have it at the time. Name the same
Atlases as the console: what is held is judged by those in force.";

#[derive(Debug, ClapArgs)]
#[command(after_long_help = TURN)]
pub(in crate::cli) struct TurnArgs {
    /// The turns, JSON; - for standard input
    #[arg(value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,

    #[command(flatten)]
    pub(in crate::cli) atlas: AtlasFileArgs,

    /// The agent of a session that is not there yet and begins with the turn
    #[arg(long, value_name = "NAME", default_value = "script")]
    pub(in crate::cli) agent: String,

    /// Print JSON, a list of what came of each, with the memento behind it
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ThreadCommand {
    /// List the conversations, the one with the newest turn first
    List(ThreadListArgs),
    /// Show one of them: what was decided last and why, the memento, what is held back, and the turns
    Show(ThreadShowArgs),
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ThreadListArgs {
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ThreadShowArgs {
    /// The conversation (default: the one with the newest turn)
    #[arg(value_name = "THREAD")]
    pub(in crate::cli) thread: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct SnapshotArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    pub(in crate::cli) session: String,

    /// Write it to this file, which must not be there yet (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) out: Option<PathBuf>,
}
