//! Arguments of `cra trace`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::trace::replay::StopCondition;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TraceCommand {
    /// List the sessions on record, newest first
    List(TraceListArgs),
    /// Show the events of a session
    Show(TraceShowArgs),
    /// Say how much of the record is proven; exits with 6 when something does not hold
    Verify(VerifyArgs),
    /// Tell a session step by step, or what held at one of its events
    Replay(ReplayArgs),
    /// Hold two sessions against each other: where they part, and what differs
    Diff(DiffArgs),
    /// Write the record for others: as lines to verify, as a table, as a report, as spans
    Export(ExportArgs),
    /// Take in sessions that were recorded elsewhere, from JSON Lines; they are verified first
    Import(ImportArgs),
    /// Drop the content of events that are older than the Atlases wanted which were in force when they were
    /// recorded; their place, time and hash stay
    Prune(PruneArgs),
    /// Put a session under a legal hold: nothing of it is pruned until it is released
    Hold(HoldArgs),
    /// End the legal hold of a session
    Release(ReleaseArgs),
    /// Print the newest signed head of the log, to be kept elsewhere
    Head(HeadArgs),
    /// Print the public key that verifies the record, or change the key
    Key(KeyArgs),
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ImportArgs {
    /// The file that `cra trace export` wrote
    pub(in crate::cli) file: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct PruneArgs {
    /// Keep events at least as long as this Atlas says, or a folder of them; may be given several times. It
    /// never shortens: the Atlases that were in force are in the store
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) atlas: Vec<PathBuf>,

    /// Only say what would go
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct HoldArgs {
    /// The session
    #[arg(required_unless_present = "list")]
    pub(in crate::cli) session: Option<String>,

    /// Reason of the hold, as the log keeps it
    #[arg(long, value_name = "TEXT", required_unless_present = "list", value_parser = reason)]
    pub(in crate::cli) reason: Option<String>,

    /// List the sessions under a legal hold
    #[arg(long, conflicts_with_all = ["session", "reason"])]
    pub(in crate::cli) list: bool,

    /// Print JSON
    #[arg(long, requires = "list")]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ReleaseArgs {
    /// The session
    pub(in crate::cli) session: String,

    /// Reason of the release, as the log keeps it
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(in crate::cli) reason: Option<String>,
}

/// A reason, which must not be empty.
fn reason(typed: &str) -> Result<String, String> {
    let reason = typed.trim();
    if reason.is_empty() {
        return Err("a reason has at least one character".to_owned());
    }
    Ok(reason.to_owned())
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct HeadArgs {
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each field is a command line flag"
)]
pub(in crate::cli) struct KeyArgs {
    /// Hand over to a new key: the old one signs that, and is kept as cra.key.ID
    #[arg(long)]
    pub(in crate::cli) rotate: bool,

    /// Begin a new key without the old one, because that is lost: who knows the old key cannot verify
    /// the record by it any more
    #[arg(long, conflicts_with = "rotate")]
    pub(in crate::cli) new: bool,

    /// Print the public key that proves the console's answers: the `--key` of `cra hook`, `cra mcp-proxy` and
    /// `cra mcp`. It is derived from the other key and changes with it
    #[arg(long)]
    pub(in crate::cli) answers: bool,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct TraceListArgs {
    /// List one session alone; `log` is the governance log
    pub(in crate::cli) session: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct TraceShowArgs {
    /// The session; `log` is the governance log
    pub(in crate::cli) session: String,

    /// First event to show
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) from: u64,

    /// Most events to show
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(in crate::cli) limit: usize,

    /// Print JSON, one event a line
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct VerifyArgs {
    /// The session, or `log` for the governance log; all when absent
    pub(in crate::cli) session: Option<String>,

    /// Check an exported file instead of the store; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) file: Option<PathBuf>,

    /// Hold it against a head that was kept elsewhere: a file, or the text of `cra trace head`; may be
    /// given several times
    #[arg(long, value_name = "HEAD")]
    pub(in crate::cli) known_head: Vec<String>,

    /// The public key that signs it, as `cra trace key` prints it, or a file with it (default: the key
    /// beside the store)
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Help text about `--stop-on`, `--type` and the places of sessions.
const REPLAY: &str = "\
A session is one of the store, or FILE:SESSION in a file that `cra trace export` wrote. `log` is the
governance log: Atlases, imports, prunes, holds, edits, alarms, keys and operators.

--type takes a name of an event type, in which * stands for anything: --type 'action_*'. The state
follows from all events nevertheless; events that are not told do not stop the replay.

--stop-on takes type=PATTERN, checkpoint=PATTERN, action=PATTERN or text=TEXT, and may be given
several times: the first that is met stops the replay, and what held there is shown.

What held at an event follows from the events up to it alone. Which capabilities a session lacks from
the start is in its Atlas, and a run leaves no record of its own until it is completed.";

#[derive(Debug, ClapArgs)]
#[command(after_long_help = REPLAY)]
pub(in crate::cli) struct ReplayArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    pub(in crate::cli) session: String,

    /// Show what held after this event, instead of the steps
    #[arg(long, value_name = "N", conflicts_with_all = ["types", "stop_on"])]
    pub(in crate::cli) at: Option<u64>,

    /// Tell only events of this type; may be given several times
    #[arg(long = "type", value_name = "PATTERN")]
    pub(in crate::cli) types: Vec<String>,

    /// Stop at the first event like this; may be given several times
    #[arg(long, value_name = "WHAT")]
    pub(in crate::cli) stop_on: Vec<StopCondition>,

    /// Do not check the chain first
    #[arg(long)]
    pub(in crate::cli) no_verify: bool,

    /// Print JSON: one step a line, or the state
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct DiffArgs {
    /// One session of the store, or `FILE:SESSION` in a file that `cra trace export` wrote
    #[arg(value_name = "A")]
    pub(in crate::cli) a: String,

    /// The other
    #[arg(value_name = "B")]
    pub(in crate::cli) b: String,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// How an export is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ExportFormatArg {
    /// One event a line, in canonical JSON: the one that can be verified
    Jsonl,
    /// A table for spreadsheets. A cell that would be run as a formula gets an apostrophe in front
    Csv,
    /// A report in one file, for people without this program
    Html,
    /// Spans for tools that draw traces: OpenTelemetry's OTLP as JSON
    Otlp,
    /// What was decided, a line each, without ids, times and hashes: the same bytes for the same decisions
    Golden,
}

impl From<ExportFormatArg> for crate::trace::export::ExportFormatArg {
    fn from(format: ExportFormatArg) -> Self {
        match format {
            ExportFormatArg::Jsonl => Self::Jsonl,
            ExportFormatArg::Csv => Self::Csv,
            ExportFormatArg::Html => Self::Html,
            ExportFormatArg::Otlp => Self::Otlp,
            ExportFormatArg::Golden => Self::Golden,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ExportArgs {
    /// The session, or `FILE:SESSION` in a file that `cra trace export` wrote; all when absent
    pub(in crate::cli) session: Option<String>,

    /// How it is written
    #[arg(long, value_enum, default_value_t = ExportFormatArg::Jsonl)]
    pub(in crate::cli) format: ExportFormatArg,

    /// File to write; standard output when absent. A file that exists is left alone
    #[arg(long, short, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Print JSON about the file that was written
    #[arg(long, requires = "output")]
    pub(in crate::cli) json: bool,
}
