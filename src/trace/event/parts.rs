//! What payloads are made of.

use serde::{Deserialize, Serialize};

use crate::base::digest::Digest;
use crate::base::id::SessionId;

/// Where a session runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Operating system.
    pub platform: String,
    /// What runs the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
}

/// What a wrapper can intercept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapperCapabilities {
    /// Input to the agent.
    pub intercept_input: bool,
    /// Output of the agent.
    pub intercept_output: bool,
    /// Actions of the agent.
    pub intercept_actions: bool,
}

/// An Atlas whose rules something was judged by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasRef {
    /// The Atlas.
    pub atlas_id: String,
    /// Digest of its text, under which the store keeps it.
    pub atlas_hash: String,
}

/// How an action failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorDetail {
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A keyword that was found in input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeywordPosition {
    /// The keyword, as the Atlas has it.
    pub keyword: String,
    /// Unicode scalar values of the input before its first match.
    pub position: u64,
}

/// The end of a chain at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedHead {
    /// The session.
    pub session: SessionId,
    /// Its events.
    pub count: u64,
    /// Hash of the last of them.
    pub hash: Digest,
}

/// What a rule left out of an event before it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// The rule: its Atlas, and its place there.
    pub rule: String,
    /// Where, as paths into the payload; of many only some are listed.
    pub paths: Vec<String>,
    /// How often.
    pub count: u64,
}
