//! Maintenance of a record while no console uses it: import of sessions, pruning of old events, change of
//! the key. Each operation leaves an entry in the log, and a signed head.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::acknowledgement::Acknowledgement;
use super::actor::write_first_entries;
use super::ledger::{EntryPosition, Ledger, LogError, ReadBack};
pub use super::state_seal::UntrustedRows;
use super::state_seal::{SealCheck, StateSeal, writer_version};
use crate::base::clock::Clock;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::store::{Batch, Seal, Store, StoreError};
use crate::trace::event::{KeyRotated, LogStarted, Payload, RetentionApplied, TraceImported};
use crate::trace::head::KnownHead;
use crate::trace::note::Signer;
use crate::trace::record::Record;
use crate::trace::verification::RemainsDigest;

mod legal_holds;
mod pruning;

pub use pruning::{PruneRequest, PruneResult};

/// Most records that are written or read together.
const PAGE: usize = 1024;

/// An open record, with exclusive access for maintenance.
pub struct Maintenance {
    store: Arc<dyn Store>,
    ledger: Ledger,
    read_back: ReadBack,
    state_seal: StateSeal,
    clock: Arc<dyn Clock>,
    /// Sessions that are about to be imported, and have no entry in the log yet.
    announced: BTreeMap<String, TraceImported>,
}

/// Key that sealed the state of a store.
#[derive(Clone, Copy, Debug)]
pub enum StateKey<'k> {
    /// The key that signs.
    Signer,
    /// The key that signed before.
    Old(&'k Signer),
    /// A key that is lost: the state cannot be verified.
    Lost,
}

/// Reason why maintenance of a record failed.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// The log cannot be continued.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another session of that name is on record.
    #[error("session `{0}` is already on record, with other events")]
    OtherSession(SessionId),
    /// A session of that name is still live in this store.
    #[error("session `{0}` is still open in this store")]
    Live(SessionId),
    /// The session is not on record.
    #[error("session `{0}` is not on record")]
    NoSession(SessionId),
    /// The session has no legal hold.
    #[error("session `{0}` has no legal hold")]
    NotHeld(SessionId),
}

impl MaintenanceError {
    /// Returns advice on the error.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Store(error) => error.help(),
            Self::Log(_) => "run cra trace verify for details",
            Self::NoSession(_) => "run cra trace list to see the sessions on record",
            Self::NotHeld(_) => "run cra trace hold --list to see the sessions under a legal hold",
            Self::OtherSession(_) | Self::Live(_) => {
                "nothing was changed; import it into another store with --data-dir"
            }
        }
    }
}

impl Maintenance {
    /// Opens the log of a store, and signs all unsigned records. Heads known from other places must agree
    /// with it.
    ///
    /// # Errors
    /// Fails when the log differs from the signed one, or the store fails.
    pub async fn open(
        store: Arc<dyn Store>,
        signer: Signer,
        clock: Arc<dyn Clock>,
        known: &[KnownHead],
    ) -> Result<Self, MaintenanceError> {
        Self::open_sealed_by(StateKey::Signer, store, signer, clock, known).await
    }

    /// Opens the log of a store whose state may be sealed with another key than the signing one.
    ///
    /// # Errors
    /// Fails when the log differs from the signed one, or the store fails.
    pub async fn open_sealed_by(
        state_key: StateKey<'_>,
        store: Arc<dyn Store>,
        signer: Signer,
        clock: Arc<dyn Clock>,
        known: &[KnownHead],
    ) -> Result<Self, MaintenanceError> {
        let key = signer.verifier();
        let rows = store.state().await?;
        let by = writer_version(store.as_ref(), &store.log().await?).await?;
        let sealed_by = match state_key {
            StateKey::Signer | StateKey::Lost => &signer,
            StateKey::Old(old) => old,
        };
        let mut state_seal = StateSeal::new(sealed_by, &rows);
        let (mut ledger, read_back) = Ledger::open(store.as_ref(), signer, known).await?;
        match (state_seal.check(&rows, &ledger, by), state_key) {
            (SealCheck::Valid, _) => {}
            (SealCheck::KeyLost, _) | (SealCheck::Invalid(_), StateKey::Lost) => {
                state_seal.orphan();
            }
            // State that does not fit its seal stays as it is: the next console reports it.
            (SealCheck::Invalid(_), StateKey::Signer | StateKey::Old(_)) => state_seal.distrust(),
        }
        let mut entries: Vec<Payload> = Vec::new();
        if ledger.is_new() {
            entries.push(LogStarted::now(&key).into());
        }
        let before = Acknowledgement::find(&store.state().await?);
        let found = ledger.recovery_entry(&store.log().await?, before);
        entries.extend(found.map(Payload::from));
        let now = clock.now();
        let read_back = if !entries.is_empty() || !ledger.is_sealed() {
            let batch = Batch {
                state: before.iter().map(|before| before.stopped().row()).collect(),
                ..Batch::default()
            };
            let seal = &mut state_seal;
            let begun =
                write_first_entries(&store, &mut ledger, seal, read_back, entries, batch, now);
            begun.await?.0
        } else {
            read_back
        };
        Ok(Self {
            store,
            ledger,
            read_back,
            state_seal,
            clock,
            announced: BTreeMap::new(),
        })
    }

