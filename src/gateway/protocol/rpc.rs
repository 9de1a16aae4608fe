//! JSON-RPC 2.0, with one message per line.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::call::{AuthenticatedCall, CallFault};
use super::proof::{AnswerSigner, Challenge, ChallengedRequest};
use crate::base::json::{self, StrictJsonError};

/// A request before validation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRpcRequest {
    jsonrpc: RpcVersion,
    #[serde(default)]
    id: Option<RpcId>,
    method: String,
    #[serde(default = "nothing")]
    params: Value,
    #[serde(default)]
    challenge: Option<String>,
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

#[derive(Debug, Deserialize)]
enum RpcVersion {
    #[serde(rename = "2.0")]
    Two,
}

/// Identifier that matches an answer to its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RpcId {
    /// A number.
    Number(serde_json::Number),
    /// A text.
    Text(String),
}

/// A parsed request.
#[derive(Debug)]
pub struct RpcRequest {
    /// Identifier of the answer, if the caller wants one.
    pub id: Option<RpcId>,
    /// The call, or the reason why it cannot be read.
    pub call: Result<AuthenticatedCall, CallFault>,
    /// Set if the caller wants a proof of the answer.
    pub challenged: Option<ChallengedRequest>,
}

impl RpcRequest {
    /// Reads a line. A fault is reported under the id of the line, if it has one.
    #[must_use]
    pub fn read(line: &[u8]) -> Self {
        let written: RawRpcRequest = match json::read(line) {
            Ok(written) => written,
            Err(error) => {
                return Self {
                    id: request_id(line, &error),
                    call: Err(request_fault(line, &error)),
                    challenged: None,
                };
            }
        };
        let RpcVersion::Two = written.jsonrpc;
        let challenge = written.challenge.as_deref().map(str::parse::<Challenge>);
        match challenge.transpose() {
            Ok(challenge) => Self {
                id: written.id,
                call: AuthenticatedCall::read_params(&written.method, written.params),
                challenged: challenge.map(|challenge| ChallengedRequest::new(challenge, line)),
            },
            Err(error) => Self {
                id: written.id,
                call: Err(CallFault::new(CallFault::REQUEST, error.to_string())),
                challenged: None,
            },
        }
    }
}

/// Returns the id of a malformed request. A refused id is ignored: it would come back as another one.
fn request_id(line: &[u8], error: &StrictJsonError) -> Option<RpcId> {
    #[derive(Deserialize)]
    struct RequestWithId {
        id: Option<RpcId>,
    }
    if let StrictJsonError::Ambiguous(fault) = error
        && fault.path == "id"
    {
        return None;
    }
    serde_json::from_slice::<RequestWithId>(line).ok()?.id
}

fn request_fault(line: &[u8], error: &StrictJsonError) -> CallFault {
    let error = match error {
        StrictJsonError::Ambiguous(fault) => return CallFault::ambiguous(fault, "params"),
        StrictJsonError::Syntax(_) => return CallFault::new(CallFault::PARSE, error.to_string()),
        StrictJsonError::Data(error) => error,
    };
    let why = match line.trim_ascii_start().first() {
        Some(b'[') => "batches are not supported: send one message per line".to_owned(),
        Some(_) | None => format!("not a JSON-RPC 2.0 request: {error}"),
    };
    CallFault::new(CallFault::REQUEST, why)
}

/// Builds an answer, with the end of its line.
#[must_use]
pub fn answer(id: Option<&RpcId>, result: Result<Value, CallFault>) -> String {
    let mut line = object(id, result);
    line.push('\n');
    line
}

/// Builds an answer with its proof, with the end of its line.
#[must_use]
pub fn proven_answer(
    id: Option<&RpcId>,
    result: Result<Value, CallFault>,
    challenged: &ChallengedRequest,
    signer: &AnswerSigner,
) -> String {
    let mut line = signer.add_proof(challenged, &object(id, result));
    line.push('\n');
    line
}

/// An answer, with keys in alphabetical order.
#[derive(Serialize)]
struct RpcResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallFault>,
    id: Option<&'a RpcId>,
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

fn object(id: Option<&RpcId>, result: Result<Value, CallFault>) -> String {
    let (result, error) = match result {
        Ok(result) => (Some(result), None),
        Err(fault) => (None, Some(fault)),
    };
    let response = RpcResponse {
        error,
        id,
        jsonrpc: "2.0",
        result,
    };
    // INVARIANT: plain data with string keys always serialises. An empty line would answer nothing, which
    // permits nothing.
    serde_json::to_string(&response).unwrap_or_default()
}
