//! Markdown rendered as terminal rows: headings, lists, quotes, code, emphasis and links.
//!
//! Supports a small part of the language on purpose. The steward's text is shown completely: an
//! address follows the text of its link, code keeps its marks, and unsupported syntax is shown as
//! written. Rows are made once per width and styled by meaning, so that they look right in every
//! theme.

use crate::console::cells::{break_exactly, width};
use crate::console::theme::{Appearance, Mark, Meaning};

/// A row: pieces of text, each with its meaning.
pub(crate) type MarkdownRow = Vec<(String, Meaning)>;

/// Renders `text` as rows of at most `cells` cells. The caller has already made `text` safe to show.
pub(crate) fn rows(text: &str, cells: usize, look: Appearance) -> Vec<MarkdownRow> {
    let mut rows = Vec::new();
    let mut fenced = false;
    let mut paragraph = TextFlow::default();
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            paragraph.end(&mut rows, cells);
            fenced = !fenced;
            continue;
        }
        if fenced {
            let pieces = break_exactly(line, cells.saturating_sub(2));
            let code = |piece: &str| vec![(format!("  {piece}"), Meaning::Label)];
            rows.extend(pieces.into_iter().map(code));
            continue;
        }
        let indent = line.chars().take_while(|c| *c == ' ').count().min(8);
        match block(trimmed) {
            MarkdownBlock::Blank => {
                paragraph.end(&mut rows, cells);
                if rows.last().is_some_and(|row| !row.is_empty()) {
                    rows.push(MarkdownRow::new());
                }
            }
            MarkdownBlock::Rule => {
                paragraph.end(&mut rows, cells);
                let rule = look.mark(Mark::Rule).repeat(cells.min(24));
                rows.push(vec![(rule, Meaning::Border)]);
            }
            MarkdownBlock::Heading(text) => {
                paragraph.end(&mut rows, cells);
                paragraph = TextFlow::starting("", 0, Meaning::Title, text);
                paragraph.end(&mut rows, cells);
            }
            MarkdownBlock::Item(mark, text) => {
                paragraph.end(&mut rows, cells);
                let mark = match mark {
                    Some(number) => format!("{number} "),
                    None => format!("{} ", look.mark(Mark::Bullet)),
                };
                paragraph = TextFlow::starting(&mark, indent, Meaning::Text, text);
            }
            MarkdownBlock::Quote(text) => {
                paragraph.end(&mut rows, cells);
                let mark = format!("{} ", look.mark(Mark::Separator));
                paragraph = TextFlow::starting(&mark, indent, Meaning::Dim, text);
                paragraph.end(&mut rows, cells);
            }
            MarkdownBlock::Text(text) => paragraph.add(text),
        }
    }
    paragraph.end(&mut rows, cells);
    while rows.last().is_some_and(MarkdownRow::is_empty) {
        rows.pop();
    }
    rows
}

