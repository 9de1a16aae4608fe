//! Faults: the answers to calls that have no result.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strsim::jaro_winkler;

use crate::base::json::JsonFault;
use crate::base::text::one_line;
use crate::engine::command::{AgentQuestions, DenialReply, DenyCode, InvalidAnswers};

/// Reason why a call has no result, as a JSON-RPC error object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallFault {
    /// Code for programs.
    pub code: i64,
    /// Message for people.
    pub message: String,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl CallFault {
    /// The text is not JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is not a request.
    pub const REQUEST: i64 = -32600;
    /// Unknown call.
    pub const METHOD: i64 = -32601;
    /// The parameters do not fit the call.
    pub const PARAMS: i64 = -32602;
    /// The request is denied.
    pub const DENIED: i64 = -32001;
    /// The agent has to answer questions first.
    pub const ANSWER_FIRST: i64 = -32002;
    /// The agent's answers break rules of the questions.
    pub const INVALID_ANSWERS: i64 = -32003;
    /// The server is too busy.
    pub const BUSY: i64 = -32004;

    /// Creates a fault without details.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Creates a fault for parameters that do not fit the call.
    pub fn wrong_params(path: &str, why: impl std::fmt::Display) -> Self {
        let why = one_line(&why.to_string());
        let message = match path {
            "" => format!("wrong parameters: {why}"),
            path => format!("wrong parameters at `{}`: {why}", one_line(path)),
        };
        Self::new(Self::PARAMS, message)
    }

    /// Creates a fault for JSON that is refused because of a key or a number. A fault below `params` is
    /// reported as wrong parameters, with its path there.
    #[must_use]
    pub fn ambiguous(fault: &JsonFault, params: &str) -> Self {
        let below = fault.path.strip_prefix(params);
        let below = below.and_then(|path| match path.strip_prefix('.') {
            None if params.is_empty() || path.starts_with('[') => Some(path),
            below => below,
        });
        match below {
            Some(path) => Self::wrong_params(path, fault.reason()),
            None => Self::new(Self::REQUEST, format!("ambiguous JSON {fault}")),
        }
    }

    pub(super) fn unknown_call(method: &str) -> Self {
        let near = super::names()
            .map(|name| (jaro_winkler(name, method), name))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(near, _)| *near > 0.8);
        let method = one_line(method);
        let message = match near {
            Some((_, name)) => format!("unknown call `{method}`; did you mean `{name}`?"),
            None => format!("unknown call `{method}`"),
        };
        Self {
            data: Some(json!({"calls": super::names().collect::<Vec<_>>()})),
            ..Self::new(Self::METHOD, message)
        }
    }

    /// Creates a fault that asks the agent to answer questions before the request continues.
    pub(in crate::gateway) fn answer_first(asked: &AgentQuestions) -> Self {
        Self {
            data: Some(json!({"asked": asked, "answer_with": answer_with()})),
            ..Self::new(
                Self::ANSWER_FIRST,
                format!(
                    "held at {}: the agent must answer its questions with checkpoint.answer. If the result has an \
                     `execution`, the request may run; after any other result, send the request again",
                    asked.gate
                ),
            )
        }
    }

    /// Returns the questions to the agent, if they are the reason of this fault.
    #[must_use]
    pub fn agent_questions(&self) -> Option<AgentQuestions> {
        let asked = self.data.as_ref()?.get("asked")?;
        serde_json::from_value(asked.clone()).ok()
    }

    /// Creates a fault for answers that break rules.
    pub(in crate::gateway) fn invalid_answers(invalid: &InvalidAnswers) -> Self {
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
                format!(
                    "the answers are not valid; {} is still held",
                    invalid.held.id
                ),
            )
        }
    }

    /// Returns the code of the denial, if this fault is a denial.
    #[must_use]
    pub fn deny_code(&self) -> Option<DenyCode> {
        let code = self.data.as_ref()?.get("code")?;
        serde_json::from_value(code.clone()).ok()
    }

    /// Returns advice on the fault, if there is any.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.data.as_ref()?.get("help")?.as_str()
    }
}

/// Returns the call that takes an agent's answers, and its path over HTTP.
pub(in crate::gateway) fn answer_with() -> Value {
    json!({"call": "checkpoint.answer", "path": "/v1/checkpoint/answer"})
}

impl From<DenialReply> for CallFault {
    fn from(denied: DenialReply) -> Self {
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
