//! Single checkpoints, evaluated and answered without a session, for tools and tests of stewards.
//!
//! ```
//! # use cra_core::*;
//! # use serde_json::json;
//! # let config = CheckpointConfig::default();
//! # let checkpoint_def = StewardCheckpointDef::new(
//! #     "gate", "Gate",
//! #     CheckpointTrigger::ActionPre { patterns: vec!["*.delete".to_string()] },
//! # )
//! # .blocking()
//! # .with_question(CheckpointQuestion::acknowledgment("ack", "I understand."))
//! # .inject_contexts(vec!["intro".to_string()])
//! # .unlock_capabilities(vec!["delete".to_string()]);
//! # let trigger_data = json!({"action_id": "ticket.delete"});
//! # let response = CheckpointAnswers::new("gate").with_answer("ack", "understood");
//! let evaluator = CheckpointEvaluator::new(config);
//!
//! // Evaluate steward checkpoint
//! let triggered = evaluator.evaluate_steward_checkpoint(&checkpoint_def, trigger_data);
//!
//! // Validate response
//! let validation = CheckpointValidator::validate(&triggered, &response);
//! if validation.is_valid {
//!     for action in validation.actions {
//!         match action {
//!             CheckpointAction::Proceed => { /* continue */ }
//!             CheckpointAction::InjectContext { context_id } => { /* inject */ }
//!             CheckpointAction::UnlockCapability { capability_id } => { /* unlock */ }
//!             CheckpointAction::LockCapability { capability_id } => { /* lock */ }
//!             CheckpointAction::InjectGuidance { guidance } => { /* inject */ }
//!             _ => {}
//!         }
//!     }
//! }
//! # else { panic!("it is valid") }
//! ```

use std::collections::BTreeMap;

use serde_json::Value;

use crate::atlas::document::{
    Approvers, CheckpointMode, GuidanceBlock, RiskMode, StewardCheckpointDef,
};
use crate::atlas::model::CompiledQuestion;

use super::answer::judge_answer;
use super::answer_validation::{InvalidAnswerConsequence, consequence};
use super::gate::implicit_acknowledgment;

mod firing;
#[cfg(test)]
mod tests;

/// Settings for evaluating single checkpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointConfig {
    /// Method that finds the tier of an action if the data does not name one.
    pub risk_mode: RiskMode,
}

/// Evaluator of single checkpoints, by the rules of the engine.
#[derive(Clone, Debug)]
pub struct CheckpointEvaluator {
    config: CheckpointConfig,
}

impl CheckpointEvaluator {
    /// Creates an evaluator.
    #[must_use]
    pub fn new(config: CheckpointConfig) -> Self {
        Self { config }
    }

    /// Evaluates a checkpoint on `trigger_data`.
    ///
    /// The data describes an event: `action_id`, `params`, `risk_tier`, `capability_id`, `input`, and for
    /// conditions `session` (`agent`, `intent`, `actions`, `age_seconds`) and `now`
    /// (`2026-01-01T00:00:00.000000Z`). A trigger that needs no data (a session starts, an error occurs, an
    /// interval is over) fires whenever it is evaluated. If the data lacks a value that the trigger or a
    /// condition reads, the checkpoint counts as fired, and no answer passes it: see
    /// [`TriggeredCheckpoint::unjudged`].
    #[must_use]
    pub fn evaluate_steward_checkpoint(
        &self,
        definition: &StewardCheckpointDef,
        trigger_data: Value,
    ) -> TriggeredCheckpoint {
        let firing = firing::firing(self.config, definition, &trigger_data);
        TriggeredCheckpoint {
            fired: firing.fired,
            unjudged: firing.unjudged,
            definition: definition.clone(),
            trigger_data,
        }
    }
}

/// A checkpoint that was evaluated.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TriggeredCheckpoint {
    /// True when the checkpoint fires.
    pub fired: bool,
    /// Reason why the trigger could not be judged. The checkpoint then counts as fired and cannot be passed.
    pub unjudged: Option<String>,
    /// Definition of the checkpoint.
    pub definition: StewardCheckpointDef,
    /// Data that it was evaluated on.
    pub trigger_data: Value,
}

/// Answers to a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointAnswers {
    /// Identifier of the checkpoint.
    pub checkpoint_id: String,
    /// Answers by question id.
    pub answers: BTreeMap<String, Value>,
}

