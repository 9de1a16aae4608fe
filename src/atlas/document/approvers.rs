//! How many operators a gate wants.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// How many operators have to let a request pass, each of them another one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u64", into = "u64")]
pub enum Approvers {
    /// One is enough.
    #[default]
    One,
    /// Two different ones.
    Two,
}

impl Approvers {
    /// What is said where another number is written.
    pub const HELP: &'static str = "write `1`, or `2` for two different operators";

    /// The number.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// Whether it is what holds where nothing is written.
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
            other => Err(format!("`{other}` approvers cannot be asked for")),
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
            "description": "How many operators have to let a request pass, each of them another one.",
            "type": "integer",
            "enum": [1, 2],
        })
    }
}
