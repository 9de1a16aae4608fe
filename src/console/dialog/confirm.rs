//! Whether to do something that decides nothing: to take over what another operator looks after, to say that a
//! conversation drifts, or to write over a file. The focus starts on leaving it as it is.

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

/// The question.
#[derive(Debug)]
pub(crate) struct ConfirmDialog {
    title: &'static str,
    text: String,
    /// The button that does it.
    does: &'static str,
    request: Request,
    spot: Spot,
}

/// A place the focus can be at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    Leave,
    Do,
}

impl ConfirmDialog {
    /// Asks before this claim is made.
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

    /// Asks before a conversation is said to drift.
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

    /// Asks before a file is written over.
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

    /// A key press.
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

    /// Paints it in the middle.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look) {
        let buttons = [
            ("Leave it", self.spot == Spot::Leave),
            (self.does, self.spot == Spot::Do),
        ];
        paint_question(frame, area, look, self.title, &self.text, &buttons);
    }
}
