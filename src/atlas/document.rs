//! The manifest as written: plain data, with the names of the Atlas format.
//!
//! Nothing here is checked beyond its shape; `compiled` holds the checked form.

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
    /// Who this Atlas is, as a reverse domain name: `com.acme.support`.
    pub atlas_id: String,
    /// Version of this Atlas.
    pub version: String,
    /// Name for people.
    pub name: String,
    /// What it governs.
    #[serde(default)]
    pub description: String,
    /// Who is responsible for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steward: Option<Steward>,
    /// Groups of actions that are unlocked and locked together.
    #[serde(default)]
    pub capabilities: Vec<CapabilityDef>,
    /// Where agents are stopped, advised or watched.
    #[serde(default)]
    pub checkpoints: Vec<StewardCheckpointDef>,
    /// Knowledge that can be handed to an agent.
    #[serde(default)]
    pub context_blocks: Vec<ContextBlockDef>,
    /// Static rules about actions.
    #[serde(default)]
    pub policies: Vec<PolicyDef>,
    /// The actions this Atlas knows.
    #[serde(default)]
    pub actions: Vec<ActionDef>,
    /// What holds for a known action that no policy mentions.
    #[serde(default)]
    pub default_decision: DefaultDecision,
    /// What holds for an action that no Atlas knows.
    #[serde(default)]
    pub unknown_actions: UnknownActions,
    /// How the tier of an action is found that does not declare one.
    #[serde(default)]
    pub risk_config: RiskConfig,
    /// Checkpoints in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_config: Option<CheckpointConfig>,
    /// How long results are kept.
    #[serde(default)]
    pub cache_config: CacheConfig,
    /// What is recorded, how durably and for how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_config: Option<TraceConfig>,
}

impl AtlasManifest {
    /// The grammar of a manifest, as a JSON Schema: it accepts the documents that the loader and serde can read.
    #[must_use]
    pub fn json_schema() -> Value {
        schema::exact(schemars::schema_for!(Self).to_value())
    }
}

/// Who publishes an Atlas, and how agents may reach it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steward {
    /// Identifier of the steward.
    pub id: String,
    /// Name for people.
    #[serde(default)]
    pub name: String,
    /// Where to reach them.
    #[serde(default)]
    pub contact: String,
    /// Who may ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// How the Atlas is delivered; `embedded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// What the steward wants to hear of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Notifications>,
}

/// Who may ask under an Atlas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Whether a key is needed.
    #[serde(rename = "type")]
    pub kind: AccessKind,
    /// Patterns of keys that are accepted.
    #[serde(default)]
    pub api_keys: Vec<String>,
    /// How often one asker may ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<AccessRate>,
}

/// Whether a key is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// Anyone who reaches the door.
    Public,
    /// Whoever shows a key that matches.
    Authenticated,
}

/// How often one asker may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessRate {
    /// Requests in any minute.
    pub requests_per_minute: u64,
}

/// How an Atlas is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// `embedded`: the engine runs inside the console's process.
    #[schemars(schema_with = "schema::delivery_mode")]
    pub mode: String,
}

/// What the steward wants to hear of, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// Where notices go.
    #[serde(default)]
    pub channels: Channels,
    /// What is worth a notice.
    #[serde(default)]
    pub triggers: Vec<NoticeTrigger>,
}

impl Notifications {
    /// Where a notice of this kind goes, if one is wanted.
    #[must_use]
    pub fn address_for(&self, trigger: NoticeTrigger) -> Option<&str> {
        let address = self.channels.webhook.as_deref()?;
        self.triggers.contains(&trigger).then_some(address)
    }
}

/// What is worth a notice.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NoticeTrigger {
    /// An operator let an action pass over a policy.
    PolicyOverride,
    /// An action of risk high or critical was let run.
    HighRiskAction,
}

impl NoticeTrigger {
    /// Its name in an Atlas and in a notice.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PolicyOverride => "policy_override",
            Self::HighRiskAction => "high_risk_action",
        }
    }
}

/// Where notices go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Channels {
    /// Address that is called: `https`, or on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
}

