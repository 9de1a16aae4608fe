//! Arguments of commands for agents.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::{Map, Value};

use crate::base::id::{GateId, SessionId};
use crate::base::json;
use crate::gateway::agents::CodingAgent;
use crate::gateway::connect::ConnectScope;
use crate::gateway::hook::OfflineBehavior;
use crate::gateway::protocol::proof::AnswerVerifier;

impl ValueEnum for CodingAgent {
    fn value_variants<'a>() -> &'a [Self] {
        const { &Self::ALL }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.as_str()).help(self.adapter().title()))
    }
}

/// What is done when no console is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OfflineArg {
    /// Nothing is allowed
    Deny,
    /// The agent asks its own user, where it can; nothing is allowed where it cannot
    Ask,
}

impl From<OfflineArg> for OfflineBehavior {
    fn from(offline: OfflineArg) -> Self {
        match offline {
            OfflineArg::Deny => Self::Deny,
            OfflineArg::Ask => Self::Ask,
        }
    }
}

/// For whom an agent is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ScopeArg {
    /// For one project
    Project,
    /// For everything this user does
    User,
}

impl From<ScopeArg> for ConnectScope {
    fn from(scope: ScopeArg) -> Self {
        match scope {
            ScopeArg::Project => Self::Project,
            ScopeArg::User => Self::User,
        }
    }
}

#[derive(Clone, Debug, ClapArgs)]
pub(in crate::cli) struct HookArgs {
    /// The agent that runs the hook
    #[arg(value_name = "AGENT")]
    pub(in crate::cli) agent: CodingAgent,

    /// How long the agent waits for this hook, in seconds (default: what it does by itself). The answer
    /// comes before that
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(in crate::cli) timer: Option<u64>,

    /// What is done when no console is running
    #[arg(long, value_enum, default_value_t = OfflineArg::Deny)]
    pub(in crate::cli) offline: OfflineArg,

    /// Public key that the console's answers are verified with; without it nothing is allowed. `cra connect`
    /// writes it, and `cra trace key --answers` prints it
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<String>,

    /// What is shown to be let in, where an Atlas wants to see a key
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,
}

/// Help text of `cra answer`.
const ANSWER: &str = "\
An agent runs this when a tool call was denied because a checkpoint with `respondent: agent` has questions for it. The
denial has the command with everything but the answers. The token is good for one session at one held request. After
valid answers the agent repeats the same tool call, and it is let through once.

A shell tool that runs exactly this command, as the denial has it, is not held itself: no checkpoint is asked about it.
With anything else on the command line it is judged like every other command.

Exit codes: 0 the answers were taken; 1 they were not, or more has to be answered: standard output says what to do.";

#[derive(Clone, Debug, ClapArgs)]
#[command(after_long_help = ANSWER)]
pub(in crate::cli) struct AnswerArgs {
    /// The session, as the denial names it
    #[arg(value_name = "SESSION")]
    pub(in crate::cli) session: SessionId,

    /// The held request, such as c-12
    #[arg(value_name = "GATE")]
    pub(in crate::cli) gate: GateId,

    /// The token that the denial has
    #[arg(value_name = "TOKEN")]
    pub(in crate::cli) token: String,

    /// JSON: answers by checkpoint, then by question
    #[arg(value_name = "ANSWERS", value_parser = answers)]
    pub(in crate::cli) answers: Map<String, Value>,
}

fn answers(typed: &str) -> Result<Map<String, Value>, String> {
    json::read(typed.as_bytes()).map_err(|error| error.to_string())
}

