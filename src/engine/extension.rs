//! What extensions are asked, and what they answer: plain data, the same for every kind of extension.
//!
//! The engine asks nobody itself: a question is an effect, and its answer comes back as a command. What
//! an extension cannot or does not answer counts against the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::held::ActionCall;
use crate::base::id::SessionId;
use crate::trace::event::{Durability, EventSchema};

/// The extensions there are, by what they can be asked. What is not in here cannot be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Extensions that tell whether a custom trigger fires.
    pub triggers: BTreeSet<String>,
    /// Extensions that handle checkpoints which name them.
    pub handlers: BTreeSet<String>,
    /// Extensions that judge answers.
    pub validators: BTreeSet<String>,
    /// Handlers of every checkpoint of a type, in the order they are asked.
    pub by_type: BTreeMap<String, Vec<String>>,
    /// Event types that are registered, by name.
    pub events: BTreeMap<String, EventType>,
    /// What is in force, for the record.
    pub plugins: Vec<Plugin>,
}

/// A registered event type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    /// What it tells, for people.
    pub description: String,
    /// Whether it is on disk before anyone is told.
    pub sync: bool,
    /// Its fields.
    pub schema: EventSchema,
}

impl EventType {
    /// How durable its events are.
    #[must_use]
    pub fn durability(&self) -> Durability {
        if self.sync {
            Durability::Sync
        } else {
            Durability::Async
        }
    }
}

/// Something that is in force, as the record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it can do.
    pub capabilities: Vec<String>,
}

/// One question to an extension.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its number; the answer names it.
    pub id: CallId,
    /// The extension.
    pub name: String,
    /// What is asked.
    pub question: CallQuestion,
    /// What it is about.
    pub context: CheckpointContext,
}

impl Call {
    /// The question as one JSON object, for extensions that speak JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        // INVARIANT: a context is plain data with string keys, so it becomes an object.
        let mut body = match serde_json::to_value(&self.context) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => Map::new(),
        };
        body.insert("name".to_owned(), self.name.clone().into());
        let kind = match &self.question {
            CallQuestion::Trigger { params } => {
                body.insert("params".to_owned(), Value::Object(params.clone()));
                "trigger"
            }
            CallQuestion::Handler => "handler",
            CallQuestion::Validator { question, answer } => {
                body.insert("question".to_owned(), question.clone().into());
                body.insert("answer".to_owned(), answer.clone());
                "validator"
            }
        };
        body.insert("kind".to_owned(), kind.into());
        Value::Object(body)
    }
}

/// The number of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What an extension is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum CallQuestion {
    /// Does this trigger fire?
    Trigger {
        /// What the Atlas tells it.
        params: Map<String, Value>,
    },
    /// This checkpoint fires: what is to be done?
    Handler,
    /// Is this answer good?
    Validator {
        /// The question that was answered.
        question: String,
        /// The answer.
        answer: Value,
    },
}

/// What a question to an extension is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckpointContext {
    /// The checkpoint's type.
    #[serde(rename = "type")]
    pub checkpoint_type: String,
    /// The checkpoint.
    pub checkpoint_id: String,
    /// What makes it fire, in words.
    pub trigger: String,
    /// Input that came, if it is about input.
    pub input: Option<AgentInput>,
    /// The action asked for, if it is about an action.
    pub action: Option<Action>,
    /// The session.
    pub session: SessionState,
    /// Contexts that the session has been handed, by identifier.
    pub cache: BTreeSet<String>,
}

/// Input that came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInput {
    /// The text, as earlier handlers left it.
    pub content: String,
    /// Where it came from.
    pub source: String,
}

/// An action that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// Its name.
    #[serde(rename = "type")]
    pub action_type: String,
    /// Its parameters.
    pub params: Value,
    /// How risky it is.
    pub risk_tier: String,
}

impl Action {
    pub(super) fn of(call: &ActionCall) -> Self {
        Self {
            action_type: call.action.clone(),
            params: call.params.clone(),
            risk_tier: call.tier.as_str().to_owned(),
        }
    }
}

/// What an extension is told of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionState {
    /// Its identifier.
    pub id: SessionId,
    /// Its agent.
    pub agent: String,
    /// What it says it is for.
    pub intent: Option<String>,
    /// Actions it ran.
    pub actions: u64,
    /// The Atlases in force.
    pub atlas_ids: Vec<String>,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Returned {
    /// The answer, or why there is none.
    pub outcome: Result<Value, String>,
    /// How long it took.
    pub took: Duration,
}

