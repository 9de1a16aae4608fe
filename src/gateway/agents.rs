//! Coding agents that run hooks. Each one has an adapter, in a file of its own.
//!
//! Owns everything that differs between agents: names of events and tools, the form of payloads and
//! answers, timers, settings files and their entries, and the limits that an agent's maker sets.
//! [`CodingAgent::ALL`] registers the adapters.
//!
//! Contract: a denial is never encoded as a permission. An event that could precede a tool and that no
//! adapter knows is a tool call that cannot be judged. Names are looked up in the tables of all agents,
//! because some agents run hooks that were configured for another; so no name may have two meanings.
//!
//! Does not call the console ([`super::hook`]) and does not read or write files ([`super::connect`]).

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use self::hook_event::{EventMeaning, HookEvent};
use self::hook_output::HookOutput;
use self::settings::{CompanionFile, ConnectScope, Folders, HookEntry, HookLine, SettingsForm};
use self::tool_actions::ToolKind;

mod claude_code;
mod codex;
mod copilot;
mod cursor;
mod gemini;
pub(super) mod hook_event;
pub(super) mod hook_output;
mod opencode;
mod qwen;
pub(super) mod settings;
pub(super) mod tool_actions;

#[cfg(test)]
mod tests;

/// A registered coding agent.
#[derive(Clone, Copy)]
pub struct CodingAgent(&'static dyn Adapter);

impl CodingAgent {
    /// All agents. When several could have sent a payload, the first of them counts.
    pub const ALL: [Self; 7] = [
        Self(&claude_code::ClaudeCode),
        Self(&codex::Codex),
        Self(&gemini::Gemini),
        Self(&cursor::Cursor),
        Self(&qwen::Qwen),
        Self(&copilot::Copilot),
        Self(&opencode::OpenCode),
    ];

    /// Returns its name on command lines, in addresses and in the record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0.name()
    }

    /// Finds an agent by its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.as_str() == name)
    }

    /// Returns the adapter of the agent.
    pub(crate) fn adapter(self) -> &'static dyn Adapter {
        self.0
    }

    /// Returns its place in the table.
    fn position(self) -> usize {
        let mut names = Self::ALL.iter().map(|agent| agent.as_str());
        names
            .position(|name| name == self.as_str())
            .unwrap_or(Self::ALL.len())
    }
}

impl fmt::Debug for CodingAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for CodingAgent {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for CodingAgent {}

impl PartialOrd for CodingAgent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CodingAgent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.position().cmp(&other.position())
    }
}

impl Serialize for CodingAgent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CodingAgent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name)
            .ok_or_else(|| de::Error::custom(format!("`{name}` is not an agent that runs hooks")))
    }
}

/// Fields of a payload.
pub(crate) type PayloadFields = Map<String, Value>;

/// Path of a setting in a settings file.
pub(crate) type SettingPath = &'static [&'static str];

/// Everything that differs between coding agents. Default methods are what most agents share.
///
/// Methods that encode a denial have no default: a denial in the wrong format is a permission.
pub(crate) trait Adapter: Send + Sync {
    /// Returns the name on command lines, in addresses and in the record.
    fn name(&self) -> &'static str;

    /// Returns the name of the product, for people.
    fn title(&self) -> &'static str;

