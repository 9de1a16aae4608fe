//! The open session: the cursor, the folds, the filters, and the pending reads.
//!
//! Contract: only the outline and the sequence numbers of matches grow with the session. The selected event
//! is a sequence number, never an index in a list.

use std::sync::Arc;

use super::ask::{Query, Whole};
use super::detail::Detail;
use super::pages::Pages;
use super::rows::Rows;
use super::scan::Scan;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::console::keymap::Motion;
use crate::runtime::RecordedSession;
use crate::trace::filter::Filter;
use crate::trace::outline::{Entry, Fold, Marks, Outline};
use crate::trace::replay::{Kept, State};

mod reading;

/// Time between two events during playback, in microseconds.
const BEAT_US: i64 = 200_000;

/// State of the open session.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) session: RecordedSession,
    pub(super) pages: Pages,
    pub(super) outline: Outline,
    pub(super) reading: Reading,
    /// Session state after the last event of the outline.
    running: Arc<State>,
    kept: Kept,
    folding: Under,
    /// Sequence number of the selected event.
    pub(super) place: u64,
    /// First visible row. With `visible`, the number of visible rows.
    pub(super) top: u64,
    visible: u64,
    pub(super) follow: Follow,
    pub(super) filter: Option<Scan>,
    pub(super) search: Option<Scan>,
    /// Direction of a match to go to as soon as it is known.
    seeking: Option<Towards>,
    pub(super) play: Play,
    pub(super) stop_on: StopOn,
    whole: Option<Shown>,
    pub(super) detail: Detail,
    pub(super) problem: Option<String>,
}

/// State of reading the outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Idle,
    Asked,
    /// The operator stopped the reading.
    Stopped,
}

/// State of a single pending read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    Idle,
    Way,
}

/// Follow mode: keeps the view at the end while events arrive, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    /// The view stays. With the number of events at the time the cursor moved away from the end.
    Still(u64),
    Tail,
}

/// Playback state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Play {
    Paused,
    /// The next step is due at this time.
    Playing(Timestamp),
}

/// Events at which playback stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopOn {
    CheckpointsAndDenials,
    Denials,
    Nothing,
}

impl StopOn {
    fn marks(self) -> Marks {
        match self {
            Self::CheckpointsAndDenials => Marks::CHECKPOINT | Marks::DENY | Marks::LAPSED,
            Self::Denials => Marks::DENY | Marks::LAPSED,
            Self::Nothing => Marks::NONE,
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::CheckpointsAndDenials => "checkpoint, deny",
            Self::Denials => "deny",
            Self::Nothing => "nothing",
        }
    }

    pub(super) fn next(self) -> Self {
        match self {
            Self::CheckpointsAndDenials => Self::Denials,
            Self::Denials => Self::Nothing,
            Self::Nothing => Self::CheckpointsAndDenials,
        }
    }
}

/// Direction of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Towards {
    On,
    Back,
}

/// The event that is shown in full.
#[derive(Debug)]
struct Shown {
    sequence: u64,
    event: Fetched,
}

/// Result of reading one event.
#[derive(Debug)]
pub(super) enum Fetched {
    /// The read is pending.
    UnderWay,
    /// The record has no such event.
    Gone,
    /// The event is loaded.
    Here(Box<Whole>),
}

impl Opened {
    pub(super) fn new(session: RecordedSession, at: u64) -> Self {
        Self {
            pages: Pages::default(),
            outline: Outline::default(),
            reading: Reading::Idle,
            running: Arc::default(),
            kept: Kept::default(),
            folding: Under::Idle,
            place: at,
            top: 0,
            visible: 1,
            follow: Follow::Still(session.events),
            filter: None,
            search: None,
            seeking: None,
            play: Play::Paused,
            stop_on: StopOn::CheckpointsAndDenials,
            whole: None,
            detail: Detail::default(),
            problem: None,
            session,
        }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.session.session
    }

    pub(super) fn total(&self) -> u64 {
        self.session.events
    }

    /// Takes in the newer state of the session from the record.
    pub(super) fn grew(&mut self, session: &RecordedSession) {
        self.session = session.clone();
    }

    /// Drops all events, so that they are read again.
    pub(super) fn forget(&mut self) {
        self.pages.forget();
        self.whole = None;
    }

    /// Stores the size of the view after painting.
    pub(super) fn on_drawn(&mut self, visible: u64, cells: usize) {
        self.visible = visible.max(1);
        if self.detail.set_cells(cells)
            && let Some(whole) = self.whole.as_ref().and_then(Shown::get)
        {
            self.detail.lay_out(whole);
        }
    }

