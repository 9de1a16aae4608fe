//! GitHub Copilot: CLI, cloud agent, VS Code.
//!
//! Copilot has two dialects. With event names in camel case, a payload does not name its event; with the
//! names of Claude Code, an answer has to be nested as well.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::hook_event::{EventMeaning, HookEvent, glued_mcp_names, has_value};
use super::hook_output::{HookOutput, nested_fields};
use super::settings::{ConnectScope, Folders, HookEntry, HookHandler, HookLine, json_value};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, CodingAgent, PayloadFields, SettingPath};
use serde_json::{Map, Value, json};

/// Settings file in a project.
const PROJECT_FILE: &str = ".github/hooks/cra.json";

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
            ("postToolUseFailure", EventMeaning::AfterFailure),
            ("errorOccurred", EventMeaning::Failed),
            ("subagentStop", EventMeaning::End),
            ("sessionEnd", EventMeaning::End),
        ]
    }

    fn other_events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("userPromptSubmit", EventMeaning::Prompt),
            ("UserPromptSubmitted", EventMeaning::Prompt),
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
            ("write_bash", ToolKind::ShellInput),
            ("write_powershell", ToolKind::ShellInput),
            ("write_agent", ToolKind::Agent),
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

    /// A subagent has a session of its own, which ends with it.
    fn read_fields(&self, mut fields: PayloadFields) -> PayloadFields {
        if is_end_of_subagent(&fields)
            && let Some(session) = fields.get("agentId").cloned()
        {
            fields.insert("sessionId".to_owned(), session);
        }
        fields
    }

    fn unnamed_event(&self, fields: &PayloadFields) -> Option<&'static str> {
        let has = |name: &str| fields.contains_key(name);
        if !has("sessionId") {
            None
        } else if is_end_of_subagent(fields) {
            Some("subagentStop")
        } else if has("parentAgentId") && !has("toolName") {
            Some("subagentStart")
        } else if has("stopReason") {
            Some("agentStop")
        } else if has("toolResult") {
            Some("postToolUse")
        } else if has("toolName") && has("error") {
            Some("postToolUseFailure")
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

    /// Copilot glues the names of an MCP server and its tool with a dash, and both may have dashes. Its own
    /// tools have none.
    fn mcp_tool_names(&self, tool: &str) -> Vec<String> {
        glued_mcp_names(tool, '-')
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
        context: Option<&str>,
        approved: Option<&str>,
    ) -> HookOutput {
        let mut fields = Vec::new();
        if let Some(reason) = approved {
            fields.push(("permissionDecision", "allow"));
            fields.push(("permissionDecisionReason", reason));
        }
        fields.extend(context.map(|text| ("additionalContext", text)));
        if fields.is_empty() {
            return self.empty_output();
        }
        encode_fields(event, &fields)
    }

    /// Copilot blocks a prompt since version 1.0.78. An earlier one ignores this answer.
    fn deny_prompt(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "block", "reason": reason}))
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
            ConnectScope::Project => folders.project.join(PROJECT_FILE),
            ConnectScope::User => folders
                .agent_folder(self, ".copilot")
                .join("hooks/cra.json"),
        }
    }

    /// Each of these files can disable the hooks of a project.
    fn other_settings_files(&self, _file: &Path, folders: Option<&Folders>) -> Vec<PathBuf> {
        let names = [
            ".github/copilot/settings.json",
            ".github/copilot/settings.local.json",
            ".claude/settings.json",
            ".claude/settings.local.json",
        ];
        let project = folders.map(|folders| names.map(|name| folders.project.join(name)));
        project.into_iter().flatten().collect()
    }

    fn project_scope_gap(&self) -> Option<&'static str> {
        Some("prompts on the command line (-p) in a folder that Copilot does not trust")
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

    fn trust_files(&self, folders: &Folders) -> Vec<PathBuf> {
        vec![folders.agent_folder(self, ".copilot").join("config.json")]
    }

    /// Without trust, Copilot runs the hooks of a project only in its terminal, where it asks for trust.
    fn trust_problem(&self, trust: &[String], file: &Path) -> Option<String> {
        let project = file.parent()?.parent()?.parent()?;
        if file != project.join(PROJECT_FILE) {
            return None;
        }
        let config = json_value(trust.first()?);
        let folders = config.get("trustedFolders").and_then(Value::as_array);
        let mut folders = folders.into_iter().flatten().filter_map(Value::as_str);
        let is_trusted = folders.any(|folder| project.starts_with(folder));
        (!is_trusted).then(|| {
            "Copilot does not trust this folder and runs no hooks of the project with -p: start copilot \
             there once and trust the folder, or connect with --scope user"
                .to_owned()
        })
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "goes on",
            on_broken_hook: "stops",
            asks_user: "yes, not in the cloud",
            uncovered: "prompts before version 1.0.78: they are recorded, not held",
        }
    }
}

/// Returns true if a payload without the name of its event tells that a subagent has stopped.
fn is_end_of_subagent(fields: &PayloadFields) -> bool {
    let has = |name: &str| fields.contains_key(name);
    has("agentId") && has("stopReason") && !has("toolName") && !has("hook_event_name")
}

/// Encodes a decision. When Copilot runs hooks meant for Claude Code, adds the nested format too.
fn encode_decision(event: &HookEvent, decision: &str, reason: &str) -> HookOutput {
    let fields = [
        ("permissionDecision", decision),
        ("permissionDecisionReason", reason),
    ];
    encode_fields(event, &fields)
}

/// Encodes the answer to an event before a tool in the format of the event's dialect.
fn encode_fields(event: &HookEvent, fields: &[(&str, &str)]) -> HookOutput {
    let nested = if event.event.starts_with(char::is_uppercase) {
        nested_fields(event, fields)
    } else {
        Map::new()
    };
    flat_and(nested, fields)
}

/// Adds fields to a nested answer, without nesting.
fn flat_and(mut body: Map<String, Value>, fields: &[(&str, &str)]) -> HookOutput {
    for (name, value) in fields {
        body.insert((*name).to_owned(), (*value).into());
    }
    HookOutput::json(&body.into())
}
