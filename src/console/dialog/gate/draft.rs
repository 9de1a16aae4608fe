//! What was typed at a request, as it outlives the console.
//!
//! Contract: a draft is answers in the making and nothing more. Neither the characters of the hash, nor
//! what was seen, nor how far a decision had come is in it: whoever opens the request again begins there
//! anew. It is taken up only for exactly the request it was made for, or not at all.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GateDialog;
use super::field::Field;
use super::form::Form;
use super::text::{paste, text_of};
use crate::base::digest::Digest;
use crate::console::request::Request;
use crate::engine::held::Held;

/// A draft as it lies on disk.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    request_hash: Digest,
    atlas_hash: Digest,
    /// How many gates the agent had answered.
    answered: usize,
    answers: Vec<Answer>,
    /// Why the request is denied, should it be.
    reason: String,
    /// Why it passes, where no question asks for it. Older drafts have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    why: String,
}

/// What was answered to one question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// The gate that asks, as a place in `Held::gates`.
    gate: usize,
    question: String,
    raw: Value,
}

impl Form {
    /// What of it may lie on disk, if there is anything worth keeping. Not an answer of which the
    /// record has only a hash: it would lie there as it was typed. It stays in memory.
    pub(crate) fn kept(&self) -> Option<Value> {
        let touched = self.fields.iter().filter(|field| field.is_touched());
        let answers: Vec<Answer> = touched
            .filter(|field| !field.question.sensitive())
            .map(|field| Answer {
                gate: field.gate,
                question: field.question.id().to_owned(),
                raw: field.raw(),
            })
            .collect();
        let reason = text_of(&self.reason);
        let why = text_of(&self.why);
        if answers.is_empty() && reason.is_empty() && why.is_empty() {
            return None;
        }
        let (request_hash, atlas_hash, answered) = self.request;
        let kept = Kept {
            request_hash,
            atlas_hash,
            answered,
            answers,
            reason,
            why,
        };
        serde_json::to_value(kept).ok()
    }

    /// The form as it was kept; nothing when it is for another request, or cannot be read.
    pub(crate) fn resume(held: &Held, kept: &Value) -> Option<Self> {
        let kept = Kept::deserialize(kept).ok()?;
        let mut form = Self::new(held);
        if form.request != (kept.request_hash, kept.atlas_hash, kept.answered) {
            return None;
        }
        for answer in kept.answers {
            let its = |field: &&mut Field| {
                field.gate == answer.gate && field.question.id() == answer.question
            };
            form.fields.iter_mut().find(its)?.resume(&answer.raw)?;
        }
        paste(&mut form.reason, &kept.reason);
        paste(&mut form.why, &kept.why);
        Some(form)
    }

    /// Whether something was answered that is kept in memory only.
    fn has_secrets(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|field| field.question.sensitive() && field.is_touched())
    }
}

impl GateDialog {
    /// What was typed, if there is anything worth keeping.
    pub(crate) fn into_draft(mut self) -> Option<Form> {
        self.form.focus = Form::new(&self.held).focus;
        let alone = !self.is_batch();
        (alone && self.form.is_touched()).then_some(self.form)
    }

    /// Has what was typed kept, when it is no longer what was last told.
    pub(crate) fn keep_typed(&mut self) -> Option<Request> {
        // What is typed for several is no draft of one of them.
        if self.is_batch() {
            return None;
        }
        let typed = self.form.kept();
        if typed == self.told {
            return None;
        }
        self.told.clone_from(&typed);
        Some(Request::KeepDraft(self.held.id.clone(), typed))
    }

    /// Whether something is kept on disk that nobody can take up here any more.
    pub(crate) fn outlived_draft(&self) -> bool {
        !self.is_batch() && self.told.is_none() && self.kept.is_some()
    }

    /// Whether what was typed is on disk, in words. Only what is there is said to be.
    pub(super) fn draft_words(&self) -> Option<&'static str> {
        let is_kept = self.told.is_some() && self.told == self.kept;
        is_kept.then(|| {
            if self.form.has_secrets() {
                "draft kept, without sensitive answers"
            } else {
                "draft kept"
            }
        })
    }
}
