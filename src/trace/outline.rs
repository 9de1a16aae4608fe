//! Compact outline of a session: a few bytes per event for its parent and its marks.
//!
//! A view of a session with a million events cannot keep them all, but needs more than the events on
//! screen: the parent of each event, the duration of what it started, the position of gates. An
//! [`Outline`] keeps an [`OutlineEntry`] of 24 bytes per event, and 4 more bytes per row while anything is
//! folded. It is built window by window, in the order of the record, so a parent always comes before
//! its children.
//!
//! Rows stay in the order of the record. The depth of a row shows its place in the tree.

use std::collections::HashMap;

use super::details::Details;
use super::event::{Event, canonical_type};
use super::spans::{MAX_DEPTH, is_stop, span_key};

mod marks;
mod outcome_counts;
#[cfg(test)]
mod tests;

pub use marks::EventMarks;
pub use outcome_counts::OutcomeCounts;

/// Entries per block. Each block also keeps the union of its marks, so that long ranges are searched
/// quickly.
const BLOCK: usize = 64;

/// Size of each of the two span caches. Children come soon after their parents; a span that is still in
/// use stays in the cache.
const MAX_REMEMBERED: usize = 1 << 16;

/// Most steps up a branch: deeper trees are drawn at [`MAX_DEPTH`] anyway.
const MAX_STEPS: usize = 64;

/// Most consecutive missing numbers that are kept as entries at a time.
const MAX_GAP: u64 = 1 << 20;

/// Marker for "no event".
const NO_EVENT: u32 = u32::MAX;

/// Facts about one event that an outline needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineEvent {
    sequence: u64,
    span: u128,
    parent: Option<u128>,
    time_us: i64,
    kind: u16,
    marks: EventMarks,
}

/// Range of events to add to an outline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutlineWindow {
    seeds: Vec<OutlineEvent>,
    kinds: Vec<String>,
    /// Sequence at which the next window begins.
    pub next: u64,
}

impl OutlineWindow {
    /// Creates the window of these events, which were requested up to `next`.
    #[must_use]
    pub fn of(events: &[Event], next: u64) -> Self {
        let mut window = Self {
            next,
            ..Self::default()
        };
        for event in events {
            let parent = event.parent_span_id.as_ref();
            let seed = OutlineEvent {
                sequence: event.sequence,
                span: span_key(event.span_id.as_str()),
                parent: parent.map(|parent| span_key(parent.as_str())),
                time_us: event.timestamp.micros(),
                kind: intern(&mut window.kinds, canonical_type(&event.event_type)),
                marks: EventMarks::from_event(event),
            };
            window.seeds.push(seed);
        }
        window
    }
}

/// Outline data of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineEntry {
    /// Time of the event in microseconds.
    pub time_us: i64,
    parent: u32,
    last: u32,
    kind: u16,
    marks: EventMarks,
    /// Depth in the span tree.
    pub depth: u8,
}

impl OutlineEntry {
    /// Marks of the event.
    #[must_use]
    pub fn marks(&self) -> EventMarks {
        self.marks
    }

    /// Parent event.
    #[must_use]
    pub fn parent(&self) -> Option<u64> {
        (self.parent != NO_EVENT).then_some(u64::from(self.parent))
    }

    /// Last descendant event; the event itself if it has none.
    #[must_use]
    pub fn last_descendant(&self) -> u64 {
        u64::from(self.last)
    }
}

/// Outline of a session, as far as it was read.
#[derive(Debug, Default)]
pub struct Outline {
    entries: Vec<OutlineEntry>,
    /// Union of the marks of each [`BLOCK`] entries.
    blocks: Vec<EventMarks>,
    kinds: Vec<String>,
    openers: SpanStarts,
    tally: OutcomeCounts,
    /// Visible rows; `None` while nothing is folded.
    visible_rows: Option<Vec<u32>>,
    /// Depth from which new events are folded.
    fold_level: Option<u8>,
}

