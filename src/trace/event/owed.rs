//! Obligations of a session that has ended, for the session that goes on with its conversation.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::clock::Timestamp;

/// Gates, restrictions and used limits that a session leaves behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owed {
    /// State of the start gates, unless they were passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<OwedStart>,
    /// Gates that stood before the whole session and were not passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<OwedGate>,
    /// Locked capabilities, each with the Atlases that locked it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locked: BTreeMap<String, BTreeSet<String>>,
    /// Actions that checkpoints denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<OwedDenial>,
    /// Use of limits that count for one session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<UsedLimit>,
    /// Intervals that have fired.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<OwedInterval>,
    /// Time that the conversation took before this session.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier_ms: u64,
    /// Runs of the conversation before this session.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier_actions: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Owed {
    /// The obligations, where there are any.
    #[must_use]
    pub fn unless_empty(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// State of the start gates of a session that was not let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OwedStart {
    /// An operator or a handler refused the session.
    Refused {
        /// The reason given.
        reason: String,
    },
    /// The gates were not answered.
    Unanswered {
        /// Their checkpoints.
        checkpoints: BTreeSet<String>,
    },
}

/// Gates of one moment that were not passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwedGate {
    /// Type of checkpoint that the moment concerns.
    pub kind: String,
    /// Name of the moment, for people.
    pub label: String,
    /// Hash of the input, or the action.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// Checkpoints that fired.
    pub checkpoints: BTreeSet<String>,
}

/// Actions that a checkpoint denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwedDenial {
    /// The checkpoint.
    pub checkpoint_id: String,
    /// Patterns of the actions.
    pub actions: Vec<String>,
}

/// Use of a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsedLimit {
    /// Atlas and policy, with a slash between.
    pub limit: String,
    /// Times of the newest runs, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Timestamp>,
    /// Number of runs before those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub older_runs: u64,
    /// Sum of a budget.
    pub total: f64,
    /// Part of the sum that rounding cut off.
    pub rest: f64,
}

/// An interval that has fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwedInterval {
    /// The Atlas.
    pub atlas_id: String,
    /// The checkpoint.
    pub checkpoint_id: String,
    /// Time since it fired, when the session ended.
    pub elapsed_ms: u64,
    /// Runs of the conversation when it fired.
    pub actions: u64,
}
