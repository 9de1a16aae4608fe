//! What all doors share: the way to the runtime, and what agents call the runs they were allowed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::call::Fault;
use crate::base::digest::Digest;
use crate::base::id::{ExecutionId, SessionId};
use crate::base::limits::MAX_RUNNING_PER_SESSION;
use crate::runtime::Agents;

/// What all doors share.
#[derive(Clone, Debug)]
pub struct Hall {
    pub(super) agents: Agents,
    runs: Arc<Mutex<BTreeMap<SessionId, Runs>>>,
    asked: Arc<Mutex<BTreeMap<Use, watch::Receiver<Option<Outcome>>>>>,
    /// Sessions whose asker left without having heard an answer, and that nobody has asked for since.
    left: Arc<Mutex<BTreeSet<SessionId>>>,
}

/// Somebody who waits for an answer. Without one they have left.
struct Waiting<'h> {
    hall: &'h Hall,
    session: Option<SessionId>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.hall.lock_left().insert(session);
        }
    }
}

/// Runs of a session by the name that its agent gave them: whoever reports what came of one may be another process
/// than the one that asked, and knows only that. A restart forgets them.
#[derive(Debug, Default)]
struct Runs {
    /// The oldest first.
    named: VecDeque<(String, ExecutionId)>,
    /// Names of those that were reported, the oldest first: some report twice.
    done: VecDeque<String>,
}

/// What is known of runs by a name.
pub(super) enum Named {
    /// These are they.
    Runs(Vec<ExecutionId>),
    /// They were reported already.
    Done,
    /// Nobody gave a run that name.
    Unknown,
}

/// One use of a tool, however many ask about it: the session, what its agent calls the use, and what it would do.
type Use = (SessionId, String, Digest);

/// What came of a request.
type Outcome = Result<Value, Fault>;

/// How a request stands beside others about the same use.
pub(super) enum Joined {
    /// It is the first: whoever asks the same meanwhile hears what it hears.
    First(First),
    /// Another one waits already. Nothing, if that one leaves.
    Later(watch::Receiver<Option<Outcome>>),
}

/// The first who asks about a use of a tool, for as long as it waits.
pub(super) struct First {
    hall: Hall,
    of: Use,
    teller: watch::Sender<Option<Outcome>>,
}

impl First {
    pub(super) fn tell(&self, outcome: &Outcome) {
        self.teller.send_replace(Some(outcome.clone()));
    }
}

impl Drop for First {
    fn drop(&mut self) {
        let mut asked = self.hall.asked.lock();
        let asked = asked.as_mut().unwrap_or_else(PoisonError::get_mut);
        asked.remove(&self.of);
    }
}

impl Hall {
    /// The hall before a runtime.
    #[must_use]
    pub fn new(agents: Agents) -> Self {
        Self {
            agents,
            runs: Arc::default(),
            asked: Arc::default(),
            left: Arc::default(),
        }
    }

    /// Waits for what a session asked. Dropping this is leaving, and is remembered.
    pub(super) async fn waiting<T>(&self, session: SessionId, asked: impl Future<Output = T>) -> T {
        self.lock_left().remove(&session);
        let mut waiting = Waiting {
            hall: self,
            session: Some(session),
        };
        let answer = asked.await;
        waiting.session = None;
        answer
    }

    /// Sessions whose asker left while it waited, of those that something is held of. The others are forgotten.
    pub fn silent(&self, is_held: impl Fn(&SessionId) -> bool) -> BTreeSet<SessionId> {
        let mut left = self.lock_left();
        left.retain(is_held);
        left.clone()
    }

    fn lock_left(&self) -> MutexGuard<'_, BTreeSet<SessionId>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody asks about this use of a tool already. An agent may run several hooks for one use: one
    /// answer is for all of them, because a no from any stops it.
    pub(super) fn join(&self, of: Use) -> Joined {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = asked.get(&of) {
            return Joined::Later(first.clone());
        }
        let (teller, told) = watch::channel(None);
        asked.insert(of.clone(), told);
        Joined::First(First {
            hall: self.clone(),
            of,
            teller,
        })
    }

    /// Remembers what an agent calls a run. A session that names too many loses its own oldest, and nobody else's.
    pub(super) fn name_run(&self, session: SessionId, name: String, execution: ExecutionId) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let own = runs.entry(session).or_default();
        own.done.retain(|it| *it != name);
        own.named.push_back((name, execution));
        if own.named.len() > MAX_RUNNING_PER_SESSION {
            own.named.pop_front();
        }
    }

    /// The runs of that name, which are forgotten by it.
    pub(super) fn take_runs(&self, session: &SessionId, name: &str) -> Named {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = runs.get_mut(session) else {
            return Named::Unknown;
        };
        let named = std::mem::take(&mut own.named).into_iter();
        let (taken, left) = named.partition::<Vec<_>, _>(|it| it.0 == name);
        own.named = left.into();
        if taken.is_empty() {
            let done = own.done.iter().any(|it| it == name);
            return if done { Named::Done } else { Named::Unknown };
        }
        own.done.push_back(name.to_owned());
        if own.done.len() > MAX_RUNNING_PER_SESSION {
            own.done.pop_front();
        }
        Named::Runs(taken.into_iter().map(|(_, execution)| execution).collect())
    }

    /// Forgets what a session that has ended called its runs.
    pub(super) fn forget_runs(&self, session: &SessionId) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(session);
    }
}
