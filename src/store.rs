//! Where the record and the engine's state are kept.
//!
//! One trait, [`Store`], with no database in its types: SQLite is the embedded default, [`memory`]
//! serves tests. What belongs together (a decision, its events, the change of the queue) is one
//! [`Batch`], and a batch is written whole or not at all.
//!
//! After a write has failed, the store is poisoned: it takes nothing more, because nobody can say
//! what is on disk. Contract: an acknowledged batch is durable, and so is every batch before it.

use crate::base::clock::{Boxed, Timestamp};
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::verify::{Checked, Head};

pub mod memory;
pub mod sqlite;

/// What is written together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Events, sealed, in the order of their chains.
    pub events: Vec<Event>,
    /// Pieces of state that changed.
    pub state: Vec<StateRow>,
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
}

/// Completes when a batch is durable.
pub type Ack = Boxed<'static, Result<(), StoreError>>;

/// A place that keeps the record.
pub trait Store: Send + Sync + 'static {
    /// Hands over a batch. Completes when there is room for it; the [`Ack`] completes when it is
    /// durable. Batches are written in the order they are handed over.
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>>;

    /// Every piece of state, by kind and key.
    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>>;

    /// The end of every chain.
    fn heads(&self) -> Boxed<'_, Result<Vec<Head>, StoreError>>;

    /// The sessions on record, newest first.
    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>>;

    /// Events of a session, from a sequence number on.
    fn events(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Event>, StoreError>>;

    /// Checks every chain.
    fn verify(&self) -> Boxed<'_, Result<Vec<Checked>, StoreError>>;
}

/// Why a store does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or made.
    #[error("cannot open the store `{path}`: {what}")]
    Open {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// The file is something else.
    #[error("`{path}` is not a cra store: {what}")]
    Foreign {
        /// The file.
        path: String,
        /// What it seems to be.
        what: String,
    },
    /// The file was written by another version.
    #[error("`{path}` has store format {found}; this version of cra reads format {known}")]
    Version {
        /// The file.
        path: String,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Another console has it.
    #[error("the store `{path}` is in use by another console{holder}")]
    InUse {
        /// The file.
        path: String,
        /// Who, where that is known.
        holder: String,
    },
    /// What is in it cannot be read.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// A write failed; nothing more is taken.
    #[error("the store no longer takes records: {what}")]
    Poisoned {
        /// What failed.
        what: String,
    },
}

impl StoreError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Open { .. } => {
                "check the folder and its permissions, or name another with --data-dir"
            }
            Self::Foreign { .. } => "nothing was changed; name another folder with --data-dir",
            Self::Version { .. } => {
                "nothing was changed; use the version of cra that wrote it, or another --data-dir"
            }
            Self::InUse { .. } => "use that console, or name another folder with --data-dir",
            Self::Damaged { .. } => {
                "nothing was changed; keep the file, restore a backup beside it, and name its folder with --data-dir"
            }
            Self::Poisoned { .. } => {
                "check the disk (space, permissions, errors), then start cra again: what was acknowledged is kept"
            }
        }
    }
}
