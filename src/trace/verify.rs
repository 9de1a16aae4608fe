//! Whether the record holds. Shares nothing with the writer but the text that a hash covers.
//!
//! Three things are looked at. Each record by itself ([`check`]): every field exactly as a writer
//! writes it, and the hash that of the text. Each chain: every record follows the one before. And the
//! log over all chains ([`LogVerifier`]): the log is a session of its own whose entries say, again and
//! again, where every chain ended; its tree has a root, and that root is signed or kept elsewhere. So
//! what is proven is what some head covers; what lies behind the last head is not, and is said not to
//! be.

use std::borrow::Cow;

use crate::base::canon;
use crate::base::clock::TimestampText;
use crate::base::digest::{Digest, Hashing};

use super::hash::{Envelope, HASH_BEHIND, NOT_CANONICAL};
use super::record::SESSION_ENDED;

mod chain;
mod log;
mod progress;
mod pruned;
mod trust;
mod verdict;

pub use log::{Ended, LogVerifier};
pub use progress::Progress;
pub use pruned::Remains;
pub use trust::Trust;
pub use verdict::{Checked, Head, Imported, LogChecked, Proven, Report, Verdict};

/// What a sound record says about its neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Its place in the chain.
    pub sequence: u64,
    /// When it happened.
    pub timestamp: TimestampText,
    /// The hash of the one before.
    pub previous: Digest,
    /// Its own hash.
    pub hash: Digest,
    /// Whether it ends its session.
    pub ends: bool,
}

impl Link {
    /// What an envelope says.
    ///
    /// # Errors
    /// When it has no such fields.
    #[inline]
    pub fn of(envelope: &Envelope<'_>, hash: Digest) -> Result<Self, String> {
        let timestamp = TimestampText::read(envelope.timestamp);
        let previous = envelope.previous_hash.parse();
        Ok(Self {
            sequence: envelope.sequence,
            timestamp: timestamp.ok_or("timestamp is not in the fixed form")?,
            previous: previous.map_err(|_| "previous_hash is not a hash")?,
            hash,
            ends: envelope.event_type == SESSION_ENDED,
        })
    }
}

/// Sound records of one chain that follow one another: what matters about them for the rest of it.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Where it begins, when, and behind what.
    sequence: u64,
    first_at: TimestampText,
    previous: Digest,
    count: u64,
    end: End,
    ends: bool,
}

/// The end of a chain, or of a part of one: what the next record has to fit.
#[derive(Clone, Copy, Debug)]
struct End {
    at: TimestampText,
    hash: Digest,
}

impl From<&Link> for Stretch {
    #[inline]
    fn from(link: &Link) -> Self {
        Self {
            sequence: link.sequence,
            first_at: link.timestamp,
            previous: link.previous,
            count: 1,
            end: End {
                at: link.timestamp,
                hash: link.hash,
            },
            ends: link.ends,
        }
    }
}

/// Whether a record was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// It follows.
    Yes,
    /// It does not, and begins something else.
    No,
}

impl Stretch {
    /// Takes in the record behind the last one, if it follows.
    #[inline]
    pub fn extend(&mut self, link: &Link) -> Extended {
        let follows = link.sequence == self.sequence + self.count
            && link.previous == self.end.hash
            && link.timestamp >= self.end.at;
        if !follows {
            return Extended::No;
        }
        self.count += 1;
        self.end.at = link.timestamp;
        self.end.hash = link.hash;
        self.ends |= link.ends;
        Extended::Yes
    }

    /// Why it cannot follow a chain of `count` records, if it cannot.
    fn misfit(&self, count: u64, end: Option<&End>) -> Option<String> {
        if self.sequence != count {
            return Some(format!("sequence is {}, not {count}", self.sequence));
        }
        if end.is_some_and(|end| self.first_at < end.at) {
            return Some("is earlier than the event before".to_owned());
        }
        if self.previous != end.map_or(Digest::ZERO, |end| end.hash) {
            return Some("previous_hash is not the hash of the event before".to_owned());
        }
        None
    }
}

