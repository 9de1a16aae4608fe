//! Answers to all questions of a held request, and the focus. Kept as a draft when the dialog closes.

use std::collections::BTreeMap;

use ratatui_textarea::TextArea;
use serde_json::Value;

use super::field::{AnswerField, AnswerStatus};
use super::text_editing::{editor, text_of};
use crate::atlas::document::{InvalidAnswerAction, ResponseType};
use crate::base::digest::Digest;
use crate::console::text_cells::counted;
use crate::engine::held::Held;

/// Form with the answers so far.
#[derive(Clone, Debug)]
pub(crate) struct AnswerForm {
    /// Hashes of the request and its Atlases, and the number of gates that the agent had answered.
    pub(super) request: (Digest, Digest, usize),
    /// One field per question, gate by gate.
    pub(crate) fields: Vec<AnswerField>,
    /// Reason for a denial.
    pub(crate) reason: Box<TextArea<'static>>,
    /// Justification of a pass, used if one is needed and no question asks for it.
    pub(crate) justification: Box<TextArea<'static>>,
    /// The focused element.
    pub(crate) focus: FormFocus,
}

/// Focusable element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormFocus {
    /// A field, by its index in the form.
    Field(usize),
    /// The button that closes the dialog.
    Back,
    /// The button that opens the denial step.
    Deny,
    /// The button that passes, or opens the review.
    Pass,
}

impl AnswerForm {
    /// Creates a form without answers.
    pub(crate) fn new(held: &Held) -> Self {
        let fields: Vec<AnswerField> = held
            .gates
            .iter()
            .enumerate()
            // Gates that the agent answered need no fields; its answers are shown with the request.
            .filter(|(at, _)| !held.answered.contains_key(at))
            .flat_map(|(at, gate)| gate.questions.iter().map(move |q| AnswerField::new(at, q)))
            .collect();
        let focus = if fields.is_empty() {
            FormFocus::Back
        } else {
            FormFocus::Field(0)
        };
        Self {
            request: request_of(held),
            fields,
            reason: Box::new(editor()),
            justification: Box::new(editor()),
            focus,
        }
    }

    /// Returns true if the form was made for exactly this request.
    pub(crate) fn is_for(&self, held: &Held) -> bool {
        self.request == request_of(held)
    }

    /// Returns true if there is anything worth keeping.
    pub(crate) fn is_touched(&self) -> bool {
        let answered = self.fields.iter().any(AnswerField::is_touched);
        answered || !self.reason.is_empty() || !self.justification.is_empty()
    }

    /// Returns the focused field.
    pub(crate) fn focused(&mut self) -> Option<&mut AnswerField> {
        match self.focus {
            FormFocus::Field(at) => self.fields.get_mut(at),
            FormFocus::Back | FormFocus::Deny | FormFocus::Pass => None,
        }
    }

    /// Moves the focus by one, and wraps around.
    pub(crate) fn move_focus_by_one(&mut self, towards: MoveDirection) {
        let mut spots: Vec<FormFocus> = (0..self.fields.len()).map(FormFocus::Field).collect();
        spots.extend([FormFocus::Back, FormFocus::Deny, FormFocus::Pass]);
        self.focus = neighbour(&spots, self.focus, towards);
    }

    /// Lists invalid answers that are accepted but that the steward wants a warning for.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let tolerated = self.fields.iter().filter(|field| {
            field.status() == AnswerStatus::Tolerated
                && field.question.on_invalid() == InvalidAnswerAction::WarnAndContinue
        });
        let messages = tolerated.map(|field| {
            let rules = field.validate().failures().join(", ");
            format!("`{}` is invalid but accepted: {rules}", field.question.id())
        });
        messages.collect()
    }

    /// Returns the invalid answers that are not accepted, one map per gate, so that they are recorded
    /// and counted. Returns `None` while an answer is missing: then the operator is not done.
    pub(crate) fn invalid_answers(&self, gates: usize) -> Option<Vec<BTreeMap<String, Value>>> {
        let has_status = |wanted| move |field: &&AnswerField| field.status() == wanted;
        let missing = self
            .fields
            .iter()
            .any(|field| has_status(AnswerStatus::Missing)(&field));
        let mut broken = self
            .fields
            .iter()
            .filter(has_status(AnswerStatus::Invalid))
            .peekable();
        if missing || broken.peek().is_none() {
            return None;
        }
        let mut answers = vec![BTreeMap::new(); gates];
        for field in broken {
            if let Some(of_gate) = answers.get_mut(field.gate) {
                of_gate.insert(field.question.id().to_owned(), field.raw());
            }
        }
        Some(answers)
    }

    /// Text of the missing or invalid answers. `None` if the form can be sent.
    pub(crate) fn missing_text(&self) -> Option<String> {
        let count = |status| {
            let statuses = self.fields.iter().map(AnswerField::status);
            statuses.filter(|found| *found == status).count()
        };
        let (missing, broken) = (count(AnswerStatus::Missing), count(AnswerStatus::Invalid));
        let missing = (missing > 0).then(|| format!("{} missing", counted(missing, "answer")));
        let broken = (broken > 0).then(|| match missing {
            None => format!("{} invalid", counted(broken, "answer")),
            Some(_) => format!("{broken} invalid"),
        });
        let refuses = missing.is_none() && self.fields.iter().any(AnswerField::refuses);
        let broken = broken.map(|broken| {
            if refuses {
                format!("{broken} (Enter denies the request)")
            } else {
                broken
            }
        });
        let parts: Vec<String> = missing.into_iter().chain(broken).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the answers as they are sent: one map per gate.
    pub(crate) fn answers(&self, gates: usize) -> Vec<BTreeMap<String, Value>> {
        let mut answers = vec![BTreeMap::new(); gates];
        for field in &self.fields {
            let raw = field.raw();
            let blank = raw.is_null() || raw.as_str().is_some_and(|text| text.trim().is_empty());
            if let (Some(map), false) = (answers.get_mut(field.gate), blank) {
                map.insert(field.question.id().to_owned(), raw);
            }
        }
        answers
    }

    /// Returns true if a readable text answer justifies the pass.
    pub(crate) fn has_justification(&self) -> bool {
        self.fields.iter().any(|field| {
            let text = field.question.response_type() == ResponseType::Text;
            let raw = field.raw();
            let is_typed = raw.as_str().is_some_and(|answer| !answer.trim().is_empty());
            text && is_typed && !field.question.sensitive()
        })
    }

    /// Returns the justification typed at the review.
    pub(crate) fn justification_text(&self) -> String {
        text_of(&self.justification).trim().to_owned()
    }

    /// Returns the denial reason typed so far.
    pub(crate) fn reason_text(&self) -> String {
        text_of(&self.reason).trim().to_owned()
    }
}

fn request_of(held: &Held) -> (Digest, Digest, usize) {
    (held.request_hash, held.atlas_hash, held.answered.len())
}

/// Direction of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveDirection {
    /// Next element.
    Next,
    /// Previous element.
    Previous,
}

/// Returns the neighbour of `current` in a circular list.
pub(crate) fn neighbour<T: Copy + PartialEq>(
    circle: &[T],
    current: T,
    towards: MoveDirection,
) -> T {
    let at = circle.iter().position(|item| *item == current).unwrap_or(0);
    let count = circle.len().max(1);
    let at = match towards {
        MoveDirection::Next => (at + 1) % count,
        MoveDirection::Previous => (at + count - 1) % count,
    };
    circle.get(at).copied().unwrap_or(current)
}