impl Outline {
    /// Most events that an outline can hold.
    pub const MAX_EVENTS: u64 = NO_EVENT as u64;

    /// Adds the next window. Events at `end` or beyond are left for later; a missing number becomes an
    /// entry marked as missing.
    pub fn extend(&mut self, window: &OutlineWindow, end: u64) {
        let kinds: Vec<u16> = window
            .kinds
            .iter()
            .map(|kind| intern(&mut self.kinds, kind))
            .collect();
        for seed in &window.seeds {
            if seed.sequence >= end.min(u64::from(NO_EVENT)) {
                break;
            }
            self.fill_gap(seed.sequence);
            if seed.sequence == self.len() {
                let kind = usize::from(seed.kind);
                self.push(seed, kinds.get(kind).copied().unwrap_or(u16::MAX));
            }
        }
        self.fill_gap(window.next.min(end).min(u64::from(NO_EVENT)));
    }

    /// Marks every absent number before `until` as missing. Of a gap that would fill the memory only the
    /// beginning is kept.
    fn fill_gap(&mut self, until: u64) {
        let until = until.min(self.len().saturating_add(MAX_GAP));
        while self.len() < until {
            let time_us = self.entries.last().map_or(0, |entry| entry.time_us);
            self.push_entry(OutlineEntry {
                time_us,
                parent: NO_EVENT,
                last: self.next_index(),
                kind: u16::MAX,
                marks: EventMarks::MISSING,
                depth: 0,
            });
        }
    }

    fn push(&mut self, seed: &OutlineEvent, kind: u16) {
        let place = self.next_index();
        let parent = self.openers.parent(seed, place);
        let above = parent.and_then(|at| self.entries.get(at as usize)).copied();
        let depth = above.map_or(0, |above| above.depth.saturating_add(1).min(MAX_DEPTH_U8));
        let mut marks = seed.marks;
        if above.is_some_and(|above| above.marks.has_any(EventMarks::FOLDED | EventMarks::HIDDEN)) {
            marks |= EventMarks::HIDDEN;
        }
        if self.fold_level.is_some_and(|level| depth >= level) {
            marks |= EventMarks::FOLDED;
        }
        self.push_entry(OutlineEntry {
            time_us: seed.time_us,
            parent: parent.unwrap_or(NO_EVENT),
            last: place,
            kind,
            marks,
            depth,
        });
        self.extend_ancestors(parent, place);
    }

    fn push_entry(&mut self, entry: OutlineEntry) {
        if self.entries.len().is_multiple_of(BLOCK) {
            self.blocks.push(EventMarks::NONE);
        }
        if let Some(block) = self.blocks.last_mut() {
            *block |= entry.marks;
        }
        let before = self
            .entries
            .last()
            .map_or(EventMarks::NONE, |entry| entry.marks);
        self.tally.add(before, entry.marks);
        if let (Some(shown), false) = (
            &mut self.visible_rows,
            entry.marks.has_any(EventMarks::HIDDEN),
        ) {
            shown.push(u32::try_from(self.entries.len()).unwrap_or(NO_EVENT));
        }
        self.entries.push(entry);
    }

    /// Extends all ancestors of an event so that they last until it.
    fn extend_ancestors(&mut self, parent: Option<u32>, place: u32) {
        let mut above = parent;
        for _ in 0..MAX_STEPS {
            let Some(entry) = above.and_then(|at| self.entries.get_mut(at as usize)) else {
                return;
            };
            entry.last = place;
            entry.marks |= EventMarks::PARENT;
            above = (entry.parent != NO_EVENT).then_some(entry.parent);
        }
    }

    fn next_index(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(NO_EVENT)
    }

    /// Number of events in the outline.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// True if nothing was read yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Counts of the most important outcomes.
    #[must_use]
    pub fn tally(&self) -> OutcomeCounts {
        self.tally
    }

