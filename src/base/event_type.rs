//! The names of the event types.
//!
//! The `trace` module defines the types. Code that only needs a name when it is written, such as a steward's rules
//! about the record, uses this list.

/// The event types that this program writes. Extensions can register others.
pub const BUILT_IN_TYPES: [&str; 47] = [
    "session_started",
    "session_ended",
    "context_requested",
    "context_injected",
    "context_feedback",
    "action_attempted",
    "action_completed",
    "action_blocked",
    "policy_checked",
    "policy_override",
    "checkpoint_triggered",
    "checkpoint_completed",
    "checkpoint_skipped",
    "checkpoint_response",
    "checkpoint_passed",
    "checkpoint_approved",
    "checkpoint_blocked",
    "risk_detected",
    "risk_verified",
    "error_occurred",
    "error_recovered",
    "input_received",
    "output_produced",
    "plugin_loaded",
    "plugin_event",
    "atlas_loaded",
    "retention_applied",
    "store_recovered",
    "breakpoint_decided",
    "memento_edited",
    "drift_flagged",
    "thread_handed_over",
    "thread_dropped",
    "trace_imported",
    "key_rotated",
    "log_sealed",
    "operator_changed",
    "log_started",
    "clock_moved",
    "answer_rejected",
    "alarm_raised",
    "hold_placed",
    "hold_released",
    "request_claimed",
    "operator_acknowledged",
    "wrapper_constructed",
    "wrapper_verified",
];

/// The event types with a risk tier.
pub const TYPES_WITH_TIER: [&str; 3] = ["action_attempted", "risk_detected", "risk_verified"];
