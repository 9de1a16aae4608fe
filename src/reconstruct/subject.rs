//! Current subject of a conversation.
//!
//! A file states where a conversation began, and seldom its current subject. The rules, in order:
//! 1. the subject that the file states;
//! 2. the topic it began with, if the current texts still mention it;
//! 3. a name that several of these share: artifacts, session, next major step, last activity, goal;
//! 4. the topic it began with, unless a pivot led away from it;
//! 5. the target of the last pivot; 6. the goal.
//!
//! Current texts: artifacts that are not superseded, the session's name, the next major step, the last
//! activity, the last pivot and the critical question.

use super::snapshot::ConversationSnapshot;
use super::wording::{content_words, replace_identifiers, share_subject};

/// Current subject, for the middle of a sentence.
pub(super) fn subject(from: &ConversationSnapshot) -> Option<String> {
    if let Some(stated) = &from.subject {
        return Some(replace_identifiers(stated));
    }
    let began = from.start_topic.as_deref();
    if let Some(topic) = began.filter(|topic| is_current(from, topic)) {
        return Some(replace_identifiers(topic));
    }
    if let Some(name) = shared_name(from) {
        return Some(name);
    }
    let turned = began.is_some_and(|topic| has_pivoted_from(from, topic));
    let began = began.filter(|_| !turned);
    let last = from.pivots.last().and_then(|pivot| pivot.to.as_deref());
    began
        .or(last)
        .or(from.goal.as_deref())
        .map(replace_identifiers)
}

/// Current texts of the file.
fn at_hand(from: &ConversationSnapshot) -> Vec<&str> {
    let artifacts = from
        .artifacts
        .iter()
        .filter(|artifact| !artifact.is_superseded());
    let artifacts =
        artifacts.flat_map(|artifact| [Some(artifact.id.as_str()), artifact.title.as_deref()]);
    let last = from.pivots.last().and_then(|pivot| pivot.to.as_deref());
    let others = [
        from.session_id.as_deref(),
        from.next_major_step.as_deref(),
        from.last_major_activity.as_deref(),
        from.question.as_deref(),
        last,
    ];
    artifacts.chain(others).flatten().collect()
}

fn is_current(from: &ConversationSnapshot, topic: &str) -> bool {
    at_hand(from).iter().any(|text| share_subject(topic, text))
}

/// True if a pivot led away from a topic.
fn has_pivoted_from(from: &ConversationSnapshot, topic: &str) -> bool {
    let mut left = from.pivots.iter().filter_map(|pivot| pivot.from.as_deref());
    left.any(|left| share_subject(left, topic))
}

/// Generic words of names, which state the kind of a thing only.
const KINDS: [&str; 44] = [
    "api",
    "architecture",
    "archive",
    "chat",
    "checklist",
    "checkpoint",
    "code",
    "conversation",
    "data",
    "design",
    "diagram",
    "discussion",
    "doc",
    "docs",
    "document",
    "documentation",
    "draft",
    "file",
    "final",
    "guide",
    "implementation",
    "log",
    "model",
    "notes",
    "overview",
    "plan",
    "project",
    "prompts",
    "proposal",
    "readme",
    "report",
    "review",
    "roadmap",
    "runbook",
    "schema",
    "schemas",
    "session",
    "spec",
    "specification",
    "summary",
    "templates",
    "test",
    "tests",
    "trace",
];

/// Words of an identifier, without generic words at its ends.
fn name_of(identifier: &str) -> Vec<String> {
    let words = identifier.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<_> = words
        .map(str::to_lowercase)
        .filter(|word| word.chars().count() > 1 && word.chars().all(char::is_alphabetic))
        .collect();
    let is_kind = |word: &String| KINDS.contains(&word.as_str());
    let begin = words.iter().take_while(|word| is_kind(word)).count();
    // Generic words follow the first specific word: `librarian_data_schemas`.
    let rest = words.into_iter().skip(begin);
    rest.take_while(|word| !is_kind(word)).collect()
}

/// Name that most of the current texts share, if at least two do.
fn shared_name(from: &ConversationSnapshot) -> Option<String> {
    let artifacts: Vec<_> = from
        .artifacts
        .iter()
        .filter(|artifact| !artifact.is_superseded())
        .collect();
    let names = artifacts.iter().map(|artifact| artifact.id.as_str());
    let names = names.chain(from.session_id.as_deref());
    let names: Vec<_> = names.map(name_of).filter(|name| !name.is_empty()).collect();
    let others = [&from.next_major_step, &from.last_major_activity, &from.goal];
    let others = others.into_iter().flatten();
    let others: Vec<Vec<String>> = others.map(|text| content_words(text).collect()).collect();
    let speak_of = |word: &String| {
        let sources = names.iter().chain(&others);
        sources.filter(|source| source.contains(word)).count()
    };
    let known = names.iter().flatten().map(|word| (speak_of(word), word));
    // The first of the most frequent names.
    let strongest = known.rev().max_by_key(|(count, _)| *count);
    let (_, word) = strongest.filter(|(count, _)| *count >= 2)?;
    let holding = names.iter().filter(|name| name.contains(word)).rev();
    let name = holding.max_by_key(|name| name.iter().map(speak_of).sum::<usize>())?;
    let is_system = artifacts.iter().any(|artifact| {
        let texts = [artifact.kind.as_deref(), artifact.title.as_deref()];
        let texts = texts.into_iter().flatten().map(str::to_lowercase);
        let of_it = name_of(&artifact.id) == *name;
        of_it
            && texts
                .into_iter()
                .any(|text| text.contains("architecture") || text.contains("system"))
    });
    if let [_] = name.as_slice() {
        // One word is hardly a name: with its generic word it is one, as in `handover_guide`.
        let mut whole = artifacts
            .iter()
            .filter(|artifact| name_of(&artifact.id) == *name);
        return whole
            .next()
            .map(|artifact| replace_identifiers(&artifact.id));
    }
    let mut words: Vec<_> = name.iter().map(|word| titled(word)).collect();
    if is_system {
        // A thing with an architecture is a system.
        words.push("system".to_owned());
    }
    Some(words.join(" "))
}

fn titled(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