/// What a handler wants done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointResult {
    /// Whether the agent may go on.
    #[serde(rename = "continue", alias = "approved")]
    pub proceed: bool,
    /// Why it may not.
    #[serde(default, alias = "blockReason", alias = "reason")]
    pub block_reason: Option<String>,
    /// Contexts to hand over: identifiers, or texts where there is no such context.
    #[serde(default, alias = "injectContext")]
    pub inject_context: Vec<String>,
    /// The input as it should read.
    #[serde(default, alias = "modifiedInput")]
    pub modified_input: Option<String>,
    /// What a policy outside says.
    #[serde(default, alias = "policyDecision")]
    pub policy_decision: Option<PolicyDecision>,
    /// Events for the record.
    #[serde(default, alias = "traceEvents")]
    pub trace_events: Vec<TraceNote>,
    /// Contexts that are no longer valid, by identifier.
    #[serde(default, alias = "cacheInvalidate")]
    pub cache_invalidate: Vec<String>,
    /// Whether nothing that was kept is valid any more.
    #[serde(default, alias = "cacheClear")]
    pub cache_clear: bool,
}

impl CheckpointResult {
    /// The agent may go on, and nothing else is to be done.
    #[must_use]
    pub fn proceed() -> Self {
        Self {
            proceed: true,
            block_reason: None,
            inject_context: Vec::new(),
            modified_input: None,
            policy_decision: None,
            trace_events: Vec::new(),
            cache_invalidate: Vec::new(),
            cache_clear: false,
        }
    }

    /// The agent may not go on.
    #[must_use]
    pub fn block(reason: impl Into<String>) -> Self {
        Self {
            proceed: false,
            block_reason: Some(reason.into()),
            ..Self::proceed()
        }
    }
}

/// What a policy outside says about an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecision {
    /// What it says.
    pub decision: PolicyWord,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// What a policy can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyWord {
    /// It may run, as far as this policy is concerned.
    #[serde(alias = "allowed")]
    Allow,
    /// It may not.
    #[serde(alias = "denied")]
    Deny,
    /// An operator has to approve.
    #[serde(alias = "requires_approval")]
    RequireApproval,
}

impl PolicyWord {
    /// The word in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::RequireApproval => "require_approval",
        }
    }
}

/// An event that an extension wants recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceNote {
    /// Its type, in the extension's own words.
    #[serde(alias = "eventType")]
    pub event_type: String,
    /// Its details.
    #[serde(default)]
    pub payload: Map<String, Value>,
    /// Why it is not what its type says, as far as that is known already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A yes or no, with a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct YesNo {
    /// Which.
    #[serde(alias = "triggered", alias = "valid", alias = "approved")]
    pub yes: bool,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Returned {
    /// The answer to a question that wants yes or no: a boolean, or an object with a reason.
    ///
    /// # Errors
    /// In words, when there is no answer, or not such a one.
    pub fn yes_no(&self) -> Result<YesNo, String> {
        match self.outcome.clone()? {
            Value::Bool(yes) => Ok(YesNo { yes, reason: None }),
            other => read(other),
        }
    }

    /// The answer of a handler.
    ///
    /// # Errors
    /// In words, when there is no answer, or not such a one.
    pub fn result(&self) -> Result<CheckpointResult, String> {
        read(self.outcome.clone()?)
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| format!("its answer cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn returned(value: Value) -> Returned {
        Returned {
            outcome: Ok(value),
            took: Duration::ZERO,
        }
    }

    // covers A16
    #[test]
    fn a_result_is_read_in_either_spelling_and_nothing_is_guessed() {
        let camel = returned(json!({
            "continue": true,
            "injectContext": ["a"],
            "modifiedInput": "b",
            "policyDecision": {"decision": "denied", "reason": "c"},
            "traceEvents": [{"eventType": "d", "payload": {"e": 1}}],
            "cacheInvalidate": ["f"],
            "cacheClear": true,
        }));
        let snake = returned(json!({
            "continue": true,
            "inject_context": ["a"],
            "modified_input": "b",
            "policy_decision": {"decision": "deny", "reason": "c"},
            "trace_events": [{"event_type": "d", "payload": {"e": 1}}],
            "cache_invalidate": ["f"],
            "cache_clear": true,
        }));
        assert_eq!(camel.result(), snake.result());
        assert!(camel.result().unwrap().cache_clear);
        let outside = returned(json!({"approved": false, "reason": "no"}));
        assert_eq!(outside.result(), Ok(CheckpointResult::block("no")));
        for bad in [
            json!({}),
            json!({"contniue": true}),
            json!(true),
            json!({"continue": "yes"}),
        ] {
            assert!(returned(bad.clone()).result().is_err(), "{bad}");
        }
    }

    #[test]
    fn yes_is_a_boolean_or_an_object_that_says_so() {
        assert!(returned(json!(true)).yes_no().unwrap().yes);
        assert!(!returned(json!({"triggered": false})).yes_no().unwrap().yes);
        for bad in [
            json!("true"),
            json!(1),
            json!(null),
            json!({"valid": 1}),
            json!({}),
        ] {
            assert!(returned(bad.clone()).yes_no().is_err(), "{bad}");
        }
    }
}
