//! A JSON text that is changed in one place, while the rest stays as it was written.

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::base::json;

/// Reason why a text cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonEditError {
    /// The text is not JSON.
    #[error("not JSON at line {line}, column {column}: {what}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// Description of the problem.
        what: String,
    },
    /// A value has another type than it should.
    #[error("line {line}: `{name}` must be {wanted}")]
    WrongType {
        /// The line, from 1.
        line: usize,
        /// Name of the value.
        name: String,
        /// Expected type.
        wanted: &'static str,
    },
    /// A name occurs twice, so it is unclear which one counts.
    #[error("line {line}: `{name}` occurs twice")]
    DuplicateName {
        /// The line of the second one, from 1.
        line: usize,
        /// The name.
        name: String,
    },
}

/// A value with its position in the text.
#[derive(Clone, Debug)]
pub(super) struct JsonNode {
    pub(super) span: Range<usize>,
    pub(super) kind: JsonKind,
}

#[derive(Clone, Debug)]
pub(super) enum JsonKind {
    Object(Vec<JsonMember>),
    Array(Vec<JsonNode>),
    Other,
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(super) struct JsonMember {
    pub(super) name: String,
    start: usize,
    pub(super) value: JsonNode,
}

impl JsonNode {
    /// Returns the positions of its children.
    fn children(&self) -> Vec<Range<usize>> {
        match &self.kind {
            JsonKind::Object(members) => {
                let spans = members
                    .iter()
                    .map(|member| member.start..member.value.span.end);
                spans.collect()
            }
            JsonKind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
            JsonKind::Other => Vec::new(),
        }
    }

    /// Returns true if it has no children.
    pub(super) fn is_empty(&self) -> bool {
        self.children().is_empty()
    }

    /// Returns the members of an object.
    pub(super) fn members(&self) -> &[JsonMember] {
        match &self.kind {
            JsonKind::Object(members) => members,
            JsonKind::Array(_) | JsonKind::Other => &[],
        }
    }

    /// Returns the items of a list.
    pub(super) fn items(&self) -> &[JsonNode] {
        match &self.kind {
            JsonKind::Array(items) => items,
            JsonKind::Object(_) | JsonKind::Other => &[],
        }
    }

    /// Returns the value of a member.
    pub(super) fn member(&self, name: &str) -> Option<&JsonNode> {
        let found = self.members().iter().find(|member| member.name == name);
        found.map(|member| &member.value)
    }

    /// Returns the index of a member.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.members().iter().position(|member| member.name == name)
    }
}

/// A JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonText(String);

