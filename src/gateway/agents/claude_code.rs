//! Claude Code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::hook_event::{EventMeaning, HookEvent};
use super::hook_output::HookOutput;
use super::settings::{ConnectScope, Folders, HookEntry, HookLine};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, SettingPath};

/// Adapter of Claude Code.
pub(super) struct ClaudeCode;

impl Adapter for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
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
            ("ConfigChange", EventMeaning::SettingsChange),
        ]
    }

    fn ignored_events(&self) -> &'static [&'static str] {
        &["PermissionRequest", "PermissionDenied", "PostToolBatch"]
    }

    fn tools(&self) -> &'static [(&'static str, ToolKind)] {
        &[
            ("Bash", ToolKind::Shell),
            ("PowerShell", ToolKind::Shell),
            ("Read", ToolKind::Read),
            ("NotebookRead", ToolKind::Read),
            ("Glob", ToolKind::Find),
            ("Grep", ToolKind::Grep),
            ("LS", ToolKind::List),
            ("Write", ToolKind::Write),
            ("Edit", ToolKind::Write),
            ("MultiEdit", ToolKind::Write),
            ("NotebookEdit", ToolKind::Write),
            ("WebFetch", ToolKind::Fetch),
            ("WebSearch", ToolKind::Search),
            ("Agent", ToolKind::Agent),
            ("Task", ToolKind::Agent),
            ("Monitor", ToolKind::Shell),
            ("Workflow", ToolKind::Agent),
            ("SendMessage", ToolKind::Agent),
            ("CronCreate", ToolKind::Agent),
            ("ScheduleWakeup", ToolKind::Agent),
        ]
    }

    fn sends_timestamps(&self) -> bool {
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

    /// The running session keeps its settings; changes of managed settings cannot be refused.
    fn deny_settings_change(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "block", "reason": reason}))
    }

    /// The agent discards a body that names another event than its own, so an event is named only if it is
    /// known to precede a tool.
    fn http_stop_body(&self, reason: &str, event: Option<&str>) -> Option<Value> {
        let mut output_fields = json!({
            "continue": false,
            "stopReason": reason,
            "decision": "block",
            "reason": reason,
        });
        if let (Some("PreToolUse"), Some(fields)) = (event, output_fields.as_object_mut()) {
            let specific = json!({
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            });
            fields.insert("hookSpecificOutput".to_owned(), specific);
        }
        Some(output_fields)
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_mins(10)
    }

    fn prompt_timeout(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn folder_variable(&self) -> Option<&'static str> {
        Some("CLAUDE_CONFIG_DIR")
    }

    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf {
        match scope {
            ConnectScope::Project => folders.project.join(".claude").join("settings.local.json"),
            ConnectScope::User => folders.agent_folder(self, ".claude").join("settings.json"),
        }
    }

    fn shares_project_file(&self) -> bool {
        false
    }

    fn other_settings_files(&self, file: &Path, folders: Option<&Folders>) -> Vec<PathBuf> {
        let mut found = vec![
            file.with_file_name("settings.json"),
            file.with_file_name("settings.local.json"),
            "/etc/claude-code/managed-settings.json".into(),
        ];
        found.extend(folders.map(|folders| folders.project.join(".claude").join("settings.json")));
        found
    }

    fn entry(&self, line: HookLine) -> HookEntry {
        HookEntry::group(line.handler_with_status())
    }

    fn off_switches(&self) -> &'static [(SettingPath, bool)] {
        &[(&["disableAllHooks"], true)]
    }

    /// Commands in skills and slash commands run without a hook.
    fn required_settings(&self) -> &'static [(&'static str, bool)] {
        &[("disableSkillShellExecution", true)]
    }

    fn project_scope_gap(&self) -> Option<&'static str> {
        Some("agents that are started in a subfolder of the project, or in another folder")
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes",
            uncovered: "everything, where managed settings switch hooks off",
        }
    }
}
