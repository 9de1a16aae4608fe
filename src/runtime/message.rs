//! Messages of the two handles to the actor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use super::atlas_load::{AtlasLoad, LoadRefusal};
use super::evaluation_watch::WatchSetting;
use super::threads::{SessionTurn, ThreadAction, ThreadHandOver};
use crate::base::id::HeldRequestId;
use crate::engine::command::{
    AgentReply, DecisionRefusal, DenialReply, EngineCommand, OperatorReply, Reply, ReplyId,
};
use crate::engine::explanation::{ExplainQuestion, FullExplanation};
use crate::engine::extensions::{CallId, CallResult};
use crate::memento::{ExternalName, TurnOutcome};
use crate::store::StoreError;
use crate::trace::event::Payload;
use crate::trace::verification::VerificationReport;

/// A message to the actor.
#[derive(Debug)]
pub(super) enum ActorMessage {
    /// A command for the engine, with the channel for its reply.
    Command {
        reply_id: ReplyId,
        command: EngineCommand,
        reply: ReplySender,
    },
    /// A caller disconnected whose request ends with it.
    CallerDisconnected(ReplyId),
    /// An extension answered or failed.
    ExtensionAnswer(CallId, CallResult),
    /// Result of a full verification.
    Verified(Result<VerificationReport, String>),
    /// An operator typed a draft or discarded it.
    Draft(DraftSubject, Option<Value>),
    /// A request for an explanation. It changes nothing.
    Explain(
        ExplainQuestion,
        oneshot::Sender<Result<FullExplanation, String>>,
    ),
    /// A console starts or stops to watch evaluations.
    Watch(WatchSetting),
    /// Start or stop shadow Atlases, which only observe.
    Shadow(Option<AtlasLoad>),
    /// A turn of a conversation.
    Turn(Box<TurnRequest>),
    /// A session hands a thread over.
    HandOver(Box<HandOverRequest>),
    /// An operator acts on a conversation.
    ThreadAct(Box<ThreadActionRequest>),
    /// A log entry that does not result from a command.
    AddEntry(Box<EntryRequest>),
    /// Other Atlases are to be loaded.
    Load(AtlasLoad, oneshot::Sender<Result<(), LoadRefusal>>),
    /// The store failed while nothing was written.
    StoreFailed(StoreError),
    /// Nothing could be recorded for this time and reason; now recording works again.
    StallEnded(Duration, String),
    /// Finish running work and stop.
    Stop(oneshot::Sender<()>),
}

/// Subject of a draft.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DraftSubject {
    /// A held request.
    Gate(HeldRequestId),
    /// The summary of a conversation.
    Thread(ExternalName),
}

impl From<HeldRequestId> for DraftSubject {
    fn from(gate: HeldRequestId) -> Self {
        Self::Gate(gate)
    }
}

impl From<ExternalName> for DraftSubject {
    fn from(thread: ExternalName) -> Self {
        Self::Thread(thread)
    }
}

/// A turn with its channels: first for the outcome, then for the reply when it is durable.
#[derive(Debug)]
pub(super) struct TurnRequest {
    pub(super) reply_id: ReplyId,
    pub(super) take: SessionTurn,
    pub(super) outcome: oneshot::Sender<TurnOutcome>,
    pub(super) reply: oneshot::Sender<AgentReply>,
}

/// An entry for the log, with the channel for the reply when it is durable.
#[derive(Debug)]
pub(super) struct EntryRequest {
    pub(super) reply_id: ReplyId,
    pub(super) payload: Payload,
    pub(super) reply: oneshot::Sender<OperatorReply>,
}

/// A hand-over of a thread, with the channel for the reply.
#[derive(Debug)]
pub(super) struct HandOverRequest {
    pub(super) reply_id: ReplyId,
    pub(super) hand_over: ThreadHandOver,
    pub(super) reply: oneshot::Sender<AgentReply>,
}

/// An operator's action on a conversation, with the channel for the reply.
#[derive(Debug)]
pub(super) struct ThreadActionRequest {
    pub(super) reply_id: ReplyId,
    pub(super) thread: ExternalName,
    pub(super) act: ThreadAction,
    pub(super) reply: oneshot::Sender<OperatorReply>,
}

/// The channel for the reply to one caller. It carries replies to that kind of caller only.
#[derive(Debug)]
pub(super) enum ReplySender {
    /// An agent waits.
    Agent(oneshot::Sender<AgentReply>),
    /// An operator waits.
    Operator(oneshot::Sender<OperatorReply>),
}

impl ReplySender {
    /// Sends a reply. Returns false if the caller is gone.
    ///
    /// A reply to the other kind of caller is not sent: the channel closes, and the caller gets a denial.
    pub(super) fn send(self, reply: Reply) -> bool {
        match (self, reply) {
            (Self::Agent(waiting), Reply::Agent(reply)) => waiting.send(reply).is_ok(),
            (Self::Operator(waiting), Reply::Operator(reply)) => waiting.send(reply).is_ok(),
            (Self::Agent(_), Reply::Operator(_)) | (Self::Operator(_), Reply::Agent(_)) => {
                tracing::error!("a reply was addressed to the wrong kind of caller");
                false
            }
        }
    }

    /// Refuses the caller's command: an agent gets the denial, an operator the reason.
    pub(super) fn refuse(self, denied: DenialReply, reason: &str) {
        // A caller that is gone misses nothing.
        match self {
            Self::Agent(waiting) => drop(waiting.send(AgentReply::Denied(denied))),
            Self::Operator(waiting) => {
                let refused = DecisionRefusal::Unavailable(reason.to_owned());
                drop(waiting.send(OperatorReply::Refused(refused)));
            }
        }
    }

    /// Returns whether the caller is gone.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Agent(waiting) => waiting.is_closed(),
            Self::Operator(waiting) => waiting.is_closed(),
        }
    }
}

/// Source of reply numbers, shared by all handles.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplyIds(Arc<AtomicU64>);

impl ReplyIds {
    pub(super) fn next(&self) -> ReplyId {
        ReplyId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
