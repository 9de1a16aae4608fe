//! Redaction of recorded texts and parameters. Texts of agents and extensions are recorded without the parts
//! that a steward wants redacted.
//!
//! Decisions, operators and request hashes use the original data.

use serde_json::{Map, Value};

use crate::atlas::Atlas;
use crate::atlas::document::RiskTier;
use crate::atlas::redaction::{Redactions, Redactor};
use crate::trace::event::{
    ActionAttempted, ActionBlocked, AtlasRef, Recommendation, Redaction, RiskDetected, RiskTierInfo,
};

use super::command::DenyCode;
use super::held::{ActionCall, Held, HeldSubject, TierSource};
use super::transaction::{SpanPosition, Transaction};

/// A text as it is recorded, with the list of redactions.
pub(super) struct RedactedText {
    pub(super) text: String,
    pub(super) redacted: Vec<Redaction>,
}

impl RedactedText {
    /// Wraps a text that contains no quoted data.
    pub(super) fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            redacted: Vec::new(),
        }
    }
}

impl Transaction<'_> {
    /// Creates the redactor for everything that is recorded about a request.
    pub(super) fn redactor(&self, call: Option<&ActionCall>) -> Redactor<'_> {
        let action = call.map(|call| call.action.as_str());
        let mut redactor = Redactor::new(&self.engine.atlases, action);
        if let Some(call) = call {
            redactor.learn_secrets(&call.params);
        }
        redactor
    }

    /// Redacts a text of an agent, as recorded under `field`. `action` is the action it concerns.
    pub(super) fn redact_text(
        &self,
        action: Option<&str>,
        field: &str,
        text: &str,
    ) -> RedactedText {
        let mut redactor = Redactor::new(&self.engine.atlases, action);
        let text = redactor.redact_text(field, text);
        RedactedText {
            text,
            redacted: redaction_list(redactor.into_redactions()),
        }
    }

    /// Redacts an optional text of an agent, as recorded under `field`.
    pub(super) fn redact_optional_text(
        &self,
        field: &str,
        text: Option<&str>,
    ) -> (Option<String>, Vec<Redaction>) {
        let told = text.map(|text| self.redact_text(None, field, text));
        told.map_or((None, Vec::new()), |told| (Some(told.text), told.redacted))
    }

    /// Redacts a reason that may quote the parameters of a request, as recorded under `field`.
    pub(super) fn redact_reason(
        &self,
        call: Option<&ActionCall>,
        field: &str,
        text: &str,
    ) -> RedactedText {
        let mut redactor = self.redactor(call);
        let text = redactor.redact_text(field, text);
        RedactedText {
            text,
            redacted: redaction_list(redactor.into_redactions()),
        }
    }

    /// Redacts the problems of answers: the text of a validator may quote the request.
    pub(super) fn redact_problems(
        &self,
        held: &Held,
        problems: &[String],
    ) -> (Vec<String>, Vec<Redaction>) {
        let call = match &held.subject {
            HeldSubject::Action(call) if !problems.is_empty() => Some(call),
            HeldSubject::Action(_) | HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
        };
        let mut redactor = self.redactor(call);
        let problems = problems.iter();
        let problems = problems
            .map(|problem| redactor.redact_text("problems", problem))
            .collect();
        (problems, redaction_list(redactor.into_redactions()))
    }

    /// Records that an action is risky, if it is, with the recommended reaction.
    pub(super) fn record_risk(
        &mut self,
        place: &SpanPosition,
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
        self.record_below(place, record);
    }

    /// Returns the Atlas of this name, as records name it. An empty list stands for all loaded Atlases.
    pub(super) fn atlas_refs(&self, atlas_id: Option<&str>) -> Vec<AtlasRef> {
        let atlases = self.engine.atlases.iter();
        let own = atlases.filter(|atlas| atlas_id.is_some_and(|id| id == atlas.id));
        own.map(atlas_ref).collect()
    }

    /// Builds the record of an attempted action.
    pub(super) fn attempt_record(
        &self,
        call: &ActionCall,
        checked: PolicyCheck,
    ) -> ActionAttempted {
        let mut redactor = Redactor::new(&self.engine.atlases, Some(&call.action));
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

    /// Builds the record of a blocked action.
    pub(super) fn blocked_record(
        &self,
        call: &ActionCall,
        by: &str,
        why: BlockReason<'_>,
    ) -> ActionBlocked {
        let mut redactor = Redactor::new(&self.engine.atlases, Some(&call.action));
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
}

/// State of the policy check of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicyCheck {
    /// Policies are consulted; the record of the verdict follows.
    Yes,
    /// The attempt ends before policies are consulted.
    No,
}

/// Returns an Atlas as records name it.
pub(super) fn atlas_ref(atlas: &Atlas) -> AtlasRef {
    AtlasRef {
        atlas_id: atlas.id.clone(),
        atlas_hash: atlas.hash.to_string(),
    }
}

/// Reason why an action may not run.
#[derive(Clone, Copy)]
pub(super) struct BlockReason<'w> {
    pub(super) code: DenyCode,
    pub(super) reason: &'w str,
    pub(super) override_available: bool,
    /// Atlases whose rules block the action; empty for all loaded ones.
    pub(super) under: &'w [AtlasRef],
}

impl<'w> BlockReason<'w> {
    /// Creates a reason that no operator may overrule.
    pub(super) fn final_reason(code: DenyCode, reason: &'w str) -> Self {
        Self {
            code,
            reason,
            override_available: false,
            under: &[],
        }
    }
}

/// Returns whether a reason with this code can quote the request.
pub(super) fn may_quote_request(code: DenyCode) -> bool {
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

/// Converts redactions into their recorded form.
pub(super) fn redaction_list(left_out: Redactions) -> Vec<Redaction> {
    let left_out = left_out.into_iter();
    left_out
        .map(|(rule, left_out)| Redaction {
            rule,
            paths: left_out.paths,
            count: left_out.count,
        })
        .collect()
}

/// Redacts an object. Returns it with the list of redactions.
pub(super) fn scrubbed(
    mut redactor: Redactor<'_>,
    field: &str,
    data: &Map<String, Value>,
) -> (Map<String, Value>, Vec<Redaction>) {
    let kept = match redactor.redact_data(field, &Value::Object(data.clone())) {
        Value::Object(kept) => kept,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    (kept, redaction_list(redactor.into_redactions()))
}

/// Converts a tier into its recorded form.
pub(super) fn recorded_tier(tier: RiskTier) -> RiskTierInfo {
    match tier {
        RiskTier::Low => RiskTierInfo::Low,
        RiskTier::Medium => RiskTierInfo::Medium,
        RiskTier::High => RiskTierInfo::High,
        RiskTier::Critical => RiskTierInfo::Critical,
    }
}
