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
/// Without a command, cra opens the console. Agents request actions, checkpoints of the Atlas stop them,
/// and you approve or deny. Every step is recorded in a hash chain. `cra demo` runs simulated agents.
#[derive(Debug, Parser)]
#[command(
    name = "cra",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Exit codes: 0 ok, 1 failure, 2 usage or no terminal, 3 Atlas has errors, \
                  4 expectation failed, 5 denied, 6 hash chain broken."
)]
pub(super) struct CliArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,

    #[command(flatten)]
    pub(super) atlas: AtlasFileArgs,

    #[command(subcommand)]
    pub(super) command: Option<CliCommand>,
}

/// Options of all commands.
#[derive(Debug, ClapArgs)]
pub(super) struct CommonArgs {
    /// Folder of the store (default: cra in the user's data folder)
    #[arg(long, global = true, env = "CRA_DATA_DIR", value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,

    /// Socket where agents reach the console (default: cra/console.sock in the user's runtime folder, or
    /// run/ in the folder of --data-dir)
    #[arg(long, global = true, env = "CRA_SOCKET", value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,

    /// Name of the operator in the record (default: user@host). cra does not verify it
    #[arg(long, global = true, env = "CRA_OPERATOR", value_name = "NAME", value_parser = operator)]
    pub(super) operator: Option<String>,

    /// View only: decide nothing and write nothing to the record
    #[arg(long, global = true)]
    pub(super) read_only: bool,

    /// List of extensions that cra may call: modules, addresses and programs (default: extensions.yaml in
    /// the user's cra configuration folder, if it exists)
    #[arg(long, global = true, env = "CRA_EXTENSIONS", value_name = "FILE")]
    pub(super) extensions: Option<PathBuf>,

    /// Keep a copy of the record's signed head in this file, best on another disk or machine. cra compares
    /// an existing copy with the record
    #[arg(long, global = true, env = "CRA_HEAD_FILE", value_name = "FILE")]
    pub(super) head_file: Option<PathBuf>,

    /// Largest size of the record, such as 20GiB. At this size cra denies agents until you prune the record
    /// or raise the quota (default: the space on the disk)
    #[arg(long, global = true, env = "CRA_QUOTA", value_name = "SIZE", value_parser = crate::store::space::parse_size)]
    pub(super) quota: Option<u64>,

    /// Also accept agents over HTTP, at this local address: 127.0.0.1:PORT. Agents must send the token in
    /// the file that cra paths lists
    #[arg(long, global = true, env = "CRA_HTTP", value_name = "ADDRESS")]
    pub(super) http: Option<SocketAddr>,

    /// Draw borders with plain characters
    #[arg(long, global = true)]
    pub(super) ascii: bool,

    /// Print the console line by line, for screen readers
    #[arg(long, global = true)]
    pub(super) linear: bool,

    /// Colours for a dark or a light background (default: the theme in config.yaml, or detected from the
    /// terminal)
    #[arg(long, global = true, value_name = "THEME")]
    pub(super) theme: Option<ThemeArg>,
}

/// Background that the colours are for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ThemeArg {
    /// Detect it from the terminal
    Auto,
    /// Dark background
    Dark,
    /// Light background
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

