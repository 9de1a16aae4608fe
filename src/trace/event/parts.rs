//! Structs that payloads are composed of.

use serde::{Deserialize, Serialize};

use crate::base::digest::Digest;
use crate::base::id::SessionId;

/// Environment that a session runs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Operating system.
    pub platform: String,
    /// Runtime of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
}

/// Traffic that a wrapper can intercept.
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

/// Reference to an Atlas whose rules applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasRef {
    /// The Atlas.
    pub atlas_id: String,
    /// Digest of its text, under which the store keeps it.
    pub atlas_hash: String,
}

/// Error of a failed action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorDetail {
    /// Machine-readable code.
    pub code: String,
    /// Human-readable message.
    pub message: String,
}

/// A keyword found in input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeywordPosition {
    /// The keyword, as the Atlas has it.
    pub keyword: String,
    /// Unicode scalar values of the input before its first match.
    pub position: u64,
}

/// End of a chain at a point in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedHead {
    /// The session.
    pub session: SessionId,
    /// Number of its events.
    pub count: u64,
    /// Hash of the last event.
    pub hash: Digest,
}

/// Parts that a redaction rule removed from an event before it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redaction {
    /// The rule: its Atlas and its position there.
    pub rule: String,
    /// Paths into the payload; a long list is truncated.
    pub paths: Vec<String>,
    /// Number of removed parts.
    pub count: u64,
}
