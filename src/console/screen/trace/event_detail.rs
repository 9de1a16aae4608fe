//! One full event: its envelope, its hashes, and its payload as foldable JSON.
//!
//! Contract: only unfolded values are laid out, at most [`MOST_LINES`] lines, and only after a key changed
//! the layout, however large the event is. A line reports the number of values left out.

use std::collections::BTreeSet;

use serde_json::Value;

use super::reads::{FullEvent, HashProof};
use crate::base::text::{one_line, sanitize};
use crate::console::keymap::Motion;
use crate::console::names::{event_field_words, event_words, value_words};
use crate::console::text_cells::{break_exactly, counted};
use crate::trace::event::Payload;
use crate::trace::jsonl;
use crate::trace::outline::FoldState;

/// Maximum number of lines laid out for an event.
const MOST_LINES: usize = 5_000;

/// Maximum bytes of a text that are laid out. A line reports the rest. Copy and export include it.
const MOST_TEXT: usize = 64 * 1024;

/// Maximum length of a text shown on one line while folded.
const MAX_FOLDED_CHARS: usize = 400;

/// One line of the layout.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventLine {
    pub(super) depth: usize,
    pub(super) label: String,
    /// Value, safe to show.
    pub(super) value: String,
    pub(super) fold: Option<FoldState>,
    pub(super) proof: Option<HashProof>,
    /// Path for display: `.payload.items[3]`.
    pub(super) path: String,
    /// JSON pointer below the payload.
    pointer: Option<String>,
}

/// Form in which an event is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum EventForm {
    /// Words for its type and its fields.
    #[default]
    Words,
    /// Names as they are recorded.
    Raw,
}

/// View state of one event.
#[derive(Debug, Default)]
pub(super) struct EventDetail {
    lines: Vec<EventLine>,
    pub(super) form: EventForm,
    /// Paths whose fold state differs from the default.
    toggled: BTreeSet<String>,
    pub(super) at: usize,
    /// Width of a line in cells.
    cells: usize,
    /// Number of deceptive characters that were escaped.
    pub(super) escaped: usize,
}

impl EventDetail {
    pub(super) fn lines(&self) -> &[EventLine] {
        &self.lines
    }

    pub(super) fn line(&self) -> Option<&EventLine> {
        self.lines.get(self.at)
    }

    /// Shows another event.
    pub(super) fn open(&mut self, full_event: &FullEvent) {
        self.toggled.clear();
        self.at = 0;
        self.lay_out(full_event);
    }

    /// Sets the width of a line. Returns true if it changed.
    pub(super) fn set_cells(&mut self, cells: usize) -> bool {
        let news = self.cells != cells;
        self.cells = cells;
        news
    }

    pub(super) fn move_cursor(&mut self, motion: Motion) {
        self.at = motion.target_row(self.at, self.lines.len());
    }

    /// Opens or closes a fold. Closing an element that is closed or has no fold selects its parent.
    pub(super) fn fold(&mut self, full_event: &FullEvent, fold: FoldState) {
        let Some(line) = self.line().cloned() else {
            return;
        };
        match line.fold {
            Some(now) if now != fold => {
                if !self.toggled.remove(&line.path) {
                    self.toggled.insert(line.path);
                }
                self.lay_out(full_event);
            }
            Some(_) | None => {
                if fold == FoldState::Closed {
                    let mut above = self.lines.iter().take(self.at);
                    let above = above.rposition(|above| above.depth < line.depth);
                    self.at = above.unwrap_or(self.at);
                }
            }
        }
    }

