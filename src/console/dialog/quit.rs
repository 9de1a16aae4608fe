//! Confirmation before quitting while requests are held. The focus starts on staying.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::cells::{coordinate, counted, wrap};
use super::super::keymap::{Action, Scope, lookup};
use super::super::layer::{Change, Handled};
use super::super::request::Request;
use super::super::theme::{Focus, Look, Meaning};

/// Dialog that asks whether to quit.
#[derive(Debug)]
pub(crate) struct QuitDialog {
    held: usize,
    spot: Spot,
}

/// Focusable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Stay,
    Quit,
}

impl QuitDialog {
    /// Creates the question for `held` requests.
    pub(crate) fn new(held: usize) -> Self {
        Self {
            held,
            spot: Spot::Stay,
        }
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Handled {
        let action = lookup(Scope::Quit, key);
        if action == Some(Action::Next) {
            self.spot = match self.spot {
                Spot::Stay => Spot::Quit,
                Spot::Quit => Spot::Stay,
            };
        }
        let pressed = action == Some(Action::Press);
        match self.spot {
            Spot::Quit if pressed => Handled::with(Change::Ask(Request::Quit)),
            Spot::Stay if pressed => Handled::with(Change::Close),
            Spot::Quit | Spot::Stay if action == Some(Action::Back) => Handled::with(Change::Close),
            Spot::Quit | Spot::Stay => Handled::quietly(),
        }
    }

    /// Paints the dialog in the centre.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look) {
        let are = if self.held == 1 {
            "is held; it stays"
        } else {
            "are held; they stay"
        };
        let expires = if self.held == 1 {
            "it expires"
        } else {
            "they expire"
        };
        let text = format!(
            "{} {are} held and agents keep waiting until {expires}. Quit?",
            counted(self.held, "request")
        );
        let buttons = [
            ("Stay", self.spot == Spot::Stay),
            ("Quit", self.spot == Spot::Quit),
        ];
        paint_question(frame, area, look, " Leave the console ", &text, &buttons);
    }
}

/// Paints a question in the centre, with its buttons; the flag of a button says whether it has the
/// focus.
pub(super) fn paint_question(
    frame: &mut Frame,
    area: Rect,
    look: Look,
    title: &'static str,
    text: &str,
    buttons: &[(&str, bool)],
) {
    let cells = 52.min(area.width.saturating_sub(4));
    let rows = wrap(text, usize::from(cells).saturating_sub(4));
    let mut lines: Vec<Line> = rows.into_iter().map(Line::from).collect();
    lines.push(Line::default());
    let mut spans = Vec::new();
    for (name, focused) in buttons {
        let meaning = if *focused {
            Meaning::ButtonFocused
        } else {
            Meaning::Button
        };
        spans.push(Span::styled(format!("[ {name} ]"), look.style(meaning)));
        spans.push(Span::raw("  "));
    }
    spans.pop();
    lines.push(Line::from(spans));
    let height = coordinate(lines.len() + 2).min(area.height);
    let place = Rect::new(
        area.x + area.width.saturating_sub(cells) / 2,
        area.y + area.height.saturating_sub(height) / 2,
        cells,
        height,
    );
    let title = Line::styled(title, look.style(Meaning::Title));
    frame.render_widget(Clear, place);
    let block = look.panel(Focus::Here).title(title);
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
