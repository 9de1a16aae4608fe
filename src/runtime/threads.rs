//! Threads of conversations, as the runtime stores them.
//!
//! A turn is classified here and recorded by the engine in its session's chain; its thread is stored in the
//! same batch. So the shown state of a thread agrees with its records.
//!
//! Contract: only the owner of a thread, or the session it was handed over to, takes turns in it. A new
//! thread never displaces another owner's thread that is still in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::base::canonical_json::canonical;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, IdSource, RandomIds, SessionId};
use crate::base::json;
use crate::base::limits::{MAX_SESSION_THREADS, MAX_THREADS, MAX_THREADS_PER_PEER};
use crate::engine::Engine;
use crate::memento::{
    ExternalName, SummaryShape, Thread, ThreadOwner, Turn, TurnIds, TurnOutcome, TurnRefusal,
};
use crate::store::StateRow;
use crate::trace::event::{DriftFlagged, Payload, ThreadHandedOver};

mod redaction;
mod thread_limits;
mod thread_names;
mod turn_parser;
mod turn_records;

use redaction::{edit_record, redact_shape};
use thread_limits::DroppedThread;
use thread_names::check_reserved_name;

pub use turn_records::turn_record;

/// State kind of threads.
pub(super) const THREAD_KIND: &str = "thread";

/// State kind of drafts for threads that were not accepted.
pub(super) const THREAD_DRAFT_KIND: &str = "thread_draft";

/// Name of the deciding actor in the contract of the breakpoint engine.
const ACTOR_NAME: &str = "solserver";

/// A turn with its session.
#[derive(Clone, Debug)]
pub struct SessionTurn {
    /// Session of the agent.
    pub session: SessionId,
    /// Conversation; without a name, the session's own thread.
    pub thread: Option<ExternalName>,
    /// The turn.
    pub turn: Turn,
}

impl SessionTurn {
    /// Returns the conversation of the turn.
    #[must_use]
    pub fn thread(&self) -> Option<ExternalName> {
        let own = || self.session.as_str().parse().ok();
        self.thread.clone().or_else(own)
    }
}

/// Hand-over of a thread by the session that owns it.
#[derive(Clone, Debug)]
pub struct ThreadHandOver {
    /// Session that owns the thread.
    pub session: SessionId,
    /// Name of the thread; without a name, the session's own thread.
    pub thread: Option<ExternalName>,
    /// Session that may continue the thread.
    pub to: SessionId,
}

impl ThreadHandOver {
    pub(super) fn thread(&self) -> Option<ExternalName> {
        let own = || self.session.as_str().parse().ok();
        self.thread.clone().or_else(own)
    }
}

/// Sessions that have not ended, as owners of threads.
#[derive(Clone, Copy)]
pub(super) struct LiveSessions<'e>(pub(super) &'e Engine);

impl LiveSessions<'_> {
    /// Returns the session as an owner. A session that is not live has only its name.
    pub(super) fn owner(self, session: &SessionId) -> ThreadOwner {
        let known = self.0.session(session);
        ThreadOwner {
            session: session.clone(),
            secret: known.and_then(|known| known.owner),
            process: known.and_then(|known| known.begun_by.clone()),
        }
    }

    fn contains(self, session: &SessionId) -> bool {
        self.0.session(session).is_some()
    }

    /// Returns the digests of the secrets of all live sessions.
    fn secrets(self) -> BTreeSet<Digest> {
        let sessions = self.0.session_ids();
        let secret = |session| self.0.session(session)?.owner;
        sessions.filter_map(secret).collect()
    }
}

/// An operator's action on a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadAction {
    /// Rewrites its summary.
    Edit {
        /// New summary.
        shape: SummaryShape,
        /// Etag of the memento that the operator read.
        if_match: String,
    },
    /// Marks it as drifting.
    FlagDrift,
    /// Hands it over to another session.
    HandOver {
        /// Session that may continue it.
        to: SessionId,
    },
}

/// All threads by name.
#[derive(Debug)]
pub(super) struct ThreadStore {
    all: BTreeMap<ExternalName, Arc<Thread>>,
    /// Names of unreadable stored threads. A new thread does not replace them.
    unreadable: BTreeSet<String>,
    ids: RandomIds,
    drafts: Arc<ThreadDrafts>,
    /// List for the screen, until a thread changes.
    listed: Option<Arc<[Arc<Thread>]>>,
    /// Time of the last new thread that was refused because no other thread could be dropped for it.
    full_at: Option<Timestamp>,
}

