//! Phase 4: the text that the next agent begins with.

use super::challenge::{
    NOTHING_MOVES, difficulties, is_premature, is_unsure, open_questions, stakes, why_blocking,
};
use super::snapshot::{Artifact, Blocker, ConversationSnapshot};
use super::subject::subject;
use super::validate::Checklist;
use super::wording::{
    SHOWN, capitalised, clause, humanised, join_or, limit_items, mid_sentence, percent,
    replace_identifiers, sentence,
};

mod confidence;
mod ending;
mod options;

/// Writes the confirmation: the same text for the same file, byte for byte.
#[must_use]
pub fn confirmation(from: &ConversationSnapshot, checklist: &Checklist) -> String {
    let format = from
        .format
        .as_deref()
        .map_or_else(|| "unnamed".to_owned(), replace_identifiers);
    let head = format!(
        "Context reconstructed from checkpoint v{} ({format} format).",
        from.version
    );
    let mut sections = vec![head];
    sections.extend(blocking(from));
    sections.push(position(from));
    sections.extend(conversation(from));
    sections.push(question(from));
    sections.push(confidence::confidence_section(from));
    sections.extend(ending::ending_section(from));
    sections.push(options::next_options(from));
    sections.push(calibration(from));
    sections.extend(artifacts(from));
    sections.extend(uncertainties(from, checklist));
    sections.push(ready(from, checklist));
    let mut text = sections.join("\n\n");
    text.push('\n');
    text
}

const NOT_RECORDED: &str = "not recorded";

