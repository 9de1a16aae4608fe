//! Markdown rendered as terminal rows: headings, lists, quotes, code, emphasis and links.
//!
//! The steward's text is shown completely: an address follows the text of its link, code keeps its marks, and HTML,
//! images and unused link definitions are shown as written. Rows are made once per width and styled by meaning, so that
//! they look right in every theme.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::console::text_cells::{break_exactly, width};
use crate::console::theme::{Appearance, Mark, Meaning};

/// A row: pieces of text, each with its meaning.
pub(crate) type MarkdownRow = Vec<(String, Meaning)>;

/// Renders `text` as rows of at most `cells` cells. The caller has already made `text` safe to show.
pub(crate) fn rows(text: &str, cells: usize, appearance: Appearance) -> Vec<MarkdownRow> {
    let parser = Parser::new(text);
    let definitions: Vec<String> = parser
        .reference_definitions()
        .iter()
        .filter_map(|(_, definition)| text.get(definition.span.clone()))
        .map(|line| line.trim().to_owned())
        .collect();
    let mut page = Page::new(cells, appearance);
    for event in parser {
        page.add(event);
    }
    page.end_paragraph();
    for line in definitions {
        page.flow.push(&line, Meaning::Dim);
        page.end_paragraph();
    }
    page.rows
}

/// Rows made so far, and the paragraph that is being collected.
struct Page {
    cells: usize,
    appearance: Appearance,
    rows: Vec<MarkdownRow>,
    flow: TextFlow,
    /// Next number of each open list; `None` for a list with bullets.
    lists: Vec<Option<u64>>,
    quotes: usize,
    is_code: bool,
    /// Addresses of the open links and images.
    addresses: Vec<String>,
    /// Number of open emphases.
    emphasis: usize,
    /// True if an empty row goes before the next block.
    has_gap: bool,
}

