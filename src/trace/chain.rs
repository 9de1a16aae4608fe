//! Sealing events into a session's chain.

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::event::{Draft, TRACE_VERSION};
use super::hash::Envelope;
use super::record::{Record, SESSION_ENDED};

/// Initial buffer size of a record; most records fit.
const RECORD_BYTES: usize = 768;

/// End of one session's chain: the values the next event is linked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    session: SessionId,
    next_sequence: u64,
    last_hash: Digest,
    last_timestamp: Timestamp,
}

impl Chain {
    /// Creates the chain of a session that has no event yet.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            next_sequence: 0,
            last_hash: Digest::ZERO,
            last_timestamp: Timestamp::from_micros(0),
        }
    }

    /// Continues a chain after its last recorded event.
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

    /// Hash of the last event; zeros if the chain is empty.
    #[must_use]
    pub fn last_hash(&self) -> Digest {
        self.last_hash
    }

    /// Number of events in the chain.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.next_sequence
    }

    /// Assigns a draft its sequence number, previous hash and hash.
    ///
    /// Time never runs backwards in a chain: after the machine's clock was set back, an event carries the
    /// timestamp of the event before it.
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
            ends_session: draft.payload.event_type() == SESSION_ENDED,
            hash: Digest::of(&text),
            text,
        };
        self.next_sequence += 1;
        self.last_hash = record.hash;
        self.last_timestamp = timestamp;
        record
    }
}
