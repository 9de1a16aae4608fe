//! Checkpoints as written: their triggers, questions and guidance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Approvers, RiskTier, schema};
use crate::atlas::condition::ConditionDef;

/// A checkpoint as its steward wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::checkpoint)]
pub struct StewardCheckpointDef {
    /// Identifier, unique in the Atlas.
    pub checkpoint_id: String,
    /// Display name.
    #[serde(default)]
    pub name: String,
    /// Purpose of the checkpoint.
    #[serde(default)]
    pub description: String,
    /// Event that fires the checkpoint.
    pub trigger: CheckpointTrigger,
    /// Mode: stops the agent, advises or only records.
    #[serde(default)]
    pub mode: CheckpointMode,
    /// Questions that must be answered.
    #[serde(default)]
    pub questions: Vec<CheckpointQuestion>,
    /// Guidance for the agent and the operator.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "without_nulls"
    )]
    pub guidance: Option<GuidanceBlock>,
    /// Contexts injected into the agent's session.
    #[serde(default)]
    pub inject_contexts: Vec<String>,
    /// Capabilities to unlock when a gate is passed or an advisory checkpoint fires. A passed gate also lifts an
    /// earlier lock of the same Atlas; within one request a lock takes precedence over an unlock.
    #[serde(default)]
    pub unlock_capabilities: Vec<String>,
    /// Capabilities to lock in the session, until a gate of the same Atlas that unlocks them is passed. A new
    /// session starts without the lock.
    #[serde(default)]
    pub lock_capabilities: Vec<String>,
    /// Patterns of actions that are allowed when the checkpoint is passed.
    #[serde(default)]
    pub allow_actions: Vec<String>,
    /// Patterns of actions to deny for the rest of the session. `allow_actions` does not lift this; for a rule that
    /// applies to every session, write a policy.
    #[serde(default)]
    pub deny_actions: Vec<String>,
    /// Requires durable records before anything continues.
    #[serde(default)]
    pub force_sync_trace: bool,
    /// Order among checkpoints that fire together, highest first; the default of the type when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Time limit for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Party that may answer.
    #[serde(default)]
    pub respondent: Respondent,
    /// Number of operators that must approve.
    #[serde(default, skip_serializing_if = "Approvers::is_one")]
    pub approvers: Approvers,
    /// Additional condition for firing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<ConditionDef>,
    /// Name of an extension that is called when the checkpoint fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
}

/// The event that fires a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CheckpointTrigger {
    /// A session starts.
    SessionStart,
    /// A session ends. A session cannot be held at its end, so `mode: blocking` is an error.
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
    /// The input contains keywords.
    Keyword {
        /// Keywords to search for.
        patterns: Vec<String>,
        /// Makes the search case-sensitive.
        case_sensitive: bool,
        /// Search mode.
        match_mode: MatchMode,
        /// Maximum edit distance of a fuzzy match; derived from the word length when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        threshold: Option<usize>,
    },
    /// An action has at least this risk tier.
    RiskThreshold {
        /// Lowest tier that fires.
        min_tier: RiskTier,
    },
    /// A locked capability is requested. An advisory checkpoint that unlocks it lets the action continue.
    CapabilityAccess {
        /// The gated capabilities.
        capability_ids: Vec<String>,
    },
    /// Time has passed. Fires with the first action or input at or after each multiple of `seconds` from session
    /// start, once if several were missed. Its contexts are injected each time.
    TimeInterval {
        /// Seconds between two firings.
        seconds: u64,
    },
    /// Actions have run. Fires with the next action or input after each multiple of `actions`. Its contexts are
    /// injected each time.
    CountInterval {
        /// Actions between two firings.
        actions: u64,
    },
    /// An agent requests the checkpoint.
    ExplicitRequest,
    /// An agent reports an error, or an allowed action fails.
    ErrorOccurred,
    /// An agent requests the checkpoint by name.
    Interactive,
    /// An extension or a condition decides.
    Custom {
        /// Name of the extension's trigger.
        trigger_id: String,
        /// Parameters passed to the extension.
        params: Map<String, Value>,
        /// Events on which the trigger is evaluated. When empty, the paths of its condition decide.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        on: Vec<CustomTriggerEvent>,
        /// Condition that decides without an extension.
        #[serde(skip_serializing_if = "Option::is_none")]
        when: Option<ConditionDef>,
    },
}

/// The event on which a custom trigger is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CustomTriggerEvent {
    /// Input arrives.
    Input,
    /// An agent requests an action.
    Action,
}

impl CheckpointTrigger {
    /// All trigger names that a manifest may use, without aliases.
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

    /// Default priority of custom checkpoints.
    pub const CUSTOM_PRIORITY: i64 = 200;

