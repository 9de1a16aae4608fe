//! Conversations, as the runtime keeps them.
//!
//! A turn is classified here and recorded by the engine in its session's chain; the thread behind it is kept
//! in the same batch. So what is shown of a thread is what its records say.
//!
//! Contract: only the owner of a thread, or the session it was handed over to, takes turns in it. A new thread never
//! takes the room of another owner's thread that is still in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::base::canon::canonical;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, IdSource, RandomIds, SessionId};
use crate::base::json;
use crate::base::limits::{MAX_SESSION_THREADS, MAX_THREADS, MAX_THREADS_PER_PEER};
use crate::engine::Engine;
use crate::memento::{Name, Named, Outcome, Refusal, Shape, Thread, ThreadOwner, Turn};
use crate::store::StateRow;
use crate::trace::event::{DriftFlagged, Payload, ThreadHandedOver};

mod named;
mod read;
mod recorded;
mod redacted;
mod room;

use named::refuse_name_of_another;
use redacted::{recorded_edit, redacted_shape};
use room::Victim;

pub use recorded::recorded_turn;

/// The kind of state under which threads are kept.
pub(super) const THREAD: &str = "thread";

/// The kind of state under which is kept what was typed for one and not taken.
pub(super) const THREAD_DRAFT: &str = "thread_draft";

/// The name that the contract of the breakpoint engine has for what decides.
const ACTOR: &str = "solserver";

/// A turn, and whose it is.
#[derive(Clone, Debug)]
pub struct TakeTurn {
    /// The session of the agent that it is a turn with.
    pub session: SessionId,
    /// The conversation; without a name it is the session's own.
    pub thread: Option<Name>,
    /// The turn.
    pub turn: Turn,
}

impl TakeTurn {
    /// The conversation it is in.
    #[must_use]
    pub fn thread(&self) -> Option<Name> {
        let own = || self.session.as_str().parse().ok();
        self.thread.clone().or_else(own)
    }
}

/// Hand-over of a thread by the session that owns it.
#[derive(Clone, Debug)]
pub struct HandOver {
    /// Session that owns the thread.
    pub session: SessionId,
    /// The thread; the session's own if there is none.
    pub thread: Option<Name>,
    /// Session that may take it up.
    pub to: SessionId,
}

impl HandOver {
    pub(super) fn thread(&self) -> Option<Name> {
        let own = || self.session.as_str().parse().ok();
        self.thread.clone().or_else(own)
    }
}

/// Sessions that have not ended, as owners of threads.
#[derive(Clone, Copy)]
pub(super) struct LiveSessions<'e>(pub(super) &'e Engine);

impl LiveSessions<'_> {
    /// The session as an owner. A session that is not live has only its name.
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

    /// Digests of the secrets of all sessions that have not ended.
    fn secrets(self) -> BTreeSet<Digest> {
        let sessions = self.0.session_ids();
        let secret = |session| self.0.session(session)?.owner;
        sessions.filter_map(secret).collect()
    }
}

/// What an operator does to a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadAct {
    /// Writes its summary anew.
    Edit {
        /// What it is to be.
        shape: Shape,
        /// What told the memento that they read from others.
        if_match: String,
    },
    /// Says that it drifts.
    FlagDrift,
    /// Hands it over to another session.
    HandOver {
        /// Session that may take it up.
        to: SessionId,
    },
}

/// Threads by their names, and how they go on.
#[derive(Debug)]
pub(super) struct Threads {
    all: BTreeMap<Name, Arc<Thread>>,
    /// Names of stored threads that cannot be read. A new one does not take their place.
    unreadable: BTreeSet<String>,
    ids: RandomIds,
    drafts: Arc<ThreadDrafts>,
    /// The list for the screen, until a thread changes.
    listed: Option<Arc<[Arc<Thread>]>>,
    /// Time of the last new thread that was refused because no thread could make room.
    full_at: Option<Timestamp>,
}

/// What operators typed for summaries that was not taken, by conversation; what it means is the console's.
pub type ThreadDrafts = BTreeMap<Name, Value>;

/// Threads as a store keeps them.
#[derive(Debug, Default)]
pub struct KeptThreads {
    /// Those that can be read, the one with the newest turn first.
    pub threads: Vec<Arc<Thread>>,
    /// The names of the others, and why they cannot.
    pub unreadable: Vec<(String, String)>,
}

/// The threads among what a store keeps.
#[must_use]
pub fn kept_threads(rows: impl IntoIterator<Item = StateRow>) -> KeptThreads {
    let mut kept = KeptThreads::default();
    for row in rows.into_iter().filter(|row| row.kind == THREAD) {
        let Some(body) = row.body else { continue };
        match json::read::<Thread>(body.as_bytes()) {
            Ok(thread) => kept.threads.push(Arc::new(thread.with_inferred_owner())),
            Err(error) => kept.unreadable.push((row.key, error.detail())),
        }
    }
    newest_first(&mut kept.threads);
    kept
}

