//! The one actor: commands in, effects carried out, replies after durability.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::sync::{mpsc, oneshot, watch};

use super::Snapshots;
use super::hooks::Hooks;
use super::ledger::Ledger;
use super::message::Message;
use super::notices::{KeptNotice, Outbox};
use super::outside::Outside;
use super::snapshot::{
    ChainState, ChainVerdict, Drafts, Dropped, InForce, Seat, Snapshot, StoreState,
};
use super::threads::Threads;
use super::watched::{Watch, Watching};
use crate::base::clock::{Boxed, Clock, Timestamp};
use crate::base::id::GateId;
use crate::engine::Engine;
use crate::engine::command::{AskId, Command, Effect, Refused, Reply};
use crate::engine::extension::{CallId, Returned};
use crate::store::{Batch, StateRow, Store, StoreError};
use crate::trace::event::{Durability, Payload};
use crate::trace::record::Record;
use crate::trace::verify::Report;

mod ending;
mod loading;
mod notifying;
mod sealing;
mod told;
mod turning;

use sealing::Entered;
pub(super) use sealing::{Copies, DRAFT, Sealing, begin};
use told::{denied, durability_of, row, unavailable};

/// The actor.
pub(super) struct Actor {
    engine: Engine,
    ledger: Ledger,
    sealing: Sealing,
    copies: Copies,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    seat: Seat,
    verdict: ChainVerdict,
    /// Who waits for a reply. An asker that left is found by its closed channel.
    waiting: HashMap<AskId, oneshot::Sender<Reply>>,
    deadlines: BTreeSet<(Timestamp, GateId)>,
    /// Batches handed over and not yet durable, in order.
    writes: FuturesOrdered<Boxed<'static, Written>>,
    /// Whether a picture waits for a batch to be durable; at most one does.
    picture_pending: bool,
    /// Whether something changed since the newest picture was made.
    changed: bool,
    poison: Option<String>,
    hooks: Hooks,
    outside: Outside,
    /// What operators have typed and not yet decided with.
    drafts: Arc<Drafts>,
    watching: Watching,
    threads: Threads,
    outbox: Outbox,
    in_force: InForce,
    dropped: Dropped,
    snapshots: watch::Sender<Arc<Snapshot>>,
}

/// What an actor begins with.
pub(super) struct Beginning {
    pub(super) engine: Engine,
    pub(super) ledger: Ledger,
    pub(super) sealing: Sealing,
    pub(super) copies: Copies,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) seat: Seat,
    pub(super) hooks: Hooks,
    pub(super) outside: Outside,
    pub(super) drafts: Drafts,
    pub(super) threads: Threads,
    pub(super) outbox: Outbox,
}

/// A batch that was written, or not, with what waited for it.
struct Written {
    outcome: Result<(), StoreError>,
    replies: Vec<(AskId, Reply)>,
    picture: Option<Arc<Snapshot>>,
    /// The records, where hooks want to hear of them.
    records: Vec<Record>,
    /// The entry of the log among them that waits to be signed.
    entered: Option<Entered>,
    /// Notices among it, which may be sent then.
    notices: Vec<KeptNotice>,
}

impl Actor {
    pub(super) fn new(parts: Beginning) -> Self {
        let mut actor = Self {
            engine: parts.engine,
            ledger: parts.ledger,
            sealing: parts.sealing,
            copies: parts.copies,
            store: parts.store,
            clock: parts.clock,
            seat: parts.seat,
            verdict: ChainVerdict::Unchecked,
            waiting: HashMap::new(),
            deadlines: BTreeSet::new(),
            writes: FuturesOrdered::new(),
            picture_pending: false,
            changed: false,
            poison: None,
            hooks: parts.hooks,
            outside: parts.outside,
            drafts: Arc::new(parts.drafts),
            watching: Watching::default(),
            threads: parts.threads,
            outbox: parts.outbox,
            in_force: InForce::default(),
            dropped: Dropped::default(),
            snapshots: watch::Sender::new(Arc::new(Snapshot::empty())),
        };
        actor.in_force = InForce {
            hash: Some(actor.engine.atlas_hash()),
            since: Some(actor.clock.now()),
            before: None,
        };
        let first = actor.picture();
        actor.snapshots.send_replace(first);
        actor
    }

