//! The manifest as written: plain data, with the names of the Atlas format.
//!
//! Nothing here is checked beyond its shape; `compiled` holds the checked form.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condition::ConditionDef;

/// A whole manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default)]
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
}

/// Who publishes an Atlas, and how agents may reach it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub access: Option<Access>,
    /// How the Atlas is delivered; `embedded`.
    #[serde(default)]
    pub delivery: Option<Delivery>,
    /// What the steward wants to hear of.
    #[serde(default)]
    pub notifications: Option<Notifications>,
}

/// Who may ask under an Atlas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Whether a key is needed.
    #[serde(rename = "type")]
    pub kind: AccessKind,
    /// Patterns of keys that are accepted.
    #[serde(default)]
    pub api_keys: Vec<String>,
    /// How often one asker may ask.
    #[serde(default)]
    pub rate_limit: Option<AccessRate>,
}

/// Whether a key is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// Anyone who reaches the door.
    Public,
    /// Whoever shows a key that matches.
    Authenticated,
}

/// How often one asker may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRate {
    /// Requests in any minute.
    pub requests_per_minute: u64,
}

/// How an Atlas is delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// `embedded`: the engine runs inside the console's process.
    pub mode: String,
}

/// What the steward wants to hear of, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// Where notices go.
    #[serde(default)]
    pub channels: Channels,
    /// Names of what is worth a notice: `policy_override`, `high_risk_action`.
    #[serde(default)]
    pub triggers: Vec<String>,
}

/// Where notices go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Channels {
    /// Address that is called.
    #[serde(default)]
    pub webhook: Option<String>,
}

/// A group of actions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// A checkpoint as its steward wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StewardCheckpointDef {
    /// Identifier, unique in the Atlas.
    pub checkpoint_id: String,
    /// Name for people.
    #[serde(default)]
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// When it fires.
    pub trigger: CheckpointTrigger,
    /// Whether it stops the agent.
    #[serde(default)]
    pub mode: CheckpointMode,
    /// What has to be answered.
    #[serde(default)]
    pub questions: Vec<CheckpointQuestion>,
    /// What the agent and the operator are told.
    #[serde(default)]
    pub guidance: Option<GuidanceBlock>,
    /// Contexts handed to the agent.
    #[serde(default)]
    pub inject_contexts: Vec<String>,
    /// Capabilities that passing unlocks.
    #[serde(default)]
    pub unlock_capabilities: Vec<String>,
    /// Capabilities that passing locks.
    #[serde(default)]
    pub lock_capabilities: Vec<String>,
    /// Patterns of actions that passing allows.
    #[serde(default)]
    pub allow_actions: Vec<String>,
    /// Patterns of actions that passing denies.
    #[serde(default)]
    pub deny_actions: Vec<String>,
    /// Whether its records must be durable before anything goes on.
    #[serde(default)]
    pub force_sync_trace: bool,
    /// Order among checkpoints that fire together, highest first; the type's own when absent.
    #[serde(default)]
    pub priority: Option<i64>,
    /// How long an answer is waited for.
    #[serde(default)]
    pub timeout_seconds: Option<u64>,
    /// Who may answer.
    #[serde(default)]
    pub respondent: Respondent,
    /// What else must hold for it to fire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<ConditionDef>,
}

/// When a checkpoint fires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckpointTrigger {
    /// A session begins.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// An action that matches is about to run.
    ActionPre {
        /// Patterns of actions.
        patterns: Vec<String>,
    },
    /// An action that matches has run.
    ActionPost {
        /// Patterns of actions.
        patterns: Vec<String>,
    },
    /// Input contains keywords.
    #[serde(alias = "keyword_match")]
    Keyword {
        /// What is looked for.
        patterns: Vec<String>,
        /// Whether case counts.
        #[serde(default)]
        case_sensitive: bool,
        /// How they are looked for.
        #[serde(default)]
        match_mode: MatchMode,
    },
    /// An action is at least this risky.
    RiskThreshold {
        /// The lowest tier that fires.
        #[serde(default = "default_min_tier")]
        min_tier: RiskTier,
    },
    /// An action of a locked capability is asked for.
    #[serde(alias = "capability_gate")]
    CapabilityAccess {
        /// The capabilities that are gated.
        capability_ids: Vec<String>,
    },
    /// So much time has passed.
    TimeInterval {
        /// Seconds between two.
        #[serde(default = "default_seconds")]
        seconds: u64,
    },
    /// So many actions have run.
    CountInterval {
        /// Actions between two.
        #[serde(default = "default_actions")]
        actions: u64,
    },
    /// An agent asks for it.
    ExplicitRequest,
    /// An agent reports an error.
    ErrorOccurred,
    /// Fired by name, on request.
    Interactive,
    /// Decided by an extension.
    Custom {
        /// Name of the extension's trigger.
        trigger_id: String,
        /// What it is told.
        #[serde(default)]
        params: Map<String, Value>,
    },
}

