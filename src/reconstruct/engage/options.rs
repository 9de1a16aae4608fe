//! Steps to choose from, with their reasons, and deferred work.

use super::super::challenge::is_premature;
use super::super::infer::deferred;
use super::super::snapshot::{ConversationSnapshot, NextStep, Tradeoff};
use super::super::wording::{
    SHOWN, all_mid_sentence, clause, humanised, join_and, limit_items, mid_sentence, share_subject,
};
use super::{NOT_RECORDED, listed, section};

pub(super) fn next_options(from: &ConversationSnapshot) -> String {
    let steps = from.options();
    let mut lines: Vec<_> = (1..)
        .zip(&steps)
        .map(|(number, step)| format!("{number}. {}", option(from, step)))
        .collect();
    if from.has_several_options() {
        lines.extend(tradeoffs(&from.tradeoffs));
    }
    let later = limit_items(deferred(from), SHOWN);
    if !later.is_empty() {
        lines.push(format!("Not yet: {}", later.join("; ")));
    }
    let head = if steps.is_empty() {
        format!("NEXT OPTIONS: {NOT_RECORDED}")
    } else {
        "NEXT OPTIONS:".to_owned()
    };
    section(&head, &lines)
}

/// Trade-offs, one per line if there are several; unresolved ones come first.
fn tradeoffs(all: &[Tradeoff]) -> Vec<String> {
    let (open, resolved): (Vec<_>, Vec<_>) =
        all.iter().partition(|tradeoff| tradeoff.is_unresolved());
    let words = open.into_iter().chain(resolved).map(Tradeoff::words);
    let words = limit_items(words.collect(), SHOWN);
    match words.as_slice() {
        [one] => vec![format!("Trade-offs: {one}")],
        words => listed("Trade-offs", words),
    }
}

fn option(from: &ConversationSnapshot, step: &NextStep) -> String {
    let mut about = Vec::new();
    let questions = all_mid_sentence(&step.questions);
    let questions = questions
        .iter()
        .map(|question| question.trim_end_matches('?').to_owned());
    let questions = join_and(&limit_items(questions.collect(), SHOWN));
    let premature = is_premature(from, step);
    let question = from.question.as_deref().unwrap_or_default();
    let blocked = from.blocked().unwrap_or_default();
    let resolves = share_subject(&step.step, question) || share_subject(&step.step, &blocked);
    if let Some(purpose) = &step.purpose {
        about.push(mid_sentence(&clause(purpose)));
    } else if !blocked.is_empty() && resolves && !premature {
        about.push("address the blocking issue".to_owned());
    }
    if !questions.is_empty() {
        about.push(format!("answers {questions}"));
    }
    if let Some(other) = &step.alternative_to {
        about.push(format!("instead of {}", mid_sentence(other)));
    }
    if premature {
        about.push("premature until the blocking issue is resolved".to_owned());
    }
    let text = humanised(&step.step);
    if about.is_empty() {
        return text;
    }
    format!("{text} ({})", about.join("; "))
}

/// Verbs that steps often begin with. A step with another first word is a name: `architectural review`.
const VERBS: [&str; 72] = [
    "add",
    "address",
    "agree",
    "analyse",
    "analyze",
    "apply",
    "approve",
    "ask",
    "build",
    "call",
    "change",
    "check",
    "choose",
    "clean",
    "compare",
    "conduct",
    "confirm",
    "continue",
    "create",
    "decide",
    "define",
    "delete",
    "deploy",
    "describe",
    "develop",
    "discuss",
    "do",
    "document",
    "draft",
    "evaluate",
    "explore",
    "extend",
    "finalise",
    "finalize",
    "find",
    "finish",
    "fix",
    "gather",
    "get",
    "go",
    "identify",
    "implement",
    "improve",
    "integrate",
    "investigate",
    "list",
    "look",
    "make",
    "measure",
    "merge",
    "migrate",
    "move",
    "plan",
    "prepare",
    "prove",
    "publish",
    "read",
    "refine",
    "release",
    "remove",
    "reproduce",
    "resolve",
    "resume",
    "review",
    "run",
    "ship",
    "switch",
    "talk",
    "try",
    "validate",
    "verify",
    "write",
];

/// True if a step begins with a verb.
pub(super) fn begins_with_verb(step: &str) -> bool {
    let mut words = step.split_whitespace().map(str::to_lowercase);
    let first = words.next().unwrap_or_default();
    let and = words.next().unwrap_or_default();
    // `Test results` and `review of layers` are names.
    VERBS.contains(&first.as_str()) && !matches!(and.as_str(), "of" | "results" | "meeting")
}
