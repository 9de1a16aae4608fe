//! Arguments of the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::base::operator::{OperatorNameError, parse_operator_name};
use crate::console::Theme;

mod agents;
mod common_options;
mod notices;
mod reconstruct;
mod trace;
mod turns;

pub(super) use agents::*;
pub(super) use common_options::help;
pub(super) use notices::*;
pub(super) use reconstruct::*;
pub(super) use trace::*;
pub(super) use turns::*;

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
    after_help = "Exit codes: 0 ok, 1 failure, 2 usage or no terminal, 3 Atlas with errors, \
                  4 expectation failed, 5 denied, 6 chain broken."
)]
pub(super) struct CliArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    #[command(flatten)]
    pub(super) atlas: AtlasFileArgs,

    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
}

/// What every command takes.
#[derive(Debug, ClapArgs)]
pub(super) struct CommonArgs {
    /// Folder of the store (default: cra in the user's data folder)
    #[arg(long, global = true, env = "CRA_DATA_DIR", value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,

    /// Where agents reach the console (default: cra/console.sock in the user's runtime folder, or run/ in
    /// the folder of a store that is named)
    #[arg(long, global = true, env = "CRA_SOCKET", value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,

    /// Who decides, as the record names them (default: user@host). A name is claimed, not proven
    #[arg(long, global = true, env = "CRA_OPERATOR", value_name = "NAME", value_parser = operator)]
    pub(super) operator: Option<String>,

    /// Look, but decide nothing, and write nothing to the record
    #[arg(long, global = true)]
    pub(super) read_only: bool,

    /// Extensions that may be asked: modules, addresses and programs (default: extensions.yaml in the
    /// user's cra configuration folder, if it is there)
    #[arg(long, global = true, env = "CRA_EXTENSIONS", value_name = "FILE")]
    pub(super) extensions: Option<PathBuf>,

    /// Keep a copy of the record's signed head in this file: best on another disk or machine. What there
    /// is of it is held against the record
    #[arg(long, global = true, env = "CRA_HEAD_FILE", value_name = "FILE")]
    pub(super) head_file: Option<PathBuf>,

    /// Largest size of the record, such as 20GiB. When it is reached, agents are denied until the record is
    /// pruned or the quota raised (default: as much as the disk holds)
    #[arg(long, global = true, env = "CRA_QUOTA", value_name = "SIZE", value_parser = crate::store::space::parse_size)]
    pub(super) quota: Option<u64>,

    /// Let agents in by HTTP as well, at this address of this machine: 127.0.0.1:PORT. They show the token
    /// that cra paths names
    #[arg(long, global = true, env = "CRA_HTTP", value_name = "ADDRESS")]
    pub(super) http: Option<SocketAddr>,

    /// Draw borders with plain characters
    #[arg(long, global = true)]
    pub(super) ascii: bool,

    /// Open the console line by line, for screen readers: nothing is painted
    #[arg(long, global = true)]
    pub(super) linear: bool,

    /// Colours for a dark or a light background (default: what config.yaml says, or what the terminal
    /// says about itself)
    #[arg(long, global = true, value_name = "THEME")]
    pub(super) theme: Option<ThemeArg>,
}

/// Colours for which background.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ThemeArg {
    /// What the terminal says about itself
    Auto,
    /// A dark one
    Dark,
    /// A light one
    Light,
}

impl From<ThemeArg> for Theme {
    fn from(theme: ThemeArg) -> Self {
        match theme {
            ThemeArg::Auto => Self::Auto,
            ThemeArg::Dark => Self::Dark,
            ThemeArg::Light => Self::Light,
        }
    }
}

