//! Events that agents report to a hook, read from each agent's own format.

use serde_json::{Map, Value};

use super::tool_actions::{ToolAction, actions};
use crate::base::canonical_json::{canonical, number_kinds};
use crate::base::digest::Digest;
use crate::base::json::{self, JsonFault, JsonFaultKind, StrictJsonError};
use crate::gateway::hook::Host;

/// Reason why a payload cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadablePayload {
    /// The payload is not JSON.
    #[error("it is not JSON ({0})")]
    Json(String),
    /// Two parsers could read the payload in two ways.
    #[error("it is ambiguous ({0})")]
    Ambiguous(JsonFault),
    /// The payload is not an object.
    #[error("it is not an object")]
    Shape,
    /// The payload does not name its event.
    #[error("it names no event")]
    NoEvent,
}

/// An event that an agent reports.
#[derive(Clone, Debug, PartialEq)]
pub struct HookEvent {
    /// Agent that really runs the hook: some agents run hooks meant for another.
    pub host: Host,
    /// Name of the event, as the agent gives it.
    pub event: String,
    /// Name of the session, as the agent gives it.
    pub session: Option<String>,
    /// Content of the event.
    pub kind: HookEventKind,
}

/// Content of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum HookEventKind {
    /// A session starts or is resumed.
    Start,
    /// A session ends.
    End,
    /// The user sends a prompt.
    Prompt {
        /// Identifier from the agent.
        id: Option<String>,
        /// Text of the prompt; `None` if it cannot be read.
        text: Option<String>,
    },
    /// A tool is about to run.
    BeforeTool {
        /// Reference of this tool call.
        reference: String,
        /// The agent's own identifier of this call, if the payload has one.
        call: Option<String>,
        /// Actions of the call, or the reason why they cannot be determined.
        actions: Result<Vec<ToolAction>, String>,
    },
    /// A tool has run.
    AfterTool {
        /// Reference of this tool call.
        reference: String,
        /// Name of the tool, as the agent gives it.
        tool: String,
        /// Input of the tool, if the payload has it: for people who read the record.
        used: Option<String>,
        /// Result of the call.
        result: Result<String, String>,
        /// Actions of the call, as far as its input shows them.
        actions: Vec<ToolAction>,
    },
    /// The agent produced output.
    Output(String),
    /// The agent failed.
    Failed {
        /// Kind of failure.
        kind: String,
        /// Message of the failure.
        message: String,
    },
    /// An event that needs no handling.
    Other,
}

/// Meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventMeaning {
    Start,
    End,
    Prompt,
    BeforeTool,
    BeforeShell,
    BeforeMcp,
    BeforeRead,
    BeforeAgent,
    AfterTool,
    AfterFailure,
    Output,
    Failed,
}

/// All handled events by the agents' names for them. No name has two meanings in two agents.
#[rustfmt::skip]
const EVENTS: &[(&str, EventMeaning)] = &[
    ("SessionStart", EventMeaning::Start), ("sessionStart", EventMeaning::Start),
    ("SessionEnd", EventMeaning::End), ("sessionEnd", EventMeaning::End),
    ("UserPromptSubmit", EventMeaning::Prompt), ("BeforeAgent", EventMeaning::Prompt), ("beforeSubmitPrompt", EventMeaning::Prompt),
    ("userPromptSubmitted", EventMeaning::Prompt), ("userPromptSubmit", EventMeaning::Prompt), ("UserPromptSubmitted", EventMeaning::Prompt),
    ("PreToolUse", EventMeaning::BeforeTool), ("preToolUse", EventMeaning::BeforeTool), ("BeforeTool", EventMeaning::BeforeTool),
    ("beforeShellExecution", EventMeaning::BeforeShell), ("beforeMCPExecution", EventMeaning::BeforeMcp),
    ("beforeReadFile", EventMeaning::BeforeRead), ("subagentStart", EventMeaning::BeforeAgent),
    ("PostToolUse", EventMeaning::AfterTool), ("postToolUse", EventMeaning::AfterTool), ("AfterTool", EventMeaning::AfterTool),
    ("PostToolUseFailure", EventMeaning::AfterFailure), ("postToolUseFailure", EventMeaning::AfterFailure),
    ("Stop", EventMeaning::Output), ("SubagentStop", EventMeaning::Output), ("AfterAgent", EventMeaning::Output),
    ("afterAgentResponse", EventMeaning::Output), ("agentStop", EventMeaning::Output),
    ("StopFailure", EventMeaning::Failed), ("errorOccurred", EventMeaning::Failed), ("ErrorOccurred", EventMeaning::Failed),
];

