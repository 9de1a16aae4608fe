//! Sealing the log: an entry that says where every chain stands, read back, signed, kept elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinHandle;

use super::super::ledger::{EntryPlace, Ledger, LogError, ReadBack};
use super::super::message::{DraftOf, EntryAsked};
use super::super::snapshot::{Elsewhere, HeadState};
use super::super::state_seal::StateSeal;
use super::super::witness;
use super::Actor;
use super::writing::Written;
use crate::base::clock::{Boxed, Timestamp};
use crate::base::id::GateId;
use crate::engine::command::{Effect, Refused, Reply};
use crate::store::{Batch, Seal, StateRow, Store, StoreError};
use crate::trace::event::{Durability, Payload};
use crate::trace::head::LogHead;

/// An entry that is on its way to the disk, and the head that it makes.
#[derive(Clone, Debug)]
pub(super) struct Entered {
    head: LogHead,
    place: EntryPlace,
    /// Events of sessions that it covers.
    events: u64,
}

type Reading = Boxed<'static, Result<ReadBack, LogError>>;

/// How far sealing has come.
pub(in super::super) struct Sealing {
    /// Where reading back goes on; away while it is under way.
    read_back: Option<ReadBack>,
    reading: Option<(Reading, Entered)>,
    /// The newest entry that is on disk and not read back yet.
    waiting: Option<Entered>,
    signed: u64,
    /// Events of sessions that the newest head signed here covers.
    covered: u64,
}

/// Copies of the newest head, where they are wanted.
pub(in super::super) struct Copies {
    head_file: Option<PathBuf>,
    elsewhere: Elsewhere,
    /// The copy that is being written: one at a time, so that none overtakes another.
    copying: Option<JoinHandle<Result<(), String>>>,
    /// The newest head, which no copy has yet.
    uncopied: Option<String>,
}

impl Sealing {
    pub(in super::super) fn new(read_back: ReadBack, signed: u64) -> Self {
        Self {
            read_back: Some(read_back),
            reading: None,
            waiting: None,
            signed,
            covered: 0,
        }
    }

    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// What was read back, once it is.
    pub(super) async fn next(&mut self) -> Result<(ReadBack, Entered), LogError> {
        let Some((reading, _)) = &mut self.reading else {
            return std::future::pending().await;
        };
        let read = reading.await;
        let entered = self.reading.take().map(|(_, entered)| entered);
        match entered {
            Some(entered) => Ok((read?, entered)),
            None => std::future::pending().await,
        }
    }

    /// An entry is on disk: it is read back as soon as nothing else is.
    pub(super) fn entered(
        &mut self,
        entered: Option<Entered>,
        store: &Arc<dyn Store>,
        ledger: &Ledger,
    ) {
        self.waiting = entered.or(self.waiting.take());
        if self.reading.is_some() || self.waiting.is_none() {
            return;
        }
        if let (Some(entered), Some(read_back)) = (self.waiting.take(), self.read_back.take()) {
            let (store, log) = (Arc::clone(store), ledger.log().clone());
            let reading = read_back.up_to(store, log, entered.place);
            self.reading = Some((Box::pin(reading), entered));
        }
    }
}

impl Copies {
    pub(in super::super) fn new(head_file: Option<PathBuf>) -> Self {
        let elsewhere = match &head_file {
            Some(_) => Elsewhere::Kept,
            None => Elsewhere::Nowhere,
        };
        Self {
            head_file,
            elsewhere,
            copying: None,
            uncopied: None,
        }
    }

    /// Keeps a signed head elsewhere, where that is wanted.
    fn keep(&mut self, note: String) {
        self.uncopied = Some(note);
        self.copy();
    }

    /// Writes the newest head elsewhere, unless a copy is being written: then that is followed by one.
    fn copy(&mut self) {
        let (Some(path), None) = (self.head_file.clone(), &self.copying) else {
            return;
        };
        let Some(note) = self.uncopied.take() else {
            return;
        };
        self.copying = Some(tokio::task::spawn_blocking(move || {
            witness::keep(&path, &note)
        }));
    }

