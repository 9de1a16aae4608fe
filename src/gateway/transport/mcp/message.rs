//! Messages between an agent and an MCP server, as far as the proxy has to understand them.
//!
//! INVARIANT: the proxy forwards the received bytes, so a server gets exactly the tokens that were judged.
//! A message that two parsers could understand in two ways is not forwarded: one with a duplicate key, with
//! a known name in another case, or, in a tool call, with an inexact number.

use serde_json::{Map, Value, json};

use crate::base::json::{self, JsonFaultKind, StrictJsonError};
use crate::base::text::one_line;
use crate::gateway::protocol::call::CallFault;
use crate::gateway::protocol::rpc::RpcId;
use crate::gateway::transport::stdio::MessageLine;

/// A tool call.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) id: RpcId,
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    /// Token for progress notifications to the agent.
    pub(super) progress: Option<Value>,
    pub(super) line: MessageLine,
}

/// A message of an agent.
#[derive(Debug)]
pub(super) enum AgentMessage {
    /// A tool call.
    Call(Box<ToolCall>),
    /// A request for the list of tools.
    List(RpcId, MessageLine),
    /// Any other request.
    Request(RpcId, MessageLine),
    /// Cancellation of a request.
    Cancelled(RpcId, MessageLine),
    /// A message without an answer: a notification, or a response.
    Other(MessageLine),
    /// A malformed message. It is not forwarded.
    Malformed(Option<RpcId>, CallFault),
}

/// A message of a server.
#[derive(Debug)]
pub(super) enum ServerMessage {
    /// A response: its id, its content, and the line to forward.
    Answer(RpcId, Value, MessageLine),
    /// A request or a notification.
    Other(MessageLine),
    /// A response that two parsers could understand in two ways.
    Ambiguous(RpcId, String),
    /// Text that is not a message.
    Invalid,
}

impl AgentMessage {
    pub(super) fn read(line: &[u8]) -> Self {
        let (message, inexact) = match json::read::<Value>(line) {
            Ok(message) => (message, None),
            Err(StrictJsonError::Ambiguous(fault)) => {
                let refused = CallFault::ambiguous(&fault, "params");
                match json::read_with_inexact_as_text(line) {
                    // A refused id would come back as another one.
                    Ok(message) if is_exact_id(line) => (message, Some(refused)),
                    Ok(_) | Err(_) if fault.kind == JsonFaultKind::DuplicateKey => {
                        return Self::Malformed(message_id(line), refused);
                    }
                    Ok(_) | Err(_) => return Self::Malformed(None, refused),
                }
            }
            Err(error) => {
                return Self::Malformed(None, CallFault::new(CallFault::PARSE, error.to_string()));
            }
        };
        let Some(fields) = message.as_object() else {
            return malformed(None, "batches are not supported: send one message per line");
        };
        let id = match fields.get("id") {
            None => None,
            Some(id) => match serde_json::from_value::<RpcId>(id.clone()) {
                Ok(id) => Some(id),
                Err(_) => return malformed(None, "an id must be a number or text"),
            },
        };
        if fields.get("jsonrpc") != Some(&json!("2.0")) {
            return malformed(id, "not a JSON-RPC 2.0 message");
        }
        let is_call = fields
            .get("method")
            .is_some_and(|method| method == "tools/call");
        let stray = is_call
            .then(|| unknown_field(fields, &REQUEST_FIELDS))
            .flatten();
        if let Some(name) = misspelt(fields, &ENVELOPE_FIELDS).or(stray) {
            let name = one_line(name);
            let of = if is_call { "a call" } else { "a message" };
            return malformed(id, &format!("`{name}` is not a field of {of}"));
        }
        let line = MessageLine::received(line);
        let method = match fields.get("method") {
            None => None,
            Some(Value::String(method)) => Some(method.as_str()),
            Some(_) => return malformed(id, "a method must be text"),
        };
        match (method, id) {
            (Some("tools/call"), Some(id)) => match inexact {
                Some(refused) => Self::Malformed(Some(id), refused),
                None => call(id, &message, line),
            },
            (Some("tools/call"), None) => malformed(None, "a tool call must have an id"),
            (Some("tools/list"), Some(id)) => Self::List(id, line),
            (Some(_), Some(id)) => Self::Request(id, line),
            (Some("notifications/cancelled"), None) => match cancelled_id(fields) {
                Some(id) => Self::Cancelled(id, line),
                None => Self::Other(line),
            },
            (Some(_), None) => Self::Other(line),
            (None, Some(_)) if fields.contains_key("result") != fields.contains_key("error") => {
                Self::Other(line)
            }
            (None, id) => malformed(id, "neither a request nor an answer"),
        }
    }
}

