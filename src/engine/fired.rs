//! Fired checkpoints and required approvals as owned data, and the records of fired checkpoints.

use std::time::Duration;

use crate::atlas::compiled::Trigger;
use crate::atlas::document::CheckpointMode;
use crate::atlas::keyword::KeywordMatch;
use crate::base::id::SpanId;
use crate::trace::event::{ActionTaken, CheckpointCompleted};

use super::Advice;
use super::evaluate::Fired;
use super::held::Subject;
use super::policy::Approval;
use super::recorded::Told;
use super::turn::{Place, Turn, pass_effects};

impl Turn<'_> {
    /// Records that a checkpoint fired, before the answers of its handlers. Later records use the same span
    /// as parent.
    pub(super) fn record_fired(
        &mut self,
        place: &Place,
        fired: &mut OwnedFired,
        subject: &Subject,
    ) {
        if fired.recorded.is_some() {
            return;
        }
        let mut raised = self.raise_checkpoint(fired);
        raised.mode = fired.checkpoint.mode;
        self.record_triggered(place, &raised, subject);
        fired.recorded = Some(raised.gate.span_id);
    }

    /// Records that a checkpoint is completed because of its handlers' answers.
    pub(super) fn record_handled(
        &mut self,
        place: &Place,
        fired: &OwnedFired,
        stopped: Option<Told>,
    ) {
        let Some(span) = fired.recorded.clone() else {
            return;
        };
        let (taken, told) = match stopped {
            Some(told) => (ActionTaken::Block, Some(told)),
            None => (ActionTaken::Continue, None),
        };
        let (reason, redacted) = told.map(|told| (told.text, told.redacted)).unzip();
        let completed = CheckpointCompleted {
            checkpoint_id: fired.checkpoint.id.clone(),
            checkpoint_type: fired.checkpoint.kind.to_owned(),
            duration_ms: fired.took_ms(),
            contexts_injected: Vec::new(),
            action_taken: Some(taken),
            block_reason: reason,
            judged_under: self.under(Some(&fired.atlas_id)),
            redacted: redacted.unwrap_or_default(),
        };
        self.record_below(&place.below(span), completed);
    }
}

/// A fired checkpoint as owned data.
pub(super) struct OwnedFired {
    pub(super) atlas_id: String,
    pub(super) checkpoint: crate::atlas::compiled::Checkpoint,
    pub(super) why: String,
    /// False when the checkpoint counts as fired because this could not be ruled out. It then grants nothing.
    pub(super) certain: bool,
    /// True when its handler rewrote the input.
    pub(super) modified: bool,
    /// True when `why` contains text of an extension, which may quote the request.
    pub(super) quotes: bool,
    /// Keywords that made it fire, with their positions.
    pub(super) matches: Vec<KeywordMatch>,
    /// Duration of its extension calls.
    pub(super) took: Duration,
    /// Span of the record that it fired, once written.
    pub(super) recorded: Option<SpanId>,
}

impl OwnedFired {
    pub(super) fn took_ms(&self) -> u64 {
        u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns whether the checkpoint stops the agent.
    pub(super) fn is_gate(&self) -> bool {
        self.checkpoint.mode == CheckpointMode::Blocking
    }

    /// Returns whether the checkpoint has effects without stopping the agent.
    pub(super) fn is_advice(&self) -> bool {
        self.checkpoint.mode == CheckpointMode::Advisory
    }

    /// Returns its effects on a session, to be applied when the gates of the same request are passed.
    pub(super) fn advice(&self) -> Advice {
        Advice {
            atlas_id: self.atlas_id.clone(),
            checkpoint_id: self.checkpoint.id.clone(),
            effects: pass_effects(&self.checkpoint),
        }
    }
}

impl From<Fired<'_>> for OwnedFired {
    fn from(fired: Fired<'_>) -> Self {
        Self {
            atlas_id: fired.atlas.id.clone(),
            checkpoint: fired.checkpoint.clone(),
            why: fired.why,
            certain: fired.certain,
            modified: false,
            quotes: matches!(fired.checkpoint.trigger, Trigger::Custom(_)),
            matches: fired.matches,
            took: Duration::ZERO,
            recorded: None,
        }
    }
}

/// A required approval as owned data.
#[derive(Clone, Debug)]
pub(super) struct OwnedApproval {
    pub(super) atlas_id: String,
    pub(super) policy_id: String,
    pub(super) reason: String,
    pub(super) why: String,
    /// True when the approval overrules a denial.
    pub(super) overrides: bool,
}

impl From<Approval<'_>> for OwnedApproval {
    fn from(approval: Approval<'_>) -> Self {
        Self {
            atlas_id: approval.atlas.id.clone(),
            policy_id: approval.policy_id.to_owned(),
            reason: approval.reason.to_owned(),
            why: approval.why,
            overrides: false,
        }
    }
}
