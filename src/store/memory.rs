//! A store in memory, for tests: a journal on a disk that can lose what was not synced, tear what was
//! being written, run out of space, fail to sync, be taken away and hang.
//!
//! It keeps the same promises as the real one and is written through the same writer: what was
//! acknowledged is there after a power cut, and what was not may be gone, whole batches at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::writer::Writer;
use super::{Ack, AtlasText, Batch, LogState, RecordedSession, StateRow, Store, StoreError};
use crate::base::clock::Boxed;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::record::Record;
use crate::trace::verify::{Head, Report, Trust};

pub mod disk;
mod hang;
mod journal;
mod tables;

use disk::{Disk, Garbled};
use hang::Hang;
use journal::Journal;
use tables::Tables;

/// A store in memory. Clones are the same opening of it.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
    opening: u64,
    hang: Hang,
}

#[derive(Debug)]
struct Shared {
    writer: Writer<Journal>,
    opening: u64,
    mended: Option<String>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        // INVARIANT: an empty disk has nothing on it that could be damaged.
        Self::open(Disk::default()).unwrap_or_else(|_| Self::with(Journal::default(), None))
    }
}

impl MemoryStore {
    /// Opens what is on a disk.
    ///
    /// # Errors
    /// When something on it is damaged that was acknowledged.
    pub fn open(disk: Disk) -> Result<Self, StoreError> {
        let (journal, mended) = Journal::open(disk)?;
        Ok(Self::with(journal, mended))
    }

    fn with(journal: Journal, mended: Option<String>) -> Self {
        let shared = Shared {
            writer: Writer::new(journal),
            opening: 0,
            mended,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            opening: 0,
            hang: Hang::default(),
        }
    }

    /// Makes the write after the next `count` fail for want of space, and all that follow.
    pub fn fail_after(&self, count: u64) {
        self.disk(|disk| disk.full_after(count));
    }

    /// Does something to the disk.
    pub fn disk<T>(&self, act: impl FnOnce(&mut Disk) -> T) -> T {
        act(&mut self.shared().writer.medium().disk)
    }

    /// The same store as a new process would open it: working again, with what is on its disk.
    /// Earlier openings write nothing any more, as a process that died does not.
    ///
    /// # Panics
    /// Never by itself: when the disk is damaged, the store comes back empty, and tests see that.
    #[must_use]
    pub fn reopen(&self) -> Self {
        let mut disk = self.disk(|disk| disk.clone());
        disk.repair();
        self.reopen_on(disk)
    }

    /// The same store as a new process would open it after a power cut: see [`Disk::after_power_cut`].
    #[must_use]
    pub fn reopen_after_power_cut(&self, kept: usize, garbled: Garbled) -> Self {
        let left = self.disk(|disk| disk.after_power_cut(kept, garbled));
        self.reopen_on(left)
    }

    fn reopen_on(&self, disk: Disk) -> Self {
        let mut shared = self.shared();
        let opened = Journal::open(disk);
        let (journal, mended) = opened.unwrap_or_else(|error| {
            let what = Some(error.to_string());
            (Journal::default(), what)
        });
        shared.writer = Writer::new(journal);
        shared.mended = mended;
        shared.opening += 1;
        self.hang.drop_waiting();
        Self {
            shared: Arc::clone(&self.shared),
            opening: shared.opening,
            hang: Hang::default(),
        }
    }

    /// Makes the disk hang, as if since that moment: no write ends and nothing is read until
    /// [`MemoryStore::go_on`].
    pub fn hang(&self, since: Instant) {
        self.hang.begin(since);
    }

    /// Ends a hang. Batches that were handed over meanwhile are written, in order.
    pub fn go_on(&self) {
        self.hang.end(|batch| self.write(batch));
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut shared = self.shared();
        if shared.opening != self.opening {
            return Err(StoreError::Poisoned {
                what: "another process has it".to_owned(),
            });
        }
        shared.writer.write(&[batch])
    }

    fn read<'a, T: Send + 'static>(
        &'a self,
        query: impl FnOnce(&Tables) -> Result<T, StoreError> + Send + 'a,
    ) -> Boxed<'a, Result<T, StoreError>> {
        Box::pin(async move {
            self.hang.is_over().await;
            query(&self.shared().writer.medium().tables)
        })
    }
}

impl Store for MemoryStore {
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>> {
        let ack = self.hang.write(batch, |batch| self.write(batch));
        Box::pin(async move { Ok(ack) })
    }

    fn writing_since(&self) -> Option<Instant> {
        self.hang.writing_since()
    }

    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>> {
        self.read(|tables| Ok(tables.state()))
    }

    fn heads(&self) -> Boxed<'_, Result<Vec<Head>, StoreError>> {
        self.read(|tables| Ok(tables.heads()))
    }

    fn head(&self, session: SessionId) -> Boxed<'_, Result<Option<Head>, StoreError>> {
        self.read(move |tables| {
            let mut heads = tables.heads().into_iter();
            Ok(heads.find(|head| head.session == session))
        })
    }

    fn log(&self) -> Boxed<'_, Result<LogState, StoreError>> {
        let mended = self.shared().mended.clone();
        self.read(move |tables| {
            let log = tables.log();
            Ok(LogState { mended, ..log })
        })
    }

    fn records(&self, from: u64, limit: usize) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.read(move |tables| {
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            let records = tables.records.iter().skip(from).take(limit);
            Ok(records.cloned().collect())
        })
    }

    fn hashes(&self, session: SessionId) -> Boxed<'_, Result<Vec<Digest>, StoreError>> {
        self.read(move |tables| Ok(tables.hashes(&session)))
    }

    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>> {
        self.read(|tables| Ok(tables.sessions()))
    }

    fn session_records(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.read(move |tables| {
            let records = tables.of(&session).filter(|one| one.sequence >= from);
            Ok(records.take(limit).cloned().collect())
        })
    }

    fn atlas(&self, hash: String) -> Boxed<'_, Result<Option<AtlasText>, StoreError>> {
        self.read(move |tables| Ok(tables.atlases.get(&hash).cloned()))
    }

    fn verify(&self, trust: Trust) -> Boxed<'_, Result<Report, StoreError>> {
        self.read(move |tables| Ok(tables.verify(trust)))
    }
}

/// Pieces of state by kind and key.
type State = BTreeMap<(String, String), String>;

#[cfg(test)]
mod tests;