impl CheckpointAnswers {
    /// Creates an empty set of answers to a checkpoint.
    #[must_use]
    pub fn new(checkpoint_id: impl Into<String>) -> Self {
        Self {
            checkpoint_id: checkpoint_id.into(),
            answers: BTreeMap::new(),
        }
    }

    /// Adds an answer.
    #[must_use]
    pub fn with_answer(mut self, question: impl Into<String>, answer: impl Into<Value>) -> Self {
        self.answers.insert(question.into(), answer.into());
        self
    }
}

/// Validator of answers to a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointValidator;

/// Result of validating the answers to a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointValidation {
    /// True when the checkpoint is passed.
    pub is_valid: bool,
    /// Actions to take, in order.
    pub actions: Vec<CheckpointAction>,
    /// Broken rules, including those that do not block.
    pub problems: Vec<String>,
}

/// An action that follows from a checkpoint.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CheckpointAction {
    /// The agent may go on.
    Proceed,
    /// The agent may not go on.
    Block {
        /// Reason of the block.
        reason: String,
    },
    /// The questions are asked again.
    Retry {
        /// Broken rules.
        problems: Vec<String>,
    },
    /// A context is injected.
    InjectContext {
        /// Identifier of the context.
        context_id: String,
    },
    /// Guidance is given to the agent.
    InjectGuidance {
        /// The guidance.
        guidance: GuidanceBlock,
    },
    /// A capability is unlocked.
    UnlockCapability {
        /// Identifier of the capability.
        capability_id: String,
    },
    /// A capability is locked.
    LockCapability {
        /// Identifier of the capability.
        capability_id: String,
    },
    /// Actions are allowed.
    AllowActions {
        /// Patterns of the allowed actions.
        patterns: Vec<String>,
    },
    /// Actions are denied.
    DenyActions {
        /// Patterns of the denied actions.
        patterns: Vec<String>,
    },
}

/// Callback that asks a custom validator. Its arguments are the validator's name, the question's id and the
/// answer.
///
/// Returns `None` if no validator has that name, and an error if the answer is not valid.
pub type AnswerCheck<'c> = dyn Fn(&str, &str, &Value) -> Option<Result<(), String>> + 'c;

impl CheckpointValidator {
    /// Validates the answers to a checkpoint.
    ///
    /// A checkpoint that did not fire, or does not block, is passed without answers. Answers to another
    /// checkpoint pass nothing. A question with a `custom_validator` is not passed here: see
    /// [`CheckpointValidator::validate_with`].
    #[must_use]
    pub fn validate(
        triggered: &TriggeredCheckpoint,
        response: &CheckpointAnswers,
    ) -> CheckpointValidation {
        Self::validate_with(triggered, response, &|_, _, _| None)
    }

    /// Validates the answers to a checkpoint whose questions name custom validators.
    #[must_use]
    pub fn validate_with(
        triggered: &TriggeredCheckpoint,
        response: &CheckpointAnswers,
        check: &AnswerCheck<'_>,
    ) -> CheckpointValidation {
        let definition = &triggered.definition;
        if !triggered.fired {
            return passed(vec![CheckpointAction::Proceed], Vec::new());
        }
        if let Some(handler) = &definition.handler {
            return blocked(
                format!("handler `{handler}` cannot be called here, and it could deny the request"),
                Vec::new(),
            );
        }
        match (definition.mode, &triggered.unjudged) {
            (CheckpointMode::Observational, _) => {
                return passed(vec![CheckpointAction::Proceed], Vec::new());
            }
            (CheckpointMode::Advisory, None) => {
                return passed(passing_actions(definition), Vec::new());
            }
            (CheckpointMode::Advisory, Some(_)) => {
                return passed(without_grants(passing_actions(definition)), Vec::new());
            }
            (CheckpointMode::Blocking, Some(why)) => return blocked(why.clone(), Vec::new()),
            (CheckpointMode::Blocking, None) => {}
        }
        if definition.approvers == Approvers::Two {
            let reason = "two operators must approve, which only the console supports";
            return blocked(reason.to_owned(), Vec::new());
        }
        if response.checkpoint_id != definition.checkpoint_id {
            return blocked(
                "the answers are for another checkpoint".to_owned(),
                Vec::new(),
            );
        }
        judge_answers(definition, response, check)
    }
}

