//! Phase 2: what was read, in sentences.

use serde::Serialize;

use super::retrieve::calibration;
use super::snapshot::{Blocking, Certainty, Snapshot};
use super::words::{capitalised, decapitalised, humanised, joined, lowered, percent, sentence};

/// Something that follows from what was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inference {
    /// From 1.
    pub number: u8,
    /// What it is about.
    pub name: &'static str,
    /// The parts of the file it goes by.
    pub inputs: &'static [&'static str],
    /// What follows.
    pub output: String,
}

/// What follows from a snapshot.
#[must_use]
pub fn infer(from: &Snapshot) -> Vec<Inference> {
    vec![
        Inference {
            number: 1,
            name: "Position in the arc",
            inputs: &["session_state", "current_position", "intellectual_journey"],
            output: position(from),
        },
        Inference {
            number: 2,
            name: "Decision rationale",
            inputs: &[
                "decisions_made",
                "intellectual_journey.key_pivots",
                "key_insights",
            ],
            output: rationale(from),
        },
        Inference {
            number: 3,
            name: "Critical question",
            inputs: &["critical_question", "open_questions", "blocking_issue"],
            output: question(from),
        },
        Inference {
            number: 4,
            name: "Communication calibration",
            inputs: &[
                "user_profile.communication_calibration",
                "conversation_dynamics",
            ],
            output: communication(from),
        },
        Inference {
            number: 5,
            name: "Trajectory and next action",
            inputs: &[
                "next_steps",
                "deferred_items",
                "blocking_issue",
                "open_questions",
            ],
            output: trajectory(from),
        },
    ]
}

/// Sentences as a paragraph; what is not known is said.
fn paragraph(sentences: &[String], nothing: &str) -> String {
    if sentences.is_empty() {
        return nothing.to_owned();
    }
    let sentences = sentences.iter().map(|it| sentence(it));
    sentences.collect::<Vec<_>>().join(" ")
}

fn position(from: &Snapshot) -> String {
    let mut told = Vec::new();
    let stage = from.stage.as_deref().map(lowered);
    let phase = from.phase.as_deref().map(lowered);
    let complete = from
        .completion
        .map(|it| format!(" ({} complete)", percent(it)));
    let complete = complete.unwrap_or_default();
    match (stage, phase) {
        (Some(stage), Some(phase)) => {
            told.push(format!(
                "We are at {stage}{complete}, in the phase of {phase}"
            ));
        }
        (Some(one), None) | (None, Some(one)) => told.push(format!("We are at {one}{complete}")),
        (None, None) => {}
    }
    if let Some(topic) = &from.start_topic {
        told.push(format!("It began with {}", lowered(topic)));
    }
    if let Some(momentum) = &from.momentum {
        let ready = match from.ready {
            Some(true) => ", and it is ready for implementation",
            Some(false) => ", and it is not ready for implementation",
            None => "",
        };
        told.push(format!("Momentum is {}{ready}", lowered(momentum)));
    }
    if let Some(activity) = &from.last_major_activity {
        told.push(format!("The last major activity was {}", lowered(activity)));
    }
    paragraph(&told, "Where it stands is not said.")
}

fn rationale(from: &Snapshot) -> String {
    let mut told = Vec::new();
    for decided in &from.decisions {
        let confidence = decided.confidence.as_ref();
        let confidence = confidence.map(|(certainty, _)| match certainty {
            Certainty::High => " (high confidence)",
            Certainty::Medium => " (medium confidence)",
            Certainty::Low => " (low confidence)",
        });
        let mut one = format!(
            "Decided on {}{}",
            lowered(&decided.decision),
            confidence.unwrap_or_default()
        );
        if let Some(why) = &decided.rationale {
            one = format!("{one} because {}", decapitalised(why.trim_end_matches('.')));
        }
        if !decided.rejected.is_empty() {
            let rejected: Vec<_> = decided.rejected.iter().map(|it| lowered(it)).collect();
            one = format!("{one}; rejected {}", joined(&rejected));
        }
        if decided.needs_revision {
            one.push_str("; to be looked at again");
        }
        told.push(one);
    }
    for pivot in &from.pivots {
        if let (Some(before), Some(after)) = (&pivot.from, &pivot.to) {
            let insight = pivot.insight.as_deref();
            let insight = insight.map(|it| format!(": {}", it.trim_end_matches('.')));
            told.push(format!(
                "It turned from {} to {}{}",
                lowered(before),
                lowered(after),
                insight.unwrap_or_default()
            ));
        }
    }
    if let Some(insight) = from.insights.first() {
        told.push(format!("The insight behind it: {insight}"));
    }
    paragraph(&told, "No decision is recorded.")
}

fn question(from: &Snapshot) -> String {
    let mut told = Vec::new();
    if let Some(question) = &from.question {
        told.push(format!("The critical question: {question}"));
    }
    if let Some(why) = why_blocking(from) {
        told.push(format!("Why it blocks: {}", decapitalised(&why)));
    }
    if let Some(kind) = &from.question_type {
        told.push(format!("It is of the type {}", lowered(kind)));
    }
    if let Some(framing) = &from.user_framing {
        told.push(format!("The user put it as: \"{framing}\""));
    }
    if let Some((_, text)) = &from.my_confidence {
        let note = from.confidence_note.as_deref().map(lowered);
        let note = note.map(|it| format!(" - {it}")).unwrap_or_default();
        told.push(format!("Confidence in an answer: {text}{note}"));
    }
    let others = from.open_questions.len();
    if others > 0 {
        told.push(format!("Open beside it: {others}"));
    }
    paragraph(&told, "No critical question is recorded.")
}

