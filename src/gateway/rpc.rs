//! JSON-RPC 2.0, a message a line.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::{Fault, Spoken};

/// A request, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    jsonrpc: Version,
    #[serde(default)]
    id: Option<Id>,
    method: String,
    #[serde(default = "nothing")]
    params: Value,
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

#[derive(Debug, Deserialize)]
enum Version {
    #[serde(rename = "2.0")]
    Two,
}

/// What tells the answers to several requests apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Id {
    /// A number.
    Number(serde_json::Number),
    /// A text.
    Text(String),
}

/// A request: what is said, and the name that its answer goes by, if it wants one.
#[derive(Debug)]
pub struct Asked {
    /// The name of the answer.
    pub id: Option<Id>,
    /// What is said, or why that cannot be made out.
    pub spoken: Result<Spoken, Fault>,
}

impl Asked {
    /// Reads a line. What is wrong with it is told under the name it gave, where it gave one.
    #[must_use]
    pub fn read(line: &[u8]) -> Self {
        let written: Written = match serde_json::from_slice(line) {
            Ok(written) => written,
            Err(error) => {
                return Self {
                    id: named(line),
                    spoken: Err(unread(line, &error)),
                };
            }
        };
        let Version::Two = written.jsonrpc;
        Self {
            id: written.id,
            spoken: Spoken::read(&written.method, written.params),
        }
    }
}

/// The name that a line gives, which is no request otherwise.
fn named(line: &[u8]) -> Option<Id> {
    #[derive(Deserialize)]
    struct Named {
        id: Option<Id>,
    }
    serde_json::from_slice::<Named>(line).ok()?.id
}

fn unread(line: &[u8], error: &serde_json::Error) -> Fault {
    if serde_json::from_slice::<IgnoredAny>(line).is_err() {
        return Fault::new(Fault::PARSE, format!("not JSON: {error}"));
    }
    let why = match line.trim_ascii_start().first() {
        Some(b'[') => "batches are not taken: one message a line".to_owned(),
        Some(_) | None => format!("not a JSON-RPC 2.0 request: {error}"),
    };
    Fault::new(Fault::REQUEST, why)
}

/// An answer, with the end of its line.
#[must_use]
pub fn answer(id: Option<&Id>, result: Result<Value, Fault>) -> String {
    let mut line = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(fault) => json!({"jsonrpc": "2.0", "id": id, "error": fault}),
    }
    .to_string();
    line.push('\n');
    line
}
