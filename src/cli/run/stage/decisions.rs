//! Decisions of operators about held requests.

use super::answers::{answers_for, stray_answer};
use super::{Noted, Stage};
use crate::cli::run::scenario::{Deny, Pass};
use crate::engine::command::{Command, Decide, Ruling};
use crate::engine::held::Held;

/// Default operator of a decision.
const OPERATOR: &str = "operator";

impl Stage {
    /// Approves a held request, with answers.
    pub(super) fn pass(&mut self, pass: &Pass, noted: &mut Noted) {
        let Some(held) = self.named(&pass.gate, noted) else {
            return;
        };
        noted.misfit = stray_answer(&held, &pass.answers);
        let answers = answers_for(&held, &pass.answers);
        let decide = Decide {
            justification: pass.justification.clone(),
            ..decision(&held, pass.operator.as_ref(), Ruling::Pass { answers })
        };
        self.ask(|ask| Command::Decide(ask, decide), noted);
    }

    /// Denies a held request, with a reason.
    pub(super) fn deny(&mut self, deny: &Deny, noted: &mut Noted) {
        let Some(held) = self.named(&deny.gate, noted) else {
            return;
        };
        let reason = deny.reason.clone();
        let decide = decision(&held, deny.operator.as_ref(), Ruling::Deny { reason });
        self.ask(|ask| Command::Decide(ask, decide), noted);
    }
}

fn decision(held: &Held, operator: Option<&String>, ruling: Ruling) -> Decide {
    Decide {
        gate: held.id.clone(),
        operator: operator.map_or(OPERATOR, String::as_str).to_owned(),
        method: "scenario".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling,
    }
}
