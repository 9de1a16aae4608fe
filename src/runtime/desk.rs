//! The operator's way in.

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

/// The operator's way in: sees everything, and decides.
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

    /// The pictures, as they change.
    #[must_use]
    pub fn snapshots(&self) -> Snapshots {
        self.snapshots.clone()
    }

    /// The store, which this does not keep open.
    pub(super) fn store(&self) -> Weak<dyn Store> {
        Arc::downgrade(&self.store)
    }

    /// The key of the log.
    pub(super) fn key(&self) -> Verifier {
        self.key.clone()
    }

    /// The record, for those who only listen.
    pub(super) fn records(&self) -> Records {
        Records::new(Arc::clone(&self.store), self.snapshots.clone())
    }

    /// Decides about a held request. Answers when the record of it is durable.
    pub async fn decide(&self, decide: Decide) -> Reply {
        self.act(|ask| Command::Decide(ask, decide)).await
    }

    /// Does something else, by which nothing passes. Answers when the record of it is durable.
    ///
    /// # Errors
    /// When it is refused.
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

    /// Records that another process answered in the console's place. A console that only looks records it too: that
    /// is not an operator's act.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub async fn record_rejected_answer(&self, rejected: AnswerRejected) -> Result<(), Refused> {
        self.record_entry(rejected.into()).await
    }

    /// Records an entry of the log that is not an operator's act, such as an alarm.
    ///
    /// # Errors
    /// When it cannot be recorded.
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

    /// Hands a message to the actor, and waits for its reply.
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
            // Everyone who waits is told so when a write fails, in the words for agents.
            Ok(Reply::Denied(denied)) => unavailable(denied.reason),
            Ok(reply) => reply,
            Err(_) => refused(),
        }
    }

    /// Does something to a conversation. Answers when the record of it is durable.
    ///
    /// # Errors
    /// When it is refused.
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

    /// The sessions on record, newest first.
    ///
    /// # Errors
    /// When the record cannot be read, in words.
    pub async fn sessions(&self) -> Result<Vec<RecordedSession>, String> {
        self.store
            .sessions()
            .await
            .map_err(|error| error.to_string())
    }

    /// The sessions on record, newest first, and behind them the log.
    ///
    /// # Errors
    /// When the record cannot be read, in words.
    pub async fn sessions_and_log(&self) -> Result<Vec<RecordedSession>, String> {
        let mut sessions = self.sessions().await?;
        let log = self.store.log_session().await;
        sessions.extend(log.map_err(|error| error.to_string())?);
        Ok(sessions)
    }

    /// Events of a session, from a sequence number on.
    ///
    /// # Errors
    /// When the record cannot be read, in words.
    pub async fn events(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, String> {
        let events = self.store.events(session, from, limit);
        events.await.map_err(|error| error.to_string())
    }

    /// Has something read the record on a thread that may wait.
    ///
    /// # Errors
    /// When it broke off, in words.
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

    /// Keeps what was typed at a held request or for a conversation, or throws it away. Nobody waits for it:
    /// what is typed next follows soon. A console that only looks keeps nothing.
    pub async fn keep_draft(&self, of: impl Into<DraftOf>, draft: Option<Value>) {
        if self.snapshots.borrow().access == Access::ReadOnly {
            return;
        }
        // Without an actor there is nothing held, and no draft of use.
        let _ = self.messages.send(Message::Draft(of.into(), draft)).await;
    }

    /// Explains a held request, or something that is only imagined. It changes nothing, so a console
    /// that only looks can ask too.
    ///
    /// # Errors
    /// In words, when there is nothing of that name to explain.
    pub async fn explain(&self, question: Question) -> Result<Account, String> {
        let stopping = || "the console is stopping".to_owned();
        let (reply, answer) = oneshot::channel();
        let sent = self.messages.send(Message::Explain(question, reply)).await;
        sent.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }

    /// Has other Atlases take the place of those in force. Answers when that is on record.
    ///
    /// # Errors
    /// When they are not taken; those in force stay in force then.
    pub async fn load(&self, load: Load) -> Result<(), LoadRefused> {
        if self.snapshots.borrow().access == Access::ReadOnly {
            return Err(LoadRefused::ReadOnly);
        }
        let (reply, answer) = oneshot::channel();
        let sent = self.messages.send(Message::Load(load, reply)).await;
        sent.map_err(|_| LoadRefused::Stopping)?;
        answer.await.map_err(|_| LoadRefused::Stopping)?
    }

    /// What waits to be taken up by the runtime. Nothing does, unless the disk is slower than agents ask.
    #[must_use]
    pub fn queued(&self) -> usize {
        let (most, free) = (self.messages.max_capacity(), self.messages.capacity());
        most.saturating_sub(free)
    }

    /// Has Atlases look on in the shadow of those in force, or stops that. They decide nothing.
    pub async fn shadow(&self, load: Option<Load>) {
        // Without an actor there is nothing to look at.
        let _ = self.messages.send(Message::Shadow(load)).await;
    }

    /// Begins or stops to watch evaluations. The pictures show them from then on.
    pub async fn watch(&self, watch: Watch) {
        // Without an actor there is nothing to watch.
        let _ = self.messages.send(Message::Watch(watch)).await;
    }

    /// Checks every chain, for somebody who looks on and may stop it; nothing when it was stopped.
    ///
    /// # Errors
    /// When the record cannot be read, in words.
    pub async fn verify_watched(&self, progress: Progress) -> Result<Option<Report>, String> {
        let trust = Trust::nothing().key(self.key.clone());
        let checked = match self.store.verify_watched(trust, progress).await {
            Err(StoreError::Stopped) => return Ok(None),
            checked => checked.map_err(|error| error.to_string()),
        };
        // Without an actor there is no picture to show it in.
        let _ = self.messages.send(Message::Checked(checked.clone())).await;
        checked.map(Some)
    }

    /// Checks every chain; the pictures show the result from then on.
    ///
    /// # Errors
    /// When the record cannot be read, in words.
    pub async fn verify(&self) -> Result<Report, String> {
        let checked = self.verify_watched(Progress::default()).await?;
        checked.ok_or_else(|| StoreError::Stopped.to_string())
    }
}

/// Whether what an operator did is on record.
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
