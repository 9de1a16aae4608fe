//! JSON-RPC 2.0, with one message per line.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::call::{Fault, Spoken};
use super::proof::{AnswerSigner, Challenge, Challenged};
use crate::base::json::{self, JsonError};

/// A request before validation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    jsonrpc: Version,
    #[serde(default)]
    id: Option<Id>,
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
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

/// Identifier that matches an answer to its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    /// A number.
    Number(serde_json::Number),
    /// A text.
    Text(String),
}

/// A parsed request.
#[derive(Debug)]
pub struct Asked {
    /// Identifier of the answer, if the caller wants one.
    pub id: Option<Id>,
    /// The call, or the reason why it cannot be read.
    pub spoken: Result<Spoken, Fault>,
    /// Set if the caller wants a proof of the answer.
    pub challenged: Option<Challenged>,
}

impl Asked {
    /// Reads a line. A fault is reported under the id of the line, if it has one.
    #[must_use]
    pub fn read(line: &[u8]) -> Self {
        let written: Written = match json::read(line) {
            Ok(written) => written,
            Err(error) => {
                return Self {
                    id: named(line, &error),
                    spoken: Err(unread(line, &error)),
                    challenged: None,
                };
            }
        };
        let Version::Two = written.jsonrpc;
        let challenge = written.challenge.as_deref().map(str::parse::<Challenge>);
        match challenge.transpose() {
            Ok(challenge) => Self {
                id: written.id,
                spoken: Spoken::read(&written.method, written.params),
                challenged: challenge.map(|challenge| Challenged::new(challenge, line)),
            },
            Err(error) => Self {
                id: written.id,
                spoken: Err(Fault::new(Fault::REQUEST, error.to_string())),
                challenged: None,
            },
        }
    }
}

/// Returns the id of a malformed request. A refused id is ignored: it would come back as another one.
fn named(line: &[u8], error: &JsonError) -> Option<Id> {
    #[derive(Deserialize)]
    struct Named {
        id: Option<Id>,
    }
    if let JsonError::Ambiguous(fault) = error
        && fault.path == "id"
    {
        return None;
    }
    serde_json::from_slice::<Named>(line).ok()?.id
}

fn unread(line: &[u8], error: &JsonError) -> Fault {
    let error = match error {
        JsonError::Ambiguous(fault) => return Fault::ambiguous(fault, "params"),
        JsonError::Syntax(_) => return Fault::new(Fault::PARSE, error.to_string()),
        JsonError::Data(error) => error,
    };
    let why = match line.trim_ascii_start().first() {
        Some(b'[') => "batches are not taken: one message a line".to_owned(),
        Some(_) | None => format!("not a JSON-RPC 2.0 request: {error}"),
    };
    Fault::new(Fault::REQUEST, why)
}

/// Builds an answer, with the end of its line.
#[must_use]
pub fn answer(id: Option<&Id>, result: Result<Value, Fault>) -> String {
    let mut line = object(id, result);
    line.push('\n');
    line
}

/// Builds an answer with its proof, with the end of its line.
#[must_use]
pub fn proven_answer(
    id: Option<&Id>,
    result: Result<Value, Fault>,
    challenged: &Challenged,
    signer: &AnswerSigner,
) -> String {
    let mut line = signer.prove(challenged, &object(id, result));
    line.push('\n');
    line
}

/// An answer, with keys in alphabetical order.
#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
    id: Option<&'a Id>,
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

fn object(id: Option<&Id>, result: Result<Value, Fault>) -> String {
    let (result, error) = match result {
        Ok(result) => (Some(result), None),
        Err(fault) => (None, Some(fault)),
    };
    let response = Response {
        error,
        id,
        jsonrpc: "2.0",
        result,
    };
    // INVARIANT: plain data with string keys always serialises. An empty line would answer nothing, which
    // permits nothing.
    serde_json::to_string(&response).unwrap_or_default()
}
