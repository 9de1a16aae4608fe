//! Redaction of recorded texts and parameters. Texts of agents and extensions are recorded without the parts
//! that a steward wants redacted.
//!
//! Decisions, operators and request hashes use the original data.

use serde_json::{Map, Value};

use crate::atlas::redaction::{Redactions, Redactor};
use crate::trace::event::Redaction;

use crate::engine::gates::held::{ActionCall, Held, HeldSubject};
use crate::engine::transaction::Transaction;

/// A text as it is recorded, with the list of redactions.
pub(crate) struct RedactedText {
    pub(crate) text: String,
    pub(crate) redacted: Vec<Redaction>,
}

impl RedactedText {
    /// Wraps a text that contains no quoted data.
    pub(crate) fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            redacted: Vec::new(),
        }
    }
}

/// Creates the redactor for everything that is recorded about a request.
pub(crate) fn new_redactor<'t>(tx: &'t Transaction<'_>, call: Option<&ActionCall>) -> Redactor<'t> {
    let action = call.map(|call| call.action.as_str());
    let mut redactor = Redactor::new(&tx.engine.atlases, action);
    if let Some(call) = call {
        redactor.learn_secrets(&call.params);
    }
    redactor
}

/// Redacts a text of an agent, as recorded under `field`. `action` is the action it concerns.
pub(crate) fn redact_text(
    tx: &Transaction<'_>,
    action: Option<&str>,
    field: &str,
    text: &str,
) -> RedactedText {
    let mut redactor = Redactor::new(&tx.engine.atlases, action);
    let text = redactor.redact_text(field, text);
    RedactedText {
        text,
        redacted: redaction_list(redactor.into_redactions()),
    }
}

/// Redacts an optional text of an agent, as recorded under `field`.
pub(crate) fn redact_optional_text(
    tx: &Transaction<'_>,
    field: &str,
    text: Option<&str>,
) -> (Option<String>, Vec<Redaction>) {
    let recorded = text.map(|text| redact_text(tx, None, field, text));
    recorded.map_or((None, Vec::new()), |recorded| {
        (Some(recorded.text), recorded.redacted)
    })
}

/// Redacts a reason that may quote the parameters of a request, as recorded under `field`.
pub(crate) fn redact_reason(
    tx: &Transaction<'_>,
    call: Option<&ActionCall>,
    field: &str,
    text: &str,
) -> RedactedText {
    let mut redactor = new_redactor(tx, call);
    let text = redactor.redact_text(field, text);
    RedactedText {
        text,
        redacted: redaction_list(redactor.into_redactions()),
    }
}

/// Redacts the problems of answers: the text of a validator may quote the request.
pub(crate) fn redact_problems(
    tx: &Transaction<'_>,
    held: &Held,
    problems: &[String],
) -> (Vec<String>, Vec<Redaction>) {
    let call = match &held.subject {
        HeldSubject::Action(call) if !problems.is_empty() => Some(call),
        HeldSubject::Action(_) | HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
    };
    let mut redactor = new_redactor(tx, call);
    let problems = problems.iter();
    let problems = problems
        .map(|problem| redactor.redact_text("problems", problem))
        .collect();
    (problems, redaction_list(redactor.into_redactions()))
}

/// Converts redactions into their recorded form.
pub(crate) fn redaction_list(redactions: Redactions) -> Vec<Redaction> {
    redactions
        .into_iter()
        .map(|(rule, redacted)| Redaction {
            rule,
            paths: redacted.paths,
            count: redacted.count,
        })
        .collect()
}

/// Redacts an object. Returns it with the list of redactions.
pub(crate) fn redact_object(
    mut redactor: Redactor<'_>,
    field: &str,
    data: &Map<String, Value>,
) -> (Map<String, Value>, Vec<Redaction>) {
    let kept = match redactor.redact_data(field, &Value::Object(data.clone())) {
        Value::Object(kept) => kept,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    (kept, redaction_list(redactor.into_redactions()))
}