/// Atlases to load.
#[derive(Debug, ClapArgs)]
pub(super) struct AtlasFileArgs {
    /// Atlas file or folder to load; repeatable (default: every Atlas in the user's cra/atlas configuration
    /// folder)
    #[arg(long = "atlas", value_name = "PATH", action = ArgAction::Append)]
    pub(super) files: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Open the console with an example Atlas and simulated agents
    Demo(DemoArgs),
    /// Run a scripted session against an Atlas and check the results; exits with 4 when an expectation
    /// fails
    Run(RunArgs),
    /// Read, verify, export and maintain the record
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// List the held requests, or show one in full
    Queue(QueueArgs),
    /// List the notices that stewards have not received yet
    Notices(NoticesArgs),
    /// Reconstruct a saved conversation: print the text that the next agent starts with
    Reconstruct(ReconstructArgs),
    /// Write the state of a session to a snapshot file, for the next agent
    Snapshot(SnapshotArgs),
    /// Process turns of a conversation: classify and record each turn, and update the memento
    Turn(TurnArgs),
    /// Show threads of conversations, and whether their summaries are frozen
    Thread {
        #[command(subcommand)]
        command: ThreadCommand,
    },
    /// Write, check and test an Atlas, or explain what it would do
    Atlas {
        #[command(subcommand)]
        command: AtlasCommand,
    },
    /// Answer a hook of an agent: read the payload from standard input, print the answer in the agent's
    /// format
    Hook(HookArgs),
    /// Answer a checkpoint as an agent, from its shell. A denial of `cra hook` contains the whole command
    Answer(AnswerArgs),
    /// Connect an agent: add hooks to its settings, so that it asks cra before each step. Shows the change
    /// first
    Connect(ConnectArgs),
    /// Remove the hooks of cra from an agent's settings. Shows the change first
    Disconnect(DisconnectArgs),
    /// Check the console and the connected agents, and list the limits of each agent; exits with 1 on a
    /// problem
    Doctor(DoctorArgs),
    /// Run a proxy in front of an MCP server: the console decides about every tool call first
    McpProxy(McpProxyArgs),
    /// Run a proxy in front of an agent that an editor starts (Agent Client Protocol): the console decides
    /// about its permissions, files and terminals first
    AcpProxy(AcpProxyArgs),
    /// Run an MCP server on standard input and output, with tools for an agent that asks before it acts
    Mcp(McpArgs),
    /// List the folders and files that cra uses
    Paths(PathsArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for each command
    Man(Man),
}

#[derive(Debug, ClapArgs)]
pub(super) struct QueueArgs {
    /// Held request to show, such as c-12
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
    /// Shell that the script is for
    pub(super) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Man {
    /// Folder for the pages, one per command, e.g. ~/.local/share/man/man1
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DemoArgs {
    /// Atlas file or folder to load instead of the example
    #[arg(long, value_name = "PATH")]
    pub(super) atlas: Option<PathBuf>,

    /// JSON script of the simulated agents, instead of the example
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
}

/// Help text about the scenario format; a test plays its example.
const SCENARIO: &str = "\
A scenario names its Atlas or a list of Atlases, relative to its own folder:

  atlas: acme-support.yaml
  extensions:                         # optional
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
  leave: { action: ticket.get }                         the waiting agent disconnects
  context: { query: 'the rules', hints: [ID] }          or checkpoint: ID (interactive)
  feedback: { context_id: ID, helpful: true, reason: 'short', usage_outcome: applied }
  output: { text: 'three closed', output_type: text, contains_action: false }
  error: { type: timeout, code: E1, message: slow, recoverable: true, stack_trace: 'at a.rs:1' }
  recovered: { method: retry, success: true }           after the last error of the session
  policy: { action: ticket.get, params: { id: 1 } }     the answer that a handler gets
  answer: { gate: ID, answers: { CHECKPOINT: { QUESTION: 'because' } } }   the agent answers
  resolve: { input: 'close it' }                        the agent asks for its permissions
  turn: { message_id: m-1, message: 'hurry', proposed: { arc: 'dedupe' } }   see cra turn --help
  edit: { thread: s-1, summary: { arc: 'wait' } }       an operator edits a summary (no session)
  wrapper_constructed: { wrapper_version: '1', components: [gate], transport: direct, capabilities: {...} }
  wrapper_verified: { verification_passed: true, tests_run: [entries] }

A scripted extension is a trigger, a handler or a validator. It always answers `with` the same JSON,
or it `fails: REASON`. A scenario calls no external extension and ignores the operator's list.
A request with `resolution: last` uses the last resolution of its session; any other text is the
identifier of a resolution.

Name a gate by its checkpoint, its policy or its number (c-1); if several match, the oldest is used.
`answers: good` generates valid answers. `pass` also takes `justification: TEXT`, and `pass` and
`deny` take `operator: NAME`; `start` takes `version: TEXT`, `end` takes `summary: TEXT`.

`expect` also takes:

  allowed: true                    for request and answer
  accepted: true                   for input, context, error and answer
  contexts: [ID]                   contexts that the agent got
  not_given: [ID]                  contexts that the agent requested by name and did not get
  guidance_contains: TEXT          text in the guidance that the agent got
  guidance: [{ FIELD: VALUE }]     all guidance, in order; checkpoint_id is a field, too
  withdrawn: [CHECKPOINT]          checkpoints whose guidance no longer applies
  asked: [CHECKPOINT]              checkpoints whose questions the agent must answer
  modified_input: TEXT             the input after a handler changed it
  resolved: { allowed: [ACTION], denied: [ACTION] }
  released: [ACTION]               earlier requests that may run now
  reason_contains: TEXT            text in the reason of a denial; help_contains: text in its help
  decision: must                   for turn: must, should, skip; also rule: 1, frozen: true, arc: TEXT
  summary: updated                 for turn: updated, or the recorded reason why not (kept_at_peak)
  verdict: deny                    for policy: allow, deny or require_approval; also policy_id: ID
  cached: true                     the policy's answer, or the input's keywords, came from a cache
  records: [EVENT]                 recorded, in any order
  recorded: [EVENT, { EVENT: { FIELD: VALUE } }]     recorded in this order, others may be between
  not_recorded: [EVENT]            not recorded
  synced: [EVENT]                  on disk before the agent is answered
  not_synced: [EVENT]              recorded without waiting for the disk

Lists must match exactly. Lists of events, and a `settled` that is not empty, may leave out others.
Time starts at 2026-01-01T00:00:00Z and moves only with `wait`.";

#[derive(Debug, ClapArgs)]
#[command(after_long_help = SCENARIO)]
pub(super) struct RunArgs {
    /// Scenario file, YAML or JSON
    #[arg(value_name = "SCENARIO")]
    pub(super) scenario: PathBuf,

    /// Print JSON, a list of steps
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum AtlasCommand {
    /// Report every problem with its location and advice; exits with 3 on an error
    Lint(LintArgs),
    /// Explain the decision about a request or an input, by checkpoint and policy
    Explain(ExplainArgs),
    /// Run scenarios and report failures; exits with 4 when one fails
    Test(AtlasTestArgs),
    /// Write an example Atlas to start from
    Init(AtlasInitArgs),
    /// List the checkpoint types and risk tiers, with their meaning
    Types(AtlasTypesArgs),
    /// Print the JSON Schema of an Atlas, for editors
    Schema,
}

#[derive(Debug, ClapArgs)]
pub(super) struct AtlasTestArgs {
    /// Scenario files or folders; cra run --help shows an example
    #[arg(required = true, value_name = "PATH")]
    pub(super) scenarios: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct AtlasInitArgs {
    /// File to write (default: in the folder of Atlases that cra loads without --atlas)
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// Example to write
    #[arg(long, value_enum, default_value = "coding-agents")]
    pub(super) example: ExampleAtlas,
}

/// An example Atlas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ExampleAtlas {
    /// For coding agents: asks before actions that cannot be undone or leave the machine
    CodingAgents,
    /// For a support team: uses every part of the format
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
    /// Atlas files or folders to load together
    #[arg(required = true, value_name = "PATH")]
    pub(super) files: Vec<PathBuf>,

    /// Action that the agent requests
    #[arg(long, value_name = "ID")]
    pub(super) action: Option<String>,

    /// Parameters of the action, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "action")]
    pub(super) params: String,

    /// Input text for the agent
    #[arg(long, value_name = "TEXT")]
    pub(super) input: Option<String>,

    /// Session, a JSON object with any of agent, intent, unlocked, locked, actions (number of actions so far)
    /// and `age_seconds`
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(super) session: String,

    /// Agent that sends the request
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,

    /// Capability that the session has unlocked; repeatable
    #[arg(long, value_name = "ID")]
    pub(super) unlocked: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct LintArgs {
    /// Atlas files or folders
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
