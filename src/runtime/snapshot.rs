//! Immutable snapshots of the whole state for the screen, replaced as the state changes.
//!
//! A snapshot shows only durable data. A decision that is still being written is not in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::evaluation_watch::WatchSetting;
use super::notices::NoticeSummary;
pub use super::shadow::{ShadowDifference, ShadowSummary};
pub use super::store_state::StoreState;
use super::threads::ThreadDrafts;
use crate::atlas::Atlas;
use crate::atlas::model::Capability;
use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::digest::Digest;
use crate::base::id::{HeldRequestId, SessionId};
use crate::base::pattern::Patterns;
use crate::engine::command::{OverruledDenial, RecordFault, SettledRequest};
use crate::engine::explanation::FullExplanation;
use crate::engine::held::Held;
use crate::engine::session::{Session, StartState};
pub use crate::engine::usage::SessionLimitUsage;
use crate::memento::Thread;
use crate::trace::verification::{VerificationReport, VerificationVerdict};

mod sessions;

pub use sessions::SessionList;

/// An action that an agent ran without a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrequestedAction {
    /// The session.
    pub session: SessionId,
    /// Description from the hook, without secrets.
    pub what: Arc<str>,
    /// Number of such actions while this console ran.
    pub count: u64,
}

/// A snapshot of the state.
#[derive(Clone, Debug)]
pub struct RuntimeSnapshot {
    /// Grows with every snapshot.
    pub revision: u64,
    /// Operator at this console.
    pub operator: String,
    /// Tells whether this console can decide.
    pub access: ConsoleAccess,
    /// Summaries of the loaded Atlases.
    pub atlases: Vec<AtlasSummary>,
    /// The loaded Atlases.
    pub loaded: Arc<[Atlas]>,
    /// Load time of the Atlases, and their predecessors.
    pub load_info: AtlasLoadInfo,
    /// Watched evaluations.
    pub watched: EvaluationLog,
    /// Conversations, the one with the newest turn first.
    pub threads: Arc<[Arc<Thread>]>,
    /// Sessions that have not ended, in the order they started.
    pub sessions: SessionList,
    /// Held requests, in the order of their arrival.
    pub held: Vec<Arc<Held>>,
    /// Decisions, newest first.
    pub decided: Vec<Arc<SettledRequest>>,
    /// Drafts of operators for held requests, by gate. They survive a restart.
    pub drafts: Arc<Drafts>,
    /// Drafts of operators for summaries that were not accepted. They survive a restart, too.
    pub thread_drafts: Arc<ThreadDrafts>,
    /// Operators' other actions, as far as they still apply.
    pub operator_acts: OperatorActs,
    /// State of the record.
    pub chain: RecordSummary,
    /// State of the store.
    pub store: StoreState,
    /// Counts of undelivered items.
    pub undelivered: UndeliveredCounts,
    /// State of notices to stewards.
    pub notices: Arc<NoticeSummary>,
    /// The last step of the wall clock while this console ran.
    pub clock_step: Option<ClockStepAt>,
    /// Time of the last new thread that was refused because no other thread could be dropped for it.
    pub threads_full_at: Option<Timestamp>,
    /// The last action without a request, as its hook reported, while this console ran.
    pub ran_unasked: Option<UnrequestedAction>,
    /// Reason why the stored state was not trusted at the start, for people.
    pub distrusted: Option<Arc<str>>,
    /// True if the head file next to the store was missing at the start.
    pub head_file_missing: bool,
}

/// A step of the wall clock, with the time after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStepAt {
    /// Direction and size.
    pub step: ClockStep,
    /// Time on the wall clock when it was noticed.
    pub at: Timestamp,
}

impl RuntimeSnapshot {
    /// Returns the fault of the record that no operator has acknowledged, if there is one. Agents are
    /// denied for it.
    #[must_use]
    pub fn unacknowledged_fault(&self) -> Option<RecordFault> {
        let known = self.operator_acts.acknowledged_fault.as_ref();
        self.chain.verdict.unacknowledged_fault(known)
    }

    /// Returns an empty snapshot.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            revision: 0,
            operator: String::new(),
            access: ConsoleAccess::ReadOnly,
            atlases: Vec::new(),
            loaded: Arc::default(),
            load_info: AtlasLoadInfo::default(),
            watched: EvaluationLog::default(),
            threads: Arc::default(),
            sessions: SessionList::default(),
            held: Vec::new(),
            decided: Vec::new(),
            drafts: Arc::default(),
            thread_drafts: Arc::default(),
            operator_acts: OperatorActs::default(),
            chain: RecordSummary::default(),
            store: StoreState::Ready,
            undelivered: UndeliveredCounts::default(),
            notices: Arc::default(),
            clock_step: None,
            threads_full_at: None,
            ran_unasked: None,
            distrusted: None,
            head_file_missing: false,
        }
    }
}

/// Counts of undelivered items since the runtime started. Gates are never among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UndeliveredCounts {
    /// Advice that an Atlas' budget skipped; the record names each.
    pub advice: u64,
    /// Events that slow hooks missed; the record has them all.
    pub hooks: u64,
    /// Answers whose caller had disconnected; the decisions are on record.
    pub answers: u64,
}

