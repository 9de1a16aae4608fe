//! The log over all sessions, as it is stored.
//!
//! The log is a session of its own. At intervals it gets an entry with the heads of all chains. When that
//! entry is on disk, the records it covers are read back and checked, and only then is the head of the log
//! signed. So a signature covers what the disk returned, not what was sent to it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::acknowledgement::{Acknowledgement, loss_after};
use super::chains::ChainEnds;
use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{MAX_UNSEALED, MAX_UNSEALED_ENTRIES, SEAL_EVENTS, SEAL_TIME};
use crate::store::{LogState, Seal, Store, StoreError};
use crate::trace::event::{Draft, Durability, LogSealed, Payload, SealedHead, StoreRecovered};
use crate::trace::head::{KnownHead, LogHead};
use crate::trace::merkle_tree::MerkleTree;
use crate::trace::note::Signer;
use crate::trace::record::Record;
use crate::trace::verification;

/// Most records that are read back at a time.
const PAGE_RECORDS: usize = 1024;

/// Writer of the log.
#[derive(Debug)]
pub(super) struct Ledger {
    chains: ChainEnds,
    log: SessionId,
    signer: Signer,
    tree: MerkleTree,
    /// Sessions with records after the last entry that covers them.
    changed: BTreeSet<SessionId>,
    /// Sessions among them that have ended.
    ended: BTreeSet<SessionId>,
    unsealed: u64,
    due: Option<Timestamp>,
}

