//! Text measured in terminal cells: cut, padded and wrapped so that wide or combining characters never
//! break a column. Also time spans in at most five cells.

use std::time::Duration;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::theme::{Appearance, Mark};
use crate::base::id::SessionId;
use crate::base::text::one_line;

/// Converts a count to a screen coordinate.
pub(crate) fn coordinate(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Returns the number of cells that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// Cuts `text` to at most `cells` cells. A cut text ends in an ellipsis.
pub(crate) fn clip(text: &str, cells: usize, appearance: Appearance) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let mark = appearance.mark(Mark::Ellipsis);
    let room = cells.saturating_sub(width(mark));
    let mut clipped = split_at_width(text, room).0.to_owned();
    if cells >= width(mark) {
        clipped.push_str(mark);
    }
    clipped
}

/// Cuts or pads `text` to exactly `cells` cells.
pub(crate) fn fit(text: &str, cells: usize, appearance: Appearance) -> String {
    let mut fitted = clip(text, cells, appearance);
    let missing = cells.saturating_sub(width(&fitted));
    fitted.extend(std::iter::repeat_n(' ', missing));
    fitted
}

/// Splits `text` into the longest prefix that fits, and the rest.
fn split_at_width(text: &str, cells: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += grapheme.width();
        if used > cells {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// Breaks `text` whenever a line is full. Nothing is dropped, not even a space: for text that must be
/// seen exactly as it is.
pub(crate) fn break_exactly(text: &str, cells: usize) -> Vec<&str> {
    let cells = cells.max(2);
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.is_empty() {
        // One byte is one cell. Texts can be long, and most contain only such bytes.
        let starts = (0..text.len()).step_by(cells);
        let rows = starts.filter_map(|at| text.get(at..text.len().min(at + cells)));
        return rows.collect();
    }
    let mut rows = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (row, after) = split_at_width(rest, cells);
        // A single character wider than the line must not stop the loop.
        let (row, after) = if row.is_empty() {
            (rest, "")
        } else {
            (row, after)
        };
        rows.push(row);
        rest = after;
    }
    if rows.is_empty() {
        rows.push("");
    }
    rows
}

/// Like [`break_exactly`], but breaks after a blank if one is near the end of the line. Every
/// character stays.
pub(crate) fn break_gently(text: &str, cells: usize) -> Vec<&str> {
    let cells = cells.max(2);
    let mut rows = Vec::new();
    let mut rest = text;
    loop {
        let (row, after) = split_at_width(rest, cells);
        // A single character wider than the line must not stop the loop.
        if after.is_empty() || row.is_empty() {
            break;
        }
        let near = |at: &usize| at * 2 > row.len();
        let end = row.rfind(' ').filter(near).map_or(row.len(), |at| at + 1);
        let (row, after) = rest.split_at(end);
        rows.push(row);
        rest = after;
    }
    rows.push(rest);
    rows
}

/// Wraps prose between words, and inside a word only if the word is longer than a line.
pub(crate) fn wrap(text: &str, cells: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        for word in line.split(' ') {
            let gap = usize::from(!row.is_empty());
            if width(&row) + gap + width(word) <= cells {
                if gap == 1 {
                    row.push(' ');
                }
                row.push_str(word);
                continue;
            }
            if !row.is_empty() {
                rows.push(std::mem::take(&mut row));
            }
            let mut pieces = break_exactly(word, cells);
            row.push_str(pieces.pop().unwrap_or_default());
            rows.extend(pieces.into_iter().map(str::to_owned));
        }
        rows.push(row);
    }
    rows
}

/// Like [`wrap`], but returns at most `most` rows; the last row shows that text was cut.
pub(crate) fn wrap_within(
    text: &str,
    cells: usize,
    most: usize,
    appearance: Appearance,
) -> Vec<String> {
    if most == 1 {
        // A single cut row shows more text than a row broken at a word.
        return vec![clip(&text.replace('\n', " "), cells, appearance)];
    }
    let mut rows = wrap(text, cells);
    if rows.len() > most {
        rows.truncate(most);
        if let Some(last) = rows.last_mut() {
            let full = format!("{last} {}", appearance.mark(Mark::Ellipsis));
            *last = clip(&full, cells, appearance);
        }
    }
    rows
}

/// Formats a time span in at most five cells: `mm:ss`, then `3h05`, then `2d04h`.
pub(crate) fn span(length: Duration) -> String {
    let seconds = length.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    if minutes < 100 {
        format!("{minutes:02}:{:02}", seconds % 60)
    } else if hours < 48 {
        format!("{hours}h{:02}", minutes % 60)
    } else {
        format!("{days}d{:02}h", hours % 24)
    }
}

/// Formats a count with its noun: `1 answer`, `2 answers`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats agent and session of a request. An agent prefix in the session's name is left out.
pub(crate) fn asker_text(agent: &str, session: &SessionId) -> String {
    let own = session.as_str().strip_prefix(agent);
    let own = own.and_then(|rest| rest.strip_prefix('.'));
    format!("{}/{}", one_line(agent), own.unwrap_or(session.as_str()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wide_and_combining_characters_keep_their_column() {
        let appearance = Appearance::default();
        assert_eq!(fit("日本語", 4, appearance), "日… ");
        assert_eq!(fit("e\u{301}tude", 3, appearance), "e\u{301}t…");
        assert_eq!(fit("ab", 4, appearance), "ab  ");
    }

    #[test]
    fn spans_are_given_in_minutes_hours_or_days() {
        let text_of = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(
            [text_of(9), text_of(170), text_of(7_500), text_of(187_200)],
            ["00:09", "02:50", "2h05", "2d04h"]
        );
    }

    #[test]
    fn break_gently_breaks_after_blanks_and_keeps_every_character() {
        assert_eq!(break_gently("one two three", 9), ["one two ", "three"]);
        assert_eq!(break_gently("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(break_gently("a bcdefgh", 6), ["a bcde", "fgh"]);
        assert_eq!(break_gently("", 6), [""]);
    }

    #[test]
    fn prose_breaks_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(
            wrap_within("a b c", 1, 2, Appearance::default()),
            ["a", "…"]
        );
    }

    proptest! {
        #[test]
        fn fit_returns_exactly_the_requested_width(text in "[a-z日🙂é ]{0,40}", cells in 1_usize..30) {
            prop_assert_eq!(width(&fit(&text, cells, Appearance::default())), cells);
        }

        #[test]
        fn breaking_keeps_every_character(text in "\\PC{0,80}", cells in 2_usize..20) {
            prop_assert_eq!(&break_exactly(&text, cells).concat(), &text);
            prop_assert_eq!(break_gently(&text, cells).concat(), text);
        }
    }

    #[test]
    fn asker_leaves_out_the_agent_prefix_of_a_session() {
        let text_of = |session: &str| asker_text("claude-code", &session.parse().unwrap());
        assert_eq!(text_of("claude-code.abc"), "claude-code/abc");
        assert_eq!(text_of("claude-codex"), "claude-code/claude-codex");
        assert_eq!(text_of("s-1"), "claude-code/s-1");
    }
}
