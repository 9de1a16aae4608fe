//! Reads that the screen requests from the record, one window at a time, and the responses.
//!
//! Contract: the screen requests the next window only after the previous one arrived. To cancel is to send no
//! further request, and a slow disk never has more than one window of each kind pending.

use std::path::PathBuf;
use std::sync::Arc;

use super::event_condition::EventCondition;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::console::names::{description_words, event_words};
use crate::trace::diff::SessionDiff;
use crate::trace::event::Event;
use crate::trace::export::ExportFormatArg;
use crate::trace::hash::Envelope;
use crate::trace::outline::{EventMarks, OutlineWindow};
use crate::trace::replay::ReplayState;
use crate::trace::summary::{Tone, tone};

/// Read request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TraceRead {
    /// Rows of a session, from a sequence number on.
    Rows {
        session: SessionId,
        from: u64,
        limit: usize,
    },
    /// One full event, with its hashes recomputed.
    Event { session: SessionId, sequence: u64 },
    /// Next window of a session's outline, and the state after it.
    Outline {
        session: SessionId,
        from: u64,
        limit: usize,
        state: Arc<ReplayState>,
    },
    /// State before event `to`, computed from the state before event `from`.
    Fold {
        session: SessionId,
        from: u64,
        to: u64,
        state: Arc<ReplayState>,
    },
    /// Events of a window that match a query.
    Scan {
        session: SessionId,
        ticket: u64,
        from: u64,
        limit: usize,
        query: Arc<TraceQuery>,
    },
    /// Difference of two sessions.
    Compare {
        ticket: u64,
        sessions: (SessionId, SessionId),
    },
    /// Export of a session to a file.
    Export {
        session: SessionId,
        format: ExportFormatArg,
        path: PathBuf,
    },
}

/// Response to a [`TraceRead`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TraceReadResult {
    Rows {
        session: SessionId,
        from: u64,
        rows: Result<Vec<EventRow>, String>,
    },
    Event {
        session: SessionId,
        sequence: u64,
        event: Result<Option<Box<FullEvent>>, String>,
    },
    Outline {
        session: SessionId,
        from: u64,
        part: Result<(OutlineWindow, Arc<ReplayState>), String>,
    },
    Fold {
        session: SessionId,
        to: u64,
        state: Result<Arc<ReplayState>, String>,
    },
    Scan {
        session: SessionId,
        ticket: u64,
        part: Result<WindowMatches, String>,
    },
    Compare {
        ticket: u64,
        difference: Result<Box<SessionDiff>, String>,
    },
    Exported {
        path: PathBuf,
        bytes: Result<u64, String>,
    },
}

/// Search conditions. All of them must hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceQuery {
    pub(crate) agent: String,
    pub(crate) conditions: Vec<EventCondition>,
}

impl TraceQuery {
    /// Returns true if an event meets all conditions.
    pub(crate) fn matches(&self, envelope: &Envelope<'_>) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.all(|condition| condition.matches(envelope, &self.agent))
    }
}

/// Matches in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowMatches {
    /// Sequence number of the next window.
    pub(crate) next: u64,
    /// Sequence numbers of the matching events.
    pub(crate) hits: Vec<u32>,
    /// Types of the matching events, with counts.
    pub(crate) types: Vec<(String, u64)>,
    /// Operators and agents that decided in the matching events, with counts.
    pub(crate) actors: Vec<(String, u64)>,
}

/// Event as a list row shows it. A row is short, however long the event is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventRow {
    pub(crate) sequence: u64,
    /// Type of the event in words, safe to show.
    pub(crate) name: String,
    /// Subject and outcome of the event, clipped and safe to show.
    pub(crate) about: String,
    pub(crate) marks: EventMarks,
    pub(crate) tone: Tone,
    pub(crate) time_us: i64,
}

impl EventRow {
    /// Builds the row of an event.
    pub(crate) fn of(event: &Event) -> Self {
        Self {
            sequence: event.sequence,
            name: one_line(&event_words(&event.event_type)),
            about: description_words(event),
            marks: EventMarks::from_event(event),
            tone: tone(event),
            time_us: event.timestamp.micros(),
        }
    }
}

/// One full event, with the verification of its hashes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FullEvent {
    pub(crate) event: Event,
    /// Verification that the event's hash matches its text.
    pub(crate) own: HashProof,
    /// Verification that the event names the hash of the previous event.
    pub(crate) link: HashProof,
}

/// Result of recomputing a hash and comparing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HashProof {
    /// The hashes are equal.
    Holds,
    /// The hashes differ. With the description.
    Fails(String),
    /// The hash cannot be recomputed any more. With the reason.
    Unknown(&'static str),
}
