//! The names of what can be recorded. The record has the types; who only has to know a name when it is
//! written, such as a steward's rules about the record, finds it here.

/// The event types that this program writes itself. Others can be registered.
pub const BUILT_IN: [&str; 40] = [
    "session_started",
    "session_ended",
    "wrapper_constructed",
    "wrapper_verified",
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
    "request_claimed",
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
    "log_started",
    "log_sealed",
    "operator_acknowledged",
    "store_recovered",
    "breakpoint_decided",
    "memento_edited",
    "drift_flagged",
    "trace_imported",
    "key_rotated",
    "operator_changed",
];

/// The event types that say how risky an action is.
pub const WITH_TIER: [&str; 3] = ["action_attempted", "risk_detected", "risk_verified"];