/// Which settings file, and how it is changed.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct SettingsChangeArgs {
    /// The agent
    #[arg(value_name = "AGENT")]
    pub(in crate::cli) agent: CodingAgent,

    /// For one project, or for everything this user does
    #[arg(long, value_enum, default_value_t = ScopeArg::Project)]
    pub(in crate::cli) scope: ScopeArg,

    /// The project (default: the folder this is run in)
    #[arg(long, value_name = "PROJECT")]
    pub(in crate::cli) dir: Option<PathBuf>,

    /// Write without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub(in crate::cli) yes: bool,

    /// Only show what would change
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,

    /// Print JSON; nothing is asked then
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Help text of `cra connect`.
const CONNECT: &str = "\
Settings files:

  claude-code  .claude/settings.local.json   ~/.claude/settings.json
  codex        .codex/hooks.json             ~/.codex/hooks.json
  gemini       .gemini/settings.json         ~/.gemini/settings.json
  cursor       .cursor/hooks.json            ~/.cursor/hooks.json
  copilot      .github/hooks/cra.json        ~/.copilot/hooks/cra.json

CLAUDE_CONFIG_DIR, CODEX_HOME and COPILOT_HOME move the user's files, as they do for the agents.

Only entries that run `cra hook AGENT` are changed; everything else stays as it is written. What was there
is kept beside the file as .cra-backup, and no backup is ever written over. A file with comments or trailing
commas is refused: they could not be kept. Running it again changes nothing; with another --timeout only
our entries. The console raises an alarm when an entry is edited or removed; `cra doctor` says more.

Each entry has the console's public key: the hook believes no answer but one that this key proves. After the
key was changed (`cra trace key --rotate` or `--new`) every step is denied until agents are connected again.";

#[derive(Debug, ClapArgs)]
#[command(after_long_help = CONNECT)]
pub(in crate::cli) struct ConnectArgs {
    #[command(flatten)]
    pub(in crate::cli) change: SettingsChangeArgs,

    /// How long the agent waits where something may be held, in seconds; the hook answers before that
    #[arg(long, value_name = "SECONDS", default_value_t = 1800,
          value_parser = clap::value_parser!(u64).range(10..=86_400))]
    pub(in crate::cli) timeout: u64,

    /// What is done when no console is running
    #[arg(long, value_enum, default_value_t = OfflineArg::Deny)]
    pub(in crate::cli) offline: OfflineArg,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct DisconnectArgs {
    #[command(flatten)]
    pub(in crate::cli) change: SettingsChangeArgs,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit codes: 0 all is well; 1 something is wrong: no console answers, another process answered in \
                  its place, an entry is missing, was edited or pins another key, a program is gone or of another \
                  version, Codex does not trust a hook, an agent that was named is not connected, or none is."
)]
pub(in crate::cli) struct DoctorArgs {
    /// Agents to look at (default: all)
    #[arg(value_name = "AGENT")]
    pub(in crate::cli) agents: Vec<CodingAgent>,

    /// The project (default: the folder this is run in)
    #[arg(long, value_name = "PROJECT")]
    pub(in crate::cli) dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct McpProxyArgs {
    /// The agent that uses the server, as the record names it
    #[arg(long, value_name = "NAME", default_value = "mcp-client")]
    pub(in crate::cli) agent: String,

    /// What actions call the server: its tools are asked for as mcp.SERVER.TOOL (default: the name of its
    /// program)
    #[arg(long, value_name = "SERVER", value_parser = server)]
    pub(in crate::cli) server: Option<String>,

    /// Public key that the console's answers are verified with; without it no tool is used. `cra trace key
    /// --answers` prints it
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<AnswerVerifier>,

    /// What is shown to be let in, where an Atlas wants to see a key
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,

    /// The server, and what it is started with
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct McpArgs {
    /// The agent that uses the tools, as the record names it
    #[arg(long, value_name = "NAME", default_value = "mcp-client")]
    pub(in crate::cli) agent: String,

    /// Public key that the console's answers are verified with; without it nothing is allowed. `cra trace key
    /// --answers` prints it
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<AnswerVerifier>,

    /// What is shown to be let in, where an Atlas wants to see a key
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,
}

/// Name of a server. A dot in it would make its tools look like another server's.
fn server(typed: &str) -> Result<String, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if typed.is_empty() || !typed.chars().all(fits) {
        return Err("a server's name has letters, digits, `_` and `-`");
    }
    Ok(typed.to_owned())
}
