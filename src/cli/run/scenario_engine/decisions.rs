//! Decisions of operators about held requests.

use super::answers::{answers_for, stray_answer};
use super::{ScenarioEngine, StepOutcome};
use crate::cli::run::scenario::{ApprovalStep, DenialStep};
use crate::engine::command::{DecisionRequest, EngineCommand, Ruling};
use crate::engine::held::Held;

/// Default operator of a decision.
const OPERATOR: &str = "operator";

impl ScenarioEngine {
    /// Approves a held request, with answers.
    pub(super) fn pass(&mut self, pass: &ApprovalStep, noted: &mut StepOutcome) {
        let Some(held) = self.named(&pass.gate, noted) else {
            return;
        };
        noted.fault = stray_answer(&held, &pass.answers);
        let answers = answers_for(&held, &pass.answers);
        let decide = DecisionRequest {
            justification: pass.justification.clone(),
            ..decision(&held, pass.operator.as_ref(), Ruling::Pass { answers })
        };
        self.run_request(|reply_id| EngineCommand::Decide(reply_id, decide), noted);
    }

    /// Denies a held request, with a reason.
    pub(super) fn deny(&mut self, deny: &DenialStep, noted: &mut StepOutcome) {
        let Some(held) = self.named(&deny.gate, noted) else {
            return;
        };
        let reason = deny.reason.clone();
        let decide = decision(&held, deny.operator.as_ref(), Ruling::Deny { reason });
        self.run_request(|reply_id| EngineCommand::Decide(reply_id, decide), noted);
    }
}

fn decision(held: &Held, operator: Option<&String>, ruling: Ruling) -> DecisionRequest {
    DecisionRequest {
        gate: held.id.clone(),
        operator: operator.map_or(OPERATOR, String::as_str).to_owned(),
        method: "scenario".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling,
    }
}
