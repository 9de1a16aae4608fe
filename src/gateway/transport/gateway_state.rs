//! State shared by all gateway servers: the runtime handle and the agents' names for running actions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use super::admission::{Admission, Connections};
use super::caller_limits::CallerLimitTable;
use crate::base::digest::Digest;
use crate::base::id::{ExecutionId, SessionId};
use crate::base::limits::MAX_RUNNING_PER_SESSION;
use crate::gateway::protocol::call::CallFault;
use crate::gateway::protocol::proof::{AnswerSigner, AnswerVerifier};
use crate::runtime::AgentHandle;

/// State shared by all gateway servers.
#[derive(Clone, Debug)]
pub struct GatewayState {
    pub(super) agents: AgentHandle,
    /// Signs answers, for callers that ask for a proof.
    pub(super) signer: AnswerSigner,
    runs: Arc<Mutex<BTreeMap<SessionId, SessionRuns>>>,
    pending_requests: Arc<Mutex<BTreeMap<ToolCallKey, watch::Receiver<Option<RequestOutcome>>>>>,
    /// Sessions whose caller disconnected before it got an answer, and that have made no request since.
    disconnected_sessions: Arc<Mutex<BTreeSet<SessionId>>>,
    /// Connected callers.
    pub(super) peers: CallerLimitTable,
    shortage: Arc<Mutex<Option<(ConnectionShortage, Instant)>>>,
}

/// Shortage of connections at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionShortage {
    /// Interface that agents connect to.
    pub interface: &'static str,
    /// Most connections of the interface.
    pub max_connections: usize,
    /// Process with the most connections, if the system names it.
    pub busiest_process: Option<i32>,
    /// Outcome for the connection that exceeded the limit.
    pub outcome: ShortageOutcome,
}

/// Outcome for a connection that exceeded the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShortageOutcome {
    /// An idle connection was closed for the new one.
    IdleClosed,
    /// The new connection was refused, which denies its agent's request.
    Refused,
}

impl ConnectionShortage {
    /// Describes a connection that exceeded the limit.
    pub(super) fn new(
        interface: &'static str,
        open: &Connections,
        max_connections: usize,
        admission: Admission,
    ) -> Self {
        let outcome = match admission {
            Admission::Admit | Admission::Replace(_) => ShortageOutcome::IdleClosed,
            Admission::Refuse => ShortageOutcome::Refused,
        };
        Self {
            interface,
            max_connections,
            busiest_process: open.busiest_process().and_then(|(pid, _)| pid),
            outcome,
        }
    }

    /// Returns the alarm text for the operator.
    #[must_use]
    pub fn alarm(&self) -> String {
        let Self {
            interface,
            max_connections: most,
            ..
        } = self;
        let outcome = match self.outcome {
            ShortageOutcome::IdleClosed => "idle connections were closed",
            ShortageOutcome::Refused => "agents were refused",
        };
        let process = self
            .busiest_process
            .map(|pid| format!("; process {pid} has the most"));
        format!(
            "the {interface} reached its limit of {most} connections: {outcome}{}",
            process.unwrap_or_default()
        )
    }
}

/// A caller that waits for an answer. If it is dropped with its session set, the caller has disconnected.
struct WaitingCaller<'h> {
    gateway: &'h GatewayState,
    session: Option<SessionId>,
}

impl Drop for WaitingCaller<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.gateway.lock_disconnected().insert(session);
        }
    }
}

/// Runs of a session by the name that its agent gave them. The process that reports a result may differ
/// from the process that made the request, and knows only that name. A restart forgets them.
#[derive(Debug, Default)]
struct SessionRuns {
    /// Open runs, the oldest first.
    named: VecDeque<NamedRun>,
    /// Names of reported runs, the oldest first: some agents report twice.
    done: VecDeque<String>,
}

/// A run with the names that its agent gave.
#[derive(Debug)]
pub(super) struct NamedRun {
    /// Name by which its result is reported. Identical tool calls may share it.
    pub(super) name: String,
    /// Identifier of the tool call that the run belongs to.
    pub(super) call: String,
    pub(super) execution: ExecutionId,
}

/// Result of a search for runs by name.
pub(super) enum RunLookup {
    /// The runs with that name.
    Found(Vec<ExecutionId>),
    /// The runs were already reported.
    Reported,
    /// No run has that name.
    Unknown,
}

/// A tool call, whichever number of hooks ask about it: session, the agent's identifier of the call, and
/// digest of the request.
type ToolCallKey = (SessionId, String, Digest);

/// Outcome of a request.
type RequestOutcome = Result<Value, CallFault>;

/// Position of a request among concurrent requests about one tool call.
pub(super) enum JoinedRequest {
    /// The first request. Later ones share its outcome.
    First(Box<FirstRequest>),
    /// A later request. The channel closes without an outcome if the first caller disconnects.
    Later(watch::Receiver<Option<RequestOutcome>>),
}

/// The first request about a tool call, while it waits.
pub(super) struct FirstRequest {
    gateway: GatewayState,
    key: ToolCallKey,
    sender: watch::Sender<Option<RequestOutcome>>,
}

