//! Form field: one question and its answer so far.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::TextArea;
use serde_json::Value;

use super::pick::{Picker, Widened};
use super::skeleton::skeleton;
use super::text::{
    edit, edit_line, editor, is_of_number, numbered, paste, paste_line, replace, text_of,
};
use crate::atlas::compiled::Question;
use crate::atlas::document::{OnInvalid, ResponseType};
use crate::console::keymap::{Action, Scope, lookup};
use crate::engine::answer::{Judged, judge};

/// A question and its answer so far.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// Index of the gate in `Held::gates`.
    pub(crate) gate: usize,
    /// The question.
    pub(crate) question: Question,
    /// The answer so far.
    pub(crate) input: Input,
}

/// An unfinished answer.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Text with several lines.
    Text(Box<TextArea<'static>>),
    /// Text with one line.
    Line(Box<TextArea<'static>>),
    /// A number, as typed.
    Number(Box<TextArea<'static>>),
    /// Yes, no, or not yet answered.
    YesNo(Option<bool>),
    /// One of several options.
    Pick(Picker),
}

impl Field {
    /// Creates a field without an answer.
    pub(crate) fn new(gate: usize, question: &Question) -> Self {
        let input = match question.response_type() {
            ResponseType::Text => Input::Text(Box::new(editor())),
            ResponseType::Json => Input::Text(Box::new(numbered())),
            ResponseType::Acknowledgment => Input::Line(Box::new(editor())),
            ResponseType::Number => Input::Number(Box::new(editor())),
            ResponseType::Choice => Input::Pick(Picker::default()),
            ResponseType::Boolean => Input::YesNo(None),
        };
        Self {
            gate,
            question: question.clone(),
            input,
        }
    }

    /// Handles a key that is not bound in the dialog. Returns the reason if it had no effect, where
    /// that helps.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Option<&'static str> {
        if lookup(Scope::Json, key) == Some(Action::Skeleton) {
            return self.insert_skeleton();
        }
        match &mut self.input {
            Input::Text(area) => edit(area, key),
            Input::Line(area) => edit_line(area, key),
            Input::Number(area) => match key.code {
                KeyCode::Char(c)
                    if !key.modifiers.contains(KeyModifiers::CONTROL) && !is_of_number(c) =>
                {
                    return Some("only a number goes here, such as 12 or -0.5");
                }
                _ => edit_line(area, key),
            },
            Input::YesNo(choice) => {
                if lookup(Scope::Choice, key) == Some(Action::Choose) {
                    *choice = Some(match key.code {
                        KeyCode::Left => true,
                        KeyCode::Right => false,
                        _ => !choice.unwrap_or(false),
                    });
                }
            }
            Input::Pick(picker) => picker.on_key(key, self.question.options()),
        }
        None
    }

    /// Starts the answer with a skeleton of its schema.
    fn insert_skeleton(&mut self) -> Option<&'static str> {
        if !self.can_skeleton() {
            return Some(match self.question.written_schema() {
                Some(_) => "the skeleton goes only into an empty answer",
                None => "this question has no schema to make a skeleton from",
            });
        }
        if let (Input::Text(area), Some(schema)) = (&mut self.input, self.question.written_schema())
        {
            replace(area, &skeleton(schema));
        }
        None
    }

    /// Returns true if a skeleton can be inserted.
    pub(crate) fn can_skeleton(&self) -> bool {
        let json = self.question.response_type() == ResponseType::Json;
        json && self.question.written_schema().is_some() && !self.is_touched()
    }

    /// Scope for the keys of this field, in addition to the dialog's own.
    pub(crate) fn scope(&self) -> Option<Scope> {
        match self.question.response_type() {
            ResponseType::Json if self.can_skeleton() => Some(Scope::Json),
            ResponseType::Text | ResponseType::Json => Some(Scope::Text),
            ResponseType::Choice => Some(Scope::Pick),
            ResponseType::Boolean => Some(Scope::Choice),
            ResponseType::Acknowledgment | ResponseType::Number => None,
        }
    }

    /// Handles a pasted text.
    pub(crate) fn on_paste(&mut self, text: &str) {
        match &mut self.input {
            Input::Text(area) => paste(area, text),
            Input::Line(area) | Input::Number(area) => paste_line(area, text),
            Input::Pick(picker) => picker.narrow(text),
            Input::YesNo(_) => {}
        }
    }

    /// Goes one level back within the field. Returns whether there was one.
    pub(crate) fn back(&mut self) -> Widened {
        match &mut self.input {
            Input::Pick(picker) => picker.widen(),
            Input::Text(_) | Input::Line(_) | Input::Number(_) | Input::YesNo(_) => Widened::No,
        }
    }

    /// Returns true if the field lists only some of its options.
    pub(crate) fn is_narrowed(&self) -> bool {
        match &self.input {
            Input::Pick(picker) => !picker.filter().is_empty(),
            Input::Text(_) | Input::Line(_) | Input::Number(_) | Input::YesNo(_) => false,
        }
    }

    /// Returns the answer as it is sent.
    pub(crate) fn raw(&self) -> Value {
        match &self.input {
            Input::Text(area) | Input::Line(area) | Input::Number(area) => {
                Value::from(text_of(area))
            }
            Input::YesNo(choice) => choice.map_or(Value::Null, Value::Bool),
            Input::Pick(picker) => picker.raw(self.question.options()),
        }
    }

    /// Restores an answer from [`Self::raw`]. Returns `None` if the type does not fit this question.
    /// The text was stored outside this program, so characters that an operator could not have typed
    /// are removed.
    pub(crate) fn resume(&mut self, raw: &Value) -> Option<()> {
        match (&mut self.input, raw) {
            (Input::Text(_) | Input::Line(_) | Input::Number(_), Value::String(text)) => {
                self.on_paste(text);
            }
            (Input::Pick(picker), Value::String(text)) => {
                picker.resume(text, self.question.options());
            }
            (Input::YesNo(choice), Value::Bool(chosen)) => *choice = Some(*chosen),
            (
                Input::Text(_)
                | Input::Line(_)
                | Input::Number(_)
                | Input::Pick(_)
                | Input::YesNo(_),
                _,
            ) => return None,
        }
        Some(())
    }

    /// Validates the answer.
    pub(crate) fn judged(&self) -> Judged {
        judge(&self.question, &self.raw())
    }

    /// Returns true if something was answered.
    pub(crate) fn is_touched(&self) -> bool {
        match &self.input {
            Input::Text(area) | Input::Line(area) | Input::Number(area) => !area.is_empty(),
            Input::YesNo(choice) => choice.is_some(),
            Input::Pick(picker) => picker.chosen().is_some(),
        }
    }

    /// Returns true if sending this answer refuses the request.
    pub(crate) fn refuses(&self) -> bool {
        self.standing() == Standing::Broken && self.question.on_invalid() == OnInvalid::Block
    }

    /// Returns the effect of this answer on passing.
    pub(crate) fn standing(&self) -> Standing {
        if self.judged().is_valid() {
            return Standing::Kept;
        }
        match self.question.on_invalid() {
            OnInvalid::WarnAndContinue | OnInvalid::LogAndContinue => Standing::Tolerated,
            OnInvalid::Retry | OnInvalid::Block if self.is_touched() => Standing::Broken,
            OnInvalid::Retry | OnInvalid::Block => Standing::Missing,
        }
    }
}

/// Effect of an answer on passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The answer is valid.
    Kept,
    /// The answer is invalid, but the steward tolerates it.
    Tolerated,
    /// The answer is invalid.
    Broken,
    /// The answer is missing.
    Missing,
}