/// Drafts of operators for summaries that were not accepted, by conversation. Only the console interprets
/// them.
pub type ThreadDrafts = BTreeMap<ExternalName, Value>;

/// Threads of a store.
#[derive(Debug, Default)]
pub struct StoredThreads {
    /// Readable threads, the one with the newest turn first.
    pub threads: Vec<Arc<Thread>>,
    /// Names of unreadable threads, with the errors.
    pub unreadable: Vec<(String, String)>,
}

/// Returns the threads among rows of state.
#[must_use]
pub fn stored_threads(rows: impl IntoIterator<Item = StateRow>) -> StoredThreads {
    let mut stored = StoredThreads::default();
    for row in rows.into_iter().filter(|row| row.kind == THREAD_KIND) {
        let Some(body) = row.body else { continue };
        match json::read::<Thread>(body.as_bytes()) {
            Ok(thread) => stored.threads.push(Arc::new(thread.with_inferred_owner())),
            Err(error) => stored.unreadable.push((row.key, error.detail())),
        }
    }
    newest_first(&mut stored.threads);
    stored
}

/// Returns the row of a thread that another process may have changed: only an operator can hand it over.
/// `None` for an unreadable row, which no session can use either.
pub(super) fn unverified_thread(row: &StateRow) -> Option<StateRow> {
    let thread: Thread = json::read(row.body.as_deref()?.as_bytes()).ok()?;
    Some(StateRow {
        body: Some(canonical(&thread.as_unverified())),
        ..row.clone()
    })
}

fn newest_first(threads: &mut [Arc<Thread>]) {
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.last_turn()));
}

/// A turn that was classified and is not recorded yet.
#[derive(Debug)]
pub(super) struct ClassifiedTurn {
    thread: Thread,
    /// Thread that is dropped for it.
    victim: Option<DroppedThread>,
    pub(super) outcome: TurnOutcome,
    pub(super) payload: Payload,
}

impl ThreadStore {
    /// Restores stored threads. Unreadable ones are skipped: the record has the decisions.
    pub(super) fn restore(rows: impl IntoIterator<Item = StateRow>) -> Self {
        let (drafts, rows): (Vec<_>, Vec<_>) = rows
            .into_iter()
            .partition(|row| row.kind == THREAD_DRAFT_KIND);
        let stored = stored_threads(rows);
        for (thread, error) in &stored.unreadable {
            tracing::warn!(%thread, %error, "a stored thread cannot be read");
        }
        // An unreadable draft was only typed: the operator can type it again.
        let drafts = drafts.into_iter().filter_map(|row| {
            let draft = json::read(row.body?.as_bytes()).ok()?;
            Some((row.key.parse().ok()?, draft))
        });
        let drafts = drafts.collect();
        let all = stored.threads.into_iter();
        let unreadable = stored.unreadable.into_iter();
        Self {
            unreadable: unreadable.map(|(name, _)| name).collect(),
            all: all.map(|thread| (thread.id.clone(), thread)).collect(),
            ids: RandomIds,
            listed: None,
            full_at: None,
            drafts: Arc::new(drafts),
        }
    }

    /// Returns all threads, the one with the newest turn first.
    pub(super) fn all(&mut self) -> Arc<[Arc<Thread>]> {
        let threads = &self.all;
        let listed = self.listed.get_or_insert_with(|| {
            let mut all: Vec<_> = threads.values().cloned().collect();
            newest_first(&mut all);
            all.into()
        });
        Arc::clone(listed)
    }

    /// Returns the time of the last new thread that was refused because no other thread could be dropped
    /// for it.
    pub(super) fn full_at(&self) -> Option<Timestamp> {
        self.full_at
    }

    /// Returns the stored answer to a turn whose message was already taken; `None` for a new message. A
    /// retry is not recorded.
    pub(super) fn earlier_answer(
        &self,
        take: &SessionTurn,
        live: LiveSessions<'_>,
    ) -> Result<Option<TurnOutcome>, ThreadRefusal> {
        let by = live.owner(&take.session);
        let id = self.name_for(take.thread.as_ref(), &by)?;
        match self.all.get(&id) {
            Some(thread) if thread.is_owned_by(&by) => thread
                .repeated_outcome(&take.turn)
                .map_err(ThreadRefusal::Turn),
            Some(_) | None => Ok(None),
        }
    }

