//! A JSON text that is changed in one place, while the rest stays as it was written, comments included.

use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::base::json;

/// Mark that some editors put at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

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

/// Syntax of a settings file, as its agent reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonSyntax {
    /// JSON alone.
    Strict,
    /// JSON with comments and trailing commas.
    WithComments,
}

/// A JSON text.
#[derive(Clone, Debug)]
pub(super) struct JsonText {
    text: String,
    syntax: JsonSyntax,
    parsed: Result<ParsedText, JsonEditError>,
}

/// Structure of a text. Both copies have the length and the lines of the text.
#[derive(Clone, Debug)]
struct ParsedText {
    root: JsonNode,
    /// The text with spaces in place of comments.
    without_comments: String,
    /// The text with spaces in place of comments and trailing commas.
    strict: String,
}

impl JsonText {
    /// Reads a text that is an object. A blank text counts as an empty object.
    pub(super) fn read(text: &str, syntax: JsonSyntax) -> Result<Self, JsonEditError> {
        let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let text = if bare.trim().is_empty() { "{}\n" } else { text };
        let text = Self {
            text: text.to_owned(),
            syntax,
            parsed: parse(text, syntax),
        };
        text.check_object("the file", &text.root()?)?;
        Ok(text)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the structure of the whole text.
    pub(super) fn root(&self) -> Result<JsonNode, JsonEditError> {
        match &self.parsed {
            Ok(parsed) => Ok(parsed.root.clone()),
            Err(error) => Err(error.clone()),
        }
    }

    /// Returns the text with spaces in place of comments and trailing commas.
    pub(super) fn strict(&self) -> Option<&str> {
        self.parsed
            .as_ref()
            .ok()
            .map(|parsed| parsed.strict.as_str())
    }

    /// Returns true if the text has a comment.
    pub(super) fn has_comments(&self) -> bool {
        self.has_comment(0..self.text.len())
    }

    /// Returns true if a value has neither children nor comments in it.
    pub(super) fn is_blank(&self, node: &JsonNode) -> bool {
        node.is_empty() && !self.has_comment(node.span.clone())
    }

    fn has_comment(&self, span: Range<usize>) -> bool {
        let parsed = self.parsed.as_ref();
        parsed.is_ok_and(|parsed| parsed.without_comments.get(span.clone()) != self.text.get(span))
    }

    /// Returns the position of a comma, outside comments.
    fn comma(&self, span: Range<usize>) -> Option<usize> {
        let parsed = self.parsed.as_ref().ok()?;
        let found = parsed.without_comments.get(span.clone())?.find(',')?;
        Some(span.start + found)
    }

    /// Returns the value of a node.
    pub(super) fn value(&self, node: &JsonNode) -> Value {
        let parsed = self.parsed.as_ref().ok();
        let written = parsed.and_then(|parsed| parsed.strict.get(node.span.clone()));
        serde_json::from_str(written.unwrap_or_default()).unwrap_or_default()
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
        let before = self.text.get(..at).unwrap_or_default();
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
            let inside = parent.span.start + 1..parent.span.end - 1;
            // Comments in an empty object stay behind the new child.
            let commented = self.has_comment(inside.clone());
            let added = match self.indent_unit() {
                Some(unit) => {
                    let outer = self.indent(parent.span.start);
                    let inner = format!("{outer}{unit}");
                    let value = self.pretty(value, &inner, &unit);
                    let end = if commented {
                        String::new()
                    } else {
                        format!("{nl}{outer}")
                    };
                    format!("{nl}{inner}{name}{value}{end}")
                }
                None => format!("{name}{}", compact(value)),
            };
            let gone = if commented {
                inside.start..inside.start
            } else {
                inside
            };
            self.replace_span(gone, &added);
            return;
        };
        let added = match self.child_indent(parent.span.start + 1..first.start) {
            Some(inner) => {
                let unit = self.indent_unit().unwrap_or_default();
                let value = self.pretty(value, &inner, &unit);
                format!(",{nl}{inner}{name}{value}")
            }
            None => format!(", {name}{}", compact(value)),
        };
        self.replace_span(last.end..last.end, &added);
    }

    /// Returns the indentation before a first child; `None` if it is on the line of its parent.
    fn child_indent(&self, gap: Range<usize>) -> Option<String> {
        let (_, line) = self.text.get(gap)?.rsplit_once('\n')?;
        let blank = line
            .chars()
            .take_while(|letter| matches!(letter, ' ' | '\t'));
        Some(blank.collect())
    }

