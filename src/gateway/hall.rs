//! What all doors share: the way to the runtime, and what agents call the runs they were allowed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::id::{ExecutionId, SessionId};
use crate::base::limits::MAX_NAMED_RUNS;
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

/// Runs by the name that an agent gave them: whoever reports what came of one may be another process than
/// the one that asked, and knows only that. A restart forgets them.
#[derive(Debug, Default)]
struct Runs {
    named: BTreeMap<(SessionId, String), Vec<ExecutionId>>,
    /// The oldest first.
    order: VecDeque<(SessionId, String)>,
}

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

    /// Remembers what an agent calls a run.
    pub(super) fn name_run(&self, session: SessionId, name: String, execution: ExecutionId) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (session, name);
        if let Some(known) = runs.named.get_mut(&key) {
            known.push(execution);
            return;
        }
        runs.order.push_back(key.clone());
        runs.named.insert(key, vec![execution]);
        if runs.order.len() > MAX_NAMED_RUNS
            && let Some(oldest) = runs.order.pop_front()
        {
            runs.named.remove(&oldest);
        }
    }

    /// The runs of that name, which are forgotten by it.
    pub(super) fn take_runs(&self, session: &SessionId, name: &str) -> Vec<ExecutionId> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (session.clone(), name.to_owned());
        let taken = runs.named.remove(&key).unwrap_or_default();
        runs.order.retain(|it| *it != key);
        taken
    }
}