impl FirstRequest {
    pub(super) fn publish(&self, outcome: &RequestOutcome) {
        self.sender.send_replace(Some(outcome.clone()));
    }
}

impl Drop for FirstRequest {
    fn drop(&mut self) {
        let mut asked = self.gateway.pending_requests.lock();
        let asked = asked.as_mut().unwrap_or_else(PoisonError::get_mut);
        asked.remove(&self.key);
    }
}

impl GatewayState {
    /// Creates the state for a runtime, with the key that signs answers.
    #[must_use]
    pub fn new(agents: AgentHandle, signer: AnswerSigner) -> Self {
        Self {
            agents,
            signer,
            runs: Arc::default(),
            pending_requests: Arc::default(),
            disconnected_sessions: Arc::default(),
            peers: CallerLimitTable::default(),
            shortage: Arc::default(),
        }
    }

    /// Notes a shortage of connections. A noted refusal is not replaced by a closed idle connection.
    pub(super) fn note_shortage(&self, shortage: ConnectionShortage) {
        let mut noted = self.shortage.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        *noted = match noted.take() {
            Some((before, _))
                if before.outcome == ShortageOutcome::Refused
                    && shortage.outcome == ShortageOutcome::IdleClosed =>
            {
                Some((before, now))
            }
            Some(_) | None => Some((shortage, now)),
        };
    }

    /// Returns the last shortage of connections, if it is no older than `span`.
    #[must_use]
    pub fn recent_shortage(&self, span: Duration) -> Option<ConnectionShortage> {
        let mut noted = self.shortage.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.is_some_and(|(_, at)| at.elapsed() > span) {
            *noted = None;
        }
        noted.map(|(shortage, _)| shortage)
    }

    /// Returns the key that proves the answers.
    #[must_use]
    pub fn verifier(&self) -> AnswerVerifier {
        self.signer.verifier()
    }

    /// Waits for the answer to a session's request. If the future is dropped, the caller has disconnected,
    /// and that is remembered.
    pub(super) async fn wait_for_answer<T>(
        &self,
        session: SessionId,
        asked: impl Future<Output = T>,
    ) -> T {
        self.lock_disconnected().remove(&session);
        let mut waiting = WaitingCaller {
            gateway: self,
            session: Some(session),
        };
        let answer = asked.await;
        waiting.session = None;
        answer
    }

    /// Returns the sessions with a held request whose caller disconnected while it waited. Forgets the
    /// other sessions.
    pub fn disconnected_sessions(
        &self,
        is_held: impl Fn(&SessionId) -> bool,
    ) -> BTreeSet<SessionId> {
        let mut left = self.lock_disconnected();
        left.retain(is_held);
        left.clone()
    }

    fn lock_disconnected(&self) -> MutexGuard<'_, BTreeSet<SessionId>> {
        self.disconnected_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins a request to an earlier one about one tool call. An agent may run several hooks for one tool
    /// call: all get one answer, because a denial from any of them stops the call.
    pub(super) fn join_request(&self, of: ToolCallKey) -> JoinedRequest {
        let mut asked = self
            .pending_requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = asked.get(&of) {
            return JoinedRequest::Later(first.clone());
        }
        let (sender, receiver) = watch::channel(None);
        asked.insert(of.clone(), receiver);
        JoinedRequest::First(Box::new(FirstRequest {
            gateway: self.clone(),
            key: of,
            sender,
        }))
    }

    /// Stores the agent's name for a run. A session that names too many runs loses its own oldest name,
    /// never another session's.
    pub(super) fn name_run(&self, session: SessionId, named: NamedRun) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let own = runs.entry(session).or_default();
        own.done.retain(|name| *name != named.name);
        own.named.push_back(named);
        if own.named.len() > MAX_RUNNING_PER_SESSION {
            own.named.pop_front();
        }
    }

    /// Removes and returns the runs of that name. If several tool calls share the name, only runs of the
    /// oldest call are taken.
    pub(super) fn take_runs(&self, session: &SessionId, name: &str) -> RunLookup {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = runs.get_mut(session) else {
            return RunLookup::Unknown;
        };
        let mut oldest = own.named.iter().filter(|run| run.name == name);
        let call = oldest.next().map(|run| run.call.clone());
        let named = std::mem::take(&mut own.named).into_iter();
        let (taken, left) = named
            .partition::<Vec<_>, _>(|run| run.name == name && Some(&run.call) == call.as_ref());
        own.named = left.into();
        if taken.is_empty() {
            let done = own.done.iter().any(|reported| reported == name);
            return if done {
                RunLookup::Reported
            } else {
                RunLookup::Unknown
            };
        }
        own.done.push_back(name.to_owned());
        if own.done.len() > MAX_RUNNING_PER_SESSION {
            own.done.pop_front();
        }
        RunLookup::Found(taken.into_iter().map(|run| run.execution).collect())
    }

    /// Removes the run names of a session that has ended.
    pub(super) fn forget_runs(&self, session: &SessionId) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.remove(session);
    }
}
