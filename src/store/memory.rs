//! In-memory store for tests: a journal on a simulated disk that can lose unsynced data, tear writes,
//! run out of space, fail to sync, disappear and hang.
//!
//! The store keeps the same promises as the SQLite store and uses the same writer: acknowledged data
//! survives a power cut, and other data may be lost, in whole batches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::writer::BatchWriter;
use super::{
    Ack, AtlasText, Batch, CommitError, LogState, RecordedSession, StateRow, Store, StoreError,
};
use crate::base::clock::Boxed;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::record::Record;
use crate::trace::verification::{ChainHead, TrustAnchors, VerificationReport};

pub mod disk;
mod hang;
mod journal;
mod tables;

use disk::{Corruption, SimulatedDisk};
use hang::DiskHang;
use journal::Journal;
use tables::MemoryTables;

/// In-memory store. Clones share one opening of it.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Mutex<MemoryState>>,
    opening: u64,
    hang: DiskHang,
}

#[derive(Debug)]
struct MemoryState {
    writer: BatchWriter<Journal>,
    opening: u64,
    mended: Option<String>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        // INVARIANT: an empty disk holds nothing that could be damaged.
        Self::open(SimulatedDisk::default())
            .unwrap_or_else(|_| Self::with(Journal::default(), None))
    }
}

impl MemoryStore {
    /// Opens the store on a disk.
    ///
    /// # Errors
    /// When acknowledged data on the disk is damaged.
    pub fn open(disk: SimulatedDisk) -> Result<Self, StoreError> {
        let (journal, mended) = Journal::open(disk)?;
        Ok(Self::with(journal, mended))
    }

    fn with(journal: Journal, mended: Option<String>) -> Self {
        let shared = MemoryState {
            writer: BatchWriter::new(journal),
            opening: 0,
            mended,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            opening: 0,
            hang: DiskHang::default(),
        }
    }

    /// Makes the write after the next `count` writes fail with a full disk, and all later writes.
    pub fn fail_after(&self, count: u64) {
        self.disk(|disk| disk.full_after(count));
    }

    /// Accesses the simulated disk.
    pub fn disk<T>(&self, act: impl FnOnce(&mut SimulatedDisk) -> T) -> T {
        act(&mut self.shared().writer.medium().disk)
    }

    /// Reopens the store as a new process would: faults are cleared, and the content of the disk is read.
    /// Earlier openings write nothing any more, like a dead process.
    ///
    /// # Panics
    /// Never. If the disk is damaged, the store is empty, and tests detect that.
    #[must_use]
    pub fn reopen(&self) -> Self {
        let mut disk = self.disk(|disk| disk.clone());
        disk.repair();
        self.reopen_on(disk)
    }

    /// Reopens the store as a new process would after a power cut: see [`SimulatedDisk::after_power_cut`].
    #[must_use]
    pub fn reopen_after_power_cut(&self, kept: usize, garbled: Corruption) -> Self {
        let left = self.disk(|disk| disk.after_power_cut(kept, garbled));
        self.reopen_on(left)
    }

    fn reopen_on(&self, disk: SimulatedDisk) -> Self {
        let mut shared = self.shared();
        let opened = Journal::open(disk);
        let (journal, mended) = opened.unwrap_or_else(|error| {
            let what = Some(error.to_string());
            (Journal::default(), what)
        });
        shared.writer = BatchWriter::new(journal);
        shared.mended = mended;
        shared.opening += 1;
        self.hang.drop_waiting();
        Self {
            shared: Arc::clone(&self.shared),
            opening: shared.opening,
            hang: DiskHang::default(),
        }
    }

    /// Makes the disk hang since that time: no write ends and nothing is read until [`MemoryStore::end_hang`].
    pub fn hang(&self, since: Instant) {
        self.hang.begin(since);
    }

    /// Ends a hang. Batches queued meanwhile are written, in order.
    pub fn end_hang(&self) {
        self.hang.end(|batch| self.write(batch));
    }

    fn shared(&self) -> MutexGuard<'_, MemoryState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut shared = self.shared();
        if shared.opening != self.opening {
            return Err(StoreError::Poisoned(CommitError::TakenOver));
        }
        shared.writer.write(&[batch])
    }

    fn read<'a, T: Send + 'static>(
        &'a self,
        query: impl FnOnce(&MemoryTables) -> Result<T, StoreError> + Send + 'a,
    ) -> Boxed<'a, Result<T, StoreError>> {
        Box::pin(async move {
            self.hang.wait_until_over().await;
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

    fn heads(&self) -> Boxed<'_, Result<Vec<ChainHead>, StoreError>> {
        self.read(|tables| Ok(tables.heads()))
    }

    fn head(&self, session: SessionId) -> Boxed<'_, Result<Option<ChainHead>, StoreError>> {
        self.read(move |tables| {
            let mut heads = tables.heads().into_iter();
            Ok(heads.find(|head| head.session == session))
        })
    }

    fn log(&self) -> Boxed<'_, Result<LogState, StoreError>> {
        let mended = self.shared().mended.clone();
        self.read(move |tables| {
            let log = tables.log();
            Ok(LogState {
                repair_note: mended,
                ..log
            })
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

    fn verify(&self, trust: TrustAnchors) -> Boxed<'_, Result<VerificationReport, StoreError>> {
        self.read(move |tables| Ok(tables.verify(trust)))
    }
}

/// Rows of state by kind and key.
type StateMap = BTreeMap<(String, String), String>;

#[cfg(test)]
mod tests;
