//! Whether to take over what another operator looks after. The focus starts on leaving it to them.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use super::super::keymap::{Action, Scope, lookup};
use super::super::layer::{Change, Handled};
use super::super::request::Request;
use super::super::theme::Look;
use super::quit::paint_question;
use crate::base::text::one_line;
use crate::engine::command::{Claiming, Operate};

/// The question.
#[derive(Debug)]
pub(crate) struct TakeOverDialog {
    claiming: Claiming,
    spot: Spot,
}

/// A place the focus can be at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Leave,
    TakeOver,
}

impl TakeOverDialog {
    /// Asks before this claim is made.
    pub(crate) fn new(claiming: Claiming) -> Self {
        Self {
            claiming,
            spot: Spot::Leave,
        }
    }

    /// A key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Handled {
        let action = lookup(Scope::Quit, key);
        if action == Some(Action::Next) {
            self.spot = match self.spot {
                Spot::Leave => Spot::TakeOver,
                Spot::TakeOver => Spot::Leave,
            };
        }
        match (self.spot, action) {
            (Spot::TakeOver, Some(Action::Press)) => {
                let claiming = self.claiming.clone();
                let request = Request::Operate(Operate::Claim(claiming));
                Handled::Consumed(vec![Change::Close, Change::Ask(request)])
            }
            (Spot::Leave, Some(Action::Press)) | (_, Some(Action::Back)) => {
                Handled::with(Change::Close)
            }
            (Spot::TakeOver | Spot::Leave, Some(_) | None) => Handled::quietly(),
        }
    }

    /// Paints it in the middle.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look) {
        let by = self.claiming.seen.as_deref().unwrap_or_default();
        let text = format!(
            "{} is claimed by {}. Taking it over is recorded and decides nothing. Take it over?",
            self.claiming.gate,
            one_line(by)
        );
        let buttons = [
            ("Leave it", self.spot == Spot::Leave),
            ("Take it over", self.spot == Spot::TakeOver),
        ];
        paint_question(frame, area, look, " Take over ", &text, &buttons);
    }
}