    /// Returns the value of the selected line as JSON, or its text.
    pub(super) fn value(&self, full_event: &FullEvent) -> Option<String> {
        let line = self.line()?;
        let Some(pointer) = &line.pointer else {
            return Some(match line.path.as_str() {
                ".hash" => full_event.event.hash.to_string(),
                ".previous_hash" => full_event.event.previous_hash.to_string(),
                _ => line.value.clone(),
            });
        };
        if pointer.is_empty() {
            return serde_json::to_string(&full_event.event.payload).ok();
        }
        let value = at_pointer(full_event, pointer)?;
        Some(match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    pub(super) fn lay_out(&mut self, full_event: &FullEvent) {
        let event = &full_event.event;
        let mut page = EventLayout {
            lines: Vec::new(),
            toggled: &self.toggled,
            form: self.form,
            event_type: &event.event_type,
            cells: self.cells.max(20),
            left_out: 0,
            escaped: 0,
        };
        let parent = event.parent_span_id.as_ref();
        page.push_field("seq", "sequence", &event.sequence.to_string());
        let event_type = match self.form {
            EventForm::Words => event_words(&event.event_type),
            EventForm::Raw => event.event_type.clone(),
        };
        page.push_field("type", "event_type", &event_type);
        page.push_field("time", "timestamp", &event.timestamp.to_string());
        page.push_field("span", "span_id", event.span_id.as_str());
        let parent = parent.map_or("none", |id| id.as_str());
        page.push_field("parent", "parent_span_id", parent);
        page.push_field("trace", "trace_id", event.trace_id.as_str());
        page.push_field("event", "event_id", event.event_id.as_str());
        page.push_hash(
            "previous",
            ".previous_hash",
            &event.previous_hash.short(16),
            &full_event.link,
        );
        page.push_hash("hash", ".hash", &event.hash.short(16), &full_event.own);
        page.payload(full_event);
        if page.left_out > 0 {
            let words = format!(
                "{} not shown: y copies, E exports",
                counted(page.left_out, "value")
            );
            page.push_note(0, &words, ".payload");
        }
        self.escaped = page.escaped;
        self.lines = page.lines;
        self.at = self.at.min(self.lines.len().saturating_sub(1));
    }
}

/// Returns the event as one line of JSON, in the form of an export.
pub(super) fn as_json(full_event: &FullEvent) -> String {
    jsonl::format_line(&full_event.event)
}

fn at_pointer<'w>(full_event: &'w FullEvent, pointer: &str) -> Option<&'w Value> {
    let inside = pointer.strip_prefix('/')?;
    let (first, rest) = inside.split_once('/').unwrap_or((inside, ""));
    let value = full_event.event.payload.get(&unescape(first))?;
    if rest.is_empty() {
        return Some(value);
    }
    value.pointer(&format!("/{rest}"))
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Layout in progress.
struct EventLayout<'t> {
    lines: Vec<EventLine>,
    toggled: &'t BTreeSet<String>,
    form: EventForm,
    event_type: &'t str,
    cells: usize,
    left_out: usize,
    escaped: usize,
}

/// Location of a value.
struct ValueLocation {
    depth: usize,
    /// Depth up to which names are fields of the record. Deeper names were written by the agent or the steward.
    record_depth: usize,
    label: String,
    path: String,
    pointer: String,
}

/// Returns the depth up to which the names below a field are fields of the record. It is 0 for a field that a steward
/// registered.
fn record_depth(event_type: &str, field: &str) -> usize {
    match field {
        _ if !Payload::field_names(event_type).contains(&field) => 0,
        // The agent, the operator or a plugin wrote the names below these fields.
        "action_params" | "answers" | "data" | "metadata" => 1,
        "trigger_data" => 2,
        _ => usize::MAX,
    }
}

