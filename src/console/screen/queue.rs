//! Screen of the queue: requests that wait for an answer.
//!
//! Contract: the selection is an identifier, never an index, and no row moves under it. An arrival that would
//! push the selected row waits below the list until the operator merges it. Painting touches only the visible
//! rows, however many requests are held, and a new snapshot costs only what changed.
//!
//! This screen decides nothing: Enter opens the dialog, and only the dialog decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::engine::held::{Gate, GateOrigin, Held, HeldSubject, TierSource};
use crate::runtime::snapshot::ConsoleAccess;

use self::filter::QueueFilter;
use self::held_index::HeldIndex;
use self::latest_events::LatestEvents;
use self::prompt::QueuePrompt;
use self::sort_order::SortOrder;
use super::super::keymap::{KeyAction, Motion};

mod commands;
mod filter;
mod held_index;
mod keys;
mod latest_events;
mod marks;
mod prompt;
mod recent_decisions;
mod request_summary;
mod sort_order;
mod updates;
mod view;

pub(crate) use keys::{DEFINITION, QueueKey};
pub(crate) use marks::MarkedRequests;
pub(crate) use view::highlighted;

use prompt::{ListDirection, QueuePromptPurpose};
use view::{QueueTarget, place_of};

/// View state of the queue.
#[derive(Debug, Default)]
pub(crate) struct QueueScreen {
    /// All held requests. INVARIANT: each is in exactly one of `rows`, `waiting` and `hidden`.
    index: HeldIndex,
    /// Requests in the list, in list order.
    rows: Vec<Arc<Held>>,
    /// Arrivals that wait below the list, the riskiest first.
    waiting: Vec<Arc<Held>>,
    /// Requests that the filter hides.
    hidden: Vec<Arc<Held>>,
    /// Number of critical requests in `hidden`.
    hidden_critical: usize,
    /// Selected request. INVARIANT: it is the row at `at`, and `None` only while `rows` is empty.
    selected: Option<HeldRequestId>,
    at: usize,
    /// First visible row. With `height`, the number of visible rows, as last painted.
    top: usize,
    height: usize,
    sort: SortOrder,
    filter: QueueFilter,
    /// Search that `n` and `N` repeat.
    search: QueueFilter,
    /// Line being typed.
    prompt: Option<QueuePrompt>,
    /// Requests with an unfinished answer.
    drafts: BTreeSet<HeldRequestId>,
    /// Requests whose content changed since an operator last opened them.
    changed: BTreeSet<HeldRequestId>,
    /// Requests marked for a batch.
    marked: BTreeSet<HeldRequestId>,
    latest_events: LatestEvents,
}

/// Progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// Without an answer so far.
    Open,
    /// With an unfinished answer.
    Draft,
    /// Rejected answers, counted.
    Attempt(u32),
    /// The content of the request changed.
    Changed,
    /// The first of two operators approved the request.
    Approved,
    /// An operator claimed the request.
    Claimed,
}

impl RequestState {
    /// Returns the state as one word.
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

impl QueueScreen {
    /// Moves the selection.
    pub(crate) fn move_selection(&mut self, motion: Motion) {
        self.select_row(motion.target_row(self.at, self.rows.len()));
    }

    /// Selects a row by its index.
    pub(crate) fn select_row(&mut self, at: usize) {
        if let Some(held) = self.rows.get(at) {
            self.selected = Some(held.id.clone());
            self.at = at;
            self.top = self.top_for(self.height);
        }
    }

    /// Selects the request with the next later deadline. After the last one it selects the first.
    pub(crate) fn select_next_due(&mut self) {
        let key = |held: &Held| (held.deadline, held.id.clone());
        let places = || self.rows.iter().map(|held| key(held)).enumerate();
        let current = self.selected().map(|held| key(held));
        let later = places().filter(|(_, key)| Some(key) > current.as_ref());
        let next = later.min_by(|a, b| a.1.cmp(&b.1));
        // Without a later deadline, the earliest one is next.
        let first = places().min_by(|a, b| a.1.cmp(&b.1));
        if let Some((at, _)) = next.or(first) {
            self.select_row(at);
        }
    }

    /// Switches to the next sort order. The selected request stays selected.
    pub(crate) fn cycle_sort(&mut self) {
        self.sort = self.sort.next();
        self.sort_rows();
    }

    /// Returns the selected request.
    pub(crate) fn selected(&self) -> Option<&Arc<Held>> {
        self.rows.get(self.at)
    }

    /// Returns the held request with this id.
    pub(crate) fn get(&self, id: &HeldRequestId) -> Option<&Arc<Held>> {
        self.index.get(id)
    }

    /// Returns the earliest deadline of all held requests.
    pub(crate) fn earliest_deadline(&self) -> Option<Timestamp> {
        self.index.earliest_deadline()
    }