    /// Returns the number of events of each session that are already on record.
    ///
    /// # Errors
    /// Fails when a recorded session is not the beginning of the import, or is still live.
    pub async fn count_known_events(
        &self,
        sessions: &BTreeMap<SessionId, Vec<Digest>>,
    ) -> Result<BTreeMap<SessionId, u64>, MaintenanceError> {
        let live = self.store.state().await?;
        let live: BTreeSet<_> = live
            .into_iter()
            .filter(|row| row.kind == "session")
            .map(|row| row.key)
            .collect();
        let mut known = BTreeMap::new();
        for (session, hashes) in sessions {
            if live.contains(session.as_str()) || session == self.ledger.log() {
                return Err(MaintenanceError::Live(session.clone()));
            }
            let there = self.store.hashes(session.clone()).await?;
            if !hashes.starts_with(&there) {
                return Err(MaintenanceError::OtherSession(session.clone()));
            }
            known.insert(session.clone(), there.len() as u64);
        }
        Ok(known)
    }

    /// Announces a session to import. The log entry is written together with its first record, with the
    /// number of records, so that an interrupted import is visible.
    pub fn announce(&mut self, imported: TraceImported) {
        let session = imported.imported_session.clone();
        self.announced.insert(session, imported);
    }

    /// Imports verified records of announced sessions that continue the recorded ones.
    ///
    /// # Errors
    /// Fails when the store fails.
    pub async fn take_in(&mut self, records: Vec<Record>) -> Result<(), MaintenanceError> {
        let now = self.clock.now();
        let mut pruned: BTreeMap<SessionId, OldRecords> = BTreeMap::new();
        let mut batch = Batch::default();
        for record in records {
            if let Some(imported) = self.announced.remove(record.session.as_str()) {
                batch.records.push(self.ledger.entry(imported, now));
            }
            self.ledger.adopt_record(&record, now);
            if record.envelope().is_ok_and(|envelope| envelope.is_pruned()) {
                pruned
                    .entry(record.session.clone())
                    .or_default()
                    .note(&record);
            }
            batch.records.push(record);
        }
        for (session, old) in pruned {
            // The log of the original store explained the pruning; this log needs its own entry.
            let entry = RetentionApplied {
                reason: "pruned before the import".to_owned(),
                ..old.entry(&session)
            };
            batch.records.push(self.ledger.entry(entry, now));
        }
        self.write(batch).await
    }

    /// Counts the rows of state that the next console will drop, if any.
    ///
    /// # Errors
    /// Fails when the store fails.
    pub async fn untrusted_rows(&self) -> Result<Option<UntrustedRows>, MaintenanceError> {
        if self.state_seal.is_trusted() {
            return Ok(None);
        }
        Ok(Some(UntrustedRows::of(&self.store.state().await?)))
    }