/// Events with a tool in them that permit nothing when they are ignored.
const IGNORED_EVENTS: &[&str] = &[
    "PermissionRequest",
    "permissionRequest",
    "PermissionDenied",
    "permissionDenied",
    "PostToolBatch",
    "afterShellExecution",
    "afterMCPExecution",
    "afterFileEdit",
];

/// Longest tool input, in characters, that is reported for a tool call without a request.
const MAX_INPUT_CHARS: usize = 2000;

/// Returns the input of a tool as a text: only its command, if it has one.
fn tool_input_text(fields: &Map<String, Value>) -> Option<String> {
    let names = ["tool_input", "toolInput", "toolArgs", "arguments", "args"];
    let input = names.iter().find_map(|name| fields.get(*name))?;
    let text = match input.get("command").unwrap_or(input) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(text.chars().take(MAX_INPUT_CHARS).collect())
}

/// Longest result in bytes that is reported: it is for people who read the record.
const MAX_RESULT_BYTES: usize = 16 * 1024;

impl HookEvent {
    /// Reads a payload. Unknown fields are ignored.
    ///
    /// # Errors
    /// Fails when the payload is malformed.
    pub fn read(configured: Host, payload: &[u8]) -> Result<Self, UnreadablePayload> {
        let payload = payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload);
        let unreadable = |error: StrictJsonError| match error {
            StrictJsonError::Ambiguous(fault) => UnreadablePayload::Ambiguous(fault),
            StrictJsonError::Syntax(_) | StrictJsonError::Data(_) => {
                UnreadablePayload::Json(error.detail())
            }
        };
        let (value, inexact) = match json::read(payload) {
            Ok(value) => (value, None),
            // Numbers in a result decide nothing. Numbers in a step to be judged do.
            Err(StrictJsonError::Ambiguous(fault)) if fault.kind != JsonFaultKind::DuplicateKey => {
                let value = json::read_with_inexact_as_text(payload);
                (value.map_err(unreadable)?, Some(fault.to_string()))
            }
            Err(error) => return Err(unreadable(error)),
        };
        let Value::Object(fields) = value else {
            return Err(UnreadablePayload::Shape);
        };
        let host = host(configured, &fields);
        let event = event(&fields).ok_or(UnreadablePayload::NoEvent)?;
        let session = text(&fields, &["session_id", "sessionId", "conversation_id"]);
        let kind = EVENTS.iter().find(|(name, _)| *name == event);
        let mut moment = match kind {
            Some((_, kind)) => read_kind(host, *kind, &fields),
            None => unknown_event_kind(&event, &fields),
        };
        if let (HookEventKind::BeforeTool { actions, .. }, Some(inexact)) = (&mut moment, inexact) {
            *actions = Err(inexact);
        }
        Ok(Self {
            host,
            event,
            session,
            kind: moment,
        })
    }

    /// Returns true if the step must not run without an answer.
    #[must_use]
    pub fn is_gate(&self) -> bool {
        matches!(
            self.kind,
            HookEventKind::BeforeTool { .. } | HookEventKind::Prompt { .. }
        )
    }
}

/// Returns the agent that really runs the hook. Cursor and Copilot run hooks configured for Claude Code.
fn host(configured: Host, fields: &Map<String, Value>) -> Host {
    let says = |name: &str| {
        fields
            .get(name)
            .is_some_and(|value| !value.is_null() && value != "")
    };
    if says("cursor_version") {
        return Host::Cursor;
    }
    // Claude Code and Codex put no timestamp into their payloads; Copilot always does.
    let borrowed = matches!(configured, Host::ClaudeCode | Host::Codex);
    if says("sessionId") || (borrowed && says("timestamp")) {
        return Host::Copilot;
    }
    configured
}

