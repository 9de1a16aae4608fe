//! Conversations, as the runtime keeps them.
//!
//! A turn is classified here and recorded by the engine in its session's chain; the thread behind it is kept
//! in the same batch. So what is shown of a thread is what its records say.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::base::canon::canonical;
use crate::base::clock::Timestamp;
use crate::base::id::{EventId, IdSource, RandomIds, SessionId};
use crate::base::limits::MAX_THREADS;
use crate::memento::{Name, Named, Outcome, Refusal, Shape, Thread, Turn};
use crate::store::StateRow;
use crate::trace::event::{Breakpoint, BreakpointDecided, BreakpointThread, DriftFlagged};
use crate::trace::event::{MementoEdited, Payload};

mod read;

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
}

/// Threads by their names, and how they go on.
#[derive(Debug)]
pub(super) struct Threads {
    all: BTreeMap<Name, Arc<Thread>>,
    ids: RandomIds,
    drafts: Arc<ThreadDrafts>,
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
        match serde_json::from_str::<Thread>(&body) {
            Ok(thread) => kept.threads.push(Arc::new(thread)),
            Err(error) => kept.unreadable.push((row.key, error.to_string())),
        }
    }
    newest_first(&mut kept.threads);
    kept
}

fn newest_first(threads: &mut [Arc<Thread>]) {
    let newest = |thread: &Thread| thread.turns.first().map(|turned| turned.at);
    threads.sort_by_key(|thread| std::cmp::Reverse(newest(thread)));
}

/// A turn that was classified and is not recorded yet.
#[derive(Debug)]
pub(super) struct Taken {
    thread: Thread,
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
            let draft = serde_json::from_str(&row.body?).ok()?;
            Some((row.key.parse().ok()?, draft))
        });
        let drafts = drafts.collect();
        let all = kept.threads.into_iter();
        Self {
            all: all.map(|thread| (thread.id.clone(), thread)).collect(),
            ids: RandomIds,
            drafts: Arc::new(drafts),
        }
    }

    /// All of them, the one with the newest turn first.
    pub(super) fn all(&self) -> Arc<[Arc<Thread>]> {
        let mut all: Vec<_> = self.all.values().cloned().collect();
        newest_first(&mut all);
        all.into()
    }

    /// Classifies a turn. Nothing is kept yet.
    pub(super) fn take(&mut self, take: &TakeTurn, now: Timestamp) -> Result<Taken, Refused> {
        let id = take.thread().ok_or(Refused::NoThread)?;
        let thread = match self.all.get(&id) {
            Some(thread) => Arc::clone(thread),
            None => Arc::new(Thread::new(id, take.session.clone())),
        };
        let named = Named {
            session: take.session.clone(),
            memento: self.name()?,
        };
        let taken = thread.take(&take.turn, named, now);
        let (thread, outcome) = taken.map_err(Refused::Turn)?;
        let payload = recorded_turn(&thread, take, &outcome).into();
        Ok(Taken {
            thread,
            outcome,
            payload,
        })
    }

    /// Keeps what came of a turn that is recorded: the rows to be written.
    pub(super) fn keep(&mut self, taken: Taken, event: Option<(EventId, u64)>) -> Vec<StateRow> {
        let mut thread = taken.thread;
        if let Some((event, sequence)) = event {
            thread.recorded(event, sequence);
        }
        let mut rows = vec![self.put(thread)];
        rows.extend(self.forget());
        rows
    }

    /// Does what an operator wants: what is to be recorded, and the row to be written.
    pub(super) fn act(
        &mut self,
        id: &Name,
        act: &ThreadAct,
        by: &str,
        now: Timestamp,
    ) -> Result<(Payload, StateRow), Refused> {
        let thread = self.all.get(id).ok_or(Refused::NoThread)?;
        let thread = Arc::clone(thread);
        let thread_id = id.to_string();
        match act {
            ThreadAct::Edit { shape, if_match } => {
                let edited = thread.edit(shape, if_match, self.name()?, now);
                let edited = edited.map_err(Refused::Turn)?;
                let payload = MementoEdited {
                    thread_id,
                    by: by.to_owned(),
                    before: if_match.clone(),
                    now: edited.etag().unwrap_or_default(),
                };
                Ok((payload.into(), self.put(edited)))
            }
            ThreadAct::FlagDrift => {
                let by = by.to_owned();
                let flagged = thread.flag_drift(&by);
                Ok((DriftFlagged { thread_id, by }.into(), self.put(flagged)))
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
        self.all.insert(thread.id.clone(), Arc::new(thread));
        row
    }

    /// Drops the oldest where there are too many.
    fn forget(&mut self) -> Vec<StateRow> {
        if self.all.len() <= MAX_THREADS {
            return Vec::new();
        }
        let Some(oldest) = self.all().last().map(|thread| thread.id.clone()) else {
            return Vec::new();
        };
        self.all.remove(&oldest);
        let draft = self.drafts.contains_key(&oldest);
        let draft = draft.then(|| self.keep_draft(oldest.clone(), None));
        let gone = StateRow {
            kind: THREAD.to_owned(),
            key: oldest.to_string(),
            body: None,
        };
        [gone].into_iter().chain(draft.flatten()).collect()
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
    /// It was refused.
    #[error(transparent)]
    Turn(Refusal),
}

/// What is recorded of a turn.
#[must_use]
pub fn recorded_turn(thread: &Thread, take: &TakeTurn, outcome: &Outcome) -> BreakpointDecided {
    let decision = outcome.decided.decision.as_str();
    let rollup = &outcome.memento.affect.rollup;
    let signals = take.turn.signal_kinds();
    BreakpointDecided {
        actor: ACTOR.to_owned(),
        phase: "breakpoint".to_owned(),
        status: "completed".to_owned(),
        summary: format!("Breakpoint decision: {}", decision.to_uppercase()),
        metadata: Breakpoint {
            kind: "breakpoint_engine".to_owned(),
            decision: decision.to_owned(),
            peak_guardrail_active: outcome.freeze.holds(),
            source: outcome.source.as_str().to_owned(),
        },
        thread: BreakpointThread {
            thread_id: thread.id.to_string(),
            message_id: take.turn.message_id.to_string(),
            rule: outcome.decided.rule.number(),
            signals: signals.iter().map(|it| it.as_str().to_owned()).collect(),
            affect_phase: rollup.phase.as_str().to_owned(),
            intensity: rollup.intensity_bucket.as_str().to_owned(),
            update: outcome.summary.as_str().to_owned(),
            version: outcome.version,
            etag: outcome.etag.clone(),
        },
    }
}