/// Which Atlases are in force.
#[derive(Debug, ClapArgs)]
pub(super) struct AtlasFileArgs {
    /// Atlas in force, or a folder of them; may be given several times (default: every Atlas in the
    /// user's cra/atlas configuration folder)
    #[arg(long = "atlas", value_name = "PATH", action = ArgAction::Append)]
    pub(super) files: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Open the console with an example Atlas and simulated agents that keep asking
    Demo(DemoArgs),
    /// Run a scripted session against an Atlas and check what comes of it; exits with 4 when an
    /// expectation fails
    Run(RunArgs),
    /// Read, verify, hand over and look after the record
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// List the requests that are held, or show one of them whole
    Queue(QueueArgs),
    /// List what stewards asked to be told of and have not heard yet
    Notices(NoticesArgs),
    /// Take a saved conversation through the reconstruction protocol: the text that the next agent
    /// begins with
    Reconstruct(ReconstructArgs),
    /// Write where a session stands as a snapshot file, for whoever takes it up
    Snapshot(SnapshotArgs),
    /// Take turns of a conversation: classify each, record it, and keep the memento behind it
    Turn(TurnArgs),
    /// Read what conversations have come to, and whether their summaries are frozen
    Thread {
        #[command(subcommand)]
        command: ThreadCommand,
    },
    /// Check an Atlas, or ask what it would do
    Atlas {
        #[command(subcommand)]
        command: AtlasCommand,
    },
    /// Answer a hook of an agent: its payload comes on standard input, and the answer goes out in its own
    /// format
    Hook(HookArgs),
    /// Answer a checkpoint for an agent, from its shell: a denial of `cra hook` has the whole command
    Answer(AnswerArgs),
    /// Have an agent ask here before each step: put hooks into its settings. Shows the change first
    Connect(ConnectArgs),
    /// Take those hooks out again. Shows the change first
    Disconnect(DisconnectArgs),
    /// Say whether the console answers, which agents are connected, and what each can be held to; exits
    /// with 1 when something is wrong
    Doctor(DoctorArgs),
    /// Stand in front of an MCP server: every use of its tools is asked for at the console first
    McpProxy(McpProxyArgs),
    /// Be an MCP server, on standard input and output: tools for an agent that asks before it acts
    Mcp(McpArgs),
    /// Say which folders and files are used
    Paths(PathsArgs),
    /// Print a script that completes commands in a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for each command
    Man(Man),
}

#[derive(Debug, ClapArgs)]
pub(super) struct QueueArgs {
    /// One of them, by its number: c-12
    #[arg(value_name = "GATE")]
    pub(super) gate: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct PathsArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Man {
    /// Folder for one page of each command, e.g. ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DemoArgs {
    /// Atlas in force, or a folder of them, instead of the example
    #[arg(long, value_name = "PATH")]
    pub(super) atlas: Option<PathBuf>,

    /// Who asks for what, as JSON, instead of the example
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
}

/// Help text about the scenario format; a test plays its example.
const SCENARIO: &str = "\
A scenario names its Atlas, or a list of them, relative to its own folder:

  atlas: acme-support.yaml
  extensions:                         # may be left out
  - { name: is-ticket, answers: validator, with: true }
  steps:
  - start: { session: s-1, agent: bot, intent: 'close tickets' }
    expect: { held: [onboarding] }
  - pass: { gate: onboarding, answers: { agree-terms: true } }
    expect: { outcome: passed, records: [checkpoint_passed] }
  - request: { session: s-1, action: ticket.delete, params: { id: 1 } }
    expect: { held: [admin-gate, delete-confirm, high-risk-gate, require-admin-approval] }
  - wait: 300
    expect: { settled: { gate: delete-confirm, outcome: expired }, denied: expired }
  - deny: { gate: delete-confirm, reason: 'too late' }
    expect: { outcome: refused, reason_contains: was expired }
  - end: { session: s-1, status: completed }

Further steps, each with its session:

