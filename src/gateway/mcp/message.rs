//! Messages between an agent and a server, as far as somebody between them has to understand them.
//!
//! INVARIANT: what is passed on is written anew from what was read here, and never the bytes that came. A
//! message that two readers would understand in two ways, with a name in it twice, cannot be one thing to the
//! gate and another to the server.

use serde_json::{Map, Value, json};

use crate::gateway::call::Fault;
use crate::gateway::rpc::Id;

/// A use of a tool.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) id: Id,
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    /// What the agent wants to hear about its progress by.
    pub(super) progress: Option<Value>,
    pub(super) message: Value,
}

/// What an agent says.
#[derive(Debug)]
pub(super) enum FromAgent {
    /// It wants to use a tool.
    Call(Box<ToolCall>),
    /// It asks something else.
    Request(Id, Value),
    /// It no longer wants what it asked for.
    Cancelled(Id, Value),
    /// It wants no answer: it tells something, or answers itself.
    Other(Value),
    /// Nobody can tell what it means. That is passed on to nobody.
    Wrong(Option<Id>, Fault),
}

/// What a server says.
#[derive(Debug)]
pub(super) enum FromServer {
    /// It answers.
    Answer(Id, Value),
    /// It asks or tells something.
    Other(Value),
    /// It is no message.
    Noise,
}

impl FromAgent {
    pub(super) fn read(line: &[u8]) -> Self {
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => {
                return Self::Wrong(None, Fault::new(Fault::PARSE, format!("not JSON: {error}")));
            }
        };
        let Some(fields) = message.as_object() else {
            return wrong(None, "batches are not taken: one message a line");
        };
        let id = match fields.get("id") {
            None => None,
            Some(id) => match serde_json::from_value::<Id>(id.clone()) {
                Ok(id) => Some(id),
                Err(_) => return wrong(None, "an id is a number or a text"),
            },
        };
        if fields.get("jsonrpc") != Some(&json!("2.0")) {
            return wrong(id, "not a JSON-RPC 2.0 message");
        }
        let method = match fields.get("method") {
            None => None,
            Some(Value::String(method)) => Some(method.as_str()),
            Some(_) => return wrong(id, "a method is a text"),
        };
        match (method, id) {
            (Some("tools/call"), Some(id)) => call(id, message),
            (Some("tools/call"), None) => wrong(None, "a tool is used with an id"),
            (Some(_), Some(id)) => Self::Request(id, message),
            (Some("notifications/cancelled"), None) => match cancelled(fields) {
                Some(id) => Self::Cancelled(id, message),
                None => Self::Other(message),
            },
            (Some(_), None) => Self::Other(message),
            (None, Some(_)) if fields.contains_key("result") != fields.contains_key("error") => {
                Self::Other(message)
            }
            (None, id) => wrong(id, "neither a request nor an answer"),
        }
    }
}

/// Where it stands among the arguments what a call carries beside them.
const BESIDE: &str = "mcp_call";

fn wrong(id: Option<Id>, why: &str) -> FromAgent {
    FromAgent::Wrong(id, Fault::new(Fault::REQUEST, why))
}

fn call(id: Id, message: Value) -> FromAgent {
    let params = message.get("params");
    let tool = params.and_then(|it| it.get("name")?.as_str());
    let Some(tool) = tool.filter(|it| !it.is_empty()).map(str::to_owned) else {
        return FromAgent::Wrong(Some(id), Fault::params("name", "it names no tool"));
    };
    let arguments = match params.and_then(|it| it.get("arguments")) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => {
            let fault = Fault::params("arguments", "they are an object");
            return FromAgent::Wrong(Some(id), fault);
        }
    };
    let arguments = judged(arguments, params.and_then(Value::as_object));
    let progress = message.pointer("/params/_meta/progressToken").cloned();
    FromAgent::Call(Box::new(ToolCall {
        id,
        tool,
        arguments,
        progress,
        message,
    }))
}

/// What a call is judged by: its arguments, and whatever else it carries that the server may act on.
fn judged(
    mut arguments: Map<String, Value>,
    params: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let known = ["name", "arguments", "_meta"];
    let params = params.into_iter().flatten();
    let rest = params.filter(|(name, _)| !known.contains(&name.as_str()));
    let rest: Map<_, _> = rest.map(|(name, it)| (name.clone(), it.clone())).collect();
    if rest.is_empty() {
        return arguments;
    }
    if let Some(asked) = arguments.remove(BESIDE) {
        arguments.insert(format!("asked_{BESIDE}"), asked);
    }
    arguments.insert(BESIDE.to_owned(), rest.into());
    arguments
}

fn cancelled(fields: &Map<String, Value>) -> Option<Id> {
    let id = fields.get("params")?.get("requestId")?;
    serde_json::from_value(id.clone()).ok()
}

impl FromServer {
    pub(super) fn read(line: &[u8]) -> Self {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return Self::Noise;
        };
        if message.get("jsonrpc") != Some(&json!("2.0")) {
            return Self::Noise;
        }
        if message.get("method").is_some() {
            return Self::Other(message);
        }
        let id = message.get("id").cloned();
        match id.map(serde_json::from_value::<Id>) {
            Some(Ok(id)) => Self::Answer(id, message),
            Some(Err(_)) | None => Self::Noise,
        }
    }
}

/// The result of a tool that was not used, as the agent's model gets to read it.
pub(super) fn denied(id: &Id, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "content": [{"type": "text", "text": why}],
        "isError": true,
        "resultType": "complete",
    }})
}

/// An answer that says what is wrong.
pub(super) fn fault(id: Option<&Id>, fault: &Fault) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": fault})
}

/// That a call still waits.
pub(super) fn progress(token: &Value, beat: u32, words: &str) -> Value {
    // Progress only ever grows, and the server's own begins after this: so this stays next to nothing.
    let progress = f64::from(beat) / 1e6;
    json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": progress, "message": words}})
}

/// What came of a use of a tool, in words: its result, or why there is none.
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
    let texts = content.filter_map(|it| it.get("text")?.as_str());
    let words = texts.collect::<Vec<_>>().join("\n");
    match message.pointer("/result/isError") {
        Some(Value::Bool(true)) => Err(("failed".to_owned(), words)),
        Some(_) | None => Ok(words),
    }
}

/// Puts words beside a tool's result.
pub(super) fn add_words(message: &mut Value, words: &str) {
    let content = message.pointer_mut("/result/content");
    if let Some(content) = content.and_then(Value::as_array_mut) {
        content.push(json!({"type": "text", "text": words}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_carries_beside_its_arguments_is_judged_too() {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "t", "arguments": {"a": 1, "mcp_call": "no"}, "inputResponses": {"q": "yes"},
            "_meta": {"progressToken": 7}}});
        let FromAgent::Call(call) = FromAgent::read(line.to_string().as_bytes()) else {
            panic!("it is a call");
        };
        let judged =
            json!({"a": 1, "asked_mcp_call": "no", "mcp_call": {"inputResponses": {"q": "yes"}}});
        assert_eq!(Value::from(call.arguments), judged);
        assert_eq!(call.message, line, "it goes on as it came");
    }
}
