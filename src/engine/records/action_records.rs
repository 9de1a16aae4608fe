//! Records of attempted, blocked and risky actions, with the parts of a record that name tiers and Atlases.

use crate::atlas::Atlas;
use crate::atlas::document::RiskTier;
use crate::atlas::redaction::Redactor;
use crate::trace::event::{
    ActionAttempted, ActionBlocked, AtlasRef, Recommendation, RiskDetected, RiskTierInfo,
};

use super::redaction::redaction_list;
use crate::engine::command::DenyCode;
use crate::engine::gates::held::{ActionCall, TierSource};
use crate::engine::transaction::{SpanPosition, Transaction};

/// Builds the record of an attempted action.
pub(crate) fn attempt_record(
    tx: &Transaction<'_>,
    call: &ActionCall,
    checked: PolicyCheck,
) -> ActionAttempted {
    let mut redactor = Redactor::new(&tx.engine.atlases, Some(&call.action));
    let action_params = redactor.redact_params("action_params", &call.params);
    ActionAttempted {
        action_type: call.action.clone(),
        action_params,
        risk_tier: recorded_tier(call.tier),
        policy_checked: checked == PolicyCheck::Yes,
        context_injected: None,
        permit: None,
        approved_by: None,
        judged_under: Vec::new(),
        numbers_as_text: Vec::new(),
        redacted: redaction_list(redactor.into_redactions()),
    }
}

/// State of the policy check of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyCheck {
    /// Policies are consulted; the record of the verdict follows.
    Yes,
    /// The attempt ends before policies are consulted.
    No,
}

/// Builds the record of a blocked action.
pub(crate) fn blocked_record(
    tx: &Transaction<'_>,
    call: &ActionCall,
    by: &str,
    why: BlockReason<'_>,
) -> ActionBlocked {
    let mut redactor = Redactor::new(&tx.engine.atlases, Some(&call.action));
    let action_params = redactor.redact_params("action_params", &call.params);
    // The text of a steward or an operator quotes nothing. An agent that names a secret after it must not
    // make it disappear.
    let reason = if may_quote_request(why.code) {
        redactor.redact_text("reason", why.reason)
    } else {
        why.reason.to_owned()
    };
    ActionBlocked {
        action_type: call.action.clone(),
        action_params,
        policy_id: by.to_owned(),
        reason,
        override_available: why.override_available,
        judged_under: why.under.to_vec(),
        numbers_as_text: Vec::new(),
        redacted: redaction_list(redactor.into_redactions()),
    }
}

/// Reason why an action may not run.
#[derive(Clone, Copy)]
pub(crate) struct BlockReason<'w> {
    pub(crate) code: DenyCode,
    pub(crate) reason: &'w str,
    pub(crate) override_available: bool,
    /// Atlases whose rules block the action; empty for all loaded ones.
    pub(crate) under: &'w [AtlasRef],
}

impl<'w> BlockReason<'w> {
    /// Creates a reason that no operator may overrule.
    pub(crate) fn final_reason(code: DenyCode, reason: &'w str) -> Self {
        Self {
            code,
            reason,
            override_available: false,
            under: &[],
        }
    }
}

/// Returns whether a reason with this code can quote the request.
pub(crate) fn may_quote_request(code: DenyCode) -> bool {
    match code {
        DenyCode::Parameters | DenyCode::Limit | DenyCode::Extension | DenyCode::InvalidAnswer => {
            true
        }
        DenyCode::Thread
        | DenyCode::Session
        | DenyCode::Ended
        | DenyCode::Unauthorized
        | DenyCode::BadRequest
        | DenyCode::UnknownAction
        | DenyCode::Policy
        | DenyCode::Resolution
        | DenyCode::DeniedAction
        | DenyCode::CapabilityLocked
        | DenyCode::Refused
        | DenyCode::Expired
        | DenyCode::Withdrawn
        | DenyCode::Changed
        | DenyCode::Overload
        | DenyCode::Unavailable => false,
    }
}

/// Records that an action is risky, if it is, with the recommended reaction.
pub(crate) fn record_risk(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    call: &ActionCall,
    recommended: Recommendation,
) {
    if call.tier < RiskTier::High {
        return;
    }
    let record = RiskDetected {
        risk_tier: recorded_tier(call.tier),
        trigger: match call.tier_source {
            TierSource::Declared => "declared by the Atlas".to_owned(),
            TierSource::Detected => "detected from words in the request".to_owned(),
        },
        action_type: Some(call.action.clone()),
        recommended_action: recommended,
        judged_under: Vec::new(),
    };
    tx.record_below(position, record);
}

/// Converts a tier into its recorded form.
pub(crate) fn recorded_tier(tier: RiskTier) -> RiskTierInfo {
    match tier {
        RiskTier::Low => RiskTierInfo::Low,
        RiskTier::Medium => RiskTierInfo::Medium,
        RiskTier::High => RiskTierInfo::High,
        RiskTier::Critical => RiskTierInfo::Critical,
    }
}
/// Returns the Atlas of this name, as records name it. An empty list stands for all loaded Atlases.
pub(crate) fn atlas_refs(tx: &Transaction<'_>, atlas_id: Option<&str>) -> Vec<AtlasRef> {
    let atlases = tx.engine.atlases.iter();
    let own = atlases.filter(|atlas| atlas_id.is_some_and(|id| id == atlas.id));
    own.map(atlas_ref).collect()
}

/// Returns an Atlas as records name it.
pub(crate) fn atlas_ref(atlas: &Atlas) -> AtlasRef {
    AtlasRef {
        atlas_id: atlas.id.clone(),
        atlas_hash: atlas.hash.to_string(),
    }
}