    pub(super) fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// Whether the newest head was kept elsewhere, once that is known. It may have a successor by then.
    pub(super) async fn copied(&mut self) -> Result<(), String> {
        let Some(copying) = &mut self.copying else {
            return std::future::pending().await;
        };
        let kept = copying.await;
        self.copying = None;
        self.copy();
        kept.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl Actor {
    /// How far the log is signed, and whether that is kept elsewhere.
    pub(super) fn head(&self) -> HeadState {
        HeadState {
            signed: self.sealing.signed,
            covered: self.sealing.covered,
            elsewhere: self.copies.elsewhere.clone(),
        }
    }

    /// Adds the entry that says where every chain stands, when that is due by number.
    pub(super) fn enter_if_full(&mut self, batch: &mut Batch) -> Option<Entered> {
        self.ledger.is_full().then(|| self.enter(batch))
    }

    fn enter(&mut self, batch: &mut Batch) -> Entered {
        let now = self.clock.now();
        let (record, head) = self.ledger.seal_all(now);
        let place = self.ledger.place(record.hash);
        batch.records.push(record);
        let events = self.ledger.chains().events();
        Entered {
            head,
            place,
            events,
        }
    }

    /// Puts an entry into the log. The reply goes out when it is durable.
    pub(super) fn enter_asked(&mut self, asked: EntryAsked) {
        let EntryAsked {
            ask,
            payload,
            reply,
        } = asked;
        if let Some(what) = &self.poison {
            let _ = reply.send(Reply::Refused(Refused::Unavailable(what.clone())));
            return;
        }
        self.waiting.insert(ask, reply);
        let effects = vec![Effect::Enter(payload), Effect::Reply(ask, Reply::Acted)];
        self.carry_out(effects);
    }

    /// Seals what there is, because it is time.
    pub(super) async fn seal_all(&mut self) {
        // The entry covers everything before it, so that goes first.
        self.flush().await;
        let mut batch = Batch::default();
        let entered = self.enter(&mut batch);
        self.write_quietly(batch, Some(entered)).await;
    }

    /// What an entry covers was read back: so its head is signed.
    pub(super) async fn read_back(&mut self, read: Result<(ReadBack, Entered), LogError>) {
        let (read_back, entered) = match read {
            Ok(read) => read,
            Err(error) => {
                let what = error.to_string();
                self.poisoned(&StoreError::Poisoned { what }, Vec::new());
                return;
            }
        };
        self.sealing.read_back = Some(read_back);
        let seal = self.ledger.sign(&entered.head);
        self.sealing.signed = seal.size;
        self.sealing.covered = entered.events;
        self.copies.keep(seal.note.clone());
        let batch = Batch {
            seals: vec![seal],
            ..Batch::default()
        };
        self.write_quietly(batch, None).await;
        self.sealing.entered(None, &self.store, &self.ledger);
        self.changed = true;
        self.show();
    }

    pub(super) fn head_kept(&mut self, kept: Result<(), String>) {
        self.copies.elsewhere = match kept {
            Ok(()) => Elsewhere::Kept,
            Err(what) => {
                tracing::error!(what, "the head of the log cannot be kept elsewhere");
                Elsewhere::Failed { what }
            }
        };
        self.changed = true;
        self.show();
    }

    /// Keeps what an operator typed, or throws it away.
    pub(super) fn keep_draft(&mut self, of: DraftOf, draft: Option<Value>) {
        if self.poison.is_some() {
            return;
        }
        let row = match of {
            DraftOf::Gate(gate) => self.keep_gate_draft(gate, draft),
            DraftOf::Thread(thread) => self.threads.keep_draft(thread, draft),
        };
        let Some(row) = row else { return };
        self.changed = true;
        let batch = Batch {
            state: vec![row],
            ..Batch::default()
        };
        self.write(batch, Vec::new(), Durability::Async);
    }

    /// Nothing is kept for a request that is not held.
    fn keep_gate_draft(&mut self, gate: GateId, draft: Option<Value>) -> Option<StateRow> {
        if self.engine.held().iter().all(|held| held.id != gate) {
            return None;
        }
        let row = draft_row(&gate, draft.as_ref());
        match draft {
            Some(draft) => drop(Arc::make_mut(&mut self.drafts).insert(gate, draft)),
            None => drop(Arc::make_mut(&mut self.drafts).remove(&gate)),
        }
        Some(row)
    }

    /// A request is no longer held: what was typed at it goes.
    pub(super) fn drop_draft(&mut self, gate: &GateId) -> Option<StateRow> {
        let known = self.drafts.contains_key(gate);
        known.then(|| {
            Arc::make_mut(&mut self.drafts).remove(gate);
            draft_row(gate, None)
        })
    }

    /// Writes what nobody waits for and no picture shows.
    pub(super) async fn write_quietly(&mut self, mut batch: Batch, entered: Option<Entered>) {
        self.flush().await;
        self.state_seal.stamp(&mut batch, &self.ledger);
        let ack = match self.store.append(batch).await {
            Ok(ack) => ack,
            Err(error) => return self.poisoned(&error, Vec::new()),
        };
        self.writes.push_back(Box::pin(async move {
            Written {
                outcome: ack.await,
                replies: Vec::new(),
                calls: Vec::new(),
                early: 0,
                picture: None,
                records: Vec::new(),
                entered,
                notices: Vec::new(),
            }
        }));
    }
}

/// The kind of state that a draft is.
pub(in super::super) const DRAFT: &str = "draft";

fn draft_row(gate: &GateId, draft: Option<&Value>) -> StateRow {
    StateRow {
        kind: DRAFT.to_owned(),
        key: gate.to_string(),
        body: draft.map(ToString::to_string),
    }
}

/// Puts the first entries of a run into the log, and signs them before anybody is let in.
pub(in super::super) async fn begin(
    store: &Arc<dyn Store>,
    ledger: &mut Ledger,
    state_seal: &mut StateSeal,
    read_back: ReadBack,
    entries: Vec<Payload>,
    batch: Batch,
    now: Timestamp,
) -> Result<(ReadBack, Seal), LogError> {
    let mut batch = batch;
    for payload in entries {
        batch.records.push(ledger.entry(payload, now));
    }
    let (record, head) = ledger.seal_all(now);
    let place = ledger.place(record.hash);
    batch.records.push(record);
    state_seal.stamp(&mut batch, ledger);
    store.append(batch).await?.await?;
    let log = ledger.log().clone();
    let read_back = read_back.up_to(Arc::clone(store), log, place).await?;
    let seal = ledger.sign(&head);
    let batch = Batch {
        seals: vec![seal.clone()],
        ..Batch::default()
    };
    store.append(batch).await?.await?;
    Ok((read_back, seal))
}
