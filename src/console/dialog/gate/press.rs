//! Handling of Enter: the only file from which a decision leaves.

use std::collections::BTreeMap;

use ratatui::crossterm::event::KeyEvent;
use serde_json::Value;

use super::GateDialog;
use super::form::Spot;
use super::step::{Care, DenySpot, Pane, Proof, Review, ReviewSpot, Step, Verb};
use crate::base::clock::Timestamp;
use crate::console::layer::{Change, Handled};
use crate::console::request::Request;
use crate::engine::command::{Decide, Ruling};

impl GateDialog {
    /// Handles Enter.
    pub(super) fn press(&mut self, key: KeyEvent, now: Timestamp) -> Handled {
        if self.pane == Pane::Context {
            return Handled::quietly();
        }
        match &self.step {
            Step::Editing => match self.form.focus {
                Spot::Field(_) => self.type_key(key),
                Spot::Back => return Handled::with(Change::Close),
                Spot::Deny => self.start_denying(now),
                Spot::Pass => return self.press_pass(now),
            },
            Step::Reviewing(review) => match review.spot {
                ReviewSpot::Back => self.step = Step::Editing,
                ReviewSpot::Proof(Proof::Why) => self.type_key(key),
                ReviewSpot::Proof(Proof::Hash | Proof::Action) => {}
                ReviewSpot::PassNow => return self.pass_now(now),
            },
            Step::Denying(spot) => match spot {
                DenySpot::Reason => self.type_key(key),
                DenySpot::Back => self.step = Step::Editing,
                DenySpot::DenyNow => return self.deny_now(now),
            },
            Step::Claimed(_) => return self.press_claimed(now),
            Step::Changed(_) => self.look_again(),
            Step::Writing(_) | Step::Settled(_) => {}
        }
        Handled::quietly()
    }

    fn start_denying(&mut self, now: Timestamp) {
        match self.bars_all(now) {
            Some(why) => self.notice = Some(format!("cannot deny: {why}")),
            None => self.step = Step::Denying(DenySpot::Reason),
        }
    }

    /// Opens the review. Never decides.
    pub(super) fn review(&mut self, now: Timestamp) {
        if !matches!(self.step, Step::Editing) {
            return;
        }
        self.pane = Pane::Form;
        match self.bars_pass(now) {
            Some(why) => self.notice = Some(format!("no review yet: {why}")),
            None => self.step = Step::Reviewing(Review::new(&self.held, &self.form)),
        }
    }

    pub(super) fn press_pass(&mut self, now: Timestamp) -> Handled {
        let broken = self.form.broken_answers(self.held.gates.len());
        if let (Some(answers), None) = (broken, self.bars_broken(now)) {
            return self.send_broken(answers);
        }
        if let Some(why) = self.bars_pass(now) {
            self.notice = Some(format!("cannot pass: {why}"));
            return Handled::quietly();
        }
        match self.care() {
            Care::Direct if self.form.warnings().is_empty() => {
                self.decide(Verb::Pass, Care::Direct)
            }
            Care::Direct
            | Care::Reviewed
            | Care::Together
            | Care::Challenged
            | Care::Named
            | Care::Overruled => {
                self.step = Step::Reviewing(Review::new(&self.held, &self.form));
                Handled::quietly()
            }
        }
    }

    pub(super) fn pass_now(&mut self, now: Timestamp) -> Handled {
        if let Some(why) = self.bars_pass_now(now) {
            self.notice = Some(format!("cannot pass: {why}"));
            return self.tell_unconfirmed(now);
        }
        self.decide(Verb::Pass, self.care())
    }

    pub(super) fn deny_now(&mut self, now: Timestamp) -> Handled {
        if let Some(why) = self.bars_deny(now) {
            self.notice = Some(format!("cannot deny: {why}"));
            return Handled::quietly();
        }
        let care = if self.is_batch() {
            Care::Together
        } else {
            Care::Direct
        };
        self.decide(Verb::Deny, care)
    }

    /// Sends invalid answers: they are recorded and counted, and nothing passes because of them.
    fn send_broken(&mut self, answers: Vec<BTreeMap<String, Value>>) -> Handled {
        let care = if self.is_batch() {
            Care::Together
        } else {
            Care::Direct
        };
        let decide = self.decision(care, None, Ruling::Invalid { answers });
        self.send(Verb::Pass, decide)
    }

    /// Requests a record of a wrong confirmation that the operator typed.
    fn tell_unconfirmed(&mut self, now: Timestamp) -> Handled {
        let Step::Reviewing(review) = &self.step else {
            return Handled::quietly();
        };
        let wrong = review.wrong(&self.held);
        match wrong {
            Some((wanted, typed)) if self.bars_pass(now).is_none() => {
                let ruling = Ruling::Unconfirmed { wanted, typed };
                let decide = self.decision(self.care(), None, ruling);
                let asks = self.for_each(&decide).into_iter();
                let asks = asks.map(|decide| Change::Ask(Request::Decide(decide)));
                Handled::Consumed(asks.collect())
            }
            Some(_) | None => Handled::quietly(),
        }
    }

    /// Builds a decision about exactly this request.
    fn decision(&self, care: Care, justification: Option<String>, ruling: Ruling) -> Decide {
        Decide {
            gate: self.held.id.clone(),
            operator: self.around.operator.clone(),
            method: care.method().to_owned(),
            request_hash: self.held.request_hash,
            atlas_hash: self.held.atlas_hash,
            justification,
            ruling,
        }
    }

    fn decide(&mut self, verb: Verb, care: Care) -> Handled {
        if self.asks_about_claim(verb) {
            return Handled::quietly();
        }
        let why = self.form.why_text();
        let wanted = match &self.step {
            Step::Reviewing(review) => review.proofs.contains(&Proof::Why),
            Step::Editing
            | Step::Denying(_)
            | Step::Claimed(_)
            | Step::Writing(_)
            | Step::Changed(_)
            | Step::Settled(_) => false,
        };
        let ruling = match verb {
            Verb::Pass => Ruling::Pass {
                answers: self.form.answers(self.held.gates.len()),
            },
            Verb::Deny => Ruling::Deny {
                reason: self.form.reason_text(),
            },
        };
        let why = Some(why).filter(|why| wanted && !why.is_empty());
        let decide = self.decision(care, why, ruling);
        self.send(verb, decide)
    }

    /// Sends a decision, one for each request where several are decided, and waits for what becomes of it.
    fn send(&mut self, verb: Verb, decide: Decide) -> Handled {
        self.problems.clear();
        self.refusal = None;
        self.written_from = self.events;
        self.step = Step::Writing(verb);
        let each = if self.is_batch() {
            self.decide_each(&decide)
        } else {
            vec![decide]
        };
        let asks = each.into_iter();
        let asks = asks.map(|decide| Change::Ask(Request::Decide(decide)));
        Handled::Consumed(asks.collect())
    }
}