/// Returns the event. One dialect of Copilot does not name it: its fields identify it.
fn event(fields: &Map<String, Value>) -> Option<String> {
    let named = text(fields, &["hook_event_name", "hookEventName", "eventName"]);
    let guessed = || {
        let has = |name: &str| fields.contains_key(name);
        if has("toolResult") {
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
    };
    named.or_else(|| {
        fields
            .contains_key("sessionId")
            .then(guessed)
            .flatten()
            .map(str::to_owned)
    })
}

fn read_kind(host: Host, kind: EventMeaning, fields: &Map<String, Value>) -> HookEventKind {
    match kind {
        EventMeaning::Start => HookEventKind::Start,
        EventMeaning::End => HookEventKind::End,
        EventMeaning::Prompt => HookEventKind::Prompt {
            id: text(fields, &["prompt_id", "turn_id", "generation_id"]),
            text: fields.get("prompt").and_then(prompt_text),
        },
        EventMeaning::BeforeTool => read_before_tool(host, fields),
        EventMeaning::BeforeShell => of_tool("Shell", Ok(fields.clone()), fields),
        EventMeaning::BeforeMcp => of_tool(&mcp_name(fields), input(fields), fields),
        EventMeaning::BeforeRead => of_tool("Read", Ok(fields.clone()), fields),
        EventMeaning::BeforeAgent => of_tool("Task", Ok(fields.clone()), fields),
        EventMeaning::AfterTool => {
            let response = ["tool_response", "toolResult", "tool_output"];
            let response = response.iter().find_map(|name| fields.get(*name));
            let failed = response
                .and_then(|response| response.get("error"))
                .filter(|error| !error.is_null());
            HookEventKind::AfterTool {
                reference: reference(fields),
                tool: tool(fields),
                used: tool_input_text(fields),
                result: match failed {
                    Some(error) => Err(truncated_text(error)),
                    None => Ok(response.map(truncated_text).unwrap_or_default()),
                },
                actions: finished_actions(host, fields),
            }
        }
        EventMeaning::AfterFailure => {
            let error = ["error", "error_message"];
            let error = error.iter().find_map(|name| fields.get(*name));
            HookEventKind::AfterTool {
                reference: reference(fields),
                tool: tool(fields),
                used: tool_input_text(fields),
                result: Err(error.map(truncated_text).unwrap_or_default()),
                actions: finished_actions(host, fields),
            }
        }
        EventMeaning::Output => {
            let said = ["last_assistant_message", "prompt_response", "text"];
            text(fields, &said).map_or(HookEventKind::Other, HookEventKind::Output)
        }
        EventMeaning::Failed => {
            let error = fields.get("error").map(truncated_text).unwrap_or_default();
            let details = text(fields, &["error_details"]);
            HookEventKind::Failed {
                kind: error.chars().take(100).collect(),
                message: details.unwrap_or(error),
            }
        }
    }
}

/// Handles an event with an unknown name. If it could precede a tool call, it counts as a call that cannot
/// be judged.
fn unknown_event_kind(event: &str, fields: &Map<String, Value>) -> HookEventKind {
    let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    let over = has(&[
        "tool_response",
        "toolResult",
        "tool_output",
        "error_message",
    ]);
    let names_tool = has(&["tool_name", "toolName"]);
    if !names_tool || over || IGNORED_EVENTS.contains(&event) {
        return HookEventKind::Other;
    }
    HookEventKind::BeforeTool {
        reference: reference(fields),
        call: call_id(fields),
        actions: Err(format!("the event `{event}` is not known here")),
    }
}

/// Returns the text of a prompt: a string, or a list of parts that each have a text.
fn prompt_text(prompt: &Value) -> Option<String> {
    match prompt {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let text = |part: &Value| match part {
                Value::String(text) => Some(text.clone()),
                part => Some(part.get("text")?.as_str()?.to_owned()),
            };
            let parts: Option<Vec<_>> = parts.iter().map(text).collect();
            parts
                .map(|text| text.join("\n"))
                .filter(|text| !text.is_empty())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn tool(fields: &Map<String, Value>) -> String {
    text(fields, &["tool_name", "toolName"]).unwrap_or_default()
}

/// Reads an event before a tool call. A call without a tool name cannot be judged.
fn read_before_tool(host: Host, fields: &Map<String, Value>) -> HookEventKind {
    let name = text(fields, &["tool_name", "toolName"]);
    let context = fields.get("mcp_context").and_then(Value::as_object);
    let name = match (name, context) {
        (_, Some(context)) if host == Host::Gemini => Some(mcp_name(context)),
        (name, _) => name,
    };
    match name {
        Some(name) => of_tool(&name, input(fields), fields),
        None => HookEventKind::BeforeTool {
            reference: reference(fields),
            call: call_id(fields),
            actions: Err("it names no tool".to_owned()),
        },
    }
}

/// Returns the actions of a finished tool call; none, if its input does not show them.
fn finished_actions(host: Host, fields: &Map<String, Value>) -> Vec<ToolAction> {
    match read_before_tool(host, fields) {
        HookEventKind::BeforeTool {
            actions: Ok(actions),
            ..
        } => actions,
        HookEventKind::BeforeTool { .. }
        | HookEventKind::Start
        | HookEventKind::End
        | HookEventKind::Prompt { .. }
        | HookEventKind::AfterTool { .. }
        | HookEventKind::Output(_)
        | HookEventKind::Failed { .. }
        | HookEventKind::Other => Vec::new(),
    }
}

fn of_tool(
    name: &str,
    input: Result<Map<String, Value>, String>,
    fields: &Map<String, Value>,
) -> HookEventKind {
    let cwd = text(fields, &["cwd"]);
    let subagent = text(fields, &["agent_id"]);
    HookEventKind::BeforeTool {
        reference: reference(fields),
        call: call_id(fields),
        actions: input.and_then(|input| actions(name, &input, cwd.as_deref(), subagent.as_deref())),
    }
}

/// Returns the name of an MCP server's tool, in the form that most agents use.
fn mcp_name(fields: &Map<String, Value>) -> String {
    let tool = text(fields, &["tool_name"]).unwrap_or_default();
    match text(fields, &["server_name", "server"]) {
        Some(server) => format!("mcp__{server}__{tool}"),
        None => format!("MCP:{tool}"),
    }
}

/// Returns the input of a tool: an object, or an object encoded in a text. An ambiguous text is an error.
fn input(fields: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    Ok(match raw_input(fields) {
        Some(Value::Object(input)) => input.clone(),
        Some(Value::String(text)) => match json::read(text.as_bytes()) {
            Ok(Value::Object(input)) => input,
            Err(StrictJsonError::Ambiguous(fault)) => return Err(fault.to_string()),
            Ok(_) | Err(_) => Map::from_iter([("input".to_owned(), text.clone().into())]),
        },
        Some(Value::Null) | None => Map::new(),
        Some(other) => Map::from_iter([("input".to_owned(), other.clone())]),
    })
}

/// Returns the input of a tool as it was sent.
fn raw_input(fields: &Map<String, Value>) -> Option<&Value> {
    let input = ["tool_input", "toolArgs"];
    input.iter().find_map(|name| fields.get(*name))
}

/// Returns the reference of a tool call. Without an identifier from the agent, identical calls have
/// identical references.
fn reference(fields: &Map<String, Value>) -> String {
    call_id(fields).unwrap_or_else(|| {
        let tool = text(fields, &["tool_name", "toolName"]);
        let input = raw_input(fields).cloned().unwrap_or_default();
        let used = Value::from(vec![tool.into(), input]);
        let kinds = number_kinds(&used).unwrap_or_default();
        let digest = Digest::of_parts([canonical(&used).as_bytes(), kinds.as_bytes()]).to_string();
        digest.chars().take(32).collect()
    })
}

/// Returns the agent's own identifier of a tool call.
fn call_id(fields: &Map<String, Value>) -> Option<String> {
    text(
        fields,
        &["tool_use_id", "toolUseId", "tool_call_id", "toolCallId"],
    )
}

fn text(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let found = names.iter().find_map(|name| fields.get(*name)?.as_str());
    found.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns a value as a text of limited length.
fn truncated_text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut end = text.len().min(MAX_RESULT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
