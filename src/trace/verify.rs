//! Whether the record holds. Shares nothing with the writer but the text that a hash covers.
//!
//! Three things are looked at. Each record by itself ([`check`]): every field exactly as a writer
//! writes it, and the hash that of the text. Each chain: every record follows the one before. And the
//! log over all chains ([`LogVerifier`]): the log is a session of its own whose entries say, again and
//! again, where every chain ended; its tree has a root, and that root is signed or kept elsewhere. So
//! what is proven is what some head covers; what lies behind the last head is not, and is said not to
//! be.

use std::borrow::Cow;

use crate::base::clock::TimestampText;
use crate::base::digest::Digest;

use super::hash::Envelope;
use super::record::SESSION_ENDED;

mod chain;
mod log;
mod pruned;
mod trust;
mod verdict;

pub use log::{Ended, LogVerifier};
pub use pruned::Remains;
pub use trust::Trust;
pub use verdict::{Checked, Head, LogChecked, Proven, Report, Verdict};

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
    pub fn of(envelope: &Envelope<'a>, text: &str, hash: &Digest, owner: Owner) -> Self {
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
pub fn check<'t>(text: &'t str, hash: &Digest) -> Result<(Envelope<'t>, Link), String> {
    let envelope = Envelope::take_apart(text)?;
    envelope.check_taken_apart(text)?;
    let link = Link::of(&envelope, *hash)?;
    if !envelope.is_pruned() && Digest::of(text) != *hash {
        return Err("hash does not match the content".to_owned());
    }
    Ok((envelope, link))
}

/// The agent that the first event of a session names.
fn agent_in(payload: &str) -> String {
    let payload = serde_json::from_str::<serde_json::Value>(payload).unwrap_or_default();
    let agent = payload.get("agent_type").and_then(|agent| agent.as_str());
    agent.unwrap_or_default().to_owned()
}
