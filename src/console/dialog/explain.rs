//! Why something was held, or would be: every checkpoint and policy, with what it wanted and found.
//! Nothing is decided here.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::cells::{clip, width, wrap};
use super::super::evidence;
use super::super::keymap::{Action, Scope, lookup};
use super::super::layer::{Change, Handled};
use super::super::request::Ticket;
use super::super::theme::{Focus, Look, Meaning};
use crate::base::text::one_line;
use crate::engine::explain::Account;

/// An explanation.
#[derive(Debug)]
pub(crate) struct ExplainDialog {
    ticket: Ticket,
    title: String,
    /// What has to be known to read it.
    note: String,
    told: Vec<Result<Box<Account>, String>>,
    /// What is shown, made when it came or the place changed: a large Atlas has many lines.
    lines: Vec<Line<'static>>,
    place: Rect,
    top: usize,
}

impl ExplainDialog {
    /// One that waits for its answer.
    pub(crate) fn new(number: u64, title: &str, note: &str) -> Self {
        Self {
            ticket: Ticket(number, 0),
            title: one_line(title),
            note: one_line(note),
            told: Vec::new(),
            lines: Vec::new(),
            place: Rect::ZERO,
            top: 0,
        }
    }

    /// One whose answer is known.
    pub(crate) fn of(account: Account, title: &str, note: &str) -> Self {
        let mut dialog = Self::new(0, title, note);
        dialog.told = vec![Ok(Box::new(account))];
        dialog
    }

    /// What it waits for.
    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// The answer came.
    pub(crate) fn on_explained(&mut self, ticket: Ticket, told: &[Result<Box<Account>, String>]) {
        if ticket == self.ticket {
            self.told = told.to_vec();
            self.place = Rect::ZERO;
        }
    }

    /// Prepares the lines for the place they will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, look: Look) {
        if self.place == area {
            return;
        }
        self.place = area;
        let cells = usize::from(area.width).saturating_sub(4);
        let mut lines: Vec<Line> = Vec::new();
        let note = wrap(&self.note, cells).into_iter();
        lines.extend(note.map(|row| Line::styled(row, look.style(Meaning::Hint))));
        if self.told.is_empty() {
            lines.push(Line::styled(
                "asking the engine ...",
                look.style(Meaning::Dim),
            ));
        }
        for told in &self.told {
            lines.push(Line::default());
            lines.extend(evidence::told(told, cells, look));
        }
        self.lines = lines;
        self.top = self.top.min(self.most());
    }

    fn most(&self) -> usize {
        let visible = usize::from(self.place.height).saturating_sub(2);
        self.lines.len().saturating_sub(visible)
    }

    /// A key press: a move, or the way back.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Handled {
        match lookup(Scope::Explain, key) {
            Some(Action::Back) => return Handled::with(Change::Close),
            Some(Action::Help) => return Handled::with(Change::Help(Scope::Explain)),
            Some(action) => {
                if let Some(motion) = action.motion() {
                    self.top = motion.from(self.top, self.most() + 1);
                }
            }
            None => {}
        }
        Handled::quietly()
    }

    /// Paints it over everything.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look) {
        frame.render_widget(Clear, area);
        let visible = usize::from(area.height).saturating_sub(2);
        let below = self.lines.len().saturating_sub(self.top + visible);
        let hint = match below {
            0 => String::new(),
            below => format!(" {below} more below "),
        };
        let room = usize::from(area.width).saturating_sub(8 + width(&hint));
        let title = clip(&format!(" Why: {} ", self.title), room, look);
        let title = Line::from(Span::styled(title, look.style(Meaning::Title)));
        let hint = Line::styled(hint, look.style(Meaning::Waiting)).right_aligned();
        let block = look.panel(Focus::Here).title(title).title(hint);
        let shown: Vec<Line> = self
            .lines
            .iter()
            .skip(self.top)
            .take(visible)
            .cloned()
            .collect();
        frame.render_widget(Paragraph::new(shown).block(block), area);
    }
}