/// The row of a thread that another process may have changed: only an operator can hand it over. `None` for a row that
/// cannot be read, which no session can use either.
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
pub(super) struct Taken {
    thread: Thread,
    /// Thread that is dropped for it.
    victim: Option<Victim>,
    pub(super) outcome: Outcome,
    pub(super) payload: Payload,
}

impl Threads {
    /// Threads as they were kept. What cannot be read is left out: the record has what was decided.
    pub(super) fn restored(rows: impl IntoIterator<Item = StateRow>) -> Self {
        let (drafts, rows): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.kind == THREAD_DRAFT);
        let kept = kept_threads(rows);
        for (thread, error) in &kept.unreadable {
            tracing::warn!(%thread, %error, "a kept thread cannot be read");
        }
        // What cannot be read was only typed: it is typed again.
        let drafts = drafts.into_iter().filter_map(|row| {
            let draft = json::read(row.body?.as_bytes()).ok()?;
            Some((row.key.parse().ok()?, draft))
        });
        let drafts = drafts.collect();
        let all = kept.threads.into_iter();
        let unreadable = kept.unreadable.into_iter();
        Self {
            unreadable: unreadable.map(|(name, _)| name).collect(),
            all: all.map(|thread| (thread.id.clone(), thread)).collect(),
            ids: RandomIds,
            listed: None,
            full_at: None,
            drafts: Arc::new(drafts),
        }
    }

    /// All of them, the one with the newest turn first.
    pub(super) fn all(&mut self) -> Arc<[Arc<Thread>]> {
        let threads = &self.all;
        let listed = self.listed.get_or_insert_with(|| {
            let mut all: Vec<_> = threads.values().cloned().collect();
            newest_first(&mut all);
            all.into()
        });
        Arc::clone(listed)
    }

    /// Time of the last new thread that was refused because no thread could make room.
    pub(super) fn full_at(&self) -> Option<Timestamp> {
        self.full_at
    }

    /// The answer to a turn whose message was taken already; `None` for a new message. Nothing is recorded of a retry.
    pub(super) fn answered(
        &self,
        take: &TakeTurn,
        live: LiveSessions<'_>,
    ) -> Result<Option<Outcome>, Refused> {
        let by = live.owner(&take.session);
        let id = self.name_for(take.thread.as_ref(), &by)?;
        match self.all.get(&id) {
            Some(thread) if thread.is_owned_by(&by) => {
                thread.answered(&take.turn).map_err(Refused::Turn)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Classifies a turn. Nothing is kept yet.
    pub(super) fn take(
        &mut self,
        take: &TakeTurn,
        live: LiveSessions<'_>,
        now: Timestamp,
    ) -> Result<Taken, Refused> {
        let by = live.owner(&take.session);
        let id = self.name_for(take.thread.as_ref(), &by)?;
        let (thread, victim) = match self.all.get(&id) {
            Some(thread) if !thread.admits(&by) => return Err(refused_write(thread)),
            Some(thread) if thread.is_owned_by(&by) => (Arc::clone(thread), None),
            Some(thread) => {
                let victim = self.room_to_take_up(thread, &by, live)?;
                (Arc::clone(thread), victim)
            }
            None if self.unreadable.contains(id.as_str()) => return Err(Refused::Unreadable),
            None => {
                refuse_name_of_another(&id, &by, live)?;
                let room = self.room_for(&by, live, now);
                if room == Err(Refused::Full) {
                    self.full_at = Some(now);
                }
                let victim = room?;
                (Arc::new(Thread::new(id, take.session.clone())), victim)
            }
        };
        let named = Named {
            by: by.clone(),
            memento: self.name()?,
        };
        let taken = thread.take(&take.turn, named, now);
        let (thread, outcome) = taken.map_err(Refused::Turn)?;
        let payload = recorded_turn(&thread, take, &outcome).into();
        Ok(Taken {
            thread,
            victim,
            outcome,
            payload,
        })
    }

    /// Keeps what came of a turn that is recorded: the rows to be written, and the log entry about the thread that
    /// was dropped for it.
    pub(super) fn keep(
        &mut self,
        taken: Taken,
        event: Option<(EventId, u64)>,
    ) -> (Vec<StateRow>, Option<Payload>) {
        let mut thread = taken.thread;
        if let Some((event, sequence)) = event {
            thread.recorded(event, sequence);
        }
        let session = thread.session.clone();
        let mut rows = vec![self.put(thread)];
        let Some(victim) = taken.victim else {
            return (rows, None);
        };
        let (dropped, entry) = self.drop_thread(&victim, &session);
        rows.extend(dropped);
        (rows, entry)
    }

    /// Hands a thread over for the session that owns it: the event to be recorded, and the thread to be kept.
    pub(super) fn hand_over(
        &self,
        hand_over: &HandOver,
        live: LiveSessions<'_>,
    ) -> Result<(Payload, Thread), Refused> {
        let by = live.owner(&hand_over.session);
        let id = self.name_for(hand_over.thread.as_ref(), &by)?;
        let thread = self.all.get(&id).ok_or(Refused::NoThread)?;
        if !thread.is_owned_by(&by) {
            return Err(refused_write(thread));
        }
        offer(thread, &hand_over.to, hand_over.session.as_str(), live)
    }

    /// Keeps a thread after an event about it is recorded: the row to be written.
    pub(super) fn keep_changed(&mut self, thread: Thread) -> StateRow {
        self.put(thread)
    }

    /// Counts a refused write of a session: the row to be written.
    pub(super) fn count_refused(
        &mut self,
        id: &Name,
        session: &SessionId,
        now: Timestamp,
    ) -> Option<StateRow> {
        let thread = self.all.get(id)?;
        let counted = thread.with_refused_write(session.clone(), now);
        Some(self.put(counted))
    }

    /// Does what an operator wants: what is to be recorded, and the row to be written.
    pub(super) fn act(
        &mut self,
        id: &Name,
        act: &ThreadAct,
        (by, live): (&str, LiveSessions<'_>),
        now: Timestamp,
    ) -> Result<(Payload, StateRow), Refused> {
        let thread = self.all.get(id).ok_or(Refused::NoThread)?;
        let thread = Arc::clone(thread);
        let thread_id = id.to_string();
        match act {
            ThreadAct::Edit { shape, if_match } => {
                let shape = redacted_shape(shape, live.0.atlases());
                let edited = thread.edit(&shape, if_match, self.name()?, now);
                let edited = edited.map_err(Refused::Turn)?;
                let payload = recorded_edit(&thread, &edited, by, if_match, live.0.atlases());
                Ok((payload.into(), self.put(edited)))
            }
            ThreadAct::FlagDrift => {
                let by = by.to_owned();
                let flagged = thread.flag_drift(&by);
                Ok((DriftFlagged { thread_id, by }.into(), self.put(flagged)))
            }
            ThreadAct::HandOver { to } => {
                let (payload, offered) = offer(&thread, to, by, live)?;
                Ok((payload, self.put(offered)))
            }
        }
    }

    fn name(&mut self) -> Result<Name, Refused> {
        let id = self.ids.next().hyphenated().to_string();
        id.parse().map_err(|_| Refused::NoThread)
    }

    fn put(&mut self, thread: Thread) -> StateRow {
        let row = StateRow {
            kind: THREAD.to_owned(),
            key: thread.id.to_string(),
            body: Some(canonical(&thread)),
        };
        self.listed = None;
        self.all.insert(thread.id.clone(), Arc::new(thread));
        row
    }

    /// What operators typed that was not taken.
    pub(super) fn drafts(&self) -> Arc<ThreadDrafts> {
        Arc::clone(&self.drafts)
    }

    /// Keeps what was typed for a conversation, or throws it away: the row to be written. Nothing is kept for
    /// one that is not there.
    pub(super) fn keep_draft(&mut self, thread: Name, draft: Option<Value>) -> Option<StateRow> {
        if draft.is_some() && !self.all.contains_key(&thread) {
            return None;
        }
        let row = StateRow {
            kind: THREAD_DRAFT.to_owned(),
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

/// Why a turn was not taken, or an act not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// There is no conversation of that name.
    #[error("there is no such thread")]
    NoThread,
    /// It belongs to another session.
    #[error("the thread belongs to another session")]
    Foreign,
    /// Another process may have changed it while no console was open.
    #[error(
        "the thread may have been changed while no console was open, so an operator has to hand it over"
    )]
    Unverified,
    /// It is stored and cannot be read, so its owner is not known.
    #[error("the stored thread of that name cannot be read")]
    Unreadable,
    /// The session that it is handed over to is not there.
    #[error("there is no session `{0}` to hand the thread over to")]
    NoSession(SessionId),
    /// The owner has as many threads as it may have, and all of them are in use.
    #[error("this session has {MAX_SESSION_THREADS} threads, and none of them can make room")]
    OwnLimit,
    /// The process has as many threads as it may have, and all of them are in use.
    #[error(
        "this process has {MAX_THREADS_PER_PEER} threads in all its sessions, and none of them can make room"
    )]
    ProcessLimit,
    /// There are as many threads as there may be, and all of them are in use.
    #[error("there are {MAX_THREADS} threads, and none of them can make room")]
    Full,
    /// It was refused.
    #[error(transparent)]
    Turn(Refusal),
}

fn refused_write(thread: &Thread) -> Refused {
    if thread.unverified {
        Refused::Unverified
    } else {
        Refused::Foreign
    }
}

/// Offers a thread to a live session: the event to be recorded, and the thread to be kept.
fn offer(
    thread: &Thread,
    to: &SessionId,
    by: &str,
    live: LiveSessions<'_>,
) -> Result<(Payload, Thread), Refused> {
    if !live.contains(to) {
        return Err(Refused::NoSession(to.clone()));
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
