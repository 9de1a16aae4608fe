//! Handling of the runtime's reply to a decision.

use std::sync::Arc;

use super::changed::ATLAS_CHANGED;
use super::form::Spot;
use super::step::Step;
use super::{GateDialog, Verb};
use crate::base::id::GateId;
use crate::console::request::Request;
use crate::engine::command::{InvalidAnswers, Refused, Reply};

/// Effect of a reply on the dialog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum After {
    /// The dialog stays open.
    Stays,
    /// The dialog stays open and requests the records on disk.
    Asks(Request),
    /// The decision was accepted: the dialog closes.
    Closes,
}

impl GateDialog {
    /// Handles the runtime's reply. Only now the result of the decision is known.
    pub(crate) fn on_reply(&mut self, gate: &GateId, reply: Reply) -> After {
        let Step::Writing(verb) = self.step else {
            return After::Stays;
        };
        if matches!(reply, Reply::Acted) {
            // A wrong confirmation is on record; the decision that followed has its own answer.
            return After::Stays;
        }
        if self.is_batch() {
            return self.on_reply_of(verb, gate, reply);
        }
        match reply {
            Reply::Decided(_) | Reply::Approved(_) => return After::Closes,
            Reply::Invalid(invalid) => self.on_invalid(invalid),
            Reply::Refused(refused) => return self.on_refused(verb, refused),
            Reply::Started(_)
            | Reply::Ended(_)
            | Reply::Accepted(_)
            | Reply::Allowed(_)
            | Reply::Denied(_)
            | Reply::Asked(_)
            | Reply::Resolved(_)
            | Reply::Consulted(_)
            | Reply::Completed(_)
            | Reply::Acted
            | Reply::Noted(_) => {
                self.step = Step::Editing;
                self.notice = Some("the answer was not one to a decision; look again".to_owned());
            }
        }
        After::Stays
    }

    fn on_invalid(&mut self, invalid: InvalidAnswers) {
        if let Some(newer) = self.newer.take() {
            self.change(newer);
            return;
        }
        let attempts = invalid.held.invalid_attempts;
        self.held = Arc::from(invalid.held);
        self.problems = invalid.problems;
        self.step = Step::Editing;
        self.notice = Some(format!(
            "answers not taken (attempt {attempts}); still held"
        ));
        let first = self.form.fields.iter().position(|field| {
            let mut problems = self.problems.iter();
            problems.any(|problem| {
                problem.gate == field.gate && problem.question == field.question.id()
            })
        });
        if let Some(at) = first {
            self.form.focus = Spot::Field(at);
        }
    }

    fn on_refused(&mut self, verb: Verb, refused: Refused) -> After {
        let words = refused.to_string();
        let mut after = After::Stays;
        match refused {
            Refused::AlreadySettled(decided) => {
                self.step = Step::Settled(Some(Arc::from(decided)));
                return After::Stays;
            }
            Refused::NotHeld(_) => {
                self.step = Step::Settled(None);
                return After::Stays;
            }
            Refused::RequestChanged => self.stale = Some("request changed".to_owned()),
            Refused::AtlasChanged => self.stale = Some(ATLAS_CHANGED.to_owned()),
            Refused::ReasonMissing
            | Refused::SameOperator(_)
            | Refused::Requester(_)
            | Refused::ClaimChanged(_)
            | Refused::NothingToAcknowledge
            | Refused::BadName(_) => {}
            Refused::Unavailable(_) => after = After::Asks(self.read_back(words.clone())),
        }
        if self.refusal.is_none() {
            self.notice = Some(words);
        }
        self.step = match verb {
            Verb::Pass => Step::Editing,
            Verb::Deny => Step::Denying(super::DenySpot::Reason),
        };
        if let Some(newer) = self.newer.take() {
            self.change(newer);
        }
        after
    }
}
