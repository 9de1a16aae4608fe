//! What all doors share: the way to the runtime, and what agents call the runs they were allowed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use super::admission::{Admission, Connections};
use super::call::Fault;
use super::peer::Peers;
use super::proof::{AnswerSigner, AnswerVerifier};
use crate::base::digest::Digest;
use crate::base::id::{ExecutionId, SessionId};
use crate::base::limits::MAX_RUNNING_PER_SESSION;
use crate::runtime::Agents;

/// What all doors share.
#[derive(Clone, Debug)]
pub struct Hall {
    pub(super) agents: Agents,
    /// Signs answers, for callers that ask for a proof.
    pub(super) signer: AnswerSigner,
    runs: Arc<Mutex<BTreeMap<SessionId, Runs>>>,
    asked: Arc<Mutex<BTreeMap<Use, watch::Receiver<Option<Outcome>>>>>,
    /// Sessions whose asker left without having heard an answer, and that nobody has asked for since.
    left: Arc<Mutex<BTreeSet<SessionId>>>,
    /// The callers that are connected.
    pub(super) peers: Peers,
    crowd: Arc<Mutex<Option<(Crowd, Instant)>>>,
}

/// Shortage of connections at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Interface that agents connect to.
    pub interface: &'static str,
    /// Connections that there can be.
    pub most: usize,
    /// Process with the most of them, where the system names it.
    pub largest: Option<i32>,
    /// The end of the connection that was one too many.
    pub outcome: CrowdOutcome,
}

/// What became of the connection that was one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrowdOutcome {
    /// An idle connection was closed for it.
    IdleClosed,
    /// Its agent was turned away, which is a denial.
    Refused,
}

impl Crowd {
    /// Describes a connection that there was no room for.
    pub(super) fn new(
        interface: &'static str,
        open: &Connections,
        most: usize,
        admission: Admission,
    ) -> Self {
        let outcome = match admission {
            Admission::Admit | Admission::Replace(_) => CrowdOutcome::IdleClosed,
            Admission::Refuse => CrowdOutcome::Refused,
        };
        Self {
            interface,
            most,
            largest: open.largest().and_then(|(pid, _)| pid),
            outcome,
        }
    }

    /// The alarm for the operator.
    #[must_use]
    pub fn alarm(&self) -> String {
        let Self {
            interface, most, ..
        } = self;
        let outcome = match self.outcome {
            CrowdOutcome::IdleClosed => "idle ones were closed to make room",
            CrowdOutcome::Refused => "agents were turned away",
        };
        let process = self
            .largest
            .map(|pid| format!("; process {pid} has the most"));
        format!(
            "connections of the {interface} ran short ({most} in all), and {outcome}{}",
            process.unwrap_or_default()
        )
    }
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
    named: VecDeque<NamedRun>,
    /// Names of those that were reported, the oldest first: some report twice.
    done: VecDeque<String>,
}

/// A run, by the names that its agent gave.
#[derive(Debug)]
pub(super) struct NamedRun {
    /// The name by which its result is reported. Identical uses of a tool may share it.
    pub(super) name: String,
    /// The use of the tool that the run belongs to.
    pub(super) call: String,
    pub(super) execution: ExecutionId,
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
    First(Box<First>),
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
    /// The hall before a runtime, with the key that proves its answers.
    #[must_use]
    pub fn new(agents: Agents, signer: AnswerSigner) -> Self {
        Self {
            agents,
            signer,
            runs: Arc::default(),
            asked: Arc::default(),
            left: Arc::default(),
            peers: Peers::default(),
            crowd: Arc::default(),
        }
    }

    /// Notes that connections of an interface ran short. That agents were turned away is not replaced by less.
    pub(super) fn note_crowd(&self, crowd: Crowd) {
        let mut noted = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        *noted = match noted.take() {
            Some((before, _))
                if before.outcome == CrowdOutcome::Refused
                    && crowd.outcome == CrowdOutcome::IdleClosed =>
            {
                Some((before, now))
            }
            Some(_) | None => Some((crowd, now)),
        };
    }

    /// The last time that connections ran short, if that is no longer ago than `span`.
    #[must_use]
    pub fn crowd_within(&self, span: Duration) -> Option<Crowd> {
        let mut noted = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.is_some_and(|(_, at)| at.elapsed() > span) {
            *noted = None;
        }
        noted.map(|(crowd, _)| crowd)
    }

    /// Returns the key that proves the answers.
    #[must_use]
    pub fn verifier(&self) -> AnswerVerifier {
        self.signer.verifier()
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
        Joined::First(Box::new(First {
            hall: self.clone(),
            of,
            teller,
        }))
    }

    /// Remembers what an agent calls a run. A session that names too many loses its own oldest, and nobody else's.
    pub(super) fn name_run(&self, session: SessionId, named: NamedRun) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let own = runs.entry(session).or_default();
        own.done.retain(|it| *it != named.name);
        own.named.push_back(named);
        if own.named.len() > MAX_RUNNING_PER_SESSION {
            own.named.pop_front();
        }
    }

    /// Removes and gives the runs of that name; where several uses of a tool share it, those of the oldest use.
    pub(super) fn take_runs(&self, session: &SessionId, name: &str) -> Named {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = runs.get_mut(session) else {
            return Named::Unknown;
        };
        let mut oldest = own.named.iter().filter(|run| run.name == name);
        let call = oldest.next().map(|run| run.call.clone());
        let named = std::mem::take(&mut own.named).into_iter();
        let (taken, left) = named
            .partition::<Vec<_>, _>(|run| run.name == name && Some(&run.call) == call.as_ref());
        own.named = left.into();
        if taken.is_empty() {
            let done = own.done.iter().any(|it| it == name);
            return if done { Named::Done } else { Named::Unknown };
        }
        own.done.push_back(name.to_owned());
        if own.done.len() > MAX_RUNNING_PER_SESSION {
            own.done.pop_front();
        }
        Named::Runs(taken.into_iter().map(|run| run.execution).collect())
    }

    /// Forgets what a session that has ended called its runs.
    pub(super) fn forget_runs(&self, session: &SessionId) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(session);
    }
}