    pub(super) fn snapshots(&self) -> Snapshots {
        self.snapshots.subscribe()
    }

    /// Works until it is told to stop, or nobody can reach it any more.
    pub(super) async fn run(mut self, effects: Vec<Effect>, mut inbox: mpsc::Receiver<Message>) {
        self.carry_out(effects).await;
        loop {
            let next = self.deadlines.first().map(|(at, _)| *at);
            let due = self.ledger.due().filter(|_| self.poison.is_none());
            let notice = self.notice_due();
            let clock = Arc::clone(&self.clock);
            tokio::select! {
                // What is durable is told before anything new is taken up: replies and the screen
                // are never further behind than they must be.
                biased;
                Some(written) = self.writes.next(), if !self.writes.is_empty() => {
                    self.written(written);
                }
                // Deadlines before messages: a decision that comes too late must find it expired.
                () = sleep_until(clock.as_ref(), next), if next.is_some() => {
                    self.wake().await;
                }
                // What was written is signed before more is: the unsigned end stays short.
                read_back = self.sealing.next(), if self.sealing.is_reading() => {
                    self.read_back(read_back).await;
                }
                kept = self.copies.copied(), if self.copies.is_copying() => {
                    self.head_kept(kept);
                }
                () = sleep_until(clock.as_ref(), due), if due.is_some() => {
                    self.seal_all().await;
                }
                Some(came) = self.outbox.next() => self.noticed(came).await,
                () = sleep_until(clock.as_ref(), notice), if notice.is_some() => {
                    self.outbox.send(clock.now());
                }
                message = inbox.recv() => match message {
                    Some(Message::Ask { ask, command, reply }) => self.ask(ask, command, reply).await,
                    Some(Message::Returned(id, returned)) => self.returned(id, returned).await,
                    Some(Message::Checked(checked)) => self.checked(checked).await,
                    Some(Message::Draft(of, draft)) => self.keep_draft(of, draft).await,
                    Some(Message::Explain(question, reply)) => {
                        // Whoever asked may have left; nothing else comes of it.
                        let _ = reply.send(self.engine.account(&question, self.clock.now()));
                    }
                    Some(Message::Watch(watch)) => self.watch(watch),
                    Some(Message::Shadow(load)) => self.shadow(load),
                    Some(Message::Turn(asked)) => self.turn(*asked).await,
                    Some(Message::ThreadAct(asked)) => self.thread_act(*asked).await,
                    Some(Message::Load(load, reply)) => {
                        let _ = reply.send(self.load(load).await);
                    }
                    Some(Message::Stop(done)) => {
                        self.drain().await;
                        let _ = done.send(());
                        return;
                    }
                    None => {
                        self.drain().await;
                        return;
                    }
                },
            }
        }
    }

    async fn ask(&mut self, ask: AskId, command: Command, reply: oneshot::Sender<Reply>) {
        if let Some(what) = &self.poison {
            let _ = reply.send(unavailable(&command, what));
            return;
        }
        if matches!(command, Command::Decide(..)) {
            // Who is still there decides between a release and a permit.
            self.notice_who_left().await;
        }
        self.waiting.insert(ask, reply);
        let now = self.clock.now();
        let seen = self.watching.before(&self.engine, &command, now);
        self.look_on(&command, now);
        let effects = self.engine.handle(command, now);
        self.watching.after(seen, ask, &effects);
        self.carry_out(effects).await;
    }

    fn watch(&mut self, watch: Watch) {
        if self.watching.set(watch) {
            self.changed = true;
            self.show();
        }
    }

    /// An extension answered. Without a record nothing may come of it.
    async fn returned(&mut self, id: CallId, returned: Returned) {
        if self.poison.is_none() {
            self.notice_who_left().await;
            let command = Command::Returned(id, returned);
            let effects = self.engine.handle(command, self.clock.now());
            self.carry_out(effects).await;
        }
    }

