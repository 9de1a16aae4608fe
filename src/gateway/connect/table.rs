//! What each agent wants: which file, which events, which unit of time.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::gateway::hook::Host;

/// For whom an agent is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// For one project.
    Project,
    /// For everything this user does.
    User,
}

impl Scope {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Project, Self::User];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// Where settings are.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The project.
    pub project: PathBuf,
    /// The user's home.
    pub home: PathBuf,
    /// Where Claude Code has its own, if that was moved.
    pub claude: Option<PathBuf>,
    /// Where Codex has its own, if that was moved.
    pub codex: Option<PathBuf>,
    /// Where Copilot has its own, if that was moved.
    pub copilot: Option<PathBuf>,
}

impl Folders {
    /// Where Codex has its own.
    #[must_use]
    pub fn codex(&self) -> PathBuf {
        let usual = || self.home.join(".codex");
        self.codex.clone().unwrap_or_else(usual)
    }
}

/// The settings file of an agent. In a project it is the one that is not shared with others, where there is
/// such a file: the entry names a program on this machine.
#[must_use]
pub fn settings_file(host: Host, scope: Scope, folders: &Folders) -> PathBuf {
    let (project, home) = (&folders.project, &folders.home);
    let join = |folder: &Path, names: [&str; 2]| folder.join(names[0]).join(names[1]);
    match (host, scope) {
        (Host::ClaudeCode, Scope::Project) => join(project, [".claude", "settings.local.json"]),
        (Host::ClaudeCode, Scope::User) => match &folders.claude {
            Some(folder) => folder.join("settings.json"),
            None => join(home, [".claude", "settings.json"]),
        },
        (Host::Codex, Scope::Project) => join(project, [".codex", "hooks.json"]),
        (Host::Codex, Scope::User) => folders.codex().join("hooks.json"),
        (Host::Gemini, Scope::Project) => join(project, [".gemini", "settings.json"]),
        (Host::Gemini, Scope::User) => join(home, [".gemini", "settings.json"]),
        (Host::Cursor, Scope::Project) => join(project, [".cursor", "hooks.json"]),
        (Host::Cursor, Scope::User) => join(home, [".cursor", "hooks.json"]),
        (Host::Copilot, Scope::Project) => project.join(".github/hooks/cra.json"),
        (Host::Copilot, Scope::User) => match &folders.copilot {
            Some(folder) => join(folder, ["hooks", "cra.json"]),
            None => home.join(".copilot/hooks/cra.json"),
        },
    }
}

/// When an event comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Before something that may be held: what a person says.
    Prompt,
    /// Before a tool is used.
    Before,
    /// When a session ends: agents hardly wait then.
    End,
    /// At any other time: nothing is held then.
    Beside,
}

impl When {
    /// Whether an operator may be asked.
    pub(super) fn is_gate(self) -> bool {
        match self {
            Self::Prompt | Self::Before => true,
            Self::End | Self::Beside => false,
        }
    }
}

/// Every event of an agent that its hook knows. Of Cursor's two layers only the one that sees every tool: both
/// would ask twice. Copilot does not name events in what it tells, so only those are here that are known by
/// what they say.
pub(super) fn events(host: Host) -> &'static [(&'static str, When)] {
    match host {
        Host::ClaudeCode => &[
            ("SessionStart", When::Beside),
            ("UserPromptSubmit", When::Prompt),
            ("PreToolUse", When::Before),
            ("PostToolUse", When::Beside),
            ("PostToolUseFailure", When::Beside),
            ("SubagentStop", When::Beside),
            ("Stop", When::Beside),
            ("StopFailure", When::Beside),
            ("SessionEnd", When::End),
        ],
        Host::Codex => &[
            ("SessionStart", When::Beside),
            ("UserPromptSubmit", When::Prompt),
            ("PreToolUse", When::Before),
            ("PostToolUse", When::Beside),
            ("SubagentStop", When::Beside),
            ("Stop", When::Beside),
            ("SessionEnd", When::End),
        ],
        Host::Gemini => &[
            ("SessionStart", When::Beside),
            ("BeforeAgent", When::Prompt),
            ("BeforeTool", When::Before),
            ("AfterTool", When::Beside),
            ("AfterAgent", When::Beside),
            ("SessionEnd", When::End),
        ],
        Host::Cursor => &[
            ("sessionStart", When::Beside),
            ("beforeSubmitPrompt", When::Prompt),
            ("preToolUse", When::Before),
            ("postToolUse", When::Beside),
            ("postToolUseFailure", When::Beside),
            ("afterAgentResponse", When::Beside),
            ("sessionEnd", When::End),
        ],
        Host::Copilot => &[
            ("sessionStart", When::Beside),
            ("userPromptSubmitted", When::Prompt),
            ("preToolUse", When::Before),
            ("postToolUse", When::Beside),
            ("errorOccurred", When::Beside),
            ("sessionEnd", When::End),
        ],
    }
}

