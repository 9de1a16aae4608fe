//! Builder of the node tree from parser events. The stack of open lists and maps is on the heap, and its height is
//! limited.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, options};

use super::scalar::{self, ScalarError};
use super::{Entry, Node, NodeValue};
use crate::atlas::diagnostic::{Code, Problem, Problems, Span, quoted};
use crate::base::limits::{MAX_ATLAS_DEPTH, MAX_ATLAS_NODES};

/// Parses `source`. Returns `None` without a tree; after errors, the tree may not be what the steward intended.
pub(in crate::atlas) fn parse<'s>(source: &'s str, problems: &mut Problems<'s>) -> Option<Node> {
    // The parser takes a NUL for the end of its input and would silently ignore the rest.
    if let Some(start) = source.find('\0') {
        let end = start + 1;
        problems.add(
            Problem::new(Code::ForbiddenCharacter, "a NUL character in the text")
                .at(Span { start, end }),
        );
        return None;
    }
    let options = options! {
        emit_comments: false,
        emit_anchor_events: true,
        emit_unresolved_aliases: true,
        disallow_directives: true,
        flow_nesting_limit: MAX_ATLAS_DEPTH,
        block_nesting_limit: MAX_ATLAS_DEPTH,
    };
    let mut builder = Builder {
        source,
        problems,
        open: Vec::new(),
        root: None,
        nodes: 0,
        documents: 0,
    };
    for event in Parser::new_from_str_with_options(source, options) {
        let stop = match event {
            Ok((event, span)) => builder.take(event, &span),
            Err(error) => builder.fail(&error),
        };
        if stop.is_err() {
            return None;
        }
    }
    builder.root.or_else(|| {
        problems.add(Problem::new(Code::Empty, "the file has no content"));
        None
    })
}

/// Signals that parsing ends here; the reason has been reported.
struct Stop;

struct Builder<'a, 's> {
    source: &'s str,
    problems: &'a mut Problems<'s>,
    open: Vec<Frame>,
    root: Option<Node>,
    nodes: usize,
    documents: usize,
}

/// A list or map that is not closed yet.
enum Frame {
    Seq {
        start: usize,
        items: Vec<Node>,
    },
    Map {
        start: usize,
        entries: Vec<Entry>,
        seen: HashMap<String, Span>,
        key: Option<(String, Span)>,
    },
}

