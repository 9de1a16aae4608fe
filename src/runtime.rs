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

use crate::atlas::Atlas;
use crate::base::clock::{Clock, Timestamp};
use crate::base::id::{IdSource, SessionId};
use crate::base::limits::COMMAND_QUEUE;
use crate::engine::command::{Effect, StateChange, StateKind};
use crate::engine::{Engine, RestoreError};
use crate::store::{AtlasText, Batch, LogState, StateRow, Store, StoreError};
use crate::trace::event::{AtlasLoaded, LogStarted, Payload};
use crate::trace::note::{Signer, Verifier};

pub mod account;
mod actor;
mod agents;
mod chains;
mod desk;
pub mod extension;
pub mod file;
mod hooks;
mod ledger;
pub mod lines;
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
mod threads;
pub mod upkeep;
mod watched;
pub mod witness;

pub use crate::store::RecordedSession;
pub use agents::{Agents, Answered, Requested};
pub use desk::Desk;
pub use load::{Load, LoadRefused};
pub use message::DraftOf;
pub use reading::Reading;
pub use records::Records;
pub use threads::{KeptThreads, TakeTurn, ThreadAct, ThreadDrafts, kept_threads, recorded_turn};
pub use watched::Watch;

use actor::{Beginning, Copies, Sealing};
use extension::Registry;
use hooks::Hooks;
use ledger::Ledger;
pub use ledger::LogError;
use message::{AskIds, Message};
use notices::{Outbox, Webhooks};
use outside::Outside;
use snapshot::{Access, Drafts};
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
        let restored = restore(&parts.store, parts.atlases, parts.ids, now).await?;
        let (mut engine, effects, (drafts, threads, notices)) = restored;
        engine.set_extensions(table);
        let known = match &parts.head_file {
            Some(path) => witness::read(path).map_err(StartError::HeadFile)?,
            None => None,
        };
        let key = parts.signer.verifier();
        let opened = Ledger::open(parts.store.as_ref(), parts.signer, known.as_slice()).await?;
        let (mut ledger, read_back) = opened;
        let entries = first_entries(&ledger, &parts.store.log().await?, &key, engine.atlases());
        let batch = Batch {
            atlases: engine.atlases().iter().map(atlas_text).collect(),
            ..Batch::default()
        };
        let begun = actor::begin(&parts.store, &mut ledger, read_back, entries, batch, now);
        let (read_back, seal) = begun.await?;
        if let Some(path) = &parts.head_file {
            witness::keep(path, &seal.note).map_err(StartError::HeadFile)?;
        }
        let (messages, inbox) = mpsc::channel(COMMAND_QUEUE);
        let ids = AskIds::default();
        let sealing = Sealing::new(read_back, seal.size);
        let actor = actor::Actor::new(Beginning {
            engine,
            ledger,
            sealing,
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
            drafts,
            threads,
            outbox: Outbox::new(parts.webhooks, &notices, now),
        });
        let snapshots = actor.snapshots();
        tokio::spawn(actor.run(effects, inbox));
        let desk = Desk::new(
            messages.clone(),
            snapshots,
            Arc::clone(&parts.store),
            ids.clone(),
            key,
        );
        let checking = tokio::spawn({
            // The record is checked in the background: opening a large one must not keep anyone waiting.
            let desk = desk.clone();
            async move {
                let _ = desk.verify().await;
            }
        });
        Ok(Self {
            agents: Agents::new(messages.clone(), ids),
            desk,
            messages,
            checking,
        })
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

/// What is kept beside the engine's state: drafts, conversations, and notices as they were written.
type Beside = (Drafts, Threads, Vec<StateRow>);

async fn restore(
    store: &Arc<dyn Store>,
    atlases: Vec<Atlas>,
    ids: Box<dyn IdSource>,
    now: Timestamp,
) -> Result<(Engine, Vec<Effect>, Beside), StartError> {
    let mut kept = Vec::new();
    let mut threads = Vec::new();
    let mut notices = Vec::new();
    let mut drafts = Drafts::new();
    for row in store.state().await? {
        if row.kind == actor::DRAFT {
            let draft = row.body.and_then(|body| serde_json::from_str(&body).ok());
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
        if row.kind == notices::NOTICE {
            notices.push(row);
            continue;
        }
        let kind = StateKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == row.kind);
        let Some(kind) = kind else {
            return Err(StartError::UnknownState(row.kind));
        };
        // What is not even JSON is refused where it is read as a piece of state.
        let read = |text: String| serde_json::from_str(&text).unwrap_or(text.into());
        kept.push(StateChange {
            kind,
            key: row.key,
            body: row.body.map(read),
        });
    }
    // What is on record and not at work is over, also where it was recorded elsewhere and never ended:
    // nobody goes on with it.
    let at_work: BTreeSet<_> = kept
        .iter()
        .filter(|change| change.kind == StateKind::Session)
        .map(|change| change.key.clone())
        .collect();
    let sessions = store.sessions().await?.into_iter();
    let over = sessions
        .filter(|session| session.ended || !at_work.contains(session.session.as_str()))
        .map(|session| session.session)
        .collect::<BTreeSet<SessionId>>();
    let (engine, effects) = Engine::restore(atlases, ids, kept, over, now)?;
    let held = engine.held();
    drafts.retain(|gate, _| held.iter().any(|held| held.id == *gate));
    let threads = Threads::restored(threads);
    Ok((engine, effects, (drafts, threads, notices)))
}

/// What goes into the log when a runtime starts.
fn first_entries(
    ledger: &Ledger,
    state: &LogState,
    key: &Verifier,
    atlases: &[Atlas],
) -> Vec<Payload> {
    let mut entries = Vec::new();
    if ledger.is_new() {
        entries.push(LogStarted::now(key).into());
    }
    entries.extend(ledger.found(state).map(Payload::from));
    entries.extend(atlases.iter().map(|atlas| loaded(atlas).into()));
    entries
}

/// What is recorded of an Atlas that comes into force.
fn loaded(atlas: &Atlas) -> AtlasLoaded {
    AtlasLoaded {
        atlas_id: atlas.id.clone(),
        version: atlas.version.clone(),
        atlas_hash: atlas.hash.to_string(),
        checkpoints: atlas.checkpoints.len() as u64,
        replaces: None,
        removes: Vec::new(),
        loaded_by: None,
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
