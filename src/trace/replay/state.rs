//! What held at a point of a session, as far as its events alone can tell.
//!
//! What they cannot tell:
//! - which capabilities a session lacks from the start: that is in its Atlases, not in its record;
//! - what a gate locked, allowed or denied, and what advice did beside handing over contexts, unless
//!   the events say it;
//! - whether a request that passed its gates runs, or its asker had left and it waits as a permit: a run
//!   leaves no record of its own until it is completed;
//! - under which number a request was held;
//! - that a start was refused by an extension, or that other Atlases came into force without a
//!   checkpoint at the start, before the next event shows it;
//! - that an extension made the program forget which contexts were handed over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId, SpanId, TraceId};

/// The last ones of a kind that a state remembers; it counts them all.
pub const RECENT: usize = 50;

/// What held at a point of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct State {
    /// The session.
    pub session: Option<SessionId>,
    /// The last event that is in it.
    pub sequence: Option<u64>,
    /// When that was.
    pub time: Option<Timestamp>,
    /// The operation that it belongs to.
    pub operation: Option<TraceId>,
    /// Its hash: with it, the whole chain up to here.
    pub hash: Option<Digest>,
    /// Events that are in it.
    pub events: u64,
    /// Those whose details were dropped: what they did is not known any more.
    pub pruned: u64,
    /// Who acts, and what for.
    pub agent: Agent,
    /// Where the session stands.
    pub phase: Phase,
    /// Requests that are held, in the order they were.
    pub held: Vec<HeldRequest>,
    /// Capabilities that passed gates unlocked.
    pub unlocked: BTreeSet<String>,
    /// Capabilities that passed gates locked, where the events say so.
    pub locked: BTreeSet<String>,
    /// Contexts that were handed over and hold, with when.
    pub contexts: BTreeMap<String, Handed>,
    /// What the agent asked to do.
    pub actions: Actions,
    /// Gates that were passed.
    pub passed: Tally<Decision>,
    /// Gates that were not passed.
    pub blocked: Tally<Decision>,
    /// Policies that an operator overruled or approved under.
    pub overrides: Tally<Override>,
    /// Risks that somebody verified.
    pub verified: Tally<Verification>,
    /// What failed.
    pub errors: Tally<Failed>,
    /// Conversations that it took turns in: where each stood behind its last turn here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: BTreeMap<String, ThreadAt>,
    /// How it ended.
    pub ended: Option<Ended>,
    #[serde(skip)]
    pub(super) ground: Ground,
}

impl State {
    /// Leaves the figures and drops what they are made of: for whoever keeps many states.
    pub(in crate::trace) fn drop_lists(&mut self) {
        self.held.clear();
        self.contexts.clear();
        self.actions.going = VecDeque::new();
        self.actions.recent = VecDeque::new();
        self.passed.recent = VecDeque::new();
        self.blocked.recent = VecDeque::new();
        self.overrides.recent = VecDeque::new();
        self.verified.recent = VecDeque::new();
        self.errors.recent = VecDeque::new();
        self.threads.clear();
        self.ground = Ground::default();
    }
}

/// Who acts in a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Agent {
    /// What kind of agent.
    pub name: String,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the session says it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Atlases in force when it began, and those that came later.
    pub atlases: Vec<String>,
    /// When it began.
    pub started_at: Option<Timestamp>,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing has happened.
    #[default]
    Unstarted,
    /// A gate stands before its start.
    AtStart,
    /// Nobody answered at its start: it is asked again when it wants to act.
    StartLapsed,
    /// Its start was refused.
    StartRefused,
    /// It works, and nothing holds it.
    Working,
    /// It works, and something it asked for is held.
    Held,
    /// It has ended.
    Ended,
}

impl Phase {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Unstarted => "not started",
            Self::AtStart => "held at its start",
            Self::StartLapsed => "nobody answered at its start",
            Self::StartRefused => "refused at its start",
            Self::Working => "working",
            Self::Held => "working, with something held",
            Self::Ended => "ended",
        }
    }
}

/// A request that is held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldRequest {
    /// The operation.
    pub trace_id: TraceId,
    /// The span of what is held; the root of the session for its start.
    pub span_id: Option<SpanId>,
    /// What waits: an action, or what happened.
    pub what: String,
    /// What it holds up.
    pub holds: Holds,
    /// The first event of it.
    pub sequence: u64,
    /// Since when.
    pub since: Timestamp,
    /// The gates that are not passed yet.
    pub gates: Vec<HeldGate>,
    /// The first of two approvals, where it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// Who looks after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// Contexts that were given with it; taken back when it does not pass.
    #[serde(skip)]
    pub(super) contexts: Vec<String>,
    /// The attempt, unless it was denied.
    #[serde(skip)]
    pub(super) going: Option<Going>,
}

/// The first of two approvals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approved {
    /// Who gave it.
    pub by: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The event that says so.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
}

