//! Editing of a focused text in the operator's external editor.
//!
//! Contract: an editor changes a text and nothing else. The returned text never decides anything, and
//! keys count again only after the arming time, as if the dialog had just been opened.

use ratatui_textarea::TextArea;

use super::GateDialog;
use super::field::{Field, Input};
use super::form::Spot;
use super::step::{Arming, DenySpot, Pane, Proof, ReviewSpot, Step};
use super::text::{left_out, replace, text_of};
use crate::atlas::document::ResponseType;
use crate::console::cells::counted;
use crate::console::layer::{Change, Handled};
use crate::console::request::{Edit, EditKind, Request};

impl GateDialog {
    /// Sends the focused text to an external editor.
    pub(super) fn edit_outside(&mut self) -> Handled {
        if self.has_secret_focused() {
            let why = "a sensitive answer is never written to a file: type it here";
            self.notice = Some(why.to_owned());
            return Handled::quietly();
        }
        let kind = self.edit_kind();
        let gate = self.held.id.clone();
        let Some(area) = self.focused_text() else {
            self.notice = Some("only a text is edited in an editor".to_owned());
            return Handled::quietly();
        };
        let text = text_of(area);
        Handled::with(Change::Ask(Request::Edit(Edit { gate, kind, text })))
    }

    /// Returns true if the focus is on a sensitive answer: the record has only its hash.
    fn has_secret_focused(&mut self) -> bool {
        let editing = self.pane == Pane::Form && matches!(self.step, Step::Editing);
        let field = self.form.focused();
        editing && field.is_some_and(|field| field.question.sensitive())
    }

    fn edit_kind(&mut self) -> EditKind {
        let editing = matches!(self.step, Step::Editing);
        let field = self.form.focused().filter(|_| editing);
        let json = |field: &mut Field| field.question.response_type() == ResponseType::Json;
        if field.is_some_and(json) {
            EditKind::Json
        } else {
            EditKind::Text
        }
    }

    /// Returns the text that has the focus.
    fn focused_text(&mut self) -> Option<&mut TextArea<'static>> {
        if self.pane == Pane::Context {
            return None;
        }
        match &self.step {
            Step::Editing => match (self.form.focus, &mut self.form.fields) {
                (Spot::Field(at), fields) => match &mut fields.get_mut(at)?.input {
                    Input::Text(area) => Some(area),
                    Input::Line(_) | Input::Number(_) | Input::YesNo(_) | Input::Pick(_) => None,
                },
                (Spot::Back | Spot::Deny | Spot::Pass, _) => None,
            },
            Step::Denying(DenySpot::Reason) => Some(&mut self.form.reason),
            Step::Reviewing(review) if review.spot == ReviewSpot::Proof(Proof::Why) => {
                Some(&mut self.form.why)
            }
            Step::Denying(_)
            | Step::Reviewing(_)
            | Step::Claimed(_)
            | Step::Writing(_)
            | Step::Changed(_)
            | Step::Settled(_) => None,
        }
    }

    /// Takes over the text from the external editor, or shows why there is none.
    pub(crate) fn on_edited(&mut self, edited: Result<String, String>) {
        self.arming = Arming::Undrawn;
        match edited {
            Err(why) => self.notice = Some(why),
            Ok(text) => {
                let lost = left_out(&text);
                let area = self.focused_text();
                if let Some(area) = area.filter(|area| text_of(area) != text) {
                    replace(area, &text);
                }
                if lost > 0 {
                    let lost = counted(lost, "character");
                    self.notice = Some(format!("{lost} left out: hidden, or too many"));
                }
            }
        }
    }
}
