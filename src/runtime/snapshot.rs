//! What the screen sees: one immutable picture of the whole, replaced as things change.
//!
//! A snapshot shows only what is durable. A decision that is still being written is not in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::notices::NoticesState;
pub use super::shadow::{Difference, Shadowed};
pub use super::store_state::StoreState;
use super::threads::ThreadDrafts;
use super::watched::Watch;
use crate::atlas::Atlas;
use crate::atlas::compiled::Capability;
use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::digest::Digest;
use crate::base::id::{GateId, SessionId};
use crate::base::pattern::Patterns;
use crate::engine::command::{Decided, Overruled, RecordFault};
use crate::engine::explain::Account;
use crate::engine::held::Held;
use crate::engine::session::{Entry, Session};
pub use crate::engine::usage::LimitUse;
use crate::memento::Thread;
use crate::trace::verify::{Report, Verdict};

mod sessions;

pub use sessions::SessionList;

/// An action that an agent ran without asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanUnasked {
    /// The session.
    pub session: SessionId,
    /// What ran, as the hook reported it, without secrets.
    pub what: Arc<str>,
    /// Number of such actions while this console ran.
    pub count: u64,
}

/// The picture.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Grows with every picture.
    pub revision: u64,
    /// Who sits at this console.
    pub operator: String,
    /// Whether this console can decide.
    pub access: Access,
    /// The Atlases in force.
    pub atlases: Vec<AtlasSummary>,
    /// The same, whole.
    pub loaded: Arc<[Atlas]>,
    /// Since when they are in force, and what was before.
    pub in_force: InForce,
    /// What those who watch see of evaluations.
    pub watched: Watched,
    /// Conversations, the one with the newest turn first.
    pub threads: Arc<[Arc<Thread>]>,
    /// Sessions that have not ended, in the order they started.
    pub sessions: SessionList,
    /// Held requests, in the order they were asked.
    pub held: Vec<Arc<Held>>,
    /// Decisions, newest first.
    pub decided: Vec<Arc<Decided>>,
    /// What operators have typed and not yet decided with, by gate. It comes back after a restart.
    pub drafts: Arc<Drafts>,
    /// What operators have typed for summaries and was not taken. It comes back after a restart too.
    pub thread_drafts: Arc<ThreadDrafts>,
    /// What operators did beside deciding, as far as it still holds.
    pub acts: Acts,
    /// The state of the record.
    pub chain: ChainState,
    /// The state of the store.
    pub store: StoreState,
    /// What reached nobody.
    pub dropped: Dropped,
    /// What stewards are told, and have not heard yet.
    pub notices: Arc<NoticesState>,
    /// The last step of the wall clock while this console ran.
    pub clock_moved: Option<ClockMovedAt>,
    /// Time of the last new thread that was refused because no thread could make room for it.
    pub threads_full_at: Option<Timestamp>,
    /// The last action that an agent ran without asking, as its hook reported, while this console ran.
    pub ran_unasked: Option<RanUnasked>,
    /// The reason why the state of the store was not believed at the start, for people.
    pub distrusted: Option<Arc<str>>,
    /// True when the head beside the store was missing at the start.
    pub headless: bool,
}

/// A step of the wall clock, with the time after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMovedAt {
    /// Its direction and size.
    pub step: ClockStep,
    /// Time on the wall clock when it was noticed.
    pub at: Timestamp,
}

impl Snapshot {
    /// The fault of the record that no operator said to know of, if there is one. Agents are denied for it.
    #[must_use]
    pub fn unknown_fault(&self) -> Option<RecordFault> {
        let known = self.acts.known.as_ref();
        self.chain.verdict.unknown_fault(known)
    }

    /// The picture of nothing at all.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            revision: 0,
            operator: String::new(),
            access: Access::ReadOnly,
            atlases: Vec::new(),
            loaded: Arc::default(),
            in_force: InForce::default(),
            watched: Watched::default(),
            threads: Arc::default(),
            sessions: SessionList::default(),
            held: Vec::new(),
            decided: Vec::new(),
            drafts: Arc::default(),
            thread_drafts: Arc::default(),
            acts: Acts::default(),
            chain: ChainState::default(),
            store: StoreState::Ready,
            dropped: Dropped::default(),
            notices: Arc::default(),
            clock_moved: None,
            threads_full_at: None,
            ran_unasked: None,
            distrusted: None,
            headless: false,
        }
    }
}

