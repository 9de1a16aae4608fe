//! Phase 4: the text that a conversation goes on with.

use super::infer::{NOTHING_MOVES, is_premature, why_blocking};
use super::snapshot::{Certainty, NextStep, Snapshot};
use super::validate::Checklist;
use super::words::{capitalised, decapitalised, humanised, lowered, percent, sentence};

/// The confirmation: the same for the same file, byte for byte.
#[must_use]
pub fn confirmation(from: &Snapshot, checklist: &Checklist) -> String {
    let format = from
        .format
        .as_deref()
        .map_or_else(|| "unnamed".to_owned(), lowered);
    let head = format!(
        "Context reconstructed from checkpoint v{} ({format} format).",
        from.version
    );
    let mut sections = vec![head];
    sections.extend(blocking(from));
    sections.push(position(from));
    sections.push(question(from));
    sections.push(confidence(from));
    sections.extend(near_the_end(from));
    sections.push(options(from));
    sections.push(calibration(from));
    sections.extend(uncertainties(from, checklist));
    sections.push(ready(from, checklist));
    let mut text = sections.join("\n\n");
    text.push('\n');
    text
}

/// Whether a text begins with a word such as `Mid-design`.
fn begins_with_two_words(text: &str) -> bool {
    let first = text.split_whitespace().next();
    first.is_some_and(|word| word.contains('-'))
}

const NOT_SAID: &str = "not recorded";

