//! Whether a chain holds. Shares nothing with the writer but the hash.
//!
//! Strict: every field must be exactly as the writer would have written it, so that no byte can
//! change, or move from one field to the next, without being seen.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::base::canon::canonical;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{SessionId, is_restricted};

use super::event::TRACE_VERSION;
use super::hash::{Envelope, hash};

/// A record as it lies in a file: text, nothing believed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawEvent {
    /// Version of the envelope.
    pub trace_version: String,
    /// The event.
    pub event_id: String,
    /// The operation.
    pub trace_id: String,
    /// The span.
    pub span_id: String,
    /// The span above.
    pub parent_span_id: Option<String>,
    /// The session.
    pub session_id: String,
    /// Place in the chain.
    pub sequence: u64,
    /// When.
    pub timestamp: String,
    /// What.
    pub event_type: String,
    /// Details, as canonical JSON.
    pub payload: String,
    /// Hash of the event before.
    pub previous_hash: String,
    /// Hash of all of the above.
    pub hash: String,
}

/// What was acknowledged about a session: how many events, and the hash of the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The session.
    pub session: SessionId,
    /// Events that were made durable.
    pub count: u64,
    /// Hash of the last of them.
    pub hash: Digest,
    /// When the last of them happened.
    pub last_at: Timestamp,
}

/// What is known about the end of a chain, from elsewhere than the chain itself.
#[derive(Clone, Copy, Debug)]
pub enum Known<'a> {
    /// Nothing: an exported file.
    Nothing,
    /// What was acknowledged. A store has it for every session; where it does not, it was removed.
    Head(Option<&'a Head>),
}

/// What was found about one session's chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The session.
    pub session: SessionId,
    /// Events that were read.
    pub events: u64,
    /// What they prove.
    pub verdict: Verdict,
}

/// What a chain proves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "word", rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Every event from the first to the last is as it was written, and none is missing.
    Verified {
        /// Sequence of the last event.
        last: u64,
    },
    /// The chain holds as far as it goes, but nothing says how long it was.
    Unproven {
        /// Sequence of the last event.
        last: u64,
    },
    /// The chain holds, but there are fewer events than were acknowledged.
    Truncated {
        /// Events that are there.
        found: u64,
        /// Events that were acknowledged.
        expected: u64,
    },
    /// The chain does not hold.
    Broken {
        /// Where.
        sequence: u64,
        /// What is wrong, for people.
        what: String,
    },
}

impl Verdict {
    /// Whether nothing speaks against the chain.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Verified { .. } | Self::Unproven { .. } => true,
            Self::Truncated { .. } | Self::Broken { .. } => false,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Verified { last } => write!(f, "VERIFIED 0..{last}"),
            Self::Unproven { last } => {
                write!(
                    f,
                    "UNPROVEN 0..{last}: the chain holds, its end is not witnessed"
                )
            }
            Self::Truncated { found, expected } => {
                write!(
                    f,
                    "TRUNCATED: {found} of {expected} acknowledged events are there"
                )
            }
            Self::Broken { sequence, what } => write!(f, "BROKEN at {sequence}: {what}"),
        }
    }
}

/// Checks one chain, event by event; memory does not grow with it.
#[derive(Debug)]
pub struct Verifier {
    session: SessionId,
    expected: u64,
    last_hash: Digest,
    last_timestamp: String,
    broken: Option<Verdict>,
    read: u64,
}

