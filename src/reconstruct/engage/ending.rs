//! A conversation near its end: finished work, open work, and ways to finish.

use super::super::snapshot::ConversationSnapshot;
use super::super::wording::{humanised, limit_items, replace_identifiers};
use super::{NOT_RECORDED, section};

/// Progress in percent from which a conversation is near its end.
const NEAR_THE_END: f64 = 80.0;

/// Most entries in a line; the rest is counted.
const SHOWN_ENTRIES: usize = 12;

pub(super) fn ending_section(from: &ConversationSnapshot) -> Option<String> {
    if from.completion? <= NEAR_THE_END {
        return None;
    }
    let decided = from
        .decisions
        .iter()
        .filter(|decision| decision.is_accomplished());
    let decided = decided.map(|decision| humanised(&decision.decision));
    let worked = from.completed.iter().map(|item| humanised(item));
    let done = decided.chain(worked).collect();
    let questions = from
        .open_questions
        .iter()
        .map(|question| replace_identifiers(&question.question));
    let deferred = from
        .deferred
        .iter()
        .map(|deferred| humanised(&deferred.item));
    let unsettled = from.decisions.iter();
    let unsettled =
        unsettled.filter(|decision| !decision.is_accomplished() && !decision.is_refused());
    let unsettled =
        unsettled.filter(|decision| decision.confidence.is_some() || decision.is_tentative());
    let unsettled =
        unsettled.map(|decision| format!("{} (to be confirmed)", humanised(&decision.decision)));
    let open = questions.chain(deferred).chain(unsettled).collect();
    let paths = from
        .options()
        .iter()
        .map(|step| humanised(&step.step))
        .collect();
    Some(section(
        "NEAR COMPLETION:",
        &[
            line("Accomplished", done),
            line("Still open", open),
            line("Paths to completion", paths),
        ],
    ))
}

fn line(name: &str, items: Vec<String>) -> String {
    if items.is_empty() {
        return format!("{name}: {NOT_RECORDED}");
    }
    format!("{name}: {}", limit_items(items, SHOWN_ENTRIES).join("; "))
}