/// What reached nobody since the runtime started. No gate is ever among it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Advice that a budget of an Atlas left out; the record names each.
    pub advice: u64,
    /// Events that hooks were too slow to hear of; the record has them all.
    pub hooks: u64,
    /// Answers whose asker had gone; what was decided is on record.
    pub answers: u64,
}

impl Dropped {
    /// All of it.
    #[must_use]
    pub fn total(self) -> u64 {
        self.advice + self.hooks + self.answers
    }
}

/// What operators did beside deciding, as far as it still holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acts {
    /// Denials that were overruled and that nobody has acknowledged, the oldest first.
    pub overruled: Vec<Overruled>,
    /// What an operator knows to be wrong with the record.
    pub known: Option<RecordFault>,
}

/// What those who watch see. Nothing is added while nobody does.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Whether somebody watches.
    pub watch: Watch,
    /// Evaluations since the runtime started, as far as somebody watched.
    pub total: u64,
    /// The newest of them, newest first.
    pub evaluations: Arc<[Arc<Evaluated>]>,
    /// What was used of limits, by session.
    pub limits: Arc<BTreeMap<SessionId, Vec<LimitUse>>>,
    /// Atlases in the shadow of those in force, and what they would have done otherwise.
    pub shadow: Option<Arc<Shadowed>>,
}

/// What checkpoints and policies made of something that happened.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// Counts up from 1.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: String,
    /// Checkpoints that fired, that did not, and that were not about it.
    pub counts: (usize, usize, usize),
    /// What was found, as far as it is kept.
    pub account: Account,
    /// What came of it at once.
    pub came: Came,
}

/// What came of something at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// It went on.
    Allowed,
    /// It is held.
    Held(Vec<GateId>),
    /// It was denied, and why.
    Denied(String),
    /// It waits: for a gate that is held already, or for an extension.
    Waits,
}

/// What was typed at held requests; what it means is the console's.
pub type Drafts = BTreeMap<GateId, Value>;

/// Who sits at a console, and what they may do.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) operator: String,
    pub(super) access: Access,
}

/// Whether a console can decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It can.
    Write,
    /// It can only look.
    ReadOnly,
}

/// An Atlas in force.
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
    /// How many checkpoints it has.
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

/// Since when the Atlases are in force, and what was before.
#[derive(Clone, Debug, Default)]
pub struct InForce {
    /// One digest for all of them: a held request that was judged under another cannot be passed.
    pub hash: Option<Digest>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Those that they took the place of, while this runtime was at work.
    pub before: Option<Arc<[Atlas]>>,
}

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its identifier.
    pub id: SessionId,
    /// Its agent.
    pub agent: String,
    /// What it says it is for.
    pub intent: Option<String>,
    /// Whether it may act at all.
    pub entry: Entry,
    /// Held gates that stand before everything it asks for.
    pub pending: Vec<GateId>,
    /// When it started.
    pub started_at: Timestamp,
    /// Actions that ran.
    pub actions: u64,
    /// Capabilities it has.
    pub unlocked: Vec<String>,
    /// Capabilities it lacks.
    pub locked: Vec<String>,
    /// Actions that passed gates allow, as patterns.
    pub allowed: Vec<String>,
    /// Actions that passed gates deny, as patterns.
    pub denied: Vec<String>,
    /// Contexts it was handed.
    pub contexts: Vec<String>,
    /// Checkpoints whose guidance holds.
    pub guidance: Vec<String>,
    /// Events recorded for it.
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
            intent: session.intent.as_ref().map(|intent| intent.kept.clone()),
            entry: session.entry.clone(),
            pending: session.pending.iter().cloned().collect(),
            started_at: session.started_at,
            actions: session.actions,
            unlocked: names(unlocked),
            locked: names(locked),
            allowed: written(session.allowed.iter().map(|(_, patterns)| patterns)),
            denied: written(session.denied.iter().map(|(_, patterns)| patterns)),
            contexts: session.context_ids().into_iter().collect(),
            guidance: session
                .guidance
                .iter()
                .map(|given| given.checkpoint_id.clone())
                .collect(),
            events: session.events,
        }
    }
}

