//! The open session: the cursor, the folds, the filters, and the pending reads.
//!
//! Contract: only the outline and the sequence numbers of matches grow with the session. The selected event
//! is a sequence number, never an index in a list.

use std::sync::Arc;

use super::event_condition::{EventCondition, parse_conditions};
use super::event_detail::{EventDetail, EventForm};
use super::pages::EventPages;
use super::reads::{FullEvent, TraceQuery};
use super::rows::EventRows;
use super::scan::SessionScan;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::console::keymap::Motion;
use crate::runtime::RecordedSession;
use crate::trace::outline::{EventMarks, FoldState, Outline, OutlineEntry};
use crate::trace::replay::{ReplayState, StateCache};

mod session_reads;

/// Time between two events during playback, in microseconds.
const PLAYBACK_STEP_US: i64 = 200_000;

/// State of the open session.
#[derive(Debug)]
pub(super) struct OpenSession {
    pub(super) session: RecordedSession,
    pub(super) pages: EventPages,
    pub(super) outline: Outline,
    pub(super) reading: OutlineReading,
    /// Session state after the last event of the outline.
    running: Arc<ReplayState>,
    kept: StateCache,
    folding: PendingRead,
    /// Sequence number of the selected event.
    pub(super) place: u64,
    /// First visible row. With `visible`, the number of visible rows.
    pub(super) top: u64,
    visible: u64,
    pub(super) follow: FollowMode,
    pub(super) filter: Option<SessionScan>,
    pub(super) search: Option<SessionScan>,
    /// Direction of a match to go to as soon as it is known.
    seeking: Option<EventDirection>,
    pub(super) play: Playback,
    pub(super) stop_on: PlaybackStop,
    full_event: Option<ShownEvent>,
    pub(super) detail: EventDetail,
    pub(super) problem: Option<String>,
}

/// State of reading the outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutlineReading {
    Idle,
    Asked,
    /// The operator stopped the reading.
    Stopped,
}

/// State of a single pending read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingRead {
    Idle,
    Way,
}

/// Follow mode: keeps the view at the end while events arrive, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FollowMode {
    /// The view stays. With the number of events at the time the cursor moved away from the end.
    Still(u64),
    Tail,
}

/// Playback state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Playback {
    Paused,
    /// The next step is due at this time.
    Playing(Timestamp),
}

/// Events at which playback stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaybackStop {
    CheckpointsAndDenials,
    Denials,
    Nothing,
}