impl Page {
    fn new(cells: usize, appearance: Appearance) -> Self {
        Self {
            cells,
            appearance,
            rows: Vec::new(),
            flow: TextFlow::default(),
            lists: Vec::new(),
            quotes: 0,
            is_code: false,
            addresses: Vec::new(),
            emphasis: 0,
            has_gap: false,
        }
    }

    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => self.add_code(&text),
            Event::Text(text) => self.flow.push(&text, self.meaning()),
            Event::Code(code) => self.flow.push(&format!("`{code}`"), Meaning::Label),
            Event::SoftBreak => self.flow.push(" ", Meaning::Text),
            Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.begin_block();
                let rule = self.appearance.mark(Mark::Rule).repeat(self.cells.min(24));
                self.rows.push(vec![(rule, Meaning::Border)]);
                self.has_gap = false;
            }
            Event::Html(html) => {
                self.flow.push(html.trim_end(), Meaning::Dim);
                self.break_line();
            }
            Event::InlineHtml(html) => self.flow.push(&html.replace('\n', " "), Meaning::Dim),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.flow.push(&text, Meaning::Text);
            }
            Event::TaskListMarker(is_done) => {
                let mark = if is_done { "[x] " } else { "[ ] " };
                self.flow.push(mark, Meaning::Text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph if self.flow.is_empty() => self.begin_block(),
            Tag::Heading { .. } => {
                self.begin_block();
                self.flow.meaning = Some(Meaning::Title);
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.quotes += 1;
            }
            Tag::CodeBlock(_) => {
                self.begin_block();
                self.is_code = true;
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.begin_block();
                } else {
                    self.end_paragraph();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_paragraph();
                self.begin_item();
            }
            Tag::Emphasis | Tag::Strong => self.emphasis += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.addresses.push(dest_url.into_string());
            }
            Tag::HtmlBlock => self.begin_block(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::HtmlBlock => {
                self.end_paragraph();
                self.has_gap = self.lists.is_empty();
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.quotes = self.quotes.saturating_sub(1);
                self.has_gap = true;
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.has_gap = true;
            }
            TagEnd::List(_) => {
                self.end_paragraph();
                self.lists.pop();
                self.has_gap = self.lists.is_empty();
            }
            TagEnd::Item => self.end_paragraph(),
            TagEnd::Emphasis | TagEnd::Strong => self.emphasis = self.emphasis.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => {
                if let Some(address) = self.addresses.pop() {
                    self.flow.push(&format!(" <{address}>"), Meaning::Key);
                }
            }
            _ => {}
        }
    }

    fn meaning(&self) -> Meaning {
        if !self.addresses.is_empty() {
            Meaning::Key
        } else if self.emphasis > 0 {
            Meaning::Strong
        } else {
            self.flow.meaning.unwrap_or(if self.quotes > 0 {
                Meaning::Dim
            } else {
                Meaning::Text
            })
        }
    }

    /// Ends the paragraph before a block, with an empty row between the two.
    fn begin_block(&mut self) {
        self.end_paragraph();
        if std::mem::take(&mut self.has_gap) {
            self.rows.push(MarkdownRow::new());
        }
        if self.quotes > 0 {
            self.flow.mark = self.quote_mark();
        }
    }

    fn begin_item(&mut self) {
        if std::mem::take(&mut self.has_gap) {
            self.rows.push(MarkdownRow::new());
        }
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(4));
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            Some(None) | None => format!("{} ", self.appearance.mark(Mark::Bullet)),
        };
        self.flow.mark = format!("{}{indent}{mark}", self.quote_mark());
    }

    fn quote_mark(&self) -> String {
        format!("{} ", self.appearance.mark(Mark::Separator)).repeat(self.quotes)
    }

    fn add_code(&mut self, code: &str) {
        for line in code.lines() {
            let pieces = break_exactly(line, self.cells.saturating_sub(2));
            let row = |piece: &str| vec![(format!("  {piece}"), Meaning::Label)];
            self.rows.extend(pieces.into_iter().map(row));
        }
    }

    /// Ends a row within a paragraph. The next row is indented like a wrapped one.
    fn break_line(&mut self) {
        let indent = width(&self.flow.mark);
        let meaning = self.flow.meaning;
        self.end_paragraph();
        self.flow.mark = " ".repeat(indent);
        self.flow.meaning = meaning;
    }

    fn end_paragraph(&mut self) {
        self.flow.end(&mut self.rows, self.cells);
    }
}

/// A paragraph that is not yet broken into rows.
#[derive(Default)]
struct TextFlow {
    /// Prefix of the first row. Further rows are indented by its width.
    mark: String,
    /// Meaning of its plain text, if that differs from the text around it.
    meaning: Option<Meaning>,
    spans: Vec<(String, Meaning)>,
}

impl TextFlow {
    fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    fn push(&mut self, text: &str, meaning: Meaning) {
        self.spans.push((text.to_owned(), meaning));
    }

    /// Breaks the collected text into rows.
    fn end(&mut self, rows: &mut Vec<MarkdownRow>, cells: usize) {
        let flow = std::mem::take(self);
        if flow.spans.is_empty() {
            return;
        }
        let indent = width(&flow.mark);
        let room = cells.saturating_sub(indent).max(2);
        let mut row: MarkdownRow = vec![(flow.mark, Meaning::Dim)];
        let mut used = 0;
        for word in words(&flow.spans) {
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
                "",
                "1. one",
                "",
                "│ quoted",
                "",
                "  let x  = 1;",
                "",
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
    fn nothing_of_the_text_is_hidden() {
        let text = "a <!-- hidden --> b\n\n<div>\nblock\n</div>\n\n![picture](x.png)\n\n[unused]: https://evil.example";
        let shown = plain(text, 60).join("\n");
        for part in [
            "<!-- hidden -->",
            "<div>",
            "block",
            "</div>",
            "picture <x.png>",
            "[unused]: https://evil.example",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }

    #[test]
    fn lists_nest_and_quotes_keep_their_mark() {
        let text = "- one\n  - two\n    more\n- three\n\n> q\n> - r\n";
        assert_eq!(
            plain(text, 40),
            ["· one", "  · two more", "· three", "", "│ q", "", "│ · r"]
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
