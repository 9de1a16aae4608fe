//! State machine of the line console: the current question, and the input so far.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::pending_pass::{NextInput, PendingPass, pass_decision};
use super::wording;
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::base::text::one_line;
use crate::console::app::record_faults::fault_in_report;
use crate::console::dialog::gate::{PassCare, care_for_request};
use crate::console::screen::queue::find;
use crate::engine::command::{
    Confirmation, DecisionRequest, OperatorAction, OperatorReply, RecordFault, Ruling,
};
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;
use crate::trace::verification::{VerificationProgress, VerificationReport};

mod alarms;
mod commands;
mod operator_commands;
mod question_input;
mod store_status;

/// Effect that the driver carries out.
#[derive(Debug, PartialEq)]
pub(in crate::console) enum LineEffect {
    /// Decides about a held request.
    Decide(Box<DecisionRequest>),
    /// Carries out an operator command that passes no request.
    Operate(Box<OperatorAction>),
    /// Verifies every chain.
    Verify(VerificationProgress),
    /// Quits the console.
    Leave,
}

/// State of the line console.
#[derive(Debug)]
pub(in crate::console) struct LineConsole {
    snapshot: Arc<RuntimeSnapshot>,
    /// Held requests that the operator was told about.
    known: BTreeSet<HeldRequestId>,
    /// Number of requests that arrived while a question was open.
    arrived: usize,
    doing: LineState,
    /// Lines so far of an answer with several lines.
    several: Option<String>,
    /// Time at which the console asks for the deciding word. Input before that time was not meant for it and
    /// does not count.
    arms_at: Option<Timestamp>,
    found: Option<RecordFault>,
    /// Progress of the running check.
    checking: Option<VerificationProgress>,
    /// Current alarms. `unannounced` holds those that are not announced yet.
    alarms: Arc<[String]>,
    unannounced: Vec<String>,
    /// Number of undelivered notices that was last announced.
    announced_undelivered: usize,
    out: String,
}

#[derive(Debug)]
enum LineState {
    Nothing,
    Passing(Box<PendingPass>),
    Denying(Arc<Held>, Option<String>),
    /// A decision is being written to disk.
    Writing(HeldRequestId),
    /// An invalid answer is being written to disk. After that the questions continue.
    Recording(Box<PendingPass>),
}

impl LineConsole {
    pub(in crate::console) fn new(snapshot: Arc<RuntimeSnapshot>, now: Timestamp) -> Self {
        let mut console = Self {
            known: snapshot.held.iter().map(|held| held.id.clone()).collect(),
            snapshot,
            arrived: 0,
            doing: LineState::Nothing,
            several: None,
            arms_at: None,
            found: None,
            checking: None,
            alarms: Arc::default(),
            unannounced: Vec::new(),
            announced_undelivered: 0,
            out: String::new(),
        };
        console.print_line("CRA console in line mode. Type help for the commands.");
        console.print_held(now);
        console.print_prompt(now);
        console
    }

