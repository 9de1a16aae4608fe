//! Redaction of texts of conversations before they are stored.

use serde_json::Value;

use super::SessionTurn;
use crate::atlas::Atlas;
use crate::atlas::redaction::Redactor;
use crate::memento::{SummaryShape, Thread};
use crate::trace::event::{MementoEdited, Redaction};

impl SessionTurn {
    /// Redacts all texts of the turn that are stored.
    pub(in crate::runtime) fn redact(&mut self, atlases: &[Atlas]) {
        let mut redactor = Redactor::of_all(atlases);
        self.turn
            .change_texts(&mut |text| redactor.redact_text("turn", text));
    }
}

/// Returns a redacted summary.
pub(super) fn redact_shape(shape: &SummaryShape, atlases: &[Atlas]) -> SummaryShape {
    let mut redactor = Redactor::of_all(atlases);
    shape.with_texts(&mut |text| redactor.redact_text("summary", text))
}

/// Builds the log entry about an edit, with both texts.
pub(super) fn edit_record(
    before: &Thread,
    edited: &Thread,
    by: &str,
    if_match: &str,
    atlases: &[Atlas],
) -> MementoEdited {
    let mut redactor = Redactor::of_all(atlases);
    let mut text = |field: &str, thread: &Thread| {
        let shape = thread.latest.as_ref()?.shape();
        let shape = serde_json::to_value(shape).ok()?;
        Some(redactor.redact_data(field, &shape))
    };
    let text_before: Option<Value> = text("text_before", before);
    let text_now = text("text_now", edited);
    let left_out = redactor.into_redactions().into_iter();
    let redacted = left_out.map(|(rule, left_out)| Redaction {
        rule,
        paths: left_out.paths,
        count: left_out.count,
    });
    MementoEdited {
        thread_id: before.id.to_string(),
        by: by.to_owned(),
        before: if_match.to_owned(),
        now: edited.etag().unwrap_or_default(),
        text_before,
        text_now,
        redacted: redacted.collect(),
    }
}