    /// Replaces the set of requests with an unfinished answer.
    pub(crate) fn set_drafts(&mut self, drafts: BTreeSet<HeldRequestId>) {
        self.drafts = drafts;
    }

    /// Clears the changed flag: the operator sees the request in its current state.
    pub(crate) fn clear_changed(&mut self, id: &HeldRequestId) {
        self.changed.remove(id);
    }

    /// Stores the number of visible rows after painting.
    fn set_height(&mut self, height: usize) {
        self.height = height;
        self.top = self.top_for(height);
    }

    /// Returns true if the action has something to act on.
    pub(crate) fn can(&self, action: KeyAction, access: ConsoleAccess) -> bool {
        let writes = matches!(
            action,
            KeyAction::Deny | KeyAction::Queue(QueueKey::Mark | QueueKey::Claim | QueueKey::Batch)
        );
        if writes && access == ConsoleAccess::ReadOnly {
            return false;
        }
        if action == KeyAction::Queue(QueueKey::Mark) {
            return self.can_mark();
        }
        let needs_row = matches!(
            action,
            KeyAction::Open
                | KeyAction::Deny
                | KeyAction::Explain
                | KeyAction::Queue(
                    QueueKey::Mark | QueueKey::Claim | QueueKey::InTrace | QueueKey::Copy
                )
        );
        let needs_arrival = action == KeyAction::Merge;
        let needs_mark = action == KeyAction::Queue(QueueKey::Batch);
        (!needs_row || self.selected.is_some())
            && (!needs_arrival || self.has_waiting())
            && (!needs_mark || !self.marked.is_empty())
    }

    /// Returns true if arrivals wait below the list.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the number of arrivals that wait below the list.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    fn state(&self, held: &Held) -> RequestState {
        if self.changed.contains(&held.id) {
            RequestState::Changed
        } else if held.first_approval().is_some() {
            RequestState::Approved
        } else if held.claim.is_some() {
            RequestState::Claimed
        } else if held.invalid_attempts > 0 {
            RequestState::Attempt(held.invalid_attempts)
        } else if self.drafts.contains(&held.id) {
            RequestState::Draft
        } else {
            RequestState::Open
        }
    }

    /// Returns the first visible row for `height` rows, so that the selected row is visible.
    fn top_for(&self, height: usize) -> usize {
        // Lines stay empty only if there are fewer rows than lines.
        let last = self.rows.len().saturating_sub(height);
        let lowest = (self.at + 1).saturating_sub(height.max(1));
        self.top.min(self.at).min(last).max(lowest)
    }

    /// Finds the selected request again after rows moved, and keeps it on its screen line.
    fn restore_selection(&mut self) {
        let line = self.at.saturating_sub(self.top);
        let selected = self.selected.as_ref();
        let at = selected.and_then(|id| self.rows.iter().position(|held| held.id == *id));
        let last = self.rows.len().saturating_sub(1);
        self.at = at.unwrap_or_else(|| self.at.min(last));
        self.selected = self.rows.get(self.at).map(|held| held.id.clone());
        self.top = self.at.saturating_sub(line);
        self.top = self.top_for(self.height);
    }

    fn sort_rows(&mut self) {
        let sort = self.sort;
        self.rows.sort_by(|a, b| sort.compare(a, b));
        self.restore_selection();
    }
}

/// Finds a held request by its id.
pub(crate) fn find<'a>(held: &'a [Arc<Held>], id: &HeldRequestId) -> Option<&'a Arc<Held>> {
    held.iter().find(|item| item.id == *id)
}

/// Returns true if passing the request overrides a denial.
pub(crate) fn overrules(held: &Held) -> bool {
    let overrules = |gate: &Gate| match gate.origin {
        GateOrigin::Override { .. } => true,
        GateOrigin::Checkpoint { .. } | GateOrigin::Approval { .. } => false,
    };
    held.gates.iter().any(overrules)
}

/// Returns true if the risk tier was detected from the text of the request instead of declared.
pub(crate) fn has_detected_tier(held: &Held) -> bool {
    match &held.subject {
        HeldSubject::SessionStart | HeldSubject::Moment(_) => false,
        HeldSubject::Action(call) => match call.tier_source {
            TierSource::Detected => true,
            TierSource::Declared => false,
        },
    }
}

/// Returns the risk as the lists show it. `~` marks a detected tier.
pub(crate) fn risk_text(held: &Held) -> String {
    let word = match held.tier() {
        RiskTier::Low => "low",
        RiskTier::Medium => "med",
        RiskTier::High => "HIGH",
        RiskTier::Critical => "CRIT!",
    };
    let mark = if has_detected_tier(held) { "~" } else { "" };
    format!("{word}{mark}")
}
