//! Input while a question is open, and the handling of wrong answers.

use super::super::pending_pass::{InputResult, NextInput, PendingPass, pass_decision};
use super::{LineConsole, LineEffect, LineState};
use crate::base::id::HeldRequestId;
use crate::console::dialog::gate::care_for_request;
use crate::engine::command::{Confirmation, OperatorReply, Ruling};
use crate::engine::held::Held;

impl LineConsole {
    /// Handles input while a question is open.
    pub(super) fn handle_question_input(&mut self, text: &str) -> Vec<LineEffect> {
        match text.trim() {
            "/back" => {
                self.print_line("The request stays held.");
                self.doing = LineState::Nothing;
                return Vec::new();
            }
            "/again" => return Vec::new(),
            _ => {}
        }
        match std::mem::replace(&mut self.doing, LineState::Nothing) {
            LineState::Passing(passing) => self.handle_pass_input(passing, text),
            LineState::Denying(held, reason) => self.handle_denial_input(held, reason, text),
            doing @ (LineState::Nothing | LineState::Writing(_) | LineState::Recording(_)) => {
                self.doing = doing;
                Vec::new()
            }
        }
    }

    fn handle_pass_input(&mut self, mut passing: Box<PendingPass>, text: &str) -> Vec<LineEffect> {
        let wanted = passing.next_input();
        let taken = match wanted {
            NextInput::Listening => InputResult::Yes,
            NextInput::Answer => passing.submit_answer(text),
            NextInput::Proof(proof) => passing.submit_proof(proof, text),
            NextInput::Word if !self.is_word(&passing.held, "pass", text) => {
                self.print_line("The request stays held.");
                return self.record_wrong_word(&passing.held, Confirmation::PassWord, text);
            }
            NextInput::Word => {
                if !self.check_may_decide() {
                    return Vec::new();
                }
                let decide = passing.pass_decision(&self.snapshot.operator);
                return self.send_decision(decide);
            }
        };
        let (message, ruling) = match taken {
            InputResult::Yes => (String::new(), None),
            InputResult::With(message) | InputResult::No(message) => (message, None),
            InputResult::Breaks(message, answers) => (message, Some(Ruling::Invalid { answers })),
            InputResult::Wrong(message, wanted, typed) => (
                message,
                Some(Ruling::WrongConfirmation {
                    wanted,
                    typed_text: typed,
                }),
            ),
        };
        self.out.push_str(&message);
        let ruling = ruling.filter(|_| self.check_may_decide());
        let waits = matches!(ruling, Some(Ruling::Invalid { .. }));
        let decide = ruling.map(|ruling| {
            let (held, operator) = (&passing.held, &self.snapshot.operator);
            pass_decision(held, operator, care_for_request(held), None, ruling)
        });
        self.doing = if waits {
            LineState::Recording(passing)
        } else {
            LineState::Passing(passing)
        };
        decide
            .into_iter()
            .map(|decide| LineEffect::Decide(Box::new(decide)))
            .collect()
    }

    /// Has a last word recorded that was typed and is wrong.
    pub(super) fn record_wrong_word(
        &mut self,
        held: &Held,
        wanted: Confirmation,
        typed: &str,
    ) -> Vec<LineEffect> {
        if typed.trim().is_empty() || !self.check_may_decide() {
            return Vec::new();
        }
        let typed = typed.to_owned();
        let ruling = Ruling::WrongConfirmation {
            wanted,
            typed_text: typed,
        };
        let decide = pass_decision(
            held,
            &self.snapshot.operator,
            care_for_request(held),
            None,
            ruling,
        );
        vec![LineEffect::Decide(Box::new(decide))]
    }

    /// The request whose record is on its way to the disk.
    pub(super) fn gate_being_written(&self) -> Option<&HeldRequestId> {
        match &self.doing {
            LineState::Writing(gate) => Some(gate),
            LineState::Recording(passing) => Some(&passing.held.id),
            LineState::Nothing | LineState::Passing(_) | LineState::Denying(..) => None,
        }
    }

    /// Continues with the questions after an invalid answer was recorded, unless it refused the request.
    pub(super) fn on_invalid_recorded(&mut self, reply: &OperatorReply) -> Option<String> {
        let OperatorReply::Invalid(invalid) = reply else {
            return None;
        };
        match std::mem::replace(&mut self.doing, LineState::Nothing) {
            LineState::Recording(mut passing) => {
                passing.update_held((*invalid.held).clone());
                let attempts = invalid.held.invalid_attempts;
                self.doing = LineState::Passing(passing);
                Some(format!(
                    "Recorded as invalid answer {attempts}. The request is still held."
                ))
            }
            doing @ (LineState::Nothing
            | LineState::Passing(_)
            | LineState::Denying(..)
            | LineState::Writing(_)) => {
                self.doing = doing;
                None
            }
        }
    }
}
