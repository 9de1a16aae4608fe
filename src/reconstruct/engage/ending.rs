//! A conversation near its end: what was done, what is open, and the ways to finish.

use super::super::snapshot::Snapshot;
use super::super::words::{bounded, humanised, lowered};
use super::{NOT_SAID, section};

/// Beyond this share in per cent a conversation is near its end.
const NEAR_THE_END: f64 = 80.0;

/// Entries of a line that are shown; the rest is counted.
const SHOWN_ENTRIES: usize = 12;

pub(super) fn near_the_end(from: &Snapshot) -> Option<String> {
    if from.completion? <= NEAR_THE_END {
        return None;
    }
    let decided = from.decisions.iter().filter(|it| it.is_accomplished());
    let decided = decided.map(|it| humanised(&it.decision));
    let worked = from.completed.iter().map(|it| humanised(it));
    let done = decided.chain(worked).collect();
    let asked = from.open_questions.iter().map(|it| lowered(&it.question));
    let deferred = from.deferred.iter().map(|it| humanised(&it.item));
    let unsettled = from.decisions.iter();
    let unsettled = unsettled.filter(|it| !it.is_accomplished() && !it.is_refused());
    let unsettled = unsettled.filter(|it| it.confidence.is_some() || it.is_tentative());
    let unsettled = unsettled.map(|it| format!("{} (to be confirmed)", humanised(&it.decision)));
    let open = asked.chain(deferred).chain(unsettled).collect();
    let paths = from
        .options()
        .iter()
        .map(|it| humanised(&it.step))
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
        return format!("{name}: {NOT_SAID}");
    }
    format!("{name}: {}", bounded(items, SHOWN_ENTRIES).join("; "))
}