    /// Classifies a turn. Nothing is stored yet.
    pub(super) fn classify_turn(
        &mut self,
        take: &SessionTurn,
        live: LiveSessions<'_>,
        now: Timestamp,
    ) -> Result<ClassifiedTurn, ThreadRefusal> {
        let by = live.owner(&take.session);
        let id = self.name_for(take.thread.as_ref(), &by)?;
        let (thread, victim) = match self.all.get(&id) {
            Some(thread) if !thread.admits(&by) => return Err(write_refusal(thread)),
            Some(thread) if thread.is_owned_by(&by) => (Arc::clone(thread), None),
            Some(thread) => {
                let victim = self.check_limits_for_takeover(thread, &by, live)?;
                (Arc::clone(thread), victim)
            }
            None if self.unreadable.contains(id.as_str()) => return Err(ThreadRefusal::Unreadable),
            None => {
                check_reserved_name(&id, &by, live)?;
                let room = self.room_for(&by, live, now);
                if room == Err(ThreadRefusal::Full) {
                    self.full_at = Some(now);
                }
                let victim = room?;
                (Arc::new(Thread::new(id, take.session.clone())), victim)
            }
        };
        let named = TurnIds {
            by: by.clone(),
            memento: self.new_name()?,
        };
        let taken = thread.process_turn(&take.turn, named, now);
        let (thread, outcome) = taken.map_err(ThreadRefusal::Turn)?;
        let payload = turn_record(&thread, take, &outcome).into();
        Ok(ClassifiedTurn {
            thread,
            victim,
            outcome,
            payload,
        })
    }

    /// Stores the result of a recorded turn. Returns the rows to write, and the log entry about the thread
    /// that was dropped for it.
    pub(super) fn store_turn(
        &mut self,
        taken: ClassifiedTurn,
        event: Option<(EventId, u64)>,
    ) -> (Vec<StateRow>, Option<Payload>) {
        let mut thread = taken.thread;
        if let Some((event, sequence)) = event {
            thread.set_record(event, sequence);
        }
        let session = thread.session.clone();
        let mut rows = vec![self.insert(thread)];
        let Some(victim) = taken.victim else {
            return (rows, None);
        };
        let (dropped, entry) = self.drop_thread(&victim, &session);
        rows.extend(dropped);
        (rows, entry)
    }

    /// Hands a thread over for the session that owns it. Returns the event to record, and the thread to
    /// store.
    pub(super) fn hand_over(
        &self,
        hand_over: &ThreadHandOver,
        live: LiveSessions<'_>,
    ) -> Result<(Payload, Thread), ThreadRefusal> {
        let by = live.owner(&hand_over.session);
        let id = self.name_for(hand_over.thread.as_ref(), &by)?;
        let thread = self.all.get(&id).ok_or(ThreadRefusal::NoThread)?;
        if !thread.is_owned_by(&by) {
            return Err(write_refusal(thread));
        }
        offer_thread(thread, &hand_over.to, hand_over.session.as_str(), live)
    }

    /// Stores a thread after an event about it is recorded. Returns the row to write.
    pub(super) fn store_thread(&mut self, thread: Thread) -> StateRow {
        self.insert(thread)
    }

    /// Counts a refused write of a session. Returns the row to write.
    pub(super) fn count_refused(
        &mut self,
        id: &ExternalName,
        session: &SessionId,
        now: Timestamp,
    ) -> Option<StateRow> {
        let thread = self.all.get(id)?;
        let counted = thread.with_refused_write(session.clone(), now);
        Some(self.insert(counted))
    }

