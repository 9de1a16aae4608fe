//! Fired checkpoints and required approvals as owned data, and the records of fired checkpoints.

use std::time::Duration;

use crate::atlas::document::CheckpointMode;
use crate::atlas::keyword::KeywordMatch;
use crate::atlas::model::Trigger;
use crate::base::id::SpanId;
use crate::trace::event::{ActionTaken, CheckpointCompleted};

use super::FiredCheckpoint;
use super::policy::RequiredApproval;
use crate::engine::gates::held::HeldSubject;
use crate::engine::gates::holding::{build_checkpoint_gate, record_triggered};
use crate::engine::gates::queue::AdvisoryEffects;
use crate::engine::records::action_records::atlas_refs;
use crate::engine::records::redaction::RedactedText;
use crate::engine::transaction::{SpanPosition, Transaction, pass_effects};

/// Records that a checkpoint fired, before the answers of its handlers. Later records use the same span
/// as parent.
pub(crate) fn record_fired(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    fired: &mut OwnedFiredCheckpoint,
    subject: &HeldSubject,
) {
    if fired.recorded_span.is_some() {
        return;
    }
    let mut new_gate = build_checkpoint_gate(tx, fired);
    new_gate.mode = fired.checkpoint.mode;
    record_triggered(tx, position, &new_gate, subject);
    fired.recorded_span = Some(new_gate.gate.span_id);
}

/// Records that a checkpoint is completed because of its handlers' answers.
pub(crate) fn record_handler_completion(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    fired: &OwnedFiredCheckpoint,
    stopped: Option<RedactedText>,
) {
    let Some(span) = fired.recorded_span.clone() else {
        return;
    };
    let (action_taken, block_reason) = match stopped {
        Some(reason) => (ActionTaken::Block, Some(reason)),
        None => (ActionTaken::Continue, None),
    };
    let (reason, redacted) = block_reason
        .map(|reason| (reason.text, reason.redacted))
        .unzip();
    let completed = CheckpointCompleted {
        checkpoint_id: fired.checkpoint.id.clone(),
        checkpoint_type: fired.checkpoint.kind.to_owned(),
        duration_ms: fired.took_ms(),
        contexts_injected: Vec::new(),
        action_taken: Some(action_taken),
        block_reason: reason,
        judged_under: atlas_refs(tx, Some(&fired.atlas_id)),
        redacted: redacted.unwrap_or_default(),
    };
    tx.record_below(&position.child(span), completed);
}

/// A fired checkpoint as owned data.
pub(crate) struct OwnedFiredCheckpoint {
    pub(crate) atlas_id: String,
    pub(crate) checkpoint: crate::atlas::model::Checkpoint,
    pub(crate) why: String,
    /// False when the checkpoint counts as fired because this could not be ruled out. It then grants nothing.
    pub(crate) certain: bool,
    /// True when its handler rewrote the input.
    pub(crate) modified: bool,
    /// True when `why` contains text of an extension, which may quote the request.
    pub(crate) quotes_request: bool,
    /// Keywords that made it fire, with their positions.
    pub(crate) matches: Vec<KeywordMatch>,
    /// Duration of its extension calls.
    pub(crate) extension_time: Duration,
    /// Span of the record that it fired, once written.
    pub(crate) recorded_span: Option<SpanId>,
}

impl OwnedFiredCheckpoint {
    pub(crate) fn took_ms(&self) -> u64 {
        u64::try_from(self.extension_time.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns whether the checkpoint stops the agent.
    pub(crate) fn is_gate(&self) -> bool {
        self.checkpoint.mode == CheckpointMode::Blocking
    }

    /// Returns whether the checkpoint has effects without stopping the agent.
    pub(crate) fn is_advisory(&self) -> bool {
        self.checkpoint.mode == CheckpointMode::Advisory
    }

    /// Returns its effects on a session, to be applied when the gates of the same request are passed.
    pub(crate) fn advisory_effects(&self) -> AdvisoryEffects {
        AdvisoryEffects {
            atlas_id: self.atlas_id.clone(),
            checkpoint_id: self.checkpoint.id.clone(),
            effects: pass_effects(&self.checkpoint),
        }
    }
}

impl From<FiredCheckpoint<'_>> for OwnedFiredCheckpoint {
    fn from(fired: FiredCheckpoint<'_>) -> Self {
        Self {
            atlas_id: fired.atlas.id.clone(),
            checkpoint: fired.checkpoint.clone(),
            why: fired.why,
            certain: fired.certain,
            modified: false,
            quotes_request: matches!(fired.checkpoint.trigger, Trigger::Custom(_)),
            matches: fired.matches,
            extension_time: Duration::ZERO,
            recorded_span: None,
        }
    }
}

/// A required approval as owned data.
#[derive(Clone, Debug)]
pub(crate) struct OwnedRequiredApproval {
    pub(crate) atlas_id: String,
    pub(crate) policy_id: String,
    pub(crate) reason: String,
    pub(crate) why: String,
    /// True when the approval overrules a denial.
    pub(crate) overrides: bool,
}

impl From<RequiredApproval<'_>> for OwnedRequiredApproval {
    fn from(approval: RequiredApproval<'_>) -> Self {
        Self {
            atlas_id: approval.atlas.id.clone(),
            policy_id: approval.policy_id.to_owned(),
            reason: approval.reason.to_owned(),
            why: approval.why,
            overrides: false,
        }
    }
}