    /// Takes the output since the last call.
    pub(in crate::console) fn take_output(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    fn print_line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn print_prompt(&mut self, now: Timestamp) {
        self.arms_at = None;
        self.several = None;
        match &mut self.doing {
            LineState::Nothing => {
                if self.arrived > 0 {
                    let more = std::mem::take(&mut self.arrived);
                    let message = format!("New requests: {more}. Type list to show them.");
                    self.print_line(&message);
                }
                self.print_alarms();
                self.out.push_str(self.prompt_text());
            }
            LineState::Passing(passing) => {
                if passing.next_input() == NextInput::Listening {
                    let message = passing.next_page();
                    self.out.push_str(&message);
                }
                let message = if passing.next_input() == NextInput::Word {
                    self.arms_at = Some(now.plus(DIALOG_ARMING_TIME));
                    passing.review_text(&self.snapshot.operator)
                } else {
                    passing.prompt(&self.snapshot.operator, now)
                };
                self.out.push_str(&message);
            }
            LineState::Denying(held, None) => {
                let left = wording::time_left_text(held, now);
                let message = format!(
                    "Enter the reason for denying {}. The agent sees it. ({left} left)",
                    held.id
                );
                self.print_line(&message);
            }
            LineState::Denying(held, Some(reason)) => {
                let reason = one_line(reason);
                let message = match reason.as_str() {
                    "" => format!("You are about to deny {} without a reason.", held.id),
                    reason => format!("You are about to deny {}. Reason: {reason}", held.id),
                };
                self.arms_at = Some(now.plus(DIALOG_ARMING_TIME));
                self.print_line(&message);
            }
            LineState::Writing(_) | LineState::Recording(_) => {}
        }
    }

    /// Time of the next output that no input triggers.
    pub(in crate::console) fn next_change(&self) -> Option<Timestamp> {
        self.arms_at
    }

    /// Asks for the deciding word once its time has come.
    pub(in crate::console) fn on_tick(&mut self, now: Timestamp) -> Vec<LineEffect> {
        if self.arms_at.is_some_and(|at| at <= now) {
            self.arms_at = None;
            let message = match &self.doing {
                LineState::Passing(passing) => passing.prompt(&self.snapshot.operator, now),
                LineState::Denying(held, _) => {
                    wording::ask_deciding_word(held, &self.snapshot.operator, "deny")
                }
                LineState::Nothing | LineState::Writing(_) | LineState::Recording(_) => {
                    String::new()
                }
            };
            self.out.push_str(&message);
        }
        Vec::new()
    }

    /// Handles a typed line.
    pub(in crate::console) fn on_line(&mut self, line: &str, now: Timestamp) -> Vec<LineEffect> {
        let line = line.trim_end_matches(['\n', '\r']);
        if self.arms_at.is_some_and(|at| now < at) && line.trim() != "/back" {
            self.print_line(TOO_EARLY_MESSAGE);
            return Vec::new();
        }
        let Some(text) = self.collect_answer(line) else {
            return Vec::new();
        };
        let effects = match &self.doing {
            LineState::Nothing => self.run_command(text.trim(), now),
            LineState::Writing(_) | LineState::Recording(_) => {
                let gate = self
                    .gate_being_written()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                let message = format!("cra is recording {gate}. Wait for the result.");
                self.print_line(&message);
                return Vec::new();
            }
            LineState::Passing(_) | LineState::Denying(..) => self.handle_question_input(&text),
        };
        if self.gate_being_written().is_none() && !effects.contains(&LineEffect::Leave) {
            self.print_prompt(now);
        }
        effects
    }

    /// Collects the lines of an answer. An answer with several lines ends at a line that has only a dot.
    fn collect_answer(&mut self, line: &str) -> Option<String> {
        let asked = matches!(
            self.doing,
            LineState::Passing(_) | LineState::Denying(_, None)
        );
        match &mut self.several {
            None if asked && line.trim() == "<<" => {
                self.several = Some(String::new());
                self.print_line("Type the lines. A line with only a dot ends the answer.");
                None
            }
            None => Some(line.to_owned()),
            Some(_) if line.trim() == "." => self.several.take(),
            Some(text) => {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(line);
                None
            }
        }
    }

    fn handle_denial_input(
        &mut self,
        held: Arc<Held>,
        reason: Option<String>,
        text: &str,
    ) -> Vec<LineEffect> {
        let Some(reason) = reason else {
            let reason = text.trim().to_owned();
            let needed = care_for_request(&held) != PassCare::Direct && reason.is_empty();
            if needed {
                self.print_line("A reason is required.");
            }
            self.doing = LineState::Denying(held, (!needed).then_some(reason));
            return Vec::new();
        };
        if !self.is_word(&held, "deny", text) {
            self.print_line("The request stays held.");
            return self.record_wrong_word(&held, Confirmation::DenyWord, text);
        }
        if !self.check_may_decide() {
            return Vec::new();
        }
        let ruling = Ruling::Deny { reason };
        let operator = self.snapshot.operator.clone();
        self.send_decision(pass_decision(
            &held,
            &operator,
            PassCare::Direct,
            None,
            ruling,
        ))
    }

    fn send_decision(&mut self, decide: DecisionRequest) -> Vec<LineEffect> {
        let message = format!("cra is recording {}.", decide.gate);
        self.print_line(&message);
        self.doing = LineState::Writing(decide.gate.clone());
        vec![LineEffect::Decide(Box::new(decide))]
    }

    /// Handles a newer snapshot. New requests do not interrupt an open question. A change of the request in
    /// question does.
    pub(in crate::console) fn on_snapshot(
        &mut self,
        snapshot: Arc<RuntimeSnapshot>,
        now: Timestamp,
    ) -> Vec<LineEffect> {
        let before = std::mem::replace(&mut self.snapshot, snapshot);
        if before.operator != self.snapshot.operator {
            self.cancel_on_operator_change(now);
        }
        self.announce_store_change(&before, now);
        let held = self.snapshot.held.clone();
        let new: Vec<_> = held
            .iter()
            .filter(|held| !self.known.contains(&held.id))
            .collect();
        self.known = held.iter().map(|held| held.id.clone()).collect();
        let about = match &self.doing {
            LineState::Passing(passing) => Some(Arc::clone(&passing.held)),
            LineState::Denying(held, _) => Some(Arc::clone(held)),
            LineState::Nothing | LineState::Writing(_) | LineState::Recording(_) => None,
        };
        if let Some(about) = about {
            self.arrived += new.len();
            self.cancel_if_changed(&about, now);
            return Vec::new();
        }
        if self.gate_being_written().is_some() {
            self.arrived += new.len();
            return Vec::new();
        }
        if !new.is_empty() {
            // A bell, and a new line after the prompt.
            self.out.push_str("\u{7}\n");
            for held in new {
                let message = format!("New: {}", wording::request_line(held, now));
                self.print_line(&message);
            }
            self.out.push_str(self.prompt_text());
        }
        self.on_notices();
        Vec::new()
    }

    /// Cancels the open question after the operator changed: the question was for the previous operator.
    fn cancel_on_operator_change(&mut self, now: Timestamp) {
        match self.doing {
            LineState::Passing(_) | LineState::Denying(..) => {
                self.doing = LineState::Nothing;
                self.print_line("The operator changed. Your input was discarded.");
                self.print_prompt(now);
            }
            LineState::Nothing | LineState::Writing(_) | LineState::Recording(_) => {}
        }
    }

    /// Cancels the open question if its request has changed or is no longer held.
    fn cancel_if_changed(&mut self, about: &Held, now: Timestamp) {
        let current = self.snapshot.held.iter().find(|held| held.id == about.id);
        let what = match current {
            Some(current)
                if current.request_hash == about.request_hash
                    && current.atlas_hash == about.atlas_hash
                    && current.answered.len() == about.answered.len() =>
            {
                return;
            }
            Some(_) => format!("{} has changed. Your input was discarded.", about.id),
            None => {
                let mut decided = self.snapshot.decided.iter();
                let ended = decided.find(|decided| decided.gate == about.id);
                let how = ended.map_or_else(String::new, |ended| wording::decision_line(ended));
                format!("{} is no longer held. {how}", about.id)
            }
        };
        self.doing = LineState::Nothing;
        self.print_line(&what);
        self.print_prompt(now);
    }

    /// Reports the result of a decision.
    pub(in crate::console) fn on_reply(
        &mut self,
        gate: &HeldRequestId,
        reply: &OperatorReply,
        now: Timestamp,
    ) -> Vec<LineEffect> {
        if matches!(reply, OperatorReply::Acted) {
            // A wrong confirmation was recorded. Its question is already open again.
            return Vec::new();
        }
        if let Some(message) = self.on_invalid_recorded(reply) {
            self.print_line(&one_line(&message));
            self.print_prompt(now);
            return Vec::new();
        }
        let message = match reply {
            OperatorReply::Decided(decided) => {
                format!("Recorded. {}", wording::decision_line(decided))
            }
            OperatorReply::Invalid(invalid) => {
                let problems = invalid.problems.iter();
                let problems: Vec<_> = problems.map(|problem| problem.rules.join("; ")).collect();
                format!(
                    "{gate} is still held. The answers are not valid: {}",
                    problems.join("; ")
                )
            }
            OperatorReply::Approved(_) => format!(
                "Recorded. {gate} has 1 of 2 approvals and is still held: a second operator must approve."
            ),
            OperatorReply::Refused(refused) => format!("{gate} was not decided: {refused}"),
            OperatorReply::Acted => {
                format!("The result for {gate} is unknown. Type list to check.")
            }
        };
        self.print_line(&one_line(&message));
        self.doing = LineState::Nothing;
        self.print_prompt(now);
        Vec::new()
    }

    /// Reports the result of a check.
    pub(in crate::console) fn on_verified(
        &mut self,
        report: &Result<VerificationReport, String>,
    ) -> Vec<LineEffect> {
        self.checking = None;
        self.found = fault_in_report(report);
        let message = match (&self.found, report) {
            (Some(fault), _) => one_line(&fault.what),
            (None, Err(what)) => one_line(what),
            (None, Ok(report)) => {
                let (chains, events) = (report.chains.len(), report.events());
                let what = match self.snapshot.store.problem() {
                    Some(_) => "Verified up to the failure",
                    None => "Record verified",
                };
                format!("{what}: {chains} chains, {events} events.")
            }
        };
        self.out.push('\n');
        if self.snapshot.store.problem().is_some() {
            self.print_line("NOT RECORDING: this check does not cover requests since the failure.");
        }
        self.print_line(&message);
        self.reprint_prompt();
        Vec::new()
    }

    /// Prints the prompt again after other output.
    fn reprint_prompt(&mut self) {
        if matches!(self.doing, LineState::Nothing) {
            self.out.push_str(self.prompt_text());
        }
    }

    /// Returns true if the typed text is the word that decides about the request in its current state.
    fn is_word(&self, held: &Held, verb: &str, typed: &str) -> bool {
        let now = find(&self.snapshot.held, &held.id);
        let held = now.map_or(held, |held| held);
        let typed: Vec<_> = typed.split_whitespace().collect();
        typed.join(" ") == wording::deciding_word(held, &self.snapshot.operator, verb)
    }
}

/// Message for a deciding word that was typed too early.
const TOO_EARLY_MESSAGE: &str = "Ignored: typed too early.";

/// Message when the console is read-only.
const READ_ONLY_MESSAGE: &str = "This console is read-only.";