/// Name among the arguments under which other parameters of a call are judged.
const EXTRA_PARAMS: &str = "mcp_call";

/// Fields of a message, of a request, and of the parameters of a tool call. Some parsers ignore their case.
const ENVELOPE_FIELDS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const REQUEST_FIELDS: [&str; 4] = ["jsonrpc", "id", "method", "params"];
const CALL_FIELDS: [&str; 3] = ["name", "arguments", "_meta"];

/// Returns a field that some parsers would take for one of `known`, and others would not.
fn misspelt<'f>(fields: &'f Map<String, Value>, known: &[&str]) -> Option<&'f str> {
    let mut names = fields.keys().map(String::as_str);
    names.find(|name| {
        let folded = fold_case(name);
        !known.contains(name) && known.contains(&folded.as_str())
    })
}

/// Returns a field that is not in `known`.
fn unknown_field<'f>(fields: &'f Map<String, Value>, known: &[&str]) -> Option<&'f str> {
    let mut names = fields.keys().map(String::as_str);
    names.find(|name| !known.contains(name))
}

/// Folds a name as parsers do that ignore case. Folding is by Unicode: the long s becomes s, the Kelvin
/// sign becomes k, and an i with any dot becomes i.
fn fold_case(name: &str) -> String {
    let upper = name.chars().flat_map(char::to_uppercase);
    let lower = upper.flat_map(char::to_lowercase);
    lower.filter(|letter| *letter != '\u{307}').collect()
}

/// Returns the id of a refused message, if it has exactly one.
pub(super) fn message_id(line: &[u8]) -> Option<RpcId> {
    #[derive(serde::Deserialize)]
    struct MessageWithId {
        id: Option<RpcId>,
    }
    if !is_exact_id(line) {
        return None;
    }
    serde_json::from_slice::<MessageWithId>(line).ok()?.id
}

/// Returns true if the id of a message, if any, is exact.
fn is_exact_id(line: &[u8]) -> bool {
    let id = json::locate(line, &["id"]).and_then(|place| line.get(place));
    id.is_none_or(|id| json::check(id).is_ok())
}

fn malformed(id: Option<RpcId>, why: &str) -> AgentMessage {
    AgentMessage::Malformed(id, CallFault::new(CallFault::REQUEST, why))
}

fn call(id: RpcId, message: &Value, line: MessageLine) -> AgentMessage {
    let params = message.get("params");
    let tool = params.and_then(|params| params.get("name")?.as_str());
    let Some(tool) = tool.filter(|name| !name.is_empty()).map(str::to_owned) else {
        return AgentMessage::Malformed(
            Some(id),
            CallFault::wrong_params("name", "the call names no tool"),
        );
    };
    let fields = params.and_then(Value::as_object);
    if let Some(name) = fields.and_then(|fields| misspelt(fields, &CALL_FIELDS)) {
        return AgentMessage::Malformed(
            Some(id),
            CallFault::wrong_params(name, "unknown parameter"),
        );
    }
    let arguments = match params.and_then(|params| params.get("arguments")) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => {
            let fault = CallFault::wrong_params("arguments", "must be an object");
            return AgentMessage::Malformed(Some(id), fault);
        }
    };
    let arguments = judged_arguments(arguments, fields);
    let progress = message.pointer("/params/_meta/progressToken").cloned();
    AgentMessage::Call(Box::new(ToolCall {
        id,
        tool,
        arguments,
        progress,
        line,
    }))
}

/// Returns the values by which a call is judged: its arguments, and all other parameters that the server
/// may use.
fn judged_arguments(
    mut arguments: Map<String, Value>,
    params: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let known = CALL_FIELDS;
    let params = params.into_iter().flatten();
    let rest = params.filter(|(name, _)| !known.contains(&name.as_str()));
    let rest: Map<_, _> = rest
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if rest.is_empty() {
        return arguments;
    }
    if let Some(asked) = arguments.remove(EXTRA_PARAMS) {
        arguments.insert(format!("asked_{EXTRA_PARAMS}"), asked);
    }
    arguments.insert(EXTRA_PARAMS.to_owned(), rest.into());
    arguments
}

fn cancelled_id(fields: &Map<String, Value>) -> Option<RpcId> {
    let id = fields.get("params")?.get("requestId")?;
    serde_json::from_value(id.clone()).ok()
}