    /// Executes an operator's action. Returns the event to record, and the row to write.
    pub(super) fn apply_action(
        &mut self,
        id: &ExternalName,
        act: &ThreadAction,
        (by, live): (&str, LiveSessions<'_>),
        now: Timestamp,
    ) -> Result<(Payload, StateRow), ThreadRefusal> {
        let thread = self.all.get(id).ok_or(ThreadRefusal::NoThread)?;
        let thread = Arc::clone(thread);
        let thread_id = id.to_string();
        match act {
            ThreadAction::Edit { shape, if_match } => {
                let shape = redact_shape(shape, live.0.atlases());
                let edited = thread.edit(&shape, if_match, self.new_name()?, now);
                let edited = edited.map_err(ThreadRefusal::Turn)?;
                let payload = edit_record(&thread, &edited, by, if_match, live.0.atlases());
                Ok((payload.into(), self.insert(edited)))
            }
            ThreadAction::FlagDrift => {
                let by = by.to_owned();
                let flagged = thread.flag_drift(&by);
                Ok((DriftFlagged { thread_id, by }.into(), self.insert(flagged)))
            }
            ThreadAction::HandOver { to } => {
                let (payload, offered) = offer_thread(&thread, to, by, live)?;
                Ok((payload, self.insert(offered)))
            }
        }
    }

    fn new_name(&mut self) -> Result<ExternalName, ThreadRefusal> {
        let id = self.ids.next().hyphenated().to_string();
        id.parse().map_err(|_| ThreadRefusal::NoThread)
    }

    fn insert(&mut self, thread: Thread) -> StateRow {
        let row = StateRow {
            kind: THREAD_KIND.to_owned(),
            key: thread.id.to_string(),
            body: Some(canonical(&thread)),
        };
        self.listed = None;
        self.all.insert(thread.id.clone(), Arc::new(thread));
        row
    }

    /// Returns the drafts that were not accepted.
    pub(super) fn drafts(&self) -> Arc<ThreadDrafts> {
        Arc::clone(&self.drafts)
    }

    /// Stores or removes a draft for a conversation. Returns the row to write; `None` if the conversation
    /// does not exist.
    pub(super) fn store_draft(
        &mut self,
        thread: ExternalName,
        draft: Option<Value>,
    ) -> Option<StateRow> {
        if draft.is_some() && !self.all.contains_key(&thread) {
            return None;
        }
        let row = StateRow {
            kind: THREAD_DRAFT_KIND.to_owned(),
            key: thread.to_string(),
            body: draft.as_ref().map(canonical),
        };
        let drafts = Arc::make_mut(&mut self.drafts);
        match draft {
            Some(draft) => drop(drafts.insert(thread, draft)),
            None => drop(drafts.remove(&thread)),
        }
        Some(row)
    }
}

/// Reason why a turn or an operator's action is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ThreadRefusal {
    /// The thread does not exist.
    #[error("the thread does not exist")]
    NoThread,
    /// The thread belongs to another session.
    #[error("the thread belongs to another session")]
    Foreign,
    /// Another process may have changed the thread while no console was open.
    #[error(
        "the thread may have been changed while cra was not running, so an operator must hand it over"
    )]
    Unverified,
    /// The stored thread cannot be read, so its owner is unknown.
    #[error("the stored thread of that name cannot be read")]
    Unreadable,
    /// The session to hand the thread over to does not exist.
    #[error("session `{0}` does not exist, so the thread cannot be handed over")]
    NoSession(SessionId),
    /// The owner has reached its limit of threads, and all of them are in use.
    #[error("this session has {MAX_SESSION_THREADS} threads, and all are in use")]
    OwnLimit,
    /// The process has reached its limit of threads, and all of them are in use.
    #[error("this process has {MAX_THREADS_PER_PEER} threads in its sessions, and all are in use")]
    ProcessLimit,
    /// The total limit of threads is reached, and all of them are in use.
    #[error("the limit of {MAX_THREADS} threads is reached, and all are in use")]
    Full,
    /// The thread refused the turn.
    #[error(transparent)]
    Turn(TurnRefusal),
}

fn write_refusal(thread: &Thread) -> ThreadRefusal {
    if thread.unverified {
        ThreadRefusal::Unverified
    } else {
        ThreadRefusal::Foreign
    }
}

/// Offers a thread to a live session. Returns the event to record, and the thread to store.
fn offer_thread(
    thread: &Thread,
    to: &SessionId,
    by: &str,
    live: LiveSessions<'_>,
) -> Result<(Payload, Thread), ThreadRefusal> {
    if !live.contains(to) {
        return Err(ThreadRefusal::NoSession(to.clone()));
    }
    let owner = thread.owner.as_ref();
    let payload = ThreadHandedOver {
        thread_id: thread.id.to_string(),
        from: owner.map(|owner| owner.session.to_string()),
        to: to.to_string(),
        by: by.to_owned(),
    };
    Ok((payload.into(), thread.offer(to.clone())))
}
