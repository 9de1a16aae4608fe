//! What an agent tells a hook, read from its own words.

use serde_json::{Map, Value};

use super::Host;
use super::tools::{Action, actions};
use crate::base::canon::{canonical, number_kinds};
use crate::base::digest::Digest;
use crate::base::json::{self, FaultKind, JsonError, JsonFault};

/// Why a payload cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is no JSON.
    #[error("it is not JSON ({0})")]
    Json(String),
    /// Two readers could read it in two ways.
    #[error("it is ambiguous ({0})")]
    Ambiguous(JsonFault),
    /// It is no object.
    #[error("it is not an object")]
    Shape,
    /// It does not say what happened.
    #[error("it names no event")]
    NoEvent,
}

/// What an agent tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The agent that really runs the hook: some run each other's.
    pub host: Host,
    /// The event, as the agent names it.
    pub event: String,
    /// The session, as the agent names it.
    pub session: Option<String>,
    /// What happened.
    pub moment: Moment,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Moment {
    /// A session begins, or is taken up again.
    Start,
    /// A session ends.
    End,
    /// A person says something.
    Prompt {
        /// What the agent calls it.
        id: Option<String>,
        /// What they say; nothing, if that cannot be read.
        text: Option<String>,
    },
    /// A tool is about to be used.
    Before {
        /// What the agent calls this use.
        reference: String,
        /// The agent's own identifier of this use, where the payload has one.
        call: Option<String>,
        /// What it would do; or why nobody can tell.
        actions: Result<Vec<Action>, String>,
    },
    /// A tool was used.
    After {
        /// What the agent calls this use.
        reference: String,
        /// The tool, as the agent calls it.
        tool: String,
        /// Input of the tool, where the payload has it: for people who read what ran.
        used: Option<String>,
        /// What came of it.
        result: Result<String, String>,
        /// What it did, as far as its input tells.
        actions: Vec<Action>,
    },
    /// The agent said something.
    Said(String),
    /// The agent failed.
    Failed {
        /// What kind of failure.
        kind: String,
        /// What it says.
        message: String,
    },
    /// Something that nobody here is interested in.
    Other,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Start,
    End,
    Prompt,
    Before,
    BeforeShell,
    BeforeMcp,
    BeforeRead,
    BeforeAgent,
    After,
    AfterFailure,
    Said,
    Failed,
}

/// Every event that means something, by the names that the agents give it. No two agents mean different things by
/// the same name.
#[rustfmt::skip]
const EVENTS: &[(&str, Kind)] = &[
    ("SessionStart", Kind::Start), ("sessionStart", Kind::Start),
    ("SessionEnd", Kind::End), ("sessionEnd", Kind::End),
    ("UserPromptSubmit", Kind::Prompt), ("BeforeAgent", Kind::Prompt), ("beforeSubmitPrompt", Kind::Prompt),
    ("userPromptSubmitted", Kind::Prompt), ("userPromptSubmit", Kind::Prompt), ("UserPromptSubmitted", Kind::Prompt),
    ("PreToolUse", Kind::Before), ("preToolUse", Kind::Before), ("BeforeTool", Kind::Before),
    ("beforeShellExecution", Kind::BeforeShell), ("beforeMCPExecution", Kind::BeforeMcp),
    ("beforeReadFile", Kind::BeforeRead), ("subagentStart", Kind::BeforeAgent),
    ("PostToolUse", Kind::After), ("postToolUse", Kind::After), ("AfterTool", Kind::After),
    ("PostToolUseFailure", Kind::AfterFailure), ("postToolUseFailure", Kind::AfterFailure),
    ("Stop", Kind::Said), ("SubagentStop", Kind::Said), ("AfterAgent", Kind::Said),
    ("afterAgentResponse", Kind::Said), ("agentStop", Kind::Said),
    ("StopFailure", Kind::Failed), ("errorOccurred", Kind::Failed), ("ErrorOccurred", Kind::Failed),
];

/// Events with a tool in them that let nothing run by being passed over.
const HARMLESS: &[&str] = &[
    "PermissionRequest",
    "permissionRequest",
    "PermissionDenied",
    "permissionDenied",
    "PostToolBatch",
    "afterShellExecution",
    "afterMCPExecution",
    "afterFileEdit",
];

/// Longest input of a tool that is reported of a use that ran unasked.
const MOST_USED: usize = 2000;

