//! Calls to extensions and their answers: plain data, identical for every kind of extension.
//!
//! The engine calls no extension itself: a call is an effect, and its answer comes back as a command. A
//! missing or unusable answer counts against the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::id::SessionId;
use crate::engine::gates::held::ActionCall;
use crate::trace::event::{Durability, EventSchema};

/// The known extensions, by the questions they answer. Other extensions cannot be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Extensions that decide whether a custom trigger fires.
    pub triggers: BTreeSet<String>,
    /// Extensions that handle checkpoints which name them.
    pub handlers: BTreeSet<String>,
    /// Extensions that validate answers.
    pub validators: BTreeSet<String>,
    /// Handlers of every checkpoint of a type, in the order they are called.
    pub by_type: BTreeMap<String, Vec<String>>,
    /// Registered event types, by name.
    pub events: BTreeMap<String, EventType>,
    /// Loaded plugins, for the record.
    pub plugins: Vec<Plugin>,
}

/// A registered event type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventType {
    /// Description, for people.
    pub description: String,
    /// True when the event must be on disk before any reply.
    pub sync: bool,
    /// Schema of its fields.
    pub schema: EventSchema,
}

impl EventType {
    /// Returns the durability of its events.
    #[must_use]
    pub fn durability(&self) -> Durability {
        if self.sync {
            Durability::Sync
        } else {
            Durability::Async
        }
    }
}

/// A loaded plugin, as the record names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Names of its capabilities.
    pub capabilities: Vec<String>,
}

/// One call to an extension.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionCall {
    /// Number of the call; the answer names it.
    pub id: CallId,
    /// The extension.
    pub name: String,
    /// The question.
    pub question: CallQuestion,
    /// Context of the question.
    pub context: CheckpointContext,
}

impl ExtensionCall {
    /// Returns the call as one JSON object, for extensions that speak JSON.
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

/// Number of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A question to an extension.
#[derive(Clone, Debug, PartialEq)]
pub enum CallQuestion {
    /// Does this trigger fire?
    Trigger {
        /// Parameters from the Atlas.
        params: Map<String, Value>,
    },
    /// The checkpoint fired: how is it handled?
    Handler,
    /// Is this answer valid?
    Validator {
        /// The question that was answered.
        question: String,
        /// The answer.
        answer: Value,
    },
}

/// Context of a question to an extension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckpointContext {
    /// The checkpoint's type.
    #[serde(rename = "type")]
    pub checkpoint_type: String,
    /// The checkpoint.
    pub checkpoint_id: String,
    /// Trigger of the checkpoint, as text.
    pub trigger: String,
    /// The input, if the question concerns input.
    pub input: Option<AgentInput>,
    /// The requested action, if the question concerns an action.
    pub action: Option<RequestedAction>,
    /// The session.
    pub session: SessionState,
    /// Identifiers of the contexts that the session has received.
    pub cache: BTreeSet<String>,
}

/// Input of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInput {
    /// The text, as earlier handlers left it.
    pub content: String,
    /// Source of the text.
    pub source: String,
}

/// A requested action.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestedAction {
    /// Its name.
    #[serde(rename = "type")]
    pub action_type: String,
    /// Its parameters.
    pub params: Value,
    /// Risk tier.
    pub risk_tier: String,
}

impl RequestedAction {
    pub(crate) fn of(call: &ActionCall) -> Self {
        Self {
            action_type: call.action.clone(),
            params: call.params.clone(),
            risk_tier: call.tier.as_str().to_owned(),
        }
    }
}

/// Session data for extensions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionState {
    /// Its identifier.
    pub id: SessionId,
    /// Its agent.
    pub agent: String,
    /// Purpose of the session.
    pub intent: Option<String>,
    /// Number of actions that it ran.
    pub actions: u64,
    /// Identifiers of the loaded Atlases.
    pub atlas_ids: Vec<String>,
}

/// Result of a call to an extension.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// The answer, or the reason of the failure.
    pub outcome: Result<Value, String>,
    /// Duration of the call.
    pub duration: Duration,
}

/// Answer of a handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointResult {
    /// True when the agent may go on.
    #[serde(rename = "continue", alias = "approved")]
    pub proceed: bool,
    /// Reason of a block.
    #[serde(default, alias = "blockReason", alias = "reason")]
    pub block_reason: Option<String>,
    /// Contexts to inject: identifiers, or plain texts if no context has that identifier.
    #[serde(default, alias = "injectContext")]
    pub inject_context: Vec<String>,
    /// The rewritten input.
    #[serde(default, alias = "modifiedInput")]
    pub modified_input: Option<String>,
    /// Decision of an external policy.
    #[serde(default, alias = "policyDecision")]
    pub policy_decision: Option<PolicyDecision>,
    /// Events for the record.
    #[serde(default, alias = "traceEvents")]
    pub trace_events: Vec<TraceNote>,
    /// Identifiers of contexts that are no longer valid.
    #[serde(default, alias = "cacheInvalidate")]
    pub cache_invalidate: Vec<String>,
    /// True when all cached contexts are invalid.
    #[serde(default, alias = "cacheClear")]
    pub cache_clear: bool,
}

impl CheckpointResult {
    /// Creates an answer that lets the agent go on, with no other effect.
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

    /// Creates an answer that blocks the agent.
    #[must_use]
    pub fn block(reason: impl Into<String>) -> Self {
        Self {
            proceed: false,
            block_reason: Some(reason.into()),
            ..Self::proceed()
        }
    }
}

/// Decision of an external policy about an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecision {
    /// The decision.
    pub decision: PolicyDecisionKind,
    /// Reason of the decision.
    #[serde(default)]
    pub reason: String,
}

/// Possible decisions of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyDecisionKind {
    /// The action may run, as far as this policy is concerned.
    #[serde(alias = "allowed")]
    Allow,
    /// The action may not run.
    #[serde(alias = "denied")]
    Deny,
    /// An operator has to approve the action.
    #[serde(alias = "requires_approval")]
    RequireApproval,
}

impl PolicyDecisionKind {
    /// Returns the name in records.
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
    /// Event type, as the extension names it.
    #[serde(alias = "eventType")]
    pub event_type: String,
    /// Its details.
    #[serde(default)]
    pub payload: Map<String, Value>,
    /// Reason why the event does not match its type, if already known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A yes or no answer, with a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct YesNo {
    /// True for yes.
    #[serde(alias = "triggered", alias = "valid", alias = "approved")]
    pub yes: bool,
    /// Reason of the answer.
    #[serde(default)]
    pub reason: Option<String>,
}

impl CallResult {
    /// Reads the answer to a yes-or-no question: a boolean, or an object with a reason.
    ///
    /// # Errors
    /// A description, if there is no answer or it has another form.
    pub fn yes_no(&self) -> Result<YesNo, String> {
        match self.outcome.clone()? {
            Value::Bool(yes) => Ok(YesNo { yes, reason: None }),
            other => read(other),
        }
    }

    /// Reads the answer of a handler.
    ///
    /// # Errors
    /// A description, if there is no answer or it has another form.
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

    fn returned(value: Value) -> CallResult {
        CallResult {
            outcome: Ok(value),
            duration: Duration::ZERO,
        }
    }

    // covers A16
    #[test]
    fn a_handler_result_is_read_in_snake_case_and_camel_case_only() {
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
    fn a_yes_or_no_answer_is_a_boolean_or_an_object() {
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