impl Verifier {
    /// A verifier for the chain of `session`.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            expected: 0,
            last_hash: Digest::ZERO,
            last_timestamp: String::new(),
            broken: None,
            read: 0,
        }
    }

    /// Takes the next record. After the first fault the rest is only counted.
    pub fn push(&mut self, raw: &RawEvent) {
        self.read += 1;
        if self.broken.is_some() {
            return;
        }
        if let Err(what) = self.check(raw) {
            self.break_at(self.expected, what);
            return;
        }
        self.expected += 1;
        self.last_timestamp.clone_from(&raw.timestamp);
    }

    /// Notes something that could not even be read as a record.
    pub fn push_unreadable(&mut self, what: impl Into<String>) {
        self.read += 1;
        if self.broken.is_none() {
            self.break_at(self.expected, what.into());
        }
    }

    /// What the chain proves, compared with what is known about its end.
    #[must_use]
    pub fn finish(self, known: Known<'_>) -> Checked {
        let verdict = self.broken.clone().unwrap_or_else(|| self.compare(known));
        Checked {
            session: self.session,
            events: self.read,
            verdict,
        }
    }

    fn compare(&self, known: Known<'_>) -> Verdict {
        let broken = |sequence, what: &str| Verdict::Broken {
            sequence,
            what: what.to_owned(),
        };
        let head = match known {
            Known::Nothing => match self.expected.checked_sub(1) {
                Some(last) => return Verdict::Unproven { last },
                None => return broken(0, "the chain is empty"),
            },
            Known::Head(None) => return broken(0, "nothing was ever acknowledged about it"),
            Known::Head(Some(head)) => head,
        };
        let last = self.expected.saturating_sub(1);
        if self.expected < head.count {
            Verdict::Truncated {
                found: self.expected,
                expected: head.count,
            }
        } else if self.expected > head.count {
            broken(head.count, "there are events that were never acknowledged")
        } else if self.expected > 0 && self.last_hash == head.hash {
            Verdict::Verified { last }
        } else {
            broken(last, "the last event is not the one that was acknowledged")
        }
    }

    fn break_at(&mut self, sequence: u64, what: String) {
        self.broken = Some(Verdict::Broken { sequence, what });
    }

    fn check(&mut self, raw: &RawEvent) -> Result<(), String> {
        check_fields(raw)?;
        if raw.session_id != self.session.as_str() {
            return Err(format!("belongs to session `{}`", shown(&raw.session_id)));
        }
        if raw.sequence != self.expected {
            return Err(format!(
                "sequence is {}, not {}",
                raw.sequence, self.expected
            ));
        }
        if raw.timestamp < self.last_timestamp {
            return Err("is earlier than the event before".to_owned());
        }
        if raw.previous_hash != self.last_hash.to_string() {
            return Err("previous_hash is not the hash of the event before".to_owned());
        }
        let computed = hash(&Envelope {
            trace_version: &raw.trace_version,
            event_id: &raw.event_id,
            trace_id: &raw.trace_id,
            span_id: &raw.span_id,
            parent_span_id: raw.parent_span_id.as_deref().unwrap_or(""),
            session_id: &raw.session_id,
            sequence: raw.sequence,
            timestamp: &raw.timestamp,
            event_type: &raw.event_type,
            payload: &raw.payload,
            previous_hash: &raw.previous_hash,
        });
        if raw.hash != computed.to_string() {
            return Err("hash does not match the content".to_owned());
        }
        self.last_hash = computed;
        Ok(())
    }
}

fn check_fields(raw: &RawEvent) -> Result<(), String> {
    if raw.trace_version != TRACE_VERSION {
        return Err(format!("trace_version is `{}`", shown(&raw.trace_version)));
    }
    let parent = raw.parent_span_id.as_deref();
    let ids = [
        ("event_id", Some(raw.event_id.as_str())),
        ("trace_id", Some(raw.trace_id.as_str())),
        ("span_id", Some(raw.span_id.as_str())),
        ("parent_span_id", parent),
        ("session_id", Some(raw.session_id.as_str())),
        ("event_type", Some(raw.event_type.as_str())),
    ];
    for (field, id) in ids {
        if id.is_some_and(|id| !is_restricted(id)) {
            return Err(format!(
                "{field} has characters that an identifier cannot have"
            ));
        }
    }
    if raw.timestamp.parse::<Timestamp>().is_err() {
        return Err("timestamp is not in the fixed form".to_owned());
    }
    match serde_json::from_str::<Value>(&raw.payload) {
        Ok(payload @ Value::Object(_)) if canonical(&payload) == raw.payload => Ok(()),
        Ok(Value::Object(_)) => Err("payload is not in canonical form".to_owned()),
        Ok(_) | Err(_) => Err("payload is not a JSON object".to_owned()),
    }
}

fn shown(text: &str) -> String {
    let start: String = text.chars().take(40).collect();
    crate::base::text::one_line(&start)
}