fn default_min_tier() -> RiskTier {
    RiskTier::High
}

fn default_seconds() -> u64 {
    300
}

fn default_actions() -> u64 {
    10
}

impl CheckpointTrigger {
    /// Every trigger name that a manifest may use, aliases left out.
    pub const NAMES: [&'static str; 13] = [
        "session_start",
        "session_end",
        "action_pre",
        "action_post",
        "keyword",
        "risk_threshold",
        "capability_access",
        "time_interval",
        "count_interval",
        "explicit_request",
        "error_occurred",
        "interactive",
        "custom",
    ];

    /// The checkpoint type this trigger belongs to, as TRACE names it.
    #[must_use]
    pub fn checkpoint_type(&self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::SessionEnd => "session_end",
            Self::ActionPre { .. } => "action_pre",
            Self::ActionPost { .. } => "action_post",
            Self::Keyword { .. } => "keyword_match",
            Self::RiskThreshold { .. } => "risk_threshold",
            Self::CapabilityAccess { .. } => "capability_gate",
            Self::TimeInterval { .. } => "time_interval",
            Self::CountInterval { .. } => "count_interval",
            Self::ExplicitRequest => "explicit_request",
            Self::ErrorOccurred => "error_occurred",
            Self::Interactive => "interactive",
            Self::Custom { .. } => "custom",
        }
    }

    /// The priority of checkpoints of this type that name none.
    #[must_use]
    pub fn default_priority(&self) -> i64 {
        match self {
            Self::SessionStart => 1000,
            Self::Interactive => 950,
            Self::CapabilityAccess { .. } => 920,
            Self::RiskThreshold { .. } => 900,
            Self::ActionPre { .. } => 800,
            Self::Keyword { .. } => 600,
            Self::TimeInterval { .. } => 500,
            Self::CountInterval { .. } => 400,
            Self::ExplicitRequest => 300,
            Self::Custom { .. } => 200,
            Self::ActionPost { .. } => 100,
            Self::ErrorOccurred => 50,
            Self::SessionEnd => 0,
        }
    }
}

/// How keywords are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchMode {
    /// One of them, anywhere.
    #[default]
    Any,
    /// All of them, anywhere.
    All,
    /// One of them, as whole words.
    Phrase,
    /// One of them, as a regular expression.
    Regex,
    /// One of them, nearly.
    Fuzzy,
}

/// Whether a checkpoint stops the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointMode {
    /// The agent waits until it is passed.
    Blocking,
    /// It takes effect and the agent goes on.
    #[default]
    Advisory,
    /// It is recorded, and nothing else.
    Observational,
}

impl CheckpointMode {
    /// The mode's name in manifests and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Advisory => "advisory",
            Self::Observational => "observational",
        }
    }
}

/// Who may answer a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Respondent {
    /// A person at the console.
    #[default]
    Operator,
    /// The agent itself.
    Agent,
    /// Whoever is first.
    Either,
}

