//! Read-only runtime: another process owns the record, or its disk cannot be written.
//!
//! This runtime executes no commands and has no handle for agents. It reads the state of the other process
//! every second, and publishes a snapshot of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::message::{ActorMessage, ReplyIds};
use super::snapshot::{
    AtlasSummary, ChainVerdict, ConsoleAccess, HeadCopyState, HeadState, OperatorActs,
    RecordSummary, RuntimeSnapshot, SessionSummary,
};
use super::{AgentHandle, OperatorHandle, Runtime, StartError, check_atlas_ids, restore};
use crate::atlas::Atlas;
use crate::base::clock::Clock;
use crate::base::id::RandomIds;
use crate::base::limits::COMMAND_QUEUE;
use crate::engine::Engine;
use crate::store::{StateRow, Store, StoreError};
use crate::trace::note::Verifier;
use crate::trace::verification::ChainHead;

/// Interval between two reads of the store.
const VIEW_TIME: Duration = Duration::from_secs(1);

/// Parts of a read-only runtime.
pub struct ViewParts {
    /// The store, which is only read.
    pub store: Arc<dyn Store>,
    /// Atlases under which the state is shown.
    pub atlases: Vec<Atlas>,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// Operator at this console.
    pub operator: String,
    /// Key that signs the heads of the log.
    pub key: Verifier,
}

/// State and chain heads of a store, read together.
type StoreView = (Vec<StateRow>, Vec<ChainHead>);

struct Viewer {
    parts: ViewParts,
    engine: Engine,
    seen: StoreView,
    chain: RecordSummary,
    snapshots: watch::Sender<Arc<RuntimeSnapshot>>,
}

impl Runtime {
    /// Starts a runtime that shows the content of a store and changes nothing.
    ///
    /// # Errors
    /// Fails when the stored state cannot be read or used.
    pub async fn view(parts: ViewParts) -> Result<Self, StartError> {
        check_atlas_ids(&parts.atlases)?;
        let seen = read_store(parts.store.as_ref()).await?;
        let engine = restore_engine(&parts).await?;
        let (snapshots, pictures) = watch::channel(Arc::new(RuntimeSnapshot::empty()));
        let (store, key) = (Arc::clone(&parts.store), parts.key.clone());
        let mut viewer = Viewer {
            parts,
            engine,
            seen,
            chain: RecordSummary::default(),
            snapshots: snapshots.clone(),
        };
        viewer.publish().await?;
        let (messages, inbox) = mpsc::channel(COMMAND_QUEUE);
        let ids = ReplyIds::default();
        let operator_handle =
            OperatorHandle::new(messages.clone(), pictures.clone(), store, ids.clone(), key);
        let checking = tokio::spawn({
            let operator_handle = operator_handle.clone();
            async move {
                let _ = operator_handle.verify().await;
            }
        });
        tokio::spawn(viewer.run(inbox));
        Ok(Self {
            agents: AgentHandle::new(messages.clone(), ids, pictures),
            operator: operator_handle,
            messages,
            snapshots,
            checking,
        })
    }
}

async fn read_store(store: &dyn Store) -> Result<StoreView, StoreError> {
    Ok((store.state().await?, store.heads().await?))
}

async fn restore_engine(parts: &ViewParts) -> Result<Engine, StartError> {
    let (atlases, now) = (parts.atlases.clone(), parts.clock.now());
    let rows = parts.store.state().await?;
    let restored = restore(rows, atlases, Box::new(RandomIds), now)?;
    Ok(restored.0)
}

impl Viewer {
    async fn run(mut self, mut inbox: mpsc::Receiver<ActorMessage>) {
        let mut ticks = interval(VIEW_TIME);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.read_again().await,
                message = inbox.recv() => match message {
                    Some(ActorMessage::Verified(checked)) => {
                        self.chain.verdict = ChainVerdict::from(&checked);
                        self.publish_or_report().await;
                    }
                    Some(ActorMessage::Explain(question, reply)) => {
                        let now = self.parts.clock.now();
                        // The caller may have disconnected; that changes nothing.
                        let _ = reply.send(self.engine.explain_question(&question, now));
                    }
                    Some(ActorMessage::Stop(done)) => {
                        let _ = done.send(());
                        return;
                    }
                    None => return,
                    // All other messages would change something: the caller sees its reply channel closed.
                    Some(_) => {}
                },
            }
        }
    }

    async fn read_again(&mut self) {
        let read = async {
            let seen = read_store(self.parts.store.as_ref()).await?;
            if seen == self.seen {
                return Ok(None);
            }
            Ok::<_, StartError>(Some((seen, restore_engine(&self.parts).await?)))
        };
        match read.await {
            Ok(None) => {}
            Ok(Some((seen, engine))) => {
                (self.seen, self.engine) = (seen, engine);
                self.publish_or_report().await;
            }
            Err(error) => self.report_unreadable(&error),
        }
    }

    async fn publish_or_report(&mut self) {
        if let Err(error) = self.publish().await {
            self.report_unreadable(&error);
        }
    }

    async fn publish(&mut self) -> Result<(), StartError> {
        let log = self.parts.store.log().await?;
        let heads = self.seen.1.iter().filter(|head| head.session != log.log);
        self.chain.sessions = heads.clone().count() as u64;
        self.chain.events = heads.map(|head| head.count).sum();
        self.chain.head = HeadState {
            signed: log.seal.map_or(0, |seal| seal.size),
            covered: 0,
            copy: HeadCopyState::NotConfigured,
        };
        let engine = &self.engine;
        let sessions = engine.sessions().into_iter();
        let picture = RuntimeSnapshot {
            revision: self.snapshots.borrow().revision + 1,
            operator: self.parts.operator.clone(),
            access: ConsoleAccess::ReadOnly,
            atlases: engine.atlases().iter().map(AtlasSummary::of).collect(),
            loaded: engine.shared_atlases(),
            sessions: sessions
                .map(|session| SessionSummary::of(session, engine.atlases()))
                .collect(),
            held: engine.held(),
            decided: engine.settled().cloned().collect(),
            operator_acts: OperatorActs {
                overruled: engine.overruled_denials(),
                acknowledged_fault: engine.acknowledged_fault().cloned(),
            },
            chain: self.chain.clone(),
            ..RuntimeSnapshot::empty()
        };
        self.snapshots.send_replace(Arc::new(picture));
        Ok(())
    }

    fn report_unreadable(&self, error: &StartError) {
        let what = error.to_string();
        self.snapshots.send_modify(|picture| {
            let mut next = (**picture).clone();
            next.revision += 1;
            next.chain.verdict = ChainVerdict::Unreadable { what };
            *picture = Arc::new(next);
        });
    }
}
