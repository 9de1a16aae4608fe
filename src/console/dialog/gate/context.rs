//! The request exactly as it will run, what is said about it, and how much of it was on screen.
//!
//! Contract: nothing is cut, hidden or reordered. A row counts as seen only when it was painted,
//! and only from the top on without a gap, so that jumping to the end does not count as reading.
//!
//! A request can be megabytes long. It is broken into rows once for a width, a row is a place in the
//! text, and only the rows on screen are looked at again.

use std::fmt::Write as _;
use std::sync::Arc;

use memchr::memchr_iter;

use self::find::Finder;
use self::remarks::{Body, Remark};
use super::markdown;
use crate::base::text::one_line;
use crate::console::cells::{break_exactly, wrap};
use crate::console::theme::{Look, Meaning};
use crate::engine::held::Held;
use crate::runtime::snapshot::SessionSummary;
use crate::trace::event::Event;
use crate::trace::tell;

mod find;
mod remarks;
mod request;

pub(super) use self::find::{Found, Search};
pub(super) use self::request::describe;
pub(crate) use self::request::{hidden_words, request_text};

/// What stands above what is said of the conversation.
const THREAD: &str = "THREAD";

/// The context pane.
#[derive(Debug)]
pub(crate) struct Context {
    /// The request, made safe to show.
    request: String,
    /// What is said about it.
    remarks: Vec<Remark>,
    /// How many characters were written out.
    hidden: usize,
    /// Where each row of the request begins, for the width they were made for.
    starts: Vec<usize>,
    /// The rows of what is said about it, for the same width.
    said: Vec<markdown::Row>,
    /// The width the rows were made for.
    cells: usize,
    /// The first row on screen.
    top: usize,
    /// Rows of the request that were on screen, from the first on.
    seen: usize,
    /// What is looked for in the request.
    finder: Finder,
}

/// A row on screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    /// Of the request: where it begins in the text, and what it is.
    Request(usize, &'a str, Part),
    /// Of what is said about it.
    Said(&'a markdown::Row),
}

/// Which part of the request a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The name of what is asked for.
    Heading,
    /// The beginning of a line.
    Line,
    /// More of a line.
    Continued,
}

impl Context {
    /// The context of a held request.
    pub(crate) fn new(held: &Held, session: Option<&SessionSummary>) -> Self {
        let (request, hidden) = request::request_text(held);
        Self::of(request, hidden, remarks::remarks(held, session))
    }

    /// The context of several requests that ask the same.
    pub(crate) fn of_all(all: &[Arc<Held>]) -> Self {
        let mut text = String::new();
        let mut hidden = 0;
        for held in all {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            let (request, more) = request::request_text(held);
            let who = format!("{}/{}", one_line(&held.agent), held.session);
            let hash = held.request_hash.short(4);
            // Writing to a String cannot fail.
            let _ = write!(text, "{}  {who}  hash {hash}\n{request}", held.id);
            hidden += more;
        }
        let remarks = all.first().map(|held| remarks::remarks(held, None));
        let mut remarks = remarks.unwrap_or_default();
        // Who asks differs, and stands above each request.
        remarks.retain(|remark| remark.heading != "WHO");
        Self::of(text, hidden, remarks)
    }

    fn of(request: String, hidden: usize, remarks: Vec<Remark>) -> Self {
        Self {
            request,
            remarks,
            hidden,
            starts: Vec::new(),
            said: Vec::new(),
            cells: 0,
            top: 0,
            seen: 0,
            finder: Finder::default(),
        }
    }

    /// Takes in what the conversation has come to that the request is part of.
    pub(crate) fn on_thread(&mut self, told: Option<String>) {
        if self.thread() == told.as_deref() {
            return;
        }
        let is_who = |remark: &Remark| remark.heading == "WHO";
        self.remarks.retain(|remark| remark.heading != THREAD);
        let place = self.remarks.iter().position(is_who);
        let place = place.map_or(self.remarks.len(), |who| who + 1);
        let remark = told.map(|told| Remark {
            heading: THREAD.to_owned(),
            body: Body::Plain(told),
        });
        self.remarks.splice(place..place, remark);
        // It is broken into rows when the place is known.
        self.said.clear();
    }

