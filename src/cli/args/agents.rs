//! Arguments of commands for agents.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::{Map, Value};

use crate::base::id::{HeldRequestId, SessionId};
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

/// Behaviour of a hook while no console is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum OfflineArg {
    /// Deny every step
    Deny,
    /// Let the agent ask its own user if it can, otherwise deny
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

/// Scope of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ScopeArg {
    /// One project
    Project,
    /// All projects of this user
    User,
}

impl SettingsChangeArgs {
    /// Returns the scope: that of the user, unless a project is named.
    pub(in crate::cli) fn scope(&self) -> ConnectScope {
        match (self.scope, &self.dir) {
            (Some(scope), _) => scope.into(),
            (None, Some(_)) => ConnectScope::Project,
            (None, None) => ConnectScope::User,
        }
    }
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

    /// Seconds that the agent waits for this hook (default: the agent's own timeout). cra answers before
    /// that
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(in crate::cli) timer: Option<u64>,

    /// What to do when no console is running
    #[arg(long, value_enum, default_value_t = OfflineArg::Deny)]
    pub(in crate::cli) offline: OfflineArg,

    /// Public key that verifies the console's answers; without it every step is denied. `cra connect` writes
    /// it, and `cra trace key --answers` prints it
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<String>,

    /// API key, for an Atlas that requires one
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,
}

/// Help text of `cra answer`.
const ANSWER: &str = "\
An agent runs this command after a denied tool call, when a checkpoint with `respondent: agent` has
questions for it. The denial contains the command without the answers. The token is valid for one
session and one held request. After valid answers the agent repeats the tool call, and cra allows
it once.

A shell tool may run exactly the command of the denial: no checkpoint stops it. With anything else
on the command line, cra checks it like every other command.

Exit codes: 0 cra accepted the answers; 1 cra rejected them, or has more questions: standard output
says what to do.";

#[derive(Clone, Debug, ClapArgs)]
#[command(after_long_help = ANSWER)]
pub(in crate::cli) struct AnswerArgs {
    /// Session that the denial names
    #[arg(value_name = "SESSION")]
    pub(in crate::cli) session: SessionId,

    /// Held request, such as c-12
    #[arg(value_name = "GATE")]
    pub(in crate::cli) gate: HeldRequestId,

    /// Token from the denial
    #[arg(value_name = "TOKEN")]
    pub(in crate::cli) token: String,

    /// Answers as JSON, by checkpoint, then by question
    #[arg(value_name = "ANSWERS", value_parser = answers)]
    pub(in crate::cli) answers: Map<String, Value>,
}

fn answers(typed: &str) -> Result<Map<String, Value>, String> {
    json::read(typed.as_bytes()).map_err(|error| error.to_string())
}

/// Settings file to change, and options of the change.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct SettingsChangeArgs {
    /// The agent
    #[arg(value_name = "AGENT")]
    pub(in crate::cli) agent: CodingAgent,

    /// All projects of this user (default), or one project (default with --dir)
    #[arg(long, value_enum)]
    pub(in crate::cli) scope: Option<ScopeArg>,

    /// Project folder (default: the current folder)
    #[arg(long, value_name = "PROJECT")]
    pub(in crate::cli) dir: Option<PathBuf>,

    /// Write without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub(in crate::cli) yes: bool,

    /// Only show the change
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,

    /// Print JSON and ask nothing
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Help text of `cra connect`.
const CONNECT: &str = "\
Settings files:

  claude-code  .claude/settings.local.json   ~/.claude/settings.json
  codex        .codex/hooks.json             ~/.codex/hooks.json
  gemini       .gemini/settings.json         ~/.gemini/extensions/cra/hooks/hooks.json
  cursor       .cursor/hooks.json            ~/.cursor/hooks.json
  qwen         .qwen/settings.json           ~/.qwen/settings.json
  copilot      .github/hooks/cra.json        ~/.copilot/hooks/cra.json
  opencode     .opencode/plugin/cra.js       ~/.config/opencode/plugin/cra.js

CLAUDE_CONFIG_DIR, CODEX_HOME, QWEN_HOME, COPILOT_HOME and XDG_CONFIG_HOME move the user's files, as
they do for the agents. The file of opencode is a plugin that cra writes and removes as a whole.

cra changes only entries that run `cra hook AGENT`. It keeps the old content next to the file as
.cra-backup, and never overwrites a backup. It keeps comments and trailing commas in the settings
of Gemini and Qwen Code, and rejects them in other files, because those agents may ignore such a
file. A second run changes nothing; with another --timeout it changes only the entries of cra. The
console raises an alarm when an entry is edited or removed; `cra doctor` shows details.

Each entry contains the console's public key: the hook accepts only answers that this key verifies.
After a change of the key (`cra trace key --rotate` or `--new`) every step is denied until you
connect the agents again.";

#[derive(Debug, ClapArgs)]
#[command(after_long_help = CONNECT)]
pub(in crate::cli) struct ConnectArgs {
    #[command(flatten)]
    pub(in crate::cli) change: SettingsChangeArgs,

    /// Seconds that the agent waits for a decision; the hook answers before that
    #[arg(long, value_name = "SECONDS", default_value_t = 1800,
          value_parser = clap::value_parser!(u64).range(10..=86_400))]
    pub(in crate::cli) timeout: u64,

    /// What to do when no console is running
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
    after_help = "Exit codes: 0 no problem; 1 a problem: the console does not answer, another process answered in \
                  its place, a hook entry is missing, was edited or has another key, a program is missing or has \
                  another version, Codex does not trust a hook, a named agent is not connected, or no agent is."
)]
pub(in crate::cli) struct DoctorArgs {
    /// Agents to check (default: all)
    #[arg(value_name = "AGENT")]
    pub(in crate::cli) agents: Vec<CodingAgent>,

    /// Project folder (default: the current folder)
    #[arg(long, value_name = "PROJECT")]
    pub(in crate::cli) dir: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct AcpProxyArgs {
    /// Name of the agent in the record (default: the name of its program)
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) agent: Option<String>,

    /// Public key that verifies the console's answers; without it everything is denied. `cra trace key
    /// --answers` prints it
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<AnswerVerifier>,

    /// API key, for an Atlas that requires one
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,

    /// Command that starts the agent, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct McpProxyArgs {
    /// Name of the agent in the record
    #[arg(long, value_name = "NAME", default_value = "mcp-client")]
    pub(in crate::cli) agent: String,

    /// Name of the server in actions: mcp.SERVER.TOOL (default: the name of its program)
    #[arg(long, value_name = "SERVER", value_parser = server)]
    pub(in crate::cli) server: Option<String>,

    /// Public key that verifies the console's answers; without it every tool call is denied. `cra trace key
    /// --answers` prints it
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<AnswerVerifier>,

    /// API key, for an Atlas that requires one
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,

    /// Command that starts the server, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct McpArgs {
    /// Name of the agent in the record
    #[arg(long, value_name = "NAME", default_value = "mcp-client")]
    pub(in crate::cli) agent: String,

    /// Public key that verifies the console's answers; without it every action is denied. `cra trace key
    /// --answers` prints it
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) key: Option<AnswerVerifier>,

    /// API key, for an Atlas that requires one
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,
}

/// Name of a server. A dot in it would make its tools look like another server's.
fn server(typed: &str) -> Result<String, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if typed.is_empty() || !typed.chars().all(fits) {
        return Err("a server name may contain only letters, digits, `_` and `-`");
    }
    Ok(typed.to_owned())
}
