//! Expected events of a step, with fields, in order.

use serde_json::{Map, Value};

use crate::atlas::diagnostic::Code;
use crate::atlas::located_values::{FileProblems, LocatedValue};
use crate::trace::event::Payload;

/// An expected event, with the fields that it must have at least.
pub(in crate::cli::run) struct ExpectedRecord {
    pub(in crate::cli::run) event_type: &'static str,
    pub(in crate::cli::run) fields: Map<String, Value>,
}

impl ExpectedRecord {
    /// True if an event of this type with these fields matches.
    pub(in crate::cli::run) fn matches(
        &self,
        event_type: &str,
        fields: &Map<String, Value>,
    ) -> bool {
        let wanted = &self.fields;
        event_type == self.event_type && contains_all(fields, wanted)
    }

    /// Formats the event as a scenario writes it.
    pub(in crate::cli::run) fn describe(&self) -> String {
        if self.fields.is_empty() {
            return self.event_type.to_owned();
        }
        format!("{} {}", self.event_type, Value::Object(self.fields.clone()))
    }
}

/// Parses `recorded`: a list of event types, each alone or as a map of its type to its fields.
pub(super) fn read(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Vec<ExpectedRecord> {
    let Some(recorded) = value.get("recorded") else {
        return Vec::new();
    };
    let items = recorded.items(faults);
    items.iter().filter_map(|item| one(item, faults)).collect()
}

fn one(item: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<ExpectedRecord> {
    let Value::Object(map) = item.json() else {
        let event_type = item.word("event type", Payload::TYPES, faults)?;
        return Some(ExpectedRecord {
            event_type,
            fields: Map::new(),
        });
    };
    item.reject_unknown_keys(Payload::TYPES, faults);
    let mut known = Payload::TYPES
        .iter()
        .filter(|name| map.contains_key(**name));
    let (Some(event_type), 1) = (known.next(), map.len()) else {
        let message = "expected one event type with its fields";
        item.report(Code::WrongType, message, faults);
        return None;
    };
    let fields = item.get(event_type)?;
    fields.reject_unknown_keys(Payload::field_names(event_type), faults);
    match fields.json() {
        Value::Object(fields) => Some(ExpectedRecord { event_type, fields }),
        _ => None,
    }
}

/// True if `fields` contains everything in `wanted`. Nested maps need only contain the wanted keys.
pub(in crate::cli::run) fn contains_all(
    fields: &Map<String, Value>,
    wanted: &Map<String, Value>,
) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|(key, wanted)| match (fields.get(key), wanted) {
        (None, Value::Null) => true,
        (None, _) => false,
        (Some(actual), wanted) => fits(actual, wanted),
    })
}

fn fits(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => contains_all(actual, wanted),
        (Value::Array(actual), Value::Array(wanted)) => {
            actual.len() == wanted.len()
                && actual
                    .iter()
                    .zip(wanted)
                    .all(|(actual, wanted)| fits(actual, wanted))
        }
        (actual, wanted) => actual == wanted,
    }
}