/// Reason why a log cannot be continued.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log differs from its signature, or from a head known from another place.
    #[error("the log was changed or lost entries: {what}")]
    Diverged {
        /// Description, for people.
        what: String,
    },
    /// Written records do not read back.
    #[error("written records do not read back: {what}")]
    ReadBack {
        /// Description, for people.
        what: String,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Ledger {
    /// Opens the log of a store. Heads known from other places must agree with it.
    pub(super) async fn open(
        store: &dyn Store,
        signer: Signer,
        known: &[KnownHead],
    ) -> Result<(Self, ReadBack), LogError> {
        let LogState {
            log,
            seal,
            sealed_records,
            head_file_note: kept_head,
            ..
        } = store.log().await?;
        let chains = ChainEnds::resume(store.heads().await?, log.clone());
        let hashes = store.hashes(log.clone()).await?;
        let mut heads: Vec<_> = known.iter().map(|known| known.head.clone()).collect();
        if let Some(seal) = &seal {
            let newest = KnownHead::read(&seal.note);
            let newest = newest.map_err(|error| diverged_error(error.to_string()))?;
            heads.push(newest.head);
        }
        if let Some(kept) = &kept_head {
            heads.push(read_kept_head(kept, hashes.len() as u64)?);
        }
        let tree = build_tree(&log, &hashes, &heads)?;
        let (read_back, unsealed) = ReadBack::resume(store, &log, sealed_records).await?;
        let UnsealedTail {
            records,
            changed,
            entries,
            ..
        } = unsealed;
        // Records after the last signed head are signed soon. There must not be more of them than a crash
        // can leave, or a rewritten record would be signed.
        if tree.size() > 0 && (records > MAX_UNSEALED || entries > MAX_UNSEALED_ENTRIES) {
            let what = format!("{records} events are not sealed, more than a crash can leave");
            return Err(diverged_error(what));
        }
        let ledger = Self {
            unsealed: records,
            changed,
            ended: BTreeSet::new(),
            chains,
            log,
            signer,
            tree,
            due: None,
        };
        Ok((ledger, read_back))
    }

    /// Drops the chains of ended sessions.
    pub(super) fn retain_live_chains(&mut self, is_live: impl Fn(&SessionId) -> bool) {
        let unsealed = &self.changed;
        self.chains
            .retain_live(|session| is_live(session) || unsealed.contains(session));
    }

    pub(super) fn chains(&self) -> &ChainEnds {
        &self.chains
    }

    pub(super) fn log(&self) -> &SessionId {
        &self.log
    }

    /// Returns the number of log entries, and of events of all sessions.
    pub(super) fn sizes(&self) -> (u64, u64) {
        (self.tree.size(), self.chains.events())
    }

    /// Returns true if the log has no entry yet.
    pub(super) fn is_new(&self) -> bool {
        self.tree.size() == 0
    }

    /// Returns the entry about the condition in which the store was found, if one is needed.
    pub(super) fn recovery_entry(
        &self,
        state: &LogState,
        promised: Option<Acknowledgement>,
    ) -> Option<StoreRecovered> {
        let before = self.chains.events();
        let unlogged = (self.is_new() && before > 0)
            .then(|| format!("the log starts after {before} older events, which are not signed"));
        let lost = loss_after(promised, state.has_dropped_write());
        let mended = state.repair_note.clone().into_iter();
        let what: Vec<_> = mended.chain(lost).chain(unlogged).collect();
        (!what.is_empty()).then(|| StoreRecovered {
            what: what.join("; "),
            by: None,
        })
    }

    /// Seals a draft as the next record of its chain.
    pub(super) fn seal(&mut self, draft: &Draft) -> Record {
        let record = self.chains.seal(draft);
        self.count_unsealed(&record, draft.timestamp);
        record
    }

    fn count_unsealed(&mut self, record: &Record, now: Timestamp) {
        if record.session == self.log {
            return;
        }
        self.unsealed += 1;
        self.fall_due(now);
        if !self.changed.contains(&record.session) {
            self.changed.insert(record.session.clone());
        }
        if record.ends_session {
            self.ended.insert(record.session.clone());
        }
    }

    /// Adds a record that another console sealed.
    pub(super) fn adopt_record(&mut self, record: &Record, now: Timestamp) {
        self.chains.adopt_record(record);
        self.count_unsealed(record, now);
    }

    /// Changes the key that signs heads from now on.
    pub(super) fn sign_with(&mut self, signer: Signer) {
        self.signer = signer;
    }

    /// Builds an entry of the log.
    pub(super) fn entry(&mut self, payload: impl Into<Payload>, now: Timestamp) -> Record {
        let id = |what: &str| derive_id(&self.log, what, self.tree.size());
        let draft = Draft {
            session_id: self.log.clone(),
            event_id: id("event").into(),
            trace_id: id("trace").into(),
            span_id: id("span").into(),
            parent_span_id: None,
            timestamp: now,
            payload: payload.into().with_actor(),
            durability: Durability::Sync,
        };
        let record = self.chains.seal(&draft);
        self.tree.push(record.hash.as_bytes());
        self.unsealed += 1;
        self.fall_due(now);
        record
    }

    /// Schedules the next sealing, also after the clock was set back.
    fn fall_due(&mut self, now: Timestamp) {
        let soon = now.plus(SEAL_TIME);
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
    }

    /// Adjusts the schedule to a clock step: the remaining time stays equal.
    pub(super) fn clock_moved(&mut self, step: ClockStep) {
        self.due = self.due.map(|due| step.apply(due));
    }

    /// Returns the time of the next sealing, if there is anything to seal.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// Returns true if an entry covers all records.
    pub(super) fn is_sealed(&self) -> bool {
        self.unsealed == 0
    }

    /// Returns true if enough records are unsealed to seal them before the time limit.
    pub(super) fn is_seal_due(&self) -> bool {
        self.unsealed >= SEAL_EVENTS
    }

    /// Builds the entry with the heads of all chains, and the resulting head of the log.
    pub(super) fn seal_all(&mut self, now: Timestamp) -> (Record, LogHead) {
        let sessions = std::mem::take(&mut self.changed);
        let sessions = sessions.into_iter().filter_map(|session| {
            let chain = self.chains.get(&session)?;
            Some(SealedHead {
                count: chain.count(),
                hash: chain.last_hash(),
                session,
            })
        });
        let sessions = sessions.collect();
        for session in std::mem::take(&mut self.ended) {
            self.chains.remove(&session);
        }
        let sealed = LogSealed {
            sessions,
            state_sealed: Some(true),
            by: None,
        };
        let record = self.entry(sealed, now);
        self.unsealed = 0;
        self.due = None;
        let head = LogHead {
            log: self.log.clone(),
            size: self.tree.size(),
            root: self.tree.root(),
        };
        (record, head)
    }

    /// Returns the position of the newest entry, which has this hash.
    pub(super) fn position(&self, hash: Digest) -> EntryPosition {
        let (entries, events) = self.sizes();
        let records = entries.saturating_add(events);
        EntryPosition { hash, records }
    }

    /// Signs a head. The records that it covers must have been read back.
    pub(super) fn sign(&self, head: &LogHead) -> Seal {
        Seal {
            size: head.size,
            note: self.signer.sign(&head.to_string()),
        }
    }
}

/// Records after the last signed head.
#[derive(Debug, Default)]
struct UnsealedTail {
    records: u64,
    /// Number of records that belong to the log.
    entries: u64,
    sessions: BTreeSet<SessionId>,
    /// Sessions with records after the last entry that covers them. That entry may exist without its
    /// signature.
    changed: BTreeSet<SessionId>,
}

/// Position of a log entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPosition {
    pub(super) hash: Digest,
    /// Number of records of log and sessions, including the entry.
    pub(super) records: u64,
}