    async fn notice_who_left(&mut self) {
        let gone = self.waiting.extract_if(|_, reply| reply.is_closed());
        for ask in gone.map(|(ask, _)| ask).collect::<Vec<_>>() {
            let effects = self
                .engine
                .handle(Command::AskerLeft(ask), self.clock.now());
            self.carry_out(effects).await;
        }
    }

    async fn wake(&mut self) {
        let now = self.clock.now();
        while let Some((at, gate)) = self.deadlines.first().cloned() {
            if at > now {
                return;
            }
            self.deadlines.pop_first();
            if self.poison.is_none() {
                let effects = self.engine.handle(Command::DeadlineReached(gate), now);
                self.carry_out(effects).await;
            }
        }
    }

    /// Does what the engine said must happen.
    async fn carry_out(&mut self, effects: Vec<Effect>) {
        self.carry_out_with(effects, Vec::new()).await;
    }

    /// The same, with rows of state that are not the engine's.
    async fn carry_out_with(&mut self, effects: Vec<Effect>, state: Vec<StateRow>) {
        if effects.is_empty() {
            return;
        }
        let mut batch = Batch {
            state,
            ..Batch::default()
        };
        let mut replies = Vec::new();
        let mut durability = Durability::Async;
        for effect in effects {
            match effect {
                Effect::Record(draft) => {
                    durability = durability.max(draft.durability);
                    let skipped = matches!(draft.payload, Payload::CheckpointSkipped(_));
                    self.dropped.advice += u64::from(skipped);
                    let draft = self.hooks.before(draft);
                    batch.records.push(self.ledger.seal(&draft));
                }
                Effect::Enter(payload) => {
                    durability = Durability::Sync;
                    let now = self.clock.now();
                    batch.records.push(self.ledger.entry(payload, now));
                }
                Effect::Seat(operator) => self.seat.operator = operator,
                Effect::Persist(change) => {
                    durability = durability.max(durability_of(change.kind));
                    batch.state.push(row(change));
                }
                Effect::Reply(ask, reply) => replies.push((ask, reply)),
                Effect::SetDeadline(gate, at) => drop(self.deadlines.insert((at, gate))),
                Effect::CallOut(call) => self.outside.ask(call),
                Effect::Held(_) => {}
                Effect::Notify(notice) => self.notify(&notice, &mut batch),
                Effect::Settled(decided) => batch.state.extend(self.drop_draft(&decided.gate)),
            }
        }
        self.changed = true;
        if batch.is_empty() {
            self.tell(replies);
            self.show();
            return;
        }
        self.write(batch, replies, durability).await;
    }

    async fn write(
        &mut self,
        mut batch: Batch,
        replies: Vec<(AskId, Reply)>,
        durability: Durability,
    ) {
        let records = if self.hooks.listen() {
            batch.records.clone()
        } else {
            Vec::new()
        };
        let entered = self.enter_if_full(&mut batch);
        let notices = self.outbox.take_drafted();
        let ack = match self.store.append(batch).await {
            Ok(ack) => ack,
            Err(error) => {
                self.poisoned(&error, replies);
                return;
            }
        };
        let replies = match durability {
            Durability::Sync => replies,
            Durability::Async => {
                self.tell(replies);
                Vec::new()
            }
        };
        let picture = (!self.picture_pending).then(|| self.picture());
        self.picture_pending |= picture.is_some();
        self.writes.push_back(Box::pin(async move {
            Written {
                outcome: ack.await,
                replies,
                picture,
                records,
                entered,
                notices,
            }
        }));
    }

