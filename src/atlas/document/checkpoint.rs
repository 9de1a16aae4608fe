//! Checkpoints as written: when they fire, what they ask, what they say.

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
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "without_nulls"
    )]
    pub guidance: Option<GuidanceBlock>,
    /// Contexts handed to the agent.
    #[serde(default)]
    pub inject_contexts: Vec<String>,
    /// Capabilities that it unlocks in the session: a gate when it is passed, an advisory checkpoint when it fires. A
    /// passed gate also lifts an earlier lock of the same Atlas; in one request a lock beats an unlock.
    #[serde(default)]
    pub unlock_capabilities: Vec<String>,
    /// Capabilities that it locks in the session, until a gate of the same Atlas that unlocks them is passed. A new
    /// session begins without the lock.
    #[serde(default)]
    pub lock_capabilities: Vec<String>,
    /// Patterns of actions that passing allows.
    #[serde(default)]
    pub allow_actions: Vec<String>,
    /// Patterns of actions that it denies for the rest of the session. No `allow_actions` lifts that; for a rule
    /// that holds in every session write a policy.
    #[serde(default)]
    pub deny_actions: Vec<String>,
    /// Whether its records must be durable before anything goes on.
    #[serde(default)]
    pub force_sync_trace: bool,
    /// Order among checkpoints that fire together, highest first; the type's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// How long an answer is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Who may answer.
    #[serde(default)]
    pub respondent: Respondent,
    /// How many operators have to let it pass.
    #[serde(default, skip_serializing_if = "Approvers::is_one")]
    pub approvers: Approvers,
    /// What else must hold for it to fire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<ConditionDef>,
    /// Name of an extension that is asked when it fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
}

/// When a checkpoint fires.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CheckpointTrigger {
    /// A session begins.
    SessionStart,
    /// A session ends. Nothing can be held then, so `mode: blocking` is an error.
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
    Keyword {
        /// What is looked for.
        patterns: Vec<String>,
        /// Whether case counts.
        case_sensitive: bool,
        /// How they are looked for.
        match_mode: MatchMode,
        /// Edits that a nearly found word may need; by its length when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        threshold: Option<usize>,
    },
    /// An action is at least this risky.
    RiskThreshold {
        /// The lowest tier that fires.
        min_tier: RiskTier,
    },
    /// An action of a locked capability is asked for. An advisory checkpoint that unlocks it lets the action go on.
    CapabilityAccess {
        /// The capabilities that are gated.
        capability_ids: Vec<String>,
    },
    /// Time has passed: fires with the first action or input at or after each multiple of `seconds` from the start
    /// of the session, once where several were missed. Its contexts are given each time.
    TimeInterval {
        /// Seconds between two.
        seconds: u64,
    },
    /// Actions have run: fires with the next action or input after each multiple of `actions`. Its contexts are
    /// given each time.
    CountInterval {
        /// Actions between two.
        actions: u64,
    },
    /// An agent asks for it.
    ExplicitRequest,
    /// An agent reports an error, or an action that it was allowed to run fails.
    ErrorOccurred,
    /// Fired by name, on request.
    Interactive,
    /// Decided by an extension.
    Custom {
        /// Name of the extension's trigger.
        trigger_id: String,
        /// What it is told.
        params: Map<String, Value>,
        /// When it is looked at; where its condition has something to look at when empty.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        on: Vec<CustomMoment>,
        /// A condition that decides it without an extension.
        #[serde(skip_serializing_if = "Option::is_none")]
        when: Option<ConditionDef>,
    },
}

/// When a custom trigger is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CustomMoment {
    /// Input comes.
    Input,
    /// An action is asked for.
    Action,
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

    /// Priority of custom checkpoints that name none.
    pub const CUSTOM_PRIORITY: i64 = 200;

    /// The names of checkpoint types that their triggers do not have.
    pub const OTHER_TYPES: [&'static str; 2] = ["keyword_match", "capability_gate"];

    /// Every checkpoint type, as TRACE names them.
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
            Self::Custom { .. } => Self::CUSTOM_PRIORITY,
            Self::ActionPost { .. } => 100,
            Self::ErrorOccurred => 50,
            Self::SessionEnd => 0,
        }
    }
}

/// How keywords are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    #[schemars(schema_with = "schema::json_schema")]
    pub schema: Option<Value>,
    /// Whether only a salted hash of the answer is recorded.
    #[serde(default)]
    pub sensitive: bool,
}

/// Guidance as a manifest writes it. Records keep their form, with `null` for what is absent.
#[expect(clippy::ref_option, reason = "serde gives the field")]
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

/// What kind of answer is wanted.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = schema::expect)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<bool>,
    /// A checkpoint or trigger type after which it no longer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
    /// Words to find it by.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// How guidance is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
