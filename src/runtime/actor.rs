//! The actor: takes commands, executes effects, and sends replies after their records are durable.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::sync::{mpsc, watch};

use super::SnapshotReceiver;
use super::evaluation_watch::{EvaluationWatch, WatchSetting};
use super::extension_calls::ExtensionCaller;
use super::hooks::EventHooks;
use super::ledger::Ledger;
use super::live_view::LiveView;
use super::message::{ActorMessage, ReplySender};
use super::notices::NoticeOutbox;
use super::snapshot::{
    AtlasLoadInfo, ChainVerdict, ClockStepAt, ConsoleOperator, Drafts, RuntimeSnapshot,
    UndeliveredCounts, UnrequestedAction,
};
use super::state_seal::StateSeal;
use super::threads::ThreadStore;
use crate::atlas::document::AcknowledgeMode;
use crate::atlas::recording;
use crate::base::clock::{Boxed, Clock, Timestamp};
use crate::base::clock_step::StepDetector;
use crate::base::id::{HeldRequestId, SessionId};
use crate::base::limits::{CLOCK_CHECK_INTERVAL, MESSAGE_BURST};
use crate::engine::Engine;
use crate::engine::command::{DenialReply, Effect, EngineCommand, RecordFault, Reply, ReplyId};
use crate::engine::extensions::{CallId, CallResult};
use crate::store::{Batch, StateRow, Store, StoreError};
use crate::trace::event::{Durability, Payload};
use crate::trace::verification::VerificationReport;

mod atlas_loading;
mod batch_writes;
mod disconnected_callers;
mod dispatch;
mod log_sealing;
mod notice_sending;
mod predecessor;
pub(super) mod replies;
mod shutdown;
mod snapshots;
mod thread_turns;
mod time_limits;
mod unrequested_actions;

use batch_writes::{PendingBatch, WrittenBatch};
pub(super) use log_sealing::{DRAFT_KIND, HeadCopies, SealProgress, write_first_entries};
pub(super) use replies::stall_denial;
use replies::{durability_of, faulty_record_denial, only_reports, state_row, unavailable_denial};

/// The actor.
pub(super) struct Actor {
    engine: Engine,
    ledger: Ledger,
    state_seal: StateSeal,
    /// Reason why the stored state was not trusted at the start.
    distrusted: Option<Arc<str>>,
    sealing: SealProgress,
    copies: HeadCopies,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    console_operator: ConsoleOperator,
    verdict: ChainVerdict,
    /// Callers that wait for a reply. A caller that disconnected has a closed channel.
    pending_replies: HashMap<ReplyId, ReplySender>,
    deadlines: BTreeSet<(Timestamp, HeldRequestId)>,
    steps: StepDetector,
    /// The last step of the wall clock.
    clock_moved: Option<ClockStepAt>,
    ran_unasked: Option<UnrequestedAction>,
    /// Time of the last check for abandoned sessions.
    abandoned_checked: Option<Timestamp>,
    /// Changes of the current messages that are not handed to the store yet.
    pending: PendingBatch,
    /// Batches that are handed to the store and not yet durable, in order.
    writes: FuturesOrdered<Boxed<'static, WrittenBatch>>,
    /// Time of answers to agents: before or after their events are durable.
    acknowledge: AcknowledgeMode,
    /// Acknowledged events that are not durable yet.
    early_events: u64,
    /// True while a snapshot waits for a batch to be durable; at most one does.
    snapshot_pending: bool,
    /// True if something changed since the newest snapshot.
    changed: bool,
    store_failure: Option<String>,
    hooks: EventHooks,
    extension_calls: ExtensionCaller,
    /// Drafts that operators typed and have not submitted.
    drafts: Arc<Drafts>,
    watching: EvaluationWatch,
    threads: ThreadStore,
    outbox: NoticeOutbox,
    in_force: AtlasLoadInfo,
    dropped: UndeliveredCounts,
    live: LiveView,
    snapshots: watch::Sender<Arc<RuntimeSnapshot>>,
}

