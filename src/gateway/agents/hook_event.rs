//! Events that agents report to a hook, read from each agent's own format.

use serde_json::{Map, Value};

use super::tool_actions::{ToolAction, actions};
use super::{CodingAgent, PayloadFields};
use crate::base::canonical_json::{canonical, number_kinds};
use crate::base::digest::Digest;
use crate::base::json::{self, JsonFault, JsonFaultKind, StrictJsonError};

/// Reason why a payload cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadablePayload {
    /// The payload is not JSON.
    #[error("the payload is not JSON ({0})")]
    Json(String),
    /// Two parsers could read the payload in two ways.
    #[error("the payload is ambiguous ({0})")]
    Ambiguous(JsonFault),
    /// The payload is not an object.
    #[error("the payload is not an object")]
    Shape,
    /// The payload does not name its event.
    #[error("the payload names no event")]
    NoEvent,
}

/// An event that an agent reports.
#[derive(Clone, Debug, PartialEq)]
pub struct HookEvent {
    /// Agent that really runs the hook: some agents run hooks meant for another.
    pub agent: CodingAgent,
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
    /// Settings changed while the agent runs. It may be told to keep the old ones.
    SettingsChange {
        /// The changed file, if the payload names it.
        file: Option<String>,
        /// Working directory of the agent.
        cwd: Option<String>,
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
pub(crate) enum EventMeaning {
    /// A session starts or is resumed.
    Start,
    /// A session ends, when agents hardly wait.
    End,
    /// The user sends a prompt, which may be held.
    Prompt,
    /// A tool is about to run.
    BeforeTool,
    /// A shell command is about to run.
    BeforeShell,
    /// A tool of an MCP server is about to run.
    BeforeMcp,
    /// A file is about to be read.
    BeforeRead,
    /// Another agent is about to start.
    BeforeAgent,
    /// A tool has run.
    AfterTool,
    /// A tool has failed.
    AfterFailure,
    /// Settings changed while the agent runs.
    SettingsChange,
    /// The agent produced output.
    Output,
    /// The agent failed.
    Failed,
}

impl EventMeaning {
    /// Returns true if a request may be held for an operator at such an event.
    pub(in crate::gateway) fn is_gate(self) -> bool {
        match self {
            Self::Prompt
            | Self::BeforeTool
            | Self::BeforeShell
            | Self::BeforeMcp
            | Self::BeforeRead
            | Self::BeforeAgent => true,
            Self::Start
            | Self::End
            | Self::AfterTool
            | Self::AfterFailure
            | Self::SettingsChange
            | Self::Output
            | Self::Failed => false,
        }
    }

    /// Returns true if the agent waits for a decision at such an event.
    pub(in crate::gateway) fn can_be_refused(self) -> bool {
        self.is_gate() || self == Self::SettingsChange
    }

    /// Finds the meaning of an event by its name, in the tables of all agents.
    fn from_name(event: &str) -> Option<Self> {
        CodingAgent::ALL.into_iter().find_map(|agent| {
            let known = agent.adapter().events().iter();
            let mut known = known.chain(agent.adapter().other_events());
            known
                .find(|(name, _)| *name == event)
                .map(|(_, meaning)| *meaning)
        })
    }
}

/// Longest tool input, in characters, that is reported for a tool call without a request.
const MAX_INPUT_CHARS: usize = 2000;

/// Returns the input of a tool as a text: only its command, if it has one.
fn tool_input_text(fields: &PayloadFields) -> Option<String> {
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
    pub fn read(configured: CodingAgent, payload: &[u8]) -> Result<Self, UnreadablePayload> {
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
        let agent = sender(configured, &fields);
        let fields = agent.adapter().read_fields(fields);
        let event = event(&fields).ok_or(UnreadablePayload::NoEvent)?;
        let session = text(&fields, &["session_id", "sessionId", "conversation_id"]);
        let mut moment = match EventMeaning::from_name(&event) {
            Some(meaning) => read_kind(agent, meaning, &fields),
            None => unknown_event_kind(&event, &fields),
        };
        if let (HookEventKind::BeforeTool { actions, .. }, Some(inexact)) = (&mut moment, inexact) {
            *actions = Err(inexact);
        }
        Ok(Self {
            agent,
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

/// Returns the agent that really runs the hook: some agents run hooks configured for another.
fn sender(configured: CodingAgent, fields: &PayloadFields) -> CodingAgent {
    let mut all = CodingAgent::ALL.into_iter();
    let sender = all.find(|agent| agent.adapter().is_sender(fields, configured));
    sender.unwrap_or(configured)
}

/// Returns the event. If the payload does not name it, its fields may identify it.
fn event(fields: &PayloadFields) -> Option<String> {
    let keys = ["hook_event_name", "hookEventName", "eventName", "hookName"];
    let named = text(fields, &keys);
    named.or_else(|| {
        let mut all = CodingAgent::ALL.into_iter();
        let identified = all.find_map(|agent| agent.adapter().unnamed_event(fields));
        identified.map(str::to_owned)
    })
}

/// Returns true if a field is there and not empty.
pub(super) fn has_value(fields: &PayloadFields, name: &str) -> bool {
    fields
        .get(name)
        .is_some_and(|value| !value.is_null() && value != "")
}

fn read_kind(agent: CodingAgent, meaning: EventMeaning, fields: &PayloadFields) -> HookEventKind {
    match meaning {
        EventMeaning::Start => HookEventKind::Start,
        EventMeaning::End => HookEventKind::End,
        EventMeaning::Prompt => HookEventKind::Prompt {
            id: text(fields, &["prompt_id", "turn_id", "generation_id"]),
            text: fields.get("prompt").and_then(prompt_text),
        },
        EventMeaning::BeforeTool => read_before_tool(agent, fields),
        EventMeaning::BeforeShell => of_tool(&["Shell".to_owned()], Ok(fields.clone()), fields),
        EventMeaning::BeforeMcp => of_tool(&[mcp_name(fields)], input(fields), fields),
        EventMeaning::BeforeRead => of_tool(&["Read".to_owned()], Ok(fields.clone()), fields),
        EventMeaning::BeforeAgent => of_tool(&["Task".to_owned()], Ok(fields.clone()), fields),
        EventMeaning::AfterTool => {
            let response = ["tool_response", "toolResult", "tool_output"];
            let response = response.iter().find_map(|name| fields.get(*name));
            let failed = response
                .and_then(|response| response.get("error"))
                .filter(|error| !error.is_null());
            HookEventKind::AfterTool {
                reference: reference(fields),
                tool: named_tool(fields).unwrap_or_default(),
                used: tool_input_text(fields),
                result: match failed {
                    Some(error) => Err(truncated_text(error)),
                    None => Ok(response.map(truncated_text).unwrap_or_default()),
                },
                actions: finished_actions(agent, fields),
            }
        }
        EventMeaning::AfterFailure => {
            let error = ["error", "error_message"];
            let error = error.iter().find_map(|name| fields.get(*name));
            HookEventKind::AfterTool {
                reference: reference(fields),
                tool: named_tool(fields).unwrap_or_default(),
                used: tool_input_text(fields),
                result: Err(error.map(truncated_text).unwrap_or_default()),
                actions: finished_actions(agent, fields),
            }
        }
        EventMeaning::SettingsChange => HookEventKind::SettingsChange {
            file: text(fields, &["file_path"]),
            cwd: text(fields, &["cwd"]),
        },
        EventMeaning::Output => {
            let names = ["last_assistant_message", "prompt_response", "text"];
            text(fields, &names).map_or(HookEventKind::Other, HookEventKind::Output)
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
fn unknown_event_kind(event: &str, fields: &PayloadFields) -> HookEventKind {
    let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    let over = has(&[
        "tool_response",
        "toolResult",
        "tool_output",
        "error_message",
    ]);
    let names_tool = has(&["tool_name", "toolName"]);
    if !names_tool || over || is_ignored(event) {
        return HookEventKind::Other;
    }
    HookEventKind::BeforeTool {
        reference: reference(fields),
        call: call_id(fields),
        actions: Err(format!("the event `{event}` is unknown")),
    }
}

/// Returns true if an agent lists the event as one that permits nothing when it is ignored.
fn is_ignored(event: &str) -> bool {
    let mut all = CodingAgent::ALL.into_iter();
    all.any(|agent| agent.adapter().ignored_events().contains(&event))
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

/// Returns the name of the tool that a payload names.
pub(super) fn named_tool(fields: &PayloadFields) -> Option<String> {
    text(fields, &["tool_name", "toolName"])
}

/// Reads an event before a tool call. A call without a tool name cannot be judged.
fn read_before_tool(agent: CodingAgent, fields: &PayloadFields) -> HookEventKind {
    let name = agent.adapter().tool_name(fields);
    match name {
        Some(name) => {
            let names = agent.adapter().mcp_tool_names(&name);
            match names.as_slice() {
                [] => of_tool(&[name], input(fields), fields),
                names => of_tool(names, input(fields), fields),
            }
        }
        None => HookEventKind::BeforeTool {
            reference: reference(fields),
            call: call_id(fields),
            actions: Err("the event names no tool".to_owned()),
        },
    }
}

/// Returns the actions of a finished tool call; none, if its input does not show them.
fn finished_actions(agent: CodingAgent, fields: &PayloadFields) -> Vec<ToolAction> {
    match read_before_tool(agent, fields) {
        HookEventKind::BeforeTool {
            actions: Ok(actions),
            ..
        } => actions,
        HookEventKind::BeforeTool { .. }
        | HookEventKind::Start
        | HookEventKind::End
        | HookEventKind::Prompt { .. }
        | HookEventKind::AfterTool { .. }
        | HookEventKind::SettingsChange { .. }
        | HookEventKind::Output(_)
        | HookEventKind::Failed { .. }
        | HookEventKind::Other => Vec::new(),
    }
}

/// Reads a tool call. All actions under all names that the tool could have are judged.
fn of_tool(
    names: &[String],
    input: Result<Map<String, Value>, String>,
    fields: &PayloadFields,
) -> HookEventKind {
    let cwd = text(fields, &["cwd"]);
    let subagent = text(fields, &["agent_id", "agentId"]);
    let all_actions = |input: Map<String, Value>| {
        let each = names
            .iter()
            .map(|name| actions(name, &input, cwd.as_deref(), subagent.as_deref()));
        each.collect::<Result<Vec<_>, _>>()
            .map(|actions| actions.concat())
    };
    HookEventKind::BeforeTool {
        reference: reference(fields),
        call: call_id(fields),
        actions: input.and_then(all_actions),
    }
}

/// Returns the name of an MCP server's tool, in the form that most agents use.
pub(super) fn mcp_name(fields: &PayloadFields) -> String {
    let tool = text(fields, &["tool_name"]).unwrap_or_default();
    match text(fields, &["server_name", "server"]) {
        Some(server) => format!("mcp__{server}__{tool}"),
        None => format!("MCP:{tool}"),
    }
}

/// Most ways of splitting a glued name of an MCP tool. Each one is judged.
const MAX_MCP_NAMES: usize = 8;

/// Returns the names that a tool could have, if an agent glues the names of server and tool with `glue`.
pub(super) fn glued_mcp_names(tool: &str, glue: char) -> Vec<String> {
    let splits = tool.match_indices(glue).filter_map(|(at, glue)| {
        let (server, tool) = (tool.get(..at)?, tool.get(at + glue.len()..)?);
        let whole = !server.is_empty() && !tool.is_empty();
        whole.then(|| format!("mcp__{server}__{tool}"))
    });
    splits.take(MAX_MCP_NAMES).collect()
}

/// Returns the input of a tool: an object, or an object encoded in a text. An ambiguous text is an error.
fn input(fields: &PayloadFields) -> Result<Map<String, Value>, String> {
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
fn raw_input(fields: &PayloadFields) -> Option<&Value> {
    let input = ["tool_input", "toolArgs"];
    input.iter().find_map(|name| fields.get(*name))
}

/// Returns the reference of a tool call. Without an identifier from the agent, identical calls have
/// identical references.
fn reference(fields: &PayloadFields) -> String {
    call_id(fields).unwrap_or_else(|| {
        let tool = named_tool(fields);
        let input = raw_input(fields).cloned().unwrap_or_default();
        let used = Value::from(vec![tool.into(), input]);
        let kinds = number_kinds(&used).unwrap_or_default();
        let digest = Digest::of_parts([canonical(&used).as_bytes(), kinds.as_bytes()]).to_string();
        digest.chars().take(32).collect()
    })
}

/// Returns the agent's own identifier of a tool call.
fn call_id(fields: &PayloadFields) -> Option<String> {
    text(
        fields,
        &["tool_use_id", "toolUseId", "tool_call_id", "toolCallId"],
    )
}

fn text(fields: &PayloadFields, names: &[&str]) -> Option<String> {
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
