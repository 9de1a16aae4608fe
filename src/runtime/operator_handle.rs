//! Handle of the runtime for the operator.

use std::fmt;
use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::atlas_load::{AtlasLoad, LoadRefusal};
use super::evaluation_watch::WatchSetting;
use super::message::{
    ActorMessage, DraftSubject, EntryRequest, ReplyIds, ReplySender, ThreadActionRequest,
};
use super::snapshot::ConsoleAccess;
use super::threads::ThreadAction;
use super::{RecordReader, RecordStream, RecordedSession, SnapshotReceiver};
use crate::base::id::SessionId;
use crate::engine::command::{
    DecisionRefusal, DecisionRequest, EngineCommand, OperatorAction, OperatorReply, ReplyId,
};
use crate::engine::explanation::{ExplainQuestion, FullExplanation};
use crate::memento::ExternalName;
use crate::store::{Store, StoreError};
use crate::trace::event::{AnswerRejected, Event, Payload};
use crate::trace::note::Verifier;
use crate::trace::verification::{TrustAnchors, VerificationProgress, VerificationReport};

/// Handle for the operator: it sees everything, and decides.
#[derive(Clone)]
pub struct OperatorHandle {
    messages: mpsc::Sender<ActorMessage>,
    snapshots: SnapshotReceiver,
    store: Arc<dyn Store>,
    ids: ReplyIds,
    key: Verifier,
}

impl OperatorHandle {
    pub(super) fn new(
        messages: mpsc::Sender<ActorMessage>,
        snapshots: SnapshotReceiver,
        store: Arc<dyn Store>,
        ids: ReplyIds,
        key: Verifier,
    ) -> Self {
        Self {
            messages,
            snapshots,
            store,
            ids,
            key,
        }
    }

    /// Returns the stream of snapshots.
    #[must_use]
    pub fn snapshots(&self) -> SnapshotReceiver {
        self.snapshots.clone()
    }

    /// Returns the store as a weak reference, which does not keep it open.
    pub(super) fn store(&self) -> Weak<dyn Store> {
        Arc::downgrade(&self.store)
    }

    /// Returns the public key of the log.
    pub(super) fn key(&self) -> Verifier {
        self.key.clone()
    }

    /// Returns a read-only stream of records.
    pub(super) fn records(&self) -> RecordStream {
        RecordStream::new(Arc::clone(&self.store), self.snapshots.clone())
    }

    /// Decides about a held request. Returns when the record is durable.
    pub async fn decide(&self, decide: DecisionRequest) -> OperatorReply {
        self.send_command(|reply_id| EngineCommand::Decide(reply_id, decide))
            .await
    }

    /// Executes another operator command, which lets nothing pass. Returns when the record is durable.
    ///
    /// # Errors
    /// Fails when it is refused.
    pub async fn operate(&self, operate: OperatorAction) -> Result<(), DecisionRefusal> {
        into_result(
            self.send_command(|reply_id| EngineCommand::Operate(reply_id, operate))
                .await,
        )
    }

    async fn send_command(&self, command: impl FnOnce(ReplyId) -> EngineCommand) -> OperatorReply {
        self.send(|reply_id, reply| ActorMessage::Command {
            reply_id,
            command: command(reply_id),
            reply: ReplySender::Operator(reply),
        })
        .await
    }

    /// Records that another process answered in the console's place. A read-only console records it too: it
    /// is not an operator's action.
    ///
    /// # Errors
    /// Fails when it cannot be recorded.
    pub async fn record_rejected_answer(
        &self,
        rejected: AnswerRejected,
    ) -> Result<(), DecisionRefusal> {
        self.record_entry(rejected.into()).await
    }

    /// Records a log entry that is not an operator's action, such as an alarm.
    ///
    /// # Errors
    /// Fails when it cannot be recorded.
    pub async fn record_entry(&self, payload: Payload) -> Result<(), DecisionRefusal> {
        let reply_id = self.ids.next();
        let message = |reply| {
            ActorMessage::AddEntry(Box::new(EntryRequest {
                reply_id,
                payload,
                reply,
            }))
        };
        into_result(self.send_message(message).await)
    }

    async fn send(
        &self,
        message: impl FnOnce(ReplyId, oneshot::Sender<OperatorReply>) -> ActorMessage,
    ) -> OperatorReply {
        if self.snapshots.borrow().access == ConsoleAccess::ReadOnly {
            let what = "this console is read-only".to_owned();
            return OperatorReply::Refused(DecisionRefusal::Unavailable(what));
        }
        let reply_id = self.ids.next();
        self.send_message(|reply| message(reply_id, reply)).await
    }

    /// Sends a message to the actor, and waits for the reply.
    async fn send_message(
        &self,
        message: impl FnOnce(oneshot::Sender<OperatorReply>) -> ActorMessage,
    ) -> OperatorReply {
        let unavailable = |what: String| OperatorReply::Refused(DecisionRefusal::Unavailable(what));
        let refused = || unavailable("the console is stopping".to_owned());
        if let Some(what) = self.snapshots.borrow().store.stall() {
            return unavailable(what.to_owned());
        }
        let (reply, answer) = oneshot::channel();
        if self.messages.send(message(reply)).await.is_err() {
            return refused();
        }
        match answer.await {
            Ok(reply) => reply,
            Err(_) => refused(),
        }
    }

    /// Executes an action on a conversation. Returns when the record is durable.
    ///
    /// # Errors
    /// Fails when it is refused.
    pub async fn act_on_thread(
        &self,
        thread: ExternalName,
        act: ThreadAction,
    ) -> Result<(), DecisionRefusal> {
        let reply = self.send(|reply_id, reply| {
            let asked = ThreadActionRequest {
                reply_id,
                thread,
                act,
                reply,
            };
            ActorMessage::ThreadAct(Box::new(asked))
        });
        into_result(reply.await)
    }

