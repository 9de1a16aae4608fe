//! What passing a gate is recorded as. One place makes these records: the engine writes them, and the
//! dialog shows them before anybody signs, so that both can never say different things.

use serde_json::{Map, Value};

use crate::trace::event::{
    CheckpointPassed, CheckpointResponse, Payload, PolicyOverride, RiskVerified, Validity,
};

use super::held::{Gate, Held, Origin};
use super::recorded::tier;

/// The question whose answer justifies an approval.
pub const JUSTIFICATION: &str = "justification";

/// Who passes a gate, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approver<'a> {
    /// Who.
    pub name: &'a str,
    /// How: `console+challenge`.
    pub method: &'a str,
    /// Why, where no question asked for it.
    pub why: Option<&'a str>,
}

/// What is recorded of the answers to a gate, all of which keep their rules.
#[must_use]
pub fn response(gate: &Gate, answers: Map<String, Value>, by: Approver<'_>) -> CheckpointResponse {
    CheckpointResponse {
        checkpoint_id: gate.origin.id().to_owned(),
        answers,
        validation_result: Validity::Valid,
        problems: Vec::new(),
        answered_by: by.name.to_owned(),
        redacted: Vec::new(),
    }
}

/// What only some gates call for: that a risk was verified, or a policy overruled.
#[must_use]
pub fn approval(
    held: &Held,
    gate: &Gate,
    answers: Option<&Map<String, Value>>,
    by: Approver<'_>,
) -> Option<Payload> {
    match &gate.origin {
        Origin::Checkpoint { kind, .. } if kind == "risk_threshold" => {
            let verified = RiskVerified {
                risk_tier: tier(held.tier()),
                verification_method: by.method.to_owned(),
                verified_by: Some(by.name.to_owned()),
                action_type: held.action().to_owned(),
            };
            Some(verified.into())
        }
        Origin::Checkpoint { .. } => None,
        Origin::Approval { policy_id, .. } | Origin::Override { policy_id, .. } => {
            let said = answers.and_then(|answers| answers.get(JUSTIFICATION)?.as_str());
            let overruled = PolicyOverride {
                policy_id: policy_id.clone(),
                action_type: held.action().to_owned(),
                approver: by.name.to_owned(),
                approval_method: by.method.to_owned(),
                justification: said.or(by.why).map(str::to_owned),
            };
            Some(overruled.into())
        }
    }
}

/// That a gate was passed, and these contexts were handed over.
#[must_use]
pub fn passed(gate: &Gate, contexts: Vec<String>, by: Approver<'_>) -> CheckpointPassed {
    CheckpointPassed {
        checkpoint_id: gate.origin.id().to_owned(),
        unlocked_capabilities: gate.effects.unlock.iter().cloned().collect(),
        injected_contexts: contexts,
        passed_by: by.name.to_owned(),
        justification: by.why.map(str::to_owned),
    }
}
