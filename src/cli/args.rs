//! What can be typed.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand};

/// A terminal governance console for AI agents.
///
/// Without a command it opens the console: agents ask, gates of the Atlas hold them, you answer, and
/// everything is recorded in a hash chain. `cra demo` shows it with simulated agents.
#[derive(Debug, Parser)]
#[command(
    name = "cra",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 ok, 1 failure, 2 usage or no terminal, 3 Atlas with errors, 5 denied, \
                  6 chain broken."
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) common: Common,

    #[command(flatten)]
    pub(super) atlas: AtlasFiles,

    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

/// What every command takes.
#[derive(Debug, ClapArgs)]
pub(super) struct Common {
    /// Folder of the store (default: cra in the user's data folder)
    #[arg(long, global = true, env = "CRA_DATA_DIR", value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,

    /// Who decides, as the record names them (default: user@host)
    #[arg(long, global = true, env = "CRA_OPERATOR", value_name = "NAME")]
    pub(super) operator: Option<String>,

    /// Look, but decide nothing
    #[arg(long, global = true)]
    pub(super) read_only: bool,

    /// Draw borders with plain characters
    #[arg(long, global = true)]
    pub(super) ascii: bool,
}

/// Which Atlases are in force.
#[derive(Debug, ClapArgs)]
pub(super) struct AtlasFiles {
    /// Atlas in force; may be given several times (default: every Atlas in the user's cra/atlas
    /// configuration folder)
    #[arg(long = "atlas", value_name = "FILE", action = ArgAction::Append)]
    pub(super) files: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Open the console with an example Atlas and simulated agents that keep asking
    Demo(Demo),
    /// Read and verify the record
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Check an Atlas
    Atlas {
        #[command(subcommand)]
        command: AtlasCommand,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct Demo {
    /// Atlas in force, instead of the example
    #[arg(long, value_name = "FILE")]
    pub(super) atlas: Option<PathBuf>,

    /// Who asks for what, as JSON, instead of the example
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum TraceCommand {
    /// List the sessions on record, newest first
    List(List),
    /// Show the events of a session
    Show(Show),
    /// Check that chains hold; exits with 6 when one does not
    Verify(Verify),
    /// Write events as JSON Lines, one event a line
    Export(Export),
}

#[derive(Debug, ClapArgs)]
pub(super) struct List {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Show {
    /// The session
    pub(super) session: String,

    /// First event to show
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) from: u64,

    /// Most events to show
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) limit: usize,

    /// Print JSON, one event a line
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Verify {
    /// The session; all when absent
    pub(super) session: Option<String>,

    /// Check an exported file instead of the store; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "session")]
    pub(super) file: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Export {
    /// The session; all when absent
    pub(super) session: Option<String>,

    /// File to write; standard output when absent. A file that exists is left alone
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum AtlasCommand {
    /// Report every problem with its place; exits with 3 when there is an error
    Lint(Lint),
    /// Say what would happen to a request, and what each checkpoint and policy made of it
    Explain(Explain),
}

#[derive(Debug, ClapArgs)]
pub(super) struct Explain {
    /// Atlas files, all in force
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,

    /// The action asked for
    #[arg(long, value_name = "ID")]
    pub(super) action: String,

    /// Its parameters, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(super) params: String,

    /// The agent that asks
    #[arg(long, value_name = "NAME", default_value = "agent")]
    pub(super) agent: String,

    /// Capability that the session has unlocked; may be given several times
    #[arg(long, value_name = "ID")]
    pub(super) unlocked: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Lint {
    /// Atlas files
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
