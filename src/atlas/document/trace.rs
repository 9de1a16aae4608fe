//! `trace_config`: what is recorded, how durably, for how long, and what is left out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::ordered;

/// `trace_config`: a steward's rules about the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TraceConfig {
    /// Which events are stored.
    pub level: TraceLevel,
    /// Moment of the answer to an agent: after its events are on disk, or before.
    pub acknowledge: Acknowledge,
    /// Events that are on disk before anyone is told, beyond those that always are: `event` or
    /// `event:tier`.
    pub sync_required_for: Vec<String>,
    /// Event types of extensions that the other rules name. They are registered elsewhere: saying them
    /// here is what tells them from a misspelt one.
    pub custom_events: Vec<String>,
    /// How long events are kept; for ever when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionConfig>,
    /// What is left out of the parameters of requests before they are recorded.
    pub redact: Vec<RedactRule>,
}

/// Which events are stored. Each level has all that the one before has.
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
    /// Sessions, what was blocked, and errors: a basic audit.
    Minimal,
    /// Actions, contexts and policies too: a full audit.
    Standard,
    /// Input, output and checkpoints too: to find out why.
    Verbose,
    /// Everything.
    #[default]
    Complete,
}

impl TraceLevel {
    /// Whether events of a type are stored at this level.
    #[must_use]
    pub fn stores(self, event_type: &str) -> bool {
        let begins = |prefixes: &[&str]| prefixes.iter().any(|it| event_type.starts_with(it));
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

/// Moment of the answer to an agent about what was recorded. Decisions about gates, denials and everything that
/// `sync_required_for` names are on disk first in any case.
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
pub enum Acknowledge {
    /// Before the events are on disk: a crash can lose the last of them, and the record says how many.
    Early,
    /// After the events are on disk: a crash loses nothing that an agent was told.
    #[default]
    Durable,
}

/// How long events are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Days that an event is kept which no pattern below names; for ever when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_days: Option<u32>,
    /// Days by pattern of the event type, in the order written.
    #[serde(with = "ordered")]
    #[schemars(with = "BTreeMap<String, u32>")]
    pub by_event_type: Vec<(String, u32)>,
}

/// What is left out of the parameters of requests before they are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedactRule {
    /// Patterns of the actions it is about; all of them when there is none.
    pub actions: Vec<String>,
    /// Patterns of the paths of parameters that are left out: `password`, `*.token`. Case does not
    /// count.
    pub params: Vec<String>,
    /// Regular expressions: what matches in any text is left out.
    pub values: Vec<String>,
}
