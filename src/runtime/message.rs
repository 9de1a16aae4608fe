//! Messages of the two handles to the actor.

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
    /// A command for the engine, with the channel for its reply.
    Ask {
        ask: AskId,
        command: Command,
        reply: oneshot::Sender<Reply>,
    },
    /// An extension answered or failed.
    Returned(CallId, Returned),
    /// Result of a full verification.
    Checked(Result<Report, String>),
    /// An operator typed a draft or discarded it.
    Draft(DraftOf, Option<Value>),
    /// A request for an explanation. It changes nothing.
    Explain(Question, oneshot::Sender<Result<Account, String>>),
    /// A console starts or stops to watch evaluations.
    Watch(Watch),
    /// Start or stop shadow Atlases, which only observe.
    Shadow(Option<Load>),
    /// A turn of a conversation.
    Turn(Box<TurnAsked>),
    /// A session hands a thread over.
    HandOver(Box<HandOverAsked>),
    /// An operator acts on a conversation.
    ThreadAct(Box<ThreadActAsked>),
    /// A log entry that does not result from a command.
    Enter(Box<EntryAsked>),
    /// Other Atlases are to be loaded.
    Load(Load, oneshot::Sender<Result<(), LoadRefused>>),
    /// The store failed while nothing was written.
    StoreFailed(StoreError),
    /// Nothing could be recorded for this time and reason; now recording works again.
    StallEnded(Duration, String),
    /// Finish running work and stop.
    Stop(oneshot::Sender<()>),
}

/// Subject of a draft.
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

/// A turn with its channels: first for the outcome, then for the reply when it is durable.
#[derive(Debug)]
pub(super) struct TurnAsked {
    pub(super) ask: AskId,
    pub(super) take: TakeTurn,
    pub(super) outcome: oneshot::Sender<Outcome>,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// An entry for the log, with the channel for the reply when it is durable.
#[derive(Debug)]
pub(super) struct EntryAsked {
    pub(super) ask: AskId,
    pub(super) payload: Payload,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// A hand-over of a thread, with the channel for the reply.
#[derive(Debug)]
pub(super) struct HandOverAsked {
    pub(super) ask: AskId,
    pub(super) hand_over: HandOver,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// An operator's action on a conversation, with the channel for the reply.
#[derive(Debug)]
pub(super) struct ThreadActAsked {
    pub(super) ask: AskId,
    pub(super) thread: Name,
    pub(super) act: ThreadAct,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// Source of ask ids, shared by all handles.
#[derive(Clone, Debug, Default)]
pub(super) struct AskIds(Arc<AtomicU64>);

impl AskIds {
    pub(super) fn next(&self) -> AskId {
        AskId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
