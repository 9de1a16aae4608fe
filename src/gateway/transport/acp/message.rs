//! Messages between an editor and an agent, as far as the proxy has to understand them.
//!
//! INVARIANT: a message that two parsers could understand in two ways is not forwarded. A gated request is
//! also refused if it has a number that cannot be read exactly.

use serde_json::{Map, Value, json};

use crate::base::json::{self, JsonFaultKind, StrictJsonError};
use crate::gateway::protocol::call::CallFault;
use crate::gateway::protocol::rpc::RpcId;
use crate::gateway::transport::stdio::MessageLine;

/// A message of either side.
#[derive(Debug)]
pub(super) enum AcpMessage {
    /// A request, which wants a response.
    Request(AcpRequest),
    /// A notification.
    Notification {
        method: String,
        params: Map<String, Value>,
        line: MessageLine,
    },
    /// A response.
    Response {
        id: RpcId,
        message: Map<String, Value>,
        line: MessageLine,
    },
    /// A malformed message. It is not forwarded; with an id, its sender gets the fault.
    Malformed(Option<RpcId>, CallFault),
}

/// A request of either side.
#[derive(Debug)]
pub(super) struct AcpRequest {
    pub(super) id: RpcId,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
    /// Set if a number of the request cannot be read exactly.
    pub(super) inexact: Option<CallFault>,
    pub(super) line: MessageLine,
}

impl AcpRequest {
    /// Returns the session that the request names.
    pub(super) fn session(&self) -> Option<String> {
        text(&self.params, "sessionId")
    }
}

impl AcpMessage {
    pub(super) fn read(bytes: &[u8]) -> Self {
        let (value, inexact) = match json::read::<Value>(bytes) {
            Ok(value) => (value, None),
            Err(StrictJsonError::Ambiguous(fault)) => {
                let refused = CallFault::ambiguous(&fault, "params");
                match json::read_with_inexact_as_text(bytes) {
                    Ok(value) if fault.kind != JsonFaultKind::DuplicateKey => {
                        (value, Some(refused))
                    }
                    Ok(_) | Err(_) => return Self::Malformed(request_id(bytes), refused),
                }
            }
            Err(error) => {
                return Self::Malformed(None, CallFault::new(CallFault::PARSE, error.to_string()));
            }
        };
        let Value::Object(mut fields) = value else {
            return malformed(None, "batches are not supported: send one message per line");
        };
        let id = match fields.get("id") {
            None | Some(Value::Null) => None,
            Some(id) => match serde_json::from_value::<RpcId>(id.clone()) {
                Ok(id) => Some(id),
                Err(_) => return malformed(None, "an id must be a number or text"),
            },
        };
        if fields.get("jsonrpc") != Some(&json!("2.0")) {
            return malformed(id, "not a JSON-RPC 2.0 message");
        }
        let line = MessageLine::received(bytes);
        match (fields.remove("method"), id) {
            (Some(Value::String(method)), id) => {
                let params = match fields.remove("params") {
                    None | Some(Value::Null) => Map::new(),
                    Some(Value::Object(params)) => params,
                    Some(_) => return malformed(id, "parameters must be an object"),
                };
                match id {
                    Some(id) => Self::Request(AcpRequest {
                        id,
                        method,
                        params,
                        inexact,
                        line,
                    }),
                    None => Self::Notification {
                        method,
                        params,
                        line,
                    },
                }
            }
            (Some(_), id) => malformed(id, "a method must be text"),
            (None, Some(id)) if fields.contains_key("result") != fields.contains_key("error") => {
                Self::Response {
                    id,
                    message: fields,
                    line,
                }
            }
            (None, id) => malformed(id, "neither a request nor a response"),
        }
    }
}

fn malformed(id: Option<RpcId>, why: &str) -> AcpMessage {
    AcpMessage::Malformed(id, CallFault::new(CallFault::REQUEST, why))
}

/// Returns the id of a refused request, if it has exactly one.
fn request_id(bytes: &[u8]) -> Option<RpcId> {
    let place = json::locate(bytes, &["id"])?;
    let id = bytes.get(place)?;
    json::check(id).ok()?;
    serde_json::from_slice(id).ok()
}

/// Returns a text field that is not empty.
pub(super) fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let found = fields.get(name)?.as_str()?;
    (!found.is_empty()).then(|| found.to_owned())
}

/// Builds a request with changed parameters.
pub(super) fn request(id: &RpcId, method: &str, params: &Map<String, Value>) -> MessageLine {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).into()
}

/// Builds a response with a result.
pub(super) fn result(id: &RpcId, result: &Value) -> MessageLine {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).into()
}

/// Builds a response with an error.
pub(super) fn error(id: Option<&RpcId>, fault: &CallFault) -> MessageLine {
    json!({"jsonrpc": "2.0", "id": id, "error": fault}).into()
}

/// Builds the error response of a denied request: the agent shows its message to its model.
pub(super) fn denial(id: &RpcId, reason: &str) -> MessageLine {
    error(Some(id), &CallFault::new(CallFault::DENIED, reason))
}

/// Builds an update of a session, for the editor.
pub(super) fn update(session: &str, update: &Value) -> MessageLine {
    json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": session, "update": update}})
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_keys_are_refused_with_the_id_of_the_request() {
        let line = br#"{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":{"command":"ls","command":"rm"}}"#;
        let AcpMessage::Malformed(id, _) = AcpMessage::read(line) else {
            panic!("an ambiguous request was read");
        };
        assert_eq!(id, Some(RpcId::Number(7.into())));
    }

    #[test]
    fn requests_with_inexact_numbers_are_marked() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"terminal/create","params":{"n":12345678901234567890123}}"#;
        let AcpMessage::Request(request) = AcpMessage::read(line) else {
            panic!("the request was not read");
        };
        assert!(request.inexact.is_some());
    }

    #[test]
    fn batches_and_messages_without_a_version_are_malformed() {
        for line in [
            &b"[]"[..],
            b"{\"id\":1,\"method\":\"x\"}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1}",
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}",
            b"not json",
        ] {
            assert!(matches!(AcpMessage::read(line), AcpMessage::Malformed(..)));
        }
    }
}
