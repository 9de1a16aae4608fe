//! The log over all sessions, as it is kept.
//!
//! The log is a session of its own. Again and again an entry goes into it that says where every chain
//! stands; when that entry is on disk, what it covers is read back and looked at, and only then is the
//! head of the log signed. So a signature stands for what a disk gave back, not for what was sent to it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::acknowledgement::{Acknowledgement, loss_after};
use super::chains::Chains;
use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{MAX_UNSEALED, MAX_UNSEALED_ENTRIES, SEAL_EVENTS, SEAL_TIME};
use crate::store::{LogState, Seal, Store, StoreError};
use crate::trace::event::{Draft, Durability, LogSealed, Payload, SealedHead, StoreRecovered};
use crate::trace::head::{KnownHead, LogHead};
use crate::trace::note::Signer;
use crate::trace::record::Record;
use crate::trace::tree::Tree;
use crate::trace::verify;

/// Records that are read back at a time.
const PAGE: usize = 1024;

/// Keeps the log.
#[derive(Debug)]
pub(super) struct Ledger {
    chains: Chains,
    log: SessionId,
    signer: Signer,
    tree: Tree,
    /// Sessions with records behind the last entry that said where they stand.
    changed: BTreeSet<SessionId>,
    /// Sessions among them that are over.
    ended: BTreeSet<SessionId>,
    unsealed: u64,
    due: Option<Timestamp>,
}