/// What a held request holds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// The start of the session.
    Start,
    /// Everything the session asks for.
    Session,
    /// One action.
    Action,
}

/// A gate that is not passed yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldGate {
    /// Its span.
    pub span_id: SpanId,
    /// The checkpoint or policy.
    pub checkpoint: String,
    /// Its type.
    pub kind: String,
    /// Why it fired.
    pub why: String,
    /// Where it was put up.
    pub sequence: u64,
    /// How often answers broke rules.
    pub wrong_answers: u64,
}

/// A context that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Handed {
    /// When.
    pub at: Timestamp,
    /// The event that says so.
    pub sequence: u64,
}

/// What an agent asked to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Actions {
    /// How often it asked.
    pub attempted: u64,
    /// How often it was told no.
    pub blocked: u64,
    /// How often a run was completed.
    pub completed: u64,
    /// How many of these failed.
    pub failed: u64,
    /// What nothing stands before and that was not completed: it runs, or may.
    pub going: VecDeque<Going>,
    /// The last that came to an end.
    pub recent: VecDeque<Done>,
}

/// An action that nothing recorded stands before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Going {
    /// The action.
    pub action: String,
    /// How risky it is.
    pub tier: String,
    /// Its span.
    pub span_id: SpanId,
    /// The event it was asked with.
    pub sequence: u64,
    /// When it was asked for, or released.
    pub since: Timestamp,
    /// Whether it was held before.
    pub way: Way,
}

/// How an action came to stand free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Nothing held it: it runs.
    Open,
    /// Its gates were passed. It runs, or it waits as a permit because its asker had left.
    Released,
}

/// An action that came to an end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Done {
    /// The action.
    pub action: String,
    /// What came of it.
    pub outcome: Outcome,
    /// The event that says so.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
    /// Why it was blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran.
    Completed,
    /// It ran, and failed.
    Failed,
    /// It may not run.
    Blocked,
}

/// How a gate was decided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// The checkpoint or policy.
    pub checkpoint: String,
    /// `passed`, or how it was not.
    pub outcome: String,
    /// Who decided, where somebody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Justification of a pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The event that says so.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
}

/// An approval under a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Override {
    /// The policy.
    pub policy: String,
    /// The action.
    pub action: String,
    /// Who approved.
    pub approver: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The event that says so.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
}

/// A risk that somebody verified.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    /// The action.
    pub action: String,
    /// How risky it is.
    pub tier: String,
    /// Who verified it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Justification of the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The event that says so.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
}

/// Something that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// The event.
    pub event_id: EventId,
    /// What kind of failure.
    pub kind: String,
    /// For people.
    pub message: String,
    /// Whether it was dealt with.
    pub recovered: bool,
    /// Its sequence.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
}

/// Where a conversation stood behind a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadAt {
    /// Where it was on its way up and down.
    pub phase: String,
    /// How intense it was.
    pub intensity: String,
    /// Whether the turn found its summary frozen.
    pub frozen: bool,
    /// What the turn was worth.
    pub decision: String,
    /// The number of the rule that said so.
    pub rule: u64,
    /// Summaries that were accepted by then.
    pub version: u64,
    /// What told its memento from others.
    pub etag: String,
    /// The event that says so.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ended {
    /// `completed`, `error`, `timeout` or `cancelled`.
    pub status: String,
    /// What it did, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// How many there were, and the last of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tally<T> {
    /// How many.
    pub count: u64,
    /// The last [`RECENT`] of them, oldest first.
    pub recent: VecDeque<T>,
}

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Self {
            count: 0,
            recent: VecDeque::new(),
        }
    }
}

impl<T> Tally<T> {
    pub(super) fn add(&mut self, one: T) {
        self.count += 1;
        remember(&mut self.recent, one);
    }
}

/// Puts one more into a list of the last few.
pub(super) fn remember<T>(recent: &mut VecDeque<T>, one: T) {
    if recent.len() >= RECENT {
        recent.pop_front();
    }
    recent.push_back(one);
}

/// What the fold needs beside what it shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ground {
    /// The root of the session's spans.
    pub(super) root: Option<SpanId>,
    /// Whether the session may act.
    pub(super) entry: Entry,
    /// When the checkpoints of its start last ran.
    pub(super) entered_at: Option<Timestamp>,
    /// What is being asked for just now.
    pub(super) asking: Asking,
    /// The span of the gate that was decided last.
    pub(super) decided: Option<SpanId>,
}

/// Whether a session may act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Entry {
    #[default]
    Open,
    Held,
    Lapsed,
    Refused,
}

/// Checkpoints and contexts of what is being asked for just now: when it is held and does not pass, the
/// agent never saw these contexts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Asking {
    pub(super) span: Option<SpanId>,
    pub(super) advice: Vec<SpanId>,
    pub(super) contexts: Vec<String>,
}
