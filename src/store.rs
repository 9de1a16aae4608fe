//! Where the record and the engine's state are kept.
//!
//! One trait, [`Store`], with no database in its types: SQLite is the embedded default, [`memory`]
//! serves tests and can lose and tear what was not yet on its disk. What belongs together (a decision,
//! its records, the change of the queue) is one [`Batch`], and a batch is written whole or not at all.
//!
//! After a write has failed, the store is poisoned: it takes nothing more, because nobody can say
//! what is on disk. Contract: an acknowledged batch is durable, and so is every batch before it.

use std::sync::Arc;
use std::time::Instant;

use crate::base::clock::{Boxed, Timestamp};
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::record::Record;
use crate::trace::source::PAGE;
use crate::trace::verify::{Head, Imported, Progress, Report, Trust};

mod error;
pub mod key;
pub mod memory;
pub mod space;
pub mod sqlite;
mod writer;

pub use error::StoreError;

/// What is written together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Records, in the order of their chains.
    pub records: Vec<Record>,
    /// Pieces of state that changed.
    pub state: Vec<StateRow>,
    /// Heads of the log that were signed.
    pub seals: Vec<Seal>,
    /// Atlases that came into force, for whoever reads the record later.
    pub atlases: Vec<AtlasText>,
    /// Records whose content goes; only the envelope and the hash stay.
    pub prune: Vec<Prune>,
    /// Rewrites the store, so that nothing that was ever deleted can be read in its files.
    pub compact: bool,
}

impl Batch {
    /// A batch of records alone.
    #[must_use]
    pub fn of(records: Vec<Record>) -> Self {
        Self {
            records,
            ..Self::default()
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds another batch behind this one.
    pub fn append(&mut self, other: Self) {
        let Self {
            records,
            state,
            seals,
            atlases,
            prune,
            compact,
        } = other;
        self.records.extend(records);
        self.state.extend(state);
        self.seals.extend(seals);
        self.atlases.extend(atlases);
        self.prune.extend(prune);
        self.compact |= compact;
    }
}

/// A piece of state; the store does not look inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// What kind of piece.
    pub kind: String,
    /// Which.
    pub key: String,
    /// Its content; `None` drops it.
    pub body: Option<String>,
}

/// A head of the log that was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Entries that it covers.
    pub size: u64,
    /// The signed note.
    pub note: String,
}

/// An Atlas as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtlasText {
    /// Digest of the text, in hexadecimal digits.
    pub hash: String,
    /// Its identifier.
    pub atlas_id: String,
    /// Its version.
    pub version: String,
    /// The text.
    pub text: String,
}

/// Records of a session whose content goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prune {
    /// The session.
    pub session: SessionId,
    /// First and last sequence number of each run of records.
    pub ranges: Vec<(u64, u64)>,
}

/// A session as the record has it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RecordedSession {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: String,
    /// When its first event happened.
    pub started_at: Timestamp,
    /// When its last event happened.
    pub last_at: Timestamp,
    /// Events in its chain.
    pub events: u64,
    /// Whether it has ended.
    pub ended: bool,
    /// Imports that brought it, or parts of it, into this store.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<Imported>,
}

/// Agent that the log is listed under, where it is listed among sessions.
pub const LOG_AGENT: &str = "cra, governance log";

/// What the store keeps about the log over all sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogState {
    /// The log, which is a session of its own. It has its name before it has its first entry.
    pub log: SessionId,
    /// The newest signed head.
    pub seal: Option<Seal>,
    /// Records that were written up to the entry which that head covers last, in all sessions.
    pub sealed_records: u64,
    /// What was mended when the store was opened, for people.
    pub mended: Option<String>,
    /// The signed head in the file beside the store, where there is one.
    pub kept_head: Option<String>,
}

/// The words that [`LogState::mended`] begins with where a write was dropped that had not been finished.
const UNFINISHED_WRITE: &str = "an unfinished write";

impl LogState {
    /// True when a write that had not been finished was dropped as the store was opened.
    #[must_use]
    pub fn dropped_a_write(&self) -> bool {
        let mended = self.mended.as_deref().unwrap_or_default();
        mended.contains(UNFINISHED_WRITE)
    }
}

/// Completes when a batch is durable.
pub type Ack = Boxed<'static, Result<(), StoreError>>;