enum MarkdownBlock<'t> {
    Blank,
    Rule,
    Heading(&'t str),
    /// A list item, with its number if it has one.
    Item(Option<&'t str>, &'t str),
    Quote(&'t str),
    Text(&'t str),
}

fn block(line: &str) -> MarkdownBlock<'_> {
    if line.trim().is_empty() {
        return MarkdownBlock::Blank;
    }
    let bare: String = line.chars().filter(|c| *c != ' ').collect();
    if bare.len() >= 3
        && ["-", "*", "_"]
            .iter()
            .any(|c| bare.replace(c, "").is_empty())
    {
        return MarkdownBlock::Rule;
    }
    let hashes = line.chars().take_while(|c| *c == '#').count();
    if let (1..=6, Some(text)) = (hashes, line.trim_start_matches('#').strip_prefix(' ')) {
        return MarkdownBlock::Heading(text.trim_end_matches('#').trim());
    }
    for mark in ["- ", "* ", "+ "] {
        if let Some(text) = line.strip_prefix(mark) {
            return MarkdownBlock::Item(None, text);
        }
    }
    if let Some(text) = line.strip_prefix('>') {
        return MarkdownBlock::Quote(text.trim_start());
    }
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let (number, after) = line.split_at(digits);
    if (1..=4).contains(&digits) {
        for dot in [". ", ") "] {
            if let Some(text) = after.strip_prefix(dot) {
                let (number, _) = line.split_at(number.len() + 1);
                return MarkdownBlock::Item(Some(number), text);
            }
        }
    }
    MarkdownBlock::Text(line)
}

/// A paragraph that is not yet broken into rows.
#[derive(Default)]
struct TextFlow {
    /// Prefix of the first row. Further rows are indented by its width.
    mark: String,
    meaning: Option<Meaning>,
    text: String,
}

impl TextFlow {
    fn starting(mark: &str, indent: usize, meaning: Meaning, text: &str) -> Self {
        Self {
            mark: format!("{}{mark}", " ".repeat(indent)),
            meaning: Some(meaning),
            text: text.to_owned(),
        }
    }

    fn add(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text.trim_end());
    }

    /// Breaks the collected text into rows.
    fn end(&mut self, rows: &mut Vec<MarkdownRow>, cells: usize) {
        let flow = std::mem::take(self);
        if flow.text.is_empty() && flow.mark.is_empty() {
            return;
        }
        let meaning = flow.meaning.unwrap_or(Meaning::Text);
        let indent = width(&flow.mark);
        let room = cells.saturating_sub(indent).max(2);
        let mut row: MarkdownRow = vec![(flow.mark, Meaning::Dim)];
        let mut used = 0;
        for word in words(&spans(&flow.text, meaning)) {
            let meaning = word.meaning;
            let gap = if used > 0 { word.gap } else { 0 };
            if used + gap + width(&word.text) > room && gap > 0 {
                rows.push(std::mem::replace(&mut row, indented(indent)));
                used = 0;
            } else if gap > 0 {
                push(&mut row, " ", meaning);
                used += 1;
            }
            // This part belongs to the word before, without a gap, and does not fit.
            if used > 0 && used + width(&word.text) > room {
                rows.push(std::mem::replace(&mut row, indented(indent)));
                used = 0;
            }
            let mut pieces = break_exactly(&word.text, room);
            let last = pieces.pop().unwrap_or_default();
            for piece in pieces {
                push(&mut row, piece, meaning);
                rows.push(std::mem::replace(&mut row, indented(indent)));
            }
            push(&mut row, last, meaning);
            used += width(last);
        }
        rows.push(row);
    }
}

fn indented(cells: usize) -> MarkdownRow {
    vec![(" ".repeat(cells), Meaning::Text)]
}

fn push(row: &mut MarkdownRow, text: &str, meaning: Meaning) {
    match row.last_mut() {
        Some((last, same)) if *same == meaning => last.push_str(text),
        Some(_) | None => row.push((text.to_owned(), meaning)),
    }
}

/// A word, or a part of one with its own meaning.
struct StyledWord {
    text: String,
    meaning: Meaning,
    /// Cells between this word and the one before; 0 if both are one word.
    gap: usize,
}

fn words(spans: &[(String, Meaning)]) -> Vec<StyledWord> {
    let mut words = Vec::new();
    let mut gap = 0;
    for (text, meaning) in spans {
        for (at, word) in text.split(' ').enumerate() {
            gap = if at > 0 { 1 } else { gap };
            if !word.is_empty() {
                words.push(StyledWord {
                    text: word.to_owned(),
                    meaning: *meaning,
                    gap: std::mem::take(&mut gap),
                });
            }
        }
    }
    words
}

/// Splits a line into spans: emphasis, code, links, and plain text.
fn spans(text: &str, meaning: Meaning) -> Vec<(String, Meaning)> {
    let mut spans: Vec<(String, Meaning)> = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some((span, after)) = special(rest) {
            spans.push((std::mem::take(&mut plain), meaning));
            spans.push(span);
            rest = after;
            continue;
        }
        plain.push(first);
        rest = rest.split_at(first.len_utf8()).1;
    }
    spans.push((plain, meaning));
    spans
}