/// Initial parts of an actor.
pub(super) struct ActorParts {
    pub(super) engine: Engine,
    pub(super) ledger: Ledger,
    pub(super) state_seal: StateSeal,
    pub(super) distrusted: Option<Arc<str>>,
    pub(super) sealing: SealProgress,
    pub(super) copies: HeadCopies,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) seat: ConsoleOperator,
    pub(super) hooks: EventHooks,
    pub(super) outside: ExtensionCaller,
    pub(super) drafts: Drafts,
    pub(super) threads: ThreadStore,
    pub(super) outbox: NoticeOutbox,
}

impl Actor {
    pub(super) fn new(parts: ActorParts) -> Self {
        let steps = StepDetector::new(parts.clock.as_ref());
        let mut actor = Self {
            live: LiveView::new(&parts.engine),
            engine: parts.engine,
            ledger: parts.ledger,
            state_seal: parts.state_seal,
            distrusted: parts.distrusted,
            sealing: parts.sealing,
            copies: parts.copies,
            store: parts.store,
            clock: parts.clock,
            console_operator: parts.seat,
            verdict: ChainVerdict::Unchecked,
            pending_replies: HashMap::new(),
            deadlines: BTreeSet::new(),
            steps,
            clock_moved: None,
            abandoned_checked: None,
            ran_unasked: None,
            pending: PendingBatch::default(),
            writes: FuturesOrdered::new(),
            acknowledge: AcknowledgeMode::default(),
            early_events: 0,
            snapshot_pending: false,
            changed: false,
            store_failure: None,
            hooks: parts.hooks,
            extension_calls: parts.outside,
            drafts: Arc::new(parts.drafts),
            watching: EvaluationWatch::default(),
            threads: parts.threads,
            outbox: parts.outbox,
            in_force: AtlasLoadInfo::default(),
            dropped: UndeliveredCounts::default(),
            snapshots: watch::Sender::new(Arc::new(RuntimeSnapshot::empty())),
        };
        actor.acknowledge = recording::acknowledge_mode(actor.engine.atlases());
        actor.in_force = AtlasLoadInfo {
            hash: Some(actor.engine.atlas_hash()),
            since: Some(actor.clock.now()),
            before: None,
        };
        let first = actor.make_snapshot();
        actor.snapshots.send_replace(first);
        actor
    }

    pub(super) fn snapshots(&self) -> SnapshotReceiver {
        self.snapshots.subscribe()
    }

    /// Runs until a stop message comes, or until all handles are dropped.
    pub(super) async fn run(
        mut self,
        effects: Vec<Effect>,
        mut inbox: mpsc::Receiver<ActorMessage>,
    ) {
        self.execute(effects);
        let mut burst = Vec::new();
        loop {
            self.flush().await;
            let next = self.deadlines.first().map(|(at, _)| *at);
            let due = self.ledger.due().filter(|_| self.store_failure.is_none());
            let notice = self.notice_due();
            let abandoned = self.abandoned_due();
            let clock = Arc::clone(&self.clock);
            let is_timed = next.is_some() || due.is_some() || notice.is_some();
            tokio::select! {
                // Handle durable batches before new messages, so that replies and the screen lag as little
                // as possible.
                biased;
                Some(written) = self.writes.next(), if !self.writes.is_empty() => {
                    self.on_written(written);
                }
                // Handle deadlines before messages: a late decision must find its gate expired.
                () = sleep_until(clock.as_ref(), next), if next.is_some() => {
                    self.expire_due().await;
                }
                // After a clock step backwards, the other timers do not fire in time.
                () = clock.sleep_for(CLOCK_CHECK_INTERVAL), if is_timed => self.check_clock().await,
                // Sign written records before more are written: the unsigned end stays short.
                read_back = self.sealing.next(), if self.sealing.is_reading() => {
                    self.on_read_back(read_back).await;
                }
                kept = self.copies.next_result(), if self.copies.is_copying() => {
                    self.on_head_copied(kept);
                }
                () = sleep_until(clock.as_ref(), due), if due.is_some() => {
                    self.seal_all().await;
                }
                Some(came) = self.outbox.next_result() => self.on_notice_result(came),
                () = sleep_until(clock.as_ref(), abandoned), if abandoned.is_some() => {
                    self.end_abandoned().await;
                }
                () = sleep_until(clock.as_ref(), notice), if notice.is_some() => {
                    self.outbox.send_due(clock.now());
                }
                count = inbox.recv_many(&mut burst, MESSAGE_BURST) => {
                    self.check_clock().await;
                    if count == 0 {
                        self.drain().await;
                        return;
                    }
                    if self.handle_messages(&mut burst).await.is_break() {
                        return;
                    }
                }
            }
        }
    }

