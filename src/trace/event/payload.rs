//! The event types, each with its payload.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::StoreRecovered;
use super::enums::{
    ActionTaken, FinalStatus, InjectTrigger, InputSource, JustificationSource, OutputType,
    PolicyOutcome, Recommendation, RequestType, RiskTierInfo, UsageOutcome, Validity,
};
use super::governance::{
    AlarmRaised, AtlasLoaded, HoldPlaced, HoldReleased, RetentionApplied, TraceImported,
};
use super::macros::payloads;
use super::operators::{
    AnswerRejected, ClockMoved, KeyRotated, LogSealed, LogStarted, OperatorAcknowledged,
    OperatorChanged, RequestClaimed,
};
use super::owed::Owed;
use super::parse::{PayloadError, canonical_type};
use super::parts::{AtlasRef, Environment, ErrorDetail, KeywordPosition, Redaction};
use super::threads::{
    BreakpointDecided, DriftFlagged, MementoEdited, ThreadDropped, ThreadHandedOver,
};
use super::wrapper::{WrapperConstructed, WrapperVerified};
use crate::base::id::{EventId, SessionId};

payloads! {
    elsewhere {
        /// An Atlas came into force.
        AtlasLoaded = "atlas_loaded",
        /// The content of old events of a session was dropped; their envelopes and hashes stay.
        RetentionApplied = "retention_applied",
        /// The store was repaired when it was opened.
        StoreRecovered = "store_recovered",
        /// A turn of a conversation was classified.
        BreakpointDecided = "breakpoint_decided",
        /// An operator rewrote the summary of a conversation.
        MementoEdited = "memento_edited",
        /// An operator flagged drift in a conversation.
        DriftFlagged = "drift_flagged",
        /// A thread was handed over to another session.
        ThreadHandedOver = "thread_handed_over",
        /// A stored thread was dropped to make room for a new one.
        ThreadDropped = "thread_dropped",
        /// A session recorded elsewhere was imported.
        TraceImported = "trace_imported",
        /// A new key signs the log's heads from now on; the old key still signs this entry.
        KeyRotated = "key_rotated",
        /// Ends of all chains at the time of this entry.
        LogSealed = "log_sealed",
        /// The operator at the console changed.
        OperatorChanged = "operator_changed",
        /// A log began. This is the first entry of its log.
        LogStarted = "log_started",
        /// The wall clock was set while the console ran.
        ClockMoved = "clock_moved",
        /// A hook or proxy reported an answer at the socket that did not come from the console.
        AnswerRejected = "answer_rejected",
        /// An alarm was shown at the console.
        AlarmRaised = "alarm_raised",
        /// A session was put under a legal hold.
        HoldPlaced = "hold_placed",
        /// The legal hold of a session ended.
        HoldReleased = "hold_released",
        /// An operator claimed or released a held request. A claim decides nothing.
        RequestClaimed = "request_claimed",
        /// An operator acknowledged a problem. The text is what the console showed to the operator.
        OperatorAcknowledged = "operator_acknowledged",
        /// An agent's wrapper was built.
        WrapperConstructed = "wrapper_constructed",
        /// An agent's wrapper was checked.
        WrapperVerified = "wrapper_verified",
    }
    /// A session began.
    SessionStarted = "session_started" under judged_under, redacted {
        /// Name that the agent gives.
        agent_type: String,
        /// Version that the agent gives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_version: Option<String>,
        /// Version of this program.
        wrapper_version: String,
        /// Atlases in force.
        atlas_ids: Vec<String>,
        /// Contexts injected at the start.
        initial_contexts: Vec<String>,
        /// Declared purpose of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<String>,
        /// Environment that the session runs in.
        environment: Environment,
        /// Session whose conversation this session continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continues: Option<SessionId>,
    }
    /// A session ended.
    SessionEnded = "session_ended", redacted {
        /// Duration of the session.
        duration_ms: u64,
        /// Events in its chain, this event included.
        event_count: u64,
        /// Actions that ran.
        actions_taken: u64,
        /// Contexts injected.
        contexts_injected: u64,
        /// `completed`, `error`, `timeout` or `cancelled`.
        final_status: FinalStatus,
        /// The agent's own summary of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Obligations that the conversation still has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owed: Option<Owed>,
    }
    /// An agent, a checkpoint or a keyword asked for context.
    ContextRequested = "context_requested", redacted {
        /// `explicit`, `checkpoint` or `keyword`.
        request_type: RequestType,
        /// Search text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<String>,
        /// Hints given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hints: Option<Vec<String>>,
        /// Checkpoint that requested the context.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint_type: Option<String>,
        /// Keywords that matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keywords_matched: Option<Vec<String>>,
        /// Matched keywords, each with the position of its first match.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matches: Vec<KeywordPosition>,
    }
    /// Context was injected into the agent's conversation.
    ContextInjected = "context_injected" {
        /// Injected contexts.
        context_ids: Vec<String>,
        /// Atlases that they come from.
        atlas_ids: Vec<String>,
        /// Size of all contexts together.
        total_size_bytes: u64,
        /// `always`, `on_match`, `on_demand` or `risk_based`.
        trigger: InjectTrigger,
        /// Checkpoint that injected the contexts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checkpoint_type: Option<String>,
        /// True if the contexts came from a cache.
        cache_hit: bool,
    }
    /// An agent reported that a context was or was not helpful.
    ContextFeedback = "context_feedback", redacted {
        /// The context.
        context_id: String,
        /// True if the context helped.
        helpful: bool,
        /// Reason given by the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// `applied`, `ignored` or `partial`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage_outcome: Option<UsageOutcome>,
    }
    /// An agent requested to run an action.
    ActionAttempted = "action_attempted" under judged_under, redacted, numbers_as_text {
        /// The action.
        action_type: String,
        /// Its parameters, after redaction.
        action_params: Value,
        /// Risk tier of the action.
        risk_tier: RiskTierInfo,
        /// True if policies were evaluated.
        policy_checked: bool,
        /// Contexts injected with the reply.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_injected: Option<Vec<String>>,
        /// Held request whose approval permits this run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<String>,
        /// The operator who gave that approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approved_by: Option<String>,
    }
    /// An agent reported the result of a run.
    ActionCompleted = "action_completed", redacted {
        /// The action.
        action_type: String,
        /// True if the action succeeded.
        success: bool,
        /// Duration of the run.
        duration_ms: u64,
        /// Summary of the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_summary: Option<String>,
        /// Error, if the action failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorDetail>,
    }
    /// An action was blocked.
    ActionBlocked = "action_blocked" under judged_under, redacted, numbers_as_text {
        /// The action.
        action_type: String,
        /// Its parameters, after redaction.
        action_params: Value,
        /// The policy or checkpoint that blocks it.
        policy_id: String,
        /// Reason for the block.
        reason: String,
        /// True if an operator may override the block.
        override_available: bool,
    }
    /// Policies were evaluated.
    PolicyChecked = "policy_checked" under judged_under {
        /// The policy, checkpoint or default that decided.
        policy_id: String,
        /// The action.
        action_type: String,
        /// `allow`, `deny` or `require_approval`.
        decision: PolicyOutcome,
        /// Number of policies that were evaluated.
        conditions_evaluated: u64,
        /// The pattern that matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        matching_rule: Option<String>,
        /// Contexts injected into the session before this check.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_used: Option<Vec<String>>,
        /// Held request whose approval satisfies the policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<String>,
        /// The operator who gave that approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approved_by: Option<String>,
    }
    /// An operator approved an action that a policy held or denied.
    PolicyOverride = "policy_override" under judged_under {
        /// The policy.
        policy_id: String,
        /// The action.
        action_type: String,
        /// Operator who approved.
        approver: String,
        /// Method of the approval, such as `console+challenge`.
        approval_method: String,
        /// Reason that was typed, or the answers in one line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// Source of the justification: `operator`, `agent` or `answers`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification_source: Option<JustificationSource>,
        /// Both operators in the order of their approvals, if two had to approve.
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
        /// Mode of the checkpoint.
        mode: String,
        /// Condition that fired.
        trigger_condition: String,
        /// Data that the condition matched.
        trigger_data: Value,
        /// Its priority.
        priority: i64,
        /// Hash of the input that the condition matched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_hash: Option<String>,
    }
    /// A checkpoint completed.
    CheckpointCompleted = "checkpoint_completed" under judged_under, redacted {
        /// The checkpoint.
        checkpoint_id: String,
        /// Its type.
        checkpoint_type: String,
        /// Duration of the checkpoint.
        duration_ms: u64,
        /// Contexts injected.
        contexts_injected: Vec<String>,
        /// `continue`, `block` or `modify`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action_taken: Option<ActionTaken>,
        /// Reason for the block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        block_reason: Option<String>,
    }
    /// A checkpoint, or a part of it, was skipped because a budget was exhausted.
    CheckpointSkipped = "checkpoint_skipped" under judged_under {
        /// The checkpoint.
        checkpoint_id: String,
        /// Its type.
        checkpoint_type: String,
        /// Exhausted budget.
        reason: String,
        /// Contexts that were not injected.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped_contexts: Vec<String>,
    }
    /// An operator or an agent answered a checkpoint.
    CheckpointResponse = "checkpoint_response" under judged_under, redacted, numbers_as_text {
        /// The checkpoint.
        checkpoint_id: String,
        /// Answers by question; a salted hash for `sensitive` ones.
        answers: Map<String, Value>,
        /// `valid` or `invalid`.
        validation_result: Validity,
        /// Validation errors.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<String>,
        /// Agent or operator who answered.
        answered_by: String,
    }
    /// A checkpoint was passed.
    CheckpointPassed = "checkpoint_passed" under judged_under {
        /// The checkpoint.
        checkpoint_id: String,
        /// Capabilities it unlocked.
        unlocked_capabilities: Vec<String>,
        /// Contexts injected with the release; none if the agent left.
        injected_contexts: Vec<String>,
        /// Operator or agent who passed it.
        passed_by: String,
        /// Method of the approval, such as `console+challenge`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_method: Option<String>,
        /// Reason that was typed, or the answers in one line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// Source of the justification: `operator`, `agent` or `answers`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification_source: Option<JustificationSource>,
        /// Both operators in the order of their approvals, if two had to approve.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        /// Digest of the request that was approved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_hash: Option<String>,
    }
    /// The first of two operators approved a request. The request is still held.
    CheckpointApproved = "checkpoint_approved" under judged_under {
        /// The checkpoint.
        checkpoint_id: String,
        /// Displayed identifier of the held request, such as `c-12`.
        gate_id: String,
        /// Operator who approved.
        approved_by: String,
        /// Method of the approval, such as `console+challenge`.
        approval_method: String,
        /// Reason that was typed, or the answers in one line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// Source of the justification: `operator`, `agent` or `answers`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification_source: Option<JustificationSource>,
        /// Approvals that the request needs; this is the first.
        needed: u64,
        /// Digest of the request that the approval is bound to.
        request_hash: String,
    }
    /// A checkpoint was not passed.
    CheckpointBlocked = "checkpoint_blocked" under judged_under, redacted {
        /// The checkpoint.
        checkpoint_id: String,
        /// Reason for the block.
        reason: String,
        /// The action that does not run.
        blocked_action: String,
        /// `denied`, `expired`, `withdrawn` or `voided`.
        outcome: String,
        /// Operator who denied it, if an operator did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decided_by: Option<String>,
    }
    /// An agent requested an action of risk high or critical.
    RiskDetected = "risk_detected" under judged_under {
        /// `high` or `critical`.
        risk_tier: RiskTierInfo,
        /// Rule that classified it.
        trigger: String,
        /// The action.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action_type: Option<String>,
        /// `proceed`, `verify` or `block`.
        recommended_action: Recommendation,
    }
    /// An operator verified a risky action at a `risk_threshold` gate.
    RiskVerified = "risk_verified" under judged_under {
        /// Risk tier of the action.
        risk_tier: RiskTierInfo,
        /// Method of the verification.
        verification_method: String,
        /// Operator who verified it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verified_by: Option<String>,
        /// The action.
        action_type: String,
        /// Reason that was typed, or the answers in one line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification: Option<String>,
        /// Source of the justification: `operator`, `agent` or `answers`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        justification_source: Option<JustificationSource>,
        /// Both operators in the order of their approvals, if two had to approve.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<String>,
        /// Digest of the request that was approved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_hash: Option<String>,
    }
    /// An agent reported an error, or the engine refused a misuse of the session.
    ErrorOccurred = "error_occurred", redacted {
        /// Type of the error.
        error_type: String,
        /// Machine-readable code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
        /// Human-readable message.
        message: String,
        /// True if work can continue.
        recoverable: bool,
        /// Contexts injected because of the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_provided: Option<Vec<String>>,
        /// Stack trace of the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stack_trace: Option<String>,
    }
    /// An agent recovered from an error.
    ErrorRecovered = "error_recovered", redacted {
        /// Event of the original error.
        original_error_id: EventId,
        /// Method of the recovery.
        recovery_method: String,
        /// True if the recovery succeeded.
        success: bool,
    }
    /// An agent received input.
    InputReceived = "input_received" {
        /// Hash of the input; the content is never recorded.
        input_hash: String,
        /// Size of the input.
        input_size_bytes: u64,
        /// `user`, `system` or `other_agent`.
        source: InputSource,
        /// Checkpoints that fired on it.
        checkpoints_triggered: Vec<String>,
    }
    /// An agent produced output.
    OutputProduced = "output_produced" {
        /// Hash of the output; the content is never recorded.
        output_hash: String,
        /// Size of the output.
        output_size_bytes: u64,
        /// `text`, `action` or `structured`.
        output_type: OutputType,
        /// True if the output requests an action.
        contains_action: bool,
    }
    /// A plugin was loaded.
    PluginLoaded = "plugin_loaded" {
        /// Name of the plugin.
        plugin_name: String,
        /// Version of the plugin.
        plugin_version: String,
        /// Capabilities of the plugin.
        capabilities: Vec<String>,
    }
    /// A plugin recorded a custom event.
    PluginEvent = "plugin_event", redacted, numbers_as_text {
        /// Name of the plugin.
        plugin_name: String,
        /// Event type that the plugin chose.
        custom_type: String,
        /// The details.
        data: Map<String, Value>,
    }
}
