//! Page to read: a file's differences, test results, or the replay of the past. Nothing is decided
//! here.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::base::text::one_line;
use crate::console::atlas_study::{PageLine, StudyResult};
use crate::console::dialog::KeyResult;
use crate::console::dialog::sheet::TextSheet;
use crate::console::request::Ticket;
use crate::console::text_cells::{break_gently, wrap};
use crate::console::theme::{Appearance, Meaning};

/// Dialog that shows a page.
#[derive(Debug)]
pub(crate) struct PageDialog {
    ticket: Ticket,
    title: String,
    /// Background needed to read the page.
    note: String,
    result: Option<Result<StudyResult, String>>,
    sheet: TextSheet,
}

impl PageDialog {
    /// Creates a page that waits for its content.
    pub(crate) fn new(number: u64, title: &str, note: &str) -> Self {
        Self {
            ticket: Ticket(number, 0),
            title: one_line(title),
            note: one_line(note),
            result: None,
            sheet: TextSheet::default(),
        }
    }

    /// Ticket of the request that the page waits for.
    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Takes over the content, if it has the page's ticket.
    pub(crate) fn on_studied(&mut self, ticket: Ticket, outcome: &Result<StudyResult, String>) {
        if ticket == self.ticket {
            self.result = Some(outcome.clone());
            self.sheet.outdate();
        }
    }

    /// Lays out the lines for the area they will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        let (note, outcome) = (&self.note, &self.result);
        self.sheet.lay_out(area, |cells| {
            let styled = |text: &str, meaning: Meaning| {
                let rows = wrap(text, cells).into_iter();
                let rows = rows.map(move |row| Line::styled(row, appearance.style(meaning)));
                rows.collect::<Vec<_>>()
            };
            let mut rows = styled(note, Meaning::Hint);
            rows.push(Line::default());
            match outcome {
                None => rows.extend(styled("working ...", Meaning::Dim)),
                Some(Err(reason)) => rows.extend(styled(&one_line(reason), Meaning::Error)),
                Some(Ok(studied)) => {
                    let lines = studied.lines.iter();
                    rows.extend(lines.flat_map(|line| break_page_line(line, cells, appearance)));
                }
            }
            rows
        });
    }

    /// Handles a key press: scrolls or goes back.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        self.sheet.on_key(key)
    }

    /// Paints the page over the whole area.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        self.sheet.draw(&self.title, frame, area, appearance);
    }
}

/// Breaks a line into as many rows as it needs. Nothing is cut: a decision may depend on it.
fn break_page_line(line: &PageLine, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let text = one_line(&line.text);
    let rows = break_gently(&text, cells).into_iter();
    rows.map(|row| Line::styled(row.to_owned(), appearance.style(line.meaning)))
        .collect()
}
