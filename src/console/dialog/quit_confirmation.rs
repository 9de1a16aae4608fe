//! Confirmation before quitting while requests are held. The focus starts on staying.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::dialog::{Dialog, KeyResult, LayerChange};
use super::super::keymap::{KeyAction, KeyScope, find_action};
use super::super::request::ConsoleRequest;
use super::super::text_cells::{coordinate, counted, wrap};
use super::super::theme::{Appearance, Focus, Meaning};
use crate::base::clock::Timestamp;

/// Dialog that asks whether to quit.
#[derive(Debug)]
pub(crate) struct QuitDialog {
    held: usize,
    focus: QuitFocus,
}

/// Focusable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuitFocus {
    Stay,
    Quit,
}

impl QuitDialog {
    /// Creates the question for `held` requests.
    pub(crate) fn new(held: usize) -> Self {
        Self {
            held,
            focus: QuitFocus::Stay,
        }
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        let action = find_action(KeyScope::Quit, key);
        if action == Some(KeyAction::Next) {
            self.focus = match self.focus {
                QuitFocus::Stay => QuitFocus::Quit,
                QuitFocus::Quit => QuitFocus::Stay,
            };
        }
        let pressed = action == Some(KeyAction::Press);
        match self.focus {
            QuitFocus::Quit if pressed => KeyResult::with(LayerChange::Send(ConsoleRequest::Quit)),
            QuitFocus::Stay if pressed => KeyResult::with(LayerChange::Close),
            QuitFocus::Quit | QuitFocus::Stay if action == Some(KeyAction::Back) => {
                KeyResult::with(LayerChange::Close)
            }
            QuitFocus::Quit | QuitFocus::Stay => KeyResult::quietly(),
        }
    }

    /// Paints the dialog in the centre.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let effect = if self.held == 1 {
            "is held. Quitting disconnects its agent. The request is held again"
        } else {
            "are held. Quitting disconnects their agents. The requests are held again"
        };
        let text = format!(
            "{} {effect} when cra restarts. Quit?",
            counted(self.held, "request")
        );
        let buttons = [
            ("Stay", self.focus == QuitFocus::Stay),
            ("Quit", self.focus == QuitFocus::Quit),
        ];
        paint_question(
            frame,
            area,
            appearance,
            " Quit the console ",
            &text,
            &buttons,
        );
    }
}

/// Paints a question in the centre, with its buttons; the flag of a button says whether it has the
/// focus.
pub(super) fn paint_question(
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
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
        spans.push(Span::styled(
            format!("[ {name} ]"),
            appearance.style(meaning),
        ));
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
    let title = Line::styled(title, appearance.style(Meaning::Title));
    frame.render_widget(Clear, place);
    let block = appearance.panel(Focus::Here).title(title);
    frame.render_widget(Paragraph::new(lines).block(block), place);
}

impl Dialog for QuitDialog {
    fn scope(&self) -> KeyScope {
        KeyScope::Quit
    }

    fn on_key(&mut self, key: KeyEvent, _now: Timestamp) -> KeyResult {
        Self::on_key(self, key)
    }

    fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance, _now: Timestamp) {
        Self::draw(self, frame, area, appearance);
    }
}