    async fn handle_command(
        &mut self,
        reply_id: ReplyId,
        command: EngineCommand,
        reply: ReplySender,
    ) {
        if let Some(what) = &self.store_failure {
            reply.refuse(unavailable_denial(what), what);
            return;
        }
        if let Some(denied) = self.denial_for(&command) {
            let reason = denied.reason.clone();
            reply.refuse(denied, &reason);
            return;
        }
        let looked_up = self.look_up_session(command.named_session()).await;
        if let Err(error) = looked_up.and(self.look_up_predecessor(&command).await) {
            let what = error.to_string();
            reply.refuse(unavailable_denial(&what), &what);
            return;
        }
        if matches!(
            command,
            EngineCommand::Decide(..) | EngineCommand::Answer(..)
        ) {
            // The engine releases a run to a waiting caller, and leaves a permit for one that has
            // disconnected.
            self.note_disconnected();
        }
        if let EngineCommand::RequestAction(_, request) = &command {
            self.note_disconnected_twins(request);
        }
        self.pending_replies.insert(reply_id, reply);
        let now = self.clock.now();
        let seen = self.watching.evaluate(&self.engine, &command, now);
        self.look_on(&command, now);
        let effects = self.engine.handle(command, now);
        self.watching.store(seen, reply_id, &effects);
        self.execute(effects);
    }

    /// Looks for a session in the record if it is not live. A recorded session has ended here or was
    /// recorded by another console. The engine then refuses its name.
    pub(super) async fn look_up_session(
        &mut self,
        session: Option<&SessionId>,
    ) -> Result<(), StoreError> {
        let Some(session) = session.filter(|session| !self.engine.knows_session(session)) else {
            return Ok(());
        };
        if self.store.head(session.clone()).await?.is_some() {
            self.engine.mark_ended(session.clone());
        }
        Ok(())
    }

    fn set_watch(&mut self, watch: WatchSetting) {
        if self.watching.set(watch) {
            self.changed = true;
            self.publish_changes();
        }
    }

    /// Handles the answer of an extension. After a failed write, ignores it.
    fn on_extension_answer(&mut self, id: CallId, returned: CallResult) {
        if self.store_failure.is_none() {
            self.note_disconnected();
            let returned = match self.unacknowledged_fault() {
                // While the record is faulty, no answer may permit anything.
                Some(fault) => CallResult {
                    outcome: Err(faulty_record_denial(&fault).reason),
                    ..returned
                },
                None => returned,
            };
            let command = EngineCommand::ExtensionReturned(id, returned);
            let effects = self.engine.handle(command, self.clock.now());
            self.execute(effects);
        }
    }

    /// Executes effects of the engine.
    fn execute(&mut self, effects: Vec<Effect>) {
        self.execute_with_state(effects, Vec::new());
    }

