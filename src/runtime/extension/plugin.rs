//! Extensions that are code in this process.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{Client, EventHook, EventTypeDefinition, Extension};
use crate::atlas::document::CheckpointConfig;
use crate::base::clock::Boxed;
use crate::engine::extension::{Call, CallQuestion, CheckpointContext, CheckpointResult, YesNo};

/// What a handler is given: what it is about, and who can be asked back.
#[derive(Clone, Debug)]
pub struct HandlerContext {
    /// What it is about: type, trigger, input, action, session, and what the session has cached.
    pub checkpoint: CheckpointContext,
    /// Who can be asked back.
    pub client: Client,
}

/// Says what is to be done at a checkpoint that fired.
pub trait CheckpointHandler: Send + Sync {
    /// Says what is to be done. An error counts against the agent.
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

/// Judges answers.
pub trait AnswerValidator: Send + Sync {
    /// Whether `answer` to `question` is good. An error counts against whoever answered.
    fn validate<'a>(
        &'a self,
        question: &'a str,
        answer: &'a Value,
        context: &'a CheckpointContext,
    ) -> Boxed<'a, Result<YesNo, String>>;
}

/// Tells whether a custom trigger fires.
pub trait Evaluator: Send + Sync {
    /// Whether it does. An error counts as firing.
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

/// A checkpoint type of one's own.
#[derive(Clone)]
pub struct CheckpointTypeDefinition {
    /// Its name: the `trigger_id` of custom triggers.
    pub name: String,
    /// When it fires, for people.
    pub description: String,
    /// Tells whether it fires.
    pub evaluator: Arc<dyn Evaluator>,
    /// What is done where a checkpoint names no handler.
    pub default_handler: Option<Arc<dyn CheckpointHandler>>,
    /// The priority of its checkpoints that name none; that of all custom ones when absent.
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
    fn call<'a>(&'a self, call: &'a Call, _: Client) -> Boxed<'a, Result<Value, String>> {
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

    /// Checkpoint types it brings.
    fn checkpoint_types(&self) -> Vec<CheckpointTypeDefinition> {
        Vec::new()
    }

    /// Handlers of every checkpoint of a type, by that type.
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

    /// Event types it brings.
    fn event_types(&self) -> Vec<EventTypeDefinition> {
        Vec::new()
    }

    /// Its say about the checkpoints that an Atlas configures. What comes of it is proven like
    /// everything a steward writes.
    fn configure_checkpoints(&self, config: CheckpointConfig) -> CheckpointConfig {
        config
    }
}

/// A handler as an extension.
pub(super) struct Handling(pub(super) Arc<dyn CheckpointHandler>);

impl Extension for Handling {
    fn call<'a>(&'a self, call: &'a Call, client: Client) -> Boxed<'a, Result<Value, String>> {
        Box::pin(async move {
            let checkpoint = call.context.clone();
            let context = HandlerContext { checkpoint, client };
            let result = self.0.handle(context).await?;
            serde_json::to_value(result).map_err(|error| error.to_string())
        })
    }
}

/// A validator as an extension.
pub(super) struct Validating(pub(super) Arc<dyn AnswerValidator>);

impl Extension for Validating {
    fn call<'a>(&'a self, call: &'a Call, _: Client) -> Boxed<'a, Result<Value, String>> {
        Box::pin(async move {
            let CallQuestion::Validator { question, answer } = &call.question else {
                return Err("it judges answers only".to_owned());
            };
            let said = self.0.validate(question, answer, &call.context).await?;
            serde_json::to_value(said).map_err(|error| error.to_string())
        })
    }
}
