//! opencode. Its hooks are a plugin: a generated file that runs `cra hook` for each event.
//!
//! The plugin sends an event's input and output as opencode hands them to plugins; this adapter reads them.
//! A step goes on only if the answer says `allow`. Every other answer, and none, stops it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::hook_event::{EventMeaning, HookEvent, glued_mcp_names};
use super::hook_output::HookOutput;
use super::settings::{
    ConnectScope, Folders, GeneratedFile, HookCommands, HookEntry, HookLine, SettingsForm,
    json_value,
};
use super::tool_actions::ToolKind;
use super::{Adapter, AgentLimits, PayloadFields};

/// The plugin, with marks in place of commands and times.
const PLUGIN: &str = include_str!("opencode_plugin.js");

/// Beginning of the line of the plugin that holds the command of a gate.
const COMMAND_LINE: &str = "const GATE_COMMAND = ";

/// Tools of opencode with `_` in their names. They are not tools of MCP servers.
const OWN_TOOLS: [&str; 6] = [
    "apply_patch",
    "plan_enter",
    "plan_exit",
    "list_mcp_resources",
    "list_mcp_resource_templates",
    "read_mcp_resource",
];

/// Adapter of opencode.
pub(super) struct OpenCode;

impl Adapter for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn title(&self) -> &'static str {
        "opencode"
    }

    /// Events that the plugin reports. It asks at the first prompt of a session what is due at its start.
    fn events(&self) -> &'static [(&'static str, EventMeaning)] {
        &[
            ("session.created", EventMeaning::Start),
            ("chat.message", EventMeaning::Prompt),
            ("tool.execute.before", EventMeaning::BeforeTool),
            ("tool.execute.after", EventMeaning::AfterTool),
            ("tool.execute.failed", EventMeaning::AfterFailure),
            ("text.complete", EventMeaning::Output),
            ("session.error", EventMeaning::Failed),
            ("session.deleted", EventMeaning::End),
        ]
    }

    fn tools(&self) -> &'static [(&'static str, ToolKind)] {
        &[
            ("bash", ToolKind::Shell),
            ("read", ToolKind::Read),
            ("glob", ToolKind::Find),
            ("grep", ToolKind::Grep),
            ("list", ToolKind::List),
            ("write", ToolKind::Write),
            ("edit", ToolKind::Write),
            ("multiedit", ToolKind::Write),
            ("patch", ToolKind::Patch),
            ("apply_patch", ToolKind::Patch),
            ("webfetch", ToolKind::Fetch),
            ("websearch", ToolKind::Search),
            ("codesearch", ToolKind::Search),
            ("task", ToolKind::Agent),
        ]
    }

    /// Takes tool, call, session, input and result out of `input` and `output`.
    fn read_fields(&self, mut fields: PayloadFields) -> PayloadFields {
        let mut take = |name: &str| match fields.remove(name) {
            Some(Value::Object(object)) => object,
            Some(_) | None => PayloadFields::new(),
        };
        let (mut input, mut output) = (take("input"), take("output"));
        let result = output.remove("output").or_else(|| output.remove("content"));
        let result = match (result, output.get("isError")) {
            (Some(result), Some(Value::Bool(true))) => Some(json!({"error": result})),
            (result, _) => result,
        };
        let found = [
            ("session_id", input.remove("sessionID")),
            ("tool_name", input.remove("tool")),
            ("tool_use_id", input.remove("callID")),
            ("prompt_id", input.remove("messageID")),
            (
                "tool_input",
                output.remove("args").or_else(|| input.remove("args")),
            ),
            ("tool_response", result),
            (
                "prompt",
                output.remove("parts").as_ref().and_then(prompt_parts),
            ),
        ];
        for (name, value) in found {
            if let Some(value) = value {
                fields.entry(name).or_insert(value);
            }
        }
        fields
    }

    /// opencode glues the names of an MCP server and its tool with `_`, and both may have more of them.
    fn mcp_tool_names(&self, tool: &str) -> Vec<String> {
        if OWN_TOOLS.contains(&tool) {
            return Vec::new();
        }
        glued_mcp_names(tool, '_')
    }

    fn deny_tool(&self, _event: &HookEvent, reason: &str) -> HookOutput {
        HookOutput::json(&json!({"decision": "deny", "reason": reason}))
    }

    fn pass_tool(
        &self,
        _event: &HookEvent,
        context: Option<&str>,
        _approved: Option<&str>,
    ) -> HookOutput {
        allow(context)
    }

    fn deny_prompt(&self, event: &HookEvent, reason: &str) -> HookOutput {
        self.deny_tool(event, reason)
    }

    fn pass_prompt(&self, _event: &HookEvent, context: Option<&str>) -> HookOutput {
        allow(context)
    }

    fn add_context(&self, _event: &HookEvent, context: &str) -> HookOutput {
        HookOutput::json(&json!({"additionalContext": context}))
    }

    /// The plugin waits for as long as its hook. This is the time of a hook that names none.
    fn default_timeout(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn folder_variable(&self) -> Option<&'static str> {
        Some("XDG_CONFIG_HOME")
    }

    fn settings_file(&self, scope: ConnectScope, folders: &Folders) -> PathBuf {
        let folder = match scope {
            ConnectScope::Project => folders.project.join(".opencode"),
            ConnectScope::User => folders.agent_folder(self, ".config").join("opencode"),
        };
        folder.join("plugin").join("cra.js")
    }

    fn settings_form(&self) -> SettingsForm {
        SettingsForm::Generated(GeneratedFile {
            render: render_plugin,
            gate_command,
        })
    }

    /// The plugin has no entries.
    fn entry(&self, line: HookLine) -> HookEntry {
        HookEntry::group(line.handler())
    }

    fn limits(&self) -> AgentLimits {
        AgentLimits {
            on_late_hook: "stops",
            on_broken_hook: "stops",
            asks_user: "no, denies",
            uncovered: "sessions started with --pure; what other plugins change after the decision",
        }
    }
}

/// Encodes that a step may go on.
fn allow(context: Option<&str>) -> HookOutput {
    HookOutput::json(&match context {
        Some(context) => json!({"decision": "allow", "additionalContext": context}),
        None => json!({"decision": "allow"}),
    })
}

/// Returns the parts of a prompt that its user wrote. A file is known by its name.
fn prompt_parts(parts: &Value) -> Option<Value> {
    let own = parts.as_array()?.iter().filter_map(|part| {
        if part.get("synthetic").and_then(Value::as_bool) == Some(true) {
            return None;
        }
        let text = part.get("text").or_else(|| part.get("filename"))?;
        text.as_str().map(Value::from)
    });
    Some(Value::Array(own.collect()))
}

fn render_plugin(commands: &HookCommands) -> String {
    let words = |words: &[String]| Value::from(words).to_string();
    PLUGIN
        .replace("@GATE_COMMAND@", &words(&commands.gate))
        .replace("@EVENT_COMMAND@", &words(&commands.event))
        .replace("@GATE_SECONDS@", &commands.gate_timeout_s.to_string())
        .replace("@EVENT_SECONDS@", &commands.event_timeout_s.to_string())
}

/// Returns the command of a gate in a plugin.
fn gate_command(text: &str) -> Option<Vec<String>> {
    let mut lines = text.lines();
    let words = lines.find_map(|line| line.strip_prefix(COMMAND_LINE))?;
    serde_json::from_value(json_value(words)).ok()
}
