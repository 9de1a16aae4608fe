//! Table of the agents' differences: settings file, events, unit of time.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gateway::hook::Host;

/// Reach of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectScope {
    /// One project.
    Project,
    /// Everything that this user runs.
    User,
}

impl ConnectScope {
    /// Both scopes.
    pub const ALL: [Self; 2] = [Self::Project, Self::User];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// Folders of settings.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Folder of the project.
    pub project: PathBuf,
    /// Home folder of the user.
    pub home: PathBuf,
    /// Folder of Claude Code, if it was moved.
    pub claude: Option<PathBuf>,
    /// Folder of Codex, if it was moved.
    pub codex: Option<PathBuf>,
    /// Folder of Copilot, if it was moved.
    pub copilot: Option<PathBuf>,
}

impl Folders {
    /// Returns the folder of Codex.
    #[must_use]
    pub fn codex(&self) -> PathBuf {
        let usual = || self.home.join(".codex");
        self.codex.clone().unwrap_or_else(usual)
    }
}

/// Returns the settings file of an agent. In a project, this is the file that is not shared with others, if
/// the agent has one: the entry names a program on this machine.
#[must_use]
pub fn settings_file(host: Host, scope: ConnectScope, folders: &Folders) -> PathBuf {
    let (project, home) = (&folders.project, &folders.home);
    let join = |folder: &Path, names: [&str; 2]| folder.join(names[0]).join(names[1]);
    match (host, scope) {
        (Host::ClaudeCode, ConnectScope::Project) => {
            join(project, [".claude", "settings.local.json"])
        }
        (Host::ClaudeCode, ConnectScope::User) => match &folders.claude {
            Some(folder) => folder.join("settings.json"),
            None => join(home, [".claude", "settings.json"]),
        },
        (Host::Codex, ConnectScope::Project) => join(project, [".codex", "hooks.json"]),
        (Host::Codex, ConnectScope::User) => folders.codex().join("hooks.json"),
        (Host::Gemini, ConnectScope::Project) => join(project, [".gemini", "settings.json"]),
        (Host::Gemini, ConnectScope::User) => join(home, [".gemini", "settings.json"]),
        (Host::Cursor, ConnectScope::Project) => join(project, [".cursor", "hooks.json"]),
        (Host::Cursor, ConnectScope::User) => join(home, [".cursor", "hooks.json"]),
        (Host::Copilot, ConnectScope::Project) => project.join(".github/hooks/cra.json"),
        (Host::Copilot, ConnectScope::User) => match &folders.copilot {
            Some(folder) => join(folder, ["hooks", "cra.json"]),
            None => home.join(".copilot/hooks/cra.json"),
        },
    }
}

/// Phase of an agent's work at which an event comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum EventPhase {
    /// Before a prompt of the user, which may be held.
    Prompt,
    /// Before a tool call.
    BeforeTool,
    /// At the end of a session, when agents hardly wait.
    SessionEnd,
    /// At any other time, when nothing is held.
    Other,
}

impl EventPhase {
    /// Returns true if a request may be held for an operator.
    pub(in crate::gateway) fn is_gate(self) -> bool {
        match self {
            Self::Prompt | Self::BeforeTool => true,
            Self::SessionEnd | Self::Other => false,
        }
    }
}

/// Returns all events of an agent that its hook handles. Of Cursor's two layers it has only the one that
/// sees every tool: with both, the operator would be asked twice. Copilot does not name events in its
/// payloads, so only events that their payload identifies are listed.
pub(in crate::gateway) fn events(host: Host) -> &'static [(&'static str, EventPhase)] {
    match host {
        Host::ClaudeCode => &[
            ("SessionStart", EventPhase::Other),
            ("UserPromptSubmit", EventPhase::Prompt),
            ("PreToolUse", EventPhase::BeforeTool),
            ("PostToolUse", EventPhase::Other),
            ("PostToolUseFailure", EventPhase::Other),
            ("SubagentStop", EventPhase::Other),
            ("Stop", EventPhase::Other),
            ("StopFailure", EventPhase::Other),
            ("SessionEnd", EventPhase::SessionEnd),
        ],
        Host::Codex => &[
            ("SessionStart", EventPhase::Other),
            ("UserPromptSubmit", EventPhase::Prompt),
            ("PreToolUse", EventPhase::BeforeTool),
            ("PostToolUse", EventPhase::Other),
            ("SubagentStop", EventPhase::Other),
            ("Stop", EventPhase::Other),
            ("SessionEnd", EventPhase::SessionEnd),
        ],
        Host::Gemini => &[
            ("SessionStart", EventPhase::Other),
            ("BeforeAgent", EventPhase::Prompt),
            ("BeforeTool", EventPhase::BeforeTool),
            ("AfterTool", EventPhase::Other),
            ("AfterAgent", EventPhase::Other),
            ("SessionEnd", EventPhase::SessionEnd),
        ],
        Host::Cursor => &[
            ("sessionStart", EventPhase::Other),
            ("beforeSubmitPrompt", EventPhase::Prompt),
            ("preToolUse", EventPhase::BeforeTool),
            ("postToolUse", EventPhase::Other),
            ("postToolUseFailure", EventPhase::Other),
            ("afterAgentResponse", EventPhase::Other),
            ("sessionEnd", EventPhase::SessionEnd),
        ],
        Host::Copilot => &[
            ("sessionStart", EventPhase::Other),
            ("userPromptSubmitted", EventPhase::Prompt),
            ("preToolUse", EventPhase::BeforeTool),
            ("postToolUse", EventPhase::Other),
            ("errorOccurred", EventPhase::Other),
            ("sessionEnd", EventPhase::SessionEnd),
        ],
    }
}

