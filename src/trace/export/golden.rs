//! Golden traces: the decisions of a session without values that differ from run to run.
//!
//! Identifiers, hashes and times are replaced by numbered placeholders: `session-1`, `span-2`,
//! `gate-1`, `id-3`, `hash-1`, `time`. Two sessions with the same requests and decisions therefore give
//! the same bytes, so a regression test of an Atlas compares two files. A golden trace proves nothing;
//! only JSON Lines can be verified.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::base::canonical_json::canonical;
use crate::base::clock::TimestampText;
use crate::trace::event::{Event, canonical_type};

/// Field that holds a measured duration.
const DURATION_FIELD: &str = "duration_ms";

/// Fields that describe the machine and the program version.
const ENVIRONMENT_FIELDS: [&str; 3] = ["wrapper_version", "platform", "runtime"];

/// Fields that depend on earlier runs, not on decisions.
const INCIDENTAL_FIELDS: [&str; 1] = ["cache_hit"];

/// Place where the events of a session were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This record.
    Recorded,
    /// Another record, from which they were imported.
    Imported,
}

/// The names that were given so far.
#[derive(Debug, Default)]
pub struct GoldenWriter {
    names: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, u64>,
}

impl GoldenWriter {
    /// Writes one event of a session as a line. One of an imported session says so.
    ///
    /// # Errors
    /// When the writer takes no more.
    pub fn write_event(
        &mut self,
        out: &mut impl fmt::Write,
        event: &Event,
        origin: Origin,
    ) -> fmt::Result {
        let session = self.placeholder("session", event.session_id.as_str());
        let span = self.placeholder("span", event.span_id.as_str());
        let parent = event.parent_span_id.as_ref();
        let parent = parent.map(|parent| self.placeholder("span", parent.as_str()));
        let operation = self.placeholder("trace", event.trace_id.as_str());
        let details = event.payload.iter();
        let details = details.filter(|(name, _)| !INCIDENTAL_FIELDS.contains(&name.as_str()));
        let details =
            details.map(|(name, value)| (name.clone(), self.replace_in_value(name, value)));
        let details: Map<String, Value> = details.collect();
        let mut line = json!({
            "session": session,
            "sequence": event.sequence,
            "type": canonical_type(&event.event_type),
            "trace": operation,
            "span": span,
            "parent": parent,
            "details": details,
        });
        if let (Origin::Imported, Some(fields)) = (origin, line.as_object_mut()) {
            fields.insert("imported".to_owned(), json!(true));
        }
        writeln!(out, "{}", canonical(&line))
    }

    fn replace_in_value(&mut self, name: &str, value: &Value) -> Value {
        match value {
            Value::Number(_) if name == DURATION_FIELD => json!(0),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(_) if ENVIRONMENT_FIELDS.contains(&name) => json!(name),
            Value::String(text) => Value::String(self.replace_in_text(text)),
            Value::Array(items) => items
                .iter()
                .map(|item| self.replace_in_value(name, item))
                .collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                let fields =
                    fields.map(|(name, value)| (name.clone(), self.replace_in_value(name, value)));
                Value::Object(fields.collect())
            }
        }
    }

    /// Replaces every word of a text that differs from run to run.
    fn replace_in_text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(begin) = rest.find(is_part) {
            let (before, word) = rest.split_at(begin);
            let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
            let (word, after) = word.split_at(end);
            // A sentence may end after the word.
            let bare = word.trim_end_matches(['.', ':', '-']);
            out.push_str(before);
            match self.replacement(bare) {
                Some(name) => {
                    out.push_str(&name);
                    out.push_str(word.strip_prefix(bare).unwrap_or_default());
                }
                None => out.push_str(word),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn replacement(&mut self, word: &str) -> Option<String> {
        if let Some(name) = self.names.get(word) {
            return Some(name.clone());
        }
        if TimestampText::parse(word).is_some() {
            return Some("time".to_owned());
        }
        let kind = placeholder_kind(word)?;
        Some(self.placeholder(kind, word))
    }

    fn placeholder(&mut self, kind: &'static str, id: &str) -> String {
        if let Some(name) = self.names.get(id) {
            return name.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let name = format!("{kind}-{count}");
        self.names.insert(id.to_owned(), name.clone());
        name
    }
}

/// True for a character that can be part of an identifier or a time.
fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '_')
}

/// Kind of placeholder for a word, if the word looks like a value that differs from run to run.
fn placeholder_kind(word: &str) -> Option<&'static str> {
    let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if word.len() == 64 && hex(word) {
        return Some("hash");
    }
    let groups: Vec<&str> = word.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| hex(group)) {
        return Some("id");
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match groups.as_slice() {
        ["c", number] if digits(number) => Some("gate"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_specific_words_are_replaced_and_others_stay() {
        let mut golden = GoldenWriter::default();
        let hash = "a1".repeat(32);
        let text = format!(
            "c-12 was denied, see c-12. Not c-x, not 12; {hash} at 2026-01-01T00:00:00.000000Z \
             under 123e4567-e89b-12d3-a456-426614174000: c-13"
        );
        assert_eq!(
            golden.replace_in_text(&text),
            "gate-1 was denied, see gate-1. Not c-x, not 12; hash-1 at time under id-1: gate-2"
        );
        assert_eq!(
            golden.replace_in_text("日本 c-13"),
            "日本 gate-2",
            "as before"
        );
    }

    #[test]
    fn only_measured_durations_are_zeroed() {
        let mut golden = GoldenWriter::default();
        let value = json!({"duration_ms": 812, "priority": 900, "list": [1, "c-1"]});
        let wanted = json!({"duration_ms": 0, "priority": 900, "list": [1, "gate-1"]});
        assert_eq!(golden.replace_in_value("", &value), wanted);
    }
}
