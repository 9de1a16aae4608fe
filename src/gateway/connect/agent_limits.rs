//! Limits of the control over each agent. The agents' makers set them; `cra` cannot change them.

use crate::gateway::hook::Host;

/// Limits of the control over an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// Reaction of the agent to a late hook.
    pub late: &'static str,
    /// Reaction of the agent to a hook that cannot be run or dies.
    pub broken: &'static str,
    /// Tells whether the agent can ask its own user.
    pub ask: &'static str,
    /// Steps for which no hook is called.
    pub unseen: &'static str,
}

/// Returns the limits of a connected agent.
#[must_use]
pub fn bounds(host: Host) -> AgentLimits {
    match host {
        Host::ClaudeCode => AgentLimits {
            late: "goes on",
            broken: "stops",
            ask: "yes",
            unseen: "everything, where managed settings switch hooks off",
        },
        Host::Codex => AgentLimits {
            late: "goes on",
            broken: "stops",
            ask: "no, denies",
            unseen: "everything, until each hook is trusted in Codex (/hooks)",
        },
        Host::Gemini => AgentLimits {
            late: "goes on",
            broken: "stops",
            ask: "yes",
            unseen: "everything, in a folder that is not trusted",
        },
        Host::Cursor => AgentLimits {
            late: "stops",
            broken: "stops",
            ask: "no, denies",
            unseen: "files that completions (Tab) read and edit",
        },
        Host::Copilot => AgentLimits {
            late: "goes on",
            broken: "stops",
            ask: "yes, not in the cloud",
            unseen: "what it is told: prompts are recorded, never held",
        },
    }
}
