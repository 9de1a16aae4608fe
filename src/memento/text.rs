//! Bounded texts, and times in the format of other programs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::limits::MAX_MEMENTO_NAME;

/// A text of 1 to `MAX` characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BoundedText<const MAX: usize>(String);

/// An external name of a memento, a thread or a message.
pub type ExternalName = BoundedText<MAX_MEMENTO_NAME>;

impl<const MAX: usize> BoundedText<MAX> {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Cuts a text to the maximum length; returns `None` for an empty text.
    #[must_use]
    pub fn cut(text: &str) -> Option<Self> {
        let cut: String = text.chars().take(MAX).collect();
        Self::try_from(cut).ok()
    }

    /// Returns the placeholder for a missing text.
    #[must_use]
    pub(super) fn placeholder() -> Self {
        Self("-".to_owned())
    }
}

impl<const MAX: usize> TryFrom<String> for BoundedText<MAX> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let length = text.chars().count();
        if (1..=MAX).contains(&length) {
            return Ok(Self(text));
        }
        Err(match length {
            0 => "is empty".to_owned(),
            _ => format!("has {length} characters, and at most {MAX} are allowed"),
        })
    }
}

impl<const MAX: usize> std::str::FromStr for BoundedText<MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl<const MAX: usize> From<BoundedText<MAX>> for String {
    fn from(text: BoundedText<MAX>) -> Self {
        text.0
    }
}

impl<const MAX: usize> fmt::Display for BoundedText<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A moment as ISO 8601 in UTC, with the precision of its author: `2026-01-31T23:59:59Z`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Datetime {
    text: String,
    at: Timestamp,
}

impl Datetime {
    /// Returns the moment.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.at
    }
}

impl From<Timestamp> for Datetime {
    fn from(at: Timestamp) -> Self {
        Self {
            text: at.to_string(),
            at,
        }
    }
}

impl TryFrom<String> for Datetime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let read = chrono::DateTime::parse_from_rfc3339(&text).ok();
        let read = read.filter(|_| text.ends_with('Z') && text.contains('T'));
        let read = read.ok_or("must be a time of the form 2026-01-31T23:59:59Z")?;
        Ok(Self {
            at: Timestamp::from_micros(read.timestamp_micros()),
            text,
        })
    }
}

impl From<Datetime> for String {
    fn from(datetime: Datetime) -> Self {
        datetime.text
    }
}
