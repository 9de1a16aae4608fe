//! The queue: what waits for an answer.
//!
//! Contract: the selection is an identifier, never a place, and no row moves under it. An arrival
//! that would push the selected row waits below the list until the operator merges it.
//!
//! Nothing is decided here: Enter opens the dialog, and only the dialog decides.

use std::sync::Arc;

use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::engine::held::{Held, Subject, TierSource};

use super::super::keymap::{Action, Motion};

mod detail;
mod view;

pub(crate) use view::{Marks, draw, highlighted};

/// The view state of the queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// What is in the list, in its order.
    order: Vec<GateId>,
    /// What arrived and waits below the list.
    waiting: Vec<GateId>,
    /// The chosen row. INVARIANT: in `order`, and absent only when `order` is empty.
    selected: Option<GateId>,
}

impl Queue {
    /// Takes in what is held now.
    pub(crate) fn sync(&mut self, held: &[Arc<Held>]) {
        let is_held = |id: &GateId| held.iter().any(|item| item.id == *id);
        let place = self.place();
        self.order.retain(is_held);
        self.waiting.retain(is_held);
        if !self.selected.as_ref().is_some_and(is_held) {
            // The neighbour that took its place, or the last one.
            let last = self.order.len().saturating_sub(1);
            self.selected = self.order.get(place.min(last)).cloned();
        }
        if self.order.is_empty() {
            self.waiting.clear();
        }
        let mut arrivals: Vec<&Arc<Held>> = held
            .iter()
            .filter(|item| !self.order.contains(&item.id) && !self.waiting.contains(&item.id))
            .collect();
        arrivals.sort_by_key(|item| rank(item));
        for arrival in arrivals {
            self.admit(arrival, held);
        }
    }

    fn admit(&mut self, arrival: &Held, held: &[Arc<Held>]) {
        let at = self
            .order
            .iter()
            .position(|id| find(held, id).is_some_and(|item| rank(item) > rank(arrival)))
            .unwrap_or(self.order.len());
        let selected = self.selected.as_ref();
        let below = selected.is_none_or(|id| self.order.iter().position(|o| o == id) < Some(at));
        if below {
            self.order.insert(at, arrival.id.clone());
            self.selected.get_or_insert_with(|| arrival.id.clone());
        } else {
            self.waiting.push(arrival.id.clone());
        }
    }

    /// Moves the selection.
    pub(crate) fn go(&mut self, motion: Motion) {
        let target = motion.from(self.place(), self.order.len());
        self.selected = self.order.get(target).cloned();
    }

    /// Puts the arrivals into their places.
    pub(crate) fn merge(&mut self, held: &[Arc<Held>]) {
        self.order.append(&mut self.waiting);
        self.order
            .sort_by_key(|id| find(held, id).map(|item| rank(item)));
    }

    /// The chosen request.
    pub(crate) fn selected<'a>(&self, held: &'a [Arc<Held>]) -> Option<&'a Arc<Held>> {
        find(held, self.selected.as_ref()?)
    }

    /// Whether an action has anything to act on.
    pub(crate) fn can(&self, action: Action) -> bool {
        let needs_row = matches!(action, Action::Open | Action::Deny | Action::Explain);
        let needs_arrival = action == Action::Merge;
        (!needs_row || self.selected.is_some()) && (!needs_arrival || self.has_waiting())
    }

    /// Whether arrivals wait below the list.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many arrivals wait below the list.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn place(&self) -> usize {
        let selected = self.selected.as_ref();
        selected
            .and_then(|id| self.order.iter().position(|o| o == id))
            .unwrap_or(0)
    }
}

/// What comes first: risk, then the nearest deadline, then who asked first.
fn rank(held: &Held) -> (std::cmp::Reverse<RiskTier>, Timestamp, Timestamp, GateId) {
    let tier = std::cmp::Reverse(held.tier());
    (tier, held.deadline, held.opened_at, held.id.clone())
}

/// The held request of that name.
pub(crate) fn find<'a>(held: &'a [Arc<Held>], id: &GateId) -> Option<&'a Arc<Held>> {
    held.iter().find(|item| item.id == *id)
}

/// Whether a tier was read from the words of the request instead of declared.
pub(crate) fn is_detected(held: &Held) -> bool {
    match &held.subject {
        Subject::SessionStart | Subject::Moment(_) => false,
        Subject::Action(call) => match call.tier_source {
            TierSource::Detected => true,
            TierSource::Declared => false,
        },
    }
}

/// The risk as the lists show it; `~` marks a detected tier.
pub(crate) fn risk_word(held: &Held) -> String {
    let word = match held.tier() {
        RiskTier::Low => "low",
        RiskTier::Medium => "med",
        RiskTier::High => "HIGH",
        RiskTier::Critical => "CRIT!",
    };
    let mark = if is_detected(held) { "~" } else { "" };
    format!("{word}{mark}")
}
