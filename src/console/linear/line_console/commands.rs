//! Commands that the operator can type while no question is open.

use std::sync::Arc;

use super::super::pending_pass::PendingPass;
use super::super::wording;
use super::{LineConsole, LineEffect, LineState, READ_ONLY_MESSAGE};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::app::record_faults::{find_record_trouble, is_acknowledged};
use crate::console::dialog::gate::{PassCare, RecordTrouble, care_for_request};
use crate::console::text_cells::counted;
use crate::engine::approval::bars;
use crate::engine::command::ClaimChangeKind;
use crate::engine::held::Held;
use crate::runtime::snapshot::{ConsoleAccess, StoreState};
use crate::trace::verification::VerificationProgress;

impl LineConsole {
    pub(super) fn run_command(&mut self, text: &str, now: Timestamp) -> Vec<LineEffect> {
        let (word, gate) = match text.split_once(char::is_whitespace) {
            Some((word, gate)) => (word, gate.trim()),
            None => (text, ""),
        };
        match word {
            "" => {}
            "help" | "?" => self.out.push_str(wording::HELP),
            "list" => self.print_held(now),
            "recent" => self.print_recent_decisions(),
            "quit" => return vec![LineEffect::Leave],
            "verify" => return self.start_check(),
            "stop" => self.stop_check(),
            "show" => {
                if let Some(held) = self.find_held(gate) {
                    for line in wording::request_lines(&held, &self.snapshot, now) {
                        self.print_line(&line);
                    }
                }
            }
            "pass" | "override" => self.begin_pass(word, gate, now),
            "claim" => return self.claim(ClaimChangeKind::Take, gate),
            "unclaim" => return self.claim(ClaimChangeKind::Release, gate),
            "operator" => return self.change_operator(gate),
            "ack-broken-chain" => return self.acknowledge_broken_chain(),
            "ack-override" => return self.acknowledge_overrides(),
            "deny" => {
                if let (Some(held), true) = (self.find_held(gate), self.check_may_decide()) {
                    let message = wording::request_line(&held, now);
                    self.print_line(&message);
                    self.doing = LineState::Denying(held, None);
                }
            }
            other => {
                let message = format!("Unknown command: {}. Type help.", one_line(other));
                self.print_line(&message);
            }
        }
        Vec::new()
    }

    fn begin_pass(&mut self, word: &str, gate: &str, now: Timestamp) {
        let Some(held) = self.find_held(gate) else {
            return;
        };
        let overrules = care_for_request(&held) == PassCare::Override;
        match (word, overrules) {
            ("pass", true) => {
                let message = format!(
                    "A policy denies {gate}. To overrule the denial, type override {gate}."
                );
                return self.print_line(&message);
            }
            ("override", false) => {
                let message = format!("No policy denies {gate}. Type pass {gate}.");
                return self.print_line(&message);
            }
            (_, _) => {}
        }
        if let Some(refused) = bars(&held, &self.snapshot.operator) {
            return self.print_line(&format!(
                "{gate} cannot pass: {}.",
                one_line(&refused.to_string())
            ));
        }
        if self
            .snapshot
            .load_info
            .hash
            .is_some_and(|hash| hash != held.atlas_hash)
        {
            let message = format!(
                "The Atlas changed after the request: {gate} can only be denied. Type deny {gate}."
            );
            return self.print_line(&message);
        }
        if self.check_may_decide() {
            self.doing = LineState::Passing(Box::new(PendingPass::new(held, &self.snapshot, now)));
        }
    }

    /// Returns true if this console may decide now. Otherwise prints the reason.
    pub(super) fn check_may_decide(&mut self) -> bool {
        let trouble = find_record_trouble(&self.snapshot, self.found.as_ref());
        let trouble = trouble.filter(|trouble| !is_acknowledged(&self.snapshot, trouble));
        let reason = match (self.snapshot.access, trouble) {
            (ConsoleAccess::ReadOnly, _) => Some(READ_ONLY_MESSAGE.to_owned()),
            (ConsoleAccess::Write, Some(trouble @ RecordTrouble::Chain(_))) => Some(format!(
                "Deciding is disabled. {}. Type ack-broken-chain to acknowledge.",
                one_line(trouble.text())
            )),
            (ConsoleAccess::Write, Some(trouble @ RecordTrouble::Store(_))) => Some(format!(
                "Deciding is disabled. {}",
                one_line(trouble.text())
            )),
            (ConsoleAccess::Write, None) => None,
        };
        match reason {
            Some(reason) => {
                self.print_line(&reason);
                false
            }
            None => true,
        }
    }

    pub(super) fn find_held(&mut self, gate: &str) -> Option<Arc<Held>> {
        let held = self.snapshot.held.iter();
        let found = held
            .into_iter()
            .find(|held| held.id.as_str() == gate)
            .cloned();
        if found.is_none() {
            let gate = one_line(gate);
            let message = match gate.as_str() {
                "" => {
                    "Name a request, such as c-1. Type list to show the held requests.".to_owned()
                }
                gate => format!("{gate} is not held. Type list to show the held requests."),
            };
            self.print_line(&message);
        }
        found
    }

    pub(super) fn print_held(&mut self, now: Timestamp) {
        let mut held = self.snapshot.held.clone();
        held.sort_by_key(|held| (std::cmp::Reverse(held.tier()), held.deadline));
        self.print_overrides();
        if let Some(line) = self.store_problem_line() {
            self.print_line(&line);
            if matches!(self.snapshot.store, StoreState::Poisoned { .. }) {
                self.print_line(&format!(
                    "{} held when recording stopped; their agents were denied. The requests are held again after a restart.",
                    counted(held.len(), "request")
                ));
                for held in &held {
                    self.print_line(&wording::request_line(held, now));
                }
                return;
            }
        }
        match held.len() {
            0 => self.print_line("No requests are held."),
            1 => self.print_line("1 request is held."),
            more => self.print_line(&format!("{more} requests are held.")),
        }
        for held in &held {
            self.print_line(&wording::request_line(held, now));
        }
        self.known = held.iter().map(|held| held.id.clone()).collect();
        self.arrived = 0;
    }

    fn print_recent_decisions(&mut self) {
        let decided: Vec<_> = self.snapshot.decided.iter().take(10).cloned().collect();
        if decided.is_empty() {
            self.print_line("No decisions yet.");
        }
        for decided in decided {
            self.print_line(&wording::decision_line(&decided));
        }
    }

    /// Starts a check of the record, or prints the progress of the running one.
    fn start_check(&mut self) -> Vec<LineEffect> {
        if let Some(progress) = &self.checking {
            let message = match (progress.percent(), progress.checked_and_total()) {
                (Some(percent), Some((done, all))) => {
                    format!("Verifying the record: {percent} %, {done} of {all} records.")
                }
                (..) => "Verifying the record.".to_owned(),
            };
            self.print_line(&message);
            return Vec::new();
        }
        self.print_line("Verifying the record. Type verify to show the progress, stop to stop.");
        let progress = VerificationProgress::default();
        self.checking = Some(progress.clone());
        vec![LineEffect::Verify(progress)]
    }

    /// Stops the running check.
    fn stop_check(&mut self) {
        match self.checking.take() {
            Some(progress) => {
                progress.cancel();
                self.print_line("Verification stopped, without a result.");
            }
            None => self.print_line("No verification is running."),
        }
    }
}
