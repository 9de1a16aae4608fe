//! Commands for agents.

use std::ffi::OsString;

use clap::{Args as ClapArgs, ValueEnum};

use crate::gateway::hook::Host;

/// An agent that runs hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum AgentArg {
    /// Claude Code
    ClaudeCode,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// Cursor
    Cursor,
    /// GitHub Copilot
    Copilot,
}

impl From<AgentArg> for Host {
    fn from(agent: AgentArg) -> Self {
        match agent {
            AgentArg::ClaudeCode => Self::ClaudeCode,
            AgentArg::Codex => Self::Codex,
            AgentArg::Gemini => Self::Gemini,
            AgentArg::Cursor => Self::Cursor,
            AgentArg::Copilot => Self::Copilot,
        }
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

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct Hook {
    /// The agent that runs the hook
    #[arg(value_name = "AGENT")]
    pub(in crate::cli) agent: AgentArg,

    /// How long the agent waits for this hook, in seconds (default: what it does by itself). The answer
    /// comes before that
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(in crate::cli) timer: Option<u64>,

    /// What is done when no console is running
    #[arg(long, value_enum, default_value_t = OfflineArg::Deny)]
    pub(in crate::cli) offline: OfflineArg,

    /// What is shown to be let in, where an Atlas wants to see a key
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct McpProxy {
    /// The agent that uses the server, as the record names it
    #[arg(long, value_name = "NAME", default_value = "mcp-client")]
    pub(in crate::cli) agent: String,

    /// What actions call the server: its tools are asked for as mcp.SERVER.TOOL (default: the name of its
    /// program)
    #[arg(long, value_name = "SERVER", value_parser = server)]
    pub(in crate::cli) server: Option<String>,

    /// What is shown to be let in, where an Atlas wants to see a key
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,

    /// The server, and what it is started with
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct Mcp {
    /// The agent that uses the tools, as the record names it
    #[arg(long, value_name = "NAME", default_value = "mcp-client")]
    pub(in crate::cli) agent: String,

    /// What is shown to be let in, where an Atlas wants to see a key
    #[arg(long, env = "CRA_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(in crate::cli) api_key: Option<String>,
}

/// The name of a server. A dot in it would make its tools another server's.
fn server(typed: &str) -> Result<String, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if typed.is_empty() || !typed.chars().all(fits) {
        return Err("a server's name has letters, digits, `_` and `-`");
    }
    Ok(typed.to_owned())
}