    /// What is said of the conversation.
    pub(crate) fn thread(&self) -> Option<&str> {
        let mut remarks = self.remarks.iter();
        let remark = remarks.find(|remark| remark.heading == THREAD)?;
        match &remark.body {
            Body::Plain(told) | Body::Markdown(told) => Some(told),
        }
    }

    /// Takes in the last events of the session.
    pub(crate) fn on_trail(&mut self, events: &[Event], look: Look) {
        let told: Vec<String> = events
            .iter()
            .map(|event| {
                let kind = one_line(&event.event_type);
                format!("{} {kind}: {}", event.sequence, tell::sentence(event))
            })
            .collect();
        self.remarks.retain(|remark| remark.heading != "TRAIL");
        if !told.is_empty() {
            self.remarks.push(Remark {
                heading: "TRAIL".to_owned(),
                body: Body::Plain(told.join("\n")),
            });
        }
        if self.cells > 0 {
            self.said = self.say(self.cells, look);
        }
    }

    /// Breaks the text for a width. What was seen stays seen, whole lines only.
    pub(crate) fn reflow(&mut self, cells: usize, look: Look) {
        if cells == self.cells {
            if self.said.is_empty() {
                self.said = self.say(cells, look);
            }
            return;
        }
        let seen = self.seen_bytes();
        self.cells = cells;
        self.starts = starts(&self.request, cells);
        self.said = self.say(cells, look);
        self.seen = self.starts.partition_point(|start| *start < seen);
        // Back to what is unseen, so that nothing is skipped.
        self.top = self.top.min(self.seen);
    }

    fn say(&self, cells: usize, look: Look) -> Vec<markdown::Row> {
        let mut rows = vec![vec![("-- end of request --".to_owned(), Meaning::Dim)]];
        for remark in &self.remarks {
            rows.push(markdown::Row::new());
            rows.push(vec![(remark.heading.clone(), Meaning::Label)]);
            match &remark.body {
                Body::Plain(text) => {
                    let pieces = wrap(text, cells).into_iter();
                    rows.extend(pieces.map(|piece| vec![(piece, Meaning::Text)]));
                }
                Body::Markdown(text) => rows.extend(markdown::rows(text, cells, look)),
            }
        }
        rows
    }

    /// Notes that `height` rows from the top were painted.
    pub(crate) fn painted(&mut self, height: usize) {
        if self.top <= self.seen {
            let bottom = (self.top + height).min(self.starts.len());
            self.seen = self.seen.max(bottom);
        }
    }

    /// Scrolls so that `height` rows stay filled.
    pub(crate) fn scroll(&mut self, rows: isize, height: usize) {
        let most = self.rows().saturating_sub(height);
        self.top = self.top.saturating_add_signed(rows).min(most);
    }

    /// To the first row, or to the last.
    pub(crate) fn jump(&mut self, end: End, height: usize) {
        self.top = match end {
            End::First => 0,
            End::Last => self.rows().saturating_sub(height),
        };
    }

    fn rows(&self) -> usize {
        self.starts.len() + self.said.len()
    }