/// The input of a tool that was used, as a text: its command alone, where it has one.
fn used(fields: &Map<String, Value>) -> Option<String> {
    let names = ["tool_input", "toolInput", "toolArgs", "arguments", "args"];
    let input = names.iter().find_map(|name| fields.get(*name))?;
    let text = match input.get("command").unwrap_or(input) {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(text.chars().take(MOST_USED).collect())
}

/// Longest result that is reported: it is for people who look what came of it.
const MOST: usize = 16 * 1024;

impl Told {
    /// Reads a payload. Fields that nobody here knows are harmless.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(configured: Host, payload: &[u8]) -> Result<Self, Unreadable> {
        let payload = payload.strip_prefix(b"\xef\xbb\xbf").unwrap_or(payload);
        let unreadable = |error: JsonError| match error {
            JsonError::Ambiguous(fault) => Unreadable::Ambiguous(fault),
            JsonError::Syntax(_) | JsonError::Data(_) => Unreadable::Json(error.detail()),
        };
        let (value, inexact) = match json::read(payload) {
            Ok(value) => (value, None),
            // The numbers of a result decide nothing; those of a step that is to be judged do.
            Err(JsonError::Ambiguous(fault)) if fault.kind != FaultKind::DuplicateKey => {
                let value = json::read_with_inexact_as_text(payload);
                (value.map_err(unreadable)?, Some(fault.to_string()))
            }
            Err(error) => return Err(unreadable(error)),
        };
        let Value::Object(fields) = value else {
            return Err(Unreadable::Shape);
        };
        let host = host(configured, &fields);
        let event = event(&fields).ok_or(Unreadable::NoEvent)?;
        let session = text(&fields, &["session_id", "sessionId", "conversation_id"]);
        let kind = EVENTS.iter().find(|(name, _)| *name == event);
        let mut moment = match kind {
            Some((_, kind)) => moment(host, *kind, &fields),
            None => unnamed(&event, &fields),
        };
        if let (Moment::Before { actions, .. }, Some(inexact)) = (&mut moment, inexact) {
            *actions = Err(inexact);
        }
        Ok(Self {
            host,
            event,
            session,
            moment,
        })
    }

    /// Whether nothing may go on without an answer.
    #[must_use]
    pub fn is_gate(&self) -> bool {
        matches!(self.moment, Moment::Before { .. } | Moment::Prompt { .. })
    }
}

/// Who really runs the hook. Cursor and Copilot run those that are written down for Claude Code.
fn host(configured: Host, fields: &Map<String, Value>) -> Host {
    let says = |name: &str| fields.get(name).is_some_and(|it| !it.is_null() && it != "");
    if says("cursor_version") {
        return Host::Cursor;
    }
    // Claude Code and Codex put no time into their payloads, and Copilot always does.
    let borrowed = matches!(configured, Host::ClaudeCode | Host::Codex);
    if says("sessionId") || (borrowed && says("timestamp")) {
        return Host::Copilot;
    }
    configured
}

/// The event. One dialect of Copilot names none: it is known by its fields.
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

fn moment(host: Host, kind: Kind, fields: &Map<String, Value>) -> Moment {
    match kind {
        Kind::Start => Moment::Start,
        Kind::End => Moment::End,
        Kind::Prompt => Moment::Prompt {
            id: text(fields, &["prompt_id", "turn_id", "generation_id"]),
            text: fields.get("prompt").and_then(spoken),
        },
        Kind::Before => before(host, fields),
        Kind::BeforeShell => of_tool("Shell", Ok(fields.clone()), fields),
        Kind::BeforeMcp => of_tool(&mcp_name(fields), input(fields), fields),
        Kind::BeforeRead => of_tool("Read", Ok(fields.clone()), fields),
        Kind::BeforeAgent => of_tool("Task", Ok(fields.clone()), fields),
        Kind::After => {
            let response = ["tool_response", "toolResult", "tool_output"];
            let response = response.iter().find_map(|name| fields.get(*name));
            let failed = response
                .and_then(|it| it.get("error"))
                .filter(|it| !it.is_null());
            Moment::After {
                reference: reference(fields),
                tool: tool(fields),
                used: used(fields),
                result: match failed {
                    Some(error) => Err(cut(error)),
                    None => Ok(response.map(cut).unwrap_or_default()),
                },
                actions: done(host, fields),
            }
        }
        Kind::AfterFailure => {
            let error = ["error", "error_message"];
            let error = error.iter().find_map(|name| fields.get(*name));
            Moment::After {
                reference: reference(fields),
                tool: tool(fields),
                used: used(fields),
                result: Err(error.map(cut).unwrap_or_default()),
                actions: done(host, fields),
            }
        }
        Kind::Said => {
            let said = ["last_assistant_message", "prompt_response", "text"];
            text(fields, &said).map_or(Moment::Other, Moment::Said)
        }
        Kind::Failed => {
            let error = fields.get("error").map(cut).unwrap_or_default();
            let details = text(fields, &["error_details"]);
            Moment::Failed {
                kind: error.chars().take(100).collect(),
                message: details.unwrap_or(error),
            }
        }
    }
}

