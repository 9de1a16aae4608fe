//! Verification of the record. Shares only the hashed text form with the writer.
//!
//! Verification has three levels. [`check_record`] verifies each record on its own: every field is exactly as
//! a writer writes it, and the hash is that of the text. The chain of each session is verified: every
//! record follows the one before. [`LogVerifier`] verifies the log over all chains: the log is a
//! session whose entries repeatedly record where every chain ended; its tree has a root, and that root
//! is signed or kept elsewhere. Records that a head covers are proven; records after the last head are
//! not, and are reported as unproven.

use std::borrow::Cow;

use crate::base::canonical_json;
use crate::base::clock::TimestampText;
use crate::base::digest::{Digest, InterleavedDigest};

use super::hash::{Envelope, HASH_SUFFIX_LEN, NOT_CANONICAL};
use super::record::SESSION_ENDED;

mod chain;
mod log;
mod progress;
mod pruning;
mod trust;
mod verdict;

pub use log::{ListedEnd, LogVerifier};
pub use progress::VerificationProgress;
pub use pruning::RemainsDigest;
pub use trust::TrustAnchors;
pub use verdict::{
    ChainHead, ChainVerification, ImportEntry, LogVerification, ProvenCounts, VerificationReport,
    VerificationVerdict,
};

/// Values of a valid record that link it to its neighbours.
#[derive(Clone, Copy, Debug)]
pub struct RecordLink {
    /// Position in the chain.
    pub sequence: u64,
    /// Time of the event.
    pub timestamp: TimestampText,
    /// Hash of the record before.
    pub previous: Digest,
    /// Hash of this record.
    pub hash: Digest,
    /// True if the record ends its session.
    pub ends: bool,
}

impl RecordLink {
    /// Reads the link values of an envelope.
    ///
    /// # Errors
    /// When a field is missing or invalid.
    #[inline]
    pub fn of(envelope: &Envelope<'_>, hash: Digest) -> Result<Self, String> {
        let timestamp = TimestampText::parse(envelope.timestamp);
        let previous = envelope.previous_hash.parse();
        Ok(Self {
            sequence: envelope.sequence,
            timestamp: timestamp.ok_or("timestamp has the wrong format")?,
            previous: previous.map_err(|_| "previous_hash is not a SHA-256 hash")?,
            hash,
            ends: envelope.event_type == SESSION_ENDED,
        })
    }
}

/// Consecutive valid records of one chain, reduced to the values needed to link them.
#[derive(Clone, Copy, Debug)]
pub struct RecordRun {
    /// First sequence, its time, and the hash before it.
    sequence: u64,
    first_at: TimestampText,
    previous: Digest,
    count: u64,
    end: ChainEnd,
    ends: bool,
}

/// End of a chain or of a part of it: the next record has to fit.
#[derive(Clone, Copy, Debug)]
struct ChainEnd {
    at: TimestampText,
    hash: Digest,
}

impl From<&RecordLink> for RecordRun {
    #[inline]
    fn from(link: &RecordLink) -> Self {
        Self {
            sequence: link.sequence,
            first_at: link.timestamp,
            previous: link.previous,
            count: 1,
            end: ChainEnd {
                at: link.timestamp,
                hash: link.hash,
            },
            ends: link.ends,
        }
    }
}

/// Result of [`RecordRun::extend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendResult {
    /// The record follows.
    Yes,
    /// The record does not follow and begins another stretch.
    No,
}

impl RecordRun {
    /// Adds the next record, if it follows the last one.
    #[inline]
    pub fn extend(&mut self, link: &RecordLink) -> ExtendResult {
        let follows = link.sequence == self.sequence + self.count
            && link.previous == self.end.hash
            && link.timestamp >= self.end.at;
        if !follows {
            return ExtendResult::No;
        }
        self.count += 1;
        self.end.at = link.timestamp;
        self.end.hash = link.hash;
        self.ends |= link.ends;
        ExtendResult::Yes
    }

    /// Reason why the stretch cannot follow a chain of `count` records, if it cannot.
    fn mismatch(&self, count: u64, end: Option<&ChainEnd>) -> Option<String> {
        if self.sequence != count {
            return Some(format!("sequence is {}, expected {count}", self.sequence));
        }
        if end.is_some_and(|end| self.first_at < end.at) {
            return Some("is earlier than the previous event".to_owned());
        }
        if self.previous != end.map_or(Digest::ZERO, |end| end.hash) {
            return Some("previous_hash does not match the previous event".to_owned());
        }
        None
    }
}