/// Why a log cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// What is there is not what was signed, or what is known from elsewhere.
    #[error("the log is not the one that it was: {what}")]
    Diverged {
        /// What is wrong, for people.
        what: String,
    },
    /// What was written does not come back.
    #[error("what was written is not what is read back: {what}")]
    ReadBack {
        /// What is wrong, for people.
        what: String,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Ledger {
    /// Takes up the log of a store. Heads that are known from elsewhere must agree with it.
    pub(super) async fn open(
        store: &dyn Store,
        signer: Signer,
        known: &[KnownHead],
    ) -> Result<(Self, ReadBack), LogError> {
        let LogState {
            log,
            seal,
            sealed_records,
            kept_head,
            ..
        } = store.log().await?;
        let chains = Chains::resume(store.heads().await?, log.clone());
        let hashes = store.hashes(log.clone()).await?;
        let mut heads: Vec<_> = known.iter().map(|known| known.head.clone()).collect();
        if let Some(seal) = &seal {
            let newest = KnownHead::read(&seal.note);
            let newest = newest.map_err(|error| diverged(error.to_string()))?;
            heads.push(newest.head);
        }
        if let Some(kept) = &kept_head {
            heads.push(head_beside(kept, hashes.len() as u64)?);
        }
        let tree = grow(&log, &hashes, &heads)?;
        let (read_back, unsealed) = ReadBack::resume(store, &log, sealed_records).await?;
        let Unsealed {
            records,
            changed,
            entries,
            ..
        } = unsealed;
        // Whatever lies behind the last signed head is signed soon: it must not be more than a crash
        // can leave there, or a record that was rewritten would be.
        if tree.size() > 0 && (records > MAX_UNSEALED || entries > MAX_UNSEALED_ENTRIES) {
            let what =
                format!("{records} events in it are not sealed, more than a crash can leave");
            return Err(diverged(what));
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

    /// Forgets the chains of sessions that are over.
    pub(super) fn keep_chains(&mut self, is_live: impl Fn(&SessionId) -> bool) {
        let unsealed = &self.changed;
        self.chains
            .keep(|session| is_live(session) || unsealed.contains(session));
    }

    pub(super) fn chains(&self) -> &Chains {
        &self.chains
    }

    pub(super) fn log(&self) -> &SessionId {
        &self.log
    }

    /// Entries of the log, and events of all sessions.
    pub(super) fn ends(&self) -> (u64, u64) {
        (self.tree.size(), self.chains.events())
    }

    /// Whether the log has no entry yet.
    pub(super) fn is_new(&self) -> bool {
        self.tree.size() == 0
    }

    /// What has to be noted about how the store was found.
    pub(super) fn found(
        &self,
        state: &LogState,
        promised: Option<Acknowledgement>,
    ) -> Option<StoreRecovered> {
        let before = self.chains.events();
        let unlogged = (self.is_new() && before > 0).then(|| {
            format!("the log begins behind {before} events that were there before it, and unsigned")
        });
        let lost = loss_after(promised, state.dropped_a_write());
        let mended = state.mended.clone().into_iter();
        let what: Vec<_> = mended.chain(lost).chain(unlogged).collect();
        (!what.is_empty()).then(|| StoreRecovered {
            what: what.join("; "),
            by: None,
        })
    }

    /// Gives a draft its place in its chain.
    pub(super) fn seal(&mut self, draft: &Draft) -> Record {
        let record = self.chains.seal(draft);
        self.note(&record, draft.timestamp);
        record
    }

    fn note(&mut self, record: &Record, now: Timestamp) {
        if record.session == self.log {
            return;
        }
        self.unsealed += 1;
        self.fall_due(now);
        if !self.changed.contains(&record.session) {
            self.changed.insert(record.session.clone());
        }
        if record.ends {
            self.ended.insert(record.session.clone());
        }
    }

    /// Takes in a record that was sealed elsewhere.
    pub(super) fn adopt(&mut self, record: &Record, now: Timestamp) {
        self.chains.adopt(record);
        self.note(record, now);
    }

    /// Signs with another key from now on.
    pub(super) fn sign_with(&mut self, signer: Signer) {
        self.signer = signer;
    }

    /// An entry of the log.
    pub(super) fn entry(&mut self, payload: impl Into<Payload>, now: Timestamp) -> Record {
        let id = |what: &str| derived(&self.log, what, self.tree.size());
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

    /// Sealing is due soon from now on, also where the clock was set back.
    fn fall_due(&mut self, now: Timestamp) {
        let soon = now.plus(SEAL_TIME);
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
    }

    /// The wall clock was set: sealing is due after as much time as before.
    pub(super) fn clock_moved(&mut self, step: ClockStep) {
        self.due = self.due.map(|due| step.apply(due));
    }

    /// When the next sealing is due, if there is anything to seal.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// Whether an entry covers everything that there is.
    pub(super) fn is_sealed(&self) -> bool {
        self.unsealed == 0
    }

    /// Whether so much is unsealed that nobody should wait for the time.
    pub(super) fn is_full(&self) -> bool {
        self.unsealed >= SEAL_EVENTS
    }

    /// The entry that says where every chain stands, and what the log is with it.
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
            self.chains.forget(&session);
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

    /// Place of the newest entry, which has this hash.
    pub(super) fn place(&self, hash: Digest) -> EntryPlace {
        let (entries, events) = self.ends();
        let records = entries.saturating_add(events);
        EntryPlace { hash, records }
    }

    /// Signs a head. What it covers must have been read back.
    pub(super) fn sign(&self, head: &LogHead) -> Seal {
        Seal {
            size: head.size,
            note: self.signer.sign(&head.to_string()),
        }
    }
}

/// What lies behind the last signed head.
#[derive(Debug, Default)]
struct Unsealed {
    records: u64,
    /// Those of them that are the log's own.
    entries: u64,
    sessions: BTreeSet<SessionId>,
    /// Those of them with records behind the last entry that said where they stand. That entry may be there and
    /// its signature not.
    changed: BTreeSet<SessionId>,
}

/// Place of an entry of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryPlace {
    pub(super) hash: Digest,
    /// Records of log and sessions with the entry.
    pub(super) records: u64,
}

/// Reads back what was written, from where the last signed head ends.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadBack {
    records: u64,
    heads: HashMap<SessionId, (u64, Digest)>,
}

impl ReadBack {
    /// Takes up where the signed part of the record ends, and says what lies behind it.
    async fn resume(
        store: &dyn Store,
        log: &SessionId,
        records: u64,
    ) -> Result<(Self, Unsealed), LogError> {
        let heads = store.heads().await?;
        let heads = heads
            .into_iter()
            .map(|head| (head.session, (head.count, head.hash)));
        let mut ahead = Self {
            records,
            heads: heads.collect(),
        };
        let mut unsealed = Unsealed::default();
        loop {
            let page = store.records(records + unsealed.records, PAGE).await?;
            unsealed.records += page.len() as u64;
            for record in &page {
                let envelope = record.envelope().map_err(read_back)?;
                unsealed.entries += u64::from(record.session == *log);
                if record.session != *log {
                    unsealed.changed.insert(record.session.clone());
                } else if envelope.event_type == "log_sealed" {
                    unsealed.changed.clear();
                }
                // A key is handed over together with the head that says so. Whoever could write an entry
                // and let it be signed here would have a key of his own trusted.
                if record.session == *log && envelope.event_type == "key_rotated" {
                    let what = "an entry that was never signed names another key";
                    return Err(diverged(what.to_owned()));
                }
                if unsealed.sessions.insert(record.session.clone()) {
                    // Where the signed part ends, the chain stood right before this record.
                    let previous = envelope.previous_hash.parse();
                    let previous = previous.map_err(|_| read_back("no previous_hash".into()))?;
                    let stood = (record.sequence, previous);
                    ahead.heads.insert(record.session.clone(), stood);
                }
            }
            if page.len() < PAGE {
                return Ok((ahead, unsealed));
            }
        }
    }

    /// Forgets the chains of sessions that are over.
    pub(super) fn keep_chains(&mut self, is_live: impl Fn(&SessionId) -> bool) {
        self.heads.retain(|session, _| is_live(session));
        self.heads.shrink_to_fit();
    }

    /// Reads back everything up to and with the entry that has this hash.
    pub(super) async fn up_to(
        mut self,
        store: Arc<dyn Store>,
        log: SessionId,
        entry: EntryPlace,
    ) -> Result<Self, LogError> {
        loop {
            // Agents go on meanwhile: what lies behind the entry is not read twice.
            let left = entry.records.saturating_sub(self.records);
            let limit = usize::try_from(left).unwrap_or(PAGE).min(PAGE);
            let limit = if limit == 0 { PAGE } else { limit };
            let page = store.records(self.records, limit).await?;
            for record in &page {
                self.take(record)?;
                if record.session == log && record.hash == entry.hash {
                    return Ok(self);
                }
            }
            if page.is_empty() {
                return Err(read_back("the entry that was written is not there".into()));
            }
        }
    }

    fn take(&mut self, record: &Record) -> Result<(), LogError> {
        let session = &record.session;
        let at = |what: &str| read_back(format!("{session} {}: {what}", record.sequence));
        let checked = verify::check(&record.text, &record.hash);
        let (envelope, link) = checked.map_err(|what| at(&what))?;
        let (count, hash) = self
            .heads
            .entry(session.clone())
            .or_insert((0, Digest::ZERO));
        let follows = envelope.sequence == *count && link.previous == *hash;
        if !follows {
            return Err(at("does not follow the event before"));
        }
        *count += 1;
        *hash = record.hash;
        self.records += 1;
        if record.ends {
            // Nothing follows in its chain.
            self.heads.remove(session);
        }
        Ok(())
    }
}

/// The head that is kept beside a store whose log has so many entries.
fn head_beside(note: &str, entries: u64) -> Result<LogHead, LogError> {
    let kept = KnownHead::read(note).map_err(|error| {
        diverged(format!(
            "`cra.head` beside the store cannot be read ({error}); restore it, or move it away"
        ))
    })?;
    if kept.head.size > entries {
        return Err(diverged(format!(
            "it has {entries} of the {} entries that `cra.head` beside the store was signed over, so its \
             newest records are lost; restore `cra.db` and `cra.db-wal` together, or move `cra.head` \
             away to go on without them",
            kept.head.size
        )));
    }
    Ok(kept.head)
}

/// The tree over the entries so far. Heads that are known must be its heads.
fn grow(log: &SessionId, hashes: &[Digest], heads: &[LogHead]) -> Result<Tree, LogError> {
    let mut tree = Tree::default();
    for size in 0..=hashes.len() as u64 {
        for head in heads.iter().filter(|head| head.size == size) {
            if head.log != *log {
                return Err(diverged(format!(
                    "a head that is known is of the log `{}`",
                    head.log
                )));
            }
            if head.root != tree.root() {
                let what =
                    format!("its first {size} entries are not those of a head that is known");
                return Err(diverged(what));
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
        return Err(diverged(format!(
            "it has {found} of the {largest} entries that a head is known of"
        )));
    }
    Ok(tree)
}

/// An identifier for an entry that nobody has to draw: the same for the same place in the same log.
fn derived(log: &SessionId, what: &str, number: u64) -> Uuid {
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

fn diverged(what: String) -> LogError {
    LogError::Diverged { what }
}

fn read_back(what: String) -> LogError {
    LogError::ReadBack { what }
}
