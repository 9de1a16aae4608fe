//! One question and what was answered so far.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui_textarea::{TextArea, WrapMode};
use serde_json::Value;

use crate::atlas::compiled::Question;
use crate::atlas::document::{OnInvalid, ResponseType};
use crate::base::limits::MAX_ANSWER_CHARS;
use crate::base::text::is_deceptive;
use crate::console::keymap::{Action, Scope, lookup};
use crate::engine::answer::{Judged, judge};

/// One question and what was answered so far.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// The gate that asks, as a place in `Held::gates`.
    pub(crate) gate: usize,
    /// What is asked.
    pub(crate) question: Question,
    /// The answer so far.
    pub(crate) input: Input,
}

/// An answer in the making.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Text of several lines.
    Text(Box<TextArea<'static>>),
    /// Text of one line.
    Line(Box<TextArea<'static>>),
    /// Yes, no, or not yet.
    Choice(Option<bool>),
}

impl Field {
    /// A question, unanswered.
    pub(crate) fn new(gate: usize, question: &Question) -> Self {
        let input = match question.response_type() {
            ResponseType::Text | ResponseType::Json => Input::Text(Box::new(editor())),
            ResponseType::Acknowledgment | ResponseType::Choice | ResponseType::Number => {
                Input::Line(Box::new(editor()))
            }
            ResponseType::Boolean => Input::Choice(None),
        };
        Self {
            gate,
            question: question.clone(),
            input,
        }
    }

    /// A key that no binding of the dialog took.
    pub(crate) fn on_key(&mut self, key: KeyEvent) {
        match &mut self.input {
            Input::Text(area) => edit(area, key),
            Input::Line(area) => edit_line(area, key),
            Input::Choice(choice) => {
                if lookup(Scope::Choice, key) == Some(Action::Choose) {
                    *choice = Some(match key.code {
                        KeyCode::Left => true,
                        KeyCode::Right => false,
                        _ => !choice.unwrap_or(false),
                    });
                }
            }
        }
    }

    /// A pasted text.
    pub(crate) fn on_paste(&mut self, text: &str) {
        match &mut self.input {
            Input::Text(area) => paste(area, text),
            Input::Line(area) => paste_line(area, text),
            Input::Choice(_) => {}
        }
    }

    /// What was answered, as it is sent.
    pub(crate) fn raw(&self) -> Value {
        match &self.input {
            Input::Text(area) | Input::Line(area) => Value::from(text_of(area)),
            Input::Choice(choice) => choice.map_or(Value::Null, Value::Bool),
        }
    }

    /// Takes up an answer as [`Self::raw`] told it; nothing when it is none to this question. What an
    /// operator could not have typed is left out, because the text was outside of this program.
    pub(crate) fn resume(&mut self, raw: &Value) -> Option<()> {
        match (&mut self.input, raw) {
            (Input::Text(_) | Input::Line(_), Value::String(text)) => self.on_paste(text),
            (Input::Choice(choice), Value::Bool(chosen)) => *choice = Some(*chosen),
            (Input::Text(_) | Input::Line(_) | Input::Choice(_), _) => return None,
        }
        Some(())
    }

    /// What it comes to.
    pub(crate) fn judged(&self) -> Judged {
        judge(&self.question, &self.raw())
    }

    /// Whether something was answered.
    pub(crate) fn is_touched(&self) -> bool {
        match &self.input {
            Input::Text(area) | Input::Line(area) => !area.is_empty(),
            Input::Choice(choice) => choice.is_some(),
        }
    }

    /// What this answer does to passing.
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

/// What an answer does to passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Every rule is kept.
    Kept,
    /// A rule is broken, and the steward lets it pass all the same.
    Tolerated,
    /// A rule is broken.
    Broken,
    /// Nothing is answered.
    Missing,
}

/// An empty editor.
pub(crate) fn editor() -> TextArea<'static> {
    let mut area = TextArea::default();
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_line_style(Style::new());
    area
}

/// The text of an editor.
pub(crate) fn text_of(area: &TextArea<'static>) -> String {
    area.lines().join("\n")
}

/// Whether a key may reach an editor: nothing with Alt does.
fn is_for_editing(key: KeyEvent) -> bool {
    !key.modifiers.contains(KeyModifiers::ALT)
}

/// Edits a text of several lines.
pub(crate) fn edit(area: &mut TextArea<'static>, key: KeyEvent) {
    let deceptive = matches!(key.code, KeyCode::Char(c) if is_deceptive(c));
    if is_for_editing(key) && !deceptive {
        area.input(key);
    }
}

/// Edits a text of one line: nothing begins a second one.
pub(crate) fn edit_line(area: &mut TextArea<'static>, key: KeyEvent) {
    let breaks = match key.code {
        KeyCode::Enter => true,
        KeyCode::Char('m') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    };
    if !breaks {
        edit(area, key);
    }
}

/// Pastes. What would hide, reorder or move the cursor is left out, and so is what is too long.
pub(crate) fn paste(area: &mut TextArea<'static>, text: &str) {
    let room = MAX_ANSWER_CHARS.saturating_sub(text_of(area).chars().count());
    let clean: String = text
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace('\t', "    ")
        .chars()
        .filter(|&c| c == '\n' || !is_deceptive(c))
        .take(room)
        .collect();
    area.insert_str(clean);
}

/// Pastes into a text of one line.
pub(crate) fn paste_line(area: &mut TextArea<'static>, text: &str) {
    paste(area, text.lines().next().unwrap_or_default());
}