    /// Outline data of an event.
    #[must_use]
    pub fn get(&self, sequence: u64) -> Option<&OutlineEntry> {
        self.entries.get(usize::try_from(sequence).ok()?)
    }

    /// Type of an event.
    #[must_use]
    pub fn kind(&self, entry: &OutlineEntry) -> Option<&str> {
        self.kinds.get(usize::from(entry.kind)).map(String::as_str)
    }

    /// Duration of an event: until its last descendant.
    #[must_use]
    pub fn duration_us(&self, entry: &OutlineEntry) -> i64 {
        let last = self.get(entry.last_descendant());
        last.map_or(0, |last| last.time_us.saturating_sub(entry.time_us).max(0))
    }

    /// Visible rows, if anything is folded.
    #[must_use]
    pub fn visible_rows(&self) -> Option<&[u32]> {
        self.visible_rows.as_deref()
    }

    /// Depth from which everything is folded.
    #[must_use]
    pub fn fold_level(&self) -> Option<u8> {
        self.fold_level
    }

    /// Folds or unfolds the children of an event. Returns true if anything changed.
    pub fn set_folded(&mut self, sequence: u64, fold: FoldState) -> bool {
        let place = usize::try_from(sequence).unwrap_or(usize::MAX);
        let Some(entry) = self.entries.get_mut(place) else {
            return false;
        };
        let folded = entry.marks.has_any(EventMarks::FOLDED);
        if !entry.marks.has_any(EventMarks::PARENT) || folded == (fold == FoldState::Closed) {
            return false;
        }
        entry.marks ^= EventMarks::FOLDED;
        self.update_hidden();
        true
    }

    /// Folds everything from a depth on, or unfolds everything.
    pub fn fold_to(&mut self, level: Option<u8>) {
        self.fold_level = level;
        for entry in &mut self.entries {
            entry.marks = entry.marks.without(EventMarks::FOLDED);
            if level.is_some_and(|level| entry.depth >= level) {
                entry.marks |= EventMarks::FOLDED;
            }
        }
        self.update_hidden();
    }

    /// Unfolds the ancestors of an event, so that it is visible.
    pub fn reveal(&mut self, sequence: u64) {
        let mut above = self.get(sequence).and_then(OutlineEntry::parent);
        let hidden = self
            .get(sequence)
            .is_some_and(|entry| entry.marks.has_any(EventMarks::HIDDEN));
        if !hidden {
            return;
        }
        for _ in 0..MAX_STEPS {
            let place = above.and_then(|at| usize::try_from(at).ok());
            let Some(entry) = place.and_then(|at| self.entries.get_mut(at)) else {
                break;
            };
            entry.marks = entry.marks.without(EventMarks::FOLDED);
            above = entry.parent();
        }
        self.update_hidden();
    }

    /// Recomputes the hidden rows: one pass, some milliseconds for a million events.
    fn update_hidden(&mut self) {
        let mut shown = Vec::with_capacity(self.entries.len());
        for place in 0..self.entries.len() {
            let parent = self
                .entries
                .get(place)
                .map_or(NO_EVENT, |entry| entry.parent);
            let above = self.entries.get(parent as usize).map(|above| above.marks);
            let hidden =
                above.is_some_and(|above| above.has_any(EventMarks::FOLDED | EventMarks::HIDDEN));
            let Some(entry) = self.entries.get_mut(place) else {
                break;
            };
            entry.marks = entry.marks.without(EventMarks::HIDDEN);
            if hidden {
                entry.marks |= EventMarks::HIDDEN;
            } else {
                shown.push(u32::try_from(place).unwrap_or(NO_EVENT));
            }
        }
        self.visible_rows = (shown.len() < self.entries.len()).then_some(shown);
    }