    /// The rows on screen.
    pub(crate) fn window(&self, height: usize) -> impl Iterator<Item = Shown<'_>> {
        let rows = self.top..(self.top + height).min(self.rows());
        rows.filter_map(|at| self.row(at))
    }

    fn row(&self, at: usize) -> Option<Shown<'_>> {
        let Some(start) = self.starts.get(at).copied() else {
            let said = self.said.get(at - self.starts.len())?;
            return Some(Shown::Said(said));
        };
        let end = self.starts.get(at + 1).copied();
        let text = self.request.get(start..end.unwrap_or(self.request.len()))?;
        let first = self.request.find('\n').unwrap_or(self.request.len());
        let part = if !self.begins_line(start) {
            Part::Continued
        } else if start <= first {
            Part::Heading
        } else {
            Part::Line
        };
        Some(Shown::Request(start, text.trim_end_matches('\n'), part))
    }

    fn begins_line(&self, start: usize) -> bool {
        start == 0 || self.request.as_bytes().get(start - 1) == Some(&b'\n')
    }

    /// How much of the request was on screen, in hundredths.
    pub(crate) fn percent(&self) -> usize {
        let all = self.starts.len();
        (self.seen * 100).checked_div(all).unwrap_or(0)
    }

    /// Whether the whole request was on screen.
    pub(crate) fn is_seen(&self) -> bool {
        !self.starts.is_empty() && self.seen >= self.starts.len()
    }

    /// How many hidden characters were written out.
    pub(crate) fn hidden(&self) -> usize {
        self.hidden
    }

    /// Whether rows lie below a window of `height` rows.
    pub(crate) fn has_more(&self, height: usize) -> bool {
        self.top + height < self.rows()
    }

    /// Bytes of the lines whose every row was seen.
    fn seen_bytes(&self) -> usize {
        let rows = self.starts.iter().take(self.seen + 1).rev();
        match self.starts.get(self.seen) {
            Some(_) => {
                let mut begins = rows.copied().filter(|start| self.begins_line(*start));
                begins.next().unwrap_or(0)
            }
            None if self.starts.is_empty() => 0,
            None => self.request.len(),
        }
    }
}

/// One of two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The first row.
    First,
    /// The last row.
    Last,
}

/// Where each row of a text begins, in rows of so many cells.
fn starts(text: &str, cells: usize) -> Vec<usize> {
    // Two cells are kept for the mark of a continued line.
    let room = cells.saturating_sub(2).max(2);
    let mut starts = Vec::new();
    let mut line_start = 0;
    let ends = memchr_iter(b'\n', text.as_bytes()).chain(std::iter::once(text.len()));
    for end in ends {
        let line = text.get(line_start..end).unwrap_or_default();
        if line.is_ascii() {
            // One byte is one cell: nothing is left in it that is not shown as itself.
            starts.push(line_start);
            starts.extend((room..line.len()).step_by(room).map(|at| line_start + at));
        } else {
            let mut start = line_start;
            for piece in break_exactly(line, room) {
                starts.push(start);
                start += piece.len();
            }
        }
        line_start = end + 1;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(lines: usize) -> Context {
        let lines: Vec<String> = (0..lines).map(|line| format!("{line:_<30}")).collect();
        Context::of(lines.join("\n"), 0, Vec::new())
    }

    fn reflow(context: &mut Context, cells: usize) {
        context.reflow(cells, Look::default());
    }

    #[test]
    fn a_gap_is_not_seen() {
        let mut context = context(100);
        reflow(&mut context, 40);
        context.painted(10);
        context.scroll(50, 10);
        context.painted(10);
        assert_eq!(context.percent(), 10);
        context.scroll(-41, 10);
        context.painted(10);
        assert_eq!(context.percent(), 19);
    }

    #[test]
    fn another_width_keeps_whole_lines_seen_and_goes_back_to_the_rest() {
        let mut context = context(10);
        reflow(&mut context, 17);
        assert_eq!(context.starts.len(), 20);
        context.painted(5);
        context.scroll(5, 5);
        reflow(&mut context, 40);
        assert_eq!((context.seen, context.top), (2, 2));
        context.painted(20);
        assert!(context.is_seen());
        reflow(&mut context, 17);
        assert!(context.is_seen(), "what was seen whole stays so");
    }

    #[test]
    fn nothing_is_seen_before_it_was_laid_out() {
        assert!(!context(1).is_seen());
    }

    #[test]
    fn rows_of_any_text_put_together_are_the_text() {
        for text in [
            "",
            "\n",
            "a\n\nb",
            "日本語日本語\nabcdefgh\né\u{301}x",
            "abcdefghij",
        ] {
            let mut context = Context::of(text.to_owned(), 0, Vec::new());
            reflow(&mut context, 6);
            let mut joined = String::new();
            for shown in context.window(usize::from(u16::MAX)) {
                if let Shown::Request(start, row, part) = shown {
                    if part != Part::Continued && start > 0 {
                        joined.push('\n');
                    }
                    joined.push_str(row);
                }
            }
            assert_eq!(joined, text);
        }
    }
}
