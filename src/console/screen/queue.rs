//! The queue: what waits for an answer.
//!
//! Contract: the selection is an identifier, never a place, and no row moves under it. An arrival
//! that would push the selected row waits below the list until the operator merges it. However many
//! requests are held, painting looks only at the rows on screen, and a new picture costs what changed.
//!
//! Nothing is decided here: Enter opens the dialog, and only the dialog decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::engine::held::{Gate, Held, Origin, Subject, TierSource};
use crate::runtime::snapshot::Access;

use self::filter::Filter;
use self::glance::Glance;
use self::narrow::Prompt;
use self::order::Sort;
use self::roll::Roll;
use super::super::keymap::{Action, Motion, QueueKey};

mod arrive;
mod decided;
mod detail;
mod filter;
mod glance;
mod marks;
mod narrow;
mod order;
mod roll;
mod view;

pub(crate) use narrow::{Purpose, Way};
pub(crate) use view::{Place, draw, highlighted, place_of};

/// The view state of the queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Everything that is held. INVARIANT: each one is in exactly one of `rows`, `waiting` and `hidden`.
    roll: Roll,
    /// What is in the list, in its order.
    rows: Vec<Arc<Held>>,
    /// What arrived and waits below the list, the riskiest first.
    waiting: Vec<Arc<Held>>,
    /// What the filter leaves out.
    hidden: Vec<Arc<Held>>,
    /// How many of these are critical.
    hidden_critical: usize,
    /// The chosen row. INVARIANT: the one at `at`, and absent only when there are no rows.
    selected: Option<GateId>,
    at: usize,
    /// The first row on screen, and how many fit, when it was last painted.
    top: usize,
    height: usize,
    sort: Sort,
    filter: Filter,
    /// What `n` and `N` look for.
    search: Filter,
    /// What is being typed.
    prompt: Option<Prompt>,
    /// Requests with an answer begun.
    drafts: BTreeSet<GateId>,
    /// Requests that became others since they were looked at.
    changed: BTreeSet<GateId>,
    /// Requests marked for a batch.
    marked: BTreeSet<GateId>,
    glance: Glance,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody answered.
    Open,
    /// An answer was begun.
    Draft,
    /// So many answers were not taken.
    Attempt(u32),
    /// It is another request than it was.
    Changed,
    /// The first of two operators approved it.
    Approved,
    /// Somebody looks after it.
    Claimed,
}

impl State {
    /// It, in a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Draft => "draft",
            Self::Attempt(_) => "attempt",
            Self::Changed => "changed",
            Self::Approved => "approved",
            Self::Claimed => "claimed",
        }
    }
}

impl Queue {
    /// Moves the selection.
    pub(crate) fn go(&mut self, motion: Motion) {
        self.choose(motion.from(self.at, self.rows.len()));
    }

    /// Chooses a row by its place.
    pub(crate) fn choose(&mut self, at: usize) {
        if let Some(held) = self.rows.get(at) {
            self.selected = Some(held.id.clone());
            self.at = at;
            self.top = self.top_for(self.height);
        }
    }

    /// Chooses the row that is due next after the chosen one, and from the last one the first.
    pub(crate) fn next_due(&mut self) {
        let key = |held: &Held| (held.deadline, held.id.clone());
        let places = || self.rows.iter().map(|held| key(held)).enumerate();
        let current = self.selected().map(|held| key(held));
        let later = places().filter(|(_, key)| Some(key) > current.as_ref());
        let next = later.min_by(|a, b| a.1.cmp(&b.1));
        // From anywhere else the first thing wanted is what is due first.
        let first = places().min_by(|a, b| a.1.cmp(&b.1));
        if let Some((at, _)) = next.or(first) {
            self.choose(at);
        }
    }

    /// Sorts by something else. The chosen request stays chosen.
    pub(crate) fn sort_next(&mut self) {
        self.sort = self.sort.next();
        self.put_in_order();
    }

