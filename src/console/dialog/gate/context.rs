//! Context pane: the request exactly as it will run, remarks about it, and how much of it was on
//! screen.
//!
//! Contract: nothing is cut, hidden or reordered. A row counts as seen only when it was painted, and
//! only from the top without a gap, so that jumping to the end does not count as reading.
//!
//! A request can be megabytes long. It is broken into rows once per width; a long one in the
//! background, and until that is done it has no rows, so nothing counts as seen. A row is an offset in
//! the text, and only the rows on screen are read again.

use std::sync::Arc;

use self::remarks::{Remark, RemarkBody};
use self::request_layout::{RequestText, row_starts};
use self::search::SearchState;
use super::markdown;
use crate::base::id::HeldRequestId;
use crate::base::text::one_line;
use crate::console::names::event_words;
use crate::console::text_cells::wrap;
use crate::console::theme::{Appearance, Meaning};
use crate::engine::held::Held;
use crate::runtime::snapshot::SessionSummary;
use crate::trace::event::Event;
use crate::trace::summary;

mod remarks;
mod request_layout;
mod request_text;
mod search;

pub(super) use self::request_layout::is_longer;
pub(crate) use self::request_layout::{LayoutJob, RequestLayout};
pub(super) use self::request_text::describe;
pub(crate) use self::request_text::{hidden_chars_text, request_text};
pub(super) use self::search::{SearchDirection, SearchResult};

/// Heading of the remark about the thread.
const THREAD: &str = "THREAD";

/// State of the context pane.
#[derive(Debug)]
pub(crate) struct ContextPane {
    /// The request as text that is safe to show.
    request_text: Arc<RequestText>,
    /// Remarks about the request.
    remarks: Vec<Remark>,
    /// Offset of each row of the request, for the current width; empty until the layout is done.
    starts: Vec<usize>,
    /// Rows of the remarks, for the same width.
    remark_rows: Vec<markdown::MarkdownRow>,
    /// Width of the rows.
    cells: usize,
    /// Width of the last layout requested in the background.
    requested_cells: usize,
    /// First row on screen.
    top: usize,
    /// Number of rows of the request that were on screen, counted from the first.
    seen: usize,
    /// Bytes of the request that were on screen before the last layout.
    read: usize,
    /// State of the search in the request.
    search: SearchState,
}

/// A row on screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContextRow<'a> {
    /// Row of the request: its offset in the text, its text, and its part.
    Request(usize, &'a str, RequestRowPart),
    /// Row of the remarks.
    Remark(&'a markdown::MarkdownRow),
}

/// Part of the request that a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestRowPart {
    /// Name of the requested action.
    Heading,
    /// First row of a line.
    Line,
    /// Further row of a line.
    Continued,
}

impl ContextPane {
    /// Creates the context of a held request.
    pub(crate) fn new(held: &Arc<Held>, session: Option<&SessionSummary>) -> Self {
        let written = RequestText::for_request(Arc::clone(held));
        Self::of(written, remarks::remarks(held, session))
    }

    /// Creates the context of several requests with the same questions.
    pub(crate) fn of_all(all: &[Arc<Held>]) -> Self {
        let remarks = all.first().map(|held| remarks::remarks(held, None));
        let mut remarks = remarks.unwrap_or_default();
        // The asking agents differ; each is named above its request.
        remarks.retain(|remark| remark.heading != "WHO");
        Self::of(RequestText::for_batch(all), remarks)
    }

    fn of(written: RequestText, remarks: Vec<Remark>) -> Self {
        Self {
            request_text: Arc::new(written),
            remarks,
            starts: Vec::new(),
            remark_rows: Vec::new(),
            cells: 0,
            requested_cells: 0,
            top: 0,
            seen: 0,
            read: 0,
            search: SearchState::default(),
        }
    }

    /// Sets the remark about the thread that the request belongs to.
    pub(crate) fn on_thread(&mut self, description: Option<String>) {
        if self.thread() == description.as_deref() {
            return;
        }
        let is_who = |remark: &Remark| remark.heading == "WHO";
        self.remarks.retain(|remark| remark.heading != THREAD);
        let place = self.remarks.iter().position(is_who);
        let place = place.map_or(self.remarks.len(), |index| index + 1);
        let remark = description.map(|description| Remark {
            heading: THREAD.to_owned(),
            body: RemarkBody::Plain(description),
        });
        self.remarks.splice(place..place, remark);
        // The next layout breaks it into rows.
        self.remark_rows.clear();
    }

    /// Returns the remark about the thread.
    pub(crate) fn thread(&self) -> Option<&str> {
        let mut remarks = self.remarks.iter();
        let remark = remarks.find(|remark| remark.heading == THREAD)?;
        match &remark.body {
            RemarkBody::Plain(description) | RemarkBody::Markdown(description) => Some(description),
        }
    }

