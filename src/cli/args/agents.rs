//! Commands for agents.

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
