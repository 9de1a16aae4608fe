//! Single checkpoints, evaluated and answered without a session: for tools and tests of stewards.
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

use crate::atlas::compiled::Question;
use crate::atlas::document::{
    CheckpointMode, CheckpointTrigger, GuidanceBlock, OnInvalid, RiskTier, StewardCheckpointDef,
};
use crate::base::pattern::Pattern;

use super::answer::judge;

/// How single checkpoints are evaluated. Nothing can be set so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckpointConfig {}

/// Evaluates single checkpoints.
#[derive(Clone, Debug)]
pub struct CheckpointEvaluator {
    _config: CheckpointConfig,
}

impl CheckpointEvaluator {
    /// An evaluator.
    #[must_use]
    pub fn new(config: CheckpointConfig) -> Self {
        Self { _config: config }
    }

    /// Whether a checkpoint fires on `trigger_data`, and what it then asks.
    ///
    /// The data names what happened: `action_id`, `risk_tier`, `capability_id`. A trigger that is
    /// about something the data does not mention does not fire.
    #[must_use]
    pub fn evaluate_steward_checkpoint(
        &self,
        definition: &StewardCheckpointDef,
        trigger_data: Value,
    ) -> TriggeredCheckpoint {
        TriggeredCheckpoint {
            fired: fires(&definition.trigger, &trigger_data),
            definition: definition.clone(),
            trigger_data,
        }
    }
}

/// A checkpoint that was evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggeredCheckpoint {
    /// Whether it fires.
    pub fired: bool,
    /// The checkpoint.
    pub definition: StewardCheckpointDef,
    /// What it was evaluated on.
    pub trigger_data: Value,
}

/// Answers to a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointAnswers {
    /// The checkpoint.
    pub checkpoint_id: String,
    /// Answers by question.
    pub answers: BTreeMap<String, Value>,
}

impl CheckpointAnswers {
    /// No answers yet.
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

/// Judges answers.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointValidator;

/// What answers come to.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointValidation {
    /// Whether the checkpoint is passed.
    pub is_valid: bool,
    /// What happens because of it.
    pub actions: Vec<CheckpointAction>,
    /// Rules that are not kept, also those that do not block.
    pub problems: Vec<String>,
}

/// What happens because of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CheckpointAction {
    /// The agent goes on.
    Proceed,
    /// The agent does not go on.
    Block {
        /// Why.
        reason: String,
    },
    /// The questions are asked again.
    Retry {
        /// What was wrong.
        problems: Vec<String>,
    },
    /// A context is handed over.
    InjectContext {
        /// Which.
        context_id: String,
    },
    /// Guidance is handed over.
    InjectGuidance {
        /// What is said.
        guidance: GuidanceBlock,
    },
    /// A capability is unlocked.
    UnlockCapability {
        /// Which.
        capability_id: String,
    },
    /// A capability is locked.
    LockCapability {
        /// Which.
        capability_id: String,
    },
    /// Actions are allowed.
    AllowActions {
        /// Patterns of them.
        patterns: Vec<String>,
    },
    /// Actions are denied.
    DenyActions {
        /// Patterns of them.
        patterns: Vec<String>,
    },
}

impl CheckpointValidator {
    /// Judges the answers to a checkpoint. One that did not fire, or does not block, is passed
    /// without any; answers to another checkpoint pass nothing.
    #[must_use]
    pub fn validate(
        triggered: &TriggeredCheckpoint,
        response: &CheckpointAnswers,
    ) -> CheckpointValidation {
        let definition = &triggered.definition;
        if !triggered.fired {
            return passed(vec![CheckpointAction::Proceed], Vec::new());
        }
        match definition.mode {
            CheckpointMode::Observational => {
                return passed(vec![CheckpointAction::Proceed], Vec::new());
            }
            CheckpointMode::Advisory => return passed(effects(definition), Vec::new()),
            CheckpointMode::Blocking => {}
        }
        if response.checkpoint_id != definition.checkpoint_id {
            return blocked(
                "the answers are to another checkpoint".to_owned(),
                Vec::new(),
            );
        }
        judge_answers(definition, response)
    }
}

