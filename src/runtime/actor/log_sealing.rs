//! Sealing of the log: an entry with the heads of all chains, read back, signed, and copied to another
//! place.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinHandle;

use super::super::ledger::{EntryPosition, Ledger, LogError, ReadBack};
use super::super::message::{DraftSubject, EntryRequest, ReplySender};
use super::super::snapshot::{HeadCopyState, HeadState};
use super::super::state_seal::StateSeal;
use super::super::witness::{self, HeadFileError};
use super::Actor;
use super::batch_writes::WrittenBatch;
use crate::base::clock::{Boxed, Timestamp};
use crate::base::id::HeldRequestId;
use crate::engine::command::{DecisionRefusal, Effect, OperatorReply, Reply};
use crate::store::{Batch, CommitError, Seal, StateRow, Store, StoreError};
use crate::trace::event::{Durability, Payload};
use crate::trace::head::LogHead;

/// A log entry on its way to the disk, and the head that it makes.
#[derive(Clone, Debug)]
pub(super) struct PendingSeal {
    head: LogHead,
    place: EntryPosition,
    /// Number of session events that it covers.
    events: u64,
}

type ReadBackFuture = Boxed<'static, Result<ReadBack, LogError>>;

/// Progress of sealing.
pub(in super::super) struct SealProgress {
    /// Position of reading back; `None` while it runs.
    read_back: Option<ReadBack>,
    reading: Option<(ReadBackFuture, PendingSeal)>,
    /// The newest entry that is on disk and not read back yet.
    waiting: Option<PendingSeal>,
    signed: u64,
    /// Number of session events that the newest signed head covers.
    covered: u64,
}

/// External copies of the newest head, if configured.
pub(in super::super) struct HeadCopies {
    head_file: Option<PathBuf>,
    state: HeadCopyState,
    /// The copy that is being written. Only one at a time, so that copies stay in order.
    copying: Option<JoinHandle<Result<(), HeadFileError>>>,
    /// The newest head that is not copied yet.
    uncopied: Option<String>,
}

impl SealProgress {
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

    /// Waits for the end of reading back.
    pub(super) async fn next(&mut self) -> Result<(ReadBack, PendingSeal), LogError> {
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

    /// Notes that an entry is on disk, and starts to read it back if no other read is running.
    pub(super) fn on_entry_durable(
        &mut self,
        entered: Option<PendingSeal>,
        store: &Arc<dyn Store>,
        ledger: &Ledger,
    ) {
        self.waiting = entered.or(self.waiting.take());
        if self.reading.is_some() || self.waiting.is_none() {
            return;
        }
        if let (Some(entered), Some(read_back)) = (self.waiting.take(), self.read_back.take()) {
            let (store, log) = (Arc::clone(store), ledger.log().clone());
            let reading = read_back.read_up_to(store, log, entered.place);
            self.reading = Some((Box::pin(reading), entered));
        }
    }
}

impl HeadCopies {
    pub(in super::super) fn new(head_file: Option<PathBuf>) -> Self {
        let state = match &head_file {
            Some(_) => HeadCopyState::Written,
            None => HeadCopyState::NotConfigured,
        };
        Self {
            head_file,
            state,
            copying: None,
            uncopied: None,
        }
    }

    /// Schedules a copy of a signed head, if configured.
    fn keep_head(&mut self, note: String) {
        self.uncopied = Some(note);
        self.copy();
    }

    /// Starts to copy the newest head, unless a copy is running: then the next copy follows it.
    fn copy(&mut self) {
        let (Some(path), None) = (self.head_file.clone(), &self.copying) else {
            return;
        };
        let Some(note) = self.uncopied.take() else {
            return;
        };
        self.copying = Some(tokio::task::spawn_blocking(move || {
            witness::write_head(&path, &note)
        }));
    }

    pub(super) fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// Waits for the running copy, and returns its result. By then a newer head may exist.
    pub(super) async fn next_result(&mut self) -> Result<(), HeadFileError> {
        let Some(copying) = &mut self.copying else {
            return std::future::pending().await;
        };
        let written = copying.await;
        self.copying = None;
        self.copy();
        written?
    }
}

impl Actor {
    /// Returns how far the log is signed, and the state of its external copy.
    pub(super) fn head_state(&self) -> HeadState {
        HeadState {
            signed: self.sealing.signed,
            covered: self.sealing.covered,
            copy: self.copies.state.clone(),
        }
    }

    /// Adds the entry with the heads of all chains, if enough records are unsealed.
    pub(super) fn add_seal_entry_if_full(&mut self, batch: &mut Batch) -> Option<PendingSeal> {
        self.ledger
            .is_seal_due()
            .then(|| self.add_seal_entry(batch))
    }

    fn add_seal_entry(&mut self, batch: &mut Batch) -> PendingSeal {
        let now = self.clock.now();
        let (record, head) = self.ledger.seal_all(now);
        let place = self.ledger.position(record.hash);
        batch.records.push(record);
        let events = self.ledger.chains().events();
        PendingSeal {
            head,
            place,
            events,
        }
    }

