//! State of a session at one point, as far as its events show it.
//!
//! The events do not show:
//! - capabilities that a session lacks from the start: these are in its Atlases, not in its record;
//! - what a gate locked, allowed or denied, and effects of advisory checkpoints other than injected
//!   contexts, unless the events state them;
//! - whether a request that passed its gates runs, or waits as a permit because its requester left: a
//!   run has no record of its own until it is completed;
//! - the displayed number of a held request;
//! - a start that an extension refused, or new Atlases without a start checkpoint, before the next
//!   event shows it;
//! - that an extension made the program forget the injected contexts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId, SpanId, TraceId};

/// Most recent items of each kind that a state keeps; it counts them all.
pub const RECENT: usize = 50;

/// State of a session at one point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReplayState {
    /// The session.
    pub session: Option<SessionId>,
    /// Sequence of the last applied event.
    pub sequence: Option<u64>,
    /// Time of the last applied event.
    pub time: Option<Timestamp>,
    /// Operation of the last applied event.
    pub operation: Option<TraceId>,
    /// Hash of the last applied event, which covers the whole chain up to it.
    pub hash: Option<Digest>,
    /// Number of applied events.
    pub events: u64,
    /// Applied events whose details were pruned: their effects are unknown.
    pub pruned: u64,
    /// Agent of the session and its purpose.
    pub agent: SessionAgent,
    /// Phase of the session.
    pub phase: ReplayPhase,
    /// Held requests, in order.
    pub held: Vec<HeldRequest>,
    /// Capabilities unlocked by passed gates.
    pub unlocked: BTreeSet<String>,
    /// Capabilities locked by passed gates, if the events state them.
    pub locked: BTreeSet<String>,
    /// Injected contexts in force, with the time of injection.
    pub contexts: BTreeMap<String, ContextInForce>,
    /// Actions that the agent requested.
    pub actions: ActionHistory,
    /// Gates that were passed.
    pub passed: RecentTally<GateResult>,
    /// Gates that were not passed.
    pub blocked: RecentTally<GateResult>,
    /// Policies that an operator overrode or approved under.
    pub overrides: RecentTally<OverrideEntry>,
    /// Risks that an operator verified.
    pub verified: RecentTally<RiskVerification>,
    /// Errors.
    pub errors: RecentTally<ErrorEntry>,
    /// Conversations with turns in this session, each in its state after the last turn here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: BTreeMap<String, ThreadPosition>,
    /// End of the session.
    pub ended: Option<SessionEnd>,
    #[serde(skip)]
    pub(super) fold_context: FoldContext,
}

impl ReplayState {
    /// Keeps the counts and drops the lists, for callers that keep many states.
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
        self.fold_context = FoldContext::default();
    }
}

/// Agent of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionAgent {
    /// Type of the agent.
    pub name: String,
    /// Version of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Declared purpose of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Atlases in force when the session began, and later ones.
    pub atlases: Vec<String>,
    /// Start of the session.
    pub started_at: Option<Timestamp>,
}

/// Phase of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPhase {
    /// No event yet.
    #[default]
    Unstarted,
    /// A gate holds the start.
    AtStart,
    /// No answer came at the start; the gate is asked again when the agent wants to act.
    StartLapsed,
    /// The start was denied.
    StartRefused,
    /// The agent works and no request is held.
    Working,
    /// The agent works and a request is held.
    Held,
    /// The session has ended.
    Ended,
}

impl ReplayPhase {
    /// Phase as text for display.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Unstarted => "not started",
            Self::AtStart => "held at start",
            Self::StartLapsed => "no answer at start",
            Self::StartRefused => "denied at start",
            Self::Working => "working",
            Self::Held => "working, request held",
            Self::Ended => "ended",
        }
    }
}

/// A request that is held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldRequest {
    /// The operation.
    pub trace_id: TraceId,
    /// Span of the held request; the root of the session for its start.
    pub span_id: Option<SpanId>,
    /// Subject that waits: an action or an event.
    pub what: String,
    /// Scope of the hold.
    pub holds: HoldScope,
    /// First event of the request.
    pub sequence: u64,
    /// Time when the hold began.
    pub since: Timestamp,
    /// Gates that are not passed yet.
    pub gates: Vec<HeldGate>,
    /// First of two approvals, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<HeldApproval>,
    /// Operator who claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<String>,
    /// Contexts given with it; revoked if it does not pass.
    #[serde(skip)]
    pub(super) contexts: Vec<String>,
    /// The attempt, unless it was denied.
    #[serde(skip)]
    pub(super) going: Option<OngoingAction>,
}

/// First of two approvals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldApproval {
    /// Operator who gave it.
    pub by: String,
    /// Reason given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Sequence of its event.
    pub sequence: u64,
    /// Time of the approval.
    pub at: Timestamp,
}

/// Scope of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldScope {
    /// The start of the session.
    Start,
    /// Every request of the session.
    Session,
    /// One action.
    Action,
}

/// A gate that is not passed yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldGate {
    /// Span of the gate.
    pub span_id: SpanId,
    /// The checkpoint or policy.
    pub checkpoint: String,
    /// Type of the checkpoint.
    pub kind: String,
    /// Condition that fired.
    pub why: String,
    /// Sequence of its event.
    pub sequence: u64,
    /// Number of invalid answers.
    pub wrong_answers: u64,
}