    /// Returns the recorded sessions, newest first.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read.
    pub async fn sessions(&self) -> Result<Vec<RecordedSession>, String> {
        self.store
            .sessions()
            .await
            .map_err(|error| error.to_string())
    }

    /// Returns the recorded sessions, newest first, followed by the log.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read.
    pub async fn sessions_and_log(&self) -> Result<Vec<RecordedSession>, String> {
        let mut sessions = self.sessions().await?;
        let log = self.store.log_session().await;
        sessions.extend(log.map_err(|error| error.to_string())?);
        Ok(sessions)
    }

    /// Returns events of a session, from a sequence number on.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read.
    pub async fn events(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, String> {
        let events = self.store.events(session, from, limit);
        events.await.map_err(|error| error.to_string())
    }

    /// Runs a function that reads the record, on a thread that may block.
    ///
    /// # Errors
    /// Fails with a message when the function panics.
    pub async fn read_record<T: Send + 'static>(
        &self,
        read: impl FnOnce(&RecordReader) -> T + Send + 'static,
    ) -> Result<T, String> {
        let reading = RecordReader::new(
            Arc::clone(&self.store),
            self.key.clone(),
            tokio::runtime::Handle::current(),
        );
        let done = tokio::task::spawn_blocking(move || read(&reading)).await;
        done.map_err(|error| error.to_string())
    }

    /// Stores or removes an operator's draft for a held request or a conversation. Does not wait for the
    /// write: the next draft follows soon. A read-only console stores nothing.
    pub async fn store_draft(&self, of: impl Into<DraftSubject>, draft: Option<Value>) {
        if self.snapshots.borrow().access == ConsoleAccess::ReadOnly {
            return;
        }
        // Without an actor nothing is held, so the draft is useless.
        let _ = self
            .messages
            .send(ActorMessage::Draft(of.into(), draft))
            .await;
    }

    /// Explains a held request or a hypothetical one. This changes nothing, so a read-only console can do
    /// it too.
    ///
    /// # Errors
    /// Fails with a message when there is nothing of that name to explain.
    pub async fn explain(&self, question: ExplainQuestion) -> Result<FullExplanation, String> {
        let stopping = || "the console is stopping".to_owned();
        let (reply, answer) = oneshot::channel();
        let sent = self
            .messages
            .send(ActorMessage::Explain(question, reply))
            .await;
        sent.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }

    /// Replaces the loaded Atlases. Returns when that is on record.
    ///
    /// # Errors
    /// Fails when the new Atlases are refused; the old ones stay loaded then.
    pub async fn load_atlases(&self, load: AtlasLoad) -> Result<(), LoadRefusal> {
        if self.snapshots.borrow().access == ConsoleAccess::ReadOnly {
            return Err(LoadRefusal::ReadOnly);
        }
        let (reply, answer) = oneshot::channel();
        let sent = self.messages.send(ActorMessage::Load(load, reply)).await;
        sent.map_err(|_| LoadRefusal::Stopping)?;
        answer.await.map_err(|_| LoadRefusal::Stopping)?
    }

    /// Returns the number of queued messages. It is above zero only if the disk is slower than the agents'
    /// requests.
    #[must_use]
    pub fn queue_len(&self) -> usize {
        let (most, free) = (self.messages.max_capacity(), self.messages.capacity());
        most.saturating_sub(free)
    }

    /// Starts or stops shadow Atlases, which only observe and decide nothing.
    pub async fn set_shadow(&self, load: Option<AtlasLoad>) {
        // Without an actor there is nothing to observe.
        let _ = self.messages.send(ActorMessage::Shadow(load)).await;
    }

    /// Starts or stops to watch evaluations. Snapshots show them from then on.
    pub async fn set_watch(&self, watch: WatchSetting) {
        // Without an actor there is nothing to watch.
        let _ = self.messages.send(ActorMessage::Watch(watch)).await;
    }

    /// Verifies all chains and reports progress to a caller that may stop it. Returns `None` if it was
    /// stopped.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read.
    pub async fn verify_watched(
        &self,
        progress: VerificationProgress,
    ) -> Result<Option<VerificationReport>, String> {
        let trust = TrustAnchors::nothing().with_key(self.key.clone());
        let checked = match self.store.verify_with_progress(trust, progress).await {
            Err(StoreError::Cancelled) => return Ok(None),
            checked => checked.map_err(|error| error.to_string()),
        };
        // Without an actor no snapshot shows the result.
        let _ = self
            .messages
            .send(ActorMessage::Verified(checked.clone()))
            .await;
        checked.map(Some)
    }

    /// Verifies all chains; snapshots show the result from then on.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read.
    pub async fn verify(&self) -> Result<VerificationReport, String> {
        let checked = self.verify_watched(VerificationProgress::default()).await?;
        checked.ok_or_else(|| StoreError::Cancelled.to_string())
    }
}

/// Converts the reply to an operator's action into a result.
fn into_result(reply: OperatorReply) -> Result<(), DecisionRefusal> {
    match reply {
        OperatorReply::Acted => Ok(()),
        OperatorReply::Refused(refused) => Err(refused),
        OperatorReply::Decided(_) | OperatorReply::Approved(_) | OperatorReply::Invalid(_) => Err(
            DecisionRefusal::Unavailable("the outcome is unknown; check it again".to_owned()),
        ),
    }
}

impl fmt::Debug for OperatorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}
