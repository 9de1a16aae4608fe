//! What all doors share: the way to the runtime, and what agents call the runs they were allowed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::id::{ExecutionId, SessionId};
use crate::base::limits::MAX_RUNNING_PER_SESSION;
use crate::runtime::Agents;

/// What all doors share.
#[derive(Clone, Debug)]
pub struct Hall {
    pub(super) agents: Agents,
    runs: Arc<Mutex<Runs>>,
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

/// Runs of each session by the name that its agent gave them, the oldest first: whoever reports what came of one
/// may be another process than the one that asked, and knows only that. A restart forgets them.
type Runs = BTreeMap<SessionId, VecDeque<(String, ExecutionId)>>;

impl Hall {
    /// The hall before a runtime.
    #[must_use]
    pub fn new(agents: Agents) -> Self {
        Self {
            agents,
            runs: Arc::default(),
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

    /// Remembers what an agent calls a run. A session that names too many loses its own oldest, and nobody else's.
    pub(super) fn name_run(&self, session: SessionId, name: String, execution: ExecutionId) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let own = runs.entry(session).or_default();
        own.push_back((name, execution));
        if own.len() > MAX_RUNNING_PER_SESSION {
            own.pop_front();
        }
    }

    /// The runs of that name, which are forgotten by it.
    pub(super) fn take_runs(&self, session: &SessionId, name: &str) -> Vec<ExecutionId> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = runs.get_mut(session) else {
            return Vec::new();
        };
        let (taken, left) = std::mem::take(own)
            .into_iter()
            .partition::<Vec<_>, _>(|it| it.0 == name);
        *own = left.into();
        if own.is_empty() {
            runs.remove(session);
        }
        taken.into_iter().map(|(_, execution)| execution).collect()
    }

    /// Forgets what a session that has ended called its runs.
    pub(super) fn forget_runs(&self, session: &SessionId) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(session);
    }
}
