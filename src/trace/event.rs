//! Event types and the envelope they are recorded in.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId, SpanId, TraceId};
use crate::trace::note::Verifier;

mod descriptions;
mod durability;
mod enums;
mod governance;
mod large_numbers;
mod macros;
mod operators;
mod owed;
mod parse;
mod parts;
mod payload;
mod registered_types;
mod threads;
mod wrapper;

pub use descriptions::*;
pub use enums::*;
pub use governance::*;
pub use large_numbers::NUMBERS_AS_TEXT;
pub use operators::*;
pub use owed::*;
pub use parse::*;
pub use parts::*;
pub use payload::*;
pub use registered_types::*;
pub use threads::*;
pub use wrapper::*;

/// Version of the envelope; part of every hash.
pub const TRACE_VERSION: &str = "1.0";

/// One recorded event with its position in its session's chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Version of the envelope.
    pub trace_version: String,
    /// Identifier of this event.
    pub event_id: EventId,
    /// Operation that the event belongs to.
    pub trace_id: TraceId,
    /// Node of the span tree.
    pub span_id: SpanId,
    /// Parent node, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<SpanId>,
    /// Session whose chain contains the event.
    pub session_id: SessionId,
    /// Position in that chain, from 0.
    pub sequence: u64,
    /// Time of the event.
    pub timestamp: Timestamp,
    /// Name of the event type.
    pub event_type: String,
    /// Details; empty if they were pruned.
    #[serde(default)]
    pub payload: Map<String, Value>,
    /// True if retention dropped the details. The hash still covers them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pruned: bool,
    /// Hash of the event before; zeros for the first event.
    pub previous_hash: Digest,
    /// Hash over all fields above.
    pub hash: Digest,
}

impl LogStarted {
    /// Creates the first entry of a log that this program begins.
    #[must_use]
    pub fn now(key: &Verifier) -> Self {
        Self {
            wrapper_version: env!("CARGO_PKG_VERSION").to_owned(),
            key: key.to_string(),
            by: None,
        }
    }
}

/// An event that has no position in a chain yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Session that the event belongs to.
    pub session_id: SessionId,
    /// Identifier of this event.
    pub event_id: EventId,
    /// Operation that the event belongs to.
    pub trace_id: TraceId,
    /// Node of the span tree.
    pub span_id: SpanId,
    /// Parent node, if any.
    pub parent_span_id: Option<SpanId>,
    /// Time of the event.
    pub timestamp: Timestamp,
    /// Event type with its details.
    pub payload: Payload,
    /// Requirement to have the event on disk before replies are sent.
    pub durability: Durability,
}

/// Requirement to have an event on disk before replies are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// The event is written soon; no reply waits for it.
    Async,
    /// This event and all events before it are on disk before any reply is sent.
    Sync,
}