    /// Returns the rows of the list.
    pub(super) fn rows(&self) -> Rows<'_> {
        match (&self.filter, self.outline.shown()) {
            (Some(scan), _) => Rows::Found(scan),
            (None, Some(shown)) => Rows::Folded {
                shown,
                read: self.outline.len(),
                total: self.total().max(self.outline.len()),
            },
            (None, None) => Rows::All(self.total()),
        }
    }

    pub(super) fn go(&mut self, motion: Motion) {
        let rows = self.rows();
        let row = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let to = motion.from(row(rows.row_of(self.place)), row(rows.len()));
        if let Some(place) = rows.get(to as u64) {
            self.place = place;
        }
        self.play = Play::Paused;
        self.follow = match motion {
            Motion::Last => Follow::Tail,
            Motion::Up | Motion::Down | Motion::First | Motion::PageUp | Motion::PageDown => {
                self.still()
            }
        };
    }

    /// Selects a visible row.
    pub(super) fn choose(&mut self, row: u64) {
        if let Some(place) = self.rows().get(row) {
            self.place = place;
            self.play = Play::Paused;
            self.follow = self.still();
        }
    }

    /// Returns the mode without following. If the view did not follow before, its event count is kept.
    fn still(&self) -> Follow {
        match self.follow {
            Follow::Still(seen) => Follow::Still(seen),
            Follow::Tail => Follow::Still(self.total()),
        }
    }

    /// Goes to an event and unfolds the rows that hide it. Returns false beyond the last event.
    pub(super) fn seek(&mut self, sequence: u64) -> bool {
        if sequence >= self.total() {
            return false;
        }
        self.follow = self.still();
        self.place = sequence;
        self.outline.reveal(sequence);
        if self.filter.as_ref().is_some_and(|scan| !scan.has(sequence)) {
            // An event requested by its number is shown even if the filter hides it.
            self.filter = None;
        }
        true
    }

    pub(super) fn step(&mut self, towards: Towards) {
        self.play = Play::Paused;
        let to = match towards {
            Towards::On => self.place.saturating_add(1),
            Towards::Back => self.place.saturating_sub(1),
        };
        self.seek(to);
    }

    pub(super) fn checkpoint(&mut self, towards: Towards) -> bool {
        let found = match towards {
            Towards::On => self.outline.next_with(self.place, Marks::CHECKPOINT),
            Towards::Back => self.outline.last_with(self.place, Marks::CHECKPOINT),
        };
        found.is_some_and(|sequence| self.seek(sequence))
    }

    /// Folds the row at the cursor, or selects its parent.
    pub(super) fn fold(&mut self, fold: Fold) {
        if self.filter.is_some() {
            return;
        }
        let changed = self.outline.set_folded(self.place, fold);
        if !changed && fold == Fold::Closed {
            let above = self.outline.get(self.place);
            if let Some(parent) = above.and_then(Entry::parent) {
                self.place = parent;
                self.follow = self.still();
            }
        }
    }

    /// Folds a line of the event that is shown in full.
    pub(super) fn fold_detail(&mut self, fold: Fold) {
        if let Some(whole) = self.whole.as_ref().and_then(Shown::get) {
            self.detail.fold(whole, fold);
        }
    }

    /// Folds to the next level: 1, 2, 3, none.
    pub(super) fn fold_level(&mut self) {
        let next = match self.outline.level() {
            None => Some(1),
            Some(level @ 1..=2) => Some(level + 1),
            Some(_) => None,
        };
        self.outline.fold_to(next);
        // The cursor moves up to the visible parent.
        while let Some(entry) = self.outline.get(self.place) {
            match entry.parent().filter(|_| entry.marks().any(Marks::HIDDEN)) {
                Some(parent) => self.place = parent,
                None => break,
            }
        }
    }

    pub(super) fn set_filter(&mut self, text: String, filter: Filter, ticket: u64) {
        let query = self.query(vec![filter]);
        self.filter = Some(Scan::new(text, query, 0, ticket));
        self.search = None;
        self.top = 0;
    }

    pub(super) fn set_search(&mut self, text: String, ticket: u64) {
        let mut filters = vec![Filter::text(&text)];
        if let Some(filter) = &self.filter {
            filters.extend(filter.text.parse::<Filter>());
        }
        let query = self.query(filters);
        self.search = Some(Scan::new(text, query, self.place, ticket));
        self.seeking = Some(Towards::On);
    }

    fn query(&self, filters: Vec<Filter>) -> Query {
        Query {
            agent: self.session.agent.clone(),
            filters,
        }
    }

    /// Goes to the next or previous match, and continues at the other end.
    pub(super) fn next_hit(&mut self, towards: Towards) {
        let Some(search) = &self.search else {
            return;
        };
        let total = self.session.events;
        let found = match towards {
            Towards::On => search.get(search.rank(self.place.saturating_add(1))),
            Towards::Back => {
                let rank = search.rank(self.place);
                rank.checked_sub(1).and_then(|at| search.get(at))
            }
        };
        // The scan may still find a match ahead. Only after it is done the search continues at the other end.
        if found.is_none() && search.is_looking(total) {
            self.seeking = Some(towards);
            return;
        }
        let around = match towards {
            Towards::On => search.get(0),
            Towards::Back => search.len().checked_sub(1).and_then(|at| search.get(at)),
        };
        if let Some(sequence) = found.or(around) {
            self.seek(sequence);
        }
    }

    /// Goes to the awaited match, once it is known.
    fn seek_hit(&mut self) {
        let (Some(search), Some(towards)) = (&self.search, self.seeking) else {
            return;
        };
        let here = towards == Towards::On && search.has(self.place);
        let looking = search.is_looking(self.session.events);
        if here || (!looking && search.len() == 0) {
            self.seeking = None;
            return;
        }
        self.seeking = None;
        self.next_hit(towards);
    }

    /// Stops running searches and reads. Returns true if there were any.
    pub(super) fn stop(&mut self) -> bool {
        let total = self.total();
        let scans = [&mut self.filter, &mut self.search];
        let stopped = scans.into_iter().flatten().any(|scan| scan.stop(total));
        if stopped {
            self.seeking = None;
            return true;
        }
        if self.is_reading() {
            self.reading = Reading::Stopped;
            return true;
        }
        false
    }

    /// Resumes stopped searches and reads.
    pub(super) fn go_on(&mut self) {
        if self.reading == Reading::Stopped {
            self.reading = Reading::Idle;
        }
        for scan in [&mut self.filter, &mut self.search].into_iter().flatten() {
            scan.go_on();
        }
    }

    /// Returns true if the outline is being read.
    pub(super) fn is_reading(&self) -> bool {
        let most = self.total().min(Outline::MOST);
        self.reading != Reading::Stopped && self.outline.len() < most
    }

    pub(super) fn toggle_play(&mut self, now: Timestamp) {
        self.play = match self.play {
            Play::Paused => Play::Playing(beat(now)),
            Play::Playing(_) => Play::Paused,
        };
    }

    /// Takes the next playback step if it is due.
    pub(super) fn on_tick(&mut self, now: Timestamp) {
        let Play::Playing(due) = self.play else {
            return;
        };
        if now < due {
            return;
        }
        let next = self.place.saturating_add(1);
        let seen = self.outline.get(next).map(Entry::marks);
        let stops = seen.is_none_or(|marks| marks.any(self.stop_on.marks()));
        let moved = self.seek(next);
        self.play = if stops || !moved {
            Play::Paused
        } else {
            Play::Playing(beat(now))
        };
    }

    /// Returns the session state at the cursor, if it is known.
    pub(super) fn state(&self) -> Option<&State> {
        self.kept.at(self.place.saturating_add(1))
    }

    /// Returns the full selected event, or the state of reading it.
    pub(super) fn event(&self) -> &Fetched {
        let shown = self.whole.as_ref();
        let shown = shown.filter(|shown| shown.sequence == self.place);
        shown.map_or(&Fetched::UnderWay, |shown| &shown.event)
    }

    /// Returns the full selected event, if it is loaded.
    pub(super) fn whole(&self) -> Option<&Whole> {
        match self.event() {
            Fetched::Here(whole) => Some(whole),
            Fetched::UnderWay | Fetched::Gone => None,
        }
    }
}

impl Shown {
    fn get(&self) -> Option<&Whole> {
        match &self.event {
            Fetched::Here(whole) => Some(whole),
            Fetched::UnderWay | Fetched::Gone => None,
        }
    }
}

fn beat(now: Timestamp) -> Timestamp {
    Timestamp::from_micros(now.micros().saturating_add(BEAT_US))
}