/// Returns the questions of a gate: its own, or the acknowledgment that every gate without questions asks
/// for.
fn questions(definition: &StewardCheckpointDef) -> Result<Vec<CompiledQuestion>, String> {
    if definition.questions.is_empty() {
        let implicit = implicit_acknowledgment(&definition.name, &definition.checkpoint_id);
        let implicit = implicit.ok_or("the question of the checkpoint is not valid")?;
        return Ok(vec![implicit]);
    }
    let own = definition.questions.iter();
    own.map(|asked| CompiledQuestion::try_from(asked.clone()).map_err(|error| error.to_string()))
        .collect()
}

fn judge_answers(
    definition: &StewardCheckpointDef,
    response: &CheckpointAnswers,
    check: &AnswerCheck<'_>,
) -> CheckpointValidation {
    let questions = match questions(definition) {
        Ok(questions) => questions,
        Err(reason) => return blocked(reason, Vec::new()),
    };
    let mut problems = Vec::new();
    let mut worst = InvalidAnswerConsequence::Continue;
    for question in &questions {
        let id = question.id();
        let judged = judge_answer(question, response.answers.get(id).unwrap_or(&Value::Null));
        let mut failures = judged.failures();
        let mut unheard = false;
        if let (Some(name), Some(answer), true) = (
            &question.validation().custom_validator,
            &judged.answer,
            failures.is_empty(),
        ) {
            match check(name, id, answer) {
                Some(Ok(())) => {}
                Some(Err(reason)) => failures.push(format!("{reason} (validator `{name}`)")),
                None => {
                    unheard = true;
                    failures.push(format!("validator `{name}` is not available"));
                }
            }
        }
        if !failures.is_empty() {
            problems.push(format!("{id}: {}", failures.join(", ")));
            worst = worst.max(consequence(question, unheard));
        }
    }
    match worst {
        InvalidAnswerConsequence::Block => blocked(problems.join("; "), problems),
        InvalidAnswerConsequence::Retry => CheckpointValidation {
            is_valid: false,
            actions: vec![CheckpointAction::Retry {
                problems: problems.clone(),
            }],
            problems,
        },
        InvalidAnswerConsequence::Continue | InvalidAnswerConsequence::Warn => {
            passed(passing_actions(definition), problems)
        }
    }
}

/// Removes the grants of a checkpoint that cannot be judged. As in the engine, it still restricts and
/// injects.
fn without_grants(mut actions: Vec<CheckpointAction>) -> Vec<CheckpointAction> {
    actions.retain(|action| {
        !matches!(
            action,
            CheckpointAction::UnlockCapability { .. } | CheckpointAction::AllowActions { .. }
        )
    });
    actions
}

fn passed(actions: Vec<CheckpointAction>, problems: Vec<String>) -> CheckpointValidation {
    CheckpointValidation {
        is_valid: true,
        actions,
        problems,
    }
}

fn blocked(reason: String, problems: Vec<String>) -> CheckpointValidation {
    CheckpointValidation {
        is_valid: false,
        actions: vec![CheckpointAction::Block { reason }],
        problems,
    }
}

/// Returns the effects of passing, in the order they are applied.
fn passing_actions(definition: &StewardCheckpointDef) -> Vec<CheckpointAction> {
    let mut actions = vec![CheckpointAction::Proceed];
    let contexts = definition.inject_contexts.iter().cloned();
    actions.extend(contexts.map(|context_id| CheckpointAction::InjectContext { context_id }));
    let guidance = definition.guidance.clone();
    actions.extend(guidance.map(|guidance| CheckpointAction::InjectGuidance { guidance }));
    let unlocked = definition.unlock_capabilities.iter().cloned();
    actions
        .extend(unlocked.map(|capability_id| CheckpointAction::UnlockCapability { capability_id }));
    let locked = definition.lock_capabilities.iter().cloned();
    actions.extend(locked.map(|capability_id| CheckpointAction::LockCapability { capability_id }));
    if !definition.allow_actions.is_empty() {
        let patterns = definition.allow_actions.clone();
        actions.push(CheckpointAction::AllowActions { patterns });
    }
    if !definition.deny_actions.is_empty() {
        let patterns = definition.deny_actions.clone();
        actions.push(CheckpointAction::DenyActions { patterns });
    }
    actions
}
