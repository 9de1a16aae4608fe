//! The actor that executes the engine's effects.
//!
//! One actor owns the engine and handles commands one at a time. It executes the engine's effects: it seals
//! records and hands them to the store, sends replies once their records are durable, and wakes the engine
//! at deadlines. Nothing else touches the engine.
//!
//! The runtime has two handles of different types, on purpose: [`AgentHandle`] can ask, [`OperatorHandle`] can decide. A
//! holder of `Agents` cannot approve anything, because the type has no such call.
//!
//! Contract: after a failed write nothing is allowed any more. All waiting callers are told.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::atlas::{Atlas, recording};
use crate::base::clock::{Clock, Timestamp};
use crate::base::digest::Digest;
use crate::base::id::{IdSource, SessionId};
use crate::base::json;
use crate::base::limits::COMMAND_QUEUE;
use crate::engine::command::{Effect, StateChange, StateKind};
use crate::engine::{Engine, RestoreError};
use crate::store::{AtlasText, Batch, StateRow, Store, StoreError};
use crate::trace::event::{AtlasLoaded, LogStarted, Payload, StoreRecovered};
use crate::trace::head::KnownHead;
use crate::trace::note::{Signer, Verifier};

pub mod account;
mod acknowledgement;
mod actor;
mod agent_handle;
pub mod atlas_load;
mod chains;
mod evaluation_watch;
pub mod export_file;
pub mod extension;
mod extension_calls;
mod hooks;
mod http_client;
mod ledger;
pub mod lines;
mod live_view;
pub mod maintenance;
mod message;
pub mod notices;
mod operator_handle;
pub mod private_file;
mod record_reader;
mod record_stream;
mod shadow;
pub mod snapshot;
pub mod snapshot_file;
mod state_seal;
mod store_state;
#[cfg(test)]
pub(crate) mod test_runtime;
mod threads;
mod viewer;
mod watchdog;
pub mod witness;

pub use crate::store::RecordedSession;
pub(crate) use agent_handle::EventReply;
pub use agent_handle::{AgentHandle, AnswerReply, RequestReply, TurnReply};
pub use atlas_load::{AtlasLoad, LoadRefusal};
pub use evaluation_watch::WatchSetting;
pub use message::DraftSubject;
pub use operator_handle::OperatorHandle;
pub use record_reader::RecordReader;
pub use record_stream::RecordStream;
pub use threads::{
    SessionTurn, StoredThreads, ThreadAction, ThreadDrafts, ThreadHandOver, stored_threads,
    turn_record,
};
pub use viewer::ViewParts;
pub use watchdog::STALL_TIME;

use acknowledgement::{ACKNOWLEDGEMENT, Acknowledgement};
use actor::{ActorParts, HeadCopies, SealProgress};
use extension::Registry;
use extension_calls::ExtensionCaller;
use hooks::EventHooks;
pub use ledger::LogError;
use ledger::{Ledger, ReadBack};
use message::{ActorMessage, ReplyIds};
use notices::{NoticeOutbox, Webhooks};
use snapshot::{ConsoleAccess, Drafts};
use state_seal::{OpenedState, STATE_SEAL, StateSeal, writer_version};
use threads::ThreadStore;

/// Components of a runtime.
pub struct RuntimeParts {
    /// Storage of records and state.
    pub store: Arc<dyn Store>,
    /// Atlases that decide.
    pub atlases: Vec<Atlas>,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// Source of identifiers.
    pub ids: Box<dyn IdSource>,
    /// Operator at the console.
    pub operator: String,
    /// Tells whether this console can decide.
    pub access: ConsoleAccess,
    /// Extensions that checkpoints can call.
    pub extensions: Registry,
    /// Key that signs the heads of the log.
    pub signer: Signer,
    /// File for a copy of the newest head.
    pub head_file: Option<PathBuf>,
    /// Tells whether notices are sent to stewards.
    pub webhooks: Webhooks,
}

/// A running runtime.
#[derive(Debug)]
pub struct Runtime {
    agents: AgentHandle,
    operator: OperatorHandle,
    messages: mpsc::Sender<ActorMessage>,
    snapshots: watch::Sender<Arc<snapshot::RuntimeSnapshot>>,
    /// Verifies the whole record once, in the background.
    checking: JoinHandle<()>,
}

/// Reason why a runtime cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored state cannot be used.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Two Atlases have one identifier, so the record could not tell which of them decided.
    #[error("two Atlases have the identifier `{0}`")]
    SameAtlas(String),
    /// The log cannot be continued.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file with the external copy of the log's head cannot be used.
    #[error("the head file cannot be used: {0}")]
    HeadFile(#[from] witness::HeadFileError),
    /// The store has state of an unknown kind.
    #[error("the store has state of a kind that this version of cra does not know: `{0}`")]
    UnknownState(String),
}

