//! `trace_config`: event selection, durability, retention and redaction of the record.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::ordered;

/// `trace_config`: a steward's rules about the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TraceConfig {
    /// Selection of stored events.
    pub level: TraceLevel,
    /// Time of the reply to an agent: after its events are on disk, or before.
    pub acknowledge: AcknowledgeMode,
    /// Events that must be on disk before any reply, in addition to the built-in ones: `event` or `event:tier`.
    pub sync_required_for: Vec<String>,
    /// Event types of extensions that the other rules use. Extensions register them elsewhere; listing them here
    /// distinguishes them from misspelt event types.
    pub custom_events: Vec<String>,
    /// Retention of events; unlimited when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionConfig>,
    /// Rules that redact request parameters before they are recorded.
    pub redact: Vec<RedactRule>,
}

/// The selection of stored events. Each level includes the one before.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TraceLevel {
    /// Sessions, blocked actions and errors: a basic audit.
    Minimal,
    /// Also actions, contexts and policies: a full audit.
    Standard,
    /// Also input, output and checkpoints: to find causes.
    Verbose,
    /// All events.
    #[default]
    Complete,
}

impl TraceLevel {
    /// Returns true if events of a type are stored at this level.
    #[must_use]
    pub fn stores(self, event_type: &str) -> bool {
        let begins =
            |prefixes: &[&str]| prefixes.iter().any(|prefix| event_type.starts_with(prefix));
        let minimal =
            begins(&["session_"]) || matches!(event_type, "action_blocked" | "error_occurred");
        let standard = || begins(&["action_", "context_", "policy_"]);
        let verbose = || begins(&["input_", "output_", "checkpoint_"]);
        match self {
            Self::Minimal => minimal,
            Self::Standard => minimal || standard(),
            Self::Verbose => minimal || standard() || verbose(),
            Self::Complete => true,
        }
    }
}

/// The time of the reply to an agent. Decisions about gates, denials and all events in `sync_required_for` are
/// always on disk first.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AcknowledgeMode {
    /// Before the events are on disk: a crash can lose the last events, and the record states how many.
    Early,
    /// After the events are on disk: a crash loses nothing that an agent was told.
    #[default]
    Durable,
}

/// The retention of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Retention in days for events that no pattern below matches; unlimited when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_days: Option<u32>,
    /// Retention in days by pattern of the event type, in the order written.
    #[serde(with = "ordered")]
    #[schemars(with = "BTreeMap<String, u32>")]
    pub by_event_type: Vec<(String, u32)>,
}

/// A rule that redacts request parameters before they are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedactRule {
    /// Patterns of the actions that the rule covers; all actions when empty.
    pub actions: Vec<String>,
    /// Patterns of parameter paths to redact: `password`, `*.token`. Case-insensitive.
    pub params: Vec<String>,
    /// Regular expressions; matching parts of any text are redacted.
    pub values: Vec<String>,
}