    /// The chosen request.
    pub(crate) fn selected(&self) -> Option<&Arc<Held>> {
        self.rows.get(self.at)
    }

    /// The held request of that name.
    pub(crate) fn get(&self, id: &GateId) -> Option<&Arc<Held>> {
        self.roll.get(id)
    }

    /// The nearest deadline of all that is held.
    pub(crate) fn earliest(&self) -> Option<Timestamp> {
        self.roll.earliest()
    }

    /// The requests with an answer begun.
    pub(crate) fn set_drafts(&mut self, drafts: BTreeSet<GateId>) {
        self.drafts = drafts;
    }

    /// Somebody looks at a request as it is now.
    pub(crate) fn looked_at(&mut self, id: &GateId) {
        self.changed.remove(id);
    }

    /// It was painted with so many rows.
    pub(crate) fn on_drawn(&mut self, height: usize) {
        self.height = height;
        self.top = self.top_for(height);
    }

    /// Whether an action has anything to act on.
    pub(crate) fn can(&self, action: Action, access: Access) -> bool {
        let writes = matches!(
            action,
            Action::Deny | Action::Queue(QueueKey::Mark | QueueKey::Claim | QueueKey::Batch)
        );
        if writes && access == Access::ReadOnly {
            return false;
        }
        if action == Action::Queue(QueueKey::Mark) {
            return self.can_mark();
        }
        let needs_row = matches!(
            action,
            Action::Open
                | Action::Deny
                | Action::Explain
                | Action::Queue(
                    QueueKey::Mark | QueueKey::Claim | QueueKey::InTrace | QueueKey::Copy
                )
        );
        let needs_arrival = action == Action::Merge;
        let needs_mark = action == Action::Queue(QueueKey::Batch);
        (!needs_row || self.selected.is_some())
            && (!needs_arrival || self.has_waiting())
            && (!needs_mark || !self.marked.is_empty())
    }

    /// Whether arrivals wait below the list.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many arrivals wait below the list.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn state(&self, held: &Held) -> State {
        if self.changed.contains(&held.id) {
            State::Changed
        } else if held.first_approval().is_some() {
            State::Approved
        } else if held.claim.is_some() {
            State::Claimed
        } else if held.invalid_attempts > 0 {
            State::Attempt(held.invalid_attempts)
        } else if self.drafts.contains(&held.id) {
            State::Draft
        } else {
            State::Open
        }
    }

    /// The first row on screen where `height` rows fit: the chosen one is among them.
    fn top_for(&self, height: usize) -> usize {
        // No line stays empty while there are rows.
        let last = self.rows.len().saturating_sub(height);
        let lowest = (self.at + 1).saturating_sub(height.max(1));
        self.top.min(self.at).min(last).max(lowest)
    }

    /// Finds the chosen request again after rows moved, and keeps it on its line of the screen.
    fn find_selected(&mut self) {
        let line = self.at.saturating_sub(self.top);
        let selected = self.selected.as_ref();
        let at = selected.and_then(|id| self.rows.iter().position(|held| held.id == *id));
        let last = self.rows.len().saturating_sub(1);
        self.at = at.unwrap_or_else(|| self.at.min(last));
        self.selected = self.rows.get(self.at).map(|held| held.id.clone());
        self.top = self.at.saturating_sub(line);
        self.top = self.top_for(self.height);
    }

    fn put_in_order(&mut self) {
        let sort = self.sort;
        self.rows.sort_by(|a, b| sort.compare(a, b));
        self.find_selected();
    }
}

/// The held request of that name, in a list.
pub(crate) fn find<'a>(held: &'a [Arc<Held>], id: &GateId) -> Option<&'a Arc<Held>> {
    held.iter().find(|item| item.id == *id)
}

/// Whether passing it overrules a denial.
pub(crate) fn overrules(held: &Held) -> bool {
    let overrules = |gate: &Gate| match gate.origin {
        Origin::Override { .. } => true,
        Origin::Checkpoint { .. } | Origin::Approval { .. } => false,
    };
    held.gates.iter().any(overrules)
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
