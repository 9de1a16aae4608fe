//! Editing of a focused text in the operator's external editor.
//!
//! Contract: an editor changes a text and nothing else. The returned text never decides anything, and
//! keys count again only after the arming time, as if the dialog had just been opened.

use ratatui_textarea::TextArea;

use super::GateDialog;
use super::field::{AnswerField, AnswerInput};
use super::form::FormFocus;
use super::step::{Arming, DecisionStep, DenyFocus, GatePane, PassProof, ReviewFocus};
use super::text_editing::{count_removed_chars, replace, text_of};
use crate::atlas::document::ResponseType;
use crate::console::dialog::{KeyResult, LayerChange};
use crate::console::request::{ConsoleRequest, EditKind, TextEdit};
use crate::console::text_cells::counted;

impl GateDialog {
    /// Sends the focused text to an external editor.
    pub(super) fn open_external_editor(&mut self) -> KeyResult {
        if self.is_sensitive_focused() {
            let reason = "a sensitive answer is never written to a file: type it here";
            self.notice = Some(reason.to_owned());
            return KeyResult::quietly();
        }
        let kind = self.edit_kind();
        let gate = self.held.id.clone();
        let Some(area) = self.focused_text() else {
            self.notice = Some("the editor opens only text answers".to_owned());
            return KeyResult::quietly();
        };
        let text = text_of(area);
        KeyResult::with(LayerChange::Send(ConsoleRequest::Edit(TextEdit {
            gate,
            kind,
            text,
        })))
    }

    /// Returns true if the focus is on a sensitive answer: the record has only its hash.
    fn is_sensitive_focused(&mut self) -> bool {
        let editing = self.pane == GatePane::Form && matches!(self.step, DecisionStep::Editing);
        let field = self.form.focused();
        editing && field.is_some_and(|field| field.question.sensitive())
    }

    fn edit_kind(&mut self) -> EditKind {
        let editing = matches!(self.step, DecisionStep::Editing);
        let field = self.form.focused().filter(|_| editing);
        let json = |field: &mut AnswerField| field.question.response_type() == ResponseType::Json;
        if field.is_some_and(json) {
            EditKind::Json
        } else {
            EditKind::Text
        }
    }

    /// Returns the text that has the focus.
    fn focused_text(&mut self) -> Option<&mut TextArea<'static>> {
        if self.pane == GatePane::Context {
            return None;
        }
        match &self.step {
            DecisionStep::Editing => match (self.form.focus, &mut self.form.fields) {
                (FormFocus::Field(at), fields) => match &mut fields.get_mut(at)?.input {
                    AnswerInput::Text(area) => Some(area),
                    AnswerInput::Line(_)
                    | AnswerInput::Number(_)
                    | AnswerInput::YesNo(_)
                    | AnswerInput::Pick(_) => None,
                },
                (FormFocus::Back | FormFocus::Deny | FormFocus::Pass, _) => None,
            },
            DecisionStep::Denying(DenyFocus::Reason) => Some(&mut self.form.reason),
            DecisionStep::Reviewing(review)
                if review.focus == ReviewFocus::Proof(PassProof::Why) =>
            {
                Some(&mut self.form.justification)
            }
            DecisionStep::Denying(_)
            | DecisionStep::Reviewing(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_)
            | DecisionStep::Settled(_) => None,
        }
    }

    /// Takes over the text from the external editor, or shows why there is none.
    pub(crate) fn on_edited(&mut self, edited: Result<String, String>) {
        self.arming = Arming::Undrawn;
        match edited {
            Err(reason) => self.notice = Some(reason),
            Ok(text) => {
                let lost = count_removed_chars(&text);
                let area = self.focused_text();
                if let Some(area) = area.filter(|area| text_of(area) != text) {
                    replace(area, &text);
                }
                if lost > 0 {
                    let lost = counted(lost, "character");
                    self.notice = Some(format!("{lost} removed (hidden or too many)"));
                }
            }
        }
    }
}
