//! The event types, each with its payload.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::StoreRecovered;
use super::declare::payloads;
use super::governance::{
    AlarmRaised, AtlasLoaded, HoldPlaced, HoldReleased, RetentionApplied, TraceImported,
};
use super::operators::{
    AnswerRejected, ClockMoved, KeyRotated, LogSealed, LogStarted, OperatorAcknowledged,
    OperatorChanged, RequestClaimed,
};
use super::owed::Owed;
use super::parts::{
    AtlasRef, Environment, ErrorDetail, KeywordPosition, Redaction, WrapperCapabilities,
};
use super::read::{PayloadError, canonical_type};
use super::threads::{
    BreakpointDecided, DriftFlagged, MementoEdited, ThreadDropped, ThreadHandedOver,
};
use super::words::{
    ActionTaken, FinalStatus, InjectTrigger, InputSource, OutputType, PolicyVerdict,
    Recommendation, RequestType, Tier, UsageOutcome, Validity,
};
use crate::base::id::{EventId, SessionId};

payloads! {
    elsewhere {
        /// An Atlas came into force.
        AtlasLoaded = "atlas_loaded",
        /// The content of old events of a session was dropped; their envelopes and hashes stay.
        RetentionApplied = "retention_applied",
        /// Something was mended when the store was opened.
        StoreRecovered = "store_recovered",
        /// A turn of a conversation was classified.
        BreakpointDecided = "breakpoint_decided",
        /// An operator wrote the summary of a conversation anew.
        MementoEdited = "memento_edited",
        /// An operator says that a conversation drifts.
        DriftFlagged = "drift_flagged",
        /// A thread was handed over to another session.
        ThreadHandedOver = "thread_handed_over",
        /// A stored thread was dropped to make room for a new one.
        ThreadDropped = "thread_dropped",
        /// A session that was recorded elsewhere was taken in.
        TraceImported = "trace_imported",
        /// Another key signs the log's heads from now on; the old one signs this entry still.
        KeyRotated = "key_rotated",
        /// What all chains were when this was recorded.
        LogSealed = "log_sealed",
        /// Somebody else sits at the console.
        OperatorChanged = "operator_changed",
        /// A log began. It is the first entry of its log.
        LogStarted = "log_started",
        /// The wall clock was set while the console ran.
        ClockMoved = "clock_moved",
        /// An answer at the socket was not the console's own.
        AnswerRejected = "answer_rejected",
        /// An alarm was shown at the console.
        AlarmRaised = "alarm_raised",
        /// A session was put under a legal hold.
        HoldPlaced = "hold_placed",
        /// The legal hold of a session ended.
        HoldReleased = "hold_released",
        /// An operator said who looks after a held request. Nothing is decided by it.
        RequestClaimed = "request_claimed",
        /// An operator says that they know of something. What it was is as it was shown to them.
        OperatorAcknowledged = "operator_acknowledged",
    }
    /// A session began.
    SessionStarted = "session_started" under judged_under, redacted {
        /// What kind of agent.
        agent_type: String,
        /// Its version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_version: Option<String>,
        /// Version of this program.
        wrapper_version: String,
        /// Atlases in force.
        atlas_ids: Vec<String>,
        /// Contexts handed over at once.
        initial_contexts: Vec<String>,
        /// What the session says it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<String>,
        /// Where it runs.
        environment: Environment,
        /// Session whose conversation it goes on with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continues: Option<SessionId>,
    }
    /// A session ended.
    SessionEnded = "session_ended", redacted {
        /// How long it lasted.
        duration_ms: u64,
        /// Events in its chain, this one included.
        event_count: u64,
        /// Actions that ran.
        actions_taken: u64,
        /// Contexts handed over.
        contexts_injected: u64,
        /// `completed`, `error`, `timeout` or `cancelled`.
        final_status: FinalStatus,
        /// What it did, in its own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Obligations that the conversation still has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owed: Option<Owed>,
    }
    /// An agent's wrapper was built.
    WrapperConstructed = "wrapper_constructed" {
        /// Its version.
        wrapper_version: String,
        /// Its parts.
        components: Vec<String>,
        /// Plugins in it.
        plugins: Vec<String>,
        /// `mcp`, `rest` or `direct`.
        transport: String,
        /// Where it caches.
        cache_backend: String,
        /// Proof of construction.
        construction_hash: String,
        /// What it can intercept.
        capabilities: WrapperCapabilities,
    }
    /// An agent's wrapper was checked.
    WrapperVerified = "wrapper_verified" {
        /// Whether it is sound.
        verification_passed: bool,
        /// What was tried.
        tests_run: Vec<String>,
        /// What failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failures: Option<Vec<String>>,
    }
    /// Somebody asked for context.
    ContextRequested = "context_requested", redacted {
        /// `explicit`, `checkpoint` or `keyword`.
        request_type: RequestType,
        /// What was looked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<String>,
        /// Hints given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hints: Option<Vec<String>>,
        /// The checkpoint that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint_type: Option<String>,
        /// Keywords that matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keywords_matched: Option<Vec<String>>,
        /// The same keywords, each with the position of its first match.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matches: Vec<KeywordPosition>,
    }
    /// Context was handed to the agent.
    ContextInjected = "context_injected" {
        /// Which.
        context_ids: Vec<String>,
        /// From which Atlases.
        atlas_ids: Vec<String>,
        /// How much.
        total_size_bytes: u64,
        /// `always`, `on_match`, `on_demand` or `risk_based`.
        trigger: InjectTrigger,
        /// The checkpoint that handed it over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint_type: Option<String>,
        /// Whether it came from a cache.
        cache_hit: bool,
    }
    /// An agent said whether a context helped.
    ContextFeedback = "context_feedback", redacted {
        /// Which.
        context_id: String,
        /// Whether it did.
        helpful: bool,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// `applied`, `ignored` or `partial`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage_outcome: Option<UsageOutcome>,
    }
    /// An agent wants to run an action.
    ActionAttempted = "action_attempted" under judged_under, redacted, numbers_as_text {
        /// The action.
        action_type: String,
        /// Its parameters.
        action_params: Value,
        /// How risky it is.
        risk_tier: Tier,
        /// Whether policies were consulted.
        policy_checked: bool,
        /// Contexts handed over with the answer to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_injected: Option<Vec<String>>,
        /// The held request whose approval it runs under.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<String>,
        /// The operator who gave that approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approved_by: Option<String>,
    }
    /// An action ran.
    ActionCompleted = "action_completed", redacted {
        /// The action.
        action_type: String,
        /// Whether it worked.
        success: bool,
        /// How long it took.
        duration_ms: u64,
        /// What came of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_summary: Option<String>,
        /// How it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorDetail>,
    }
    /// An action may not run.
    ActionBlocked = "action_blocked" under judged_under, redacted, numbers_as_text {
        /// The action.
        action_type: String,
        /// Its parameters.
        action_params: Value,
        /// The policy or checkpoint that blocks it.
        policy_id: String,
        /// Why.
        reason: String,
        /// Whether an operator may overrule.
        override_available: bool,
    }
    /// Policies were consulted.
    PolicyChecked = "policy_checked" under judged_under {
        /// The policy that decided.
        policy_id: String,
        /// The action.
        action_type: String,
        /// `allow`, `deny` or `require_approval`.
        decision: PolicyVerdict,
        /// How many were looked at.
        conditions_evaluated: u64,
        /// The pattern that matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matching_rule: Option<String>,
        /// Contexts that the agent had been handed by then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_used: Option<Vec<String>>,
        /// The held request whose approval counts for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<String>,
        /// The operator who gave that approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approved_by: Option<String>,
    }
    /// An operator approved what a policy held.
    PolicyOverride = "policy_override" under judged_under {
        /// The policy.
        policy_id: String,
        /// The action.
        action_type: String,
        /// Who approved.
        approver: String,
        /// How.
        approval_method: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// Both who approved, in the order they did, where two had to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        /// Digest of the request that was approved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_hash: Option<String>,
    }
    /// A checkpoint fired.
    CheckpointTriggered = "checkpoint_triggered" under judged_under, redacted, numbers_as_text {
        /// The checkpoint.
        checkpoint_id: String,
        /// Its type.
        checkpoint_type: String,
        /// Whether it stops the agent.
        mode: String,
        /// Why it fired.
        trigger_condition: String,
        /// What it fired on.
        trigger_data: Value,
        /// Its priority.
        priority: i64,
        /// Hash of the input it fired on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_hash: Option<String>,
    }
    /// A checkpoint is over.
    CheckpointCompleted = "checkpoint_completed" under judged_under, redacted {
        /// The checkpoint.
        checkpoint_id: String,
        /// Its type.
        checkpoint_type: String,
        /// How long it took.
        duration_ms: u64,
        /// Contexts handed over.
        contexts_injected: Vec<String>,
        /// `continue`, `block` or `modify`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action_taken: Option<ActionTaken>,
        /// Why it blocked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        block_reason: Option<String>,
    }
    /// A checkpoint, or a part of it, was left out because too much was going on.
    CheckpointSkipped = "checkpoint_skipped" under judged_under {
        /// The checkpoint.
        checkpoint_id: String,
        /// Its type.
        checkpoint_type: String,
        /// Which budget was used up.
        reason: String,
        /// Contexts that were not handed over.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped_contexts: Vec<String>,
    }
    /// A checkpoint was answered.
    CheckpointResponse = "checkpoint_response" under judged_under, redacted, numbers_as_text {
        /// The checkpoint.
        checkpoint_id: String,
        /// Answers by question.
        answers: Map<String, Value>,
        /// `valid` or `invalid`.
        validation_result: Validity,
        /// What was wrong.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<String>,
        /// Who answered.
        answered_by: String,
    }
    /// A checkpoint let the agent pass.
    CheckpointPassed = "checkpoint_passed" under judged_under {
        /// The checkpoint.
        checkpoint_id: String,
        /// Capabilities it unlocked.
        unlocked_capabilities: Vec<String>,
        /// Contexts it handed over.
        injected_contexts: Vec<String>,
        /// Who passed it.
        passed_by: String,
        /// The way in which it was approved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_method: Option<String>,
        /// The reason given, in an answer or where none was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// Both who passed it, in the order they did, where two had to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        /// Digest of the request that was approved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_hash: Option<String>,
    }
    /// The first of two operators let it pass. It is still held.
    CheckpointApproved = "checkpoint_approved" under judged_under {
        /// The checkpoint.
        checkpoint_id: String,
        /// How people name the held request.
        gate_id: String,
        /// Who approved.
        approved_by: String,
        /// How.
        approval_method: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// Approvals that the request needs; this is the first.
        needed: u64,
        /// What the approval is bound to.
        request_hash: String,
    }
    /// A checkpoint did not let the agent pass.
    CheckpointBlocked = "checkpoint_blocked" under judged_under, redacted {
        /// The checkpoint.
        checkpoint_id: String,
        /// Why.
        reason: String,
        /// The action that does not run.
        blocked_action: String,
        /// `denied`, `expired`, `withdrawn` or `voided`.
        outcome: String,
        /// Who refused, where somebody did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided_by: Option<String>,
    }
    /// An action is risky.
    RiskDetected = "risk_detected" under judged_under {
        /// `high` or `critical`.
        risk_tier: Tier,
        /// What says so.
        trigger: String,
        /// The action.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action_type: Option<String>,
        /// `proceed`, `verify` or `block`.
        recommended_action: Recommendation,
    }
    /// A risky action was verified.
    RiskVerified = "risk_verified" under judged_under {
        /// How risky it is.
        risk_tier: Tier,
        /// How it was verified.
        verification_method: String,
        /// Who did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verified_by: Option<String>,
        /// The action.
        action_type: String,
        /// The reason given, in an answer or where none was asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// Both who did, in the order they did, where two had to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        /// Digest of the request that was approved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_hash: Option<String>,
    }
    /// Something failed.
    ErrorOccurred = "error_occurred", redacted {
        /// What kind of failure.
        error_type: String,
        /// For programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        /// For people.
        message: String,
        /// Whether work can go on.
        recoverable: bool,
        /// Contexts handed over for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_provided: Option<Vec<String>>,
        /// Where it happened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stack_trace: Option<String>,
    }
    /// A failure was dealt with.
    ErrorRecovered = "error_recovered", redacted {
        /// The failure's event.
        original_error_id: EventId,
        /// How.
        recovery_method: String,
        /// Whether it worked.
        success: bool,
    }
    /// An agent was given input.
    InputReceived = "input_received" {
        /// Hash of it; never the content.
        input_hash: String,
        /// How much.
        input_size_bytes: u64,
        /// `user`, `system` or `other_agent`.
        source: InputSource,
        /// Checkpoints that fired on it.
        checkpoints_triggered: Vec<String>,
    }
    /// An agent produced output.
    OutputProduced = "output_produced" {
        /// Hash of it; never the content.
        output_hash: String,
        /// How much.
        output_size_bytes: u64,
        /// `text`, `action` or `structured`.
        output_type: OutputType,
        /// Whether it asks for an action.
        contains_action: bool,
    }
    /// A plugin was loaded.
    PluginLoaded = "plugin_loaded" {
        /// Its name.
        plugin_name: String,
        /// Its version.
        plugin_version: String,
        /// What it can do.
        capabilities: Vec<String>,
    }
    /// A plugin recorded something of its own.
    PluginEvent = "plugin_event", redacted, numbers_as_text {
        /// Its name.
        plugin_name: String,
        /// Its name for what happened.
        custom_type: String,
        /// The details.
        data: Map<String, Value>,
    }
}