fn judge_answers(
    definition: &StewardCheckpointDef,
    response: &CheckpointAnswers,
) -> CheckpointValidation {
    let mut problems = Vec::new();
    let mut verdict = OnInvalid::LogAndContinue;
    for asked in &definition.questions {
        let question = match Question::try_from(asked.clone()) {
            Ok(question) => question,
            Err(error) => return blocked(error.to_string(), problems),
        };
        let answer = response
            .answers
            .get(&asked.question_id)
            .unwrap_or(&Value::Null);
        let failures = judge(&question, answer).failures();
        if failures.is_empty() {
            continue;
        }
        problems.push(format!("{}: {}", asked.question_id, failures.join(", ")));
        verdict = match (verdict, asked.on_invalid) {
            (OnInvalid::Block, _) | (_, OnInvalid::Block) => OnInvalid::Block,
            (OnInvalid::Retry, _) | (_, OnInvalid::Retry) => OnInvalid::Retry,
            (_, milder) => milder,
        };
    }
    match verdict {
        OnInvalid::Block => blocked(problems.join("; "), problems),
        OnInvalid::Retry => CheckpointValidation {
            is_valid: false,
            actions: vec![CheckpointAction::Retry {
                problems: problems.clone(),
            }],
            problems,
        },
        OnInvalid::WarnAndContinue | OnInvalid::LogAndContinue => {
            passed(effects(definition), problems)
        }
    }
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

/// What passing does, in the order it is done.
fn effects(definition: &StewardCheckpointDef) -> Vec<CheckpointAction> {
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

fn fires(trigger: &CheckpointTrigger, data: &Value) -> bool {
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    match trigger {
        CheckpointTrigger::ActionPre { patterns } | CheckpointTrigger::ActionPost { patterns } => {
            let action = text("action_id");
            action.is_some_and(|action| {
                patterns
                    .iter()
                    .any(|pattern| Pattern::new(pattern.as_str()).matches(action))
            })
        }
        CheckpointTrigger::CapabilityAccess { capability_ids } => {
            let capability = text("capability_id");
            capability.is_some_and(|wanted| capability_ids.iter().any(|id| id == wanted))
        }
        CheckpointTrigger::RiskThreshold { min_tier } => {
            let tier = data
                .get("risk_tier")
                .cloned()
                .map(serde_json::from_value::<RiskTier>);
            tier.and_then(Result::ok)
                .is_some_and(|tier| tier >= *min_tier)
        }
        CheckpointTrigger::SessionStart
        | CheckpointTrigger::SessionEnd
        | CheckpointTrigger::Keyword { .. }
        | CheckpointTrigger::TimeInterval { .. }
        | CheckpointTrigger::CountInterval { .. }
        | CheckpointTrigger::ExplicitRequest
        | CheckpointTrigger::ErrorOccurred
        | CheckpointTrigger::Interactive
        | CheckpointTrigger::Custom { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::atlas::document::CheckpointQuestion;

    fn gate() -> StewardCheckpointDef {
        let trigger = CheckpointTrigger::ActionPre {
            patterns: vec!["*.delete".to_owned()],
        };
        StewardCheckpointDef::new("gate", "Gate", trigger)
            .blocking()
            .with_question(CheckpointQuestion::boolean("ok", "Do you agree?"))
            .with_guidance(GuidanceBlock::text("slowly"))
            .lock_capabilities(vec!["public".to_owned()])
    }

    fn validate(
        definition: &StewardCheckpointDef,
        action: &str,
        said: Value,
    ) -> CheckpointValidation {
        let evaluator = CheckpointEvaluator::new(CheckpointConfig::default());
        let data = json!({ "action_id": action });
        let triggered = evaluator.evaluate_steward_checkpoint(definition, data);
        let response = CheckpointAnswers::new("gate").with_answer("ok", said);
        CheckpointValidator::validate(&triggered, &response)
    }

    // covers B22, B23
    #[test]
    fn answers_decide_what_a_checkpoint_does() {
        let yes = validate(&gate(), "ticket.delete", json!(true));
        assert!(yes.is_valid);
        assert_eq!(
            yes.actions,
            [
                CheckpointAction::Proceed,
                CheckpointAction::InjectGuidance {
                    guidance: GuidanceBlock::text("slowly")
                },
                CheckpointAction::LockCapability {
                    capability_id: "public".to_owned()
                },
            ]
        );
        let no = validate(&gate(), "ticket.delete", json!("false"));
        assert!(!no.is_valid);
        assert!(matches!(no.actions[..], [CheckpointAction::Retry { .. }]));
        let elsewhere = validate(&gate(), "ticket.get", json!(false));
        assert_eq!(elsewhere.actions, [CheckpointAction::Proceed]);
    }

    #[test]
    fn a_broken_pattern_blocks() {
        let mut broken = gate();
        broken.questions[0] = CheckpointQuestion::text("ok", "Why?").with_validation(
            crate::atlas::document::AnswerValidation {
                pattern: Some("(".to_owned()),
                ..Default::default()
            },
        );
        assert!(!validate(&broken, "ticket.delete", json!("x")).is_valid);
    }
}
