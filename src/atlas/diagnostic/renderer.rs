//! Diagnostics as human-readable text, with the source line underlined.
//!
//! annotate-snippets neutralises C0 controls and some bidirectional marks, but not everything that
//! [`crate::base::text::is_deceptive`] covers. So the line is cut out and sanitized here, and the underline is
//! shifted accordingly.

use annotate_snippets::renderer::Renderer;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Snippet};

use super::{Diagnostic, Severity, SourceLocation};
use crate::base::text::one_line;

/// Number of characters shown before and after the underlined part of a line.
const CONTEXT_CHARS: usize = 70;

/// Maximum number of underlined characters.
const UNDERLINED_CHARS: usize = 70;

/// The colour mode of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportColour {
    /// With terminal colours.
    Ansi,
    /// Plain text.
    None,
}

/// Placeholder for the position until the report is rendered.
///
/// The renderer would print the column within the excerpt, which differs from the real column where characters are
/// escaped or cut. A private-use character cannot appear in other text of a report, because all of that text has
/// passed through `one_line`.
const PLACE: &str = "\u{e000}";

/// Renders the diagnostics of one file, in their order, in the style of a compiler.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], source: &str, colour: ReportColour) -> String {
    let renderer = match colour {
        ReportColour::Ansi => Renderer::styled(),
        ReportColour::None => Renderer::plain(),
    };
    let reports: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| report(diagnostic, source, &renderer) + "\n")
        .collect();
    reports.join("\n")
}

fn report(diagnostic: &Diagnostic, source: &str, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(one_line(&diagnostic.message))
        .id(diagnostic.code.as_str());
    let file = one_line(&diagnostic.file);
    let Some(place) = diagnostic.span else {
        let group = title.element(Origin::path(file));
        return renderer.render(&[add_notes(group, diagnostic)]);
    };
    let excerpt = Excerpt::of(source, place);
    let printed = format!("{PLACE}:{}:{}", place.line, excerpt.column());
    let snippet = Snippet::source(excerpt.text)
        .path(PLACE)
        .line_start(place.line)
        .annotation(AnnotationKind::Primary.span(excerpt.underlined));
    let group = add_notes(title.element(snippet), diagnostic);
    let meant = format!("{file}:{}:{}", place.line, place.column);
    renderer.render(&[group]).replacen(&printed, &meant, 1)
}

fn add_notes<'a>(mut group: Group<'a>, diagnostic: &Diagnostic) -> Group<'a> {
    // For a top-level key, the line itself already shows the path.
    if diagnostic.path.contains(['.', '[']) {
        let path = format!("in `{}`", one_line(&diagnostic.path));
        group = group.element(Level::NOTE.message(path));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(one_line(help)));
    }
    group
}

/// The source line of a position, sanitized and shortened.
#[derive(Debug, PartialEq, Eq)]
struct Excerpt {
    text: String,
    underlined: std::ops::Range<usize>,
}

impl Excerpt {
    /// Returns the column where the underline starts.
    fn column(&self) -> usize {
        let before = self.text.get(..self.underlined.start).unwrap_or_default();
        before.chars().count() + 1
    }

    fn of(source: &str, place: SourceLocation) -> Self {
        let (head, tail) = source.split_at_checked(place.start).unwrap_or((source, ""));
        let before = head.rsplit('\n').next().unwrap_or_default();
        let line_rest = tail.split('\n').next().unwrap_or_default();
        let marked_len = place.end.saturating_sub(place.start).min(line_rest.len());
        let (marked, after) = line_rest
            .split_at_checked(marked_len)
            .unwrap_or((line_rest, ""));
        // For a position of several lines, only the first line is underlined, without its line break.
        let marked = match marked.trim_end() {
            "" => marked,
            trimmed => trimmed,
        };
        let after = line_rest.get(marked.len()..).unwrap_or(after);

        let mut text = last_chars(before.trim_start_matches('\u{feff}'));
        let start = text.len();
        text.push_str(&first_chars(marked, UNDERLINED_CHARS));
        let underlined = start..text.len();
        text.push_str(&first_chars(after.trim_end_matches('\r'), CONTEXT_CHARS));
        Self { text, underlined }
    }
}

fn first_chars(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((cut, _)) => one_line(text.get(..cut).unwrap_or_default()) + "...",
        None => one_line(text),
    }
}

fn last_chars(text: &str) -> String {
    match text.char_indices().rev().nth(CONTEXT_CHARS) {
        Some((cut, _)) => format!("...{}", one_line(text.get(cut..).unwrap_or_default())),
        None => one_line(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(source: &str, start: usize, end: usize) -> (String, String) {
        let place = SourceLocation {
            start,
            end,
            line: 1,
            column: 1,
        };
        let excerpt = Excerpt::of(source, place);
        let underlined = excerpt.text.get(excerpt.underlined).unwrap().to_owned();
        (excerpt.text, underlined)
    }

    #[test]
    fn underline_shifts_with_escaped_characters() {
        let source = "a\n\u{202e}k\u{200b}: v\t\r\nb";
        let start = source.find('k').unwrap();
        let (text, underlined) = excerpt(source, start, start + "k\u{200b}".len());
        assert_eq!(text, "\\u{202e}k\\u{200b}: v\\t");
        assert_eq!(underlined, "k\\u{200b}");
    }

    #[test]
    fn only_the_first_of_several_lines_is_underlined() {
        let (text, underlined) = excerpt("x: one \r\n  two\n", 3, 14);
        assert_eq!(text, "x: one ");
        assert_eq!(underlined, "one");
    }

    #[test]
    fn positions_at_or_beyond_the_end_do_not_panic() {
        assert_eq!(excerpt("abc", 3, 3).0, "abc");
        assert_eq!(excerpt("abc\n", 4, 9).0, "");
        assert_eq!(excerpt("é", 1, 2).0, "é");
        assert_eq!(excerpt("", 0, 0).0, "");
    }
}