/// The names of the events that an agent is connected by.
pub fn event_names(host: Host) -> impl Iterator<Item = &'static str> {
    events(host).iter().map(|(name, _)| *name)
}

/// Events at which agents tell their output.
const SAID: [&str; 3] = ["Stop", "AfterAgent", "afterAgentResponse"];

/// Kinds of events that the hooks of an agent intercept: input, output, actions.
pub(in crate::gateway) fn intercepts(host: Host) -> (bool, bool, bool) {
    let has = |wanted: When| events(host).iter().any(|(_, when)| *when == wanted);
    let output = event_names(host).any(|name| SAID.contains(&name));
    (has(When::Prompt), output, has(When::Before))
}

/// The event before a tool is used.
pub(super) fn gate(host: Host) -> &'static str {
    let found = events(host).iter().find(|(_, it)| *it == When::Before);
    found.map_or("", |(name, _)| *name)
}

/// How long an agent waits where nothing is held, in seconds.
const BESIDE: u64 = 30;

/// How long an agent waits for the hook of an event, in seconds.
pub(super) fn timer(host: Host, when: When, timeout: u64) -> u64 {
    match (when, host) {
        (When::Prompt | When::Before, _) => timeout,
        // It allows no more.
        (When::End, Host::Codex) => 3,
        (When::End, Host::ClaudeCode | Host::Gemini | Host::Cursor | Host::Copilot) => 10,
        (When::Beside, _) => BESIDE,
    }
}

/// How long the agent waits as a handler says it, in seconds.
pub(super) fn pinned(host: Host, handler: &Value) -> Option<u64> {
    let number = |name: &str| handler.get(name)?.as_u64();
    match host {
        Host::ClaudeCode | Host::Codex | Host::Cursor => number("timeout"),
        Host::Gemini => number("timeout").map(|it| it / 1000),
        Host::Copilot => number("timeoutSec"),
    }
}

/// Whether the file says which version of its format it is in.
pub(super) fn has_version(host: Host) -> bool {
    match host {
        Host::Cursor | Host::Copilot => true,
        Host::ClaudeCode | Host::Codex | Host::Gemini => false,
    }
}

/// What switches all hooks off, and the value that does.
pub(super) fn switches(host: Host) -> &'static [(&'static [&'static str], bool)] {
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

/// Lists of hooks that are off, by their names.
pub(super) fn lists_of_those_off(host: Host) -> &'static [&'static [&'static str]] {
    match host {
        Host::Gemini => &[&["hooksConfig", "disabled"], &["hooks", "disabled"]],
        Host::ClaudeCode | Host::Codex | Host::Cursor | Host::Copilot => &[],
    }
}

/// Other files that an agent reads together with its settings: each of them can switch hooks off.
pub(super) fn read_with(host: Host, file: &Path, folders: Option<&Folders>) -> Vec<PathBuf> {
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
        found.extend(Scope::ALL.map(|scope| settings_file(host, scope, folders)));
        if host == Host::ClaudeCode {
            found.push(folders.project.join(".claude").join("settings.json"));
        }
    }
    found.sort();
    found.dedup();
    found.retain(|it| it != file);
    found
}
