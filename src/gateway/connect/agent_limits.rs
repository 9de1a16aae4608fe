//! Limits of the control over each agent. The agents' makers set them; `cra` cannot change them.

use crate::gateway::hook::Host;

/// Limits of the control over an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Reaction of the agent to a late hook.
    pub on_late_hook: &'static str,
    /// Reaction of the agent to a hook that cannot be run or dies.
    pub on_broken_hook: &'static str,
    /// Tells whether the agent can ask its own user.
    pub asks_user: &'static str,
    /// Steps for which no hook is called.
    pub uncovered: &'static str,
}

/// Returns the limits of a connected agent.
#[must_use]
pub fn agent_limits(host: Host) -> AgentLimits {
    match host {
        Host::ClaudeCode => AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes",
            uncovered: "everything, where managed settings switch hooks off",
        },
        Host::Codex => AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "no, denies",
            uncovered: "everything, until each hook is trusted in Codex (/hooks)",
        },
        Host::Gemini => AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes",
            uncovered: "everything, in a folder that is not trusted",
        },
        Host::Cursor => AgentLimits {
            on_late_hook: "stops",
            on_broken_hook: "stops",
            asks_user: "no, denies",
            uncovered: "files that completions (Tab) read and edit",
        },
        Host::Copilot => AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes, not in the cloud",
            uncovered: "prompts: they are recorded, never held",
        },
    }
}
