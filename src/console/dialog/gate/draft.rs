//! Draft of a decision: its stored form, which outlives the console.
//!
//! Contract: a draft holds unfinished answers and nothing more. It contains neither the typed
//! characters of the hash, nor which rows were seen, nor the progress of the decision: an operator who
//! opens the request again starts those anew. A draft is restored only for exactly the request it was
//! made for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GateDialog;
use super::field::AnswerField;
use super::form::AnswerForm;
use super::text_editing::{paste, text_of};
use crate::base::digest::Digest;
use crate::console::request::ConsoleRequest;
use crate::engine::held::Held;

/// A draft as it is stored on disk.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDraft {
    request_hash: Digest,
    atlas_hash: Digest,
    /// Number of gates that the agent had answered.
    answered: usize,
    answers: Vec<StoredAnswer>,
    /// Reason for a denial.
    reason: String,
    /// Justification of a pass, used if no question asks for it. Older drafts have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    why: String,
}

/// Answer to one question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAnswer {
    /// Index of the gate in `Held::gates`.
    gate: usize,
    question: String,
    raw: Value,
}

impl AnswerForm {
    /// Returns the part of the form that may be stored on disk, if it is worth keeping. Sensitive
    /// answers are left out: the record has only their hash, and a draft would store them as
    /// typed. They stay in memory.
    pub(crate) fn to_stored(&self) -> Option<Value> {
        let touched = self.fields.iter().filter(|field| field.is_touched());
        let answers: Vec<StoredAnswer> = touched
            .filter(|field| !field.question.sensitive())
            .map(|field| StoredAnswer {
                gate: field.gate,
                question: field.question.id().to_owned(),
                raw: field.raw(),
            })
            .collect();
        let reason = text_of(&self.reason);
        let why = text_of(&self.justification);
        if answers.is_empty() && reason.is_empty() && why.is_empty() {
            return None;
        }
        let (request_hash, atlas_hash, answered) = self.request;
        let kept = StoredDraft {
            request_hash,
            atlas_hash,
            answered,
            answers,
            reason,
            why,
        };
        serde_json::to_value(kept).ok()
    }

    /// Restores a stored form. Returns `None` if it is for another request or cannot be read.
    pub(crate) fn from_stored(held: &Held, kept: &Value) -> Option<Self> {
        let kept = StoredDraft::deserialize(kept).ok()?;
        let mut form = Self::new(held);
        if form.request != (kept.request_hash, kept.atlas_hash, kept.answered) {
            return None;
        }
        for answer in kept.answers {
            let is_answered = |field: &&mut AnswerField| {
                field.gate == answer.gate && field.question.id() == answer.question
            };
            form.fields
                .iter_mut()
                .find(is_answered)?
                .resume(&answer.raw)?;
        }
        paste(&mut form.reason, &kept.reason);
        paste(&mut form.justification, &kept.why);
        Some(form)
    }

    /// Returns true if there is an answer that is kept in memory only.
    fn has_sensitive_answers(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|field| field.question.sensitive() && field.is_touched())
    }
}

impl GateDialog {
    /// Returns the draft, if it is worth keeping.
    pub(crate) fn into_draft(mut self) -> Option<AnswerForm> {
        self.form.focus = AnswerForm::new(&self.held).focus;
        let alone = !self.is_batch();
        (alone && self.form.is_touched()).then_some(self.form)
    }

    /// Requests that the draft be kept, if it differs from the one sent last.
    pub(crate) fn save_draft(&mut self) -> Option<ConsoleRequest> {
        // Answers typed for a batch are not a draft of one of its requests.
        if self.is_batch() {
            return None;
        }
        let typed = self.form.to_stored();
        if typed == self.sent_draft {
            return None;
        }
        self.sent_draft.clone_from(&typed);
        Some(ConsoleRequest::KeepDraft(self.held.id.clone(), typed))
    }

    /// Returns true if the disk has a draft that can no longer be restored here.
    pub(crate) fn has_stale_stored_draft(&self) -> bool {
        !self.is_batch() && self.sent_draft.is_none() && self.stored_draft.is_some()
    }

    /// Text that says that the draft is on disk. Shown only if it really is.
    pub(super) fn draft_state_text(&self) -> Option<&'static str> {
        let is_kept = self.sent_draft.is_some() && self.sent_draft == self.stored_draft;
        is_kept.then(|| {
            if self.form.has_sensitive_answers() {
                "draft saved without sensitive answers"
            } else {
                "draft saved"
            }
        })
    }
}
