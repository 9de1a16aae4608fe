//! Gemini CLI.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::hook_event::{self, EventMeaning, HookEvent};
use super::hook_output::HookOutput;
use super::settings::{ConnectScope, Folders, HOOK_NAME, HookEntry, HookHandler, HookLine};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, PayloadFields, SettingPath};

/// Adapter of Gemini CLI.
pub(super) struct Gemini;

impl Adapter for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("SessionStart", EventMeaning::Start),
            ("BeforeAgent", EventMeaning::Prompt),
            ("BeforeTool", EventMeaning::BeforeTool),
            ("AfterTool", EventMeaning::AfterTool),
            ("AfterAgent", EventMeaning::Output),
            ("SessionEnd", EventMeaning::End),
        ]
    }

    fn tools(&self) -> &'static [(&'static str, ToolKind)] {
        &[
            ("run_shell_command", ToolKind::Shell),
            ("read_file", ToolKind::Read),
            ("read_many_files", ToolKind::ReadMany),
            ("glob", ToolKind::Find),
            ("search_file_content", ToolKind::Grep),
            ("grep_search", ToolKind::Grep),
            ("list_directory", ToolKind::List),
            ("write_file", ToolKind::Write),
            ("replace", ToolKind::Write),
            ("web_fetch", ToolKind::FetchAny),
            ("google_web_search", ToolKind::Search),
            ("invoke_agent", ToolKind::Agent),
        ]
    }

    /// Gemini glues the names of server and tool; its `mcp_context` has them apart.
    fn tool_name(&self, fields: &PayloadFields) -> Option<String> {
        match fields.get("mcp_context").and_then(Value::as_object) {
            Some(context) => Some(hook_event::mcp_name(context)),
            None => hook_event::named_tool(fields),
        }
    }

    fn deny_tool(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "deny", "reason": reason}))
    }

    fn ask_about_tool(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "ask", "reason": reason}))
    }

    fn pass_tool(
        &self,
        _event: &HookEvent,
        _context: Option<&str>,
        _approved: Option<&str>,
    ) -> HookOutput {
        HookOutput::json(&json!({"decision": "allow"}))
    }

    /// Gemini ignores the context of `BeforeTool`.
    fn takes_context_before_tools(&self) -> bool {
        false
    }

    fn deny_prompt(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "deny", "reason": reason}))
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf {
        let folder = match scope {
            ConnectScope::Project => &folders.project,
            ConnectScope::User => &folders.home,
        };
        folder.join(".gemini").join("settings.json")
    }

    fn other_settings_files(&self, _file: &Path, _folders: Option<&Folders>) -> Vec<PathBuf> {
        vec!["/etc/gemini-cli/settings.json".into()]
    }

    fn reads_comments(&self) -> bool {
        true
    }

    /// Gemini counts in milliseconds.
    fn entry(&self, line: HookLine) -> HookEntry {
        let milliseconds = line.timeout_s * 1000;
        HookEntry::group(HookHandler {
            name: Some(HOOK_NAME),
            timeout: Some(milliseconds),
            ..line.handler()
        })
    }

    fn handler_timeout_s(&self, handler: &Value) -> Option<u64> {
        let milliseconds = handler.get("timeout")?.as_u64()?;
        Some(milliseconds / 1000)
    }

    fn off_switches(&self) -> &'static [(SettingPath, bool)] {
        &[
            (&["hooksConfig", "enabled"], false),
            (&["hooks", "enabled"], false),
            (&["tools", "enableHooks"], false),
        ]
    }

    fn disabled_hook_lists(&self) -> &'static [SettingPath] {
        &[&["hooksConfig", "disabled"], &["hooks", "disabled"]]
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes",
            uncovered: "everything, in a folder that is not trusted",
        }
    }
}
