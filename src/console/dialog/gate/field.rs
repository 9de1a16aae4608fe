//! Form field: one question and its answer so far.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::TextArea;
use serde_json::Value;

use super::picker::{FilterCleared, OptionPicker};
use super::skeleton::skeleton;
use super::text_editing::{
    edit, edit_line, editor, is_of_number, numbered_editor, paste, paste_line, replace, text_of,
};
use crate::atlas::document::{InvalidAnswerAction, ResponseType};
use crate::atlas::model::CompiledQuestion;
use crate::console::keymap::{KeyAction, KeyScope, find_action};
use crate::engine::answer::{JudgedAnswer, judge_answer};

/// A question and its answer so far.
#[derive(Clone, Debug)]
pub(crate) struct AnswerField {
    /// Index of the gate in `Held::gates`.
    pub(crate) gate: usize,
    /// The question.
    pub(crate) question: CompiledQuestion,
    /// The answer so far.
    pub(crate) input: AnswerInput,
}

/// An unfinished answer.
#[derive(Clone, Debug)]
pub(crate) enum AnswerInput {
    /// Text with several lines.
    Text(Box<TextArea<'static>>),
    /// Text with one line.
    Line(Box<TextArea<'static>>),
    /// A number, as typed.
    Number(Box<TextArea<'static>>),
    /// Yes, no, or not yet answered.
    YesNo(Option<bool>),
    /// One of several options.
    Pick(OptionPicker),
}

impl AnswerField {
    /// Creates a field without an answer.
    pub(crate) fn new(gate: usize, question: &CompiledQuestion) -> Self {
        let input = match question.response_type() {
            ResponseType::Text => AnswerInput::Text(Box::new(editor())),
            ResponseType::Json => AnswerInput::Text(Box::new(numbered_editor())),
            ResponseType::Acknowledgment => AnswerInput::Line(Box::new(editor())),
            ResponseType::Number => AnswerInput::Number(Box::new(editor())),
            ResponseType::Choice => AnswerInput::Pick(OptionPicker::default()),
            ResponseType::Boolean => AnswerInput::YesNo(None),
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
        if find_action(KeyScope::Json, key) == Some(KeyAction::Skeleton) {
            return self.insert_skeleton();
        }
        match &mut self.input {
            AnswerInput::Text(area) => edit(area, key),
            AnswerInput::Line(area) => edit_line(area, key),
            AnswerInput::Number(area) => match key.code {
                KeyCode::Char(c)
                    if !key.modifiers.contains(KeyModifiers::CONTROL) && !is_of_number(c) =>
                {
                    return Some("enter a number, such as 12 or -0.5");
                }
                _ => edit_line(area, key),
            },
            AnswerInput::YesNo(choice) => {
                if find_action(KeyScope::Choice, key) == Some(KeyAction::Choose) {
                    *choice = Some(match key.code {
                        KeyCode::Left => true,
                        KeyCode::Right => false,
                        _ => !choice.unwrap_or(false),
                    });
                }
            }
            AnswerInput::Pick(picker) => picker.on_key(key, self.question.options()),
        }
        None
    }

    /// Starts the answer with a skeleton of its schema.
    fn insert_skeleton(&mut self) -> Option<&'static str> {
        if !self.can_skeleton() {
            return Some(match self.question.written_schema() {
                Some(_) => "the skeleton needs an empty answer",
                None => "this question has no schema for a skeleton",
            });
        }
        if let (AnswerInput::Text(area), Some(schema)) =
            (&mut self.input, self.question.written_schema())
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
    pub(crate) fn scope(&self) -> Option<KeyScope> {
        match self.question.response_type() {
            ResponseType::Json if self.can_skeleton() => Some(KeyScope::Json),
            ResponseType::Text | ResponseType::Json => Some(KeyScope::Text),
            ResponseType::Choice => Some(KeyScope::Pick),
            ResponseType::Boolean => Some(KeyScope::Choice),
            ResponseType::Acknowledgment | ResponseType::Number => None,
        }
    }

    /// Handles a pasted text.
    pub(crate) fn on_paste(&mut self, text: &str) {
        match &mut self.input {
            AnswerInput::Text(area) => paste(area, text),
            AnswerInput::Line(area) | AnswerInput::Number(area) => paste_line(area, text),
            AnswerInput::Pick(picker) => picker.extend_filter(text),
            AnswerInput::YesNo(_) => {}
        }
    }

    /// Goes one level back within the field. Returns whether there was one.
    pub(crate) fn back(&mut self) -> FilterCleared {
        match &mut self.input {
            AnswerInput::Pick(picker) => picker.clear_filter(),
            AnswerInput::Text(_)
            | AnswerInput::Line(_)
            | AnswerInput::Number(_)
            | AnswerInput::YesNo(_) => FilterCleared::No,
        }
    }

    /// Returns true if the field lists only some of its options.
    pub(crate) fn is_narrowed(&self) -> bool {
        match &self.input {
            AnswerInput::Pick(picker) => !picker.filter().is_empty(),
            AnswerInput::Text(_)
            | AnswerInput::Line(_)
            | AnswerInput::Number(_)
            | AnswerInput::YesNo(_) => false,
        }
    }

    /// Returns the answer as it is sent.
    pub(crate) fn raw(&self) -> Value {
        match &self.input {
            AnswerInput::Text(area) | AnswerInput::Line(area) | AnswerInput::Number(area) => {
                Value::from(text_of(area))
            }
            AnswerInput::YesNo(choice) => choice.map_or(Value::Null, Value::Bool),
            AnswerInput::Pick(picker) => picker.raw(self.question.options()),
        }
    }

    /// Restores an answer from [`Self::raw`]. Returns `None` if the type does not fit this question.
    /// The text was stored outside this program, so characters that an operator could not have typed
    /// are removed.
    pub(crate) fn resume(&mut self, raw: &Value) -> Option<()> {
        match (&mut self.input, raw) {
            (
                AnswerInput::Text(_) | AnswerInput::Line(_) | AnswerInput::Number(_),
                Value::String(text),
            ) => {
                self.on_paste(text);
            }
            (AnswerInput::Pick(picker), Value::String(text)) => {
                picker.resume(text, self.question.options());
            }
            (AnswerInput::YesNo(choice), Value::Bool(chosen)) => *choice = Some(*chosen),
            (
                AnswerInput::Text(_)
                | AnswerInput::Line(_)
                | AnswerInput::Number(_)
                | AnswerInput::Pick(_)
                | AnswerInput::YesNo(_),
                _,
            ) => return None,
        }
        Some(())
    }

    /// Validates the answer.
    pub(crate) fn validate(&self) -> JudgedAnswer {
        judge_answer(&self.question, &self.raw())
    }

    /// Returns true if something was answered.
    pub(crate) fn is_touched(&self) -> bool {
        match &self.input {
            AnswerInput::Text(area) | AnswerInput::Line(area) | AnswerInput::Number(area) => {
                !area.is_empty()
            }
            AnswerInput::YesNo(choice) => choice.is_some(),
            AnswerInput::Pick(picker) => picker.chosen().is_some(),
        }
    }

    /// Returns true if sending this answer refuses the request.
    pub(crate) fn refuses(&self) -> bool {
        self.status() == AnswerStatus::Invalid
            && self.question.on_invalid() == InvalidAnswerAction::Block
    }

    /// Returns the effect of this answer on passing.
    pub(crate) fn status(&self) -> AnswerStatus {
        if self.validate().is_valid() {
            return AnswerStatus::Valid;
        }
        match self.question.on_invalid() {
            InvalidAnswerAction::WarnAndContinue | InvalidAnswerAction::LogAndContinue => {
                AnswerStatus::Tolerated
            }
            InvalidAnswerAction::Retry | InvalidAnswerAction::Block if self.is_touched() => {
                AnswerStatus::Invalid
            }
            InvalidAnswerAction::Retry | InvalidAnswerAction::Block => AnswerStatus::Missing,
        }
    }
}

/// Effect of an answer on passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerStatus {
    /// The answer is valid.
    Valid,
    /// The answer is invalid, but the steward tolerates it.
    Tolerated,
    /// The answer is invalid.
    Invalid,
    /// The answer is missing.
    Missing,
}