/// An injected context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ContextInForce {
    /// Time of the injection.
    pub at: Timestamp,
    /// Sequence of its event.
    pub sequence: u64,
}

/// Actions that an agent requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ActionHistory {
    /// Number of requests.
    pub attempted: u64,
    /// Number of blocked requests.
    pub blocked: u64,
    /// Number of completed runs.
    pub completed: u64,
    /// Number of failed runs.
    pub failed: u64,
    /// Actions without an open gate that are not completed: running, or permitted to run.
    pub going: VecDeque<OngoingAction>,
    /// Most recently finished actions.
    pub recent: VecDeque<FinishedAction>,
}

/// An action without an open gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OngoingAction {
    /// The action.
    pub action: String,
    /// Risk tier.
    pub tier: String,
    /// Its span.
    pub span_id: SpanId,
    /// Sequence of the attempt.
    pub sequence: u64,
    /// Time of the request or of the release.
    pub since: Timestamp,
    /// Way in which the action became free to run.
    pub way: ReleaseKind,
}

/// Way in which an action became free to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseKind {
    /// The action was never held and runs.
    Open,
    /// All gates were passed. The action runs, or waits as a permit because its requester left.
    Released,
}

/// A finished action.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FinishedAction {
    /// The action.
    pub action: String,
    /// Outcome of the action.
    pub outcome: ActionOutcome,
    /// Sequence of its event.
    pub sequence: u64,
    /// Time of the event.
    pub at: Timestamp,
    /// Reason for a block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionOutcome {
    /// The action succeeded.
    Completed,
    /// The action ran and failed.
    Failed,
    /// The action was blocked.
    Blocked,
}

/// Decision about a gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    /// The checkpoint or policy.
    pub checkpoint: String,
    /// `passed`, or the kind of refusal.
    pub outcome: String,
    /// Deciding operator, if an operator decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Justification of a pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The event that says so.
    pub sequence: u64,
    /// Time of the decision.
    pub at: Timestamp,
}

/// An approval under a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverrideEntry {
    /// The policy.
    pub policy: String,
    /// The action.
    pub action: String,
    /// Operator who approved.
    pub approver: String,
    /// Reason given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// Sequence of its event.
    pub sequence: u64,
    /// Time of the approval.
    pub at: Timestamp,
}

/// A risk that an operator verified.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RiskVerification {
    /// The action.
    pub action: String,
    /// Risk tier.
    pub tier: String,
    /// Operator who verified it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Justification of the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
    /// The event that says so.
    pub sequence: u64,
    /// Time of the verification.
    pub at: Timestamp,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorEntry {
    /// Identifier of its event.
    pub event_id: EventId,
    /// Type of the error.
    pub kind: String,
    /// Human-readable message.
    pub message: String,
    /// True if a recovery was recorded.
    pub recovered: bool,
    /// Sequence of its event.
    pub sequence: u64,
    /// Time of the error.
    pub at: Timestamp,
}

/// State of a conversation after a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadPosition {
    /// Affect phase.
    pub phase: String,
    /// Affect intensity.
    pub intensity: String,
    /// True if the summary was frozen at the turn.
    pub frozen: bool,
    /// Breakpoint decision about the turn.
    pub decision: String,
    /// Number of the deciding rule.
    pub rule: u64,
    /// Number of summaries accepted so far.
    pub version: u64,
    /// Identifier of the memento.
    pub etag: String,
    /// Sequence of its event.
    pub sequence: u64,
    /// Time of the turn.
    pub at: Timestamp,
}

/// End of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionEnd {
    /// `completed`, `error`, `timeout` or `cancelled`.
    pub status: String,
    /// The agent's own summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Time of the end.
    pub at: Timestamp,
}

/// Count of items and the most recent of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecentTally<T> {
    /// Number of items.
    pub count: u64,
    /// The last [`RECENT`] items, oldest first.
    pub recent: VecDeque<T>,
}

impl<T> Default for RecentTally<T> {
    fn default() -> Self {
        Self {
            count: 0,
            recent: VecDeque::new(),
        }
    }
}

impl<T> RecentTally<T> {
    pub(super) fn add(&mut self, one: T) {
        self.count += 1;
        push_recent(&mut self.recent, one);
    }
}

/// Appends to a list that keeps only the most recent items.
pub(super) fn push_recent<T>(recent: &mut VecDeque<T>, one: T) {
    if recent.len() >= RECENT {
        recent.pop_front();
    }
    recent.push_back(one);
}

/// Internal data of the fold that is not shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FoldContext {
    /// Root span of the session.
    pub(super) root: Option<SpanId>,
    /// Permission of the session to act.
    pub(super) entry: StartGateState,
    /// Time when the start checkpoints last ran.
    pub(super) entered_at: Option<Timestamp>,
    /// The request being processed.
    pub(super) asking: PendingRequest,
    /// Span of the gate that was decided last.
    pub(super) decided: Option<SpanId>,
}

/// Permission of a session to act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StartGateState {
    #[default]
    Open,
    Held,
    Lapsed,
    Refused,
}

/// Checkpoints and contexts of the request being processed. If it is held and does not pass, the agent
/// never received these contexts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PendingRequest {
    pub(super) span: Option<SpanId>,
    pub(super) advice: Vec<SpanId>,
    pub(super) contexts: Vec<String>,
}