    /// Sets the remark with the last events of the session.
    pub(crate) fn on_trail(&mut self, events: &[Event], appearance: Appearance) {
        let rows: Vec<String> = events
            .iter()
            .map(|event| {
                let kind = one_line(&event_words(&event.event_type));
                format!("{} {kind}: {}", event.sequence, summary::sentence(event))
            })
            .collect();
        self.remarks.retain(|remark| remark.heading != "TRAIL");
        if !rows.is_empty() {
            self.remarks.push(Remark {
                heading: "TRAIL".to_owned(),
                body: RemarkBody::Plain(rows.join("\n")),
            });
        }
        if self.cells > 0 {
            self.remark_rows = self.render_remarks(self.cells, appearance);
        }
    }

    /// Breaks the text for a width. Lines that were seen completely stay seen.
    pub(crate) fn reflow(&mut self, cells: usize, appearance: Appearance) {
        if cells == self.cells {
            if self.remark_rows.is_empty() {
                self.remark_rows = self.render_remarks(cells, appearance);
            }
            return;
        }
        if self.is_laid_out() {
            self.read = self.read_bytes();
        }
        self.cells = cells;
        self.remark_rows = self.render_remarks(cells, appearance);
        if self.request_text.is_long() {
            self.starts.clear();
            self.seen = 0;
        } else {
            let starts = row_starts(&self.request_text.render().request, cells);
            self.take(starts);
        }
    }

    fn take(&mut self, starts: Vec<usize>) {
        self.starts = starts;
        self.seen = self.starts.partition_point(|start| *start < self.read);
        // Scrolls back to the first unseen row, so that nothing is skipped.
        self.top = self.top.min(self.seen);
    }

    /// Returns the layout to do in the background, once per width.
    pub(crate) fn take_layout_job(&mut self, gate: &HeldRequestId) -> Option<LayoutJob> {
        if self.is_laid_out() || self.cells == self.requested_cells {
            return None;
        }
        self.requested_cells = self.cells;
        Some(LayoutJob {
            gate: gate.clone(),
            written: Arc::clone(&self.request_text),
            cells: self.cells,
        })
    }

    /// Takes over a layout, unless it is for another request or another width.
    pub(crate) fn on_laid_out(&mut self, layout: &mut RequestLayout) {
        let wanted = Arc::ptr_eq(&layout.written, &self.request_text) && layout.cells == self.cells;
        if wanted && !self.is_laid_out() {
            self.take(std::mem::take(&mut layout.starts));
        }
    }

    /// Returns true if the rows of the request are known.
    pub(crate) fn is_laid_out(&self) -> bool {
        !self.starts.is_empty()
    }

    /// Returns true if the pane has been given an area on screen.
    pub(crate) fn is_shown(&self) -> bool {
        self.cells > 0
    }

    fn text(&self) -> &str {
        let text = self.request_text.get().filter(|_| self.is_laid_out());
        text.map_or("", |text| text.request.as_str())
    }

    fn render_remarks(&self, cells: usize, appearance: Appearance) -> Vec<markdown::MarkdownRow> {
        let mut rows = vec![vec![("-- end of request --".to_owned(), Meaning::Dim)]];
        for remark in &self.remarks {
            rows.push(markdown::MarkdownRow::new());
            rows.push(vec![(remark.heading.clone(), Meaning::Label)]);
            match &remark.body {
                RemarkBody::Plain(text) => {
                    let pieces = wrap(text, cells).into_iter();
                    rows.extend(pieces.map(|piece| vec![(piece, Meaning::Text)]));
                }
                RemarkBody::Markdown(text) => rows.extend(markdown::rows(text, cells, appearance)),
            }
        }
        rows
    }

    /// Marks `height` rows from the top as painted.
    pub(crate) fn mark_painted(&mut self, height: usize) {
        if self.top <= self.seen {
            let bottom = (self.top + height).min(self.starts.len());
            self.seen = self.seen.max(bottom);
        }
    }

    /// Scrolls by `rows`, so that `height` rows stay filled.
    pub(crate) fn scroll(&mut self, rows: isize, height: usize) {
        if !self.is_laid_out() {
            return;
        }
        let most = self.rows().saturating_sub(height);
        self.top = self.top.saturating_add_signed(rows).min(most);
    }

    /// Jumps to the first or the last row.
    pub(crate) fn jump(&mut self, end: JumpTarget, height: usize) {
        if !self.is_laid_out() {
            return;
        }
        self.top = match end {
            JumpTarget::First => 0,
            JumpTarget::Last => self.rows().saturating_sub(height),
        };
    }

