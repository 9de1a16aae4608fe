//! Reference of the words in the format, for stewards.

use serde::Serialize;

use super::document::RiskTier;

/// A checkpoint type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CheckpointType {
    /// Name in records.
    pub checkpoint_type: &'static str,
    /// `type` of the trigger.
    pub trigger: &'static str,
    /// Event that fires the checkpoint.
    pub fires: &'static str,
    /// Purpose of the checkpoint type.
    pub purpose: &'static str,
    /// Default priority; the highest runs first.
    pub priority: i64,
}

const fn checkpoint_type(
    (checkpoint_type, trigger): (&'static str, &'static str),
    priority: i64,
    fires: &'static str,
    purpose: &'static str,
) -> CheckpointType {
    CheckpointType {
        checkpoint_type,
        trigger,
        fires,
        purpose,
        priority,
    }
}

/// All checkpoint types, in the order in which they run when they fire together.
#[rustfmt::skip]
pub const CHECKPOINT_TYPES: [CheckpointType; 13] = [
    checkpoint_type(("session_start", "session_start"), 1000, "a session begins", "initial contexts and terms"),
    checkpoint_type(("interactive", "interactive"), 950, "an agent requests it by name", "questions and guidance on request"),
    checkpoint_type(("capability_gate", "capability_access"), 920, "an action needs a locked capability", "questions before an unlock"),
    checkpoint_type(("risk_threshold", "risk_threshold"), 900, "the risk tier reaches the minimum", "check by an operator"),
    checkpoint_type(("action_pre", "action_pre"), 800, "an action is about to run", "confirmation, contexts"),
    checkpoint_type(("keyword_match", "keyword"), 600, "input contains keywords", "contexts for the input"),
    checkpoint_type(("time_interval", "time_interval"), 500, "the set number of seconds has passed", "repeated contexts"),
    checkpoint_type(("count_interval", "count_interval"), 400, "the set number of actions has run", "regular check"),
    checkpoint_type(("explicit_request", "explicit_request"), 300, "an agent requests context", "contexts on demand"),
    checkpoint_type(("custom", "custom"), 200, "a condition or an extension decides", "any other check"),
    checkpoint_type(("action_post", "action_post"), 100, "an action has run", "check of the result"),
    checkpoint_type(("error_occurred", "error_occurred"), 50, "an agent reports an error", "contexts and guidance"),
    checkpoint_type(("session_end", "session_end"), 0, "a session ends", "end of the record"),
];

/// A risk tier with its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RiskTierInfo {
    /// The tier.
    pub tier: RiskTier,
    /// Definition of the tier.
    pub meaning: &'static str,
    /// Examples of actions in the tier.
    pub examples: &'static [&'static str],
}

/// All risk tiers, the lowest first.
pub const TIERS: [RiskTierInfo; 4] = [
    RiskTierInfo {
        tier: RiskTier::Low,
        meaning: "only reads, or can be undone at once",
        examples: &["read_file", "search_tickets"],
    },
    RiskTierInfo {
        tier: RiskTier::Medium,
        meaning: "writes, and can be reverted",
        examples: &["write_file", "create_ticket"],
    },
    RiskTierInfo {
        tier: RiskTier::High,
        meaning: "deletes data or affects production",
        examples: &["delete_ticket", "update_production_config"],
    },
    RiskTierInfo {
        tier: RiskTier::Critical,
        meaning: "cannot be undone, and can stop a system",
        examples: &["drop_database", "deploy_service"],
    },
];
