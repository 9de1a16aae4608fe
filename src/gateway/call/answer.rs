//! What calls are answered with that are not done.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strsim::jaro_winkler;

use crate::base::json::JsonFault;
use crate::base::text::one_line;
use crate::engine::command::{Asked, Denied, DenyCode, InvalidAnswers};

/// Why a call has no result, as JSON-RPC has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// For programs.
    pub code: i64,
    /// For people.
    pub message: String,
    /// The rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Fault {
    /// The text is no JSON.
    pub const PARSE: i64 = -32700;
    /// It is no request.
    pub const REQUEST: i64 = -32600;
    /// There is no such call.
    pub const METHOD: i64 = -32601;
    /// The parameters are not the call's own.
    pub const PARAMS: i64 = -32602;
    /// It is denied.
    pub const DENIED: i64 = -32001;
    /// The agent has to answer first.
    pub const ANSWER_FIRST: i64 = -32002;
    /// The agent's answers break rules.
    pub const INVALID_ANSWERS: i64 = -32003;
    /// The door is too busy.
    pub const BUSY: i64 = -32004;

    /// One without more to it.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Parameters that are not the call's own.
    pub fn params(path: &str, why: impl std::fmt::Display) -> Self {
        let why = one_line(&why.to_string());
        let message = match path {
            "" => format!("wrong parameters: {why}"),
            path => format!("wrong parameters at `{}`: {why}", one_line(path)),
        };
        Self::new(Self::PARAMS, message)
    }

    /// JSON that is refused because of a key or a number. What lies below `params` is told with its path
    /// there: as wrong parameters.
    #[must_use]
    pub fn ambiguous(fault: &JsonFault, params: &str) -> Self {
        let below = fault.path.strip_prefix(params);
        let below = below.and_then(|path| match path.strip_prefix('.') {
            None if params.is_empty() || path.starts_with('[') => Some(path),
            below => below,
        });
        match below {
            Some(path) => Self::params(path, fault.reason()),
            None => Self::new(Self::REQUEST, format!("ambiguous JSON {fault}")),
        }
    }

    pub(super) fn no_such_call(method: &str) -> Self {
        let near = super::names()
            .map(|name| (jaro_winkler(name, method), name))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(near, _)| *near > 0.8);
        let method = one_line(method);
        let message = match near {
            Some((_, name)) => format!("there is no call `{method}`; did you mean `{name}`?"),
            None => format!("there is no call `{method}`"),
        };
        Self {
            data: Some(json!({"calls": super::names().collect::<Vec<_>>()})),
            ..Self::new(Self::METHOD, message)
        }
    }

    /// The agent is asked something, and nothing goes on before it has answered.
    pub(super) fn answer_first(asked: &Asked) -> Self {
        Self {
            data: Some(json!({"asked": asked, "answer_with": answer_with()})),
            ..Self::new(
                Self::ANSWER_FIRST,
                format!(
                    "held at {}, and its questions are the agent's: answer with checkpoint.answer. An answer with an \
                     `execution` lets this request run; after any other, ask again",
                    asked.gate
                ),
            )
        }
    }

    /// What the agent is asked, if that is why there is no result.
    #[must_use]
    pub fn asked(&self) -> Option<Asked> {
        let asked = self.data.as_ref()?.get("asked")?;
        serde_json::from_value(asked.clone()).ok()
    }

    /// Answers that break rules.
    pub(super) fn invalid(invalid: &InvalidAnswers) -> Self {
        let problems = invalid.problems.iter().map(|problem| {
            let gate = invalid.held.gates.get(problem.gate);
            json!({
                "checkpoint": gate.map(crate::engine::held::Gate::name),
                "question": problem.question,
                "rules": problem.rules,
            })
        });
        Self {
            data: Some(json!({
                "gate": invalid.held.id,
                "problems": problems.collect::<Vec<_>>(),
            })),
            ..Self::new(
                Self::INVALID_ANSWERS,
                format!("the answers break rules; {} is still held", invalid.held.id),
            )
        }
    }

    /// The denial it is, if it is one.
    #[must_use]
    pub fn denied(&self) -> Option<DenyCode> {
        let code = self.data.as_ref()?.get("code")?;
        serde_json::from_value(code.clone()).ok()
    }

    /// What can be done about it, if somebody knows.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.data.as_ref()?.get("help")?.as_str()
    }
}

/// The call that takes an agent's answers, and its path over HTTP.
pub(super) fn answer_with() -> Value {
    json!({"call": "checkpoint.answer", "path": "/v1/checkpoint/answer"})
}

impl From<Denied> for Fault {
    fn from(denied: Denied) -> Self {
        Self {
            code: Self::DENIED,
            message: denied.reason,
            data: Some(json!({
                "code": denied.code,
                "help": denied.help,
                "gate": denied.gate,
            })),
        }
    }
}
