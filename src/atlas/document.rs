//! The manifest as written: plain data, with the names of the Atlas format.
//!
//! Only the structure is checked here; `compiled` holds the validated form.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::condition::ConditionDef;

mod approvers;
mod checkpoint;
mod config;
mod schema;
mod trace;

pub use approvers::*;
pub use checkpoint::*;
pub use config::*;
pub use trace::*;

/// A whole manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtlasManifest {
    /// Version of the format; `1.0`.
    pub atlas_version: String,
    /// Identifier of the Atlas, as a reverse domain name: `com.acme.support`.
    pub atlas_id: String,
    /// Version of this Atlas.
    pub version: String,
    /// Display name.
    pub name: String,
    /// Description of the governed domain.
    #[serde(default)]
    pub description: String,
    /// The responsible steward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steward: Option<Steward>,
    /// Groups of actions that are unlocked and locked together.
    #[serde(default)]
    pub capabilities: Vec<CapabilityDef>,
    /// Points where agents are stopped, advised or observed.
    #[serde(default)]
    pub checkpoints: Vec<StewardCheckpointDef>,
    /// Knowledge that can be injected into an agent's session.
    #[serde(default)]
    pub context_blocks: Vec<ContextBlockDef>,
    /// Static rules about actions.
    #[serde(default)]
    pub policies: Vec<PolicyDef>,
    /// The actions this Atlas knows.
    #[serde(default)]
    pub actions: Vec<ActionDef>,
    /// Decision for a known action that no policy mentions.
    #[serde(default)]
    pub default_decision: DefaultDecision,
    /// Decision for an action that no Atlas knows.
    #[serde(default)]
    pub unknown_actions: UnknownActions,
    /// Rule for the risk tier of an action that does not declare one.
    #[serde(default)]
    pub risk_config: RiskConfig,
    /// Short form for common checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_config: Option<CheckpointConfig>,
    /// Cache lifetimes of results.
    #[serde(default)]
    pub cache_config: CacheConfig,
    /// Settings of the record: detail, durability and retention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_config: Option<TraceConfig>,
}

impl AtlasManifest {
    /// Returns the JSON Schema of a manifest. It accepts the documents that the loader and serde can read.
    #[must_use]
    pub fn json_schema() -> Value {
        schema::tighten_schema(schemars::schema_for!(Self).to_value())
    }
}

/// The publisher of an Atlas, and the access of agents to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steward {
    /// Identifier of the steward.
    pub id: String,
    /// Display name.
    #[serde(default)]
    pub name: String,
    /// Contact address.
    #[serde(default)]
    pub contact: String,
    /// Access rules for agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessRules>,
    /// Delivery of the Atlas; `embedded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Notifications that the steward wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Notifications>,
}

/// Access rules for agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessRules {
    /// Access type: with or without a key.
    #[serde(rename = "type")]
    pub kind: AccessKind,
    /// Patterns of accepted keys.
    #[serde(default)]
    pub api_keys: Vec<String>,
    /// Rate limit of one client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<AccessRate>,
}

/// The access type: with or without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// Any agent that can connect.
    Public,
    /// Only agents with a matching key.
    Authenticated,
}

/// The rate limit of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessRate {
    /// Maximum requests in any minute.
    pub requests_per_minute: u64,
}

/// The delivery of an Atlas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// `embedded`: the engine runs inside the console's process.
    #[schemars(schema_with = "schema::delivery_mode")]
    pub mode: String,
}

/// The notifications that the steward wants, and their destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// Destinations of notices.
    #[serde(default)]
    pub channels: Channels,
    /// Events that cause a notice.
    #[serde(default)]
    pub triggers: Vec<NoticeTrigger>,
}

impl Notifications {
    /// Returns the destination of a notice of this kind, if the steward wants one.
    #[must_use]
    pub fn address_for(&self, trigger: NoticeTrigger) -> Option<&str> {
        let address = self.channels.webhook.as_deref()?;
        self.triggers.contains(&trigger).then_some(address)
    }
}

/// An event that causes a notice.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NoticeTrigger {
    /// An operator overrode a denial by a policy.
    PolicyOverride,
    /// An action with risk tier high or critical was allowed to run.
    HighRiskAction,
}

impl NoticeTrigger {
    /// Returns the trigger's name in an Atlas and in a notice.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PolicyOverride => "policy_override",
            Self::HighRiskAction => "high_risk_action",
        }
    }
}

