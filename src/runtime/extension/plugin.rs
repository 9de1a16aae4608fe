//! Extensions that are code of this process.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{Client, EventHook, EventTypeDefinition, Extension};
use crate::atlas::document::CheckpointConfig;
use crate::base::clock::Boxed;
use crate::engine::extension::{
    CallQuestion, CheckpointContext, CheckpointResult, ExtensionCall, YesNo,
};

/// Input of a handler: the checkpoint, and a client for questions.
#[derive(Clone, Debug)]
pub struct HandlerContext {
    /// Type, trigger, input, action, session, and values that the session has cached.
    pub checkpoint: CheckpointContext,
    /// Client for questions to the console.
    pub client: Client,
}

/// Decides what happens at a checkpoint that fired.
pub trait CheckpointHandler: Send + Sync {
    /// Decides what happens. An error counts against the agent.
    fn handle(&self, context: HandlerContext) -> Boxed<'_, Result<CheckpointResult, String>>;
}

/// A handler that is a function.
pub struct HandlerFn<F>(pub F);

impl<F> CheckpointHandler for HandlerFn<F>
where
    F: Fn(&CheckpointContext) -> CheckpointResult + Send + Sync,
{
    fn handle(&self, context: HandlerContext) -> Boxed<'_, Result<CheckpointResult, String>> {
        Box::pin(async move { Ok((self.0)(&context.checkpoint)) })
    }
}

/// Validates answers.
pub trait AnswerValidator: Send + Sync {
    /// Decides whether `answer` to `question` is valid. An error counts as an invalid answer.
    fn validate<'a>(
        &'a self,
        question: &'a str,
        answer: &'a Value,
        context: &'a CheckpointContext,
    ) -> Boxed<'a, Result<YesNo, String>>;
}

/// Decides whether a custom trigger fires.
pub trait Evaluator: Send + Sync {
    /// Decides whether it fires. An error counts as firing.
    fn evaluate<'a>(&'a self, context: &'a CheckpointContext) -> Boxed<'a, Result<bool, String>>;
}

impl<F> Evaluator for F
where
    F: Fn(&CheckpointContext) -> bool + Send + Sync,
{
    fn evaluate<'a>(&'a self, context: &'a CheckpointContext) -> Boxed<'a, Result<bool, String>> {
        Box::pin(async move { Ok(self(context)) })
    }
}

/// A checkpoint type of a plugin.
#[derive(Clone)]
pub struct CheckpointTypeDefinition {
    /// Name: the `trigger_id` of custom triggers.
    pub name: String,
    /// Condition under which it fires, for people.
    pub description: String,
    /// Decides whether it fires.
    pub evaluator: Arc<dyn Evaluator>,
    /// Handler of checkpoints that name none.
    pub default_handler: Option<Arc<dyn CheckpointHandler>>,
    /// Priority of its checkpoints that state none; if absent, the priority of all custom ones.
    pub default_priority: Option<i64>,
}

impl fmt::Debug for CheckpointTypeDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckpointTypeDefinition")
            .field("name", &self.name)
            .field("description", &self.description)
            .finish_non_exhaustive()
    }
}

impl Extension for CheckpointTypeDefinition {
    fn call<'a>(&'a self, call: &'a ExtensionCall, _: Client) -> Boxed<'a, Result<Value, String>> {
        Box::pin(async move {
            self.evaluator
                .evaluate(&call.context)
                .await
                .map(Value::Bool)
        })
    }
}

/// Several extensions that belong together.
pub trait CheckpointPlugin: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Its version.
    fn version(&self) -> &str;

    /// Checkpoint types of the plugin.
    fn checkpoint_types(&self) -> Vec<CheckpointTypeDefinition> {
        Vec::new()
    }

    /// Handlers of all checkpoints of a type, by that type.
    fn handlers(&self) -> Vec<(String, Arc<dyn CheckpointHandler>)> {
        Vec::new()
    }

    /// Validators of answers, by name.
    fn validators(&self) -> Vec<(String, Arc<dyn AnswerValidator>)> {
        Vec::new()
    }

    /// Hooks for events, by the pattern of their types.
    fn event_hooks(&self) -> Vec<(String, Arc<dyn EventHook>)> {
        Vec::new()
    }

    /// Event types of the plugin.
    fn event_types(&self) -> Vec<EventTypeDefinition> {
        Vec::new()
    }

    /// Changes the checkpoint settings of an Atlas. The result is validated like everything that a steward
    /// writes.
    fn configure_checkpoints(&self, config: CheckpointConfig) -> CheckpointConfig {
        config
    }
}

/// A handler as an extension.
pub(super) struct HandlerExtension(pub(super) Arc<dyn CheckpointHandler>);

impl Extension for HandlerExtension {
    fn call<'a>(
        &'a self,
        call: &'a ExtensionCall,
        client: Client,
    ) -> Boxed<'a, Result<Value, String>> {
        Box::pin(async move {
            let checkpoint = call.context.clone();
            let context = HandlerContext { checkpoint, client };
            let result = self.0.handle(context).await?;
            serde_json::to_value(result).map_err(|error| error.to_string())
        })
    }
}

/// A validator as an extension.
pub(super) struct ValidatorExtension(pub(super) Arc<dyn AnswerValidator>);

impl Extension for ValidatorExtension {
    fn call<'a>(&'a self, call: &'a ExtensionCall, _: Client) -> Boxed<'a, Result<Value, String>> {
        Box::pin(async move {
            let CallQuestion::Validator { question, answer } = &call.question else {
                return Err("it only validates answers".to_owned());
            };
            let verdict = self.0.validate(question, answer, &call.context).await?;
            serde_json::to_value(verdict).map_err(|error| error.to_string())
        })
    }
}
