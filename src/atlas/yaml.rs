//! Parser from text to a tree of nodes with their positions.
//!
//! The YAML of an Atlas is YAML 1.2 with the core schema, without features by which one place of a file affects
//! another: no anchors, aliases, merge keys or tags, one document, no duplicate keys. JSON is YAML, and is read by
//! the same code.

mod builder;
mod scalar;

use serde_json::{Map, Number, Value};

pub(super) use builder::parse;

use super::diagnostic::Span;

/// A value of the file and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Position of the value; for an absent value, the position of its key.
    pub(super) span: Span,
    /// Content of the node.
    pub(super) value: NodeValue,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeValue {
    /// Null.
    Null,
    /// `true` or `false`; `yes` and `on` are text.
    Bool(bool),
    /// A whole number or a fraction.
    Number(Number),
    /// Text.
    String(String),
    /// A list.
    Seq(Vec<Node>),
    /// A map, in the order written.
    Map(Vec<Entry>),
}

/// One key of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The key.
    pub(super) key: String,
    /// Position of the key.
    pub(super) key_span: Span,
    /// Value of the key.
    pub(super) node: Node,
}

impl Node {
    /// Returns true for a map with this key.
    pub(super) fn has_key(&self, key: &str) -> bool {
        match &self.value {
            NodeValue::Map(entries) => entries.iter().any(|entry| entry.key == key),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::String(_)
            | NodeValue::Seq(_) => false,
        }
    }

    /// Describes the kind of node, for messages.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            NodeValue::Null => "nothing".to_owned(),
            NodeValue::Bool(value) => format!("`{value}`"),
            NodeValue::Number(number) => format!("the number `{number}`"),
            NodeValue::String(_) => "text".to_owned(),
            NodeValue::Seq(_) => "a list".to_owned(),
            NodeValue::Map(_) => "a map".to_owned(),
        }
    }

    /// Returns the node as a word, including `true` and `false`, for readers of enumerated words.
    pub(super) fn word(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(text),
            NodeValue::Bool(true) => Some("true"),
            NodeValue::Bool(false) => Some("false"),
            NodeValue::Null | NodeValue::Number(_) | NodeValue::Seq(_) | NodeValue::Map(_) => None,
        }
    }

    /// Returns the position of `path`, or of the longest part of it that exists.
    pub(super) fn span_of(&self, path: &str) -> Span {
        self.follow(path).0
    }

    /// Returns true if `path` exists.
    pub(super) fn has(&self, path: &str) -> bool {
        self.follow(path).1
    }

    /// Follows `path` as far as possible; returns the last position, and true if the whole path exists.
    ///
    /// In a map, an index is the number of the key, because keys chosen by a steward can have any form.
    fn follow(&self, path: &str) -> (Span, bool) {
        let mut node = self;
        let mut span = self.head();
        for segment in path.split(['.', '[']).filter(|segment| !segment.is_empty()) {
            let index = segment.strip_suffix(']');
            let index = index.and_then(|index| index.parse::<usize>().ok());
            let next = match (&node.value, index) {
                (NodeValue::Map(entries), Some(index)) => entries
                    .get(index)
                    .map(|entry| (&entry.node, entry.key_span)),
                (NodeValue::Map(entries), None) => entries
                    .iter()
                    .find(|entry| entry.key == segment)
                    .map(|entry| (&entry.node, entry.node.span)),
                (NodeValue::Seq(items), Some(index)) => {
                    items.get(index).map(|item| (item, item.head()))
                }
                (
                    NodeValue::Seq(_)
                    | NodeValue::Null
                    | NodeValue::Bool(_)
                    | NodeValue::Number(_)
                    | NodeValue::String(_),
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
    pub(super) fn head(&self) -> Span {
        match &self.value {
            NodeValue::Map(entries) => entries.first().map_or(self.span, |entry| entry.key_span),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::String(_)
            | NodeValue::Seq(_) => self.span,
        }
    }

    /// Returns the node as JSON. The depth of a tree is limited, so the recursion is, too.
    pub(super) fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(number) => Value::Number(number.clone()),
            NodeValue::String(text) => Value::String(text.clone()),
            NodeValue::Seq(items) => items.iter().map(Self::to_json).collect(),
            NodeValue::Map(entries) => Value::Object(json_map(entries)),
        }
    }
}

/// Returns a map as JSON.
pub(super) fn json_map(entries: &[Entry]) -> Map<String, Value> {
    entries
        .iter()
        .map(|entry| (entry.key.clone(), entry.node.to_json()))
        .collect()
}

#[cfg(test)]
mod tests;
