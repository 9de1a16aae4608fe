//! The only place where effects are carried out.
//!
//! One actor owns the engine. Commands come in one at a time; what the engine says must happen is
//! done here: records are sealed and handed to the store, replies go out once what they rest on is
//! durable, deadlines wake the engine. Nothing else touches the engine.
//!
//! Two ways in, on purpose of different types: [`Agents`] can ask, [`Desk`] can decide. Whoever holds
//! `Agents` cannot approve anything, because there is no call for it.
//!
//! Contract: after a failed write nothing is allowed any more. Whoever waits is told.

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
mod agents;
mod chains;
mod desk;
pub mod extension;
pub mod file;
mod hooks;
mod ledger;
pub mod lines;
mod live;
pub mod load;
mod message;
pub mod notices;
mod outgoing;
mod outside;
pub mod private_file;
mod reading;
mod records;
#[cfg(test)]
pub(crate) mod rehearsal;
mod shadow;
pub mod snapshot;
pub mod snapshot_file;
mod state_seal;
mod store_state;
mod threads;
pub mod upkeep;
mod viewer;
mod watchdog;
mod watched;
pub mod witness;

pub use crate::store::RecordedSession;
pub(crate) use agents::Taken;
pub use agents::{Agents, Answered, Requested, TurnTaken};
pub use desk::Desk;
pub use load::{Load, LoadRefused};
pub use message::DraftOf;
pub use reading::Reading;
pub use records::Records;
pub use threads::{
    HandOver, KeptThreads, TakeTurn, ThreadAct, ThreadDrafts, kept_threads, recorded_turn,
};
pub use viewer::ViewParts;
pub use watchdog::STALL_TIME;
pub use watched::Watch;

use acknowledgement::{ACKNOWLEDGEMENT, Acknowledgement};
use actor::{Beginning, Copies, Sealing};
use extension::Registry;
use hooks::Hooks;
pub use ledger::LogError;
use ledger::{Ledger, ReadBack};
use message::{AskIds, Message};
use notices::{Outbox, Webhooks};
use outside::Outside;
use snapshot::{Access, Drafts};
use state_seal::{OpenedState, STATE_SEAL, StateSeal, written_by};
use threads::Threads;

/// What a runtime is made of.
pub struct Parts {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// What decides.
    pub atlases: Vec<Atlas>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where identifiers come from.
    pub ids: Box<dyn IdSource>,
    /// Who sits at the console.
    pub operator: String,
    /// Whether this console can decide.
    pub access: Access,
    /// What can be asked beyond the Atlases.
    pub extensions: Registry,
    /// What signs the heads of the log.
    pub signer: Signer,
    /// Where a copy of the newest head is kept.
    pub head_file: Option<PathBuf>,
    /// Whether stewards are told what they asked to be told of.
    pub webhooks: Webhooks,
}

/// A runtime at work.
#[derive(Debug)]
pub struct Runtime {
    agents: Agents,
    desk: Desk,
    messages: mpsc::Sender<Message>,
    snapshots: watch::Sender<Arc<snapshot::Snapshot>>,
    /// Reads the whole record once, beside everything else.
    checking: JoinHandle<()>,
}

/// Why a runtime cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What it kept cannot be used.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Two Atlases have the same identifier: nobody could say which of them decided.
    #[error("two Atlases have the identifier `{0}`")]
    SameAtlas(String),
    /// The log cannot be gone on with.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The file that keeps the head of the log elsewhere cannot be used.
    #[error("the head file cannot be used: {0}")]
    HeadFile(String),
    /// It kept something that this version does not know.
    #[error("the store keeps state of a kind this version of cra does not know: `{0}`")]
    UnknownState(String),
}