    /// Checkpoint type names that differ from their trigger names.
    pub const OTHER_TYPES: [&'static str; 2] = ["keyword_match", "capability_gate"];

    /// All checkpoint types, as named in TRACE.
    pub const TYPES: [&'static str; 13] = [
        "session_start",
        "session_end",
        "action_pre",
        "action_post",
        "keyword_match",
        "risk_threshold",
        "capability_gate",
        "time_interval",
        "count_interval",
        "explicit_request",
        "error_occurred",
        "interactive",
        "custom",
    ];

    /// Returns the checkpoint type of this trigger, as named in TRACE.
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

    /// Returns the default priority of checkpoints with this trigger.
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
            Self::Custom { .. } => Self::CUSTOM_PRIORITY,
            Self::ActionPost { .. } => 100,
            Self::ErrorOccurred => 50,
            Self::SessionEnd => 0,
        }
    }
}

/// The search mode for keywords.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchMode {
    /// Any keyword, anywhere.
    #[default]
    Any,
    /// All keywords, anywhere.
    All,
    /// Any keyword, as whole words.
    Phrase,
    /// Any keyword, as a regular expression.
    Regex,
    /// Any keyword, with small differences.
    Fuzzy,
}

/// The mode of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointMode {
    /// The agent waits until the checkpoint is passed.
    Blocking,
    /// The checkpoint takes effect and the agent continues.
    #[default]
    Advisory,
    /// The checkpoint is only recorded.
    Observational,
}

impl CheckpointMode {
    /// Returns the mode's name in manifests and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Advisory => "advisory",
            Self::Observational => "observational",
        }
    }
}

/// The party that may answer a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Respondent {
    /// An operator at the console.
    #[default]
    Operator,
    /// The agent.
    Agent,
    /// The operator or the agent; the first answer counts.
    Either,
}

/// A question of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointQuestion {
    /// Identifier, unique in the checkpoint.
    pub question_id: String,
    /// Text of the question.
    pub question: String,
    /// Type of the expected answer.
    #[serde(default)]
    pub response_type: ResponseType,
    /// Makes an answer mandatory.
    #[serde(default = "yes")]
    pub required: bool,
    /// Hint shown to the respondent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Rules for the answer.
    #[serde(default)]
    pub validation: AnswerValidation,
    /// Action on an invalid answer.
    #[serde(default)]
    pub on_invalid: InvalidAnswerAction,
    /// Number of invalid answers accepted before the gate is refused; unlimited when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Answer to a yes/no question that passes.
    #[serde(default)]
    pub expect: ExpectedAnswer,
    /// Available options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Lowest accepted number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Highest accepted number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// JSON Schema for a JSON answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::json_schema")]
    pub schema: Option<Value>,
    /// Records only a salted hash of the answer.
    #[serde(default)]
    pub sensitive: bool,
}

/// Serializes guidance in the manifest form. Records keep their own form, with `null` for absent fields.
#[expect(clippy::ref_option, reason = "serde requires this signature")]
fn without_nulls<S: Serializer>(
    guidance: &Option<GuidanceBlock>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = match serde_json::to_value(guidance).map_err(serde::ser::Error::custom)? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.retain(|_, value| !value.is_null());
    fields.serialize(serializer)
}

fn yes() -> bool {
    true
}

/// The type of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Returns the type's name in manifests.
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

/// Rules for an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerValidation {
    /// A regular expression that must match a part of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Minimum number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<usize>,
    /// Maximum number of characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// Texts that must occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_contain: Vec<String>,
    /// Texts that must not occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub must_not_contain: Vec<String>,
    /// Name of an extension that validates the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_validator: Option<String>,
}

/// The action on an invalid answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InvalidAnswerAction {
    /// The question is asked again.
    #[default]
    Retry,
    /// The gate is refused.
    Block,
    /// The answer passes, with a warning.
    WarnAndContinue,
    /// The answer passes and is recorded.
    LogAndContinue,
}

impl InvalidAnswerAction {
    /// Returns the action's name in manifests.
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

/// The answer to a yes/no question that passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = schema::expect)]
pub enum ExpectedAnswer {
    /// Only yes.
    #[default]
    True,
    /// Only no.
    False,
    /// Both answers.
    Any,
}

/// Guidance for an agent and its operator at a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuidanceBlock {
    /// Format of the content.
    #[serde(default)]
    pub format: GuidanceFormat,
    /// Text of the guidance.
    pub content: String,
    /// Order among guidance, highest first.
    #[serde(default)]
    pub priority: i64,
    /// Appends to earlier guidance (`true`) or replaces it (`false`); depends on the format when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<bool>,
    /// Checkpoint or trigger type after which the guidance expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
    /// Labels to find the guidance by.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// The format of guidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuidanceFormat {
    /// Plain text.
    #[default]
    Text,
    /// Markdown.
    Markdown,
    /// JSON data.
    Json,
    /// An instruction at system level.
    SystemInstruction,
}