/// One thing that has to be answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointQuestion {
    /// Identifier, unique in the checkpoint.
    pub question_id: String,
    /// What is asked.
    pub question: String,
    /// What kind of answer is wanted.
    #[serde(default)]
    pub response_type: ResponseType,
    /// Whether it must be answered.
    #[serde(default = "yes")]
    pub required: bool,
    /// Help for whoever answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Rules the answer has to keep.
    #[serde(default)]
    pub validation: AnswerValidation,
    /// What happens when it does not.
    #[serde(default)]
    pub on_invalid: OnInvalid,
    /// Invalid answers that are taken before the gate is refused; no limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Which answer to a yes/no question passes.
    #[serde(default)]
    pub expect: Expect,
    /// What can be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Lowest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Highest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// JSON Schema that a JSON answer has to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Whether only a salted hash of the answer is recorded.
    #[serde(default)]
    pub sensitive: bool,
}

fn yes() -> bool {
    true
}

/// What kind of answer is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseType {
    /// Free text.
    #[default]
    Text,
    /// Yes or no.
    Boolean,
    /// The word "understood".
    Acknowledgment,
    /// One of several options.
    Choice,
    /// A number.
    Number,
    /// A JSON value.
    Json,
}

impl ResponseType {
    /// The type's name in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Acknowledgment => "acknowledgment",
            Self::Choice => "choice",
            Self::Number => "number",
            Self::Json => "json",
        }
    }
}

/// Rules an answer has to keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerValidation {
    /// A regular expression that must be found in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Fewest characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<usize>,
    /// Most characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// Texts that must occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_contain: Vec<String>,
    /// Texts that must not occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_not_contain: Vec<String>,
    /// Name of an extension that judges it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_validator: Option<String>,
}

/// What happens when an answer breaks a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInvalid {
    /// It is asked again.
    #[default]
    Retry,
    /// The gate is refused.
    Block,
    /// It passes, with a warning.
    WarnAndContinue,
    /// It passes, and is recorded.
    LogAndContinue,
}

impl OnInvalid {
    /// The action's name in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Block => "block",
            Self::WarnAndContinue => "warn_and_continue",
            Self::LogAndContinue => "log_and_continue",
        }
    }
}

/// Which answer to a yes/no question passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Only yes.
    #[default]
    True,
    /// Only no.
    False,
    /// Either.
    Any,
}

/// What an agent and its operator are told at a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuidanceBlock {
    /// How the content is to be read.
    #[serde(default)]
    pub format: GuidanceFormat,
    /// The text.
    pub content: String,
    /// Order among guidance, highest first.
    #[serde(default)]
    pub priority: i64,
    /// Whether it joins earlier guidance or replaces it; by format when absent.
    #[serde(default)]
    pub append: Option<bool>,
    /// A checkpoint or trigger type after which it no longer holds.
    #[serde(default)]
    pub expires_after: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// How guidance is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuidanceFormat {
    /// As it stands.
    #[default]
    Text,
    /// As Markdown.
    Markdown,
    /// As data.
    Json,
    /// As an instruction at system level.
    SystemInstruction,
}

/// Knowledge that can be handed to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub max_calls: Option<u64>,
    /// Length of a `rate_limit`'s window.
    #[serde(default)]
    pub window_seconds: Option<u64>,
    /// How much a `budget` allows in all.
    #[serde(default)]
    pub limit: Option<f64>,
    /// The parameter that says how much a run costs; each costs 1 when absent.
    #[serde(default)]
    pub cost: Option<String>,
    /// Whose runs count together.
    #[serde(default)]
    pub scope: Scope,
    /// What else must hold for it to apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<ConditionDef>,
}

/// Whose runs a limit counts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Those of each session.
    #[default]
    Session,
    /// Those of all sessions.
    All,
}

/// What a policy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub risk_tier: Option<RiskTier>,
    /// JSON Schema of its parameters.
    #[serde(default)]
    pub parameters_schema: Option<Value>,
}

/// How much damage an action can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RiskConfig {
    /// The way.
    #[serde(default)]
    pub mode: RiskMode,
}

/// A way to find the tier of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskMode {
    /// By whole words of its name and parameters; the highest counts.
    #[default]
    Detect,
    /// By the beginning of its name or of its parameters; the first of a fixed list counts.
    FirstMatch,
}

/// What holds for a known action that no policy mentions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefaultDecision {
    /// It may run.
    #[default]
    Allow,
    /// It may not run.
    Deny,
}

/// What holds for an action that no Atlas knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
