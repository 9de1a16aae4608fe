//! Arguments of `cra trace`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::trace::replay::StopCondition;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TraceCommand {
    /// List the recorded sessions, newest first
    List(TraceListArgs),
    /// Show the events of a session
    Show(TraceShowArgs),
    /// Verify the record; exits with 6 when a check fails
    Verify(VerifyArgs),
    /// Replay a session step by step, or show its state at one event
    Replay(ReplayArgs),
    /// Compare two sessions and list the differences
    Diff(DiffArgs),
    /// Export the record: as lines to verify, a table, a report or spans
    Export(ExportArgs),
    /// Import sessions that were recorded elsewhere, from JSON Lines; verifies them first
    Import(ImportArgs),
    /// Delete the content of events that are older than their retention; position, time and hash stay. The
    /// Atlases loaded when an event was recorded set its retention
    Prune(PruneArgs),
    /// Put a session under a legal hold: it is not pruned until you release it
    Hold(HoldArgs),
    /// End the legal hold of a session
    Release(ReleaseArgs),
    /// Print the newest signed head of the log, to keep it elsewhere
    Head(HeadArgs),
    /// Print the public key that verifies the record, or change the key
    Key(KeyArgs),
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct ImportArgs {
    /// File that `cra trace export` wrote
    pub(in crate::cli) file: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct PruneArgs {
    /// Atlas file or folder with a longer retention; repeatable. It never shortens the retention of the
    /// Atlases in the store
    #[arg(long, value_name = "PATH")]
    pub(in crate::cli) atlas: Vec<PathBuf>,

    /// Only show what would be pruned
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

    /// Reason for the hold, kept in the log
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

    /// Reason for the release, kept in the log
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(in crate::cli) reason: Option<String>,
}

/// A reason, which must not be empty.
fn reason(typed: &str) -> Result<String, String> {
    let reason = typed.trim();
    if reason.is_empty() {
        return Err("the reason must not be empty".to_owned());
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
    /// Change to a new key: the old key signs the change and is kept as cra.key.ID
    #[arg(long)]
    pub(in crate::cli) rotate: bool,

    /// Start a new key without the old one, because it is lost. The old key no longer verifies new records
    #[arg(long, conflicts_with = "rotate")]
    pub(in crate::cli) new: bool,

    /// Print the public key that verifies the console's answers: the `--key` of `cra hook`, `cra mcp-proxy`
    /// and `cra mcp`. It is derived from the signing key and changes with it
    #[arg(long)]
    pub(in crate::cli) answers: bool,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct TraceListArgs {
    /// List only this session; `log` is the governance log
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

    /// Largest number of events to show
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(in crate::cli) limit: usize,

    /// Print JSON, one event per line
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct VerifyArgs {
    /// Session to verify, or `log` for the governance log (default: all)
    pub(in crate::cli) session: Option<String>,

    /// Verify an exported file instead of the store; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) file: Option<PathBuf>,

    /// Compare with a head that was kept elsewhere: a file, or the text of `cra trace head`; repeatable
    #[arg(long, value_name = "HEAD")]
    pub(in crate::cli) known_head: Vec<String>,

    /// Public key of the record, as `cra trace key` prints it, or a file with it (default: the key next to
    /// the store)
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Help text about `--stop-on`, `--type` and the places of sessions.
const REPLAY: &str = "\
SESSION is a session of the store, or FILE:SESSION in a file that `cra trace export` wrote. `log`
is the governance log: Atlases, imports, prunes, holds, edits, alarms, keys and operators.

--type takes an event type, in which * matches any text: --type 'action_*'. The state still
includes all events. Events that are not shown do not stop the replay.

--stop-on takes type=PATTERN, checkpoint=PATTERN, action=PATTERN or text=TEXT, and is repeatable.
The replay stops at the first match and shows the state there.

The state at an event is computed only from the events up to it. The capabilities that a session
lacks from the start are in its Atlas. A running action leaves no record until it is completed.";

#[derive(Debug, ClapArgs)]
#[command(after_long_help = REPLAY)]
pub(in crate::cli) struct ReplayArgs {
    /// Session to replay
    #[arg(value_name = "SESSION")]
    pub(in crate::cli) session: String,

    /// Show the state after this event instead of the steps
    #[arg(long, value_name = "N", conflicts_with_all = ["types", "stop_on"])]
    pub(in crate::cli) at: Option<u64>,

    /// Show only events of this type; repeatable
    #[arg(long = "type", value_name = "PATTERN")]
    pub(in crate::cli) types: Vec<String>,

    /// Stop at the first event that matches; repeatable
    #[arg(long, value_name = "WHAT")]
    pub(in crate::cli) stop_on: Vec<StopCondition>,

    /// Do not verify the hash chain first
    #[arg(long)]
    pub(in crate::cli) no_verify: bool,

    /// Print JSON: one step per line, or the state
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct DiffArgs {
    /// First session: of the store, or `FILE:SESSION` in a file that `cra trace export` wrote
    #[arg(value_name = "A")]
    pub(in crate::cli) a: String,

    /// Second session
    #[arg(value_name = "B")]
    pub(in crate::cli) b: String,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ExportFormatArg {
    /// One event per line, in canonical JSON; the only format that can be verified
    Jsonl,
    /// A table for spreadsheets. An apostrophe precedes a cell that would run as a formula
    Csv,
    /// A report in one file, for readers without cra
    Html,
    /// Spans for trace viewers: OpenTelemetry OTLP as JSON
    Otlp,
    /// One decision per line, without ids, times and hashes: the same bytes for the same decisions
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
    /// Session to export, or `FILE:SESSION` in a file that `cra trace export` wrote (default: all)
    pub(in crate::cli) session: Option<String>,

    /// Format of the export
    #[arg(long, value_enum, default_value_t = ExportFormatArg::Jsonl)]
    pub(in crate::cli) format: ExportFormatArg,

    /// File to write; must not exist (default: standard output)
    #[arg(long, short, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,

    /// Print JSON about the written file
    #[arg(long, requires = "output")]
    pub(in crate::cli) json: bool,
}