    /// Executes effects, together with rows of state that are not the engine's.
    fn execute_with_state(&mut self, effects: Vec<Effect>, state: Vec<StateRow>) {
        if effects.is_empty() {
            return;
        }
        let mut batch = Batch {
            state,
            ..Batch::default()
        };
        let mut replies = Vec::new();
        let mut calls = Vec::new();
        let mut durability = Durability::Async;
        for effect in effects {
            match effect {
                Effect::Record(draft) => {
                    durability = durability.max(draft.durability);
                    let skipped = matches!(draft.payload, Payload::CheckpointSkipped(_));
                    self.dropped.advice += u64::from(skipped);
                    let draft = self.hooks.apply_before(draft);
                    batch.records.push(self.ledger.seal(&draft));
                    if let Some(alarm) = self.note_unrequested(&draft) {
                        batch
                            .records
                            .push(self.ledger.entry(alarm, draft.timestamp));
                        durability = Durability::Sync;
                    }
                }
                Effect::AppendToLog(payload) => {
                    durability = Durability::Sync;
                    let now = self.clock.now();
                    batch.records.push(self.ledger.entry(payload, now));
                }
                Effect::SetOperator(operator) => self.console_operator.operator = operator,
                Effect::Persist(change) => {
                    self.live.note_change(&change);
                    durability = durability.max(durability_of(change.kind));
                    batch.state.push(state_row(change));
                }
                Effect::Reply(reply_id, reply) => replies.push((reply_id, reply)),
                Effect::SetDeadline(gate, at) => drop(self.deadlines.insert((at, gate))),
                Effect::CallExtension(call) => calls.push(call),
                Effect::RequestHeld(_) => {}
                Effect::Notify(notice) => self.add_notice(&notice, &mut batch),
                Effect::RequestSettled(decided) => {
                    self.live.note_decided();
                    batch.state.extend(self.drop_draft(&decided.gate));
                }
            }
        }
        self.changed = true;
        // If the records must be durable, the extension is called after they are.
        if durability == Durability::Sync {
            self.pending.calls.append(&mut calls);
        }
        for call in calls {
            self.extension_calls.call_extension(call);
        }
        if batch.is_empty() {
            self.send_replies(replies);
            self.publish_changes();
            return;
        }
        self.add_to_batch(batch, replies, durability);
    }

    fn send_replies(&mut self, replies: Vec<(ReplyId, Reply)>) {
        for (reply_id, reply) in replies {
            if let Some(waiting) = self.pending_replies.remove(&reply_id) {
                // A caller that disconnected does not get the reply; the record has it.
                let gone = !waiting.send(reply);
                self.dropped.answers += u64::from(gone);
                self.changed |= gone;
            }
        }
    }

    /// Returns the denial of a command while the disk is full or the record is faulty. A faulty record does
    /// not stop reports.
    fn denial_for(&self, command: &EngineCommand) -> Option<DenialReply> {
        let denied = self.bar_all()?;
        let is_full = self.store.known_shortage().is_some();
        (is_full || !only_reports(command)).then_some(denied)
    }

    /// Returns the denial while the disk is full or the record is faulty.
    fn bar_all(&self) -> Option<DenialReply> {
        match self.store.known_shortage() {
            Some(shortage) => Some(stall_denial(&shortage)),
            None => self
                .unacknowledged_fault()
                .as_ref()
                .map(faulty_record_denial),
        }
    }

    /// Returns the fault of the record, unless an operator has acknowledged it.
    fn unacknowledged_fault(&self) -> Option<RecordFault> {
        self.verdict
            .unacknowledged_fault(self.engine.acknowledged_fault())
    }

    /// Handles the result of a full verification. An unreadable record stops recording until a restart.
    async fn on_verified(&mut self, checked: &Result<VerificationReport, String>) {
        self.verdict = ChainVerdict::from(checked);
        self.changed = true;
        if let (None, Err(what)) = (&self.store_failure, checked) {
            let what = format!("the record cannot be read: {what}");
            self.on_unreadable_record(what).await;
            return;
        }
        if self.store_failure.is_none() && self.verdict.fault().is_none() {
            let effects = self
                .engine
                .handle(EngineCommand::RecordIntact, self.clock.now());
            self.execute(effects);
        }
        self.publish_changes();
    }
}

async fn sleep_until(clock: &dyn Clock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
