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

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use crate::atlas::Atlas;
use crate::base::clock::{Clock, Timestamp};
use crate::base::id::{IdSource, SessionId};
use crate::base::limits::COMMAND_QUEUE;
use crate::engine::command::{Effect, StateChange, StateKind};
use crate::engine::{Engine, RestoreError};
use crate::store::{Store, StoreError};

mod actor;
mod agents;
mod chains;
mod desk;
pub mod extension;
mod hooks;
mod message;
mod outside;
pub mod snapshot;

pub use crate::store::RecordedSession;
pub use agents::{Agents, Answered, Requested};
pub use desk::Desk;

use chains::Chains;
use extension::Registry;
use hooks::Hooks;
use message::{AskIds, Message};
use outside::Outside;
use snapshot::Access;

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
}

/// A runtime at work.
#[derive(Debug)]
pub struct Runtime {
    agents: Agents,
    desk: Desk,
    messages: mpsc::Sender<Message>,
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
        let mut known = std::collections::BTreeSet::new();
        if let Some(twice) = parts.atlases.iter().find(|atlas| !known.insert(&atlas.id)) {
            return Err(StartError::SameAtlas(twice.id.clone()));
        }
        let now = parts.clock.now();
        let table = parts.extensions.table();
        let (mut engine, effects) = restore(&parts.store, parts.atlases, parts.ids, now).await?;
        engine.set_extensions(table);
        let chains = Chains::resume(parts.store.heads().await?);
        let (messages, inbox) = mpsc::channel(COMMAND_QUEUE);
        let ids = AskIds::default();
        let actor = actor::Actor::new(
            engine,
            chains,
            Arc::clone(&parts.store),
            Arc::clone(&parts.clock),
            snapshot::Seat {
                operator: parts.operator,
                access: parts.access,
            },
            Hooks::new(
                parts.extensions.hooks().to_vec(),
                parts.extensions.events().clone(),
            ),
            Outside::new(parts.extensions, messages.downgrade(), ids.clone()),
        );
        let snapshots = actor.snapshots();
        tokio::spawn(actor.run(effects, inbox));
        let desk = Desk::new(
            messages.clone(),
            snapshots,
            Arc::clone(&parts.store),
            ids.clone(),
        );
        tokio::spawn({
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
        })
    }

    /// The agents' way in.
    #[must_use]
    pub fn agents(&self) -> Agents {
        self.agents.clone()
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
    }
}

async fn restore(
    store: &Arc<dyn Store>,
    atlases: Vec<Atlas>,
    ids: Box<dyn IdSource>,
    now: Timestamp,
) -> Result<(Engine, Vec<Effect>), StartError> {
    let mut kept = Vec::new();
    for row in store.state().await? {
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
    let sessions = store.sessions().await?;
    let ended = sessions.into_iter().filter(|session| session.ended);
    let ended = ended
        .map(|session| session.session)
        .collect::<std::collections::BTreeSet<SessionId>>();
    Ok(Engine::restore(atlases, ids, kept, ended, now)?)
}

/// The receiving end of the pictures.
type Snapshots = watch::Receiver<Arc<snapshot::Snapshot>>;