impl EventLayout<'_> {
    fn push_field(&mut self, label: &str, name: &str, value: &str) {
        let value = self.escape(value);
        self.push(0, label, &value, None, &format!(".{name}"), None);
    }

    fn push_hash(&mut self, label: &str, path: &str, value: &str, proof: &HashProof) {
        self.push(0, label, value, None, path, None);
        if let Some(line) = self.lines.last_mut() {
            line.proof = Some(proof.clone());
        }
    }

    fn push(
        &mut self,
        depth: usize,
        label: &str,
        value: &str,
        fold: Option<FoldState>,
        path: &str,
        pointer: Option<&str>,
    ) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        self.lines.push(EventLine {
            depth,
            label: label.to_owned(),
            value: value.to_owned(),
            fold,
            proof: None,
            path: path.to_owned(),
            pointer: pointer.map(str::to_owned),
        });
    }

    /// Returns true if no more lines fit.
    fn is_full(&self) -> bool {
        self.lines.len() >= MOST_LINES
    }

    /// Adds a line that must appear even if the layout is full.
    fn push_note(&mut self, depth: usize, words: &str, path: &str) {
        self.lines.push(EventLine {
            depth,
            label: String::new(),
            value: words.to_owned(),
            fold: None,
            proof: None,
            path: path.to_owned(),
            pointer: None,
        });
    }

    /// Clips foreign text and escapes its hidden characters.
    fn escape(&mut self, text: &str) -> String {
        let cut: String = text.chars().take(MAX_FOLDED_CHARS).collect();
        let shown = sanitize(&cut, crate::base::text::LineFeeds::Escape);
        self.escaped += shown.escaped;
        shown.text
    }

    fn payload(&mut self, full_event: &FullEvent) {
        let payload = &full_event.event.payload;
        if full_event.event.pruned {
            let words = "deleted because of age; the hash still covers it";
            self.push(0, "payload", words, None, ".payload", None);
            return;
        }
        let keys = format!("{{{}}}", counted(payload.len(), "key"));
        let fold = self.fold_of(".payload", FoldState::Open);
        self.push(0, "payload", &keys, Some(fold), ".payload", Some(""));
        if fold == FoldState::Open {
            for (name, value) in payload {
                let mut place = ValueLocation::named(1, name, ".payload", "");
                place.record_depth = record_depth(self.event_type, name);
                match (self.form, value) {
                    (EventForm::Raw, _) => self.value(value, &place),
                    (EventForm::Words, value) => {
                        place.label = event_field_words(self.event_type, name);
                        self.field(name, value, &place);
                    }
                }
            }
        }
    }

    /// Adds a field of the record, with a value from a fixed list in words.
    fn field(&mut self, name: &str, value: &Value, place: &ValueLocation) {
        let is_built_in = place.record_depth > 0;
        let words = value.as_str().filter(|_| is_built_in);
        match words.and_then(|text| value_words(name, text)) {
            Some(words) => {
                let words = self.escape(&words);
                self.push_value(place, &words, None);
            }
            None => self.value(value, place),
        }
    }

    fn fold_of(&self, path: &str, first: FoldState) -> FoldState {
        match (self.toggled.contains(path), first) {
            (false, first) => first,
            (true, FoldState::Open) => FoldState::Closed,
            (true, FoldState::Closed) => FoldState::Open,
        }
    }

    fn value(&mut self, value: &Value, place: &ValueLocation) {
        if self.lines.len() >= MOST_LINES {
            self.left_out += 1;
            return;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                let text = value.to_string();
                self.push_value(place, &text, None);
            }
            Value::String(text) => self.push_text(text, place),
            Value::Array(items) if items.is_empty() => self.push_value(place, "[]", None),
            Value::Object(fields) if fields.is_empty() => self.push_value(place, "{}", None),
            Value::Array(items) => {
                let words = format!("[{}]", counted(items.len(), "item"));
                if self.push_branch(place, &words) == FoldState::Open {
                    for (at, item) in items.iter().enumerate() {
                        if self.is_full() {
                            // The rest is only counted, not laid out.
                            self.left_out += items.len() - at;
                            break;
                        }
                        self.value(item, &place.item(at));
                    }
                }
            }
            Value::Object(fields) => {
                let words = format!("{{{}}}", counted(fields.len(), "key"));
                if self.push_branch(place, &words) == FoldState::Open {
                    for (at, (name, field)) in fields.iter().enumerate() {
                        if self.is_full() {
                            self.left_out += fields.len() - at;
                            break;
                        }
                        let place = self.member(place, name);
                        self.value(field, &place);
                    }
                }
            }
        }
    }

    /// Returns the location of an object's member.
    fn member(&self, place: &ValueLocation, name: &str) -> ValueLocation {
        let depth = place.depth + 1;
        let mut member = ValueLocation::named(depth, name, &place.path, &place.pointer);
        member.record_depth = place.record_depth;
        if self.form == EventForm::Words && depth <= place.record_depth {
            member.label = member.label.replace('_', " ");
        }
        member
    }

    fn push_branch(&mut self, place: &ValueLocation, words: &str) -> FoldState {
        let fold = self.fold_of(&place.path, FoldState::Closed);
        self.push_value(place, words, Some(fold));
        fold
    }

    fn push_value(&mut self, place: &ValueLocation, value: &str, fold: Option<FoldState>) {
        let pointer = Some(place.pointer.as_str());
        self.push(place.depth, &place.label, value, fold, &place.path, pointer);
    }

    /// Adds a text: on one line, or on several if it is too long and unfolded.
    fn push_text(&mut self, text: &str, place: &ValueLocation) {
        let shown = format!("\"{}\"", self.escape(text));
        let room = self
            .cells
            .saturating_sub(place.depth * 2 + place.label.len() + 4);
        if text.len() <= room && shown.len() <= room.max(8) {
            self.push_value(place, &shown, None);
            return;
        }
        let fold = self.fold_of(&place.path, FoldState::Closed);
        if fold == FoldState::Closed {
            self.push_value(place, &shown, Some(fold));
            return;
        }
        let size = format!("{} bytes", text.len());
        self.push_value(place, &size, Some(fold));
        let end = text.floor_char_boundary(MOST_TEXT);
        let (start, rest) = text.split_at(end);
        let shown = sanitize(start, crate::base::text::LineFeeds::Keep);
        self.escaped += shown.escaped;
        let cells = self.cells.saturating_sub(place.depth * 2 + 4).max(10);
        for line in shown.text.split('\n') {
            for row in break_exactly(line, cells) {
                let pointer = Some(place.pointer.as_str());
                self.push(place.depth + 1, "", row, None, &place.path, pointer);
            }
        }
        if !rest.is_empty() {
            let words = format!("{} more bytes: y copies, E exports", rest.len());
            self.push_note(place.depth + 1, &words, &place.path);
        }
    }
}

