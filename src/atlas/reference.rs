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
    checkpoint_type(("session_start", "session_start"), 1000, "a session begins", "first contexts, terms"),
    checkpoint_type(("interactive", "interactive"), 950, "an agent asks for it by its name", "questions and guidance on request"),
    checkpoint_type(("capability_gate", "capability_access"), 920, "an action of a locked capability is asked for", "a capability has to be earned"),
    checkpoint_type(("risk_threshold", "risk_threshold"), 900, "an action is risky enough", "a person verifies it"),
    checkpoint_type(("action_pre", "action_pre"), 800, "an action is about to run", "confirmation, contexts for it"),
    checkpoint_type(("keyword_match", "keyword"), 600, "input contains keywords", "contexts that it calls for"),
    checkpoint_type(("time_interval", "time_interval"), 500, "so many seconds have passed", "contexts are refreshed"),
    checkpoint_type(("count_interval", "count_interval"), 400, "so many actions have run", "a check now and then"),
    checkpoint_type(("explicit_request", "explicit_request"), 300, "an agent asks for context", "contexts on demand"),
    checkpoint_type(("custom", "custom"), 200, "a condition or an extension says so", "whatever else must be looked at"),
    checkpoint_type(("action_post", "action_post"), 100, "an action has run", "its result is looked at and recorded"),
    checkpoint_type(("error_occurred", "error_occurred"), 50, "an agent reports an error", "contexts and guidance for it"),
    checkpoint_type(("session_end", "session_end"), 0, "a session ends", "the record is closed"),
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
        meaning: "it only reads, or is undone at once",
        examples: &["read_file", "search_tickets"],
    },
    RiskTierInfo {
        tier: RiskTier::Medium,
        meaning: "it writes, and can be written back",
        examples: &["write_file", "create_ticket"],
    },
    RiskTierInfo {
        tier: RiskTier::High,
        meaning: "it destroys, or touches production",
        examples: &["delete_ticket", "update_production_config"],
    },
    RiskTierInfo {
        tier: RiskTier::Critical,
        meaning: "it cannot be undone, and much depends on it",
        examples: &["drop_database", "deploy_service"],
    },
];
