//! Input while a question is open, and the handling of wrong answers.

use super::super::passing::{Passing, Taken, Wanted, decide};
use super::{Deed, Doing, Talk};
use crate::base::id::GateId;
use crate::console::dialog::gate::care;
use crate::engine::command::{Confirmation, Reply, Ruling};
use crate::engine::held::Held;

impl Talk {
    /// Handles input while a question is open.
    pub(super) fn reply(&mut self, text: &str) -> Vec<Deed> {
        match text.trim() {
            "/back" => {
                self.say("It stays held.");
                self.doing = Doing::Nothing;
                return Vec::new();
            }
            "/again" => return Vec::new(),
            _ => {}
        }
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Passing(passing) => self.reply_passing(passing, text),
            Doing::Denying(held, reason) => self.reply_denying(held, reason, text),
            doing @ (Doing::Nothing | Doing::Writing(_) | Doing::Recording(_)) => {
                self.doing = doing;
                Vec::new()
            }
        }
    }

    fn reply_passing(&mut self, mut passing: Box<Passing>, text: &str) -> Vec<Deed> {
        let wanted = passing.wanted();
        let taken = match wanted {
            Wanted::Listening => Taken::Yes,
            Wanted::Answer => passing.answer(text),
            Wanted::Proof(proof) => passing.prove(proof, text),
            Wanted::Word if !self.is_word(&passing.held, "pass", text) => {
                self.say("It stays held.");
                return self.record_wrong_word(&passing.held, Confirmation::PassWord, text);
            }
            Wanted::Word => {
                if !self.may_decide() {
                    return Vec::new();
                }
                let decide = passing.decide(&self.snapshot.operator);
                return self.write(decide);
            }
        };
        let (told, ruling) = match taken {
            Taken::Yes => (String::new(), None),
            Taken::With(told) | Taken::No(told) => (told, None),
            Taken::Breaks(told, answers) => (told, Some(Ruling::Invalid { answers })),
            Taken::Wrong(told, wanted, typed) => {
                (told, Some(Ruling::Unconfirmed { wanted, typed }))
            }
        };
        self.out.push_str(&told);
        let ruling = ruling.filter(|_| self.may_decide());
        let waits = matches!(ruling, Some(Ruling::Invalid { .. }));
        let decide = ruling.map(|ruling| {
            let (held, operator) = (&passing.held, &self.snapshot.operator);
            decide(held, operator, care(held), None, ruling)
        });
        self.doing = if waits {
            Doing::Recording(passing)
        } else {
            Doing::Passing(passing)
        };
        decide
            .into_iter()
            .map(|decide| Deed::Decide(Box::new(decide)))
            .collect()
    }

    /// Has a last word recorded that was typed and is wrong.
    pub(super) fn record_wrong_word(
        &mut self,
        held: &Held,
        wanted: Confirmation,
        typed: &str,
    ) -> Vec<Deed> {
        if typed.trim().is_empty() || !self.may_decide() {
            return Vec::new();
        }
        let typed = typed.to_owned();
        let ruling = Ruling::Unconfirmed { wanted, typed };
        let decide = decide(held, &self.snapshot.operator, care(held), None, ruling);
        vec![Deed::Decide(Box::new(decide))]
    }

    /// The request whose record is on its way to the disk.
    pub(super) fn written(&self) -> Option<&GateId> {
        match &self.doing {
            Doing::Writing(gate) => Some(gate),
            Doing::Recording(passing) => Some(&passing.held.id),
            Doing::Nothing | Doing::Passing(_) | Doing::Denying(..) => None,
        }
    }

    /// Continues with the questions after an invalid answer was recorded, unless it refused the request.
    pub(super) fn on_recorded(&mut self, reply: &Reply) -> Option<String> {
        let Reply::Invalid(invalid) = reply else {
            return None;
        };
        match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Recording(mut passing) => {
                passing.go_on((*invalid.held).clone());
                let attempts = invalid.held.invalid_attempts;
                self.doing = Doing::Passing(passing);
                Some(format!(
                    "Recorded as invalid answer {attempts}. It is still held."
                ))
            }
            doing @ (Doing::Nothing
            | Doing::Passing(_)
            | Doing::Denying(..)
            | Doing::Writing(_)) => {
                self.doing = doing;
                None
            }
        }
    }
}