fn section(head: &str, lines: &[String]) -> String {
    let mut text = head.to_owned();
    for line in lines {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

fn or_not_said(text: Option<&String>) -> String {
    text.map_or_else(|| NOT_SAID.to_owned(), |text| humanised(text))
}

fn blocking(from: &Snapshot) -> Option<String> {
    let what = from.blocked()?;
    let why = why_blocking(from).filter(|why| humanised(&what) != *why && why != NOTHING_MOVES);
    let mut lines: Vec<_> = why.map(|it| sentence(&it)).into_iter().collect();
    lines.push(sentence(NOTHING_MOVES));
    Some(section(
        &format!("BLOCKING ISSUE: {}", humanised(&what)),
        &lines,
    ))
}

fn position(from: &Snapshot) -> String {
    let stage = from.stage.as_deref().map(humanised);
    // The place in a word: what stands behind a comma is about it.
    let place = stage.as_deref().and_then(|it| it.split(',').next());
    let topic = from
        .start_topic
        .as_deref()
        .or(from.goal.as_deref())
        .map(lowered);
    let place = match (place, topic) {
        // `Early` is in something, `Mid-design` is of something; anything else stands by itself.
        (Some(place @ ("Early" | "Mid" | "Late")), Some(topic)) => format!("{place} in {topic}"),
        (Some(place), Some(topic)) if begins_with_two_words(place) => {
            format!("{place} of {topic}")
        }
        (Some(place), Some(topic)) => format!("{place}: {topic}"),
        (Some(place), None) => place.to_owned(),
        (None, Some(topic)) => capitalised(&topic),
        (None, None) => NOT_SAID.to_owned(),
    };
    let momentum = from.momentum.as_deref().map(humanised);
    let activity = from.last_major_activity.as_deref().map(lowered);
    let momentum = match (momentum, activity) {
        (Some(momentum), Some(activity)) => {
            format!("{momentum}, just completed {}", decapitalised(&activity))
        }
        (Some(momentum), None) => momentum,
        (None, Some(activity)) => format!("just completed {}", decapitalised(&activity)),
        (None, None) => NOT_SAID.to_owned(),
    };
    let completion = from.completion.map_or_else(|| NOT_SAID.to_owned(), percent);
    section(
        &format!("POSITION: {place}"),
        &[
            format!("Phase: {}", or_not_said(from.phase.as_ref())),
            format!("Stage: {}", stage.unwrap_or_else(|| NOT_SAID.to_owned())),
            format!("Completion: {completion}"),
            format!("Momentum: {momentum}"),
        ],
    )
}

fn question(from: &Snapshot) -> String {
    let said = from.question_blocking.is_some() || from.blocking_issue.is_some();
    let nothing = if said { "it does not block" } else { NOT_SAID };
    let why = why_blocking(from).unwrap_or_else(|| nothing.to_owned());
    let framing = from.user_framing.as_ref();
    let framing = framing.map_or_else(|| NOT_SAID.to_owned(), |it| format!("\"{it}\""));
    section(
        &format!("CRITICAL QUESTION: {}", or_not_said(from.question.as_ref())),
        &[
            format!("Type: {}", or_not_said(from.question_type.as_ref())),
            format!("Why blocking: {why}"),
            format!("User's framing: {framing}"),
        ],
    )
}

fn confidence(from: &Snapshot) -> String {
    let of = |wanted: Certainty| {
        let decided = from.decisions.iter().filter(move |it| {
            let certainty = it.confidence.as_ref().map(|(certainty, _)| *certainty);
            // What has to be looked at again is not as sure as it was, and what nobody is sure about is
            // tentative.
            let certainty = match certainty {
                Some(Certainty::High) if it.needs_revision => Certainty::Medium,
                Some(certainty) => certainty,
                None => Certainty::Medium,
            };
            certainty == wanted
        });
        let mut names: Vec<_> = decided.map(|it| lowered(&it.decision)).collect();
        if let Some((certainty, text)) = &from.my_confidence
            && *certainty == wanted
            && from.question.is_some()
        {
            names.push(format!("the answer to the critical question ({text})"));
        }
        if names.is_empty() {
            return "none".to_owned();
        }
        capitalised(&names.join(", "))
    };
    let mut lines = vec![
        format!("High confidence: {}", of(Certainty::High)),
        format!("Medium confidence: {}", of(Certainty::Medium)),
        format!("Low confidence: {}", of(Certainty::Low)),
    ];
    if is_unsure(from) {
        let note = from.confidence_note.as_deref();
        let note = note
            .map(|it| format!(" ({})", lowered(it)))
            .unwrap_or_default();
        lines.push(format!(
            "I am not sure about the critical question{note}: I would rather explore alternatives than go on as if I were."
        ));
    }
    section("CONFIDENCE LEVELS:", &lines)
}

fn is_unsure(from: &Snapshot) -> bool {
    let certainty = from.my_confidence.as_ref().map(|(certainty, _)| *certainty);
    certainty == Some(Certainty::Low)
}

/// Beyond this a conversation is near its end.
const NEAR_THE_END: f64 = 80.0;

fn near_the_end(from: &Snapshot) -> Option<String> {
    if from.completion? <= NEAR_THE_END {
        return None;
    }
    let done = from.decisions.iter().map(|it| humanised(&it.decision));
    let done: Vec<_> = done.collect();
    let open = from.open_questions.iter().map(|it| it.question.clone());
    let deferred = from.deferred.iter().map(|it| humanised(&it.item));
    let open: Vec<_> = open.chain(deferred).collect();
    let paths: Vec<_> = from
        .next_steps
        .iter()
        .map(|it| humanised(&it.step))
        .collect();
    let line = |name: &str, items: &[String]| {
        let items = if items.is_empty() {
            NOT_SAID.to_owned()
        } else {
            items.join("; ")
        };
        format!("{name}: {items}")
    };
    Some(section(
        "NEAR COMPLETION:",
        &[
            line("Accomplished", &done),
            line("Still open", &open),
            line("Paths to completion", &paths),
        ],
    ))
}

fn options(from: &Snapshot) -> String {
    if from.next_steps.is_empty() {
        let next = or_not_said(from.next_major_step.as_ref());
        return format!("NEXT OPTIONS: {next}");
    }
    let several = from.has_several_options();
    let mut lines: Vec<_> = (1..)
        .zip(&from.next_steps)
        .map(|(number, step)| format!("{number}. {}", option(from, step)))
        .collect();
    if several && !from.tradeoffs.is_empty() {
        lines.push(format!("Trade-offs: {}", from.tradeoffs.join("; ")));
    }
    section("NEXT OPTIONS:", &lines)
}

fn option(from: &Snapshot, step: &NextStep) -> String {
    let mut about = Vec::new();
    about.extend(
        step.purpose
            .as_deref()
            .map(|it| decapitalised(&lowered(it))),
    );
    if step.purpose.is_none() && !step.questions.is_empty() {
        about.push(format!("answers {}", step.questions.join("; ")));
    }
    about.extend(
        step.alternative_to
            .as_deref()
            .map(|it| format!("instead of {}", decapitalised(&lowered(it)))),
    );
    if is_premature(from, &step.step, step.kind.as_deref()) {
        about.push("premature until the blocking issue is resolved".to_owned());
    }
    let text = humanised(&step.step);
    if about.is_empty() {
        return text;
    }
    format!("{text} ({})", about.join("; "))
}

fn calibration(from: &Snapshot) -> String {
    let mut points = Vec::new();
    let together = from.collaboration.as_deref().map(humanised);
    let depth = from.depth.as_deref().map(lowered);
    match (together, depth) {
        (Some(together), Some(depth)) => {
            points.push(format!("{together}, {}", decapitalised(&depth)));
        }
        (Some(one), None) => points.push(one),
        (None, Some(one)) => points.push(capitalised(&one)),
        (None, None) => {}
    }
    let each = |before: &'static str, texts: &[String]| {
        let texts = texts.iter();
        texts
            .map(|it| format!("{before} {}", decapitalised(&lowered(it))))
            .collect::<Vec<_>>()
    };
    points.extend(from.reasoning_style.as_deref().map(humanised));
    points.extend(each("Comfortable with", &from.comfortable_with));
    points.extend(each("Values", &from.values));
    points.extend(each("Appreciates", &from.appreciates));
    points.extend(from.what_works.iter().map(|it| humanised(it)));
    if points.is_empty() {
        return format!("COMMUNICATION CALIBRATION: {NOT_SAID}");
    }
    let points: Vec<_> = points.iter().map(|it| format!("- {it}")).collect();
    section("COMMUNICATION CALIBRATION:", &points)
}

fn uncertainties(from: &Snapshot, checklist: &Checklist) -> Option<String> {
    let mut lines = checklist.uncertainties();
    if is_unsure(from) {
        let confidence = from.my_confidence.as_ref().map(|(_, text)| text.as_str());
        lines.push(format!(
            "confidence in an answer to the critical question is {}",
            confidence.unwrap_or(NOT_SAID)
        ));
    }
    if lines.is_empty() {
        return None;
    }
    let lines: Vec<_> = lines.iter().map(|it| format!("- {it}")).collect();
    Some(section("UNCERTAINTIES:", &lines))
}

fn ready(from: &Snapshot, checklist: &Checklist) -> String {
    let first: Vec<_> = checklist.questions().collect();
    if !first.is_empty() {
        return format!("Ready to continue. First: {}", first.join(" "));
    }
    let open = from.next_steps.iter();
    let open = open.filter(|step| !is_premature(from, &step.step, step.kind.as_deref()));
    let open: Vec<_> = open
        .map(|step| decapitalised(&lowered(&step.step)))
        .collect();
    let question = match open.as_slice() {
        [] => "Where would you like to begin?".to_owned(),
        [one] => format!("Shall we {one}?"),
        [first @ .., last] => format!(
            "Which direction would you like to take - {}, or {last}?",
            first.join(", ")
        ),
    };
    format!("Ready to continue. {question}")
}
