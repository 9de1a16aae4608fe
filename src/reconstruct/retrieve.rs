//! Phase 1: the fields that are read, in order.

use serde::Serialize;

use super::snapshot::{Blocker, ConversationSnapshot};
use super::wording::{join_and, percent};

/// One reading step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RetrievalStep {
    /// Number, from 1.
    pub number: u8,
    /// Name of the step.
    pub name: &'static str,
    /// Purpose of the step.
    pub purpose: &'static str,
    /// Fields, in order.
    pub reads: Vec<RetrievedField>,
}

/// A field that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RetrievedField {
    /// Path of the field.
    pub path: &'static str,
    /// Value; `None` if the field is missing or invalid.
    pub value: Option<String>,
}

/// Reads a snapshot in the order of the protocol.
#[must_use]
pub fn retrieve(snapshot: &ConversationSnapshot) -> Vec<RetrievalStep> {
    vec![
        metadata(snapshot),
        session_state(snapshot),
        position(snapshot),
        question(snapshot),
        person(snapshot),
        context(snapshot),
        artifacts(snapshot),
    ]
}

fn read(path: &'static str, value: Option<&String>) -> RetrievedField {
    let value = value.cloned();
    RetrievedField { path, value }
}

/// Joins several texts, if there are any.
fn list(path: &'static str, texts: impl IntoIterator<Item = String>) -> RetrievedField {
    let texts: Vec<_> = texts.into_iter().collect();
    let value = (!texts.is_empty()).then(|| texts.join("; "));
    RetrievedField { path, value }
}

fn blocking(path: &'static str, blocking: Option<&Blocker>) -> RetrievedField {
    let value = blocking.map(|blocking| match blocking {
        Blocker::No => "no".to_owned(),
        Blocker::Yes { what } if what.is_empty() => "yes".to_owned(),
        Blocker::Yes { what } => format!("yes: {}", join_and(what)),
    });
    RetrievedField { path, value }
}

fn metadata(from: &ConversationSnapshot) -> RetrievalStep {
    RetrievalStep {
        number: 1,
        name: "Metadata",
        purpose: "confirm format compatibility and checkpoint type",
        reads: vec![
            read("checkpoint_metadata.version", Some(&from.version)),
            read(
                "checkpoint_metadata.checkpoint_type",
                from.checkpoint_type.as_ref(),
            ),
            read("checkpoint_metadata.status", from.status.as_ref()),
        ],
    }
}

fn session_state(from: &ConversationSnapshot) -> RetrievalStep {
    let completion = from.completion.map(percent);
    RetrievalStep {
        number: 2,
        name: "Session state",
        purpose: "understand where in the overall process we are",
        reads: vec![
            read("session_state.phase", from.phase.as_ref()),
            read("session_state.completion_percentage", completion.as_ref()),
            blocking("session_state.blocking_issue", from.blocking_issue.as_ref()),
            read(
                "session_state.next_major_step",
                from.next_major_step.as_ref(),
            ),
        ],
    }
}

fn position(from: &ConversationSnapshot) -> RetrievalStep {
    let ready = from.ready.map(|ready| ready.to_string());
    RetrievalStep {
        number: 3,
        name: "Current position",
        purpose: "understand the immediate state and trajectory",
        reads: vec![
            read("current_position.stage", from.stage.as_ref()),
            read(
                "current_position.last_major_activity",
                from.last_major_activity.as_ref(),
            ),
            read("current_position.momentum", from.momentum.as_ref()),
            read(
                "current_position.readiness_for_implementation",
                ready.as_ref(),
            ),
        ],
    }
}

fn question(from: &ConversationSnapshot) -> RetrievalStep {
    let confidence = from.my_confidence.as_ref().map(|(_, text)| text);
    RetrievalStep {
        number: 4,
        name: "Critical question",
        purpose: "identify the primary unresolved issue",
        reads: vec![
            read("critical_question.question", from.question.as_ref()),
            read("critical_question.type", from.question_type.as_ref()),
            read(
                "critical_question.priority",
                from.question_priority.as_ref(),
            ),
            blocking(
                "critical_question.blocking",
                from.question_blocking.as_ref(),
            ),
            read("critical_question.user_framing", from.user_framing.as_ref()),
            read("critical_question.my_confidence", confidence),
        ],
    }
}

fn person(from: &ConversationSnapshot) -> RetrievalStep {
    let goals = from.goal.iter().chain(&from.needs).cloned();
    let approach = [&from.style, &from.preference];
    let approach = approach.into_iter().flatten().chain(&from.values).cloned();
    RetrievalStep {
        number: 5,
        name: "User profile",
        purpose: "calibrate communication style and understand user needs",
        reads: vec![
            list("user_profile.goals", goals),
            list("user_profile.approach", approach),
            list(
                "user_profile.communication_calibration",
                calibration(from).cloned(),
            ),
        ],
    }
}

/// Fields about the way to talk with the user.
pub(super) fn calibration(from: &ConversationSnapshot) -> impl Iterator<Item = &String> {
    let single = [&from.depth, &from.reasoning_style, &from.collaboration];
    let single = single.into_iter().flatten();
    single
        .chain(&from.appreciates)
        .chain(&from.comfortable_with)
}

fn context(from: &ConversationSnapshot) -> RetrievalStep {
    let pivots = from.pivots.iter().map(|pivot| {
        let text = |part: &Option<String>| part.clone().unwrap_or_else(|| "?".to_owned());
        format!("{} -> {}", text(&pivot.from), text(&pivot.to))
    });
    let decisions = from.decisions.iter().map(|decision| {
        let confidence = decision.confidence.as_ref();
        let confidence = confidence.map_or("no confidence given", |(_, text)| text);
        format!("{} ({confidence})", decision.decision)
    });
    RetrievalStep {
        number: 6,
        name: "Context elements",
        purpose: "build understanding of how we got here and what's next",
        reads: vec![
            list("intellectual_journey.key_pivots", pivots),
            list("decisions_made", decisions),
            list(
                "key_insights",
                from.insights.iter().map(|insight| insight.insight.clone()),
            ),
            list(
                "open_questions",
                from.open_questions
                    .iter()
                    .map(|question| question.question.clone()),
            ),
            list(
                "next_steps",
                from.next_steps.iter().map(|step| step.step.clone()),
            ),
        ],
    }
}

fn artifacts(from: &ConversationSnapshot) -> RetrievalStep {
    let ids = from.artifacts.iter().map(|artifact| artifact.id.clone());
    RetrievalStep {
        number: 7,
        name: "Referenced artifacts",
        purpose: "know what detailed documentation is available",
        reads: vec![list("artifacts_created", ids)],
    }
}
