//! Parser from text to a tree of nodes with their positions.
//!
//! The YAML of an Atlas is YAML 1.2 with the core schema, without features by which one place of a file affects
//! another: no anchors, aliases, merge keys or tags, one document, no duplicate keys. JSON is YAML, and is read by
//! the same code.

mod builder;
mod scalar;

use serde_json::{Map, Number, Value};

pub(super) use builder::parse;

use super::diagnostic::ByteSpan;

/// A value of the file and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct YamlNode {
    /// Position of the value; for an absent value, the position of its key.
    pub(super) span: ByteSpan,
    /// Content of the node.
    pub(super) value: YamlValue,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlValue {
    /// Null.
    Null,
    /// `true` or `false`; `yes` and `on` are text.
    Bool(bool),
    /// A whole number or a fraction.
    Number(Number),
    /// Text.
    String(String),
    /// A list.
    Seq(Vec<YamlNode>),
    /// A map, in the order written.
    Map(Vec<YamlEntry>),
}

/// One key of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct YamlEntry {
    /// The key.
    pub(super) key: String,
    /// Position of the key.
    pub(super) key_span: ByteSpan,
    /// Value of the key.
    pub(super) node: YamlNode,
}

impl YamlNode {
    /// Returns true for a map with this key.
    pub(super) fn has_key(&self, key: &str) -> bool {
        match &self.value {
            YamlValue::Map(entries) => entries.iter().any(|entry| entry.key == key),
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Number(_)
            | YamlValue::String(_)
            | YamlValue::Seq(_) => false,
        }
    }

    /// Describes the kind of node, for messages.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            YamlValue::Null => "nothing".to_owned(),
            YamlValue::Bool(value) => format!("`{value}`"),
            YamlValue::Number(number) => format!("the number `{number}`"),
            YamlValue::String(_) => "text".to_owned(),
            YamlValue::Seq(_) => "a list".to_owned(),
            YamlValue::Map(_) => "a map".to_owned(),
        }
    }

    /// Returns the node as a word, including `true` and `false`, for readers of enumerated words.
    pub(super) fn word(&self) -> Option<&str> {
        match &self.value {
            YamlValue::String(text) => Some(text),
            YamlValue::Bool(true) => Some("true"),
            YamlValue::Bool(false) => Some("false"),
            YamlValue::Null | YamlValue::Number(_) | YamlValue::Seq(_) | YamlValue::Map(_) => None,
        }
    }

    /// Returns the position of `path`, or of the longest part of it that exists.
    pub(super) fn span_of(&self, path: &str) -> ByteSpan {
        self.resolve_path(path).0
    }

    /// Returns true if `path` exists.
    pub(super) fn has(&self, path: &str) -> bool {
        self.resolve_path(path).1
    }

    /// Follows `path` as far as possible; returns the last position, and true if the whole path exists.
    ///
    /// In a map, an index is the number of the key, because keys chosen by a steward can have any form.
    fn resolve_path(&self, path: &str) -> (ByteSpan, bool) {
        let mut node = self;
        let mut span = self.start_span();
        for segment in path.split(['.', '[']).filter(|segment| !segment.is_empty()) {
            let index = segment.strip_suffix(']');
            let index = index.and_then(|index| index.parse::<usize>().ok());
            let next = match (&node.value, index) {
                (YamlValue::Map(entries), Some(index)) => entries
                    .get(index)
                    .map(|entry| (&entry.node, entry.key_span)),
                (YamlValue::Map(entries), None) => entries
                    .iter()
                    .find(|entry| entry.key == segment)
                    .map(|entry| (&entry.node, entry.node.span)),
                (YamlValue::Seq(items), Some(index)) => {
                    items.get(index).map(|item| (item, item.start_span()))
                }
                (
                    YamlValue::Seq(_)
                    | YamlValue::Null
                    | YamlValue::Bool(_)
                    | YamlValue::Number(_)
                    | YamlValue::String(_),
                    _,
                ) => None,
            };
            let Some(found) = next else {
                return (span, false);
            };
            (node, span) = found;
        }
        (span, true)
    }

    /// Returns the start of the node: for a map, its first key.
    pub(super) fn start_span(&self) -> ByteSpan {
        match &self.value {
            YamlValue::Map(entries) => entries.first().map_or(self.span, |entry| entry.key_span),
            YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Number(_)
            | YamlValue::String(_)
            | YamlValue::Seq(_) => self.span,
        }
    }

    /// Returns the node as JSON. The depth of a tree is limited, so the recursion is, too.
    pub(super) fn to_json(&self) -> Value {
        match &self.value {
            YamlValue::Null => Value::Null,
            YamlValue::Bool(value) => Value::Bool(*value),
            YamlValue::Number(number) => Value::Number(number.clone()),
            YamlValue::String(text) => Value::String(text.clone()),
            YamlValue::Seq(items) => items.iter().map(Self::to_json).collect(),
            YamlValue::Map(entries) => Value::Object(json_map(entries)),
        }
    }
}

/// Returns a map as JSON.
pub(super) fn json_map(entries: &[YamlEntry]) -> Map<String, Value> {
    entries
        .iter()
        .map(|entry| (entry.key.clone(), entry.node.to_json()))
        .collect()
}

#[cfg(test)]
mod tests;
