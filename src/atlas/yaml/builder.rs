//! Builder of the node tree from parser events. The stack of open lists and maps is on the heap, and its height is
//! limited.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, options};

use super::scalar::{self, ScalarError};
use super::{YamlEntry, YamlNode, YamlValue};
use crate::atlas::diagnostic::{ByteSpan, Code, ManifestProblem, Problems, quoted};
use crate::base::limits::{MAX_ATLAS_DEPTH, MAX_ATLAS_NODES};

/// Parses `source`. Returns `None` without a tree; after errors, the tree may not be what the steward intended.
pub(in crate::atlas) fn parse<'s>(
    source: &'s str,
    problems: &mut Problems<'s>,
) -> Option<YamlNode> {
    // The parser takes a NUL for the end of its input and would silently ignore the rest.
    if let Some(start) = source.find('\0') {
        let end = start + 1;
        problems.add(
            ManifestProblem::new(
                Code::ForbiddenCharacter,
                "the text contains a NUL character",
            )
            .at(ByteSpan { start, end }),
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
    let mut builder = TreeBuilder {
        source,
        problems,
        open: Vec::new(),
        root: None,
        nodes: 0,
        documents: 0,
    };
    for event in Parser::new_from_str_with_options(source, options) {
        let stop = match event {
            Ok((event, span)) => builder.handle_event(event, &span),
            Err(error) => builder.fail(&error),
        };
        if stop.is_err() {
            return None;
        }
    }
    builder.root.or_else(|| {
        problems.add(ManifestProblem::new(Code::Empty, "the file is empty"));
        None
    })
}

/// Signals that parsing ends here; the reason has been reported.
struct ParseStopped;

struct TreeBuilder<'a, 's> {
    source: &'s str,
    problems: &'a mut Problems<'s>,
    open: Vec<OpenCollection>,
    root: Option<YamlNode>,
    nodes: usize,
    documents: usize,
}

/// A list or map that is not closed yet.
enum OpenCollection {
    Seq {
        start: usize,
        items: Vec<YamlNode>,
    },
    Map {
        start: usize,
        entries: Vec<YamlEntry>,
        seen: HashMap<String, ByteSpan>,
        key: Option<(String, ByteSpan)>,
    },
}

impl TreeBuilder<'_, '_> {
    fn handle_event(
        &mut self,
        event: Event<'_>,
        span: &granit_parser::Span,
    ) -> Result<(), ParseStopped> {
        let place = self.place(span);
        if let Some(tag) = span.tag_span() {
            let tag = self.place(&tag);
            self.reject_feature(tag, "tags are not part of the Atlas format");
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.reject_feature(place, "the file contains a second document");
                    return Err(ParseStopped);
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
                    OpenCollection::Seq {
                        start,
                        items: Vec::new(),
                    },
                    place,
                )?;
            }
            Event::MappingStart(..) => self.push(
                OpenCollection::Map {
                    start: place.start,
                    entries: Vec::new(),
                    seen: HashMap::new(),
                    key: None,
                },
                place,
            )?,
            Event::SequenceEnd | Event::MappingEnd => self.close(place),
            Event::Anchor(_, name) => self.reject_feature(
                place,
                format!("anchor {} is not part of the Atlas format", quoted(&name)),
            ),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.count(place)?;
                self.reject_feature(place, "an alias is not part of the Atlas format");
                self.complete(YamlNode {
                    span: place,
                    value: YamlValue::Null,
                });
            }
            // The start and end of the stream and of documents need no handling; comments are not emitted.
            _ => {}
        }
        // Beyond the limit errors are only counted, and a hostile file could cause many.
        if self.problems.is_full() {
            Err(ParseStopped)
        } else {
            Ok(())
        }
    }

    fn push(&mut self, frame: OpenCollection, place: ByteSpan) -> Result<(), ParseStopped> {
        self.count(place)?;
        if self.open.len() >= MAX_ATLAS_DEPTH {
            return self.too_deep(place);
        }
        self.open.push(frame);
        Ok(())
    }

    fn close(&mut self, place: ByteSpan) {
        let node = match self.open.pop() {
            Some(OpenCollection::Seq { start, items }) => {
                let last = items.last().map(|item| item.span.end);
                YamlNode {
                    span: closed_span(start, last, place),
                    value: YamlValue::Seq(items),
                }
            }
            Some(OpenCollection::Map { start, entries, .. }) => {
                let last = entries.last().map(|entry| entry.node.span.end);
                let start = entries
                    .first()
                    .map_or(start, |entry| start.min(entry.key_span.start));
                YamlNode {
                    span: closed_span(start, last, place),
                    value: YamlValue::Map(entries),
                }
            }
            None => return,
        };
        self.complete(node);
    }

    /// Attaches a finished node as a key or value of a map, an item of a list, or the root.
    fn complete(&mut self, node: YamlNode) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection::Seq { items, .. }) => items.push(node),
            Some(OpenCollection::Map { entries, key, .. }) => match key.take() {
                Some((key, key_span)) => entries.push(YamlEntry {
                    key,
                    key_span,
                    node: node.or_at(key_span),
                }),
                None => self.begin_entry(node),
            },
        }
    }

    fn begin_entry(&mut self, node: YamlNode) {
        let span = node.span;
        let text = match node.value {
            YamlValue::String(text) => text,
            value @ (YamlValue::Null
            | YamlValue::Bool(_)
            | YamlValue::Number(_)
            | YamlValue::Seq(_)
            | YamlValue::Map(_)) => {
                let found = YamlNode { span, value }.describe();
                self.problems.add(
                    ManifestProblem::new(
                        Code::KeyNotText,
                        format!("a key must be text, found {found}"),
                    )
                    .at(span)
                    .help("put the key in quotes".to_owned()),
                );
                String::new()
            }
        };
        let Some(OpenCollection::Map { seen, key, .. }) = self.open.last_mut() else {
            return;
        };
        *key = Some((text.clone(), span));
        if text.is_empty() {
            return;
        }
        if let Some(first) = seen.insert(text.clone(), span) {
            let first = self.problems.describe(first);
            self.problems.add(
                ManifestProblem::new(
                    Code::DuplicateKey,
                    format!("key {} is written twice, first at {first}", quoted(&text)),
                )
                .at(span)
                .help("remove one of the two".to_owned()),
            );
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: ByteSpan) -> YamlNode {
        if style != ScalarStyle::Plain {
            let value = YamlValue::String(text.to_owned());
            return YamlNode { span, value };
        }
        if text == "<<" && self.expects_key() {
            self.reject_feature(span, "a merge key is not part of the Atlas format");
        }
        let value = scalar::resolve(text).unwrap_or_else(|error| {
            let what = match error {
                ScalarError::TooLarge => "has more than 64 bits",
                ScalarError::NotFinite => "is not finite",
                ScalarError::Inexact => "has more digits than can be stored exactly",
            };
            self.problems.add(
                ManifestProblem::new(Code::Number, format!("number {} {what}", quoted(text)))
                    .at(span)
                    .help("put it in quotes if it is meant as text".to_owned()),
            );
            YamlValue::Null
        });
        YamlNode { span, value }
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(OpenCollection::Map { key: None, .. })
        )
    }

    fn count(&mut self, place: ByteSpan) -> Result<(), ParseStopped> {
        self.nodes += 1;
        if self.nodes <= MAX_ATLAS_NODES {
            return Ok(());
        }
        let message = format!("the file has more than {MAX_ATLAS_NODES} values");
        self.problems
            .add(ManifestProblem::new(Code::Limit, message).at(place));
        Err(ParseStopped)
    }

    fn too_deep(&mut self, place: ByteSpan) -> Result<(), ParseStopped> {
        let message = format!("the file is nested more than {MAX_ATLAS_DEPTH} levels deep");
        self.problems
            .add(ManifestProblem::new(Code::Limit, message).at(place));
        Err(ParseStopped)
    }

    fn reject_feature(&mut self, place: ByteSpan, message: impl Into<String>) {
        self.problems.add(
            ManifestProblem::new(Code::YamlFeature, message)
                .at(place)
                .help("write out every part of the Atlas in plain YAML".to_owned()),
        );
    }

    fn fail(&mut self, error: &ScanError) -> Result<(), ParseStopped> {
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
        let place = ByteSpan {
            start,
            end: start + width,
        };
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return self.too_deep(place);
        }
        let problem = match error.kind() {
            ErrorKind::DirectiveDisallowed => {
                self.reject_feature(place, "a directive is not part of the Atlas format");
                return Err(ParseStopped);
            }
            ErrorKind::UnexpectedCharacter { character } => {
                let shown = quoted(&character.to_string());
                let message = format!("character {shown} is not allowed here");
                ManifestProblem::new(Code::ForbiddenCharacter, message)
            }
            ErrorKind::MappingValueNotAllowed => {
                ManifestProblem::new(Code::Syntax, "not valid YAML: a second `: ` in one value")
                    .help("put text that contains `: ` in quotes, or check the indent".to_owned())
            }
            kind => ManifestProblem::new(Code::Syntax, format!("not valid YAML: {kind}"))
                .help(is_tab.then(|| "indent with spaces".to_owned())),
        };
        self.problems.add(problem.at(place));
        Err(ParseStopped)
    }

    /// Converts a parser span to bytes, without the trailing white space of block scalars.
    fn place(&self, span: &granit_parser::Span) -> ByteSpan {
        let start = span.start.byte_offset().unwrap_or_default();
        let end = span.end.byte_offset().unwrap_or(start).max(start);
        let text = self.source.get(start..end).unwrap_or_default();
        ByteSpan {
            start,
            end: start + text.trim_end().len(),
        }
    }
}

impl YamlNode {
    /// Returns the node, moved to `span` if its own span is empty.
    fn or_at(mut self, span: ByteSpan) -> Self {
        if self.span.start == self.span.end {
            self.span = span;
        }
        self
    }
}

/// Returns the span of a closed list or map.
///
/// In block style the parser notices the end only at the next token, so the end of the last child is used.
fn closed_span(start: usize, last_child: Option<usize>, closing: ByteSpan) -> ByteSpan {
    let end = if closing.start < closing.end {
        closing.end
    } else {
        last_child.unwrap_or(closing.end)
    };
    ByteSpan {
        start,
        end: end.max(start),
    }
}