impl Runtime {
    /// Starts a runtime from the state that the last one stored.
    ///
    /// # Errors
    /// Fails when the stored state cannot be read or used.
    pub async fn start(parts: RuntimeParts) -> Result<Self, StartError> {
        check_atlas_ids(&parts.atlases)?;
        let now = parts.clock.now();
        let table = parts.extensions.table();
        let known = match &parts.head_file {
            Some(path) => witness::read_head(path)?,
            None => None,
        };
        let key = parts.signer.verifier();
        let opened = open_state(&parts.store, parts.signer, known.as_slice(), now).await?;
        let (mut ledger, read_back, mut state) = opened;
        let rows = std::mem::take(&mut state.rows);
        let (mut engine, effects, beside) = restore(rows, parts.atlases, parts.ids, now)?;
        engine.set_extensions(table);
        let found = ledger.recovery_entry(&parts.store.log().await?, beside.acknowledgement);
        let mut entries = first_entries(&ledger, found, &key, engine.atlases(), &parts.operator);
        entries.extend(state.entry());
        let batch = first_batch(engine.atlases(), std::mem::take(&mut state.changed));
        let (store, seal) = (&parts.store, &mut state.seal);
        let begun =
            actor::write_first_entries(store, &mut ledger, seal, read_back, entries, batch, now);
        let (mut read_back, seal) = begun.await?;
        drop_ended_chains(&engine, &mut ledger, &mut read_back);
        if let Some(path) = &parts.head_file {
            witness::write_head(path, &seal.note)?;
        }
        let (messages, inbox) = mpsc::channel(COMMAND_QUEUE);
        let ids = ReplyIds::default();
        let actor = actor::Actor::new(ActorParts {
            engine,
            ledger,
            state_seal: state.seal,
            distrusted: state.distrusted.map(Arc::from),
            sealing: SealProgress::new(read_back, seal.size),
            copies: HeadCopies::new(parts.head_file),
            store: Arc::clone(&parts.store),
            clock: Arc::clone(&parts.clock),
            seat: snapshot::ConsoleOperator {
                operator: parts.operator,
                access: parts.access,
            },
            hooks: EventHooks::new(
                parts.extensions.hooks().to_vec(),
                parts.extensions.events().clone(),
            ),
            outside: ExtensionCaller::new(parts.extensions, messages.downgrade(), ids.clone()),
            drafts: beside.drafts,
            threads: beside.threads,
            outbox: NoticeOutbox::new(parts.webhooks, &beside.notices, now),
        });
        let (sender, snapshots) = (actor.snapshot_sender(), actor.snapshots());
        tokio::spawn(actor.run(effects, inbox));
        let desk = OperatorHandle::new(
            messages.clone(),
            snapshots.clone(),
            Arc::clone(&parts.store),
            ids.clone(),
            key,
        );
        Ok(Self {
            agents: AgentHandle::new(messages.clone(), ids, snapshots),
            checking: spawn_verification(desk.clone()),
            operator: desk,
            messages,
            snapshots: sender,
        })
    }

    /// Starts the watchdog of the store: it notices missing files and writes that do not end.
    pub fn watch_store(&self) {
        let watchdog = watchdog::Watchdog {
            store: self.operator.store(),
            snapshots: self.snapshots.clone(),
            messages: self.messages.downgrade(),
            key: self.operator.key(),
        };
        tokio::spawn(watchdog.run());
    }

    /// Returns the handle for agents.
    #[must_use]
    pub fn agent_handle(&self) -> AgentHandle {
        self.agents.clone()
    }

    /// Returns a read-only stream of records.
    #[must_use]
    pub fn record_stream(&self) -> RecordStream {
        self.operator.records()
    }

    /// Returns the handle for the operator.
    #[must_use]
    pub fn operator_handle(&self) -> OperatorHandle {
        self.operator.clone()
    }

    /// Finishes running work, makes it durable, and stops. Held requests stay held.
    pub async fn stop(self) {
        let (done, stopped) = oneshot::channel();
        if self.messages.send(ActorMessage::Stop(done)).await.is_ok() {
            let _ = stopped.await;
        }
        // The next process that opens the store must not find it still in use by this one.
        self.checking.abort();
        let _ = self.checking.await;
    }
}

/// Verifies the whole record in the background: agents do not wait while a large record is opened.
fn spawn_verification(desk: OperatorHandle) -> JoinHandle<()> {
    tokio::spawn(async move {
        let _ = desk.verify().await;
    })
}

/// Builds the batch of state and Atlases that is written before agents are admitted.
fn first_batch(atlases: &[Atlas], mut state: Vec<StateRow>) -> Batch {
    let acknowledge = recording::acknowledge_mode(atlases);
    state.push(Acknowledgement::running(acknowledge).row());
    Batch {
        state,
        atlases: atlases.iter().map(atlas_text).collect(),
        ..Batch::default()
    }
}

/// Drops the chains of ended sessions: they get no more records.
fn drop_ended_chains(engine: &Engine, ledger: &mut Ledger, read_back: &mut ReadBack) {
    let log = ledger.log().clone();
    let is_live = |session: &SessionId| *session == log || engine.session(session).is_some();
    ledger.retain_live_chains(is_live);
    read_back.retain_live_chains(is_live);
}