impl UndeliveredCounts {
    /// Returns the sum.
    #[must_use]
    pub fn total(self) -> u64 {
        self.advice + self.hooks + self.answers
    }
}

/// Operators' actions other than decisions, as far as they still apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorActs {
    /// Overruled denials that no operator has acknowledged, the oldest first.
    pub overruled: Vec<OverruledDenial>,
    /// Fault of the record that an operator has acknowledged.
    pub acknowledged_fault: Option<RecordFault>,
}

/// Watched evaluations. Nothing is added while no console watches.
#[derive(Clone, Debug, Default)]
pub struct EvaluationLog {
    /// Tells whether a console watches.
    pub watch: WatchSetting,
    /// Number of watched evaluations since the runtime started.
    pub total: u64,
    /// The newest evaluations, newest first.
    pub evaluations: Arc<[Arc<WatchedEvaluation>]>,
    /// Use of limits, by session.
    pub limits: Arc<BTreeMap<SessionId, Vec<SessionLimitUsage>>>,
    /// Shadow Atlases, and their differences.
    pub shadow: Option<Arc<ShadowSummary>>,
}

/// Evaluation of an event by checkpoints and policies.
#[derive(Clone, Debug)]
pub struct WatchedEvaluation {
    /// Number, counted from 1.
    pub number: u64,
    /// Time of the event.
    pub at: Timestamp,
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: String,
    /// Numbers of checkpoints that fired, that did not fire, and that did not apply.
    pub counts: (usize, usize, usize),
    /// Findings, as far as they are kept.
    pub account: FullExplanation,
    /// Immediate outcome.
    pub outcome: EvaluationOutcome,
}

/// Immediate outcome of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationOutcome {
    /// Allowed.
    Allowed,
    /// Held.
    Held(Vec<HeldRequestId>),
    /// Denied, with the reason.
    Denied(String),
    /// Waits for a gate that is already held, or for an extension.
    Waiting,
}

/// Drafts for held requests. Only the console interprets them.
pub type Drafts = BTreeMap<HeldRequestId, Value>;

/// Operator of a console, and the access rights.
#[derive(Clone, Debug)]
pub(super) struct ConsoleOperator {
    pub(super) operator: String,
    pub(super) access: ConsoleAccess,
}

/// Access of a console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleAccess {
    /// The console can decide.
    Write,
    /// The console can only show.
    ReadOnly,
}

/// Summary of a loaded Atlas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtlasSummary {
    /// Its identifier.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its name.
    pub name: String,
    /// Digest of its text.
    pub hash: Digest,
    /// Number of checkpoints.
    pub checkpoints: usize,
}

impl AtlasSummary {
    pub(super) fn of(atlas: &Atlas) -> Self {
        Self {
            id: atlas.id.clone(),
            version: atlas.version.clone(),
            name: atlas.name.clone(),
            hash: atlas.hash,
            checkpoints: atlas.checkpoints.len(),
        }
    }
}

/// Load time of the Atlases, and their predecessors.
#[derive(Clone, Debug, Default)]
pub struct AtlasLoadInfo {
    /// Digest of all Atlases: a held request that was judged under another digest cannot pass.
    pub hash: Option<Digest>,
    /// Time of loading.
    pub since: Option<Timestamp>,
    /// Atlases that they replaced while this runtime ran.
    pub before: Option<Arc<[Atlas]>>,
}

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its identifier.
    pub id: SessionId,
    /// Its agent.
    pub agent: String,
    /// Purpose that the agent stated.
    pub intent: Option<String>,
    /// Tells whether the session may act.
    pub entry: StartState,
    /// Held gates before all requests of the session.
    pub pending: Vec<HeldRequestId>,
    /// Start of the session.
    pub started_at: Timestamp,
    /// Number of actions that ran.
    pub actions: u64,
    /// Unlocked capabilities.
    pub unlocked: Vec<String>,
    /// Locked capabilities.
    pub locked: Vec<String>,
    /// Actions that passed gates allow, as patterns.
    pub allowed: Vec<String>,
    /// Actions that passed gates deny, as patterns.
    pub denied: Vec<String>,
    /// Contexts that the session received.
    pub contexts: Vec<String>,
    /// Checkpoints whose guidance is active.
    pub guidance: Vec<String>,
    /// Number of recorded events.
    pub events: u64,
}

impl SessionSummary {
    pub(super) fn of(session: &Session, atlases: &[Atlas]) -> Self {
        let capabilities = atlases
            .iter()
            .flat_map(|atlas| atlas.capabilities.iter().map(move |one| (atlas, one)));
        let (locked, unlocked): (Vec<_>, Vec<_>) =
            capabilities.partition(|(atlas, capability)| session.lacks(atlas, capability));
        let names = |list: Vec<(&Atlas, &Capability)>| {
            list.into_iter().map(|(_, one)| one.id.clone()).collect()
        };
        Self {
            id: session.id.clone(),
            agent: session.agent.clone(),
            intent: session
                .intent
                .as_ref()
                .map(|intent| intent.recorded.clone()),
            entry: session.entry.clone(),
            pending: session.pending.iter().cloned().collect(),
            started_at: session.started_at,
            actions: session.actions,
            unlocked: names(unlocked),
            locked: names(locked),
            allowed: pattern_texts(session.allowed.iter().map(|(_, patterns)| patterns)),
            denied: pattern_texts(session.denied.iter().map(|(_, patterns)| patterns)),
            contexts: session.context_ids().into_iter().collect(),
            guidance: session
                .guidance
                .iter()
                .map(|guidance| guidance.checkpoint_id.clone())
                .collect(),
            events: session.events,
        }
    }
}

