//! Handling of Enter: the only file from which a decision leaves.

use std::collections::BTreeMap;

use ratatui::crossterm::event::KeyEvent;
use serde_json::Value;

use super::GateDialog;
use super::form::FormFocus;
use super::step::{
    DecisionKind, DecisionStep, DenyFocus, GatePane, PassCare, PassProof, Review, ReviewFocus,
};
use crate::base::clock::Timestamp;
use crate::console::dialog::{KeyResult, LayerChange};
use crate::console::request::ConsoleRequest;
use crate::engine::command::{DecisionRequest, Ruling};

impl GateDialog {
    /// Handles Enter.
    pub(super) fn press(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult {
        if self.pane == GatePane::Context {
            return KeyResult::quietly();
        }
        match &self.step {
            DecisionStep::Editing => match self.form.focus {
                FormFocus::Field(_) => self.type_key(key),
                FormFocus::Back => return KeyResult::with(LayerChange::Close),
                FormFocus::Deny => self.start_denying(now),
                FormFocus::Pass => return self.press_pass(now),
            },
            DecisionStep::Reviewing(review) => match review.focus {
                ReviewFocus::Back => self.step = DecisionStep::Editing,
                ReviewFocus::Proof(PassProof::Why) => self.type_key(key),
                ReviewFocus::Proof(PassProof::Hash | PassProof::Action) => {}
                ReviewFocus::PassNow => return self.pass_now(now),
            },
            DecisionStep::Denying(spot) => match spot {
                DenyFocus::Reason => self.type_key(key),
                DenyFocus::Back => self.step = DecisionStep::Editing,
                DenyFocus::DenyNow => return self.deny_now(now),
            },
            DecisionStep::Claimed(_) => return self.press_claimed(now),
            DecisionStep::Changed(_) => self.show_new_request(),
            DecisionStep::Writing(_) | DecisionStep::Settled(_) => {}
        }
        KeyResult::quietly()
    }

    fn start_denying(&mut self, now: Timestamp) {
        match self.blocker_of_all_decisions(now) {
            Some(reason) => self.notice = Some(format!("cannot deny: {reason}")),
            None => self.step = DecisionStep::Denying(DenyFocus::Reason),
        }
    }

    /// Opens the review. Never decides.
    pub(super) fn review(&mut self, now: Timestamp) {
        if !matches!(self.step, DecisionStep::Editing) {
            return;
        }
        self.pane = GatePane::Form;
        match self.pass_blocker(now) {
            Some(reason) => self.notice = Some(format!("cannot review: {reason}")),
            None => self.step = DecisionStep::Reviewing(Review::new(&self.held, &self.form)),
        }
    }

    pub(super) fn press_pass(&mut self, now: Timestamp) -> KeyResult {
        let broken = self.form.invalid_answers(self.held.gates.len());
        if let (Some(answers), None) = (broken, self.invalid_answers_blocker(now)) {
            return self.send_invalid_answers(answers);
        }
        if let Some(reason) = self.pass_blocker(now) {
            self.notice = Some(format!("cannot pass: {reason}"));
            return KeyResult::quietly();
        }
        match self.required_care() {
            PassCare::Direct if self.form.warnings().is_empty() => {
                self.decide(DecisionKind::Pass, PassCare::Direct)
            }
            PassCare::Direct
            | PassCare::Reviewed
            | PassCare::Batch
            | PassCare::Challenged
            | PassCare::Named
            | PassCare::Override => {
                self.step = DecisionStep::Reviewing(Review::new(&self.held, &self.form));
                KeyResult::quietly()
            }
        }
    }

    pub(super) fn pass_now(&mut self, now: Timestamp) -> KeyResult {
        if let Some(reason) = self.final_pass_blocker(now) {
            self.notice = Some(format!("cannot pass: {reason}"));
            return self.record_wrong_confirmation(now);
        }
        self.decide(DecisionKind::Pass, self.required_care())
    }

    pub(super) fn deny_now(&mut self, now: Timestamp) -> KeyResult {
        if let Some(reason) = self.deny_blocker(now) {
            self.notice = Some(format!("cannot deny: {reason}"));
            return KeyResult::quietly();
        }
        let care = if self.is_batch() {
            PassCare::Batch
        } else {
            PassCare::Direct
        };
        self.decide(DecisionKind::Deny, care)
    }

    /// Sends invalid answers: they are recorded and counted, and nothing passes because of them.
    fn send_invalid_answers(&mut self, answers: Vec<BTreeMap<String, Value>>) -> KeyResult {
        let care = if self.is_batch() {
            PassCare::Batch
        } else {
            PassCare::Direct
        };
        let decide = self.decision(care, None, Ruling::Invalid { answers });
        self.send(DecisionKind::Pass, decide)
    }

    /// Requests a record of a wrong confirmation that the operator typed.
    fn record_wrong_confirmation(&mut self, now: Timestamp) -> KeyResult {
        let DecisionStep::Reviewing(review) = &self.step else {
            return KeyResult::quietly();
        };
        let wrong = review.wrong_confirmation(&self.held);
        match wrong {
            Some((wanted, typed)) if self.pass_blocker(now).is_none() => {
                let ruling = Ruling::WrongConfirmation {
                    wanted,
                    typed_text: typed,
                };
                let decide = self.decision(self.required_care(), None, ruling);
                let asks = self.for_each(&decide).into_iter();
                let asks = asks.map(|decide| LayerChange::Send(ConsoleRequest::Decide(decide)));
                KeyResult::Consumed(asks.collect())
            }
            Some(_) | None => KeyResult::quietly(),
        }
    }

    /// Builds a decision about exactly this request.
    fn decision(
        &self,
        care: PassCare,
        justification: Option<String>,
        ruling: Ruling,
    ) -> DecisionRequest {
        DecisionRequest {
            gate: self.held.id.clone(),
            operator: self.decision_context.operator.clone(),
            method: care.method().to_owned(),
            request_hash: self.held.request_hash,
            atlas_hash: self.held.atlas_hash,
            justification,
            ruling,
        }
    }

    fn decide(&mut self, verb: DecisionKind, care: PassCare) -> KeyResult {
        if self.ask_about_claim(verb) {
            return KeyResult::quietly();
        }
        let reason = self.form.justification_text();
        let wanted = match &self.step {
            DecisionStep::Reviewing(review) => review.proofs.contains(&PassProof::Why),
            DecisionStep::Editing
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_)
            | DecisionStep::Settled(_) => false,
        };
        let ruling = match verb {
            DecisionKind::Pass => Ruling::Pass {
                answers: self.form.answers(self.held.gates.len()),
            },
            DecisionKind::Deny => Ruling::Deny {
                reason: self.form.reason_text(),
            },
        };
        let reason = Some(reason).filter(|reason| wanted && !reason.is_empty());
        let decide = self.decision(care, reason, ruling);
        self.send(verb, decide)
    }

    /// Sends a decision, one for each request where several are decided, and waits for what becomes of it.
    fn send(&mut self, verb: DecisionKind, decide: DecisionRequest) -> KeyResult {
        self.problems.clear();
        self.failed_recording = None;
        self.first_record = self.events;
        self.step = DecisionStep::Writing(verb);
        let each = if self.is_batch() {
            self.decide_each(&decide)
        } else {
            vec![decide]
        };
        let asks = each.into_iter();
        let asks = asks.map(|decide| LayerChange::Send(ConsoleRequest::Decide(decide)));
        KeyResult::Consumed(asks.collect())
    }
}
