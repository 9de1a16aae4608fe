//! The hash of a record: the one thing that writer and verifier share.

use crate::base::digest::Digest;

/// The eleven hashed fields, as text.
///
/// Joined by `:`. That is injective because only the payload may contain a `:` freely: the timestamp
/// has a fixed width, and identifiers, versions, types and hashes cannot contain one.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// Version of the envelope.
    pub trace_version: &'a str,
    /// The event.
    pub event_id: &'a str,
    /// The operation.
    pub trace_id: &'a str,
    /// The span.
    pub span_id: &'a str,
    /// The span above; empty when there is none.
    pub parent_span_id: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// Place in the chain.
    pub sequence: u64,
    /// When.
    pub timestamp: &'a str,
    /// What.
    pub event_type: &'a str,
    /// Details, as canonical JSON.
    pub payload: &'a str,
    /// Hash of the event before.
    pub previous_hash: &'a str,
}

/// The hash of a record.
#[must_use]
pub fn hash(envelope: &Envelope<'_>) -> Digest {
    let sequence = envelope.sequence.to_string();
    let text = [
        envelope.trace_version,
        envelope.event_id,
        envelope.trace_id,
        envelope.span_id,
        envelope.parent_span_id,
        envelope.session_id,
        &sequence,
        envelope.timestamp,
        envelope.event_type,
        envelope.payload,
        envelope.previous_hash,
    ]
    .join(":");
    Digest::of(text)
}
