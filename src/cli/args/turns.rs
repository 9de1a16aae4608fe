//! Arguments of commands about conversations.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::AtlasFileArgs;

/// Help text with an example turn; a test takes it.
const TURN: &str = "\
A turn is a JSON object. A list of turns is processed in order:

  { \"session\": \"s-12\", \"thread\": \"t-31\", \"message_id\": \"m-1\",
    \"message\": \"please hurry, the export is on Friday\", \"author\": \"user\",
    \"affect\": { \"label\": \"pressed\", \"intensity\": 0.8, \"confidence\": \"high\", \"source\": \"model\" },
    \"signals\": [ { \"endMessageId\": \"m-1\", \"kind\": \"open_loop_created\", \"confidence\": \"high\",
                   \"source\": \"model\", \"summary\": \"confirm the export window\" } ],
    \"proposed\": { \"arc\": \"dedupe before Friday\", \"next\": [\"run the export dry-run\"] } }

Only session, message_id and message are required. Without `thread`, the turn belongs to the
session's own thread; cra rejects the thread of another session. Optional fields: context
(thread_memento, thread_memento_ref: only the newest counts, once one is stored), pressure (used,
limit), drift, skip_updates (also update the summary on a turn with the decision skip), and
if_match (the etag of the memento that the agent read: cra rejects the turn if the memento has
changed since).

Close the console first: cra turn needs the store for itself. Load the same Atlases as the console,
because held requests are checked against them.";

#[derive(Debug, ClapArgs)]
#[command(after_long_help = TURN)]
pub(in crate::cli) struct TurnArgs {
    /// Turns as JSON; - for standard input
    #[arg(value_name = "FILE")]
    pub(in crate::cli) file: PathBuf,

    #[command(flatten)]
    pub(in crate::cli) atlas: AtlasFileArgs,

    /// Agent of a session that starts with the turn
    #[arg(long, value_name = "NAME", default_value = "script")]
    pub(in crate::cli) agent: String,

    /// Print JSON: a list of results, each with its memento
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ThreadCommand {
    /// List the threads, newest turn first
    List(ThreadListArgs),
    /// Show a thread: the last decision, the memento, the saved proposals, and the turns
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
    /// Thread to show (default: the one with the newest turn)
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

    /// File to write; must not exist (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) out: Option<PathBuf>,
}