fn section(head: &str, lines: &[String]) -> String {
    let mut text = head.to_owned();
    for line in lines {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

fn or_not_recorded(text: Option<&String>) -> String {
    text.map_or_else(|| NOT_RECORDED.to_owned(), |text| humanised(text))
}

fn blocking(from: &ConversationSnapshot) -> Option<String> {
    let what = from.blocked()?;
    let why = why_blocking(from).filter(|why| humanised(&what) != *why && why != NOTHING_MOVES);
    let mut lines: Vec<_> = why.map(|why| sentence(&why)).into_iter().collect();
    lines.push(sentence(NOTHING_MOVES));
    Some(section(
        &format!("BLOCKING ISSUE: {}", humanised(&what)),
        &lines,
    ))
}

fn position(from: &ConversationSnapshot) -> String {
    let completion = from
        .completion
        .map_or_else(|| NOT_RECORDED.to_owned(), percent);
    section(
        &format!("POSITION: {}", place(from)),
        &[
            format!("Phase: {}", or_not_recorded(from.phase.as_ref())),
            format!("Stage: {}", stage(from)),
            format!("Completion: {completion}"),
            format!("Momentum: {}", momentum(from)),
        ],
    )
}

/// Stage of the work with its subject.
fn place(from: &ConversationSnapshot) -> String {
    let stage = from.stage.as_deref().map(humanised);
    // The stage in one word: text after a comma is a comment on it.
    let stage = stage.as_deref().and_then(|text| text.split(',').next());
    match (stage, subject(from)) {
        // `Early` is in a subject, `Mid-design` is of a subject; other stages have no subject.
        (Some(stage @ ("Early" | "Mid" | "Late")), Some(subject)) => {
            format!("{stage} in {}", mid_sentence(&subject))
        }
        (Some(stage), Some(subject)) if stage.split(' ').next().is_some_and(is_compound) => {
            format!("{stage} of {}", mid_sentence(&subject))
        }
        (Some(stage), Some(subject)) => format!("{stage}: {}", mid_sentence(&subject)),
        (Some(stage), None) => stage.to_owned(),
        (None, Some(subject)) => capitalised(&subject),
        (None, None) => NOT_RECORDED.to_owned(),
    }
}

/// True for a compound word such as `Mid-design`.
fn is_compound(word: &str) -> bool {
    word.contains('-')
}

fn stage(from: &ConversationSnapshot) -> String {
    let Some(stage) = &from.stage else {
        return NOT_RECORDED.to_owned();
    };
    let text = humanised(stage);
    // A stage described in words needs no more.
    if from.ready != Some(false) || stage.contains(' ') || !stage.contains(['_', '-']) {
        return text;
    }
    let waits = from.question_blocking.as_ref().and_then(Blocker::what);
    let mut waits = waits.unwrap_or_default().iter();
    let final_waits = waits.any(|name| name.contains("finaliz") || name.contains("finalis"));
    let not = if final_waits {
        "finalized"
    } else {
        "ready for implementation"
    };
    format!("{text}, not {not}")
}

fn momentum(from: &ConversationSnapshot) -> String {
    let momentum = from.momentum.as_deref().map(humanised);
    let momentum = momentum.unwrap_or_else(|| NOT_RECORDED.to_owned());
    let Some(activity) = &from.last_major_activity else {
        return momentum;
    };
    let words = mid_sentence(&clause(activity));
    let first = words.split(' ').next().unwrap_or_default();
    if activity.contains(['`', ':']) || from.momentum.is_none() {
        // An event of a record is a sentence, and may not be an achievement.
        return format!("{momentum}; last activity: {words}");
    }
    if first.len() > 4 && first.ends_with("ed") {
        return format!("{momentum}, just {words}");
    }
    format!("{momentum}, just completed {words}")
}

/// State of the conversation's summary, if it is frozen or has proposals held back.
fn conversation(from: &ConversationSnapshot) -> Option<String> {
    let state = from.conversation.as_ref()?;
    let mut lines = Vec::new();
    if state.frozen {
        let since = state.frozen_since.as_deref();
        let since = since
            .map(|time| format!(" since {time}"))
            .unwrap_or_default();
        let until = state.until.as_deref();
        let until = until
            .map(|condition| format!(", until {condition}"))
            .unwrap_or_default();
        lines.push(format!("The summary is frozen{since}{until}."));
    }
    if state.held_back_count > 0 {
        let count = state.held_back_count;
        let proposals = if count == 1 { "proposal" } else { "proposals" };
        let newest = state.held_back.first();
        let newest = newest.map(|proposal| format!("; newest: {}", clause(proposal)));
        let newest = newest.unwrap_or_default();
        lines.push(format!("{count} {proposals} not applied yet{newest}."));
    }
    (!lines.is_empty()).then(|| section("CONVERSATION STATE:", &lines))
}

fn question(from: &ConversationSnapshot) -> String {
    let recorded = from.question_blocking.is_some() || from.blocking_issue.is_some();
    let nothing = if recorded {
        "not blocking"
    } else {
        NOT_RECORDED
    };
    let why = why_blocking(from).unwrap_or_else(|| nothing.to_owned());
    let framing = from.user_framing.as_ref();
    let framing = framing.map_or_else(|| NOT_RECORDED.to_owned(), |text| format!("\"{text}\""));
    let mut lines = vec![
        format!("Type: {}", or_not_recorded(from.question_type.as_ref())),
        format!("Why blocking: {why}"),
        format!("User's framing: {framing}"),
    ];
    if from.question.is_some() {
        lines.extend(listed("At stake", &stakes(from)));
        lines.extend(listed("What makes it hard", &difficulties(from)));
    }
    let open = limit_items(open_questions(from), SHOWN);
    if !open.is_empty() {
        lines.push("Also open:".to_owned());
        lines.extend(open.iter().map(|question| format!("  - {question}")));
    }
    let question = or_not_recorded(from.question.as_ref());
    section(&format!("CRITICAL QUESTION: {question}"), &lines)
}

/// One entry after its name, several below it.
fn listed(name: &str, entries: &[String]) -> Vec<String> {
    match entries {
        [] => Vec::new(),
        [one] => vec![format!("{name}: {}", capitalised(one))],
        several => {
            let several = several
                .iter()
                .map(|entry| format!("  - {}", capitalised(entry)));
            std::iter::once(format!("{name}:")).chain(several).collect()
        }
    }
}

/// Style of communication in a few lines; phase 2 has all of it.
fn calibration(from: &ConversationSnapshot) -> String {
    let few = |texts: &[String]| {
        let texts: Vec<_> = texts
            .iter()
            .take(3)
            .map(|text| mid_sentence(text))
            .collect();
        (!texts.is_empty()).then(|| super::wording::join_and(&texts))
    };
    let mut points = Vec::new();
    let style = [&from.collaboration, &from.depth];
    let style = style.into_iter().flatten().map(|text| mid_sentence(text));
    let style: Vec<_> = style.collect();
    let reasons = from.reasoning_style.as_deref().map(mid_sentence);
    let reasons = reasons.filter(|_| style.len() < 2);
    let style: Vec<_> = style.into_iter().chain(reasons).collect();
    points.extend((!style.is_empty()).then(|| style.join(", ")));
    let comfortable = few(&from.comfortable_with).map(|list| format!("comfortable with {list}"));
    let appreciates = few(&from.appreciates).map(|list| format!("appreciates {list}"));
    let both: Vec<_> = comfortable.into_iter().chain(appreciates).collect();
    points.extend((!both.is_empty()).then(|| both.join("; ")));
    let approach = [&from.preference, &from.style].into_iter().flatten();
    let approach = || approach.map(|text| mid_sentence(text)).next();
    let values = few(&from.values).map(|list| format!("values {list}"));
    points.extend(values.or_else(approach));
    points.extend(few(&from.what_works));
    if points.is_empty() {
        return format!("COMMUNICATION CALIBRATION: {NOT_RECORDED}");
    }
    let points = points
        .iter()
        .map(|point| format!("- {}", capitalised(point)));
    section("COMMUNICATION CALIBRATION:", &points.collect::<Vec<_>>())
}

/// Artifacts that can be loaded on demand, in sentences. A record is not in the file: the program
/// prints it.
fn artifacts(from: &ConversationSnapshot) -> Option<String> {
    let usable = from
        .artifacts
        .iter()
        .filter(|artifact| !artifact.is_superseded());
    let (records, others): (Vec<_>, Vec<_>) = usable.partition(|artifact| artifact.is_record());
    let mut lines = Vec::new();
    if !others.is_empty() {
        let loaded = match others.as_slice() {
            [_] => "it is not",
            _ => "none of them is",
        };
        let named = others.into_iter().map(Artifact::named).collect();
        let named = join_or(&limit_items(named, SHOWN));
        lines.push(format!(
            "On request I can load {named}; {loaded} loaded yet."
        ));
    }
    for record in records.into_iter().take(SHOWN) {
        let (named, id) = (record.named(), &record.id);
        lines.push(format!("Run `cra trace show {id}` to print {named}."));
    }
    (!lines.is_empty()).then(|| format!("ARTIFACTS: {}", lines.join(" ")))
}

fn uncertainties(from: &ConversationSnapshot, checklist: &Checklist) -> Option<String> {
    let mut lines = checklist.uncertainties();
    if is_unsure(from) {
        let confidence = from.my_confidence.as_ref().map(|(_, text)| text.as_str());
        lines.push(format!(
            "confidence in an answer to the critical question is {}",
            confidence.unwrap_or(NOT_RECORDED)
        ));
    }
    if lines.is_empty() {
        return None;
    }
    let lines: Vec<_> = lines.iter().map(|line| format!("- {line}")).collect();
    Some(section("UNCERTAINTIES:", &lines))
}

fn ready(from: &ConversationSnapshot, checklist: &Checklist) -> String {
    let first: Vec<_> = checklist.questions().collect();
    if !first.is_empty() {
        return format!("Ready to continue. First: {}", first.join(" "));
    }
    let steps = from.options();
    let open = steps.iter().filter(|step| !is_premature(from, step));
    let open: Vec<_> = open.map(|step| mid_sentence(&clause(&step.step))).collect();
    let question = match open.as_slice() {
        [] if from.blocked().is_some() => "How shall we resolve the blocking issue?".to_owned(),
        [] => "Where would you like to begin?".to_owned(),
        [one] if is_unsure(from) => {
            format!("Would you rather explore alternatives first, or take this step: {one}?")
        }
        [one] if options::begins_with_verb(one) => format!("Shall we {one}?"),
        [one] => format!("Shall we continue with this step: {one}?"),
        [first @ .., last] => format!(
            "Which direction would you like to take - {}, or {last}?",
            first.join(", ")
        ),
    };
    format!("Ready to continue. {question}")
}
