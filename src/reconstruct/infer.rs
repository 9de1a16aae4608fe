//! Phase 2: inferences from the fields read, in sentences.

use serde::Serialize;

use super::challenge::{difficulties, is_premature, open_questions, stakes, why_blocking};
use super::retrieve::calibration;
use super::snapshot::{ConfidenceLevel, ConversationSnapshot, SnapshotDecision};
use super::subject::subject;
use super::wording::{
    SHOWN, all_mid_sentence, clause, decapitalised, join_and, limit_items, mid_sentence, percent,
    replace_identifiers, sentence,
};

/// One inference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inference {
    /// Number, from 1.
    pub number: u8,
    /// Topic of the inference.
    pub name: &'static str,
    /// Parts of the file that it uses.
    pub inputs: &'static [&'static str],
    /// Resulting text.
    pub output: String,
}

/// Infers everything from a snapshot.
#[must_use]
pub fn infer(from: &ConversationSnapshot) -> Vec<Inference> {
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

/// Joins sentences to a paragraph; `nothing` if there are none.
fn paragraph(sentences: &[String], nothing: &str) -> String {
    if sentences.is_empty() {
        return nothing.to_owned();
    }
    let sentences = sentences.iter().map(|text| sentence(text));
    sentences.collect::<Vec<_>>().join(" ")
}

fn position(from: &ConversationSnapshot) -> String {
    let mut sentences = Vec::new();
    let stage = from.stage.as_deref().map(mid_sentence);
    let phase = from.phase.as_deref().map(mid_sentence);
    let complete = from
        .completion
        .map(|share| format!(" ({} complete)", percent(share)));
    let complete = complete.unwrap_or_default();
    match (stage, phase) {
        (Some(stage), Some(phase)) => {
            sentences.push(format!("Stage: {stage}{complete}, in the phase {phase}"));
        }
        (Some(stage), None) => sentences.push(format!("Stage: {stage}{complete}")),
        (None, Some(phase)) => sentences.push(format!("Phase: {phase}{complete}")),
        (None, None) if from.completion.is_some() => {
            sentences.push(format!("Stage: not recorded{complete}"));
        }
        (None, None) => {}
    }
    let began = from.start_topic.as_deref().map(mid_sentence);
    let now = subject(from).map(|subject| mid_sentence(&subject));
    match (began, now) {
        (Some(began), Some(now)) if began != now => {
            sentences.push(format!(
                "The conversation began with {began} and is now about {now}"
            ));
        }
        (Some(one), _) => sentences.push(format!("The conversation began with {one}")),
        (None, Some(now)) => sentences.push(format!("The conversation is about {now}")),
        (None, None) => {}
    }
    let ready = from.ready.map(|ready| {
        if ready {
            "the work is ready for implementation"
        } else {
            "the work is not ready for implementation"
        }
    });
    match (from.momentum.as_deref().map(mid_sentence), ready) {
        (Some(momentum), Some(ready)) => {
            sentences.push(format!("Momentum is {momentum}, and {ready}"));
        }
        (Some(momentum), None) => sentences.push(format!("Momentum is {momentum}")),
        (None, Some(ready)) => sentences.push(super::wording::capitalised(ready)),
        (None, None) => {}
    }
    if let Some(activity) = &from.last_major_activity {
        sentences.push(format!(
            "Last major activity: {}",
            mid_sentence(&clause(activity))
        ));
    }
    paragraph(&sentences, "The position is not recorded.")
}

fn rationale(from: &ConversationSnapshot) -> String {
    let mut sentences: Vec<_> = from.decisions.iter().map(decided).collect();
    for pivot in &from.pivots {
        let insight = pivot.insight.as_deref();
        let because = insight.map(|insight| format!(": {}", mid_sentence(&clause(insight))));
        let because = because.unwrap_or_default();
        let (before, after) = (pivot.from.as_deref(), pivot.to.as_deref());
        sentences.push(match (before.map(mid_sentence), after.map(mid_sentence)) {
            (Some(before), Some(after)) => {
                format!("The direction changed from {before} to {after}{because}")
            }
            (Some(before), None) => format!("The direction changed away from {before}{because}"),
            (None, Some(after)) => format!("The direction changed to {after}{because}"),
            (None, None) => format!("The direction changed{because}"),
        });
    }
    let insights = from.insights.iter().map(|insight| {
        let led_to = insight.led_to.as_deref().map(mid_sentence);
        let led_to = led_to.map(|goal| format!(" (led to {goal})"));
        format!(
            "{}{}",
            mid_sentence(&clause(&insight.insight)),
            led_to.unwrap_or_default()
        )
    });
    let insights = limit_items(insights.collect(), SHOWN);
    match insights.as_slice() {
        [] => {}
        [one] => sentences.push(format!("Insight: {one}")),
        several => sentences.push(format!("Insights: {}", several.join("; "))),
    }
    paragraph(&sentences, "No decision is recorded.")
}

fn decided(decided: &SnapshotDecision) -> String {
    let confidence = decided.confidence.as_ref();
    let confidence = confidence.map(|(certainty, _)| match certainty {
        ConfidenceLevel::High => " (high confidence)",
        ConfidenceLevel::Medium => " (medium confidence)",
        ConfidenceLevel::Low => " (low confidence)",
    });
    let name = replace_identifiers(&decided.decision);
    let confidence = confidence.unwrap_or_default();
    let mut one = match &decided.decided_by {
        // A decision at a gate is a complete sentence.
        Some(by) => format!("{name}, by {by}{confidence}"),
        None => format!("Decided on {}{confidence}", decapitalised(&name)),
    };
    if let Some(why) = &decided.rationale {
        // If the file names the operator, the reason begins with the same name.
        let by = decided.decided_by.as_deref().map(|by| format!("{by}: "));
        let why = by.and_then(|by| why.strip_prefix(&by)).unwrap_or(why);
        let because = match decided.decided_by {
            Some(_) => ":",
            None => " because",
        };
        one = format!("{one}{because} {}", mid_sentence(&clause(why)));
    }
    if !decided.rejected.is_empty() {
        let rejected = limit_items(all_mid_sentence(&decided.rejected), SHOWN);
        one = format!("{one}; rejected {}", join_and(&rejected));
    }
    if decided.is_tentative() {
        one.push_str("; needs another review");
    }
    one
}

fn question(from: &ConversationSnapshot) -> String {
    let mut sentences = Vec::new();
    match &from.question {
        Some(question) => sentences.push(format!(
            "The critical question: {}",
            replace_identifiers(question)
        )),
        None => sentences.push("No critical question is recorded".to_owned()),
    }
    if let Some(why) = why_blocking(from) {
        sentences.push(format!("Why it blocks: {}", decapitalised(&why)));
    }
    if let Some(kind) = &from.question_type {
        sentences.push(format!("Type: {}", mid_sentence(kind)));
    }
    if from.question.is_some() {
        let or_unknown = |parts: Vec<String>| match parts.as_slice() {
            [] => "not recorded".to_owned(),
            parts => parts.join("; "),
        };
        let hard = or_unknown(difficulties(from));
        sentences.push(format!("What makes it hard: {hard}"));
        let stakes = or_unknown(stakes(from));
        sentences.push(format!("What is at stake: {stakes}"));
    }
    if let Some(framing) = &from.user_framing {
        sentences.push(format!("The user framed it as: \"{framing}\""));
    }
    if let Some((_, text)) = &from.my_confidence {
        let note = from.confidence_note.as_deref().map(mid_sentence);
        let note = note.map(|note| format!(" - {note}")).unwrap_or_default();
        sentences.push(format!("Confidence in an answer: {text}{note}"));
    }
    let others = limit_items(open_questions(from), SHOWN);
    if !others.is_empty() {
        sentences.push(format!("Also open: {}", others.join("; ")));
    }
    paragraph(&sentences, "")
}

fn communication(from: &ConversationSnapshot) -> String {
    let mut sentences = Vec::new();
    if let Some(depth) = &from.depth {
        sentences.push(format!("Preferred depth: {}", mid_sentence(depth)));
    }
    if let Some(style) = &from.reasoning_style {
        sentences.push(format!("Reasoning style: {}", mid_sentence(style)));
    }
    let lists = [
        ("Appreciates ", &from.appreciates),
        ("Comfortable with ", &from.comfortable_with),
        ("Values ", &from.values),
    ];
    for (before, texts) in lists {
        if !texts.is_empty() {
            sentences.push(format!("{before}{}", join_and(&all_mid_sentence(texts))));
        }
    }
    if let Some(mode) = &from.collaboration {
        sentences.push(format!("Collaboration: {}", mid_sentence(mode)));
    }
    if !from.what_works.is_empty() {
        let works = join_and(&all_mid_sentence(&from.what_works));
        sentences.push(format!("What works: {works}"));
    }
    if let Some(pattern) = &from.communication_pattern {
        sentences.push(format!("Communication pattern: {}", mid_sentence(pattern)));
    }
    if calibration(from).next().is_none() && from.what_works.is_empty() {
        sentences.insert(
            0,
            "The preferred communication style is not recorded".to_owned(),
        );
    }
    paragraph(&sentences, "")
}

fn trajectory(from: &ConversationSnapshot) -> String {
    let mut sentences = Vec::new();
    let steps = from.options();
    let options = steps.iter().filter(|step| !is_premature(from, step));
    let options: Vec<_> = (1..)
        .zip(options)
        .map(|(number, step)| format!("({number}) {}", mid_sentence(&step.step)))
        .collect();
    match options.as_slice() {
        [] => {}
        [one] => sentences.push(format!("Next step: {one}")),
        several => sentences.push(format!("Options: {}", several.join(", "))),
    }
    let not_yet = not_yet(from);
    if !not_yet.is_empty() {
        sentences.push(format!("NOT yet: {}", join_and(&not_yet)));
    }
    if let Some(what) = from.blocked() {
        sentences.push(format!("Resolve first: {}", replace_identifiers(&what)));
    }
    paragraph(&sentences, "The next steps are not recorded.")
}

/// Work that should not be done yet: deferred work, and steps that move on while a question blocks.
fn not_yet(from: &ConversationSnapshot) -> Vec<String> {
    let steps = from.options();
    let premature = steps.iter().filter(|step| is_premature(from, step));
    let premature = premature.map(|step| mid_sentence(&step.step));
    premature.chain(deferred(from)).collect()
}

/// Deferred work, each item with its condition and reason.
pub(super) fn deferred(from: &ConversationSnapshot) -> Vec<String> {
    let deferred = from.deferred.iter().map(|deferred| {
        let until = deferred.until.as_deref().map(condition);
        let until = until.map(|until| format!(" (until {until})"));
        let reason = deferred
            .reason
            .as_deref()
            .map(|reason| mid_sentence(&clause(reason)));
        let reason = reason.map(|reason| format!(" - {reason}"));
        let item = mid_sentence(&deferred.item);
        format!(
            "{item}{}{}",
            until.unwrap_or_default(),
            reason.unwrap_or_default()
        )
    });
    deferred.collect()
}

/// Formats `architecture_finalized` as `architecture is finalized`.
fn condition(text: &str) -> String {
    let words = mid_sentence(text);
    if text.contains(' ') || !text.contains('_') || words.contains(" is ") {
        return words;
    }
    match words.rsplit_once(' ') {
        Some((what, done)) if done.ends_with("ed") || matches!(done, "done" | "complete") => {
            format!("{what} is {done}")
        }
        Some(_) | None => words,
    }
}
