//! Storage of the record and of the engine's state.
//!
//! The trait [`Store`] has no database in its types: SQLite is the embedded default, and [`memory`]
//! serves tests and can lose and tear data that was not yet on its disk. Data that belongs together (a
//! decision, its records, the change of the queue) is one [`Batch`], and a batch is written completely
//! or not at all.
//!
//! After a failed write the store is poisoned: it accepts nothing more, because the content of the disk
//! is unknown. Contract: an acknowledged batch is durable, and so is every batch before it.

use std::sync::Arc;
use std::time::Instant;

use crate::base::clock::{Boxed, Timestamp};
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::record::Record;
use crate::trace::source::PAGE;
use crate::trace::verification::{
    ChainHead, ImportEntry, TrustAnchors, VerificationProgress, VerificationReport,
};

mod error;
pub mod key;
mod location;
pub mod memory;
mod reader;
pub mod space;
pub mod sqlite;
mod writer;

pub use error::{BackendError, CommitError, FileChange, StoreError};
pub use location::{StoreUrl, open, open_read_only, open_reader};
pub use reader::StoreReader;

/// Data that is written atomically.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Records, in the order of their chains.
    pub records: Vec<Record>,
    /// Pieces of state that changed.
    pub state: Vec<StateRow>,
    /// Heads of the log that were signed.
    pub seals: Vec<Seal>,
    /// Atlases that came into force, kept for later readers of the record.
    pub atlases: Vec<AtlasText>,
    /// Records whose details are pruned; only the envelope and the hash stay.
    pub prune: Vec<PruneRanges>,
    /// Rewrites the store, so that deleted data cannot be read in its files.
    pub compact: bool,
}

impl Batch {
    /// Creates a batch of records only.
    #[must_use]
    pub fn of(records: Vec<Record>) -> Self {
        Self {
            records,
            ..Self::default()
        }
    }

    /// True if the batch contains nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Appends another batch to this one.
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

/// A row of engine state; the store does not interpret it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// Kind of the row.
    pub kind: String,
    /// Key within the kind.
    pub key: String,
    /// Content; `None` deletes the row.
    pub body: Option<String>,
}

/// A signed head of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Number of entries that it covers.
    pub size: u64,
    /// The signed note.
    pub note: String,
}

/// Text of an Atlas as its steward wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtlasText {
    /// Digest of the text, in hexadecimal digits.
    pub hash: String,
    /// Identifier of the Atlas.
    pub atlas_id: String,
    /// Version of the Atlas.
    pub version: String,
    /// Full text.
    pub text: String,
}

/// Records of a session to prune.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneRanges {
    /// The session.
    pub session: SessionId,
    /// First and last sequence number of each range of records.
    pub ranges: Vec<(u64, u64)>,
}

/// Summary of a recorded session.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RecordedSession {
    /// The session.
    pub session: SessionId,
    /// Agent of the session.
    pub agent: String,
    /// Time of the first event.
    pub started_at: Timestamp,
    /// Time of the last event.
    pub last_at: Timestamp,
    /// Number of events in its chain.
    pub events: u64,
    /// True if the session has ended.
    pub ended: bool,
    /// Imports that brought it, or parts of it, into this store.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<ImportEntry>,
}

/// Agent name under which the log appears in lists of sessions.
pub const LOG_AGENT: &str = "cra, governance log";

/// State of the log over all sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogState {
    /// The log, which is a session. Its name exists before its first entry.
    pub log: SessionId,
    /// The newest signed head.
    pub seal: Option<Seal>,
    /// Number of records of all sessions written up to the last entry that this head covers.
    pub sealed_records: u64,
    /// Description of the repair made when the store was opened, if any.
    pub repair_note: Option<String>,
    /// Signed head from the file next to the store, if there is one.
    pub head_file_note: Option<String>,
}

/// Start of [`LogState::repair_note`] if an unfinished write was dropped.
const UNFINISHED_WRITE: &str = "an unfinished write";

impl LogState {
    /// True if an unfinished write was dropped when the store was opened.
    #[must_use]
    pub fn has_dropped_write(&self) -> bool {
        let mended = self.repair_note.as_deref().unwrap_or_default();
        mended.contains(UNFINISHED_WRITE)
    }
}

/// Completes when a batch is durable.
pub type Ack = Boxed<'static, Result<(), StoreError>>;

/// Durable storage of the record.
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// Queues a batch. Completes when the queue has space for it; the [`Ack`] completes when the batch is
    /// durable. Batches are written in the order of these calls.
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>>;

    /// Start of the current write, if one is running. A store that writes instantly need not report it.
    fn writing_since(&self) -> Option<Instant> {
        None
    }

    /// Reason why space for more records is missing; `None` if there is enough. May make a system call.
    fn shortage(&self) -> Option<String> {
        None
    }

    /// Reason why space for more records was missing after the last commit; `None` if there was enough.
    /// Makes no system call.
    fn known_shortage(&self) -> Option<Arc<str>> {
        None
    }

    /// True if the head file next to the store was missing when it was opened, although it should exist.
    fn was_head_missing(&self) -> bool {
        false
    }

    /// Number of times that another program changed the files while they were open. A commit found these
    /// changes harmless; only a full verification proves it.
    fn foreign_changes(&self) -> u64 {
        0
    }

    /// Notes that recording stops now, so that the next start records it. Works without the record.
    fn note_outage(&self, what: &str) {
        let _ = what;
    }

    /// All rows of state, by kind and key.
    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>>;

    /// Ends of all chains.
    fn heads(&self) -> Boxed<'_, Result<Vec<ChainHead>, StoreError>>;

    /// End of one chain, if it exists.
    fn head(&self, session: SessionId) -> Boxed<'_, Result<Option<ChainHead>, StoreError>>;

    /// State of the log.
    fn log(&self) -> Boxed<'_, Result<LogState, StoreError>>;

    /// Records of all sessions in the order they were written, without the first `from`.
    fn records(&self, from: u64, limit: usize) -> Boxed<'_, Result<Vec<Record>, StoreError>>;

    /// Records of a session, starting at a sequence number.
    fn session_records(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Record>, StoreError>>;

    /// Hashes of a session's records, in order.
    fn hashes(&self, session: SessionId) -> Boxed<'_, Result<Vec<Digest>, StoreError>>;

    /// Recorded sessions, newest first, without the log.
    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>>;

    /// The log as a session, if it has an entry.
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

    /// Entries of the log with one of these types, in the order of the log.
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

    /// Events of a session, starting at a sequence number.
    fn events(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Event>, StoreError>> {
        Box::pin(async move {
            let records = self.session_records(session, from, limit).await?;
            let events = records.iter().map(Record::event_of);
            events
                .collect::<Result<_, _>>()
                .map_err(|what| StoreError::Damaged { what })
        })
    }

    /// Text of an Atlas that was in force once, by its digest.
    fn atlas(&self, hash: String) -> Boxed<'_, Result<Option<AtlasText>, StoreError>>;

    /// Verifies the whole record. The log and its signed heads come from the store; keys and heads from
    /// elsewhere come in `trust`.
    fn verify(&self, trust: TrustAnchors) -> Boxed<'_, Result<VerificationReport, StoreError>>;

    /// Verifies the whole record like [`Store::verify`], with progress and cancellation. A cancelled
    /// verification ends with an error: it proves nothing. A store that verifies instantly need not stop.
    fn verify_with_progress(
        &self,
        trust: TrustAnchors,
        progress: VerificationProgress,
    ) -> Boxed<'_, Result<VerificationReport, StoreError>> {
        let _ = progress;
        self.verify(trust)
    }
}