    /// Adds an entry to the log. The reply is sent when the entry is durable.
    pub(super) fn add_entry(&mut self, asked: EntryRequest) {
        let EntryRequest {
            reply_id,
            payload,
            reply,
        } = asked;
        if let Some(what) = &self.store_failure {
            let _ = reply.send(OperatorReply::Refused(DecisionRefusal::Unavailable(
                what.clone(),
            )));
            return;
        }
        self.pending_replies
            .insert(reply_id, ReplySender::Operator(reply));
        let effects = vec![
            Effect::AppendToLog(payload),
            Effect::Reply(reply_id, Reply::Operator(OperatorReply::Acted)),
        ];
        self.execute(effects);
    }

    /// Seals all records because the time limit is reached.
    pub(super) async fn seal_all(&mut self) {
        // The entry covers everything before it, so that is written first.
        self.flush().await;
        let mut batch = Batch::default();
        let entered = self.add_seal_entry(&mut batch);
        self.write_without_reply(batch, Some(entered)).await;
    }

    /// Signs the head of an entry after the covered records were read back.
    pub(super) async fn on_read_back(&mut self, read: Result<(ReadBack, PendingSeal), LogError>) {
        let (read_back, entered) = match read {
            Ok(read) => read,
            Err(error) => {
                let error = StoreError::Poisoned(CommitError::backend(error));
                self.on_write_failure(&error, Vec::new());
                return;
            }
        };
        self.sealing.read_back = Some(read_back);
        let seal = self.ledger.sign(&entered.head);
        self.sealing.signed = seal.size;
        self.sealing.covered = entered.events;
        self.copies.keep_head(seal.note.clone());
        let batch = Batch {
            seals: vec![seal],
            ..Batch::default()
        };
        self.write_without_reply(batch, None).await;
        self.sealing
            .on_entry_durable(None, &self.store, &self.ledger);
        self.changed = true;
        self.publish_changes();
    }

    pub(super) fn on_head_copied(&mut self, written: Result<(), HeadFileError>) {
        self.copies.state = match written {
            Ok(()) => HeadCopyState::Written,
            Err(error) => {
                let what = error.to_string();
                tracing::error!(what, "the copy of the log head cannot be written");
                HeadCopyState::Failed { what }
            }
        };
        self.changed = true;
        self.publish_changes();
    }

    /// Stores or removes an operator's draft.
    pub(super) fn keep_draft(&mut self, of: DraftSubject, draft: Option<Value>) {
        if self.store_failure.is_some() {
            return;
        }
        let row = match of {
            DraftSubject::Gate(gate) => self.keep_gate_draft(gate, draft),
            DraftSubject::Thread(thread) => self.threads.store_draft(thread, draft),
        };
        let Some(row) = row else { return };
        self.changed = true;
        let batch = Batch {
            state: vec![row],
            ..Batch::default()
        };
        self.add_to_batch(batch, Vec::new(), Durability::Async);
    }

    /// Stores or removes a draft for a held request. Ignores other requests.
    fn keep_gate_draft(&mut self, gate: HeldRequestId, draft: Option<Value>) -> Option<StateRow> {
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

    /// Removes the draft of a request that is no longer held.
    pub(super) fn drop_draft(&mut self, gate: &HeldRequestId) -> Option<StateRow> {
        let known = self.drafts.contains_key(gate);
        known.then(|| {
            Arc::make_mut(&mut self.drafts).remove(gate);
            draft_row(gate, None)
        })
    }

    /// Writes a batch that no caller waits for and no snapshot shows.
    pub(super) async fn write_without_reply(
        &mut self,
        mut batch: Batch,
        entered: Option<PendingSeal>,
    ) {
        self.flush().await;
        self.state_seal.add_seal(&mut batch, &self.ledger);
        let ack = match self.store.append(batch).await {
            Ok(ack) => ack,
            Err(error) => return self.on_write_failure(&error, Vec::new()),
        };
        self.writes.push_back(Box::pin(async move {
            WrittenBatch {
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

/// State kind of a draft.
pub(in super::super) const DRAFT_KIND: &str = "draft";

fn draft_row(gate: &HeldRequestId, draft: Option<&Value>) -> StateRow {
    StateRow {
        kind: DRAFT_KIND.to_owned(),
        key: gate.to_string(),
        body: draft.map(ToString::to_string),
    }
}

/// Adds the first log entries of a run, and signs them before agents are admitted.
pub(in super::super) async fn write_first_entries(
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
    let place = ledger.position(record.hash);
    batch.records.push(record);
    state_seal.add_seal(&mut batch, ledger);
    store.append(batch).await?.await?;
    let log = ledger.log().clone();
    let read_back = read_back.read_up_to(Arc::clone(store), log, place).await?;
    let seal = ledger.sign(&head);
    let batch = Batch {
        seals: vec![seal.clone()],
        ..Batch::default()
    };
    store.append(batch).await?.await?;
    Ok((read_back, seal))
}
