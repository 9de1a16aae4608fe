//! Confirmation of an action that decides nothing: taking over another operator's claim, flagging a
//! thread's drift, or overwriting a file. The focus starts on cancel.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;

use super::super::dialog::{Dialog, KeyResult, LayerChange};
use super::super::keymap::{KeyAction, KeyScope, find_action};
use super::super::request::ConsoleRequest;
use super::super::theme::Appearance;
use super::quit_confirmation::paint_question;
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::engine::command::{ClaimChange, OperatorAction};
use crate::memento::ExternalName;
use crate::runtime::ThreadAction;

/// Dialog that asks for confirmation.
#[derive(Debug)]
pub(crate) struct ConfirmDialog {
    title: &'static str,
    text: String,
    /// Label of the button that confirms.
    confirm_label: &'static str,
    request: ConsoleRequest,
    focus: ConfirmFocus,
}

/// Focusable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConfirmFocus {
    Cancel,
    Confirm,
}

impl ConfirmDialog {
    /// Creates the question before a claim is taken over.
    pub(crate) fn new(claiming: ClaimChange) -> Self {
        let by = claiming.seen.as_deref().unwrap_or_default();
        let text = format!(
            "{} is claimed by {}. Taking over is recorded; it is not a decision. Take over?",
            claiming.gate,
            one_line(by)
        );
        Self {
            title: " Take over ",
            text,
            confirm_label: "Take over",
            request: ConsoleRequest::Operate(OperatorAction::Claim(claiming)),
            focus: ConfirmFocus::Cancel,
        }
    }

    /// Creates the question before a thread's drift is flagged.
    pub(crate) fn drift(thread: &ExternalName) -> Self {
        let text = format!(
            "Flag drift in {}? The next turn then counts for the summary, even if it is only an \
             acknowledgement. The flag is recorded.",
            one_line(thread.as_str())
        );
        Self {
            title: " Drift ",
            text,
            confirm_label: "Flag drift",
            request: ConsoleRequest::ActOnThread(thread.clone(), ThreadAction::FlagDrift),
            focus: ConfirmFocus::Cancel,
        }
    }

    /// Creates the question before a file is overwritten.
    pub(crate) fn overwrite(path: &str, request: ConsoleRequest) -> Self {
        let text = format!(
            "`{}` already exists. Overwriting deletes its content. Overwrite the file?",
            one_line(path)
        );
        Self {
            title: " Overwrite ",
            text,
            confirm_label: "Overwrite",
            request,
            focus: ConfirmFocus::Cancel,
        }
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        let action = find_action(KeyScope::Quit, key);
        if action == Some(KeyAction::Next) {
            self.focus = match self.focus {
                ConfirmFocus::Cancel => ConfirmFocus::Confirm,
                ConfirmFocus::Confirm => ConfirmFocus::Cancel,
            };
        }
        match (self.focus, action) {
            (ConfirmFocus::Confirm, Some(KeyAction::Press)) => {
                let request = self.request.clone();
                KeyResult::Consumed(vec![LayerChange::Close, LayerChange::Send(request)])
            }
            (ConfirmFocus::Cancel, Some(KeyAction::Press)) | (_, Some(KeyAction::Back)) => {
                KeyResult::with(LayerChange::Close)
            }
            (ConfirmFocus::Confirm | ConfirmFocus::Cancel, Some(_) | None) => KeyResult::quietly(),
        }
    }

    /// Paints the dialog in the centre.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let buttons = [
            ("Cancel", self.focus == ConfirmFocus::Cancel),
            (self.confirm_label, self.focus == ConfirmFocus::Confirm),
        ];
        paint_question(frame, area, appearance, self.title, &self.text, &buttons);
    }
}

impl Dialog for ConfirmDialog {
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