/// A group of actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapabilityDef {
    /// Identifier, unique in the Atlas.
    pub capability_id: String,
    /// Name for people.
    #[serde(default)]
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Patterns of the actions in it.
    pub actions: Vec<String>,
}

/// Knowledge that can be handed to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::context)]
pub struct ContextBlockDef {
    /// Identifier, unique in the Atlas.
    pub context_id: String,
    /// Name for people.
    #[serde(default)]
    pub name: String,
    /// The text.
    pub content: String,
    /// When it is handed over.
    #[serde(default)]
    pub inject_mode: InjectMode,
    /// Keywords of input that call for it.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Patterns of actions that call for it.
    #[serde(default)]
    pub actions: Vec<String>,
    /// Order among contexts that are called for together, highest first.
    #[serde(default)]
    pub priority: i64,
}

/// When a context is handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InjectMode {
    /// With every session.
    Always,
    /// When its own conditions match.
    #[default]
    OnMatch,
    /// When it is asked for, or a checkpoint names it.
    OnDemand,
    /// When an action is risky.
    RiskBased,
}

/// A static rule about actions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyDef {
    /// Identifier, unique in the Atlas.
    pub policy_id: String,
    /// What it does.
    #[serde(rename = "type")]
    pub kind: PolicyKind,
    /// Patterns of the actions it is about.
    pub actions: Vec<String>,
    /// Why, for people and agents.
    #[serde(default)]
    pub reason: String,
    /// Calls a `rate_limit` allows in its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// Length of a `rate_limit`'s window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<u64>,
    /// How much a `budget` allows in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// The parameter that says how much a run costs; each costs 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Whose runs count together: `session` (the default), `agent` (all sessions whose agent gives the same name) or
    /// `all`.
    #[serde(default)]
    pub scope: Scope,
    /// What else must hold for it to apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<ConditionDef>,
    /// Whether an operator may let a request through that a `deny` refuses.
    #[serde(
        default,
        rename = "override",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub overridable: bool,
}

/// Whose runs a limit counts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Those of each session: a new session of the same agent begins with a full allowance.
    #[default]
    Session,
    /// Those of all sessions whose agent gives the same name.
    Agent,
    /// Those of all sessions.
    All,
}

impl Scope {
    /// The scope in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Session => "for each session",
            Self::Agent => "for all sessions of an agent",
            Self::All => "for all sessions together",
        }
    }
}

/// What a policy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// The action may run.
    Allow,
    /// The action may not run.
    Deny,
    /// The action runs when an operator approves.
    RequiresApproval,
    /// The action may run so many times in a while.
    RateLimit,
    /// The action draws on a budget.
    Budget,
}

/// An action that an Atlas knows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionDef {
    /// The action's name, as agents use it.
    pub action_id: String,
    /// Name for people.
    #[serde(default)]
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// How risky it is; detected from its name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_tier: Option<RiskTier>,
    /// JSON Schema of its parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::json_schema")]
    pub parameters_schema: Option<Value>,
}

/// How much damage an action can do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RiskTier {
    /// It only reads.
    Low,
    /// It changes something that can be changed back.
    Medium,
    /// It destroys, or touches production.
    High,
    /// It can take a system down.
    Critical,
}

impl RiskTier {
    /// The tier's name in manifests and records.
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

/// How the tier of an action is found that does not declare one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RiskConfig {
    /// The way.
    #[serde(default)]
    pub mode: RiskMode,
}

/// A way to find the tier of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RiskMode {
    /// By whole words of its name and parameters; the highest counts.
    #[default]
    Detect,
    /// By the beginning of its name or of its parameters; the first of a fixed list counts.
    FirstMatch,
}

/// What holds for a known action that no policy mentions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DefaultDecision {
    /// It may run.
    #[default]
    Allow,
    /// It may not run.
    Deny,
}

/// What holds for an action that no Atlas knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownActions {
    /// It may not run.
    #[default]
    Deny,
    /// It may run.
    Allow,
    /// It runs when an operator approves.
    Approve,
}