impl ValueLocation {
    fn named(depth: usize, name: &str, path: &str, pointer: &str) -> Self {
        let cut: String = name.chars().take(64).collect();
        let label = one_line(&cut);
        let escaped = name.replace('~', "~0").replace('/', "~1");
        Self {
            depth,
            record_depth: 0,
            path: format!("{path}.{label}"),
            pointer: format!("{pointer}/{escaped}"),
            label,
        }
    }

    fn item(&self, at: usize) -> Self {
        Self {
            depth: self.depth + 1,
            record_depth: self.record_depth,
            label: at.to_string(),
            path: format!("{}[{at}]", self.path),
            pointer: format!("{}/{at}", self.pointer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::console::tests::fixture::events;

    fn unfolded(params: Value) -> EventDetail {
        let mut event = events("s-1", 0, 1).remove(0);
        event.payload = serde_json::Map::from_iter([("action_params".to_owned(), params)]);
        let full_event = FullEvent {
            event,
            own: HashProof::Holds,
            link: HashProof::Holds,
        };
        let mut detail = EventDetail::default();
        detail.set_cells(40);
        detail.open(&full_event);
        for path in [".payload.action_params", ".payload.action_params.text"] {
            let at = detail.lines.iter().position(|line| line.path == path);
            detail.at = at.unwrap_or(detail.at);
            detail.fold(&full_event, FoldState::Open);
        }
        detail
    }

    fn last(detail: &EventDetail) -> &str {
        &detail.lines().last().unwrap().value
    }

    #[test]
    fn a_long_list_reports_the_values_left_out() {
        let items: Vec<_> = (0..20_000).map(|at| json!(at)).collect();
        let detail = unfolded(json!(items));
        assert_eq!(detail.lines().len(), MOST_LINES + 1);
        // Ten lines of the envelope and one line of the list come first.
        assert_eq!(last(&detail), "15011 values not shown: y copies, E exports");
    }

    #[test]
    fn a_long_text_reports_the_part_left_out() {
        let detail = unfolded(json!({ "text": "all work ".repeat(20_000) }));
        let rest = 20_000 * 9 - MOST_TEXT;
        let words = format!("{rest} more bytes: y copies, E exports");
        assert_eq!(last(&detail), words);
    }
}