    /// Returns the events that `cra connect` connects, in the order of their entries.
    fn events(&self) -> &'static [(&'static str, EventMeaning)];

    /// Returns further events that the hook handles when the agent reports them.
    fn other_events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[]
    }

    /// Returns events with a tool in them that permit nothing when they are ignored.
    fn ignored_events(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the agent's names of tools that have a meaning in an Atlas.
    fn tools(&self) -> &'static [(&'static str, ToolKind)];

    /// Returns true if the agent's payloads may have a `timestamp`.
    fn sends_timestamps(&self) -> bool {
        true
    }

    /// Returns true if a payload shows that this agent runs a hook, even one configured for another.
    fn is_sender(&self, _fields: &PayloadFields, _configured: CodingAgent) -> bool {
        false
    }

    /// Returns the fields of a payload under the names that most agents use.
    fn read_fields(&self, fields: PayloadFields) -> PayloadFields {
        fields
    }

    /// Identifies an event by the fields of a payload that does not name it.
    fn unnamed_event(&self, _fields: &PayloadFields) -> Option<&'static str> {
        None
    }

    /// Returns the name of the tool in a payload.
    fn tool_name(&self, fields: &PayloadFields) -> Option<String> {
        hook_event::named_tool(fields)
    }

    /// Returns the names that a tool could have as a tool of an MCP server, if the agent glues the names of
    /// server and tool. None of them may be the name of a tool of the agent.
    fn mcp_tool_names(&self, _tool: &str) -> Vec<String> {
        Vec::new()
    }

    /// Encodes the denial of a tool call.
    fn deny_tool(&self, event: &HookEvent, reason: &str) -> HookOutput;

    /// Encodes that the agent has to ask its own user about a tool call. An agent that cannot ask denies.
    fn ask_about_tool(&self, event: &HookEvent, reason: &str) -> HookOutput {
        self.deny_tool(event, reason)
    }

    /// Encodes that a tool call may run. `approved` is the reason of an explicit permission.
    fn pass_tool(
        &self,
        event: &HookEvent,
        context: Option<&str>,
        approved: Option<&str>,
    ) -> HookOutput;

    /// Returns true if the agent shows its model the context of an answer before a tool.
    fn takes_context_before_tools(&self) -> bool {
        true
    }

    /// Encodes the denial of a user's prompt.
    fn deny_prompt(&self, event: &HookEvent, reason: &str) -> HookOutput;

    /// Encodes the refusal of changed settings.
    fn deny_settings_change(&self, _event: &HookEvent, _reason: &str) -> HookOutput {
        self.empty_output()
    }

    /// Encodes that a user's prompt may reach the agent.
    fn pass_prompt(&self, event: &HookEvent, context: Option<&str>) -> HookOutput {
        match context {
            Some(context) => self.add_context(event, context),
            None => self.empty_output(),
        }
    }

    /// Encodes context for the agent, at an event that cannot be stopped.
    fn add_context(&self, event: &HookEvent, context: &str) -> HookOutput {
        HookOutput::nested(event, &[("additionalContext", context)])
    }

    /// Returns an answer that says nothing.
    fn empty_output(&self) -> HookOutput {
        HookOutput::json(&Value::Object(Map::new()))
    }

    /// Builds a body that stops the agent at any event; `None` if its hooks do not come over HTTP.
    fn http_stop_body(&self, _reason: &str, _event: Option<&str>) -> Option<Value> {
        None
    }

    /// Returns the time that the agent waits for a hook if its settings name none.
    fn default_timeout(&self) -> Duration;

    /// Returns the time that the agent waits for a hook at a prompt if its settings name none.
    fn prompt_timeout(&self) -> Duration {
        self.default_timeout()
    }

    /// Returns the environment variable that moves the agent's own folder.
    fn folder_variable(&self) -> Option<&'static str> {
        None
    }

    /// Returns the settings file for hooks. In a project, this is the file that is not shared with others,
    /// if the agent has one: the entry names a program on this machine.
    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf;

    /// Returns the form in which the hooks are written.
    fn settings_form(&self) -> SettingsForm {
        SettingsForm::Entries
    }

    /// Returns the files that the agent needs next to the settings in `file`.
    fn companion_files(&self, _file: &Path) -> Vec<CompanionFile> {
        Vec::new()
    }

    /// Returns the settings files that earlier versions of `cra` wrote in this scope.
    fn former_settings_files(&self, _scope: ConnectScope, _folders: &Folders) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns true if the settings file of a project is usually shared with others.
    fn shares_project_file(&self) -> bool {
        true
    }

    /// Returns further files that can disable hooks: each one is read with the settings.
    fn other_settings_files(&self, _file: &Path, _folders: Option<&Folders>) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns true if the agent reads settings with comments and trailing commas.
    fn reads_comments(&self) -> bool {
        false
    }

    /// Returns true if the settings file states the version of its format.
    fn has_version(&self) -> bool {
        false
    }

    /// Builds the entry of an event.
    fn entry(&self, line: HookLine) -> HookEntry;

    /// Returns true if the agent continues after a hook that cannot be run, unless the shell exits with 2.
    fn needs_exit_code(&self) -> bool {
        true
    }

    /// Returns the timeout in seconds of a hook at the end of a session.
    fn end_timeout_s(&self) -> u64 {
        10
    }

    /// Returns the timeout in seconds that a handler in the settings states.
    fn handler_timeout_s(&self, handler: &Value) -> Option<u64> {
        handler.get("timeout")?.as_u64()
    }

    /// Returns the settings that disable all hooks, each with the disabling value.
    fn off_switches(&self) -> &'static [(SettingPath, bool)] {
        &[]
    }

    /// Returns the settings that close ways around the hooks, each with its value. `cra connect` adds them.
    fn required_settings(&self) -> &'static [(&'static str, bool)] {
        &[]
    }

    /// Describes what a connection of a single project does not hold.
    fn project_scope_gap(&self) -> Option<&'static str> {
        None
    }

    /// Returns the settings that list disabled hooks by name.
    fn disabled_hook_lists(&self) -> &'static [SettingPath] {
        &[]
    }

    /// Returns the files in which the agent keeps its trust in folders and hooks.
    fn trust_files(&self, _folders: &Folders) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Describes why the agent does not run the hooks in `file`, by the texts of its trust files, without
    /// comments. The text of a missing file is empty.
    fn trust_problem(&self, _trust: &[String], _file: &Path) -> Option<String> {
        None
    }

    /// Returns the step that the user has to take in the agent after the hooks were written.
    fn trust_advice(&self) -> Option<&'static str> {
        None
    }

    /// Returns the limits of the control over the agent.
    fn limits(&self) -> AgentLimits;
}

/// Limits of the control over an agent. The agent's maker sets them; `cra` cannot change them.
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