/// Opens the log of a store, and the state as far as its seal confirms it.
async fn open_state(
    store: &Arc<dyn Store>,
    signer: Signer,
    known: &[KnownHead],
    now: Timestamp,
) -> Result<(Ledger, ReadBack, OpenedState), StartError> {
    let rows = store.state().await?;
    let by = writer_version(store.as_ref(), &store.log().await?).await?;
    let seal = StateSeal::new(&signer, &rows);
    let (ledger, read_back) = Ledger::open(store.as_ref(), signer, known).await?;
    let state = OpenedState::new(seal, rows, &ledger, by, now);
    Ok((ledger, read_back, state))
}

fn check_atlas_ids(atlases: &[Atlas]) -> Result<(), StartError> {
    match duplicate_atlas_id(atlases) {
        Some(twice) => Err(StartError::SameAtlas(twice.to_owned())),
        None => Ok(()),
    }
}

/// Returns an identifier that two Atlases share.
fn duplicate_atlas_id(atlases: &[Atlas]) -> Option<&str> {
    let mut known = BTreeSet::new();
    let mut atlases = atlases.iter();
    let twice = atlases.find(|atlas| !known.insert(&atlas.id))?;
    Some(&twice.id)
}

/// State that does not belong to the engine.
struct StoredRuntimeState {
    drafts: Drafts,
    threads: ThreadStore,
    /// Stored notices.
    notices: Vec<StateRow>,
    /// Acknowledgement mode of the last console.
    acknowledgement: Option<Acknowledgement>,
}

fn restore(
    rows: Vec<StateRow>,
    atlases: Vec<Atlas>,
    ids: Box<dyn IdSource>,
    now: Timestamp,
) -> Result<(Engine, Vec<Effect>, StoredRuntimeState), StartError> {
    let mut kept = Vec::new();
    let mut threads = Vec::new();
    let mut notices = Vec::new();
    let mut drafts = Drafts::new();
    let mut acknowledgement = None;
    for row in rows {
        if row.kind == actor::DRAFT_KIND {
            let draft = row.body.and_then(|body| json::read(body.as_bytes()).ok());
            // An unreadable draft was only typed, not decided: the operator can type it again.
            if let (Ok(gate), Some(draft)) = (row.key.parse(), draft) {
                drafts.insert(gate, draft);
            }
            continue;
        }
        if row.kind == threads::THREAD_KIND || row.kind == threads::THREAD_DRAFT_KIND {
            threads.push(row);
            continue;
        }
        if row.kind == ACKNOWLEDGEMENT {
            acknowledgement = Acknowledgement::read(&row);
            continue;
        }
        if row.kind == notices::NOTICE_KIND {
            notices.push(row);
            continue;
        }
        if row.kind == STATE_SEAL {
            continue;
        }
        let kind = StateKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == row.kind);
        let Some(kind) = kind else {
            return Err(StartError::UnknownState(row.kind));
        };
        kept.push(StateChange {
            kind,
            key: row.key,
            body: row.body,
        });
    }
    // Ended sessions are looked up in the record when a call names one: see `Actor::look_up`.
    let over = BTreeSet::new();
    let (engine, effects) = Engine::restore(atlases, ids, kept, over, now)?;
    let held = engine.held();
    drafts.retain(|gate, _| held.iter().any(|held| held.id == *gate));
    let threads = ThreadStore::restore(threads);
    let beside = StoredRuntimeState {
        drafts,
        threads,
        notices,
        acknowledgement,
    };
    Ok((engine, effects, beside))
}

/// Returns the log entries of a starting runtime.
fn first_entries(
    ledger: &Ledger,
    found: Option<StoreRecovered>,
    key: &Verifier,
    atlases: &[Atlas],
    operator: &str,
) -> Vec<Payload> {
    let mut entries = Vec::new();
    if ledger.is_new() {
        entries.push(LogStarted::now(key).into());
    }
    entries.extend(found.map(Payload::from));
    entries.extend(
        atlases
            .iter()
            .map(|atlas| loaded_entry(atlas, operator).into()),
    );
    entries
}

/// Builds the log entry for a newly loaded Atlas.
fn loaded_entry(atlas: &Atlas, by: &str) -> AtlasLoaded {
    let of_text = Digest::of(atlas.text.as_bytes());
    AtlasLoaded {
        atlas_id: atlas.id.clone(),
        version: atlas.version.clone(),
        atlas_hash: atlas.hash.to_string(),
        text_hash: (of_text != atlas.hash).then(|| of_text.to_string()),
        checkpoints: atlas.checkpoints.len() as u64,
        replaces: None,
        removes: Vec::new(),
        loaded_by: None,
        by: Some(by.to_owned()),
    }
}

fn atlas_text(atlas: &Atlas) -> AtlasText {
    AtlasText {
        hash: atlas.hash.to_string(),
        atlas_id: atlas.id.clone(),
        version: atlas.version.clone(),
        text: atlas.text.to_string(),
    }
}

/// Receiver of snapshots for the screen.
type SnapshotReceiver = watch::Receiver<Arc<snapshot::RuntimeSnapshot>>;
