//! What the two ways in send to the actor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use super::load::{Load, LoadRefused};
use super::threads::{HandOver, TakeTurn, ThreadAct};
use super::watched::Watch;
use crate::base::id::GateId;
use crate::engine::command::{AskId, Command, Reply};
use crate::engine::explain::{Account, Question};
use crate::engine::extension::{CallId, Returned};
use crate::memento::{Name, Outcome};
use crate::store::StoreError;
use crate::trace::event::Payload;
use crate::trace::verify::Report;

/// A message to the actor.
#[derive(Debug)]
pub(super) enum Message {
    /// Something for the engine, with where the reply goes.
    Ask {
        ask: AskId,
        command: Command,
        reply: oneshot::Sender<Reply>,
    },
    /// An extension answered, or did not.
    Returned(CallId, Returned),
    /// All chains were checked.
    Checked(Result<Report, String>),
    /// An operator typed something, or threw it away.
    Draft(DraftOf, Option<Value>),
    /// Somebody wants something explained. It changes nothing.
    Explain(Question, oneshot::Sender<Result<Account, String>>),
    /// Somebody begins to watch evaluations, or stops.
    Watch(Watch),
    /// Atlases are to look on in the shadow of those in force, or to stop that.
    Shadow(Option<Load>),
    /// A turn of a conversation.
    Turn(Box<TurnAsked>),
    /// A session hands a thread over.
    HandOver(Box<HandOverAsked>),
    /// An operator does something to a conversation.
    ThreadAct(Box<ThreadActAsked>),
    /// The log gets an entry that is not about a command.
    Enter(Box<EntryAsked>),
    /// Other Atlases are wanted, instead of those of that hash.
    Load(Load, oneshot::Sender<Result<(), LoadRefused>>),
    /// The store failed while nothing was written.
    StoreFailed(StoreError),
    /// Nothing could be recorded for this time, for this reason, and it can be again.
    StallEnded(Duration, String),
    /// Finish what is under way and stop.
    Stop(oneshot::Sender<()>),
}

/// What something was typed for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DraftOf {
    /// A held request.
    Gate(GateId),
    /// The summary of a conversation.
    Thread(Name),
}

impl From<GateId> for DraftOf {
    fn from(gate: GateId) -> Self {
        Self::Gate(gate)
    }
}

impl From<Name> for DraftOf {
    fn from(thread: Name) -> Self {
        Self::Thread(thread)
    }
}

/// A turn, and where what comes of it goes: first to whoever looks, then that it is durable.
#[derive(Debug)]
pub(super) struct TurnAsked {
    pub(super) ask: AskId,
    pub(super) take: TakeTurn,
    pub(super) outcome: oneshot::Sender<Outcome>,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// An entry for the log, and the way back for the answer that it is durable.
#[derive(Debug)]
pub(super) struct EntryAsked {
    pub(super) ask: AskId,
    pub(super) payload: Payload,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// Hand-over of a thread, and where the answer goes.
#[derive(Debug)]
pub(super) struct HandOverAsked {
    pub(super) ask: AskId,
    pub(super) hand_over: HandOver,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// What an operator does to a conversation, and where the answer goes.
#[derive(Debug)]
pub(super) struct ThreadActAsked {
    pub(super) ask: AskId,
    pub(super) thread: Name,
    pub(super) act: ThreadAct,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// One number per ask, whoever asks.
#[derive(Clone, Debug, Default)]
pub(super) struct AskIds(Arc<AtomicU64>);

impl AskIds {
    pub(super) fn next(&self) -> AskId {
        AskId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
