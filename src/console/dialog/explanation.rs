//! Explanation of a hold, actual or hypothetical: every checkpoint and policy, with its condition and
//! the values found. Nothing is decided here.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::super::dialog::{Dialog, ExplainResult, KeyResult};
use super::super::explanation_lines;
use super::super::keymap::{KeyScope, Motion};
use super::super::request::{ConsoleRequest, Ticket};
use super::super::text_cells::wrap;
use super::super::theme::{Appearance, Meaning};
use super::sheet::TextSheet;
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::engine::explanation::FullExplanation;

/// Dialog that shows an explanation.
#[derive(Debug)]
pub(crate) struct ExplainDialog {
    ticket: Ticket,
    title: String,
    /// Background needed to read the explanation.
    note: String,
    results: Vec<Result<Box<FullExplanation>, String>>,
    sheet: TextSheet,
}

impl ExplainDialog {
    /// Creates a dialog that waits for its explanation.
    pub(crate) fn new(number: u64, title: &str, note: &str) -> Self {
        Self {
            ticket: Ticket(number, 0),
            title: one_line(title),
            note: one_line(note),
            results: Vec::new(),
            sheet: TextSheet::default(),
        }
    }

    /// Creates a dialog with a known explanation.
    pub(crate) fn of(account: FullExplanation, title: &str, note: &str) -> Self {
        let mut dialog = Self::new(0, title, note);
        dialog.results = vec![Ok(Box::new(account))];
        dialog
    }

    /// Ticket of the request that the dialog waits for.
    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Takes over the explanation, if it has the dialog's ticket.
    pub(crate) fn on_explained(
        &mut self,
        ticket: Ticket,
        results: &[Result<Box<FullExplanation>, String>],
    ) {
        if ticket == self.ticket {
            self.results = results.to_vec();
            self.sheet.outdate();
        }
    }

    /// Lays out the lines for the area they will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        let (note, results) = (&self.note, &self.results);
        self.sheet.lay_out(area, |cells| {
            let note = wrap(note, cells).into_iter();
            let note = note.map(|row| Line::styled(row, appearance.style(Meaning::Hint)));
            let mut lines: Vec<_> = note.collect();
            if results.is_empty() {
                let asking = "evaluating ...";
                lines.push(Line::styled(asking, appearance.style(Meaning::Dim)));
            }
            for result in results {
                lines.push(Line::default());
                lines.extend(explanation_lines::render_result(result, cells, appearance));
            }
            lines
        });
    }

    /// Handles a key press: scrolls or goes back.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        self.sheet.on_key(key)
    }

    /// Paints the dialog over the whole area.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let title = format!("Why: {}", self.title);
        self.sheet.draw(&title, frame, area, appearance);
    }
}

impl Dialog for ExplainDialog {
    fn scope(&self) -> KeyScope {
        KeyScope::Explain
    }

    fn on_key(&mut self, key: KeyEvent, _now: Timestamp) -> KeyResult {
        Self::on_key(self, key)
    }

    fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance, _now: Timestamp) {
        Self::draw(self, frame, area, appearance);
    }

    fn on_wheel(&mut self, motion: Motion, _now: Timestamp) {
        Self::on_key(self, motion.arrow_key());
    }

    fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        Self::lay_out(self, area, appearance);
    }

    fn on_explained(&mut self, ticket: Ticket, results: &[ExplainResult]) -> Vec<ConsoleRequest> {
        Self::on_explained(self, ticket, results);
        Vec::new()
    }
}