fn pattern_texts<'p>(patterns: impl IntoIterator<Item = &'p Patterns>) -> Vec<String> {
    let patterns = patterns.into_iter().flat_map(Patterns::iter);
    patterns.map(ToString::to_string).collect()
}

/// Summary of the whole record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSummary {
    /// Number of recorded sessions.
    pub sessions: u64,
    /// Number of recorded events.
    pub events: u64,
    /// Result of the last verification.
    pub verdict: ChainVerdict,
    /// State of the log's signed head.
    pub head: HeadState,
}

/// State of the log's signed head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadState {
    /// Entries of the log that the newest signed head covers.
    pub signed: u64,
    /// Events that it covers, if it was signed since the start: they were read back first.
    pub covered: u64,
    /// State of the external copy.
    pub copy: HeadCopyState,
}

/// State of the external copy of the log's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HeadCopyState {
    /// Not configured.
    #[default]
    NotConfigured,
    /// Written.
    Written,
    /// Configured, but it could not be written.
    Failed {
        /// Reason, for people.
        what: String,
    },
}

/// Result of the last verification of all chains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChainVerdict {
    /// Not verified yet.
    #[default]
    Unchecked,
    /// All chains are valid, as far as they were read.
    Verified {
        /// Number of events that were read. Later events are not verified yet.
        events: u64,
        /// Number of read events that no signed head covered.
        unsealed: u64,
    },
    /// A chain is invalid.
    Broken {
        /// The session.
        session: SessionId,
        /// Fault, for people.
        what: String,
        /// Digest of all faults.
        mark: Digest,
    },
    /// The record could not be read.
    Unreadable {
        /// Reason, for people.
        what: String,
    },
}

impl ChainVerdict {
    /// Converts a report.
    fn of(report: &VerificationReport) -> Self {
        match report.first_fault() {
            None => Self::Verified {
                events: report.chains.iter().map(|one| one.events).sum(),
                unsealed: report.chains.iter().map(|one| unsealed(&one.verdict)).sum(),
            },
            Some((session, verdict)) => Self::Broken {
                session: session.clone(),
                what: match verdict {
                    VerificationVerdict::Broken { sequence, what } => {
                        format!("event {sequence}: {what}")
                    }
                    VerificationVerdict::Holds(_)
                    | VerificationVerdict::Diverged { .. }
                    | VerificationVerdict::Truncated { .. } => verdict.to_string(),
                },
                mark: fault_digest(report),
            },
        }
    }

    /// Returns the fault, unless it is the known one.
    pub(super) fn unacknowledged_fault(&self, known: Option<&RecordFault>) -> Option<RecordFault> {
        let is_known = |fault: &RecordFault| known.is_some_and(|known| known.mark == fault.mark);
        self.fault().filter(|fault| !is_known(fault))
    }

    /// Returns the fault, if there is one.
    #[must_use]
    pub fn fault(&self) -> Option<RecordFault> {
        match self {
            Self::Unchecked | Self::Verified { .. } => None,
            Self::Broken {
                session,
                what,
                mark,
            } => Some(RecordFault {
                mark: *mark,
                session: Some(session.clone()),
                what: format!("CHAIN BROKEN in {session}: {what}"),
            }),
            Self::Unreadable { what } => Some(RecordFault {
                mark: Digest::of(what),
                session: None,
                what: format!("RECORD UNREADABLE: {what}"),
            }),
        }
    }
}

impl From<&Result<VerificationReport, String>> for ChainVerdict {
    fn from(checked: &Result<VerificationReport, String>) -> Self {
        match checked {
            Err(what) => Self::Unreadable { what: what.clone() },
            Ok(report) => Self::of(report),
        }
    }
}

/// Returns a digest of all faults: an operator's acknowledgement of one fault does not cover another.
fn fault_digest(report: &VerificationReport) -> Digest {
    let faults = report.faults();
    let texts: Vec<_> = faults
        .flat_map(|(session, verdict)| [session.to_string(), verdict.to_string()])
        .collect();
    Digest::of_parts(texts.iter().map(String::as_bytes))
}

/// Returns the number of events of a chain that no head covers.
fn unsealed(verdict: &VerificationVerdict) -> u64 {
    match verdict {
        VerificationVerdict::Holds(proven) => proven.unproven_count(),
        VerificationVerdict::Diverged { .. }
        | VerificationVerdict::Truncated { .. }
        | VerificationVerdict::Broken { .. } => 0,
    }
}
