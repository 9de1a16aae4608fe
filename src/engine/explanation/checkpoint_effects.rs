//! Effects of a checkpoint, for explanations: contexts, guidance, unlocked and locked capabilities, allowed
//! and denied actions.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{CheckpointEvidence, CheckpointOutcome};
use crate::atlas::condition::LeafReport;
use crate::atlas::document::CheckpointMode;
use crate::atlas::model::{Atlas, Checkpoint};

/// Effects of a checkpoint that fires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckpointEffects {
    /// Contexts that it injects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<String>,
    /// Guidance that it gives to the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guidance: Option<String>,
    /// Capabilities that it unlocks.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unlock: BTreeSet<String>,
    /// Capabilities that it locks.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub lock: BTreeSet<String>,
    /// Patterns of actions that it allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Patterns of actions that it denies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl CheckpointEffects {
    /// Returns whether there are no effects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the effects of a checkpoint. An observational one has none.
    fn of(checkpoint: &Checkpoint) -> Self {
        if checkpoint.mode == CheckpointMode::Observational {
            return Self::default();
        }
        let texts = |patterns: &crate::base::pattern::Patterns| {
            patterns.iter().map(ToString::to_string).collect()
        };
        Self {
            contexts: checkpoint.inject_contexts.clone(),
            guidance: checkpoint
                .guidance
                .as_ref()
                .map(|guidance| guidance.content.clone()),
            unlock: checkpoint.unlock_capabilities.clone(),
            lock: checkpoint.lock_capabilities.clone(),
            allow: texts(&checkpoint.allow_actions),
            deny: texts(&checkpoint.deny_actions),
        }
    }

    /// Returns each effect as a verb and its object.
    #[must_use]
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let set = |ids: &BTreeSet<String>| ids.iter().cloned().collect::<Vec<_>>().join(", ");
        let all = [
            ("gives", self.contexts.join(", ")),
            ("tells", self.guidance.clone().unwrap_or_default()),
            ("unlocks", set(&self.unlock)),
            ("locks", set(&self.lock)),
            ("allows", self.allow.join(", ")),
            ("denies", self.deny.join(", ")),
        ];
        all.into_iter()
            .filter(|(_, what)| !what.is_empty())
            .collect()
    }
}

impl CheckpointEvidence {
    /// Creates the evidence about a checkpoint. Only a fired checkpoint has effects.
    pub(super) fn new(
        atlas: &Atlas,
        checkpoint: &Checkpoint,
        outcome: CheckpointOutcome,
        conditions: Vec<LeafReport>,
    ) -> Self {
        let effects = match &outcome {
            CheckpointOutcome::Fired { .. } => CheckpointEffects::of(checkpoint),
            CheckpointOutcome::NotFired { .. } | CheckpointOutcome::Skipped { .. } => {
                CheckpointEffects::default()
            }
        };
        Self {
            atlas_id: atlas.id.clone(),
            checkpoint_id: checkpoint.id.clone(),
            kind: checkpoint.kind,
            mode: checkpoint.mode,
            priority: checkpoint.priority,
            outcome,
            matches: Vec::new(),
            conditions,
            effects,
        }
    }
}
