//! Extra step before deciding a request that another operator has claimed.
//!
//! Contract: a claim never blocks for ever. The dialog names it, with the focus on going back. If the
//! operator continues, all checks run again, as if the button had just been pressed.

use super::GateDialog;
use super::step::{Step, Verb};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::layer::Handled;

/// Question to an operator who decides in spite of another operator's claim.
#[derive(Debug)]
pub(crate) struct OverClaim {
    /// Operators who claimed, as text.
    pub(crate) by: String,
    /// The decision in progress.
    pub(crate) verb: Verb,
    /// The focused element.
    pub(crate) spot: ClaimSpot,
    /// The step before this question.
    before: Step,
}

/// Focusable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimSpot {
    /// Goes back: the operator with the claim decides.
    Back,
    /// Continues with the decision.
    GoOn,
}

impl GateDialog {
    /// Lists other operators who claimed the requests of this dialog, as text.
    pub(super) fn claimed_by(&self) -> Option<String> {
        let operator = &self.around.operator;
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
    pub(super) fn asks_about_claim(&mut self, verb: Verb) -> bool {
        let claimed = self.claimed_by();
        if claimed.is_none() || claimed == self.over_claim.take() {
            return false;
        }
        let before = std::mem::replace(&mut self.step, Step::Editing);
        self.step = Step::Claimed(Box::new(OverClaim {
            by: claimed.unwrap_or_default(),
            verb,
            spot: ClaimSpot::Back,
            before,
        }));
        true
    }

    /// Handles Enter while the question is open.
    pub(super) fn press_claimed(&mut self, now: Timestamp) -> Handled {
        let Some(over) = self.leave_claimed() else {
            return Handled::quietly();
        };
        if over.spot == ClaimSpot::Back {
            return Handled::quietly();
        }
        self.over_claim = Some(over.by);
        let handled = match (over.verb, &self.step) {
            (Verb::Deny, _) => self.deny_now(now),
            (Verb::Pass, Step::Reviewing(_)) => self.pass_now(now),
            (
                Verb::Pass,
                Step::Editing
                | Step::Denying(_)
                | Step::Claimed(_)
                | Step::Writing(_)
                | Step::Changed(_)
                | Step::Settled(_),
            ) => self.press_pass(now),
        };
        // The confirmation applies to this press only.
        self.over_claim = None;
        handled
    }

    /// Goes back to the step before.
    pub(super) fn leave_claimed(&mut self) -> Option<OverClaim> {
        match std::mem::replace(&mut self.step, Step::Editing) {
            Step::Claimed(mut over) => {
                self.step = std::mem::replace(&mut over.before, Step::Editing);
                Some(*over)
            }
            step @ (Step::Editing
            | Step::Reviewing(_)
            | Step::Denying(_)
            | Step::Writing(_)
            | Step::Changed(_)
            | Step::Settled(_)) => {
                self.step = step;
                None
            }
        }
    }
}

impl OverClaim {
    pub(super) fn step(&mut self) {
        self.spot = match self.spot {
            ClaimSpot::Back => ClaimSpot::GoOn,
            ClaimSpot::GoOn => ClaimSpot::Back,
        };
    }
}