/// A place that keeps the record.
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// Hands over a batch. Completes when there is room for it; the [`Ack`] completes when it is
    /// durable. Batches are written in the order they are handed over.
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>>;

    /// Start of the write that is under way, if one is. A store that needs no time for it need not
    /// say.
    fn writing_since(&self) -> Option<Instant> {
        None
    }

    /// The reason why there is no room for more records, if there is none. It may take a system call.
    fn shortage(&self) -> Option<String> {
        None
    }

    /// The reason why there was no room for more records after the last commit, if there was none. It takes no system
    /// call.
    fn known_shortage(&self) -> Option<Arc<str>> {
        None
    }

    /// True when the head beside the store was missing as it was opened, and there should have been one.
    fn was_headless(&self) -> bool {
        false
    }

    /// Number of times that another program was found to have changed the files while they were open. The changes were
    /// no damage, as far as a commit can tell: a whole check says more.
    fn foreign_changes(&self) -> u64 {
        0
    }

    /// Notes that nothing is recorded from now on, for the next start to put on record. It does not need the record.
    fn note_outage(&self, what: &str) {
        let _ = what;
    }

    /// Every piece of state, by kind and key.
    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>>;

    /// The end of every chain.
    fn heads(&self) -> Boxed<'_, Result<Vec<Head>, StoreError>>;

    /// The end of one chain, if there is one.
    fn head(&self, session: SessionId) -> Boxed<'_, Result<Option<Head>, StoreError>>;

    /// What is kept about the log.
    fn log(&self) -> Boxed<'_, Result<LogState, StoreError>>;

    /// Records of all sessions in the order they were written, without the first `from`.
    fn records(&self, from: u64, limit: usize) -> Boxed<'_, Result<Vec<Record>, StoreError>>;

    /// Records of a session, from a sequence number on.
    fn session_records(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Record>, StoreError>>;

    /// The hashes of a session's records, in order.
    fn hashes(&self, session: SessionId) -> Boxed<'_, Result<Vec<Digest>, StoreError>>;

    /// The sessions on record, newest first. The log itself is not one of them.
    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>>;

    /// The log as a session of its own, if it has an entry.
    fn log_session(&self) -> Boxed<'_, Result<Option<RecordedSession>, StoreError>> {
        Box::pin(async move {
            let log = self.log().await?.log;
            let first = self.events(log.clone(), 0, 1).await?;
            let head = self.head(log.clone()).await?;
            let both = first.first().zip(head);
            Ok(both.map(|(first, head)| RecordedSession {
                session: log,
                agent: LOG_AGENT.to_owned(),
                started_at: first.timestamp,
                last_at: head.last_at,
                events: head.count,
                ended: false,
                imports: Vec::new(),
            }))
        })
    }

    /// Entries of the log that have one of these types, in its order.
    fn log_entries(
        &self,
        types: &'static [&'static str],
    ) -> Boxed<'_, Result<Vec<Event>, StoreError>> {
        Box::pin(async move {
            let log = self.log().await?.log;
            let (mut found, mut from) = (Vec::new(), 0);
            loop {
                let page = self.events(log.clone(), from, PAGE).await?;
                let read = page.len();
                from += read as u64;
                let wanted = |entry: &Event| types.contains(&entry.event_type.as_str());
                found.extend(page.into_iter().filter(wanted));
                if read < PAGE {
                    return Ok(found);
                }
            }
        })
    }

    /// Events of a session, from a sequence number on.
    fn events(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Event>, StoreError>> {
        Box::pin(async move {
            let records = self.session_records(session, from, limit).await?;
            let events = records.iter().map(Record::event);
            events
                .collect::<Result<_, _>>()
                .map_err(|what| StoreError::Damaged { what })
        })
    }

    /// The text of an Atlas that was in force once, by its digest.
    fn atlas(&self, hash: String) -> Boxed<'_, Result<Option<AtlasText>, StoreError>>;

    /// Checks the whole record. The log and its signed heads are the store's own; keys and heads from
    /// elsewhere are in `trust`.
    fn verify(&self, trust: Trust) -> Boxed<'_, Result<Report, StoreError>>;

    /// The same, for somebody who looks on and may stop it. A check that is stopped ends with an error:
    /// it proves nothing. A store that needs no time for it need not stop.
    fn verify_watched(
        &self,
        trust: Trust,
        progress: Progress,
    ) -> Boxed<'_, Result<Report, StoreError>> {
        let _ = progress;
        self.verify(trust)
    }
}
