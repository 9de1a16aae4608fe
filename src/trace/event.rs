//! What can be recorded, and the envelope it is recorded in.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId, SpanId, TraceId};
use crate::trace::note::Verifier;

mod declare;
mod durability;
mod governance;
mod numbers;
mod operators;
mod owed;
mod parts;
mod payload;
mod read;
mod registered;
mod threads;
mod words;

pub use governance::*;
pub use numbers::NUMBERS_AS_TEXT;
pub use operators::*;
pub use owed::*;
pub use parts::*;
pub use payload::*;
pub use read::*;
pub use registered::*;
pub use threads::*;
pub use words::*;

/// Version of the envelope; part of every hash.
pub const TRACE_VERSION: &str = "1.0";

/// One record: an event in its place in its session's chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Version of the envelope.
    pub trace_version: String,
    /// This event.
    pub event_id: EventId,
    /// The operation it belongs to.
    pub trace_id: TraceId,
    /// Its node in the span tree.
    pub span_id: SpanId,
    /// The node above, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<SpanId>,
    /// The session whose chain it is in.
    pub session_id: SessionId,
    /// Its place in that chain, from 0.
    pub sequence: u64,
    /// When it happened.
    pub timestamp: Timestamp,
    /// What happened.
    pub event_type: String,
    /// The details; empty where they were pruned.
    #[serde(default)]
    pub payload: Map<String, Value>,
    /// Whether the details were dropped because they were old. The hash still covers them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pruned: bool,
    /// Hash of the event before; zeros for the first.
    pub previous_hash: Digest,
    /// Hash of all of the above.
    pub hash: Digest,
}

impl LogStarted {
    /// The first entry of a log that this program begins.
    #[must_use]
    pub fn now(key: &Verifier) -> Self {
        Self {
            wrapper_version: env!("CARGO_PKG_VERSION").to_owned(),
            key: key.to_string(),
            by: None,
        }
    }
}

/// An event before it has its place in a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The session it belongs to.
    pub session_id: SessionId,
    /// This event.
    pub event_id: EventId,
    /// The operation it belongs to.
    pub trace_id: TraceId,
    /// Its node in the span tree.
    pub span_id: SpanId,
    /// The node above, if any.
    pub parent_span_id: Option<SpanId>,
    /// When it happened.
    pub timestamp: Timestamp,
    /// What happened.
    pub payload: Payload,
    /// Whether anything waits for it to be on disk.
    pub durability: Durability,
}

/// Whether anything waits for an event to be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It is written soon; nobody waits.
    Async,
    /// It and everything before it is on disk before anyone is told.
    Sync,
}