/// The destinations of notices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Channels {
    /// Webhook address: `https`, or on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
}

/// A group of actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapabilityDef {
    /// Identifier, unique in the Atlas.
    pub capability_id: String,
    /// Display name.
    #[serde(default)]
    pub name: String,
    /// Purpose of the capability.
    #[serde(default)]
    pub description: String,
    /// Patterns of the actions in the capability.
    pub actions: Vec<String>,
}

/// Knowledge that can be injected into an agent's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::context)]
pub struct ContextBlockDef {
    /// Identifier, unique in the Atlas.
    pub context_id: String,
    /// Display name.
    #[serde(default)]
    pub name: String,
    /// Text of the context.
    pub content: String,
    /// Condition for the injection.
    #[serde(default)]
    pub inject_mode: InjectMode,
    /// Keywords in the input that trigger the injection.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Patterns of actions that trigger the injection.
    #[serde(default)]
    pub actions: Vec<String>,
    /// Order among contexts that are injected together, highest first.
    #[serde(default)]
    pub priority: i64,
}

/// The condition for the injection of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InjectMode {
    /// In every session.
    Always,
    /// Only if its keywords or actions match.
    #[default]
    OnMatch,
    /// Only if an agent requests it, or a checkpoint names it.
    OnDemand,
    /// Only if an action is risky.
    RiskBased,
}

/// A static rule about actions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyDef {
    /// Identifier, unique in the Atlas.
    pub policy_id: String,
    /// Effect of the policy.
    #[serde(rename = "type")]
    pub kind: PolicyKind,
    /// Patterns of the actions that the policy covers.
    pub actions: Vec<String>,
    /// Reason, shown to operators and agents.
    #[serde(default)]
    pub reason: String,
    /// Maximum calls in the window of a `rate_limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// Length of the window of a `rate_limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<u64>,
    /// Maximum total of a `budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Parameter with the cost of a run; without it, each run costs 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Runs that are counted together: `session` (the default), `agent` (all sessions whose agent uses the same
    /// name) or `all`.
    #[serde(default)]
    pub scope: LimitScope,
    /// Additional condition for the policy to apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<ConditionDef>,
    /// Allows an operator to override a `deny`.
    #[serde(
        default,
        rename = "override",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub overridable: bool,
}

/// The runs that a limit counts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// The runs of each session; a new session of the same agent starts with the full allowance.
    #[default]
    Session,
    /// The runs of all sessions whose agent uses the same name.
    Agent,
    /// The runs of all sessions.
    All,
}

impl LimitScope {
    /// Describes the scope in words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Session => "for each session",
            Self::Agent => "for all sessions of an agent",
            Self::All => "for all sessions together",
        }
    }
}

/// The effect of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// The action may run.
    Allow,
    /// The action may not run.
    Deny,
    /// The action runs after an operator approves.
    RequiresApproval,
    /// The action may run a limited number of times in a window.
    RateLimit,
    /// The action draws on a budget.
    Budget,
}

/// An action that an Atlas knows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionDef {
    /// Name of the action, as agents use it.
    pub action_id: String,
    /// Display name.
    #[serde(default)]
    pub name: String,
    /// Description of the action.
    #[serde(default)]
    pub description: String,
    /// Risk tier; detected from the action's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_tier: Option<RiskTier>,
    /// JSON Schema of the parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::json_schema")]
    pub parameters_schema: Option<Value>,
}

/// The damage that an action can do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RiskTier {
    /// The action only reads.
    Low,
    /// The action makes a change that can be reverted.
    Medium,
    /// The action destroys data or affects production.
    High,
    /// The action can take a system down.
    Critical,
}

impl RiskTier {
    /// Returns the tier's name in manifests and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for RiskTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The rule for the risk tier of an action that does not declare one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RiskConfig {
    /// Detection mode.
    #[serde(default)]
    pub mode: RiskMode,
}

/// The detection mode for the risk tier of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RiskMode {
    /// By whole words in the action's name and parameters; the highest tier wins.
    #[default]
    Detect,
    /// By the start of the action's name or parameters; the first match in a fixed list wins.
    FirstMatch,
}

/// The decision for a known action that no policy mentions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefaultDecision {
    /// The action may run.
    #[default]
    Allow,
    /// The action may not run.
    Deny,
}

/// The decision for an action that no Atlas knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownActions {
    /// The action may not run.
    #[default]
    Deny,
    /// The action may run.
    Allow,
    /// The action runs after an operator approves.
    Approve,
}
