//! Confirmation of an action that decides nothing: taking over another operator's claim, flagging a
//! thread's drift, or overwriting a file. The focus starts on cancel.

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
use crate::memento::Name;
use crate::runtime::ThreadAct;

/// Dialog that asks for confirmation.
#[derive(Debug)]
pub(crate) struct ConfirmDialog {
    title: &'static str,
    text: String,
    /// Label of the button that confirms.
    does: &'static str,
    request: Request,
    spot: Spot,
}

/// Focusable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Leave,
    Do,
}

impl ConfirmDialog {
    /// Creates the question before a claim is taken over.
    pub(crate) fn new(claiming: Claiming) -> Self {
        let by = claiming.seen.as_deref().unwrap_or_default();
        let text = format!(
            "{} is claimed by {}. Taking it over is recorded and decides nothing. Take it over?",
            claiming.gate,
            one_line(by)
        );
        Self {
            title: " Take over ",
            text,
            does: "Take it over",
            request: Request::Operate(Operate::Claim(claiming)),
            spot: Spot::Leave,
        }
    }

    /// Creates the question before a thread's drift is flagged.
    pub(crate) fn drift(thread: &Name) -> Self {
        let text = format!(
            "Say that {} drifts? Its next turn is then worth a summary, even if it only acknowledges. This is \
             recorded, and decides nothing.",
            one_line(thread.as_str())
        );
        Self {
            title: " Drift ",
            text,
            does: "It drifts",
            request: Request::ActOnThread(thread.clone(), ThreadAct::FlagDrift),
            spot: Spot::Leave,
        }
    }

    /// Creates the question before a file is overwritten.
    pub(crate) fn over(path: &str, request: Request) -> Self {
        let text = format!(
            "`{}` is there already. What is in it is gone when it is written over. Write over it?",
            one_line(path)
        );
        Self {
            title: " Write over it ",
            text,
            does: "Write over it",
            request,
            spot: Spot::Leave,
        }
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Handled {
        let action = lookup(Scope::Quit, key);
        if action == Some(Action::Next) {
            self.spot = match self.spot {
                Spot::Leave => Spot::Do,
                Spot::Do => Spot::Leave,
            };
        }
        match (self.spot, action) {
            (Spot::Do, Some(Action::Press)) => {
                let request = self.request.clone();
                Handled::Consumed(vec![Change::Close, Change::Ask(request)])
            }
            (Spot::Leave, Some(Action::Press)) | (_, Some(Action::Back)) => {
                Handled::with(Change::Close)
            }
            (Spot::Do | Spot::Leave, Some(_) | None) => Handled::quietly(),
        }
    }

    /// Paints the dialog in the centre.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look) {
        let buttons = [
            ("Leave it", self.spot == Spot::Leave),
            (self.does, self.spot == Spot::Do),
        ];
        paint_question(frame, area, look, self.title, &self.text, &buttons);
    }
}
