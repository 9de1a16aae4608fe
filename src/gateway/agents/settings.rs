//! Settings files of agents: their folders, and the form of a hook's entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Adapter;
use super::hook_event::EventMeaning;
use crate::base::json;

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
    /// Folders of agents that were moved, by the environment variable that moved them.
    pub moved: BTreeMap<&'static str, PathBuf>,
}

impl Folders {
    /// Returns the folders of a project, where those of the user do not matter.
    pub(in crate::gateway) fn of_project(project: &Path) -> Self {
        Self {
            project: project.to_owned(),
            home: PathBuf::new(),
            moved: BTreeMap::new(),
        }
    }

    /// Returns the agent's own folder: `usual` in the home folder, if it was not moved.
    pub(super) fn agent_folder(&self, agent: &dyn Adapter, usual: &str) -> PathBuf {
        let moved = agent
            .folder_variable()
            .and_then(|name| self.moved.get(name));
        moved.cloned().unwrap_or_else(|| self.home.join(usual))
    }
}

/// Returns the value of a JSON text. A text that cannot be read has none.
pub(super) fn json_value(text: &str) -> Value {
    json::read(text.as_bytes()).unwrap_or_default()
}

/// Name of our hooks, for agents whose hooks have names.
pub(in crate::gateway) const HOOK_NAME: &str = "cra";

/// Status that an agent shows while a tool call is held.
const STATUS: &str = "Waiting for the operator (cra)";

/// Command line of one event's hook, before it is put into the agent's format.
#[derive(Clone, Debug)]
pub(crate) struct HookLine {
    pub(in crate::gateway) meaning: EventMeaning,
    pub(in crate::gateway) command: String,
    /// Timeout in seconds.
    pub(in crate::gateway) timeout_s: u64,
}

impl HookLine {
    /// Returns a handler with the fields that most agents share.
    pub(super) fn handler(self) -> HookHandler {
        HookHandler {
            kind: Some("command"),
            command: Some(self.command),
            timeout: Some(self.timeout_s),
            ..HookHandler::default()
        }
    }

    /// Returns a handler that shows a status while a tool call is held.
    pub(super) fn handler_with_status(self) -> HookHandler {
        let status = (self.meaning == EventMeaning::BeforeTool).then_some(STATUS);
        HookHandler {
            status,
            ..self.handler()
        }
    }
}

/// Form in which the hooks of an agent are written.
#[derive(Clone, Copy)]
pub(crate) enum SettingsForm {
    /// Entries in a JSON file, next to settings of the user.
    Entries,
    /// A file that is generated as a whole.
    Generated(GeneratedFile),
}

/// A file that is generated as a whole.
#[derive(Clone, Copy)]
pub(crate) struct GeneratedFile {
    /// Writes the text of the file.
    pub(in crate::gateway) render: fn(&HookCommands) -> String,
    /// Returns the command of a gate in a text, if the text is a file of this kind.
    pub(in crate::gateway) gate_command: fn(&str) -> Option<Vec<String>>,
}

/// Commands of a generated file, as words.
#[derive(Clone, Debug)]
pub(crate) struct HookCommands {
    /// Command at an event where a request may be held.
    pub(in crate::gateway) gate: Vec<String>,
    /// Command at any other event.
    pub(in crate::gateway) event: Vec<String>,
    /// Timeout in seconds of the command at a gate.
    pub(in crate::gateway) gate_timeout_s: u64,
    /// Timeout in seconds of the command at any other event.
    pub(in crate::gateway) event_timeout_s: u64,
}

/// A file that an agent needs next to its settings. It belongs to `cra` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompanionFile {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its whole text.
    pub(crate) text: &'static str,
}

/// An entry of an event's list, with its fields in the order that people expect.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum HookEntry {
    /// Handlers that share a matcher. Our entry has none, so it runs for every tool.
    Group { hooks: [HookHandler; 1] },
    /// A single handler.
    Plain(HookHandler),
}

impl HookEntry {
    pub(super) fn group(handler: HookHandler) -> Self {
        Self::Group { hooks: [handler] }
    }
}

/// The handler of an entry. Each agent uses some of the fields.
#[derive(Debug, Default, Serialize)]
pub(crate) struct HookHandler {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'static str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timeout: Option<u64>,
    #[serde(rename = "timeoutSec", skip_serializing_if = "Option::is_none")]
    pub(super) timeout_sec: Option<u64>,
    #[serde(rename = "failClosed", skip_serializing_if = "Option::is_none")]
    pub(super) fail_closed: Option<bool>,
    #[serde(rename = "statusMessage", skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
}