    /// Next event after `sequence` that has one of these marks.
    #[must_use]
    pub fn next_with(&self, sequence: u64, marks: EventMarks) -> Option<u64> {
        let mut at = usize::try_from(sequence).ok()?.saturating_add(1);
        while at < self.entries.len() {
            if at.is_multiple_of(BLOCK) && !self.block(at).has_any(marks) {
                at += BLOCK;
                continue;
            }
            if self.entries.get(at)?.marks.has_any(marks) {
                return Some(at as u64);
            }
            at += 1;
        }
        None
    }

    /// Last event before `sequence` that has one of these marks.
    #[must_use]
    pub fn last_with(&self, sequence: u64, marks: EventMarks) -> Option<u64> {
        let mut at = usize::try_from(sequence).ok()?.min(self.entries.len());
        while at > 0 {
            if at.is_multiple_of(BLOCK) && !self.block(at - 1).has_any(marks) {
                at -= BLOCK;
                continue;
            }
            at -= 1;
            if self.entries.get(at)?.marks.has_any(marks) {
                return Some(at as u64);
            }
        }
        None
    }

    /// Union of the marks in a range: exact for a short range, by whole blocks for a long one.
    #[must_use]
    pub fn marks_in(&self, from: u64, until: u64) -> EventMarks {
        let place = |at: u64| {
            usize::try_from(at)
                .unwrap_or(usize::MAX)
                .min(self.entries.len())
        };
        let (from, until) = (place(from), place(until));
        let all = |marks: EventMarks, more: EventMarks| marks | more;
        if until.saturating_sub(from) <= BLOCK {
            let entries = self.entries.get(from..until).unwrap_or_default();
            return entries
                .iter()
                .map(|entry| entry.marks)
                .fold(EventMarks::NONE, all);
        }
        let blocks = self.blocks.get(from / BLOCK..until.div_ceil(BLOCK));
        blocks
            .unwrap_or_default()
            .iter()
            .copied()
            .fold(EventMarks::NONE, all)
    }

    fn block(&self, place: usize) -> EventMarks {
        self.blocks.get(place / BLOCK).copied().unwrap_or_default()
    }
}

/// Fold state of an event's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldState {
    /// Children are visible.
    Open,
    /// Children are hidden.
    Closed,
}

const MAX_DEPTH_U8: u8 = {
    assert!(MAX_DEPTH <= 255);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the assertion above bounds the value"
    )]
    {
        MAX_DEPTH as u8
    }
};

/// First event of each span that is still in use.
#[derive(Debug, Default)]
struct SpanStarts {
    new: HashMap<u128, u32>,
    old: HashMap<u128, u32>,
    root: Option<(u128, u32)>,
}

impl SpanStarts {
    /// Parent of an event: the first event of its own span, else of the parent span, else of the session.
    fn parent(&mut self, seed: &OutlineEvent, place: u32) -> Option<u32> {
        if let Some(opener) = self.find(seed.span) {
            return Some(opener);
        }
        let (_, root) = *self.root.get_or_insert((seed.span, place));
        let above = seed.parent.and_then(|parent| self.find(parent));
        if self.new.len() >= MAX_REMEMBERED {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(seed.span, place);
        above.or((root != place).then_some(root))
    }

    fn find(&mut self, span: u128) -> Option<u32> {
        if let Some((_, place)) = self.root.filter(|(root, _)| *root == span) {
            return Some(place);
        }
        if let Some(place) = self.new.get(&span) {
            return Some(*place);
        }
        let place = self.old.remove(&span)?;
        // The span is in use, so it stays in the cache.
        self.new.insert(span, place);
        Some(place)
    }
}

/// Number of a name; a new name gets the next number.
fn intern(names: &mut Vec<String>, name: &str) -> u16 {
    if let Some(at) = names.iter().position(|known| known == name) {
        return u16::try_from(at).unwrap_or(u16::MAX);
    }
    // A record with more types than this was not written by this program; further types have no name.
    if names.len() >= 1024 {
        return u16::MAX;
    }
    names.push(name.to_owned());
    u16::try_from(names.len() - 1).unwrap_or(u16::MAX)
}