impl Builder<'_, '_> {
    fn take(&mut self, event: Event<'_>, span: &granit_parser::Span) -> Result<(), Stop> {
        let place = self.place(span);
        if let Some(tag) = span.tag_span() {
            let tag = self.place(&tag);
            self.refuse(tag, "tags are not part of the Atlas format");
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.refuse(place, "a second document in the file");
                    return Err(Stop);
                }
            }
            Event::Scalar(text, style, ..) => {
                self.count(place)?;
                let node = self.scalar(&text, style, place);
                self.complete(node);
            }
            Event::SequenceStart(..) => {
                let start = place.start;
                self.push(
                    Frame::Seq {
                        start,
                        items: Vec::new(),
                    },
                    place,
                )?;
            }
            Event::MappingStart(..) => self.push(
                Frame::Map {
                    start: place.start,
                    entries: Vec::new(),
                    seen: HashMap::new(),
                    key: None,
                },
                place,
            )?,
            Event::SequenceEnd | Event::MappingEnd => self.close(place),
            Event::Anchor(_, name) => self.refuse(
                place,
                format!("anchor {} is not part of the Atlas format", quoted(&name)),
            ),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.count(place)?;
                self.refuse(place, "an alias is not part of the Atlas format");
                self.complete(Node {
                    span: place,
                    value: NodeValue::Null,
                });
            }
            // The start and end of the stream and of documents need no handling; comments are not emitted.
            _ => {}
        }
        // Beyond the limit errors are only counted, and a hostile file could cause many.
        if self.problems.is_full() {
            Err(Stop)
        } else {
            Ok(())
        }
    }

    fn push(&mut self, frame: Frame, place: Span) -> Result<(), Stop> {
        self.count(place)?;
        if self.open.len() >= MAX_ATLAS_DEPTH {
            return self.too_deep(place);
        }
        self.open.push(frame);
        Ok(())
    }

    fn close(&mut self, place: Span) {
        let node = match self.open.pop() {
            Some(Frame::Seq { start, items }) => {
                let last = items.last().map(|item| item.span.end);
                Node {
                    span: closed(start, last, place),
                    value: NodeValue::Seq(items),
                }
            }
            Some(Frame::Map { start, entries, .. }) => {
                let last = entries.last().map(|entry| entry.node.span.end);
                let start = entries
                    .first()
                    .map_or(start, |entry| start.min(entry.key_span.start));
                Node {
                    span: closed(start, last, place),
                    value: NodeValue::Map(entries),
                }
            }
            None => return,
        };
        self.complete(node);
    }

    /// Attaches a finished node as a key or value of a map, an item of a list, or the root.
    fn complete(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Frame::Seq { items, .. }) => items.push(node),
            Some(Frame::Map { entries, key, .. }) => match key.take() {
                Some((key, key_span)) => entries.push(Entry {
                    key,
                    key_span,
                    node: node.or_at(key_span),
                }),
                None => self.begin_entry(node),
            },
        }
    }

    fn begin_entry(&mut self, node: Node) {
        let span = node.span;
        let text = match node.value {
            NodeValue::String(text) => text,
            value @ (NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(_)
            | NodeValue::Seq(_)
            | NodeValue::Map(_)) => {
                let found = Node { span, value }.describe();
                self.problems.add(
                    Problem::new(
                        Code::KeyNotText,
                        format!("a key must be text, found {found}"),
                    )
                    .at(span)
                    .help("put the key in quotes".to_owned()),
                );
                String::new()
            }
        };
        let Some(Frame::Map { seen, key, .. }) = self.open.last_mut() else {
            return;
        };
        *key = Some((text.clone(), span));
        if text.is_empty() {
            return;
        }
        if let Some(first) = seen.insert(text.clone(), span) {
            let first = self.problems.describe(first);
            self.problems.add(
                Problem::new(
                    Code::DuplicateKey,
                    format!("key {} is written twice, first at {first}", quoted(&text)),
                )
                .at(span)
                .help("keep one of the two: which one counts must not be a guess".to_owned()),
            );
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: Span) -> Node {
        if style != ScalarStyle::Plain {
            let value = NodeValue::String(text.to_owned());
            return Node { span, value };
        }
        if text == "<<" && self.expects_key() {
            self.refuse(span, "a merge key is not part of the Atlas format");
        }
        let value = scalar::resolve(text).unwrap_or_else(|error| {
            let what = match error {
                ScalarError::TooLarge => "has more than 64 bits",
                ScalarError::NotFinite => "is not finite",
                ScalarError::Inexact => "has more digits than can be kept exactly",
            };
            self.problems.add(
                Problem::new(Code::Number, format!("number {} {what}", quoted(text)))
                    .at(span)
                    .help("put it in quotes if it is meant as text".to_owned()),
            );
            NodeValue::Null
        });
        Node { span, value }
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Frame::Map { key: None, .. }))
    }

    fn count(&mut self, place: Span) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes <= MAX_ATLAS_NODES {
            return Ok(());
        }
        let message = format!("more than {MAX_ATLAS_NODES} values");
        self.problems
            .add(Problem::new(Code::Limit, message).at(place));
        Err(Stop)
    }

    fn too_deep(&mut self, place: Span) -> Result<(), Stop> {
        let message = format!("nested more than {MAX_ATLAS_DEPTH} levels deep");
        self.problems
            .add(Problem::new(Code::Limit, message).at(place));
        Err(Stop)
    }

    fn refuse(&mut self, place: Span, message: impl Into<String>) {
        self.problems.add(
            Problem::new(Code::YamlFeature, message)
                .at(place)
                .help("every part of an Atlas says for itself what it means".to_owned()),
        );
    }

    fn fail(&mut self, error: &ScanError) -> Result<(), Stop> {
        let mut start = error.marker().byte_offset().unwrap_or(self.source.len());
        let is_tab = matches!(
            error.kind(),
            ErrorKind::TabNotAllowed
                | ErrorKind::TabInBlockIndentation
                | ErrorKind::TabInIndentation
                | ErrorKind::TabInPlainScalar
        );
        // The parser has often read the tab already when it reports it.
        let before = self.source.get(..start).unwrap_or_default();
        if is_tab && before.ends_with('\t') {
            start -= 1;
        }
        let width = self
            .source
            .get(start..)
            .and_then(|rest| rest.chars().next())
            .filter(|&c| c != '\n')
            .map_or(0, char::len_utf8);
        let place = Span {
            start,
            end: start + width,
        };
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return self.too_deep(place);
        }
        let problem = match error.kind() {
            ErrorKind::DirectiveDisallowed => {
                self.refuse(place, "a directive is not part of the Atlas format");
                return Err(Stop);
            }
            ErrorKind::UnexpectedCharacter { character } => {
                let shown = quoted(&character.to_string());
                let message = format!("character {shown} cannot stand here");
                Problem::new(Code::ForbiddenCharacter, message)
            }
            ErrorKind::MappingValueNotAllowed => {
                Problem::new(Code::Syntax, "not valid YAML: a second `: ` in one value")
                    .help("put text that contains `: ` in quotes, or check the indent".to_owned())
            }
            kind => Problem::new(Code::Syntax, format!("not valid YAML: {kind}"))
                .help(is_tab.then(|| "indent with spaces".to_owned())),
        };
        self.problems.add(problem.at(place));
        Err(Stop)
    }

    /// Converts a parser span to bytes, without the trailing white space of block scalars.
    fn place(&self, span: &granit_parser::Span) -> Span {
        let start = span.start.byte_offset().unwrap_or_default();
        let end = span.end.byte_offset().unwrap_or(start).max(start);
        let text = self.source.get(start..end).unwrap_or_default();
        Span {
            start,
            end: start + text.trim_end().len(),
        }
    }
}

impl Node {
    /// Returns the node, moved to `span` if its own span is empty.
    fn or_at(mut self, span: Span) -> Self {
        if self.span.start == self.span.end {
            self.span = span;
        }
        self
    }
}

/// Returns the span of a closed list or map.
///
/// In block style the parser notices the end only at the next token, so the end of the last child is used.
fn closed(start: usize, last_child: Option<usize>, closing: Span) -> Span {
    let end = if closing.start < closing.end {
        closing.end
    } else {
        last_child.unwrap_or(closing.end)
    };
    Span {
        start,
        end: end.max(start),
    }
}