/// What a sound record says, as far as it matters for more than its own chain.
#[derive(Clone, Debug)]
pub enum Said<'a> {
    /// Nothing of the kind.
    Nothing,
    /// It is the first of its session, and names its agent.
    First(String),
    /// Its details were pruned. This is the digest of the rest.
    Pruned(Digest),
    /// It is an entry of the log, with its type and details.
    Entry(Cow<'a, str>, Cow<'a, str>),
}

/// Whose record it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The log's own.
    Log,
    /// A session's.
    Session,
}

impl<'a> Said<'a> {
    /// What a checked record says.
    #[must_use]
    pub fn of(
        envelope: &Envelope<'a>,
        text: impl AsRef<[u8]>,
        hash: &Digest,
        owner: Owner,
    ) -> Self {
        if envelope.is_pruned() {
            return Self::Pruned(Remains::of(text, hash));
        }
        match owner {
            Owner::Log => Self::Entry(envelope.event_type.into(), envelope.payload.into()),
            Owner::Session if envelope.sequence == 0 => Self::First(agent_in(envelope.payload)),
            Owner::Session => Self::Nothing,
        }
    }

    /// The same, apart from the record.
    #[must_use]
    pub fn into_owned(self) -> Said<'static> {
        match self {
            Self::Nothing => Said::Nothing,
            Self::First(agent) => Said::First(agent),
            Self::Pruned(remains) => Said::Pruned(remains),
            Self::Entry(event_type, payload) => Said::Entry(
                Cow::Owned(event_type.into_owned()),
                Cow::Owned(payload.into_owned()),
            ),
        }
    }
}

/// Checks a record by itself, and takes it apart.
///
/// # Errors
/// In words, when it is not one that a writer wrote.
#[inline]
pub fn check<'t>(
    text: &'t (impl AsRef<[u8]> + ?Sized),
    hash: &Digest,
) -> Result<(Envelope<'t>, Link), String> {
    let text = text.as_ref();
    let mut hashing = Hashing::of(text);
    hashing.step();
    let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8".to_owned())?;
    hashing.step();
    let envelope = match Envelope::take_usual_apart(text, || hashing.step()) {
        Some(usual) => usual,
        None => unusual(text)?,
    };
    let link = check_fields(&envelope, text, hash, &mut hashing)?;
    Ok((envelope, link))
}

/// Checks the fields of a record whose names were checked, and that `text` has the hash.
#[inline]
pub(super) fn check_fields(
    envelope: &Envelope<'_>,
    text: &str,
    hash: &Digest,
    hashing: &mut Hashing<'_>,
) -> Result<Link, String> {
    hashing.step();
    let link = Link::of(envelope, *hash)?;
    if envelope.is_pruned() {
        return Ok(link);
    }
    hashing.step();
    // What stands behind the payload is looked at too, and is no part of it: a text that does not end
    // with what is looked for is gone over in larger steps.
    let start = text.len().checked_sub(envelope.payload.len() + HASH_BEHIND);
    let rest = start.and_then(|start| text.get(start..));
    let length = rest.and_then(|rest| canon::object_length_beside(rest, || hashing.step()));
    if length != Some(envelope.payload.len()) {
        return Err(NOT_CANONICAL.to_owned());
    }
    if hashing.finish() != *hash {
        return Err("hash does not match the content".to_owned());
    }
    Ok(link)
}

/// Takes a text apart that is not as they mostly are.
#[cold]
fn unusual(text: &str) -> Result<Envelope<'_>, String> {
    let envelope = Envelope::take_apart(text)?;
    envelope.check_names()?;
    Ok(envelope)
}

/// The agent that the first event of a session names.
fn agent_in(payload: &str) -> String {
    let payload = serde_json::from_str::<serde_json::Value>(payload).unwrap_or_default();
    let agent = payload.get("agent_type").and_then(|agent| agent.as_str());
    agent.unwrap_or_default().to_owned()
}
