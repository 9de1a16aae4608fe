//! Extra step before deciding a request that another operator has claimed.
//!
//! Contract: a claim never blocks for ever. The dialog names it, with the focus on going back. If the
//! operator continues, all checks run again, as if the button had just been pressed.

use super::GateDialog;
use super::step::{DecisionKind, DecisionStep};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::dialog::KeyResult;

/// Question to an operator who decides in spite of another operator's claim.
#[derive(Debug)]
pub(crate) struct ClaimQuestion {
    /// Operators who claimed, as text.
    pub(crate) by: String,
    /// The decision in progress.
    pub(crate) verb: DecisionKind,
    /// The focused element.
    pub(crate) focus: ClaimFocus,
    /// The step before this question.
    before: DecisionStep,
}

/// Focusable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimFocus {
    /// Goes back: the operator with the claim decides.
    Back,
    /// Continues with the decision.
    Continue,
}

impl GateDialog {
    /// Lists other operators who claimed the requests of this dialog, as text.
    pub(super) fn claimed_by(&self) -> Option<String> {
        let operator = &self.decision_context.operator;
        if !self.is_batch() {
            return self.held.claimed_by_other(operator).map(one_line);
        }
        let claims = self.members().iter().filter_map(|held| {
            let by = held.claimed_by_other(operator)?;
            Some(format!("{} ({})", one_line(by), held.id))
        });
        let claims: Vec<_> = claims.collect();
        (!claims.is_empty()).then(|| claims.join(", "))
    }

    /// Opens the question if another operator has a claim. Returns true if it did.
    pub(super) fn ask_about_claim(&mut self, verb: DecisionKind) -> bool {
        let claimed = self.claimed_by();
        if claimed.is_none() || claimed == self.ignored_claims.take() {
            return false;
        }
        let before = std::mem::replace(&mut self.step, DecisionStep::Editing);
        self.step = DecisionStep::Claimed(Box::new(ClaimQuestion {
            by: claimed.unwrap_or_default(),
            verb,
            focus: ClaimFocus::Back,
            before,
        }));
        true
    }

    /// Handles Enter while the question is open.
    pub(super) fn press_claimed(&mut self, now: Timestamp) -> KeyResult {
        let Some(over) = self.leave_claimed() else {
            return KeyResult::quietly();
        };
        if over.focus == ClaimFocus::Back {
            return KeyResult::quietly();
        }
        self.ignored_claims = Some(over.by);
        let handled = match (over.verb, &self.step) {
            (DecisionKind::Deny, _) => self.deny_now(now),
            (DecisionKind::Pass, DecisionStep::Reviewing(_)) => self.pass_now(now),
            (
                DecisionKind::Pass,
                DecisionStep::Editing
                | DecisionStep::Denying(_)
                | DecisionStep::Claimed(_)
                | DecisionStep::Writing(_)
                | DecisionStep::Changed(_)
                | DecisionStep::Settled(_),
            ) => self.press_pass(now),
        };
        // The confirmation applies to this press only.
        self.ignored_claims = None;
        handled
    }

    /// Goes back to the step before.
    pub(super) fn leave_claimed(&mut self) -> Option<ClaimQuestion> {
        match std::mem::replace(&mut self.step, DecisionStep::Editing) {
            DecisionStep::Claimed(mut over) => {
                self.step = std::mem::replace(&mut over.before, DecisionStep::Editing);
                Some(*over)
            }
            step @ (DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_)
            | DecisionStep::Settled(_)) => {
                self.step = step;
                None
            }
        }
    }
}

impl ClaimQuestion {
    pub(super) fn move_focus_by_one(&mut self) {
        self.focus = match self.focus {
            ClaimFocus::Back => ClaimFocus::Continue,
            ClaimFocus::Continue => ClaimFocus::Back,
        };
    }
}