/// Why it blocks, where nobody said.
pub(super) const NOTHING_MOVES: &str = "Nothing moves forward until it is resolved";

/// Why the critical question blocks, if it does.
pub(super) fn why_blocking(from: &Snapshot) -> Option<String> {
    let of_question = from.question_blocking.as_ref();
    match of_question.and_then(Blocking::what) {
        // A text explains itself; names are of what has to wait.
        Some([one]) if one.contains(' ') => Some(one.clone()),
        Some(what) if !what.is_empty() => {
            let what: Vec<_> = what.iter().map(|it| lowered(it)).collect();
            let what = capitalised(&joined(&what));
            Some(format!("{what} cannot go on without resolving this"))
        }
        Some(_) => Some(NOTHING_MOVES.to_owned()),
        None => from
            .blocking_issue
            .as_ref()?
            .what()
            .map(|what| match what.first() {
                Some(text) => humanised(text),
                None => NOTHING_MOVES.to_owned(),
            }),
    }
}

fn communication(from: &Snapshot) -> String {
    let mut told = Vec::new();
    if let Some(depth) = &from.depth {
        told.push(format!("Prefers {}", decapitalised(&lowered(depth))));
    }
    if let Some(style) = &from.reasoning_style {
        told.push(format!("Reasons in this way: {}", lowered(style)));
    }
    let lowered_all = |texts: &[String]| texts.iter().map(|it| lowered(it)).collect::<Vec<_>>();
    if !from.appreciates.is_empty() {
        told.push(format!(
            "Appreciates {}",
            joined(&lowered_all(&from.appreciates))
        ));
    }
    if !from.comfortable_with.is_empty() {
        let with = joined(&lowered_all(&from.comfortable_with));
        told.push(format!("Comfortable with {with}"));
    }
    if let Some(mode) = &from.collaboration {
        told.push(format!("The way of working together is {}", lowered(mode)));
    }
    if !from.what_works.is_empty() {
        told.push(format!(
            "What works: {}",
            joined(&lowered_all(&from.what_works))
        ));
    }
    if let Some(pattern) = &from.communication_pattern {
        told.push(format!("The pattern so far: {}", lowered(pattern)));
    }
    if calibration(from).next().is_none() && told.is_empty() {
        return "How to talk with the user is not said.".to_owned();
    }
    paragraph(&told, "")
}

fn trajectory(from: &Snapshot) -> String {
    let mut told = Vec::new();
    let options = from.next_steps.iter();
    let options = options.filter(|step| !is_premature(from, &step.step, step.kind.as_deref()));
    let options: Vec<_> = (1..)
        .zip(options)
        .map(|(number, step)| format!("({number}) {}", lowered(&step.step)))
        .collect();
    match options.as_slice() {
        [] => {}
        [one] => told.push(format!("What follows: {one}")),
        several => told.push(format!("Options: {}", several.join(", "))),
    }
    let not_yet = not_yet(from);
    if !not_yet.is_empty() {
        told.push(format!("NOT yet: {}", joined(&not_yet)));
    }
    if let Some(what) = from.blocked() {
        told.push(format!("First to be resolved: {what}"));
    }
    paragraph(&told, "What comes next is not said.")
}

/// What should not be done yet: what was put off, and what moves on while something blocks.
pub(super) fn not_yet(from: &Snapshot) -> Vec<String> {
    let premature = from.next_steps.iter();
    let premature = premature.filter(|it| is_premature(from, &it.step, it.kind.as_deref()));
    let premature = premature.map(|step| lowered(&step.step));
    let deferred = from.deferred.iter().map(|deferred| {
        let until = deferred.until.as_deref();
        let until = until.map(|it| format!(" (until {})", decapitalised(&lowered(it))));
        format!("{}{}", lowered(&deferred.item), until.unwrap_or_default())
    });
    premature.chain(deferred).collect()
}

/// Words of steps that build on an answer instead of looking for one.
const MOVING_ON: [&str; 14] = [
    "implement",
    "implementation",
    "build",
    "deploy",
    "deployment",
    "ship",
    "release",
    "launch",
    "finalize",
    "finalise",
    "execute",
    "migrate",
    "rollout",
    "publish",
];

/// Whether a step moves on although something blocks.
pub(super) fn is_premature(from: &Snapshot, step: &str, kind: Option<&str>) -> bool {
    let moves_on = |text: &str| {
        let lower = text.to_lowercase();
        let mut words = lower.split(|it: char| !it.is_alphanumeric());
        words.any(|word| MOVING_ON.contains(&word))
    };
    // A step says first what it does: `explore how to build` builds nothing.
    let begins = step.split(|it: char| !it.is_alphanumeric()).next();
    from.blocked().is_some() && (begins.is_some_and(moves_on) || kind.is_some_and(moves_on))
}