fn written<'p>(patterns: impl IntoIterator<Item = &'p Patterns>) -> Vec<String> {
    let patterns = patterns.into_iter().flat_map(Patterns::iter);
    patterns.map(ToString::to_string).collect()
}

/// What is known about the record as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainState {
    /// Sessions on record.
    pub sessions: u64,
    /// Events on record.
    pub events: u64,
    /// What the last check found.
    pub verdict: ChainVerdict,
    /// How far the log is signed, and whether its head is kept elsewhere.
    pub head: HeadState,
}

/// What is known about the signed end of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadState {
    /// Entries of the log that the newest signed head covers.
    pub signed: u64,
    /// Events that it covers, where it was signed since the start: they were read back before.
    pub covered: u64,
    /// The file elsewhere that keeps it.
    pub elsewhere: Elsewhere,
}

/// Whether the head of the log is kept elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Elsewhere {
    /// Nobody asked for that.
    #[default]
    Nowhere,
    /// It is.
    Kept,
    /// It should be, and could not be written.
    Failed {
        /// What failed, for people.
        what: String,
    },
}

/// What the last check of all chains found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChainVerdict {
    /// Not checked yet.
    #[default]
    Unchecked,
    /// Every chain holds, as far as it was read.
    Verified {
        /// Events that were read. What came later is not checked yet.
        events: u64,
        /// Those of them that no signed head covered when they were read.
        unsealed: u64,
    },
    /// A chain does not hold.
    Broken {
        /// The session.
        session: SessionId,
        /// What is wrong, for people.
        what: String,
        /// Digest of everything that is wrong.
        mark: Digest,
    },
    /// The record could not be read.
    Unreadable {
        /// What is wrong, for people.
        what: String,
    },
}

impl ChainVerdict {
    /// What a whole report comes to.
    fn of(report: &Report) -> Self {
        match report.first_fault() {
            None => Self::Verified {
                events: report.chains.iter().map(|one| one.events).sum(),
                unsealed: report.chains.iter().map(|one| unsealed(&one.verdict)).sum(),
            },
            Some((session, verdict)) => Self::Broken {
                session: session.clone(),
                what: match verdict {
                    Verdict::Broken { sequence, what } => format!("event {sequence}: {what}"),
                    Verdict::Holds(_) | Verdict::Diverged { .. } | Verdict::Truncated { .. } => {
                        verdict.to_string()
                    }
                },
                mark: mark(report),
            },
        }
    }

    /// What is wrong, unless it is known.
    pub(super) fn unknown_fault(&self, known: Option<&RecordFault>) -> Option<RecordFault> {
        let is_known = |fault: &RecordFault| known.is_some_and(|known| known.mark == fault.mark);
        self.fault().filter(|fault| !is_known(fault))
    }

    /// What is wrong, if anything is.
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

impl From<&Result<Report, String>> for ChainVerdict {
    fn from(checked: &Result<Report, String>) -> Self {
        match checked {
            Err(what) => Self::Unreadable { what: what.clone() },
            Ok(report) => Self::of(report),
        }
    }
}

/// One digest of everything that is wrong: whoever knows of one fault does not know of another.
fn mark(report: &Report) -> Digest {
    let faults = report.faults();
    let told: Vec<_> = faults
        .flat_map(|(session, verdict)| [session.to_string(), verdict.to_string()])
        .collect();
    Digest::of_parts(told.iter().map(String::as_bytes))
}

/// Events of a chain that no head covers.
fn unsealed(verdict: &Verdict) -> u64 {
    match verdict {
        Verdict::Holds(proven) => proven.tail(),
        Verdict::Diverged { .. } | Verdict::Truncated { .. } | Verdict::Broken { .. } => 0,
    }
}
