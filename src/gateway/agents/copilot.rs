//! GitHub Copilot: CLI, cloud agent, VS Code.
//!
//! Copilot has two dialects. With event names in camel case, a payload does not name its event; with the
//! names of Claude Code, an answer has to be nested as well.

use std::path::PathBuf;
use std::time::Duration;

use super::hook_event::{EventMeaning, HookEvent, has_value};
use super::hook_output::{HookOutput, nested_fields};
use super::settings::{ConnectScope, Folders, HookEntry, HookHandler, HookLine};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, CodingAgent, PayloadFields, SettingPath};
use serde_json::{Map, Value};

/// Adapter of GitHub Copilot.
pub(super) struct Copilot;

impl Adapter for Copilot {
    fn name(&self) -> &'static str {
        "copilot"
    }

    fn title(&self) -> &'static str {
        "GitHub Copilot"
    }

    /// Only events that their payload identifies.
    fn events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("sessionStart", EventMeaning::Start),
            ("userPromptSubmitted", EventMeaning::Prompt),
            ("preToolUse", EventMeaning::BeforeTool),
            ("postToolUse", EventMeaning::AfterTool),
            ("errorOccurred", EventMeaning::Failed),
            ("sessionEnd", EventMeaning::End),
        ]
    }

    fn other_events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("userPromptSubmit", EventMeaning::Prompt),
            ("UserPromptSubmitted", EventMeaning::Prompt),
            ("postToolUseFailure", EventMeaning::AfterFailure),
            ("agentStop", EventMeaning::Output),
            ("ErrorOccurred", EventMeaning::Failed),
        ]
    }

    fn ignored_events(&self) -> &'static [&'static str] {
        &["permissionRequest", "permissionDenied"]
    }

    /// The tools of the CLI, then those of VS Code.
    fn tools(&self) -> &'static [(&'static str, ToolKind)] {
        &[
            ("bash", ToolKind::Shell),
            ("powershell", ToolKind::Shell),
            ("view", ToolKind::Read),
            ("glob", ToolKind::Find),
            ("grep", ToolKind::Grep),
            ("rg", ToolKind::Grep),
            ("create", ToolKind::Write),
            ("edit", ToolKind::Write),
            ("str_replace_editor", ToolKind::Write),
            ("apply_patch", ToolKind::Patch),
            ("web_fetch", ToolKind::FetchAny),
            ("web_search", ToolKind::Search),
            ("task", ToolKind::Agent),
            ("run_in_terminal", ToolKind::Shell),
            ("read_file", ToolKind::Read),
            ("file_search", ToolKind::Find),
            ("grep_search", ToolKind::Grep),
            ("list_dir", ToolKind::List),
            ("create_file", ToolKind::Write),
            ("replace_string_in_file", ToolKind::Write),
            ("insert_edit_into_file", ToolKind::Write),
            ("fetch_webpage", ToolKind::FetchAny),
        ]
    }

    /// Copilot runs hooks that were configured for Claude Code. Its payloads always have a timestamp.
    fn is_sender(&self, fields: &PayloadFields, configured: CodingAgent) -> bool {
        let borrowed = !configured.adapter().sends_timestamps();
        has_value(fields, "sessionId") || (borrowed && has_value(fields, "timestamp"))
    }

    fn unnamed_event(&self, fields: &PayloadFields) -> Option<&'static str> {
        let has = |name: &str| fields.contains_key(name);
        if !has("sessionId") {
            None
        } else if has("toolResult") {
            Some("postToolUse")
        } else if has("toolName") {
            Some("preToolUse")
        } else if has("prompt") {
            Some("userPromptSubmitted")
        } else if has("error") {
            Some("errorOccurred")
        } else if has("source") {
            Some("sessionStart")
        } else if has("reason") {
            Some("sessionEnd")
        } else {
            None
        }
    }

    fn deny_tool(&self, event: &HookEvent, reason: &str) -> HookOutput {
        encode_decision(event, "deny", reason)
    }

    fn ask_about_tool(&self, event: &HookEvent, reason: &str) -> HookOutput {
        encode_decision(event, "ask", reason)
    }

    fn pass_tool(
        &self,
        event: &HookEvent,
        _context: Option<&str>,
        approved: Option<&str>,
    ) -> HookOutput {
        match approved {
            Some(reason) => encode_decision(event, "allow", reason),
            None => self.empty_output(),
        }
    }

    /// Copilot ignores the answer: the prompt reaches the agent in any case.
    fn deny_prompt(&self, _event: &HookEvent, _reason: &str) -> HookOutput {
        self.empty_output()
    }

    fn add_context(&self, event: &HookEvent, context: &str) -> HookOutput {
        let fields = [("additionalContext", context)];
        flat_and(nested_fields(event, &fields), &fields)
    }

    fn default_timeout(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn folder_variable(&self) -> Option<&'static str> {
        Some("COPILOT_HOME")
    }

    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf {
        match scope {
            ConnectScope::Project => folders.project.join(".github/hooks/cra.json"),
            ConnectScope::User => folders
                .agent_folder(self, ".copilot")
                .join("hooks/cra.json"),
        }
    }

    fn has_version(&self) -> bool {
        true
    }

    fn entry(&self, line: HookLine) -> HookEntry {
        let shared = line.handler();
        HookEntry::Plain(HookHandler {
            bash: shared.command,
            command: None,
            timeout_sec: shared.timeout,
            timeout: None,
            ..shared
        })
    }

    fn needs_exit_code(&self) -> bool {
        false
    }

    fn handler_timeout_s(&self, handler: &Value) -> Option<u64> {
        handler.get("timeoutSec")?.as_u64()
    }

    fn off_switches(&self) -> &'static [(SettingPath, bool)] {
        &[(&["disableAllHooks"], true)]
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes, not in the cloud",
            uncovered: "prompts: they are recorded, never held",
        }
    }
}

/// Encodes a decision. When Copilot runs hooks meant for Claude Code, adds the nested format too.
fn encode_decision(event: &HookEvent, decision: &str, reason: &str) -> HookOutput {
    let fields = [
        ("permissionDecision", decision),
        ("permissionDecisionReason", reason),
    ];
    let nested = if event.event.starts_with(char::is_uppercase) {
        nested_fields(event, &fields)
    } else {
        Map::new()
    };
    flat_and(nested, &fields)
}

/// Adds fields to a nested answer, without nesting.
fn flat_and(mut body: Map<String, Value>, fields: &[(&str, &str)]) -> HookOutput {
    for (name, value) in fields {
        body.insert((*name).to_owned(), (*value).into());
    }
    HookOutput::json(&body.into())
}