/// Reads written records back, from the end of the last signed head.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadBack {
    records: u64,
    heads: HashMap<SessionId, (u64, Digest)>,
}

impl ReadBack {
    /// Starts at the end of the signed part of the record, and returns what lies after it.
    async fn resume(
        store: &dyn Store,
        log: &SessionId,
        records: u64,
    ) -> Result<(Self, UnsealedTail), LogError> {
        let heads = store.heads().await?;
        let heads = heads
            .into_iter()
            .map(|head| (head.session, (head.count, head.hash)));
        let mut ahead = Self {
            records,
            heads: heads.collect(),
        };
        let mut unsealed = UnsealedTail::default();
        loop {
            let page = store
                .records(records + unsealed.records, PAGE_RECORDS)
                .await?;
            unsealed.records += page.len() as u64;
            for record in &page {
                let envelope = record.envelope().map_err(read_back_error)?;
                unsealed.entries += u64::from(record.session == *log);
                if record.session != *log {
                    unsealed.changed.insert(record.session.clone());
                } else if envelope.event_type == "log_sealed" {
                    unsealed.changed.clear();
                }
                // A key rotation is stored together with the signed head. If an unsigned rotation were
                // accepted, a process that can write an entry could have its own key trusted.
                if record.session == *log && envelope.event_type == "key_rotated" {
                    let what = "an unsigned entry names another key";
                    return Err(diverged_error(what.to_owned()));
                }
                if unsealed.sessions.insert(record.session.clone()) {
                    // At the end of the signed part, the chain ended right before this record.
                    let previous = envelope.previous_hash.parse();
                    let previous =
                        previous.map_err(|_| read_back_error("no previous_hash".into()))?;
                    let stood = (record.sequence, previous);
                    ahead.heads.insert(record.session.clone(), stood);
                }
            }
            if page.len() < PAGE_RECORDS {
                return Ok((ahead, unsealed));
            }
        }
    }

    /// Drops the chains of ended sessions.
    pub(super) fn retain_live_chains(&mut self, is_live: impl Fn(&SessionId) -> bool) {
        self.heads.retain(|session, _| is_live(session));
        self.heads.shrink_to_fit();
    }

