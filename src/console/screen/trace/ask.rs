//! What the screen asks of the record, a window at a time, and what comes back.
//!
//! Contract: nobody reads on by himself. The screen asks for the next window when one has arrived, so to
//! cancel is not to ask again, and what a slow disk owes is never more than one window of each kind.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::id::SessionId;
use crate::trace::diff::Difference;
use crate::trace::event::{Event, canonical_type};
use crate::trace::export::Format;
use crate::trace::filter::Filter;
use crate::trace::outline::{Marks, Window};
use crate::trace::replay::State;
use crate::trace::tell::{Tone, telling, tone};

/// Something to read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ask {
    /// Rows of a session, from a sequence number on.
    Rows {
        session: SessionId,
        from: u64,
        limit: usize,
    },
    /// One event, whole, with its hashes worked out anew.
    Event { session: SessionId, sequence: u64 },
    /// The next window of a session's outline, and the state behind it.
    Outline {
        session: SessionId,
        from: u64,
        limit: usize,
        state: Arc<State>,
    },
    /// The state before `to`, from the one before `from`.
    Fold {
        session: SessionId,
        from: u64,
        to: u64,
        state: Arc<State>,
    },
    /// Which events of a window are wanted.
    Scan {
        session: SessionId,
        ticket: u64,
        from: u64,
        limit: usize,
        query: Arc<Query>,
    },
    /// How two sessions differ.
    Compare {
        ticket: u64,
        sessions: (SessionId, SessionId),
    },
    /// A session as a file.
    Export {
        session: SessionId,
        format: Format,
        path: PathBuf,
    },
}

/// What came of an [`Ask`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Rows {
        session: SessionId,
        from: u64,
        rows: Result<Vec<Row>, String>,
    },
    Event {
        session: SessionId,
        sequence: u64,
        event: Result<Option<Box<Whole>>, String>,
    },
    Outline {
        session: SessionId,
        from: u64,
        part: Result<(Window, Arc<State>), String>,
    },
    Fold {
        session: SessionId,
        to: u64,
        state: Result<Arc<State>, String>,
    },
    Scan {
        session: SessionId,
        ticket: u64,
        part: Result<Found, String>,
    },
    Compare {
        ticket: u64,
        difference: Result<Box<Difference>, String>,
    },
    Exported {
        path: PathBuf,
        bytes: Result<u64, String>,
    },
}

/// What is looked for: all of it must hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    pub(crate) agent: String,
    pub(crate) filters: Vec<Filter>,
}

/// What a window held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where the next window begins.
    pub(crate) next: u64,
    /// The events that are wanted.
    pub(crate) hits: Vec<u32>,
    /// Their types, counted.
    pub(crate) types: Vec<(String, u64)>,
    /// Those who decided in them, counted.
    pub(crate) actors: Vec<(String, u64)>,
}

/// An event as a row shows it: short, however long the event is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) sequence: u64,
    pub(crate) event_type: String,
    /// What it is about, cut and safe to show.
    pub(crate) about: String,
    pub(crate) marks: Marks,
    pub(crate) tone: Tone,
    pub(crate) time_us: i64,
}

impl Row {
    /// The row of an event.
    pub(crate) fn of(event: &Event) -> Self {
        Self {
            sequence: event.sequence,
            event_type: crate::base::text::one_line(canonical_type(&event.event_type)),
            about: telling(event),
            marks: Marks::of(event),
            tone: tone(event),
            time_us: event.timestamp.micros(),
        }
    }
}

/// One event, whole, and what its hashes prove.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Whole {
    pub(crate) event: Event,
    /// Whether its hash is that of its text.
    pub(crate) own: Proof,
    /// Whether it names the hash of the event before.
    pub(crate) link: Proof,
}

/// Whether something was worked out anew and is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// It is.
    Holds,
    /// It is not; in words.
    Fails(String),
    /// It cannot be worked out any more; in words.
    Unknown(&'static str),
}
