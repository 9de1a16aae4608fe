//! Sealing events into a session's chain.

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::event::{Draft, TRACE_VERSION};
use super::hash::Envelope;
use super::record::{Record, SESSION_ENDED};

/// What most records take.
const RECORD_BYTES: usize = 768;

/// The end of one session's chain: what the next event hangs on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    session: SessionId,
    next_sequence: u64,
    last_hash: Digest,
    last_timestamp: Timestamp,
}

impl Chain {
    /// The chain of a session that has no event yet.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            next_sequence: 0,
            last_hash: Digest::ZERO,
            last_timestamp: Timestamp::from_micros(0),
        }
    }

    /// The chain that ends with an event already on record.
    #[must_use]
    pub fn resume(
        session: SessionId,
        count: u64,
        last_hash: Digest,
        last_timestamp: Timestamp,
    ) -> Self {
        Self {
            session,
            next_sequence: count,
            last_hash,
            last_timestamp,
        }
    }

    /// Hash of the last event; zeros where there is none.
    #[must_use]
    pub fn last_hash(&self) -> Digest {
        self.last_hash
    }

    /// Events so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.next_sequence
    }

    /// Gives a draft its place, and its hash.
    ///
    /// Time does not run backwards in a chain: when the machine's clock was set back, the event
    /// carries the time of the one before.
    pub fn seal(&mut self, draft: &Draft) -> Record {
        let timestamp = draft.timestamp.max(self.last_timestamp);
        let mut text = String::with_capacity(RECORD_BYTES);
        Envelope {
            trace_version: TRACE_VERSION,
            event_id: draft.event_id.as_str(),
            trace_id: draft.trace_id.as_str(),
            span_id: draft.span_id.as_str(),
            parent_span_id: draft.parent_span_id.as_ref().map_or("", |id| id.as_str()),
            session_id: self.session.as_str(),
            sequence: self.next_sequence,
            timestamp: timestamp.text().as_str(),
            event_type: draft.payload.event_type(),
            payload: "",
            previous_hash: self.last_hash.hex().as_str(),
        }
        .write_with(&mut text, |out| draft.payload.write_canonical(out));
        let record = Record {
            session: self.session.clone(),
            sequence: self.next_sequence,
            timestamp,
            ends: draft.payload.event_type() == SESSION_ENDED,
            hash: Digest::of(&text),
            text,
        };
        self.next_sequence += 1;
        self.last_hash = record.hash;
        self.last_timestamp = timestamp;
        record
    }
}
