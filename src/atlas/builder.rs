//! Constructors for manifests in code; they build the types that files are decoded into.
//!
//! ```
//! use cra_core::{
//!     StewardCheckpointDef, CheckpointTrigger, CheckpointQuestion,
//!     CheckpointMode, GuidanceBlock, CheckpointValidator,
//! };
//!
//! // Create a checkpoint
//! let checkpoint = StewardCheckpointDef::new(
//!     "my-gate",
//!     "My Gate",
//!     CheckpointTrigger::ActionPre {
//!         patterns: vec!["*.delete".to_string()],
//!     },
//! )
//! .blocking()
//! .with_question(CheckpointQuestion::acknowledgment(
//!     "confirm",
//!     "I understand this action cannot be undone.",
//! ))
//! .with_guidance(GuidanceBlock::text("Proceed with caution."))
//! .unlock_capabilities(vec!["delete-access".to_string()])
//! .with_priority(900);
//!
//! assert_eq!(checkpoint.mode, CheckpointMode::Blocking);
//! assert_eq!(checkpoint.priority, Some(900));
//! ```
//!
//! Questions of every kind:
//!
//! ```
//! use cra_core::{AnswerValidation, CheckpointQuestion};
//!
//! // Boolean question
//! CheckpointQuestion::boolean("agree", "Do you agree?");
//!
//! // Text question with validation
//! CheckpointQuestion::text("reason", "Why?")
//!     .with_validation(AnswerValidation {
//!         min_length: Some(10),
//!         must_not_contain: vec!["forbidden".to_string()],
//!         ..Default::default()
//!     })
//!     .with_hint("Explain your reasoning");
//!
//! // Acknowledgment
//! CheckpointQuestion::acknowledgment("ack", "I understand the risks.");
//!
//! // Choice
//! let role = CheckpointQuestion::choice("role", "Select role", vec!["admin", "user"])
//!     .optional();
//! assert!(!role.required);
//! ```

use super::document::{
    AnswerValidation, Approvers, AtlasManifest, CheckpointMode, CheckpointQuestion,
    CheckpointTrigger, ExpectedAnswer, GuidanceBlock, GuidanceFormat, InvalidAnswerAction,
    Respondent, ResponseType, StewardCheckpointDef,
};
use crate::base::pattern::Pattern;

impl StewardCheckpointDef {
    /// Creates an advisory checkpoint without questions, guidance or effects.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, trigger: CheckpointTrigger) -> Self {
        Self {
            checkpoint_id: id.into(),
            name: name.into(),
            description: String::new(),
            trigger,
            mode: CheckpointMode::default(),
            questions: Vec::new(),
            guidance: None,
            inject_contexts: Vec::new(),
            unlock_capabilities: Vec::new(),
            lock_capabilities: Vec::new(),
            allow_actions: Vec::new(),
            deny_actions: Vec::new(),
            force_sync_trace: false,
            priority: None,
            timeout_seconds: None,
            respondent: Respondent::default(),
            approvers: Approvers::default(),
            when: None,
            handler: None,
        }
    }

    /// Makes the checkpoint stop the agent.
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.mode = CheckpointMode::Blocking;
        self
    }

    /// Makes the checkpoint only record.
    #[must_use]
    pub fn observational(mut self) -> Self {
        self.mode = CheckpointMode::Observational;
        self
    }

    /// Adds a question.
    #[must_use]
    pub fn with_question(mut self, question: CheckpointQuestion) -> Self {
        self.questions.push(question);
        self
    }

    /// Sets the guidance text.
    #[must_use]
    pub fn with_guidance(mut self, guidance: GuidanceBlock) -> Self {
        self.guidance = Some(guidance);
        self
    }

    /// Adds contexts that are injected.
    #[must_use]
    pub fn inject_contexts(mut self, contexts: Vec<String>) -> Self {
        self.inject_contexts.extend(contexts);
        self
    }

    /// Adds capabilities that are unlocked when the checkpoint is passed.
    #[must_use]
    pub fn unlock_capabilities(mut self, capabilities: Vec<String>) -> Self {
        self.unlock_capabilities.extend(capabilities);
        self
    }

    /// Adds capabilities that are locked when the checkpoint is passed.
    #[must_use]
    pub fn lock_capabilities(mut self, capabilities: Vec<String>) -> Self {
        self.lock_capabilities.extend(capabilities);
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn with_priority(mut self, priority: i64) -> Self {
        self.priority = Some(priority);
        self
    }
}