/// Returns the names of the events that an agent is connected to.
pub fn event_names(host: Host) -> impl Iterator<Item = &'static str> {
    events(host).iter().map(|(name, _)| *name)
}

/// Events at which agents report their output.
const OUTPUT_EVENTS: [&str; 3] = ["Stop", "AfterAgent", "afterAgentResponse"];

/// Returns whether the hooks of an agent intercept input, output and actions.
pub(in crate::gateway) fn intercepts(host: Host) -> (bool, bool, bool) {
    let has = |wanted: EventPhase| events(host).iter().any(|(_, when)| *when == wanted);
    let output = event_names(host).any(|name| OUTPUT_EVENTS.contains(&name));
    (has(EventPhase::Prompt), output, has(EventPhase::BeforeTool))
}

/// Returns the event before a tool call.
pub(in crate::gateway) fn tool_event(host: Host) -> &'static str {
    let found = events(host)
        .iter()
        .find(|(_, when)| *when == EventPhase::BeforeTool);
    found.map_or("", |(name, _)| *name)
}

/// Timeout in seconds of an event at which nothing is held.
const OTHER_TIMEOUT_S: u64 = 30;

/// Returns the timeout of an event's hook in seconds.
pub(in crate::gateway) fn timeout_s(host: Host, when: EventPhase, timeout: u64) -> u64 {
    match (when, host) {
        (EventPhase::Prompt | EventPhase::BeforeTool, _) => timeout,
        // Codex allows no longer timeout.
        (EventPhase::SessionEnd, Host::Codex) => 3,
        (
            EventPhase::SessionEnd,
            Host::ClaudeCode | Host::Gemini | Host::Cursor | Host::Copilot,
        ) => 10,
        (EventPhase::Other, _) => OTHER_TIMEOUT_S,
    }
}

/// Returns the timeout in seconds that a handler states.
pub(in crate::gateway) fn handler_timeout_s(host: Host, handler: &Value) -> Option<u64> {
    let number = |name: &str| handler.get(name)?.as_u64();
    match host {
        Host::ClaudeCode | Host::Codex | Host::Cursor => number("timeout"),
        Host::Gemini => number("timeout").map(|millis| millis / 1000),
        Host::Copilot => number("timeoutSec"),
    }
}

/// Returns true if the settings file states the version of its format.
pub(in crate::gateway) fn has_version(host: Host) -> bool {
    match host {
        Host::Cursor | Host::Copilot => true,
        Host::ClaudeCode | Host::Codex | Host::Gemini => false,
    }
}

/// Returns the settings that disable all hooks, each with the disabling value.
pub(in crate::gateway) fn switches(host: Host) -> &'static [(&'static [&'static str], bool)] {
    match host {
        Host::ClaudeCode | Host::Copilot => &[(&["disableAllHooks"], true)],
        Host::Gemini => &[
            (&["hooksConfig", "enabled"], false),
            (&["hooks", "enabled"], false),
            (&["tools", "enableHooks"], false),
        ],
        Host::Codex | Host::Cursor => &[],
    }
}

/// Returns the settings that list disabled hooks by name.
pub(in crate::gateway) fn disabled_hook_lists(host: Host) -> &'static [&'static [&'static str]] {
    match host {
        Host::Gemini => &[&["hooksConfig", "disabled"], &["hooks", "disabled"]],
        Host::ClaudeCode | Host::Codex | Host::Cursor | Host::Copilot => &[],
    }
}

/// Returns other files that an agent reads with its settings: each of them can disable hooks.
pub(in crate::gateway) fn related_settings_files(
    host: Host,
    file: &Path,
    folders: Option<&Folders>,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let beside = |name: &str| file.with_file_name(name);
    match host {
        Host::ClaudeCode => {
            found.extend([beside("settings.json"), beside("settings.local.json")]);
            found.push("/etc/claude-code/managed-settings.json".into());
        }
        Host::Gemini => found.push("/etc/gemini-cli/settings.json".into()),
        Host::Codex | Host::Cursor | Host::Copilot => return found,
    }
    if let Some(folders) = folders {
        found.extend(ConnectScope::ALL.map(|scope| settings_file(host, scope, folders)));
        if host == Host::ClaudeCode {
            found.push(folders.project.join(".claude").join("settings.json"));
        }
    }
    found.sort();
    found.dedup();
    found.retain(|other| other != file);
    found
}
