//! One more step before a request is decided that another operator looks after.
//!
//! Contract: a claim holds nobody up for ever. It is said, the focus is on going back, and whoever goes
//! on is checked again as if they had just pressed the button before.

use super::GateDialog;
use super::step::{Step, Verb};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::layer::Handled;

/// What is asked of who decides in spite of a claim.
#[derive(Debug)]
pub(crate) struct OverClaim {
    /// Whose claims it is about, in words.
    pub(crate) by: String,
    /// What is decided.
    pub(crate) verb: Verb,
    /// Where the focus is.
    pub(crate) spot: ClaimSpot,
    /// The step before.
    before: Step,
}

/// A place the focus can be at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimSpot {
    /// Back: the one who claims it decides.
    Back,
    /// On.
    GoOn,
}

impl GateDialog {
    /// Who else looks after what is decided here, in words.
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

    /// Asks first where another operator looks after it; whether it did.
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

    /// Enter while it is asked.
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
        // It was meant for this press alone.
        self.over_claim = None;
        handled
    }

    /// Back to the step before.
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
