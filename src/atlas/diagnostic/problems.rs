//! The list of problems that every stage of loading reports into.

use std::collections::HashSet;

use super::{Code, Diagnostic, Severity, SourceLocation};
use crate::base::limits::MAX_DIAGNOSTICS;
use crate::base::text::one_line;

/// A range of the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteSpan {
    /// First byte.
    pub(crate) start: usize,
    /// Byte after the last one.
    pub(crate) end: usize,
}

/// A problem that is not yet in the list.
#[derive(Debug)]
pub(crate) struct ManifestProblem {
    code: Code,
    message: String,
    path: String,
    span: Option<ByteSpan>,
    help: Option<String>,
}

impl ManifestProblem {
    /// Creates a problem of the whole file; `path` and `at` narrow it down.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            path: String::new(),
            span: None,
            help: None,
        }
    }

    /// Sets the path in the manifest.
    pub(crate) fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the position in the text.
    pub(crate) fn at(mut self, span: impl Into<Option<ByteSpan>>) -> Self {
        self.span = span.into();
        self
    }

    /// Sets the advice for a fix.
    pub(crate) fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }
}

/// All problems found so far, up to the limit.
#[derive(Debug)]
pub(crate) struct Problems<'s> {
    file: &'s str,
    lines: LineStarts<'s>,
    listed: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    faulty_paths: HashSet<String>,
}

impl<'s> Problems<'s> {
    /// Creates an empty list for `source`, the content of `file`.
    pub(crate) fn new(file: &'s str, source: &'s str) -> Self {
        Self {
            file,
            lines: LineStarts::of(source),
            listed: Vec::new(),
            errors: 0,
            warnings: 0,
            faulty_paths: HashSet::new(),
        }
    }

    /// Adds a problem; beyond the limit it is only counted.
    pub(crate) fn add(&mut self, problem: ManifestProblem) {
        let ManifestProblem {
            code,
            message,
            path,
            span,
            help,
        } = problem;
        let severity = code.severity();
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count > MAX_DIAGNOSTICS {
            return;
        }
        self.listed.push(Diagnostic {
            code,
            severity,
            message: one_line(&message),
            file: self.file.to_owned(),
            path: one_line(&path),
            span: span.map(|span| self.lines.place(span)),
            help: help.as_deref().map(one_line),
        });
        if severity == Severity::Error {
            self.faulty_paths.insert(path);
        }
    }

    /// Returns true if the list contains an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Returns true if further errors would only be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.errors >= MAX_DIAGNOSTICS
    }

    /// Returns true if an error was already reported for `path` or one of its parents.
    ///
    /// Problems that follow from such an error are not reported again.
    pub(crate) fn is_faulty(&self, path: &str) -> bool {
        let mut rest = path;
        loop {
            if self.faulty_paths.contains(rest) {
                return true;
            }
            match rest.rsplit_once(['.', '[']) {
                Some((parent, _)) => rest = parent,
                // The root has no parent; its path is empty.
                None => return self.faulty_paths.contains(""),
            }
        }
    }

    /// Describes a position for messages: `line 3, column 9`.
    pub(crate) fn describe(&self, span: ByteSpan) -> String {
        let place = self.lines.place(span);
        format!("line {}, column {}", place.line, place.column)
    }

    /// Returns the line of a position, from 1.
    pub(crate) fn line(&self, span: ByteSpan) -> usize {
        self.lines.place(span).line
    }

    /// Returns the problems in the order of the text, followed by the number of problems that are not listed.
    ///
    /// If there is not enough room, errors take precedence over warnings.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        let (mut listed, warnings): (Vec<_>, Vec<_>) = self
            .listed
            .into_iter()
            .partition(|diagnostic| diagnostic.severity == Severity::Error);
        let errors_listed = listed.len();
        listed.extend(warnings);
        listed.truncate(MAX_DIAGNOSTICS);
        let warnings_listed = listed.len().saturating_sub(errors_listed);
        // The sort is stable: problems at one position stay in the order in which they were found.
        listed.sort_by_key(|diagnostic| diagnostic.span.map_or(usize::MAX, |place| place.start));
        let rest = [
            (Code::MoreErrors, "error", self.errors - errors_listed),
            (
                Code::MoreWarnings,
                "warning",
                self.warnings - warnings_listed,
            ),
        ];
        for (code, noun, count) in rest {
            if count > 0 {
                let plural = if count == 1 { "" } else { "s" };
                listed.push(Diagnostic {
                    code,
                    severity: code.severity(),
                    message: format!("and {count} more {noun}{plural}"),
                    file: self.file.to_owned(),
                    path: String::new(),
                    span: None,
                    help: None,
                });
            }
        }
        listed
    }
}

/// The start offsets of the lines of a text.
#[derive(Debug)]
struct LineStarts<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> LineStarts<'s> {
    fn of(source: &'s str) -> Self {
        // A byte order mark does not count as a column.
        let first = source.len() - source.trim_start_matches('\u{feff}').len();
        let starts = std::iter::once(first)
            .chain(source.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self { source, starts }
    }

    fn place(&self, span: ByteSpan) -> SourceLocation {
        let line = self
            .starts
            .partition_point(|&start| start <= span.start)
            .max(1);
        let before = self
            .starts
            .get(line - 1)
            .and_then(|&start| self.source.get(start..span.start))
            .unwrap_or_default();
        SourceLocation {
            start: span.start,
            end: span.end,
            line,
            column: before.chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(path: &str, start: usize) -> ManifestProblem {
        ManifestProblem::new(Code::WrongType, "wrong")
            .path(path)
            .at(ByteSpan { start, end: start })
    }

    #[test]
    fn columns_count_characters_without_the_byte_order_mark() {
        let source = "\u{feff}né: x\r\nb";
        let lines = LineStarts::of(source);
        let at = |start| {
            let place = lines.place(ByteSpan { start, end: start });
            (place.line, place.column)
        };
        assert_eq!(at(3), (1, 1));
        assert_eq!(at(6), (1, 3));
        assert_eq!(at(source.len() - 1), (2, 1));
        assert_eq!(at(source.len()), (2, 2));
    }

    #[test]
    fn paths_below_a_reported_error_are_faulty() {
        let mut problems = Problems::new("f", "");
        problems.add(error("checkpoints[2].trigger", 0));
        for path in [
            "checkpoints[2].trigger",
            "checkpoints[2].trigger.patterns[0]",
        ] {
            assert!(problems.is_faulty(path), "{path}");
        }
        for path in [
            "",
            "checkpoints[2]",
            "checkpoints[2].triggers",
            "checkpoints[22].trigger",
        ] {
            assert!(!problems.is_faulty(path), "{path}");
        }
    }

    #[test]
    fn problems_are_sorted_by_position_and_the_rest_is_counted() {
        let mut problems = Problems::new("f", "");
        problems.add(ManifestProblem::new(Code::Alias, "a warning"));
        for start in (0..MAX_DIAGNOSTICS + 2).rev() {
            problems.add(error("x", start));
        }
        let diagnostics = problems.into_diagnostics();
        assert_eq!(diagnostics.len(), MAX_DIAGNOSTICS + 2);
        assert!(diagnostics[..MAX_DIAGNOSTICS].is_sorted_by_key(|d| d.span.unwrap().start));
        let last: Vec<_> = diagnostics[MAX_DIAGNOSTICS..]
            .iter()
            .map(|d| (d.code, d.message.as_str()))
            .collect();
        assert_eq!(
            last,
            [
                (Code::MoreErrors, "and 2 more errors"),
                (Code::MoreWarnings, "and 1 more warning"),
            ]
        );
    }
}
