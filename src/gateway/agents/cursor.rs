//! Cursor.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::hook_event::{EventMeaning, HookEvent, has_value};
use super::hook_output::HookOutput;
use super::settings::{ConnectScope, Folders, HookEntry, HookHandler, HookLine};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, CodingAgent, PayloadFields};

/// Adapter of Cursor.
pub(super) struct Cursor;

impl Adapter for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn title(&self) -> &'static str {
        "Cursor"
    }

    /// Of the two layers of hooks, only the one that sees every tool is connected: with both, the operator
    /// would be asked twice.
    fn events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("sessionStart", EventMeaning::Start),
            ("beforeSubmitPrompt", EventMeaning::Prompt),
            ("preToolUse", EventMeaning::BeforeTool),
            ("postToolUse", EventMeaning::AfterTool),
            ("postToolUseFailure", EventMeaning::AfterFailure),
            ("afterAgentResponse", EventMeaning::Output),
            ("sessionEnd", EventMeaning::End),
        ]
    }

    fn other_events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("beforeShellExecution", EventMeaning::BeforeShell),
            ("beforeMCPExecution", EventMeaning::BeforeMcp),
            ("beforeReadFile", EventMeaning::BeforeRead),
            ("subagentStart", EventMeaning::BeforeAgent),
        ]
    }

    fn ignored_events(&self) -> &'static [&'static str] {
        &["afterShellExecution", "afterMCPExecution", "afterFileEdit"]
    }

    fn tools(&self) -> &'static [(&'static str, ToolKind)] {
        &[
            ("Shell", ToolKind::Shell),
            ("Read", ToolKind::Read),
            ("Grep", ToolKind::Grep),
            ("Write", ToolKind::Write),
            ("Delete", ToolKind::Write),
            ("Task", ToolKind::Agent),
        ]
    }

    /// Cursor runs hooks that were configured for Claude Code.
    fn is_sender(&self, fields: &PayloadFields, _configured: CodingAgent) -> bool {
        has_value(fields, "cursor_version")
    }

    /// Cursor shows only the user message to its model.
    fn deny_tool(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(
            &json!({"permission": "deny", "user_message": reason, "agent_message": reason}),
        )
    }

    /// Cursor blocks on an empty answer, so the answer must say `allow`.
    fn pass_tool(
        &self,
        _event: &HookEvent,
        _context: Option<&str>,
        _approved: Option<&str>,
    ) -> HookOutput {
        HookOutput::json(&json!({"permission": "allow"}))
    }

    fn deny_prompt(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"continue": false, "user_message": reason}))
    }

    fn pass_prompt(&self, _event: &HookEvent, _context: Option<&str>) -> HookOutput {
        HookOutput::json(&json!({"continue": true}))
    }

    fn add_context(&self, _event: &HookEvent, context: &str) -> HookOutput {
        HookOutput::json(&json!({"additional_context": context}))
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf {
        let folder = match scope {
            ConnectScope::Project => &folders.project,
            ConnectScope::User => &folders.home,
        };
        folder.join(".cursor").join("hooks.json")
    }

    fn has_version(&self) -> bool {
        true
    }

    /// A hook that only reports must not stop the agent when it breaks.
    fn entry(&self, line: HookLine) -> HookEntry {
        HookEntry::Plain(HookHandler {
            kind: None,
            fail_closed: line.meaning.is_gate().then_some(true),
            ..line.handler()
        })
    }

    fn needs_exit_code(&self) -> bool {
        false
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "stops",
            on_broken_hook: "stops",
            asks_user: "no, denies",
            uncovered: "files that completions (Tab) read and edit",
        }
    }
}
