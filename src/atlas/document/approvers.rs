//! The number of operators that must approve at a gate.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The number of different operators that must approve a request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u64", into = "u64")]
pub enum Approvers {
    /// One operator.
    #[default]
    One,
    /// Two different operators.
    Two,
}

impl Approvers {
    /// Advice for a manifest with another number.
    pub const HELP: &'static str = "write `1`, or `2` for two different operators";

    /// Returns the number of operators.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// Returns true for the default, one operator.
    #[must_use]
    pub fn is_one(&self) -> bool {
        *self == Self::One
    }
}

impl TryFrom<u64> for Approvers {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        match number {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            other => Err(format!("`approvers` must be 1 or 2, not `{other}`")),
        }
    }
}

impl From<Approvers> for u64 {
    fn from(approvers: Approvers) -> Self {
        approvers.count()
    }
}

impl JsonSchema for Approvers {
    fn schema_name() -> Cow<'static, str> {
        "Approvers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Number of different operators that must approve the request.",
            "type": "integer",
            "enum": [1, 2],
        })
    }
}