    /// Changes the signing key. The entry that names the new key and the head that covers it, which both
    /// keys sign, are written together: no console finds one without the other.
    ///
    /// # Errors
    /// Fails when the store fails, or does not return what was written.
    pub async fn rotate_key(&mut self, next: Signer, by: &str) -> Result<Seal, MaintenanceError> {
        self.seal().await?;
        let rotated = KeyRotated {
            key: next.verifier().to_string(),
            by: by.to_owned(),
        };
        let now = self.clock.now();
        let entry = self.ledger.entry(rotated, now);
        let (record, head) = self.ledger.seal_all(now);
        let place = self.ledger.position(record.hash);
        let mut seal = self.ledger.sign(&head);
        seal.note.push_str(&next.signature(&head.to_string()));
        let mut batch = Batch {
            seals: vec![seal.clone()],
            ..Batch::of(vec![entry, record])
        };
        self.state_seal
            .change_key(&next, &self.store.state().await?);
        self.state_seal.add_seal(&mut batch, &self.ledger);
        self.store.append(batch).await?.await?;
        self.read_up_to(place).await?;
        self.ledger.sign_with(next);
        Ok(seal)
    }

    /// Rewrites the store, so that pruned or deleted data cannot be read in its files.
    ///
    /// # Errors
    /// Fails when the store fails. The pruning stays in effect.
    pub async fn compact(&mut self) -> Result<(), MaintenanceError> {
        let batch = Batch {
            compact: true,
            ..Batch::default()
        };
        self.store.append(batch).await?.await?;
        Ok(())
    }

    /// Signs all unsigned records. Returns the newest signed head, if there is one.
    ///
    /// # Errors
    /// Fails when the store fails, or does not return what was written.
    pub async fn seal(&mut self) -> Result<Option<Seal>, MaintenanceError> {
        if self.ledger.is_sealed() {
            return Ok(self.store.log().await?.seal);
        }
        Ok(Some(self.seal_all().await?))
    }

    async fn seal_all(&mut self) -> Result<Seal, LogError> {
        let (record, head) = self.ledger.seal_all(self.clock.now());
        let place = self.ledger.position(record.hash);
        let mut batch = Batch::of(vec![record]);
        self.state_seal.add_seal(&mut batch, &self.ledger);
        self.store.append(batch).await?.await?;
        self.read_up_to(place).await?;
        let seal = self.ledger.sign(&head);
        let batch = Batch {
            seals: vec![seal.clone()],
            ..Batch::default()
        };
        self.store.append(batch).await?.await?;
        Ok(seal)
    }

    /// Reads written records back, up to the entry at that position.
    async fn read_up_to(&mut self, entry: EntryPosition) -> Result<(), LogError> {
        let read_back = std::mem::take(&mut self.read_back);
        let (store, log) = (Arc::clone(&self.store), self.ledger.log().clone());
        self.read_back = read_back.read_up_to(store, log, entry).await?;
        Ok(())
    }

    /// Writes a batch, and seals as often as a console would.
    async fn write(&mut self, mut batch: Batch) -> Result<(), MaintenanceError> {
        self.state_seal.add_seal(&mut batch, &self.ledger);
        self.store.append(batch).await?.await?;
        if self.ledger.is_seal_due() {
            self.seal().await?;
        }
        Ok(())
    }
}

impl fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = self.ledger.log();
        f.debug_struct("Upkeep")
            .field("log", log)
            .finish_non_exhaustive()
    }
}

/// Mode of an operation: execute, or only report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceMode {
    /// Execute the operation.
    Execute,
    /// Only report what would be done.
    Report,
}

/// Events of a session that are older than their rules allow.
#[derive(Debug, Default)]
struct OldRecords {
    ranges: Vec<(u64, u64)>,
    remains: RemainsDigest,
    count: u64,
}

impl OldRecords {
    fn note(&mut self, record: &Record) {
        let sequence = record.sequence;
        match self.ranges.last_mut() {
            Some((_, last)) if *last + 1 == sequence => *last = sequence,
            Some(_) | None => self.ranges.push((sequence, sequence)),
        }
        let left = record.without_content();
        self.remains.push(&RemainsDigest::of(&left, &record.hash));
        self.count += 1;
    }

    /// Builds the log entry about them. The caller sets its reason.
    fn entry(&self, session: &SessionId) -> RetentionApplied {
        RetentionApplied {
            pruned_session: session.to_string(),
            pruned: self.ranges.clone(),
            events: self.count,
            envelopes_hash: self.remains.clone().digest().to_string(),
            reason: String::new(),
            rules: Vec::new(),
            by: None,
        }
    }
}
