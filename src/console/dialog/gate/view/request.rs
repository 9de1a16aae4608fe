//! View of the pane with the request and the remarks about it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::GateDialog;
use super::super::context::{ContextRow, RequestRowPart, hidden_chars_text};
use super::super::step::{DecisionStep, GatePane};
use crate::base::text::one_line;
use crate::console::json_line;
use crate::console::text_cells::{clip, width, wrap};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};

impl GateDialog {
    pub(super) fn draw_context(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let focus = Focus::from(self.pane != GatePane::Form);
        let (what, seen) = self.request_words();
        let title = Line::from(vec![
            Span::styled(" Request ", appearance.style(Meaning::Title)),
            Span::styled(what, appearance.style(Meaning::Dim)),
        ]);
        let mut block = appearance.panel(focus).title(title);
        if let Some((seen, meaning)) = seen {
            block = block.title(Line::styled(seen, appearance.style(meaning)).right_aligned());
        }
        let inner = block.inner(area);
        let height = usize::from(inner.height);
        if let Some(search) = self.search_line(usize::from(inner.width), appearance) {
            block = block.title_bottom(search);
        } else if self.context.hidden() > 0 {
            let words = format!(" {} ", hidden_chars_text(self.context.hidden()));
            block = block.title_bottom(Line::styled(words, appearance.style(Meaning::Warning)));
        }
        if self.context.has_more(height) {
            let more =
                Line::styled(" PgDn: more below ", appearance.style(Meaning::Key)).right_aligned();
            block = block.title_bottom(more);
        }
        let rows = self.context.window(height).map(|row| match row {
            ContextRow::Request(start, text, part) => {
                self.request_row(start, text, part, appearance)
            }
            ContextRow::Remark(remark) => {
                let spans = remark.iter();
                let spans = spans
                    .map(|(text, meaning)| Span::styled(text.clone(), appearance.style(*meaning)));
                Line::from(spans.collect::<Vec<_>>())
            }
        });
        let mut rows = rows.collect::<Vec<_>>();
        if !self.context.is_laid_out() {
            let words = "This long request is still loading.";
            let words = wrap(words, usize::from(inner.width)).into_iter();
            rows.extend(words.map(|row| Line::styled(row, appearance.style(Meaning::Dim))));
        }
        frame.render_widget(Paragraph::new(rows).block(block), area);
    }

    /// Text for the version on screen, and the percentage seen. A settled or replaced request will not
    /// run as shown, so its percentage does not count.
    fn request_words(&self) -> (&'static str, Option<(String, Meaning)>) {
        match &self.step {
            DecisionStep::Changed(_) => ("(previous) ", None),
            DecisionStep::Settled(_) => ("(as requested) ", None),
            DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_) => {
                let meaning = if self.context.is_seen() {
                    Meaning::Passed
                } else {
                    Meaning::Warning
                };
                let seen = format!(" seen {} % ", self.context.percent());
                ("(exact) ", Some((seen, meaning)))
            }
        }
    }

    /// Builds the line with the search text, while it is typed or set.
    fn search_line(&self, cells: usize, appearance: Appearance) -> Option<Line<'static>> {
        let typing = self.pane == GatePane::Search;
        let query = self.context.query();
        let silent = query.is_empty() && self.notice.is_none();
        if !typing && (silent || self.pane == GatePane::Form) {
            return None;
        }
        // If the search text is too long, its end is shown.
        let mut shown = query.to_owned();
        while width(&shown) > cells / 3 {
            shown.remove(0);
        }
        let room = cells.saturating_sub(width(&shown) + 20);
        let mut spans = vec![
            Span::styled(" / ", appearance.style(Meaning::Key)),
            Span::styled(shown, appearance.style(Meaning::Strong)),
        ];
        if typing {
            spans.push(Span::styled(" ", appearance.style(Meaning::ButtonFocused)));
        }
        spans.push(Span::raw(" "));
        // If only this pane is shown, the notice has no other place.
        if let Some(notice) = &self.notice {
            let notice = clip(&one_line(notice), room, appearance);
            spans.push(Span::styled(notice, appearance.style(Meaning::Warning)));
            spans.push(Span::raw(" "));
        }
        Some(Line::from(spans))
    }

    /// Builds a row of the request, with the matches highlighted.
    fn request_row(
        &self,
        start: usize,
        text: &str,
        part: RequestRowPart,
        appearance: Appearance,
    ) -> Line<'static> {
        let marked = self.context.matches_in(&(start..start + text.len()));
        let mut line = if marked.is_empty() {
            match part {
                RequestRowPart::Heading => {
                    Line::styled(text.to_owned(), appearance.style(Meaning::Strong))
                }
                RequestRowPart::Line => json_line::line(text, appearance),
                RequestRowPart::Continued => Line::from(text.to_owned()),
            }
        } else {
            let mut line = Line::default();
            let mut at = start;
            for place in marked {
                let cut = |from: usize, to: usize| {
                    let from = from.saturating_sub(start);
                    let to = to.saturating_sub(start);
                    text.get(from..to).unwrap_or_default().to_owned()
                };
                line.push_span(Span::raw(cut(at, place.start)));
                let hit = cut(place.start.max(at), place.end);
                line.push_span(Span::styled(hit, appearance.style(Meaning::Selected)));
                at = at.max(place.end);
            }
            let rest = text.get(at.saturating_sub(start)..).unwrap_or_default();
            line.push_span(Span::raw(rest.to_owned()));
            line
        };
        if part == RequestRowPart::Continued {
            let mark = Span::styled(
                appearance.mark(Mark::Continued),
                appearance.style(Meaning::Dim),
            );
            line.spans.insert(0, mark);
        }
        line
    }
}