impl JsonText {
    /// Reads a text that is an object. A blank text counts as an empty object.
    pub(super) fn read(text: &str) -> Result<Self, JsonEditError> {
        let bare = text.strip_prefix('\u{feff}').unwrap_or(text);
        if bare.trim().is_empty() {
            return Ok(Self("{}\n".to_owned()));
        }
        // Numbers stay as they are written. If a key occurs twice, the agent may use either value.
        json::check_keys(bare.as_bytes()).map_err(|error| {
            let (line, column) = error.place(bare.as_bytes());
            match error {
                json::StrictJsonError::Ambiguous(fault) => JsonEditError::DuplicateName {
                    line,
                    name: fault.path,
                },
                error => JsonEditError::Syntax {
                    line,
                    column,
                    what: error.message(),
                },
            }
        })?;
        let text = Self(text.to_owned());
        text.check_object("the file", &text.root()?)?;
        Ok(text)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the whole text.
    pub(super) fn root(&self) -> Result<JsonNode, JsonEditError> {
        let mut walk = JsonTextParser {
            text: &self.0,
            at: 0,
        };
        walk.value().ok_or_else(|| JsonEditError::Syntax {
            line: self.line(walk.at),
            column: 1,
            what: "cannot be read".to_owned(),
        })
    }

    /// Returns the value of a node.
    pub(super) fn value(&self, node: &JsonNode) -> Value {
        let written = self.0.get(node.span.clone()).unwrap_or_default();
        serde_json::from_str(written).unwrap_or_default()
    }

    /// Checks that a value is an object in which each name occurs once.
    pub(super) fn check_object(&self, name: &str, node: &JsonNode) -> Result<(), JsonEditError> {
        let JsonKind::Object(members) = &node.kind else {
            return Err(self.shape_error(name, node, "an object"));
        };
        for (at, member) in members.iter().enumerate() {
            let earlier = members.iter().take(at);
            if earlier.into_iter().any(|other| other.name == member.name) {
                return Err(JsonEditError::DuplicateName {
                    line: self.line(member.start),
                    name: member.name.clone(),
                });
            }
        }
        Ok(())
    }

    /// Checks that a value is a list.
    pub(super) fn check_array(&self, name: &str, node: &JsonNode) -> Result<(), JsonEditError> {
        match node.kind {
            JsonKind::Array(_) => Ok(()),
            JsonKind::Object(_) | JsonKind::Other => Err(self.shape_error(name, node, "a list")),
        }
    }

    fn shape_error(&self, name: &str, node: &JsonNode, wanted: &'static str) -> JsonEditError {
        JsonEditError::WrongType {
            line: self.line(node.span.start),
            name: name.to_owned(),
            wanted,
        }
    }

    fn line(&self, at: usize) -> usize {
        let before = self.0.get(..at).unwrap_or_default();
        before.matches('\n').count() + 1
    }

    /// Adds a member at the end of an object.
    pub(super) fn add_member(&mut self, object: &JsonNode, name: &str, value: &impl Serialize) {
        self.add(object, Some(name), value);
    }

    /// Adds an item at the end of a list.
    pub(super) fn add_item(&mut self, array: &JsonNode, value: &impl Serialize) {
        self.add(array, None, value);
    }

    fn add(&mut self, parent: &JsonNode, name: Option<&str>, value: &impl Serialize) {
        let name = name.map(|name| format!("{}: ", Value::from(name)));
        let name = name.unwrap_or_default();
        let nl = self.newline();
        let children = parent.children();
        let (Some(first), Some(last)) = (children.first(), children.last()) else {
            let added = match self.indent_unit() {
                Some(unit) => {
                    let outer = self.indent(parent.span.start);
                    let inner = format!("{outer}{unit}");
                    let value = self.pretty(value, &inner, &unit);
                    format!("{nl}{inner}{name}{value}{nl}{outer}")
                }
                None => format!("{name}{}", compact(value)),
            };
            self.replace_span(parent.span.start + 1..parent.span.end - 1, &added);
            return;
        };
        let gap = self.0.get(parent.span.start + 1..first.start);
        let added = match gap.unwrap_or_default().rsplit_once('\n') {
            Some((_, inner)) => {
                let inner = inner.to_owned();
                let unit = self.indent_unit().unwrap_or_default();
                let value = self.pretty(value, &inner, &unit);
                format!(",{nl}{inner}{name}{value}")
            }
            None => format!(", {name}{}", compact(value)),
        };
        self.replace_span(last.end..last.end, &added);
    }

    /// Replaces one value by another.
    pub(super) fn replace(&mut self, node: &JsonNode, value: &impl Serialize) {
        let written = self.0.get(node.span.clone()).unwrap_or_default();
        let one_line = !written.contains('\n');
        let new = match self.indent_unit() {
            Some(unit) if !one_line => {
                let inner = self.indent(node.span.start);
                self.pretty(value, &inner, &unit)
            }
            Some(_) | None => compact(value),
        };
        self.replace_span(node.span.clone(), &new);
    }

    /// Removes a child together with its comma.
    pub(super) fn remove(&mut self, parent: &JsonNode, at: usize) {
        let children = parent.children();
        let before = at.checked_sub(1).and_then(|index| children.get(index));
        let gone = match (before, children.get(at), children.get(at + 1)) {
            (_, None, _) => return,
            (_, Some(child), Some(next)) => child.start..next.start,
            (Some(before), Some(child), None) => before.end..child.end,
            (None, Some(_), None) => parent.span.start + 1..parent.span.end - 1,
        };
        self.replace_span(gone, "");
    }

    fn replace_span(&mut self, span: Range<usize>, new: &str) {
        if self.0.get(span.clone()).is_some() {
            self.0.replace_range(span, new);
        }
    }

    fn newline(&self) -> &'static str {
        if self.0.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// Returns the indentation of one level; `None` if everything is on one line.
    fn indent_unit(&self) -> Option<String> {
        let root = self.root().ok()?;
        let Some(first) = root.children().first().cloned() else {
            return Some("  ".to_owned());
        };
        let gap = self.0.get(root.span.start + 1..first.start)?;
        let (_, unit) = gap.rsplit_once('\n')?;
        Some(if unit.is_empty() { "  " } else { unit }.to_owned())
    }

    /// Returns the indentation of the line at a position.
    fn indent(&self, at: usize) -> String {
        let before = self.0.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let blank = line
            .chars()
            .take_while(|letter| matches!(letter, ' ' | '\t'));
        blank.collect()
    }

    fn pretty(&self, value: &impl Serialize, base: &str, unit: &str) -> String {
        let mut out = Vec::new();
        let format = PrettyFormatter::with_indent(unit.as_bytes());
        let mut writer = Serializer::with_formatter(&mut out, format);
        // Writing texts and numbers to memory cannot fail.
        let _ = value.serialize(&mut writer);
        let text = String::from_utf8(out).unwrap_or_default();
        text.replace('\n', &format!("{}{base}", self.newline()))
    }
}

fn compact(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Parser for a text that is known to be JSON.
struct JsonTextParser<'t> {
    text: &'t str,
    at: usize,
}

impl JsonTextParser<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        let skipped = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{feff}']);
        self.at += rest.len() - skipped.len();
        skipped.bytes().next()
    }

    fn expect_byte(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// Reads the next separator. Returns true if another child follows.
    fn next_separator(&mut self) -> Option<bool> {
        let found = self.peek()?;
        self.at += 1;
        match found {
            b',' => Some(true),
            b'}' | b']' => Some(false),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<JsonNode> {
        let found = self.peek()?;
        let start = self.at;
        let kind = match found {
            b'{' => JsonKind::Object(self.check_object()?),
            b'[' => JsonKind::Array(self.check_array()?),
            b'"' => {
                self.string()?;
                JsonKind::Other
            }
            _ => {
                let rest = self.text.get(self.at..)?;
                let end = rest
                    .find(|letter: char| ",]}".contains(letter) || letter.is_ascii_whitespace());
                self.at += end.unwrap_or(rest.len());
                JsonKind::Other
            }
        };
        Some(JsonNode {
            span: start..self.at,
            kind,
        })
    }

    fn check_object(&mut self) -> Option<Vec<JsonMember>> {
        let mut members = Vec::new();
        self.expect_byte(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(members);
        }
        loop {
            self.peek()?;
            let start = self.at;
            let name = self.string()?;
            self.expect_byte(b':')?;
            let value = self.value()?;
            members.push(JsonMember { name, start, value });
            if !self.next_separator()? {
                return Some(members);
            }
        }
    }

    fn check_array(&mut self) -> Option<Vec<JsonNode>> {
        let mut items = Vec::new();
        self.expect_byte(b'[')?;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(items);
        }
        loop {
            items.push(self.value()?);
            if !self.next_separator()? {
                return Some(items);
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.expect_byte(b'"')?;
        loop {
            match self.text.as_bytes().get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }
}
