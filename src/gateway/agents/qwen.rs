//! Qwen Code. Its hooks have the format of Claude Code's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::hook_event::{EventMeaning, HookEvent, has_value};
use super::hook_output::HookOutput;
use super::settings::{ConnectScope, Folders, HOOK_NAME, HookEntry, HookHandler, HookLine};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, CodingAgent, PayloadFields, SettingPath};

/// Adapter of Qwen Code.
pub(super) struct Qwen;

impl Adapter for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn title(&self) -> &'static str {
        "Qwen Code"
    }

    fn events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("SessionStart", EventMeaning::Start),
            ("UserPromptSubmit", EventMeaning::Prompt),
            ("PreToolUse", EventMeaning::BeforeTool),
            ("PostToolUse", EventMeaning::AfterTool),
            ("PostToolUseFailure", EventMeaning::AfterFailure),
            ("SubagentStop", EventMeaning::Output),
            ("Stop", EventMeaning::Output),
            ("StopFailure", EventMeaning::Failed),
            ("SessionEnd", EventMeaning::End),
        ]
    }

    fn ignored_events(&self) -> &'static [&'static str] {
        &["PermissionRequest", "PermissionDenied", "PostToolBatch"]
    }

    fn tools(&self) -> &'static [(&'static str, ToolKind)] {
        &[
            ("run_shell_command", ToolKind::Shell),
            ("monitor", ToolKind::Shell),
            ("read_file", ToolKind::Read),
            ("glob", ToolKind::Find),
            ("grep_search", ToolKind::Grep),
            ("list_directory", ToolKind::List),
            ("write_file", ToolKind::Write),
            ("edit", ToolKind::Write),
            ("notebook_edit", ToolKind::Write),
            ("web_fetch", ToolKind::FetchAny),
            ("web_search", ToolKind::Search),
            ("agent", ToolKind::Agent),
            ("workflow", ToolKind::Agent),
            ("send_message", ToolKind::Agent),
            ("create_sub_session", ToolKind::Agent),
            ("cron_create", ToolKind::Agent),
            ("loop_wakeup", ToolKind::Agent),
        ]
    }

    /// Qwen Code states the time as a text, with the mode of its permissions. Copilot never has both.
    fn is_sender(&self, fields: &PayloadFields, configured: CodingAgent) -> bool {
        let borrowed = !configured.adapter().sends_timestamps();
        let timestamp = fields.get("timestamp").is_some_and(Value::is_string);
        borrowed && timestamp && has_value(fields, "permission_mode")
    }

    /// Qwen Code drops context that comes with a decision about a tool.
    fn takes_context_before_tools(&self) -> bool {
        false
    }

    fn deny_tool(&self, event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::nested_decision(event, "deny", reason)
    }

    fn ask_about_tool(&self, event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::nested_decision(event, "ask", reason)
    }

    fn pass_tool(
        &self,
        event: &HookEvent,
        context: Option<&str>,
        approved: Option<&str>,
    ) -> HookOutput {
        HookOutput::nested_permission(event, context, approved)
    }

    fn deny_prompt(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "block", "reason": reason}))
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn folder_variable(&self) -> Option<&'static str> {
        Some("QWEN_HOME")
    }

    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf {
        let folder = match scope {
            ConnectScope::Project => folders.project.join(".qwen"),
            ConnectScope::User => folders.agent_folder(self, ".qwen"),
        };
        folder.join("settings.json")
    }

    fn other_settings_files(&self, _file: &Path, _folders: Option<&Folders>) -> Vec<PathBuf> {
        vec![
            "/etc/qwen-code/settings.json".into(),
            "/etc/qwen-code/system-defaults.json".into(),
        ]
    }

    fn reads_comments(&self) -> bool {
        true
    }

    /// Qwen Code reads a timeout of 1000 or more as milliseconds, and a smaller one as seconds.
    fn entry(&self, line: HookLine) -> HookEntry {
        let milliseconds = line.timeout_s * 1000;
        HookEntry::group(HookHandler {
            name: Some(HOOK_NAME),
            timeout: Some(milliseconds),
            ..line.handler_with_status()
        })
    }

    fn handler_timeout_s(&self, handler: &Value) -> Option<u64> {
        match handler.get("timeout")?.as_u64()? {
            seconds @ ..1000 => Some(seconds),
            milliseconds => Some(milliseconds / 1000),
        }
    }

    fn off_switches(&self) -> &'static [(SettingPath, bool)] {
        &[(&["disableAllHooks"], true)]
    }

    fn project_scope_gap(&self) -> Option<&'static str> {
        Some("agents that are started in a subfolder of the project, or in another folder")
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes",
            uncovered: "sessions that are started with --bare or --safe-mode",
        }
    }
}