  input: { text: 'I want a refund', source: user }      source may be system or other_agent
  complete: { action: ticket.get, result: 'found' }     or error: { code: E1, message: gone }
  leave: { action: ticket.get }                         whoever waits for it stops waiting
  context: { query: 'the rules', hints: [ID] }          or checkpoint: ID, an interactive one
  feedback: { context_id: ID, helpful: true, reason: 'short', usage_outcome: applied }
  output: { text: 'three closed', output_type: text, contains_action: false }
  error: { type: timeout, code: E1, message: slow, recoverable: true, stack_trace: 'at a.rs:1' }
  recovered: { method: retry, success: true }           from the last error of the session
  policy: { action: ticket.get, params: { id: 1 } }     what a handler hears about an action
  answer: { gate: ID, answers: { CHECKPOINT: { QUESTION: 'because' } } }   the agent answers itself
  resolve: { input: 'close it' }                        the agent asks what it may do
  turn: { message_id: m-1, message: 'hurry', proposed: { arc: 'dedupe' } }   as cra turn --help says
  edit: { thread: s-1, summary: { arc: 'wait' } }       an operator edits a summary (no session)
  wrapper_constructed: { wrapper_version: '1', components: [gate], transport: direct, capabilities: {...} }
  wrapper_verified: { verification_passed: true, tests_run: [entries] }

An extension answers as a trigger, a handler or a validator: always `with` the same JSON, or it
`fails: REASON`. Nothing outside is asked, and the operator's list does not count. A request with
`resolution: last` relies on what its session was told last; any other text is an identifier.

A gate goes by its checkpoint, its policy or its number (c-1); of several the oldest is meant.
`answers: good` makes up answers that keep the rules. `pass` also takes `justification: TEXT`, and
`pass` and `deny` take `operator: NAME`; `start` takes `version: TEXT`, `end` takes `summary: TEXT`.

`expect` also takes `allowed: true`
(request, answer), `accepted: true` (input, context, error, answer), `contexts: [ID]` and
`guidance_contains: TEXT` (what was handed over), `guidance: [{ FIELD: VALUE }]` (all guidance that
was handed over, in order; fields: checkpoint_id and those of the Atlas), `withdrawn: [CHECKPOINT]`
(whose guidance no longer holds), `asked: [CHECKPOINT]` (what the agent itself is asked), `modified_input: TEXT`,
`resolved: { allowed: [ACTION], denied: [ACTION] }`, and `released: [ACTION]`, what was asked for
earlier and may run now. Of a turn: `decision: must` (or should, skip), `rule: 1`, `frozen: true`,
`arc: TEXT`, and `summary: updated`, or as the record calls why it was kept (kept_at_peak). Of a
policy: `verdict: deny` (or allow, require_approval) and `policy_id: ID`. `cached: true` says that a
policy's answer, or the keywords of an input, came from a cache. Of a denial:
`reason_contains: TEXT` and `help_contains: TEXT`. Of the record: `records: [EVENT]`, in any order,
`recorded: [EVENT, { EVENT: { FIELD: VALUE } }]`, in this order with others between them,
`not_recorded: [EVENT]`, `synced: [EVENT]`, on disk before the agent is answered, and
`not_synced: [EVENT]`, recorded without a wait.
`not_given: [ID]` are contexts that were asked for by name and not handed over. Lists are exact, but
those of the record and a `settled` that is not empty only have to be among what came. Time begins on 2026-01-01T00:00:00Z and moves only with `wait`.";

#[derive(Debug, ClapArgs)]
#[command(after_long_help = SCENARIO)]
pub(super) struct RunArgs {
    /// The scenario, YAML or JSON
    #[arg(value_name = "SCENARIO")]
    pub(super) scenario: PathBuf,

    /// Print JSON, a list of steps
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum AtlasCommand {
    /// Report every problem with its place, and advice; exits with 3 when there is an error
    Lint(LintArgs),
    /// Say what would come of a request or of input, and what each checkpoint and policy made of it
    Explain(ExplainArgs),
    /// Play scenarios and say which hold; exits with 4 when one does not
    Test(AtlasTestArgs),
    /// Write a first Atlas, to begin with
    Init(AtlasInitArgs),
    /// List every checkpoint type and every tier of risk, and what they are for
    Types(AtlasTypesArgs),
    /// Print the JSON Schema of an Atlas, for editors
    Schema,
}

#[derive(Debug, ClapArgs)]
pub(super) struct AtlasTestArgs {
    /// Scenarios, or folders of them; cra run --help shows one
    #[arg(required = true, value_name = "PATH")]
    pub(super) scenarios: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct AtlasInitArgs {
    /// Where to write it (default: the folder whose Atlases are in force when none is named)
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// What to begin with
    #[arg(long, value_enum, default_value = "coding-agents")]
    pub(super) example: ExampleAtlas,
}

/// An Atlas to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ExampleAtlas {
    /// For agents that write code: asks before what cannot be undone or leaves the machine
    CodingAgents,
    /// A support desk, with every part of the format
    AcmeSupport,
}

#[derive(Debug, ClapArgs)]
pub(super) struct AtlasTypesArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("what").args(["action", "input"]).required(true).multiple(true))]
pub(super) struct ExplainArgs {
    /// Atlases, or folders of them, all in force
    #[arg(required = true, value_name = "PATH")]
    pub(super) files: Vec<PathBuf>,

    /// The action asked for
    #[arg(long, value_name = "ID")]
    pub(super) action: Option<String>,

    /// Its parameters, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "action")]
    pub(super) params: String,

    /// Text that the agent is given
    #[arg(long, value_name = "TEXT")]
    pub(super) input: Option<String>,

    /// The session, as a JSON object with any of agent, intent, unlocked, locked, actions (how many
    /// have run) and `age_seconds`
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(super) session: String,

    /// The agent that asks
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,

    /// Capability that the session has unlocked; may be given several times
    #[arg(long, value_name = "ID")]
    pub(super) unlocked: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct LintArgs {
    /// Atlases, or folders of them
    #[arg(required = true, value_name = "PATH")]
    pub(super) files: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Operator name in recorded form; an empty name counts as absent.
fn operator(typed: &str) -> Result<String, OperatorNameError> {
    match parse_operator_name(typed) {
        Err(OperatorNameError::Empty) => Ok(String::new()),
        named => named,
    }
}
