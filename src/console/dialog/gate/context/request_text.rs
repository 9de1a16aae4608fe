//! Text of a request: exactly what will run, and the data that a decision is bound to.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::base::text::{LineFeeds, is_deceptive, one_line, sanitize};
use crate::console::names::{action_words, trigger_words};
use crate::console::text_cells::counted;
use crate::engine::held::{Held, HeldSubject, HeldText};

/// Maximum length of the form with one row per value. Deep nesting makes that form many times longer
/// than the request.
const MOST_PRETTY_BYTES: usize = 64 * 1024 * 1024;

/// Text such as `! 1 hidden character written out`.
pub(crate) fn hidden_chars_text(count: usize) -> String {
    format!("! {} written out", counted(count, "hidden character"))
}

/// Returns the request as it will run, and its number of hidden characters.
pub(crate) fn request_text(held: &Held) -> (String, usize) {
    match &held.subject {
        HeldSubject::SessionStart => (action_words(held), 0),
        HeldSubject::Moment(moment) => {
            let (request, hidden) = shown(&moment.label, &moment.data);
            match &moment.text {
                Some(text) => with_text(&request, hidden, text),
                None => (request, hidden),
            }
        }
        HeldSubject::Action(call) => shown(&call.action, &call.params),
    }
}

/// Puts the text of a request in front of its data: the operator decides about the text.
fn with_text(request: &str, hidden: usize, text: &HeldText) -> (String, usize) {
    let (name, data) = request.split_once('\n').unwrap_or((request, ""));
    // Each line is prefixed, so that no line of the text can imitate one of the console.
    let words = sanitize(&text.text, LineFeeds::Keep).text;
    let words: Vec<_> = words.split('\n').map(|line| format!("| {line}")).collect();
    let words = words.join("\n");
    let missing = match text.missing_bytes() {
        0 => String::new(),
        bytes => format!("\n! {bytes} more bytes are not shown"),
    };
    let request = format!("{name}\n{words}{missing}\n{data}");
    (request, hidden + hidden_in(&text.text))
}

fn shown(name: &str, value: &Value) -> (String, usize) {
    // JSON already escapes control characters; other hidden characters are escaped here.
    let text = sanitize(&pretty(value), LineFeeds::Keep).text;
    let hidden = hidden_in(name) + hidden_in_value(value);
    (format!("{}\n{text}", one_line(name)), hidden)
}

/// Formats JSON with one row per value, or all in one line if that would be too long.
fn pretty(value: &Value) -> String {
    struct LimitedBuffer(Vec<u8>);
    impl Write for LimitedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > MOST_PRETTY_BYTES {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut room = LimitedBuffer(Vec::new());
    let mut writer = serde_json::Serializer::pretty(&mut room);
    match value.serialize(&mut writer) {
        Ok(()) => String::from_utf8(room.0).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}

fn hidden_in(text: &str) -> usize {
    let hidden = |c: &char| is_deceptive(*c) && !matches!(c, '\n' | '\r' | '\t');
    text.chars().filter(hidden).count()
}

fn hidden_in_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => hidden_in(text),
        Value::Array(items) => items.iter().map(hidden_in_value).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| hidden_in(name) + hidden_in_value(value))
            .sum(),
    }
}

/// Describes all data that a decision is bound to, line by line: the request, its risk, the Atlas, and
/// the questions of every gate.
pub(crate) fn describe(held: &Held) -> String {
    let mut text = request_text(held).0;
    let mut add = |line: String| {
        text.push('\n');
        text.push_str(&sanitize(&line, LineFeeds::Keep).text);
    };
    add(format!("request {}", held.request_hash));
    add(format!("atlas   {}", held.atlas_hash));
    add(format!("tier    {}", held.tier().as_str()));
    for (at, gate) in held.gates.iter().enumerate() {
        let id = gate.name();
        let kind = trigger_words(gate.origin.kind());
        add(format!("gate {id} ({kind}): {}", gate.why));
        if let Some(answers) = held.answered.get(&at) {
            add(format!(
                "  answered by the agent: {}",
                Value::Object(answers.clone())
            ));
        }
        for question in &gate.questions {
            let asked = serde_json::to_string(question).unwrap_or_default();
            add(format!("  asks {asked}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json;

    #[test]
    fn numbers_of_a_request_are_shown_exactly() {
        let text = "{\n  \"a\": 18446744073709551615,\n  \"b\": \"9007199254740993\",\n  \"c\": 9007199254740993,\n  \
                    \"d\": 1.0,\n  \"e\": -0.0,\n  \"f\": 0.1\n}";
        let value: Value = json::read(text.as_bytes()).unwrap();
        assert_eq!(shown("pay", &value).0, format!("pay\n{text}"));
    }
}
