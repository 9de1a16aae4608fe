//! Handling of the runtime's reply to a decision.

use std::sync::Arc;

use super::changed_request::ATLAS_CHANGED;
use super::form::FormFocus;
use super::step::DecisionStep;
use super::{DecisionKind, GateDialog};
use crate::base::id::HeldRequestId;
use crate::console::request::ConsoleRequest;
use crate::engine::command::{DecisionRefusal, InvalidAnswers, OperatorReply};

/// Effect of a reply on the dialog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReplyEffect {
    /// The dialog stays open.
    KeepOpen,
    /// The dialog stays open and requests the records on disk.
    Send(ConsoleRequest),
    /// The decision was accepted: the dialog closes.
    Close,
}

impl GateDialog {
    /// Handles the runtime's reply. Only now the result of the decision is known.
    pub(crate) fn on_reply(&mut self, gate: &HeldRequestId, reply: OperatorReply) -> ReplyEffect {
        let DecisionStep::Writing(verb) = self.step else {
            return ReplyEffect::KeepOpen;
        };
        if matches!(reply, OperatorReply::Acted) {
            // A wrong confirmation is on record; the decision that followed has its own answer.
            return ReplyEffect::KeepOpen;
        }
        if self.is_batch() {
            return self.on_batch_reply(verb, gate, reply);
        }
        match reply {
            OperatorReply::Decided(_) | OperatorReply::Approved(_) => return ReplyEffect::Close,
            OperatorReply::Invalid(invalid) => self.on_invalid(invalid),
            OperatorReply::Refused(refused) => return self.on_refused(verb, refused),
            OperatorReply::Acted => {
                self.step = DecisionStep::Editing;
                self.notice = Some("unexpected reply; check the request again".to_owned());
            }
        }
        ReplyEffect::KeepOpen
    }

    fn on_invalid(&mut self, invalid: InvalidAnswers) {
        if let Some(newer) = self.newer.take() {
            self.replace_request(newer);
            return;
        }
        let attempts = invalid.held.invalid_attempts;
        self.held = Arc::from(invalid.held);
        self.problems = invalid.problems;
        self.step = DecisionStep::Editing;
        self.notice = Some(format!("answers rejected (attempt {attempts}); still held"));
        let first = self.form.fields.iter().position(|field| {
            let mut problems = self.problems.iter();
            problems.any(|problem| {
                problem.gate == field.gate && problem.question == field.question.id()
            })
        });
        if let Some(at) = first {
            self.form.focus = FormFocus::Field(at);
        }
    }

    fn on_refused(&mut self, verb: DecisionKind, refused: DecisionRefusal) -> ReplyEffect {
        let words = refused.to_string();
        let mut after = ReplyEffect::KeepOpen;
        match refused {
            DecisionRefusal::AlreadySettled(decided) => {
                self.step = DecisionStep::Settled(Some(Arc::from(decided)));
                return ReplyEffect::KeepOpen;
            }
            DecisionRefusal::NotHeld(_) => {
                self.step = DecisionStep::Settled(None);
                return ReplyEffect::KeepOpen;
            }
            DecisionRefusal::RequestChanged => self.stale = Some("request changed".to_owned()),
            DecisionRefusal::AtlasChanged => self.stale = Some(ATLAS_CHANGED.to_owned()),
            DecisionRefusal::ReasonMissing
            | DecisionRefusal::SameOperator(_)
            | DecisionRefusal::Requester(_)
            | DecisionRefusal::ClaimChanged(_)
            | DecisionRefusal::NothingToAcknowledge
            | DecisionRefusal::BadName(_) => {}
            DecisionRefusal::Unavailable(_) => {
                after = ReplyEffect::Send(self.request_read_back(words.clone()));
            }
        }
        if self.failed_recording.is_none() {
            self.notice = Some(words);
        }
        self.step = match verb {
            DecisionKind::Pass => DecisionStep::Editing,
            DecisionKind::Deny => DecisionStep::Denying(super::DenyFocus::Reason),
        };
        if let Some(newer) = self.newer.take() {
            self.replace_request(newer);
        }
        after
    }
}