/// Content of a valid record that matters beyond its own chain.
#[derive(Clone, Debug)]
pub enum RecordContent<'a> {
    /// No such content.
    Nothing,
    /// First record of its session, with the name of its agent.
    First(String),
    /// The details were pruned; holds the digest of the rest.
    Pruned(Digest),
    /// Entry of the log, with its type and details.
    Entry(Cow<'a, str>, Cow<'a, str>),
}

/// Owner of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordOwner {
    /// The log.
    Log,
    /// A session.
    Session,
}

impl<'a> RecordContent<'a> {
    /// Content of a checked record.
    #[must_use]
    pub fn of(
        envelope: &Envelope<'a>,
        text: impl AsRef<[u8]>,
        hash: &Digest,
        owner: RecordOwner,
    ) -> Self {
        if envelope.is_pruned() {
            return Self::Pruned(RemainsDigest::of(text, hash));
        }
        match owner {
            RecordOwner::Log => Self::Entry(envelope.event_type.into(), envelope.payload.into()),
            RecordOwner::Session if envelope.sequence == 0 => {
                Self::First(agent_in(envelope.payload))
            }
            RecordOwner::Session => Self::Nothing,
        }
    }

    /// Detaches the content from the record.
    #[must_use]
    pub fn into_owned(self) -> RecordContent<'static> {
        match self {
            Self::Nothing => RecordContent::Nothing,
            Self::First(agent) => RecordContent::First(agent),
            Self::Pruned(remains) => RecordContent::Pruned(remains),
            Self::Entry(event_type, payload) => RecordContent::Entry(
                Cow::Owned(event_type.into_owned()),
                Cow::Owned(payload.into_owned()),
            ),
        }
    }
}

/// Checks a record on its own and parses it.
///
/// # Errors
/// A message, when no writer writes such a record.
#[inline]
pub fn check_record<'t>(
    text: &'t (impl AsRef<[u8]> + ?Sized),
    hash: &Digest,
) -> Result<(Envelope<'t>, RecordLink), String> {
    let text = text.as_ref();
    let mut hashing = InterleavedDigest::of(text);
    hashing.step();
    let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8".to_owned())?;
    hashing.step();
    let envelope = match Envelope::split_fast(text, || hashing.step()) {
        Some(usual) => usual,
        None => unusual(text)?,
    };
    let link = check_fields(&envelope, text, hash, &mut hashing)?;
    Ok((envelope, link))
}

/// Checks the fields of a record whose names were already checked, and the hash of `text`.
#[inline]
pub(super) fn check_fields(
    envelope: &Envelope<'_>,
    text: &str,
    hash: &Digest,
    hashing: &mut InterleavedDigest<'_>,
) -> Result<RecordLink, String> {
    hashing.step();
    let link = RecordLink::of(envelope, *hash)?;
    if envelope.is_pruned() {
        return Ok(link);
    }
    hashing.step();
    // The text after the payload is scanned too, although it is not part of the payload: a text that does
    // not end with the searched bytes is scanned in larger steps.
    let start = text
        .len()
        .checked_sub(envelope.payload.len() + HASH_SUFFIX_LEN);
    let rest = start.and_then(|start| text.get(start..));
    let length =
        rest.and_then(|rest| canonical_json::object_length_interleaved(rest, || hashing.step()));
    if length != Some(envelope.payload.len()) {
        return Err(NOT_CANONICAL.to_owned());
    }
    if hashing.finish() != *hash {
        return Err("hash does not match the content".to_owned());
    }
    Ok(link)
}

/// Parses a text that the fast path does not accept.
#[cold]
fn unusual(text: &str) -> Result<Envelope<'_>, String> {
    let envelope = Envelope::split_fields(text)?;
    envelope.check_names()?;
    Ok(envelope)
}

/// Agent named in the first event of a session.
fn agent_in(payload: &str) -> String {
    let payload = serde_json::from_str::<serde_json::Value>(payload).unwrap_or_default();
    let agent = payload.get("agent_type").and_then(|agent| agent.as_str());
    agent.unwrap_or_default().to_owned()
}
