//! Reasons that block a decision, as text. A button without a blocking reason is enabled. The text
//! shown next to a button is also the check when it is pressed.

use super::GateDialog;
use super::step::{DecisionStep, DialogEntry, PassCare, RecordTrouble};
use crate::base::clock::Timestamp;
use crate::engine::approval::bars;
use crate::runtime::snapshot::ConsoleAccess;

/// Reason that blocks every decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecisionBlocker<'a> {
    /// This console is read-only.
    ReadOnly,
    /// The record or the store has a fault.
    Trouble(&'a RecordTrouble),
    /// The time is up: the request is denied.
    TimeUp,
    /// The arming time runs: a key cannot be meant for this dialog yet.
    Arming,
}

impl DecisionBlocker<'_> {
    /// Text shown next to the button.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            // In this dialog a colon is typed as text.
            Self::Trouble(RecordTrouble::Chain(_)) => "chain broken; Esc, then :ack-broken-chain",
            Self::Trouble(RecordTrouble::Store(_)) => "cannot write records",
            Self::TimeUp => "time is up",
            Self::Arming => "just opened, wait a moment",
        }
    }
}

impl GateDialog {
    /// Returns true if this pass is the first of two approvals.
    pub(super) fn is_first_approval(&self) -> bool {
        !self.held.approvers().is_one() && self.held.first_approval().is_none()
    }

    /// Returns the reason that blocks every decision, if there is one.
    pub(super) fn decision_blocker(&self, now: Timestamp) -> Option<DecisionBlocker<'_>> {
        if self.decision_context.access == ConsoleAccess::ReadOnly {
            return Some(DecisionBlocker::ReadOnly);
        }
        if let Some(trouble) = &self.decision_context.trouble {
            return Some(DecisionBlocker::Trouble(trouble));
        }
        if self.held.deadline <= now {
            return Some(DecisionBlocker::TimeUp);
        }
        (!self.is_ready(now)).then_some(DecisionBlocker::Arming)
    }

    /// Text of the reason that blocks every decision, if there is one.
    pub(super) fn blocker_of_all_decisions(&self, now: Timestamp) -> Option<String> {
        self.decision_blocker(now).map(|bar| bar.words().to_owned())
    }

    /// Text of the reason that blocks a pass, if there is one.
    pub(super) fn pass_blocker(&self, now: Timestamp) -> Option<String> {
        self.send_blocker(now, || self.form.missing_text())
    }

    /// Text of the reason that blocks sending even invalid answers, if there is one.
    pub(super) fn invalid_answers_blocker(&self, now: Timestamp) -> Option<String> {
        self.send_blocker(now, || None)
    }

    /// Text of the reason that blocks sending, if there is one. `lacks` returns the problem of the
    /// answers.
    fn send_blocker(
        &self,
        now: Timestamp,
        lacks: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        // An override needs its own command, never the key that opens every other request.
        let unasked = || {
            let asked = self.entry == DialogEntry::Override || !self.overrules();
            (!asked).then(|| format!("use :override {}", self.held.id))
        };
        let unseen = || {
            let reason = if self.context.is_laid_out() {
                "request not fully seen (PgDn)"
            } else if self.context.is_shown() {
                "request is still loading"
            } else {
                "request not seen yet (F6)"
            };
            (!self.context.is_seen()).then(|| reason.to_owned())
        };
        // The engine knows which operators can never approve this request. Its text is shown
        // unchanged.
        let person =
            || bars(&self.held, &self.decision_context.operator).map(|reason| reason.to_string());
        self.blocker_of_all_decisions(now)
            .or_else(person)
            .or_else(unasked)
            .or_else(|| self.stale.clone())
            .or_else(lacks)
            .or_else(unseen)
    }

    /// Text of the reason that blocks the last button of the review, if there is one.
    pub(super) fn final_pass_blocker(&self, now: Timestamp) -> Option<String> {
        let DecisionStep::Reviewing(review) = &self.step else {
            return Some("review first".to_owned());
        };
        let unseen = || {
            // Rows that were jumped over lie above.
            let hint = if review.sheet.is_at_end() {
                "scroll up first (PgUp)"
            } else {
                "scroll down first (PgDn)"
            };
            (!review.sheet.is_fully_seen()).then(|| hint.to_owned())
        };
        let lacks = || {
            review
                .missing_proof_text(&self.held, &self.form)
                .map(str::to_owned)
        };
        self.pass_blocker(now).or_else(unseen).or_else(lacks)
    }

    /// Returns the reason why the request cannot be denied, if there is one.
    pub(super) fn deny_blocker(&self, now: Timestamp) -> Option<String> {
        let needed = self.required_care() != PassCare::Direct && self.form.reason_text().is_empty();
        let missing = || needed.then(|| "enter a reason".to_owned());
        self.blocker_of_all_decisions(now).or_else(missing)
    }
}
