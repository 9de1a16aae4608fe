//! What all doors share: the way to the runtime, and what agents call the runs they were allowed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::id::{ExecutionId, SessionId};
use crate::base::limits::MAX_NAMED_RUNS;
use crate::runtime::Agents;

/// What all doors share.
#[derive(Clone, Debug)]
pub struct Hall {
    pub(super) agents: Agents,
    runs: Arc<Mutex<Runs>>,
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
        }
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