    /// Replaces one value by another.
    pub(super) fn replace(&mut self, node: &JsonNode, value: &impl Serialize) {
        let written = self.text.get(node.span.clone()).unwrap_or_default();
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

    /// Removes a child together with its comma. Comments around it stay.
    pub(super) fn remove(&mut self, parent: &JsonNode, at: usize) {
        let children = parent.children();
        let Some(child) = children.get(at).cloned() else {
            return;
        };
        let before = at.checked_sub(1).and_then(|index| children.get(index));
        match (before, children.get(at + 1)) {
            (_, Some(next)) if !self.has_comment(child.end..next.start) => {
                self.replace_span(child.start..next.start, "");
            }
            (_, Some(next)) => {
                let comma = self.comma(child.end..next.start);
                self.replace_span(child.start..comma.map_or(child.end, |comma| comma + 1), "");
            }
            (Some(before), None) if !self.has_comment(before.end..child.start) => {
                self.replace_span(before.end..child.end, "");
            }
            (Some(before), None) => {
                let comma = self.comma(before.end..child.start);
                self.replace_span(child, "");
                if let Some(comma) = comma {
                    self.replace_span(comma..comma + 1, "");
                }
            }
            (None, None) => self.remove_only_child(parent, child),
        }
    }

    fn remove_only_child(&mut self, parent: &JsonNode, child: Range<usize>) {
        let inside = parent.span.start + 1..parent.span.end - 1;
        if !self.has_comment(inside.start..child.start) && !self.has_comment(child.end..inside.end)
        {
            self.replace_span(inside, "");
            return;
        }
        if let Some(comma) = self.comma(child.end..inside.end) {
            self.replace_span(comma..comma + 1, "");
        }
        let gap = self.text.get(inside.start..child.start).unwrap_or_default();
        // The end of a line comment stays: without it the comment would take what follows.
        let kept = if self.has_comment(inside.start..child.start) {
            gap.len()
        } else {
            gap.trim_end().len()
        };
        self.replace_span(inside.start + kept..child.end, "");
    }

    fn replace_span(&mut self, span: Range<usize>, new: &str) {
        if self.text.get(span.clone()).is_some() {
            self.text.replace_range(span, new);
            self.parsed = parse(&self.text, self.syntax);
        }
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") {
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
        let unit = self.child_indent(root.span.start + 1..first.start)?;
        Some(if unit.is_empty() {
            "  ".to_owned()
        } else {
            unit
        })
    }

    /// Returns the indentation of the line at a position.
    fn indent(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or_default();
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

/// Parses a text that is valid in its syntax, and in which no key occurs twice.
fn parse(text: &str, syntax: JsonSyntax) -> Result<ParsedText, JsonEditError> {
    let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let offset = text.len() - bare.len();
    if syntax == JsonSyntax::Strict {
        check_strict(bare)?;
    }
    let collect = CollectOptions {
        comments: CommentCollectionStrategy::AsTokens,
        tokens: true,
    };
    let lenient = syntax == JsonSyntax::WithComments;
    let options = ParseOptions {
        allow_comments: lenient,
        allow_trailing_commas: lenient,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(bare, &collect, &options).map_err(|error| JsonEditError::Syntax {
        line: error.line_display(),
        column: error.column_display(),
        what: error.kind().to_string(),
    })?;
    let (comments, commas) = blank_ranges(&parsed.tokens.unwrap_or_default());
    let without_comments = blanked(bare, &comments);
    let strict = blanked(&without_comments, &commas);
    if lenient {
        check_strict(&strict)?;
    }
    let empty = || JsonEditError::Syntax {
        line: 1,
        column: 1,
        what: "the text has no value".to_owned(),
    };
    let mark = text.get(..offset).unwrap_or_default();
    Ok(ParsedText {
        root: node(&parsed.value.ok_or_else(empty)?, offset),
        without_comments: format!("{mark}{without_comments}"),
        strict: format!("{mark}{strict}"),
    })
}

/// Checks that a text is JSON in which no key occurs twice: the agent may use either value. Numbers stay as
/// they are written.
fn check_strict(text: &str) -> Result<(), JsonEditError> {
    json::check_keys(text.as_bytes()).map_err(|error| {
        let (line, column) = error.place(text.as_bytes());
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
    })
}

/// Returns the positions of comments, and of commas before the end of an object or list.
fn blank_ranges(tokens: &[TokenAndRange<'_>]) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (mut comments, mut commas) = (Vec::new(), Vec::new());
    let mut comma = None;
    for token in tokens {
        let span = token.range.start..token.range.end;
        match token.token {
            Token::CommentLine(_) | Token::CommentBlock(_) => comments.push(span),
            Token::Comma => comma = Some(span),
            Token::CloseBrace | Token::CloseBracket => commas.extend(comma.take()),
            Token::OpenBrace
            | Token::OpenBracket
            | Token::Colon
            | Token::String(_)
            | Token::Word(_)
            | Token::Boolean(_)
            | Token::Number(_)
            | Token::Null => comma = None,
        }
    }
    (comments, commas)
}

/// Replaces ranges of a text with spaces of the same length. Line ends stay.
fn blanked(text: &str, ranges: &[Range<usize>]) -> String {
    let mut blank = String::with_capacity(text.len());
    let mut end = 0;
    for range in ranges {
        blank.push_str(text.get(end..range.start).unwrap_or_default());
        for byte in text.get(range.clone()).unwrap_or_default().bytes() {
            blank.push(if matches!(byte, b'\n' | b'\r') {
                char::from(byte)
            } else {
                ' '
            });
        }
        end = range.end;
    }
    blank.push_str(text.get(end..).unwrap_or_default());
    blank
}

/// Returns a value with its position, moved by `offset` bytes.
fn node(value: &ast::Value<'_>, offset: usize) -> JsonNode {
    let kind = match value {
        ast::Value::Object(object) => {
            let members = object.properties.iter().map(|member| JsonMember {
                name: member.name.as_str().to_owned(),
                start: member.range.start + offset,
                value: node(&member.value, offset),
            });
            JsonKind::Object(members.collect())
        }
        ast::Value::Array(array) => {
            let items = array.elements.iter().map(|item| node(item, offset));
            JsonKind::Array(items.collect())
        }
        ast::Value::StringLit(_)
        | ast::Value::NumberLit(_)
        | ast::Value::BooleanLit(_)
        | ast::Value::NullKeyword(_) => JsonKind::Other,
    };
    let range = value.range();
    JsonNode {
        span: range.start + offset..range.end + offset,
        kind,
    }
}
