//! A page to read: how a file differs, what tests said, what would have become of the past.
//! Nothing is decided here.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use crate::base::text::one_line;
use crate::console::cells::{break_exactly, clip, width, wrap};
use crate::console::keymap::{Action, Scope, lookup};
use crate::console::layer::{Change, Handled};
use crate::console::request::Ticket;
use crate::console::study::{PageLine, Studied};
use crate::console::theme::{Focus, Look, Meaning};

/// A page.
#[derive(Debug)]
pub(crate) struct PageDialog {
    ticket: Ticket,
    title: String,
    /// What has to be known to read it.
    note: String,
    told: Option<Result<Studied, String>>,
    /// What is shown, made when it came or the place changed.
    rows: Vec<Line<'static>>,
    place: Rect,
    top: usize,
}

impl PageDialog {
    /// One that waits for what it shows.
    pub(crate) fn new(number: u64, title: &str, note: &str) -> Self {
        Self {
            ticket: Ticket(number, 0),
            title: one_line(title),
            note: one_line(note),
            told: None,
            rows: Vec::new(),
            place: Rect::ZERO,
            top: 0,
        }
    }

    /// What it waits for.
    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// What it shows came.
    pub(crate) fn on_studied(&mut self, ticket: Ticket, told: &Result<Studied, String>) {
        if ticket == self.ticket {
            self.told = Some(told.clone());
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
        let note = wrap(&self.note, cells).into_iter();
        let mut rows: Vec<Line> = note
            .map(|row| Line::styled(row, look.style(Meaning::Hint)))
            .collect();
        rows.push(Line::default());
        match &self.told {
            None => rows.push(Line::styled("working ...", look.style(Meaning::Dim))),
            Some(Err(why)) => {
                let why = wrap(&one_line(why), cells).into_iter();
                rows.extend(why.map(|row| Line::styled(row, look.style(Meaning::Error))));
            }
            Some(Ok(studied)) => {
                let lines = studied.lines.iter();
                rows.extend(lines.flat_map(|line| broken(line, cells, look)));
            }
        }
        self.rows = rows;
        self.top = self.top.min(self.most());
    }

    fn most(&self) -> usize {
        let visible = usize::from(self.place.height).saturating_sub(2);
        self.rows.len().saturating_sub(visible)
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
        let below = self.rows.len().saturating_sub(self.top + visible);
        let hint = match below {
            0 => String::new(),
            below => format!(" {below} more below "),
        };
        let room = usize::from(area.width).saturating_sub(8 + width(&hint));
        let title = clip(&format!(" {} ", self.title), room, look);
        let title = Line::from(Span::styled(title, look.style(Meaning::Title)));
        let hint = Line::styled(hint, look.style(Meaning::Waiting)).right_aligned();
        let block = look.panel(Focus::Here).title(title).title(hint);
        let shown = self.rows.iter().skip(self.top).take(visible);
        let shown: Vec<Line> = shown.cloned().collect();
        frame.render_widget(Paragraph::new(shown).block(block), area);
    }
}

/// A line in as many rows as it needs. Nothing of it is cut: it may be what a decision rests on.
fn broken(line: &PageLine, cells: usize, look: Look) -> Vec<Line<'static>> {
    let text = one_line(&line.text);
    let rows = break_exactly(&text, cells).into_iter();
    rows.map(|row| Line::styled(row.to_owned(), look.style(line.meaning)))
        .collect()
}