impl PlaybackStop {
    fn marks(self) -> EventMarks {
        match self {
            Self::CheckpointsAndDenials => {
                EventMarks::CHECKPOINT | EventMarks::DENY | EventMarks::LAPSED
            }
            Self::Denials => EventMarks::DENY | EventMarks::LAPSED,
            Self::Nothing => EventMarks::NONE,
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
pub(super) enum EventDirection {
    On,
    Back,
}

/// The event that is shown in full.
#[derive(Debug)]
struct ShownEvent {
    sequence: u64,
    event: EventRead,
}

/// Result of reading one event.
#[derive(Debug)]
pub(super) enum EventRead {
    /// The read is pending.
    UnderWay,
    /// The record has no such event.
    Gone,
    /// The event is loaded.
    Here(Box<FullEvent>),
}

impl OpenSession {
    pub(super) fn new(session: RecordedSession, at: u64) -> Self {
        Self {
            pages: EventPages::default(),
            outline: Outline::default(),
            reading: OutlineReading::Idle,
            running: Arc::default(),
            kept: StateCache::default(),
            folding: PendingRead::Idle,
            place: at,
            top: 0,
            visible: 1,
            follow: FollowMode::Still(session.events),
            filter: None,
            search: None,
            seeking: None,
            play: Playback::Paused,
            stop_on: PlaybackStop::CheckpointsAndDenials,
            full_event: None,
            detail: EventDetail::default(),
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
    pub(super) fn on_session_grown(&mut self, session: &RecordedSession) {
        self.session = session.clone();
    }

    /// Drops all events, so that they are read again.
    pub(super) fn drop_events(&mut self) {
        self.pages.drop_events();
        self.full_event = None;
    }

    /// Stores the size of the view after painting.
    pub(super) fn on_drawn(&mut self, visible: u64, cells: usize) {
        self.visible = visible.max(1);
        if self.detail.set_cells(cells)
            && let Some(full_event) = self.full_event.as_ref().and_then(ShownEvent::get)
        {
            self.detail.lay_out(full_event);
        }
    }

    /// Returns the rows of the list.
    pub(super) fn rows(&self) -> EventRows<'_> {
        match (&self.filter, self.outline.visible_rows()) {
            (Some(scan), _) => EventRows::Found(scan),
            (None, Some(shown)) => EventRows::Folded {
                shown,
                read: self.outline.len(),
                total: self.total().max(self.outline.len()),
            },
            (None, None) => EventRows::All(self.total()),
        }
    }

    pub(super) fn move_cursor(&mut self, motion: Motion) {
        let rows = self.rows();
        let row = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let to = motion.target_row(row(rows.row_of(self.place)), row(rows.len()));
        if let Some(place) = rows.get(to as u64) {
            self.place = place;
        }
        self.play = Playback::Paused;
        self.follow = match motion {
            Motion::Last => FollowMode::Tail,
            Motion::Up | Motion::Down | Motion::First | Motion::PageUp | Motion::PageDown => {
                self.without_following()
            }
        };
    }

    /// Selects a visible row.
    pub(super) fn choose(&mut self, row: u64) {
        if let Some(place) = self.rows().get(row) {
            self.place = place;
            self.play = Playback::Paused;
            self.follow = self.without_following();
        }
    }

    /// Returns the mode without following. If the view did not follow before, its event count is kept.
    fn without_following(&self) -> FollowMode {
        match self.follow {
            FollowMode::Still(seen) => FollowMode::Still(seen),
            FollowMode::Tail => FollowMode::Still(self.total()),
        }
    }

    /// Goes to an event and unfolds the rows that hide it. Returns false beyond the last event.
    pub(super) fn seek(&mut self, sequence: u64) -> bool {
        if sequence >= self.total() {
            return false;
        }
        self.follow = self.without_following();
        self.place = sequence;
        self.outline.reveal(sequence);
        if self.filter.as_ref().is_some_and(|scan| !scan.has(sequence)) {
            // An event requested by its number is shown even if the filter hides it.
            self.filter = None;
        }
        true
    }

    pub(super) fn step(&mut self, towards: EventDirection) {
        self.play = Playback::Paused;
        let to = match towards {
            EventDirection::On => self.place.saturating_add(1),
            EventDirection::Back => self.place.saturating_sub(1),
        };
        self.seek(to);
    }

    pub(super) fn checkpoint(&mut self, towards: EventDirection) -> bool {
        let found = match towards {
            EventDirection::On => self.outline.next_with(self.place, EventMarks::CHECKPOINT),
            EventDirection::Back => self.outline.last_with(self.place, EventMarks::CHECKPOINT),
        };
        found.is_some_and(|sequence| self.seek(sequence))
    }

    /// Folds the row at the cursor, or selects its parent.
    pub(super) fn fold(&mut self, fold: FoldState) {
        if self.filter.is_some() {
            return;
        }
        let changed = self.outline.set_folded(self.place, fold);
        if !changed && fold == FoldState::Closed {
            let above = self.outline.get(self.place);
            if let Some(parent) = above.and_then(OutlineEntry::parent) {
                self.place = parent;
                self.follow = self.without_following();
            }
        }
    }

    /// Folds a line of the event that is shown in full.
    pub(super) fn fold_detail(&mut self, fold: FoldState) {
        if let Some(full_event) = self.full_event.as_ref().and_then(ShownEvent::get) {
            self.detail.fold(full_event, fold);
        }
    }

    /// Switches between the words for the event and the names as they are recorded.
    pub(super) fn toggle_event_form(&mut self) {
        self.detail.form = match self.detail.form {
            EventForm::Words => EventForm::Raw,
            EventForm::Raw => EventForm::Words,
        };
        if let Some(full_event) = self.full_event.as_ref().and_then(ShownEvent::get) {
            self.detail.lay_out(full_event);
        }
    }

    /// Folds to the next level: 1, 2, 3, none.
    pub(super) fn fold_level(&mut self) {
        let next = match self.outline.fold_level() {
            None => Some(1),
            Some(level @ 1..=2) => Some(level + 1),
            Some(_) => None,
        };
        self.outline.fold_to(next);
        // The cursor moves up to the visible parent.
        while let Some(entry) = self.outline.get(self.place) {
            match entry
                .parent()
                .filter(|_| entry.marks().has_any(EventMarks::HIDDEN))
            {
                Some(parent) => self.place = parent,
                None => break,
            }
        }
    }

    pub(super) fn set_filter(
        &mut self,
        text: String,
        conditions: Vec<EventCondition>,
        ticket: u64,
    ) {
        let query = self.query(conditions);
        self.filter = Some(SessionScan::new(text, query, 0, ticket));
        self.search = None;
        self.top = 0;
    }

    pub(super) fn set_search(&mut self, text: String, ticket: u64) {
        let mut conditions = vec![EventCondition::for_text(&text)];
        if let Some(filter) = &self.filter {
            conditions.extend(parse_conditions(&filter.text).unwrap_or_default());
        }
        let query = self.query(conditions);
        self.search = Some(SessionScan::new(text, query, self.place, ticket));
        self.seeking = Some(EventDirection::On);
    }

    fn query(&self, conditions: Vec<EventCondition>) -> TraceQuery {
        TraceQuery {
            agent: self.session.agent.clone(),
            conditions,
        }
    }

    /// Goes to the next or previous match, and continues at the other end.
    pub(super) fn next_hit(&mut self, towards: EventDirection) {
        let Some(search) = &self.search else {
            return;
        };
        let total = self.session.events;
        let found = match towards {
            EventDirection::On => search.get(search.rank(self.place.saturating_add(1))),
            EventDirection::Back => {
                let rank = search.rank(self.place);
                rank.checked_sub(1).and_then(|at| search.get(at))
            }
        };
        // The scan may still find a match ahead. Only after it is done the search continues at the other end.
        if found.is_none() && search.is_running(total) {
            self.seeking = Some(towards);
            return;
        }
        let around = match towards {
            EventDirection::On => search.get(0),
            EventDirection::Back => search.len().checked_sub(1).and_then(|at| search.get(at)),
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
        let here = towards == EventDirection::On && search.has(self.place);
        let looking = search.is_running(self.session.events);
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
            self.reading = OutlineReading::Stopped;
            return true;
        }
        false
    }

    /// Resumes stopped searches and reads.
    pub(super) fn resume(&mut self) {
        if self.reading == OutlineReading::Stopped {
            self.reading = OutlineReading::Idle;
        }
        for scan in [&mut self.filter, &mut self.search].into_iter().flatten() {
            scan.resume();
        }
    }

    /// Returns true if the outline is being read.
    pub(super) fn is_reading(&self) -> bool {
        let most = self.total().min(Outline::MAX_EVENTS);
        self.reading != OutlineReading::Stopped && self.outline.len() < most
    }

    pub(super) fn toggle_play(&mut self, now: Timestamp) {
        self.play = match self.play {
            Playback::Paused => Playback::Playing(next_step_at(now)),
            Playback::Playing(_) => Playback::Paused,
        };
    }

    /// Takes the next playback step if it is due.
    pub(super) fn on_tick(&mut self, now: Timestamp) {
        let Playback::Playing(due) = self.play else {
            return;
        };
        if now < due {
            return;
        }
        let next = self.place.saturating_add(1);
        let seen = self.outline.get(next).map(OutlineEntry::marks);
        let stops = seen.is_none_or(|marks| marks.has_any(self.stop_on.marks()));
        let moved = self.seek(next);
        self.play = if stops || !moved {
            Playback::Paused
        } else {
            Playback::Playing(next_step_at(now))
        };
    }

    /// Returns the session state at the cursor, if it is known.
    pub(super) fn state(&self) -> Option<&ReplayState> {
        self.kept.at(self.place.saturating_add(1))
    }

    /// Returns the full selected event, or the state of reading it.
    pub(super) fn event(&self) -> &EventRead {
        let shown = self.full_event.as_ref();
        let shown = shown.filter(|shown| shown.sequence == self.place);
        shown.map_or(&EventRead::UnderWay, |shown| &shown.event)
    }

    /// Returns the full selected event, if it is loaded.
    pub(super) fn full_event(&self) -> Option<&FullEvent> {
        match self.event() {
            EventRead::Here(full_event) => Some(full_event),
            EventRead::UnderWay | EventRead::Gone => None,
        }
    }
}

impl ShownEvent {
    fn get(&self) -> Option<&FullEvent> {
        match &self.event {
            EventRead::Here(full_event) => Some(full_event),
            EventRead::UnderWay | EventRead::Gone => None,
        }
    }
}

fn next_step_at(now: Timestamp) -> Timestamp {
    Timestamp::from_micros(now.micros().saturating_add(PLAYBACK_STEP_US))
}