impl CheckpointQuestion {
    /// Creates a question with a free-text answer.
    #[must_use]
    pub fn text(id: impl Into<String>, question: impl Into<String>) -> Self {
        Self::of_type(ResponseType::Text, id, question)
    }

    /// Creates a question with a yes/no answer.
    #[must_use]
    pub fn boolean(id: impl Into<String>, question: impl Into<String>) -> Self {
        Self::of_type(ResponseType::Boolean, id, question)
    }

    /// Creates a statement that must be acknowledged.
    #[must_use]
    pub fn acknowledgment(id: impl Into<String>, question: impl Into<String>) -> Self {
        Self::of_type(ResponseType::Acknowledgment, id, question)
    }

    /// Creates a question with a choice of several options.
    #[must_use]
    pub fn choice<S: Into<String>>(
        id: impl Into<String>,
        question: impl Into<String>,
        options: Vec<S>,
    ) -> Self {
        let mut asked = Self::of_type(ResponseType::Choice, id, question);
        asked.options = options.into_iter().map(Into::into).collect();
        asked
    }

    /// Creates a required question of the given type, with defaults for all other fields.
    #[must_use]
    pub fn of_type(
        response_type: ResponseType,
        id: impl Into<String>,
        question: impl Into<String>,
    ) -> Self {
        Self {
            question_id: id.into(),
            question: question.into(),
            response_type,
            required: true,
            hint: None,
            validation: AnswerValidation::default(),
            on_invalid: InvalidAnswerAction::default(),
            max_retries: None,
            expect: ExpectedAnswer::default(),
            options: Vec::new(),
            min: None,
            max: None,
            schema: None,
            sensitive: false,
        }
    }

    /// Sets the validation rules for the answer.
    #[must_use]
    pub fn with_validation(mut self, validation: AnswerValidation) -> Self {
        self.validation = validation;
        self
    }

    /// Sets the hint shown to the respondent.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes the answer optional.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }
}

impl GuidanceBlock {
    /// Creates plain-text guidance, shown unchanged.
    #[must_use]
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            format: GuidanceFormat::Text,
            content: content.into(),
            priority: 0,
            append: None,
            expires_after: None,
            labels: Vec::new(),
        }
    }
}

/// Lookups in a manifest.
///
/// ```
/// # use cra_core::{AtlasManifest, CheckpointTrigger, StewardCheckpointDef};
/// # let gate = |id: &str, trigger| StewardCheckpointDef::new(id, id, trigger);
/// # let manifest = AtlasManifest {
/// #     checkpoints: vec![
/// #         gate("my-gate", CheckpointTrigger::SessionStart),
/// #         gate("d", CheckpointTrigger::ActionPre { patterns: vec!["*.delete".to_string()] }),
/// #         gate("t", CheckpointTrigger::ActionPre { patterns: vec!["ticket.*".to_string()] }),
/// #         gate("a", CheckpointTrigger::CapabilityAccess {
/// #             capability_ids: vec!["admin-tools".to_string()],
/// #         }),
/// #     ],
/// #     ..AtlasManifest::default()
/// # };
/// // Get checkpoint by ID
/// let checkpoint = manifest.get_checkpoint("my-gate");
///
/// // Get session start checkpoints
/// let start_checkpoints = manifest.get_session_start_checkpoints();
///
/// // Get checkpoints for an action (supports wildcards: *.delete, ticket.*)
/// let action_checkpoints = manifest.get_action_checkpoints("ticket.delete");
///
/// // Get checkpoints for a capability
/// let cap_checkpoints = manifest.get_capability_checkpoints("admin-tools");
/// # assert!(checkpoint.is_some() && manifest.get_checkpoint("none").is_none());
/// # assert_eq!(start_checkpoints.len(), 1);
/// # assert_eq!(action_checkpoints.len(), 2);
/// # assert_eq!(cap_checkpoints.len(), 1);
/// ```
impl AtlasManifest {
    /// Returns the checkpoint with this id.
    #[must_use]
    pub fn get_checkpoint(&self, id: &str) -> Option<&StewardCheckpointDef> {
        self.checkpoints
            .iter()
            .find(|checkpoint| checkpoint.checkpoint_id == id)
    }

