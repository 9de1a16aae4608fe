//! Paths into JSON: `params.list[2].to`, `["odd key"].x`.

use std::fmt::Write;

use serde_json::{Map, Number, Value};

use crate::base::canonical_json::{is_hidden, is_large};

/// One step of a path.
pub(super) enum JsonPathStep {
    /// A key of an object.
    Key(String),
    /// An item of a list.
    Index(usize),
}

impl JsonPathStep {
    pub(super) fn of(key: &[u8]) -> Self {
        Self::Key(String::from_utf8_lossy(key).into_owned())
    }
}

/// Formats a path for messages and records. Different paths have different texts.
pub(super) fn format_path<'s>(steps: impl Iterator<Item = &'s JsonPathStep>) -> String {
    let mut text = String::new();
    for step in steps {
        push(&mut text, step);
    }
    text
}

fn push(text: &mut String, step: &JsonPathStep) {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    // Writing to a string cannot fail.
    let _ = match step {
        JsonPathStep::Index(index) => write!(text, "[{index}]"),
        JsonPathStep::Key(key) if key.is_empty() || !key.chars().all(plain) => {
            write!(text, "[{}]", Value::from(key.as_str()))
        }
        JsonPathStep::Key(key) if text.is_empty() => write!(text, "{key}"),
        JsonPathStep::Key(key) => write!(text, ".{key}"),
    };
}

/// Returns the paths of the numbers in `value` that canonical JSON writes as strings of their digits. `field` is
/// the key of `value`.
#[must_use]
pub fn paths_of_large_numbers(field: &str, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut steps = vec![JsonPathStep::Key(field.to_owned())];
    collect(value, &mut steps, &mut found);
    found
}

/// Returns the paths as [`paths_of_large_numbers`] does, for an object. With an empty `field`, the paths start with
/// the object's fields.
#[must_use]
pub fn paths_of_large_numbers_in(field: &str, fields: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    let mut steps = Vec::new();
    if !field.is_empty() {
        steps.push(JsonPathStep::Key(field.to_owned()));
    }
    collect_fields(fields, &mut steps, &mut found);
    found
}

/// Writes every number of `value` as text whose canonical text would hide how it was sent (`1.0`, `-0.0`), and gives
/// their paths. `field` is the key that `value` lies under.
pub fn write_hidden_numbers(field: &str, value: &mut Value) -> Vec<String> {
    let mut found = Vec::new();
    write_hidden(
        value,
        &mut vec![JsonPathStep::Key(field.to_owned())],
        &mut found,
    );
    found
}

/// The numbers of `value` that were recorded as text, as numbers again. `paths` are theirs.
#[must_use]
pub fn with_numbers(field: &str, mut value: Value, paths: &[&str]) -> Value {
    if !paths.is_empty() {
        read_numbers(
            &mut value,
            &mut vec![JsonPathStep::Key(field.to_owned())],
            paths,
        );
    }
    value
}

fn write_hidden(value: &mut Value, steps: &mut Vec<JsonPathStep>, found: &mut Vec<String>) {
    match value {
        Value::Number(number) if is_hidden(number) => {
            found.push(format_path(steps.iter()));
            *value = Value::String(number.to_string());
        }
        _ => each_part(value, steps, &mut |part, steps| {
            write_hidden(part, steps, found);
        }),
    }
}

fn read_numbers(value: &mut Value, steps: &mut Vec<JsonPathStep>, paths: &[&str]) {
    match value {
        Value::String(text) if paths.contains(&format_path(steps.iter()).as_str()) => {
            if let Ok(number) = serde_json::from_str::<Number>(text) {
                *value = Value::Number(number);
            }
        }
        _ => each_part(value, steps, &mut |part, steps| {
            read_numbers(part, steps, paths);
        }),
    }
}

/// Goes through the parts of a list or an object, each with its path.
fn each_part(
    value: &mut Value,
    steps: &mut Vec<JsonPathStep>,
    visit: &mut dyn FnMut(&mut Value, &mut Vec<JsonPathStep>),
) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                steps.push(JsonPathStep::Index(index));
                visit(item, steps);
                steps.pop();
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                steps.push(JsonPathStep::Key(key.clone()));
                visit(field, steps);
                steps.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn collect(value: &Value, steps: &mut Vec<JsonPathStep>, found: &mut Vec<String>) {
    match value {
        Value::Number(number) if is_large(number) => found.push(format_path(steps.iter())),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                steps.push(JsonPathStep::Index(index));
                collect(item, steps, found);
                steps.pop();
            }
        }
        Value::Object(fields) => collect_fields(fields, steps, found),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn collect_fields(
    fields: &Map<String, Value>,
    steps: &mut Vec<JsonPathStep>,
    found: &mut Vec<String>,
) {
    for (key, field) in fields {
        steps.push(JsonPathStep::Key(key.clone()));
        collect(field, steps, found);
        steps.pop();
    }
}