    /// Reads back all records up to the entry with this hash.
    pub(super) async fn read_up_to(
        mut self,
        store: Arc<dyn Store>,
        log: SessionId,
        entry: EntryPosition,
    ) -> Result<Self, LogError> {
        loop {
            // Agents continue meanwhile: records after the entry are not read twice.
            let left = entry.records.saturating_sub(self.records);
            let limit = usize::try_from(left)
                .unwrap_or(PAGE_RECORDS)
                .min(PAGE_RECORDS);
            let limit = if limit == 0 { PAGE_RECORDS } else { limit };
            let page = store.records(self.records, limit).await?;
            for record in &page {
                self.check_record(record)?;
                if record.session == log && record.hash == entry.hash {
                    return Ok(self);
                }
            }
            if page.is_empty() {
                return Err(read_back_error("the written entry is missing".into()));
            }
        }
    }

    fn check_record(&mut self, record: &Record) -> Result<(), LogError> {
        let session = &record.session;
        let at = |what: &str| read_back_error(format!("{session} {}: {what}", record.sequence));
        let checked = verification::check_record(&record.text, &record.hash);
        let (envelope, link) = checked.map_err(|what| at(&what))?;
        let (count, hash) = self
            .heads
            .entry(session.clone())
            .or_insert((0, Digest::ZERO));
        let follows = envelope.sequence == *count && link.previous == *hash;
        if !follows {
            return Err(at("does not follow the previous event"));
        }
        *count += 1;
        *hash = record.hash;
        self.records += 1;
        if record.ends_session {
            // Its chain gets no more records.
            self.heads.remove(session);
        }
        Ok(())
    }
}

/// Reads the head that is stored next to a store whose log has this many entries.
fn read_kept_head(note: &str, entries: u64) -> Result<LogHead, LogError> {
    let kept = KnownHead::read(note).map_err(|error| {
        diverged_error(format!(
            "`cra.head` next to the store cannot be read ({error}); restore it, or move it away"
        ))
    })?;
    if kept.head.size > entries {
        return Err(diverged_error(format!(
            "it has {entries} of the {} entries that `cra.head` next to the store covers, so its newest \
             records are lost; restore `cra.db` and `cra.db-wal` together, or move `cra.head` away to \
             continue without them",
            kept.head.size
        )));
    }
    Ok(kept.head)
}

/// Builds the tree over all entries. Known heads must agree with it.
fn build_tree(
    log: &SessionId,
    hashes: &[Digest],
    heads: &[LogHead],
) -> Result<MerkleTree, LogError> {
    let mut tree = MerkleTree::default();
    for size in 0..=hashes.len() as u64 {
        for head in heads.iter().filter(|head| head.size == size) {
            if head.log != *log {
                return Err(diverged_error(format!(
                    "a known head belongs to the log `{}`",
                    head.log
                )));
            }
            if head.root != tree.root() {
                let what = format!("its first {size} entries differ from a known head");
                return Err(diverged_error(what));
            }
        }
        let entry = usize::try_from(size).ok().and_then(|at| hashes.get(at));
        if let Some(entry) = entry {
            tree.push(entry.as_bytes());
        }
    }
    let largest = heads.iter().map(|head| head.size).max().unwrap_or(0);
    if largest > tree.size() {
        let found = tree.size();
        return Err(diverged_error(format!(
            "it has {found} of the {largest} entries of a known head"
        )));
    }
    Ok(tree)
}

/// Derives an identifier for an entry from the log and the position, so that it is reproducible.
fn derive_id(log: &SessionId, what: &str, number: u64) -> Uuid {
    let parts = [
        log.as_str().as_bytes(),
        what.as_bytes(),
        &number.to_be_bytes(),
    ];
    let digest = Digest::of_parts(parts);
    let (half, _) = digest
        .as_bytes()
        .split_first_chunk()
        .unwrap_or((&[0; 16], &[]));
    uuid::Builder::from_custom_bytes(*half).into_uuid()
}

fn diverged_error(what: String) -> LogError {
    LogError::Diverged { what }
}

fn read_back_error(what: String) -> LogError {
    LogError::ReadBack { what }
}