    /// Returns the checkpoints that fire at session start.
    #[must_use]
    pub fn get_session_start_checkpoints(&self) -> Vec<&StewardCheckpointDef> {
        self.checkpoints_where(|trigger| matches!(trigger, CheckpointTrigger::SessionStart))
    }

    /// Returns the checkpoints that fire before or after an action.
    #[must_use]
    pub fn get_action_checkpoints(&self, action: &str) -> Vec<&StewardCheckpointDef> {
        self.checkpoints_where(|trigger| match trigger {
            CheckpointTrigger::ActionPre { patterns }
            | CheckpointTrigger::ActionPost { patterns } => patterns
                .iter()
                .any(|pattern| Pattern::new(pattern.as_str()).matches(action)),
            _ => false,
        })
    }

    /// Returns the checkpoints that fire before a capability is used.
    #[must_use]
    pub fn get_capability_checkpoints(&self, capability: &str) -> Vec<&StewardCheckpointDef> {
        self.checkpoints_where(|trigger| match trigger {
            CheckpointTrigger::CapabilityAccess { capability_ids } => {
                capability_ids.iter().any(|id| id == capability)
            }
            _ => false,
        })
    }

    fn checkpoints_where(
        &self,
        wanted: impl Fn(&CheckpointTrigger) -> bool,
    ) -> Vec<&StewardCheckpointDef> {
        self.checkpoints
            .iter()
            .filter(|checkpoint| wanted(&checkpoint.trigger))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deletes() -> StewardCheckpointDef {
        let patterns = vec!["*.delete".to_owned()];
        StewardCheckpointDef::new("d", "D", CheckpointTrigger::ActionPre { patterns })
    }

    // covers B20, B21
    #[test]
    fn manifest_built_in_code_equals_manifest_from_file() {
        let built = deletes()
            .blocking()
            .with_question(
                CheckpointQuestion::choice("role", "Select role", vec!["admin", "user"])
                    .with_hint("yours")
                    .optional(),
            )
            .with_guidance(GuidanceBlock::text("slowly"))
            .unlock_capabilities(vec!["c".to_owned()])
            .with_priority(900);
        let read: StewardCheckpointDef = serde_json::from_value(serde_json::json!({
            "checkpoint_id": "d", "name": "D", "mode": "blocking", "priority": 900,
            "trigger": {"type": "action_pre", "patterns": ["*.delete"]},
            "questions": [{
                "question_id": "role", "question": "Select role", "response_type": "choice",
                "options": ["admin", "user"], "hint": "yours", "required": false,
            }],
            "guidance": {"content": "slowly"},
            "unlock_capabilities": ["c"],
        }))
        .unwrap();
        assert_eq!(built, read);
    }

    // covers B24
    #[test]
    fn lookups_find_checkpoints_by_trigger() {
        let gated = CheckpointTrigger::CapabilityAccess {
            capability_ids: vec!["admin".to_owned()],
        };
        let manifest = AtlasManifest {
            checkpoints: vec![
                deletes(),
                StewardCheckpointDef::new("s", "S", CheckpointTrigger::SessionStart),
                StewardCheckpointDef::new("c", "C", gated),
            ],
            ..AtlasManifest::default()
        };
        let ids = |found: Vec<&StewardCheckpointDef>| -> Vec<String> {
            found
                .iter()
                .map(|checkpoint| checkpoint.checkpoint_id.clone())
                .collect()
        };
        assert_eq!(manifest.get_checkpoint("s").unwrap().name, "S");
        assert_eq!(ids(manifest.get_session_start_checkpoints()), ["s"]);
        assert_eq!(ids(manifest.get_action_checkpoints("ticket.delete")), ["d"]);
        assert!(manifest.get_action_checkpoints("ticket.get").is_empty());
        assert_eq!(ids(manifest.get_capability_checkpoints("admin")), ["c"]);
    }
}
