//! Stop conditions of a replay.

use std::str::FromStr;

use serde_json::Value;

use crate::base::pattern::Pattern;
use crate::trace::details::Details;
use crate::trace::event::{Event, canonical_type};

/// Condition at which a replay stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopCondition {
    /// Events of a type.
    Type(Pattern),
    /// Events of a checkpoint.
    Checkpoint(Pattern),
    /// Events of an action.
    Action(Pattern),
    /// Events with this text in a name or value of their details, case-insensitive.
    Text(String),
}

/// Reason why a text is not a stop condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a stop condition: use type=PATTERN, checkpoint=ID, action=PATTERN or text=TEXT"
)]
pub struct StopConditionError {
    text: String,
}

impl StopCondition {
    /// True if a replay stops at this event.
    #[must_use]
    pub fn stops_at(&self, event: &Event) -> bool {
        let named = |name: &str, pattern: &Pattern| {
            let text = Details::of(event).text(name);
            text.is_some_and(|text| pattern.matches(text))
        };
        match self {
            Self::Type(pattern) => {
                pattern.matches(&event.event_type)
                    || pattern.matches(canonical_type(&event.event_type))
            }
            Self::Checkpoint(pattern) => named("checkpoint_id", pattern),
            Self::Action(pattern) => {
                named("action_type", pattern) || named("blocked_action", pattern)
            }
            Self::Text(wanted) => event
                .payload
                .iter()
                .any(|(name, value)| contains_text(name, wanted) || value_contains(value, wanted)),
        }
    }
}

impl FromStr for StopCondition {
    type Err = StopConditionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || StopConditionError {
            text: crate::base::text::one_line(&text.chars().take(64).collect::<String>()),
        };
        let (kind, what) = text.split_once('=').ok_or_else(wrong)?;
        if what.is_empty() {
            return Err(wrong());
        }
        match kind {
            "type" => Ok(Self::Type(Pattern::new(what))),
            "checkpoint" => Ok(Self::Checkpoint(Pattern::new(what))),
            "action" => Ok(Self::Action(Pattern::new(what))),
            "text" => Ok(Self::Text(what.to_lowercase())),
            _ => Err(wrong()),
        }
    }
}

/// True if a value, or any value inside it, contains the text. Depth is bounded: the JSON parser
/// accepts at most 128 levels.
fn value_contains(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => flag.to_string() == wanted,
        Value::Number(number) => number.to_string() == wanted,
        Value::String(text) => contains_text(text, wanted),
        Value::Array(items) => items.iter().any(|item| value_contains(item, wanted)),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, field)| contains_text(name, wanted) || value_contains(field, wanted)),
    }
}

fn contains_text(text: &str, wanted: &str) -> bool {
    text.to_lowercase().contains(wanted)
}
