//! Steps of a session that can be compared with steps of another session.

use serde::Serialize;
use serde_json::Value;

use crate::base::canonical_json::canonical;
use crate::trace::details::Details;
use crate::trace::event::{Event, canonical_type};
use crate::trace::summary::{quote_untrusted, sentence};

/// Kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// The session itself: its start and its end.
    Session,
    /// A checkpoint fired.
    Checkpoint,
    /// A gate was decided.
    Outcome,
    /// A gate was answered.
    Answer,
    /// An action was asked for.
    Action,
    /// An action completed, failed or was blocked.
    Result,
    /// Policies, approvals and risks.
    Policy,
    /// Contexts, input and output.
    Exchange,
    /// Errors.
    Error,
    /// Anything else.
    Other,
}

/// One comparable step of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiffStep {
    pub(super) kind: StepKind,
    /// Subject of the step; steps of two sessions are matched by it.
    pub(super) key: String,
    /// Text that must be equal for two steps to be the same. The actor and the time are not part of it.
    pub(super) content: String,
    pub(super) shown: StepSummary,
}

/// Step of a session as it is shown in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepSummary {
    /// Sequence number of the event.
    pub sequence: u64,
    /// Type of the event.
    pub event_type: String,
    /// One-line description.
    pub summary: String,
}

impl DiffStep {
    /// Converts an event to a step; `None` if another event reports the same fact.
    pub(super) fn from_event(event: &Event) -> Option<Self> {
        let word = canonical_type(&event.event_type);
        let (kind, about, content) = parts(word, event)?;
        // All outcomes of a gate, and all outcomes of an action, share one key: they answer one question.
        let word = match kind {
            StepKind::Outcome => "outcome",
            StepKind::Result => "result",
            StepKind::Session
            | StepKind::Checkpoint
            | StepKind::Answer
            | StepKind::Action
            | StepKind::Policy
            | StepKind::Exchange
            | StepKind::Error
            | StepKind::Other => word,
        };
        Some(Self {
            kind,
            key: format!("{word} {about}"),
            content,
            shown: StepSummary {
                sequence: event.sequence,
                event_type: quote_untrusted(&event.event_type),
                summary: sentence(event),
            },
        })
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key == other.key && self.content == other.content
    }
}

/// Kind, subject and content of the step that an event is.
fn parts(word: &str, event: &Event) -> Option<(StepKind, String, String)> {
    let details = Details::of(event);
    let named = |name: &str| details.text_or_empty(name);
    Some(match word {
        "checkpoint_completed" => return None,
        "session_started" => {
            let content = format!("{} {}", named("agent_type"), named("intent"));
            (StepKind::Session, String::new(), content)
        }
        "session_ended" => (StepKind::Session, String::new(), named("final_status")),
        "checkpoint_triggered" => (StepKind::Checkpoint, named("checkpoint_id"), named("mode")),
        "checkpoint_response" => {
            let content = format!("{} {}", named("validation_result"), answers(details));
            (StepKind::Answer, named("checkpoint_id"), content)
        }
        "checkpoint_passed" => (
            StepKind::Outcome,
            named("checkpoint_id"),
            "passed".to_owned(),
        ),
        "checkpoint_approved" => (
            StepKind::Outcome,
            named("checkpoint_id"),
            "1 of 2".to_owned(),
        ),
        "checkpoint_blocked" => (StepKind::Outcome, named("checkpoint_id"), named("outcome")),
        "action_attempted" => {
            let params = details.value("action_params").map(canonical);
            let params = params.unwrap_or_default();
            (StepKind::Action, named("action_type"), params)
        }
        "action_completed" => {
            let content = match details.flag("success") {
                Some(true) => "completed",
                Some(false) | None => "failed",
            };
            (StepKind::Result, named("action_type"), content.to_owned())
        }
        "action_blocked" => {
            let content = format!("blocked by {}", named("policy_id"));
            (StepKind::Result, named("action_type"), content)
        }
        "policy_checked" => {
            let content = format!("{} {}", named("policy_id"), named("decision"));
            (StepKind::Policy, named("action_type"), content)
        }
        "policy_override" | "risk_detected" | "risk_verified" => {
            let about = format!("{} {}", named("policy_id"), named("action_type"));
            (StepKind::Policy, about, named("risk_tier"))
        }
        "context_injected" => (
            StepKind::Exchange,
            list(details, "context_ids"),
            String::new(),
        ),
        "context_requested" => (StepKind::Exchange, named("request_type"), named("query")),
        "input_received" => (StepKind::Exchange, String::new(), named("input_hash")),
        "output_produced" => (StepKind::Exchange, String::new(), named("output_hash")),
        "error_occurred" => (StepKind::Error, named("error_type"), named("message")),
        _ => {
            let payload = Value::Object(event.payload.clone());
            (StepKind::Other, String::new(), canonical(&payload))
        }
    })
}

fn list(details: Details<'_>, name: &str) -> String {
    let texts: Vec<_> = details.texts(name).collect();
    texts.join(" ")
}

/// Answers in comparable form. A sensitive answer is recorded only as a salted hash, so only its
/// presence counts.
fn answers(details: Details<'_>) -> String {
    let mut answers = details.value("answers").cloned().unwrap_or_default();
    if let Some(fields) = answers.as_object_mut() {
        for answer in fields.values_mut() {
            if answer
                .as_str()
                .is_some_and(|text| text.starts_with("sha256:"))
            {
                *answer = Value::from("sensitive");
            }
        }
    }
    canonical(&answers)
}