impl Runtime {
    /// Starts a runtime where the last one was stopped.
    ///
    /// # Errors
    /// When what was kept cannot be read or used.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        check_names(&parts.atlases)?;
        let now = parts.clock.now();
        let table = parts.extensions.table();
        let known = match &parts.head_file {
            Some(path) => witness::read(path).map_err(StartError::HeadFile)?,
            None => None,
        };
        let key = parts.signer.verifier();
        let opened = open_state(&parts.store, parts.signer, known.as_slice(), now).await?;
        let (mut ledger, read_back, mut state) = opened;
        let rows = std::mem::take(&mut state.rows);
        let (mut engine, effects, beside) = restore(rows, parts.atlases, parts.ids, now)?;
        engine.set_extensions(table);
        let found = ledger.found(&parts.store.log().await?, beside.acknowledgement);
        let mut entries = first_entries(&ledger, found, &key, engine.atlases(), &parts.operator);
        entries.extend(state.entry());
        let batch = first_batch(engine.atlases(), std::mem::take(&mut state.changed));
        let (store, seal) = (&parts.store, &mut state.seal);
        let begun = actor::begin(store, &mut ledger, seal, read_back, entries, batch, now);
        let (mut read_back, seal) = begun.await?;
        forget_ended(&engine, &mut ledger, &mut read_back);
        if let Some(path) = &parts.head_file {
            witness::keep(path, &seal.note).map_err(StartError::HeadFile)?;
        }
        let (messages, inbox) = mpsc::channel(COMMAND_QUEUE);
        let ids = AskIds::default();
        let actor = actor::Actor::new(Beginning {
            engine,
            ledger,
            state_seal: state.seal,
            distrusted: state.distrusted.map(Arc::from),
            sealing: Sealing::new(read_back, seal.size),
            copies: Copies::new(parts.head_file),
            store: Arc::clone(&parts.store),
            clock: Arc::clone(&parts.clock),
            seat: snapshot::Seat {
                operator: parts.operator,
                access: parts.access,
            },
            hooks: Hooks::new(
                parts.extensions.hooks().to_vec(),
                parts.extensions.events().clone(),
            ),
            outside: Outside::new(parts.extensions, messages.downgrade(), ids.clone()),
            drafts: beside.drafts,
            threads: beside.threads,
            outbox: Outbox::new(parts.webhooks, &beside.notices, now),
        });
        let (sender, snapshots) = (actor.snapshot_sender(), actor.snapshots());
        tokio::spawn(actor.run(effects, inbox));
        let desk = Desk::new(
            messages.clone(),
            snapshots.clone(),
            Arc::clone(&parts.store),
            ids.clone(),
            key,
        );
        Ok(Self {
            agents: Agents::new(messages.clone(), ids, snapshots),
            checking: check(desk.clone()),
            desk,
            messages,
            snapshots: sender,
        })
    }

    /// Watches over the store from now on: files that vanish, and writes that do not end.
    pub fn watch_store(&self) {
        let watchdog = watchdog::Watchdog {
            store: self.desk.store(),
            snapshots: self.snapshots.clone(),
            messages: self.messages.downgrade(),
            key: self.desk.key(),
        };
        tokio::spawn(watchdog.run());
    }

    /// The agents' way in.
    #[must_use]
    pub fn agents(&self) -> Agents {
        self.agents.clone()
    }

    /// The record, for those who only listen.
    #[must_use]
    pub fn records(&self) -> Records {
        self.desk.records()
    }

    /// The operator's way in.
    #[must_use]
    pub fn desk(&self) -> Desk {
        self.desk.clone()
    }

    /// Finishes what is under way, makes it durable, and stops. Held requests stay held.
    pub async fn stop(self) {
        let (done, stopped) = oneshot::channel();
        if self.messages.send(Message::Stop(done)).await.is_ok() {
            let _ = stopped.await;
        }
        // Whoever opens the store next must not find it still being read for this one.
        self.checking.abort();
        let _ = self.checking.await;
    }
}

/// Checks the whole record in the background: opening a large one keeps no agent waiting.
fn check(desk: Desk) -> JoinHandle<()> {
    tokio::spawn(async move {
        let _ = desk.verify().await;
    })
}

