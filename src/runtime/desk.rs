//! Handle of the runtime for the operator.

use std::fmt;
use std::sync::{Arc, Weak};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::load::{Load, LoadRefused};
use super::message::{AskIds, DraftOf, EntryAsked, Message, ThreadActAsked};
use super::snapshot::Access;
use super::threads::ThreadAct;
use super::watched::Watch;
use super::{Reading, RecordedSession, Records, Snapshots};
use crate::base::id::SessionId;
use crate::engine::command::{AskId, Command, Decide, Operate, Refused, Reply};
use crate::engine::explain::{Account, Question};
use crate::memento::Name;
use crate::store::{Store, StoreError};
use crate::trace::event::{AnswerRejected, Event, Payload};
use crate::trace::note::Verifier;
use crate::trace::verify::{Progress, Report, Trust};

/// Handle for the operator: it sees everything, and decides.
#[derive(Clone)]
pub struct Desk {
    messages: mpsc::Sender<Message>,
    snapshots: Snapshots,
    store: Arc<dyn Store>,
    ids: AskIds,
    key: Verifier,
}

impl Desk {
    pub(super) fn new(
        messages: mpsc::Sender<Message>,
        snapshots: Snapshots,
        store: Arc<dyn Store>,
        ids: AskIds,
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
    pub fn snapshots(&self) -> Snapshots {
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
    pub(super) fn records(&self) -> Records {
        Records::new(Arc::clone(&self.store), self.snapshots.clone())
    }

    /// Decides about a held request. Returns when the record is durable.
    pub async fn decide(&self, decide: Decide) -> Reply {
        self.act(|ask| Command::Decide(ask, decide)).await
    }

    /// Executes another operator command, which lets nothing pass. Returns when the record is durable.
    ///
    /// # Errors
    /// Fails when it is refused.
    pub async fn operate(&self, operate: Operate) -> Result<(), Refused> {
        acted(self.act(|ask| Command::Operate(ask, operate)).await)
    }

    async fn act(&self, command: impl FnOnce(AskId) -> Command) -> Reply {
        self.send(|ask, reply| Message::Ask {
            ask,
            command: command(ask),
            reply,
        })
        .await
    }

    /// Records that another process answered in the console's place. A read-only console records it too: it
    /// is not an operator's action.
    ///
    /// # Errors
    /// Fails when it cannot be recorded.
    pub async fn record_rejected_answer(&self, rejected: AnswerRejected) -> Result<(), Refused> {
        self.record_entry(rejected.into()).await
    }

    /// Records a log entry that is not an operator's action, such as an alarm.
    ///
    /// # Errors
    /// Fails when it cannot be recorded.
    pub async fn record_entry(&self, payload: Payload) -> Result<(), Refused> {
        let ask = self.ids.next();
        let message = |reply| {
            Message::Enter(Box::new(EntryAsked {
                ask,
                payload,
                reply,
            }))
        };
        acted(self.deliver(message).await)
    }

    async fn send(&self, message: impl FnOnce(AskId, oneshot::Sender<Reply>) -> Message) -> Reply {
        if self.snapshots.borrow().access == Access::ReadOnly {
            let what = "this console is read-only".to_owned();
            return Reply::Refused(Refused::Unavailable(what));
        }
        let ask = self.ids.next();
        self.deliver(|reply| message(ask, reply)).await
    }

    /// Sends a message to the actor, and waits for the reply.
    async fn deliver(&self, message: impl FnOnce(oneshot::Sender<Reply>) -> Message) -> Reply {
        let unavailable = |what: String| Reply::Refused(Refused::Unavailable(what));
        let refused = || unavailable("the console is stopping".to_owned());
        if let Some(what) = self.snapshots.borrow().store.stall() {
            return unavailable(what.to_owned());
        }
        let (reply, answer) = oneshot::channel();
        if self.messages.send(message(reply)).await.is_err() {
            return refused();
        }
        match answer.await {
            // When a write fails, all waiting callers get the denial for agents.
            Ok(Reply::Denied(denied)) => unavailable(denied.reason),
            Ok(reply) => reply,
            Err(_) => refused(),
        }
    }

    /// Executes an action on a conversation. Returns when the record is durable.
    ///
    /// # Errors
    /// Fails when it is refused.
    pub async fn act_on_thread(&self, thread: Name, act: ThreadAct) -> Result<(), Refused> {
        let reply = self.send(|ask, reply| {
            let asked = ThreadActAsked {
                ask,
                thread,
                act,
                reply,
            };
            Message::ThreadAct(Box::new(asked))
        });
        acted(reply.await)
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
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reading) -> T + Send + 'static,
    ) -> Result<T, String> {
        let reading = Reading::new(
            Arc::clone(&self.store),
            self.key.clone(),
            tokio::runtime::Handle::current(),
        );
        let done = tokio::task::spawn_blocking(move || read(&reading)).await;
        done.map_err(|error| error.to_string())
    }

    /// Stores or removes an operator's draft for a held request or a conversation. Does not wait for the
    /// write: the next draft follows soon. A read-only console stores nothing.
    pub async fn keep_draft(&self, of: impl Into<DraftOf>, draft: Option<Value>) {
        if self.snapshots.borrow().access == Access::ReadOnly {
            return;
        }
        // Without an actor nothing is held, so the draft is useless.
        let _ = self.messages.send(Message::Draft(of.into(), draft)).await;
    }

    /// Explains a held request or a hypothetical one. This changes nothing, so a read-only console can do
    /// it too.
    ///
    /// # Errors
    /// Fails with a message when there is nothing of that name to explain.
    pub async fn explain(&self, question: Question) -> Result<Account, String> {
        let stopping = || "the console is stopping".to_owned();
        let (reply, answer) = oneshot::channel();
        let sent = self.messages.send(Message::Explain(question, reply)).await;
        sent.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }

    /// Replaces the loaded Atlases. Returns when that is on record.
    ///
    /// # Errors
    /// Fails when the new Atlases are refused; the old ones stay loaded then.
    pub async fn load(&self, load: Load) -> Result<(), LoadRefused> {
        if self.snapshots.borrow().access == Access::ReadOnly {
            return Err(LoadRefused::ReadOnly);
        }
        let (reply, answer) = oneshot::channel();
        let sent = self.messages.send(Message::Load(load, reply)).await;
        sent.map_err(|_| LoadRefused::Stopping)?;
        answer.await.map_err(|_| LoadRefused::Stopping)?
    }

    /// Returns the number of queued messages. It is above zero only if the disk is slower than the agents'
    /// requests.
    #[must_use]
    pub fn queued(&self) -> usize {
        let (most, free) = (self.messages.max_capacity(), self.messages.capacity());
        most.saturating_sub(free)
    }

    /// Starts or stops shadow Atlases, which only observe and decide nothing.
    pub async fn shadow(&self, load: Option<Load>) {
        // Without an actor there is nothing to observe.
        let _ = self.messages.send(Message::Shadow(load)).await;
    }

    /// Starts or stops to watch evaluations. Snapshots show them from then on.
    pub async fn watch(&self, watch: Watch) {
        // Without an actor there is nothing to watch.
        let _ = self.messages.send(Message::Watch(watch)).await;
    }

    /// Verifies all chains and reports progress to a caller that may stop it. Returns `None` if it was
    /// stopped.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read.
    pub async fn verify_watched(&self, progress: Progress) -> Result<Option<Report>, String> {
        let trust = Trust::nothing().key(self.key.clone());
        let checked = match self.store.verify_watched(trust, progress).await {
            Err(StoreError::Stopped) => return Ok(None),
            checked => checked.map_err(|error| error.to_string()),
        };
        // Without an actor no snapshot shows the result.
        let _ = self.messages.send(Message::Checked(checked.clone())).await;
        checked.map(Some)
    }

    /// Verifies all chains; snapshots show the result from then on.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read.
    pub async fn verify(&self) -> Result<Report, String> {
        let checked = self.verify_watched(Progress::default()).await?;
        checked.ok_or_else(|| StoreError::Stopped.to_string())
    }
}

/// Converts the reply to an operator's action into a result.
fn acted(reply: Reply) -> Result<(), Refused> {
    match reply {
        Reply::Acted => Ok(()),
        Reply::Refused(refused) => Err(refused),
        Reply::Started(_)
        | Reply::Ended(_)
        | Reply::Accepted(_)
        | Reply::Allowed(_)
        | Reply::Denied(_)
        | Reply::Asked(_)
        | Reply::Resolved(_)
        | Reply::Consulted(_)
        | Reply::Completed(_)
        | Reply::Noted(_)
        | Reply::Decided(_)
        | Reply::Approved(_)
        | Reply::Invalid(_) => Err(Refused::Unavailable(
            "nobody can tell what became of it; look again".to_owned(),
        )),
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}