    /// Counts all rows. Remarks are not shown without the request.
    fn rows(&self) -> usize {
        if self.is_laid_out() {
            self.starts.len() + self.remark_rows.len()
        } else {
            0
        }
    }

    /// Iterates over the rows on screen.
    pub(crate) fn window(&self, height: usize) -> impl Iterator<Item = ContextRow<'_>> {
        let rows = self.top..(self.top + height).min(self.rows());
        rows.filter_map(|at| self.row(at))
    }

    fn row(&self, at: usize) -> Option<ContextRow<'_>> {
        let Some(start) = self.starts.get(at).copied() else {
            let remark_row = self.remark_rows.get(at - self.starts.len())?;
            return Some(ContextRow::Remark(remark_row));
        };
        let end = self.starts.get(at + 1).copied();
        let request = self.text();
        let text = request.get(start..end.unwrap_or(request.len()))?;
        let first = request.find('\n').unwrap_or(request.len());
        let part = if !self.begins_line(start) {
            RequestRowPart::Continued
        } else if start <= first {
            RequestRowPart::Heading
        } else {
            RequestRowPart::Line
        };
        Some(ContextRow::Request(
            start,
            text.trim_end_matches('\n'),
            part,
        ))
    }

    fn begins_line(&self, start: usize) -> bool {
        start == 0 || self.text().as_bytes().get(start - 1) == Some(&b'\n')
    }

    /// Percentage of the request that was on screen.
    pub(crate) fn percent(&self) -> usize {
        let all = self.starts.len();
        (self.seen * 100).checked_div(all).unwrap_or(0)
    }

    /// Returns true if the whole request was on screen.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_laid_out() && self.seen >= self.starts.len()
    }

    /// Number of hidden characters that are shown escaped.
    pub(crate) fn hidden(&self) -> usize {
        self.request_text.get().map_or(0, |text| text.hidden)
    }

    /// Returns true if there are rows below a window of `height` rows.
    pub(crate) fn has_more(&self, height: usize) -> bool {
        self.top + height < self.rows()
    }

    /// Bytes of the lines that were seen completely.
    fn read_bytes(&self) -> usize {
        let rows = self.starts.iter().take(self.seen + 1).rev();
        match self.starts.get(self.seen) {
            Some(_) => {
                let mut begins = rows.copied().filter(|start| self.begins_line(*start));
                begins.next().unwrap_or(0)
            }
            None if self.starts.is_empty() => 0,
            None => self.text().len(),
        }
    }
}

/// Target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JumpTarget {
    /// The first row.
    First,
    /// The last row.
    Last,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(lines: usize) -> ContextPane {
        let lines: Vec<String> = (0..lines).map(|line| format!("{line:_<30}")).collect();
        ContextPane::of(RequestText::text(lines.join("\n")), Vec::new())
    }

    fn reflow(context: &mut ContextPane, cells: usize) {
        context.reflow(cells, Appearance::default());
    }

    #[test]
    fn rows_after_a_gap_do_not_count_as_seen() {
        let mut context = context(100);
        reflow(&mut context, 40);
        context.mark_painted(10);
        context.scroll(50, 10);
        context.mark_painted(10);
        assert_eq!(context.percent(), 10);
        context.scroll(-41, 10);
        context.mark_painted(10);
        assert_eq!(context.percent(), 19);
    }

    #[test]
    fn a_new_width_keeps_whole_lines_seen_and_scrolls_back_to_the_rest() {
        let mut context = context(10);
        reflow(&mut context, 17);
        assert_eq!(context.starts.len(), 20);
        context.mark_painted(5);
        context.scroll(5, 5);
        reflow(&mut context, 40);
        assert_eq!((context.seen, context.top), (2, 2));
        context.mark_painted(20);
        assert!(context.is_seen());
        reflow(&mut context, 17);
        assert!(context.is_seen(), "what was seen whole stays so");
    }

    #[test]
    fn a_request_without_layout_is_not_seen() {
        assert!(!context(1).is_seen());
    }

    #[test]
    fn joined_rows_of_any_text_equal_the_text() {
        for text in [
            "",
            "\n",
            "a\n\nb",
            "日本語日本語\nabcdefgh\né\u{301}x",
            "abcdefghij",
        ] {
            let mut context = ContextPane::of(RequestText::text(text.to_owned()), Vec::new());
            reflow(&mut context, 6);
            let mut joined = String::new();
            for shown in context.window(usize::from(u16::MAX)) {
                if let ContextRow::Request(start, row, part) = shown {
                    if part != RequestRowPart::Continued && start > 0 {
                        joined.push('\n');
                    }
                    joined.push_str(row);
                }
            }
            assert_eq!(joined, text);
        }
    }
}
