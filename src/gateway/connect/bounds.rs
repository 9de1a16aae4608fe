//! What each agent can be held to, and what not: said by their makers, and not to be changed from here.

use crate::gateway::hook::Host;

/// What an agent can be held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// What it does when a hook is late.
    pub late: &'static str,
    /// What it does when a hook cannot be run or dies.
    pub broken: &'static str,
    /// Whether its own user can be asked.
    pub ask: &'static str,
    /// What is never asked about.
    pub unseen: &'static str,
}

/// What an agent can be held to, once it is connected.
#[must_use]
pub fn bounds(host: Host) -> Bounds {
    match host {
        Host::ClaudeCode => Bounds {
            late: "goes on",
            broken: "stops",
            ask: "yes",
            unseen: "everything, where managed settings switch hooks off",
        },
        Host::Codex => Bounds {
            late: "goes on",
            broken: "stops",
            ask: "no, denies",
            unseen: "everything, until each hook is trusted in Codex (/hooks)",
        },
        Host::Gemini => Bounds {
            late: "goes on",
            broken: "stops",
            ask: "yes",
            unseen: "everything, in a folder that is not trusted",
        },
        Host::Cursor => Bounds {
            late: "stops",
            broken: "stops",
            ask: "no, denies",
            unseen: "files that completions (Tab) read and edit",
        },
        Host::Copilot => Bounds {
            late: "goes on",
            broken: "stops",
            ask: "yes, not in the cloud",
            unseen: "what it is told: prompts are recorded, never held",
        },
    }
}