/// The state and the Atlases that a runtime writes before it lets agents in.
fn first_batch(atlases: &[Atlas], mut state: Vec<StateRow>) -> Batch {
    let acknowledge = recording::acknowledge(atlases);
    state.push(Acknowledgement::running(acknowledge).row());
    Batch {
        state,
        atlases: atlases.iter().map(atlas_text).collect(),
        ..Batch::default()
    }
}

/// Forgets the chains of sessions that are over: nothing follows in them.
fn forget_ended(engine: &Engine, ledger: &mut Ledger, read_back: &mut ReadBack) {
    let log = ledger.log().clone();
    let is_live = |session: &SessionId| *session == log || engine.session(session).is_some();
    ledger.keep_chains(is_live);
    read_back.keep_chains(is_live);
}

/// Takes up the log of a store, and the state as far as its seal backs it.
async fn open_state(
    store: &Arc<dyn Store>,
    signer: Signer,
    known: &[KnownHead],
    now: Timestamp,
) -> Result<(Ledger, ReadBack, OpenedState), StartError> {
    let rows = store.state().await?;
    let by = written_by(store.as_ref(), &store.log().await?).await?;
    let seal = StateSeal::new(&signer, &rows);
    let (ledger, read_back) = Ledger::open(store.as_ref(), signer, known).await?;
    let state = OpenedState::new(seal, rows, &ledger, by, now);
    Ok((ledger, read_back, state))
}

fn check_names(atlases: &[Atlas]) -> Result<(), StartError> {
    match named_twice(atlases) {
        Some(twice) => Err(StartError::SameAtlas(twice.to_owned())),
        None => Ok(()),
    }
}

/// An identifier that two Atlases have.
fn named_twice(atlases: &[Atlas]) -> Option<&str> {
    let mut known = BTreeSet::new();
    let mut atlases = atlases.iter();
    let twice = atlases.find(|atlas| !known.insert(&atlas.id))?;
    Some(&twice.id)
}

/// State that is kept apart from the engine's.
struct Beside {
    drafts: Drafts,
    threads: Threads,
    /// Notices as they were written.
    notices: Vec<StateRow>,
    /// The promise of the console before.
    acknowledgement: Option<Acknowledgement>,
}

fn restore(
    rows: Vec<StateRow>,
    atlases: Vec<Atlas>,
    ids: Box<dyn IdSource>,
    now: Timestamp,
) -> Result<(Engine, Vec<Effect>, Beside), StartError> {
    let mut kept = Vec::new();
    let mut threads = Vec::new();
    let mut notices = Vec::new();
    let mut drafts = Drafts::new();
    let mut acknowledgement = None;
    for row in rows {
        if row.kind == actor::DRAFT {
            let draft = row.body.and_then(|body| json::read(body.as_bytes()).ok());
            // What cannot be read was only typed, not decided: it is typed again.
            if let (Ok(gate), Some(draft)) = (row.key.parse(), draft) {
                drafts.insert(gate, draft);
            }
            continue;
        }
        if row.kind == threads::THREAD || row.kind == threads::THREAD_DRAFT {
            threads.push(row);
            continue;
        }
        if row.kind == ACKNOWLEDGEMENT {
            acknowledgement = Acknowledgement::read(&row);
            continue;
        }
        if row.kind == notices::NOTICE {
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
    // Sessions that are over are looked up in the record when one is named: see `Actor::look_up`.
    let over = BTreeSet::new();
    let (engine, effects) = Engine::restore(atlases, ids, kept, over, now)?;
    let held = engine.held();
    drafts.retain(|gate, _| held.iter().any(|held| held.id == *gate));
    let threads = Threads::restored(threads);
    let beside = Beside {
        drafts,
        threads,
        notices,
        acknowledgement,
    };
    Ok((engine, effects, beside))
}

/// What goes into the log when a runtime starts.
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
    entries.extend(atlases.iter().map(|atlas| loaded(atlas, operator).into()));
    entries
}

/// What is recorded of an Atlas that comes into force.
fn loaded(atlas: &Atlas, by: &str) -> AtlasLoaded {
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

/// The receiving end of the pictures.
type Snapshots = watch::Receiver<Arc<snapshot::Snapshot>>;