/// An event of a name that nobody here knows. One that could stand before the use of a tool is a use that nobody
/// can judge.
fn unnamed(event: &str, fields: &Map<String, Value>) -> Moment {
    let has = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    let over = has(&[
        "tool_response",
        "toolResult",
        "tool_output",
        "error_message",
    ]);
    let names_tool = has(&["tool_name", "toolName"]);
    if !names_tool || over || HARMLESS.contains(&event) {
        return Moment::Other;
    }
    Moment::Before {
        reference: reference(fields),
        call: call_id(fields),
        actions: Err(format!("the event `{event}` is not known here")),
    }
}

/// What somebody says: a text, or a list of parts of which each has one.
fn spoken(prompt: &Value) -> Option<String> {
    match prompt {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let text = |part: &Value| match part {
                Value::String(text) => Some(text.clone()),
                part => Some(part.get("text")?.as_str()?.to_owned()),
            };
            let parts: Option<Vec<_>> = parts.iter().map(text).collect();
            parts.map(|it| it.join("\n")).filter(|it| !it.is_empty())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn tool(fields: &Map<String, Value>) -> String {
    text(fields, &["tool_name", "toolName"]).unwrap_or_default()
}

/// A tool is about to be used. A use without a tool's name is one that nobody can judge.
fn before(host: Host, fields: &Map<String, Value>) -> Moment {
    let name = text(fields, &["tool_name", "toolName"]);
    let context = fields.get("mcp_context").and_then(Value::as_object);
    let name = match (name, context) {
        (_, Some(context)) if host == Host::Gemini => Some(mcp_name(context)),
        (name, _) => name,
    };
    match name {
        Some(name) => of_tool(&name, input(fields), fields),
        None => Moment::Before {
            reference: reference(fields),
            call: call_id(fields),
            actions: Err("it names no tool".to_owned()),
        },
    }
}

/// Actions of a use of a tool that is over; none, where its input does not tell.
fn done(host: Host, fields: &Map<String, Value>) -> Vec<Action> {
    match before(host, fields) {
        Moment::Before {
            actions: Ok(actions),
            ..
        } => actions,
        Moment::Before { .. }
        | Moment::Start
        | Moment::End
        | Moment::Prompt { .. }
        | Moment::After { .. }
        | Moment::Said(_)
        | Moment::Failed { .. }
        | Moment::Other => Vec::new(),
    }
}

fn of_tool(
    name: &str,
    input: Result<Map<String, Value>, String>,
    fields: &Map<String, Value>,
) -> Moment {
    let cwd = text(fields, &["cwd"]);
    let subagent = text(fields, &["agent_id"]);
    Moment::Before {
        reference: reference(fields),
        call: call_id(fields),
        actions: input.and_then(|input| actions(name, &input, cwd.as_deref(), subagent.as_deref())),
    }
}

/// The name of a tool of an MCP server, as most agents write it.
fn mcp_name(fields: &Map<String, Value>) -> String {
    let tool = text(fields, &["tool_name"]).unwrap_or_default();
    match text(fields, &["server_name", "server"]) {
        Some(server) => format!("mcp__{server}__{tool}"),
        None => format!("MCP:{tool}"),
    }
}

/// What a tool is told: an object, or one that is written in a text. A text that two readers could read in
/// two ways is none.
fn input(fields: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    Ok(match raw_input(fields) {
        Some(Value::Object(input)) => input.clone(),
        Some(Value::String(text)) => match json::read(text.as_bytes()) {
            Ok(Value::Object(input)) => input,
            Err(JsonError::Ambiguous(fault)) => return Err(fault.to_string()),
            Ok(_) | Err(_) => Map::from_iter([("input".to_owned(), text.clone().into())]),
        },
        Some(Value::Null) | None => Map::new(),
        Some(other) => Map::from_iter([("input".to_owned(), other.clone())]),
    })
}

/// The same as it was sent.
fn raw_input(fields: &Map<String, Value>) -> Option<&Value> {
    let input = ["tool_input", "toolArgs"];
    input.iter().find_map(|name| fields.get(*name))
}

/// What the agent calls a use of a tool; where it has no name for it, the same use has the same one.
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

/// The agent's own identifier of a use of a tool.
fn call_id(fields: &Map<String, Value>) -> Option<String> {
    text(
        fields,
        &["tool_use_id", "toolUseId", "tool_call_id", "toolCallId"],
    )
}

fn text(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let found = names.iter().find_map(|name| fields.get(*name)?.as_str());
    found.filter(|it| !it.is_empty()).map(str::to_owned)
}

/// A value in words, and not too many.
fn cut(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut end = text.len().min(MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