impl ServerMessage {
    pub(super) fn read(line: &[u8]) -> Self {
        let message = match json::read_with_inexact_as_text(line) {
            Ok(message) => message,
            Err(StrictJsonError::Ambiguous(fault)) => {
                return match message_id(line) {
                    Some(id) => Self::Ambiguous(id, fault.to_string()),
                    None => Self::Invalid,
                };
            }
            Err(_) => return Self::Invalid,
        };
        if message.get("jsonrpc") != Some(&json!("2.0")) {
            return Self::Invalid;
        }
        let passed_on = MessageLine::received(line);
        if message.get("method").is_some() {
            return Self::Other(passed_on);
        }
        let id = message.get("id").cloned();
        match id.map(serde_json::from_value::<RpcId>) {
            Some(Ok(id)) => Self::Answer(id, message, passed_on),
            Some(Err(_)) | None => Self::Invalid,
        }
    }
}

/// Builds the result of a denied tool call, as the agent's model reads it.
pub(super) fn denied_result(id: &RpcId, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "content": [{"type": "text", "text": why}],
        "isError": true,
        "resultType": "complete",
    }})
}

/// Builds the result of the proxy's own tool.
pub(super) fn own_result(id: &RpcId, words: &str, outcome: OwnToolOutcome) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "content": [{"type": "text", "text": words}],
        "isError": outcome == OwnToolOutcome::Failed,
        "resultType": "complete",
    }})
}

/// Outcome of the proxy's own tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnToolOutcome {
    Done,
    Failed,
}

/// Builds an error response.
pub(super) fn fault_response(id: Option<&RpcId>, fault: &CallFault) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": fault})
}

/// Builds a notification that a call still waits.
pub(super) fn progress_notification(token: &Value, ticks: u32, words: &str) -> Value {
    // Progress must only grow, and the server's own progress starts later. So these values stay near zero.
    let progress = f64::from(ticks) / 1e6;
    json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": progress, "message": words}})
}

/// Returns the outcome of a tool call as text: its result, or the code and message of its error.
pub(super) fn outcome(message: &Value) -> Result<String, (String, String)> {
    if let Some(error) = message.get("error") {
        let code = error.get("code").unwrap_or(&Value::Null).to_string();
        let words = error.get("message").and_then(Value::as_str);
        return Err((code, words.unwrap_or_default().to_owned()));
    }
    let content = message
        .pointer("/result/content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let texts = content.filter_map(|item| item.get("text")?.as_str());
    let words = texts.collect::<Vec<_>>().join("\n");
    match message.pointer("/result/isError") {
        Some(Value::Bool(true)) => Err(("failed".to_owned(), words)),
        Some(_) | None => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_call_besides_its_arguments_are_judged_too() {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "t", "arguments": {"a": 1, "mcp_call": "no"}, "inputResponses": {"q": "yes"},
            "_meta": {"progressToken": 7}}});
        let AgentMessage::Call(call) = AgentMessage::read(line.to_string().as_bytes()) else {
            panic!("it is a call");
        };
        let judged =
            json!({"a": 1, "asked_mcp_call": "no", "mcp_call": {"inputResponses": {"q": "yes"}}});
        assert_eq!(Value::from(call.arguments), judged);
        assert_eq!(call.line, MessageLine::from(line), "it goes on as it came");
    }

    #[test]
    fn added_text_leaves_all_other_bytes_as_written() {
        for (before, after) in [
            (
                r#"{"result" : {"content": [ {"type":"text","text":"a\u0062"} ],"n":1.0e2}}"#,
                r#"{"result" : {"content": [ {"type":"text","text":"a\u0062"} ,{"text":"w","type":"text"}],"n":1.0e2}}"#,
            ),
            (
                r#"{"result":{"content":[ ]}}"#,
                r#"{"result":{"content":[ {"text":"w","type":"text"}]}}"#,
            ),
            (r#"{"result":{"content":7}}"#, r#"{"result":{"content":7}}"#),
            (r#"{"error":{}}"#, r#"{"error":{}}"#),
        ] {
            let mut line = MessageLine::received(before.as_bytes());
            line.append_text("w");
            assert_eq!(
                String::from_utf8(line.into_bytes()).unwrap(),
                format!("{after}\n")
            );
        }
    }

    #[test]
    fn a_known_name_in_another_case_is_refused() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"PARAMS":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","Arguments":{}}}"#,
        ] {
            let read = AgentMessage::read(line.as_bytes());
            assert!(
                matches!(read, AgentMessage::Malformed(Some(_), _)),
                "{line}: {read:?}"
            );
        }
    }

    #[test]
    fn an_ambiguous_answer_of_a_server_is_reported_under_its_id() {
        let twice = br#"{"jsonrpc":"2.0","id":3,"result":{"a":1,"a":2}}"#;
        let read = ServerMessage::read(twice);
        assert!(matches!(read, ServerMessage::Ambiguous(..)), "{read:?}");
        let unnamed = br#"{"jsonrpc":"2.0","id":3,"id":4,"result":{}}"#;
        assert!(matches!(
            ServerMessage::read(unnamed),
            ServerMessage::Invalid
        ));
    }
}