/// Parses a span of emphasis, code or link at the start of `text`. Returns it and the rest.
fn special(text: &str) -> Option<((String, Meaning), &str)> {
    if let Some(inside) = text.strip_prefix('`') {
        let (code, after) = inside.split_once('`')?;
        return Some(((format!("`{code}`"), Meaning::Label), after));
    }
    for mark in ["**", "__"] {
        if let Some((strong, after)) = between(text, mark) {
            return Some(((strong.to_owned(), Meaning::Strong), after));
        }
    }
    if let Some((said, after)) = between(text, "*") {
        return Some(((said.to_owned(), Meaning::Strong), after));
    }
    let inside = text.strip_prefix('[')?;
    let (label, after) = inside.split_once("](")?;
    let (address, after) = after.split_once(')')?;
    (!label.contains('[')).then(|| ((format!("{label} <{address}>"), Meaning::Key), after))
}

/// Returns the text between two equal marks, and the rest.
fn between<'t>(text: &'t str, mark: &str) -> Option<(&'t str, &'t str)> {
    let inside = text.strip_prefix(mark)?;
    let (said, after) = inside.split_once(mark)?;
    let tight = !said.is_empty() && said.trim() == said;
    tight.then_some((said, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, cells: usize) -> Vec<String> {
        let rows = rows(text, cells, Appearance::default());
        let joined = rows.into_iter().map(|row| {
            let texts = row.into_iter().map(|(text, _)| text);
            texts.collect::<String>().trim_end().to_owned()
        });
        joined.collect()
    }

    #[test]
    fn blocks_become_rows() {
        let text = "# Before you pass\n\nRead the *whole* request,\nthen:\n\n- check `ids`\n- ask **twice** \
                    before anything is deleted\n1. one\n\n> quoted\n\n```\nlet x  = 1;\n```\n---\nend";
        assert_eq!(
            plain(text, 24),
            [
                "Before you pass",
                "",
                "Read the whole request,",
                "then:",
                "",
                "· check `ids`",
                "· ask twice before",
                "  anything is deleted",
                "1. one",
                "",
                "│ quoted",
                "",
                "  let x  = 1;",
                "────────────────────────",
                "end",
            ]
        );
    }

    #[test]
    fn a_word_with_several_meanings_stays_one_word() {
        assert_eq!(
            plain("ask **twice**, (*really*)", 40),
            ["ask twice, (really)"]
        );
    }

    #[test]
    fn a_link_shows_its_address() {
        assert_eq!(
            plain("see [the rules](https://evil.example/x) now", 60),
            ["see the rules <https://evil.example/x> now"]
        );
    }

    #[test]
    fn unsupported_markdown_is_shown_as_written() {
        for text in [
            "2 * 3 * 4",
            "a_b_c",
            "[x] done",
            "`open",
            "**",
            "#tag",
            "1.5",
        ] {
            assert_eq!(plain(text, 40), [text], "{text}");
        }
    }

    #[test]
    fn emphasis_and_code_get_their_own_meaning() {
        let rows = rows("a **b** `c`", 40, Appearance::default());
        let row: Vec<(&str, Meaning)> = rows[0]
            .iter()
            .map(|(text, meaning)| (text.trim(), *meaning))
            .collect();
        assert!(row.contains(&("b", Meaning::Strong)), "{row:?}");
        assert!(row.contains(&("`c`", Meaning::Label)), "{row:?}");
    }

    #[test]
    fn no_row_is_wider_than_the_given_cells() {
        let text = format!(
            "# {}\n- {}\n{} 日本語のとても長い文章です",
            "w".repeat(90),
            "x".repeat(90),
            "y ".repeat(60)
        );
        for cells in 4..40 {
            for row in plain(&text, cells) {
                assert!(width(&row) <= cells, "{cells}: {row}");
            }
        }
    }
}
