//! Text to a tree of nodes that know their places.
//!
//! The YAML of an Atlas is YAML 1.2 with the core schema and nothing that lets one place of a file
//! speak for another: no anchors, aliases, merge keys or tags, one document, no key twice. JSON is
//! YAML, and is read by the same code.

mod builder;
mod scalar;

use serde_json::{Map, Number, Value};

pub(super) use builder::parse;

use super::diagnostic::Span;

/// A value of the file, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Where it stands; for an absent value, where its key does.
    pub(super) span: Span,
    /// What it is.
    pub(super) value: NodeValue,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeValue {
    /// Nothing.
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
    /// Where the key stands.
    pub(super) key_span: Span,
    /// Its value.
    pub(super) node: Node,
}

impl Node {
    /// Whether it is a map with this key.
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

    /// What the node is, for messages.
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

    /// The word a node is, where a word out of a few is wanted. `true` and `false` are words too.
    pub(super) fn word(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(text),
            NodeValue::Bool(true) => Some("true"),
            NodeValue::Bool(false) => Some("false"),
            NodeValue::Null | NodeValue::Number(_) | NodeValue::Seq(_) | NodeValue::Map(_) => None,
        }
    }

    /// The place of what `path` names, or of the nearest part of it that exists.
    pub(super) fn span_of(&self, path: &str) -> Span {
        self.follow(path).0
    }

    /// Whether there is something that `path` names.
    pub(super) fn has(&self, path: &str) -> bool {
        self.follow(path).1
    }

    /// As far as `path` leads, and whether that is all the way. In a map, an index is the key of
    /// that number: keys that a steward chooses may look like anything.
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

    /// Where the node begins to be seen: a map's first key stands for all of it.
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

    /// The node as JSON. The depth of a tree is limited, so the recursion is too.
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

/// A map as JSON.
pub(super) fn json_map(entries: &[Entry]) -> Map<String, Value> {
    entries
        .iter()
        .map(|entry| (entry.key.clone(), entry.node.to_json()))
        .collect()
}

#[cfg(test)]
mod tests;