    fn written(&mut self, written: Written) {
        if written.picture.is_some() {
            self.picture_pending = false;
        }
        match written.outcome {
            Ok(()) => {
                // A picture from before a failed write would hide the failure.
                let picture = written.picture.filter(|_| self.poison.is_none());
                if let Some(picture) = picture {
                    self.snapshots.send_replace(picture);
                }
                self.tell(written.replies);
                let missed = self.hooks.after(&written.records);
                self.dropped.hooks += missed;
                self.changed |= missed > 0;
                self.sealing
                    .entered(written.entered, &self.store, &self.ledger);
                self.changed |= !written.notices.is_empty();
                self.outbox.written(written.notices, self.clock.now());
                self.show();
            }
            Err(error) => self.poisoned(&error, written.replies),
        }
    }

    /// A write failed. Nothing more is allowed, and everyone who waits is told.
    fn poisoned(&mut self, error: &StoreError, replies: Vec<(AskId, Reply)>) {
        let what = error.to_string();
        tracing::error!(%what, "the store is poisoned");
        self.poison.get_or_insert_with(|| what.clone());
        for (ask, reply) in replies {
            let refusal = match reply {
                Reply::Decided(_)
                | Reply::Approved(_)
                | Reply::Acted
                | Reply::Invalid(_)
                | Reply::Refused(_) => Reply::Refused(Refused::Unavailable(what.clone())),
                Reply::Started(_)
                | Reply::Ended
                | Reply::Accepted(_)
                | Reply::Allowed(_)
                | Reply::Denied(_)
                | Reply::Asked(_)
                | Reply::Resolved(_)
                | Reply::Consulted(_)
                | Reply::Completed
                | Reply::Noted(_) => Reply::Denied(denied(&what)),
            };
            self.tell(vec![(ask, refusal)]);
        }
        let rest: Vec<_> = self.waiting.drain().collect();
        for (_, reply) in rest {
            let _ = reply.send(Reply::Denied(denied(&what)));
        }
        let picture = self.picture();
        self.snapshots.send_replace(picture);
    }

    fn tell(&mut self, replies: Vec<(AskId, Reply)>) {
        for (ask, reply) in replies {
            if let Some(waiting) = self.waiting.remove(&ask) {
                // An asker that left does not hear it; the record has it.
                let gone = waiting.send(reply).is_err();
                self.dropped.answers += u64::from(gone);
                self.changed |= gone;
            }
        }
    }

    async fn checked(&mut self, checked: Result<Report, String>) {
        self.verdict = ChainVerdict::from(&checked);
        self.changed = true;
        if self.poison.is_none() && self.verdict.fault().is_none() {
            let effects = self.engine.handle(Command::RecordSound, self.clock.now());
            self.carry_out(effects).await;
        }
        self.show();
    }

    /// Shows what changed, unless something in it is not durable yet: then a later write does.
    fn show(&mut self) {
        if self.changed && self.writes.is_empty() {
            let picture = self.picture();
            self.snapshots.send_replace(picture);
        }
    }

    fn picture(&mut self) -> Arc<Snapshot> {
        self.changed = false;
        let last = Arc::clone(&self.snapshots.borrow());
        let revision = last.revision + 1;
        let mut chain = ChainState {
            sessions: self.ledger.chains().sessions(),
            events: self.ledger.chains().events(),
            verdict: self.verdict.clone(),
            head: self.head(),
        };
        let Some(what) = &self.poison else {
            let drafts = Arc::clone(&self.drafts);
            let picture = Snapshot::of(&self.engine, &self.seat, revision, chain, drafts);
            let watched = self.watching.picture(&self.engine, self.clock.now());
            let (in_force, threads) = (self.in_force.clone(), self.threads.all());
            let thread_drafts = self.threads.drafts();
            return Arc::new(Snapshot {
                in_force,
                watched,
                threads,
                dropped: self.dropped,
                notices: self.outbox.state(),
                thread_drafts,
                ..picture
            });
        };
        // The engine is ahead of what is on disk and stays so. What is shown is what was durable.
        chain.sessions = last.chain.sessions;
        chain.events = last.chain.events;
        Arc::new(Snapshot {
            revision,
            chain,
            store: StoreState::Poisoned { what: what.clone() },
            dropped: self.dropped,
            ..(*last).clone()
        })
    }
}

async fn sleep_until(clock: &dyn Clock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}
