//! Decisions by confidence, and facts that are not known well enough.

use super::super::challenge::{alternatives, certainty_of_answer, is_unsure};
use super::super::snapshot::{ConfidenceLevel, ConversationSnapshot, SnapshotDecision};
use super::super::wording::{SHOWN, capitalised, clause, limit_items, mid_sentence};
use super::section;

/// Most decisions of one group that are shown; the rest is counted.
const SHOWN_DECISIONS: usize = 12;

pub(super) fn confidence_section(from: &ConversationSnapshot) -> String {
    let mut lines = vec![
        format!("High confidence: {}", group(from, ConfidenceLevel::High)),
        format!(
            "Medium confidence: {}",
            group(from, ConfidenceLevel::Medium)
        ),
        format!("Low confidence: {}", group(from, ConfidenceLevel::Low)),
    ];
    let unrated = from
        .decisions
        .iter()
        .filter(|decision| decision.confidence.is_none());
    let unrated: Vec<_> = unrated.map(SnapshotDecision::named).collect();
    if !unrated.is_empty() {
        lines.push(format!("Confidence not recorded: {}", list(unrated)));
    }
    if is_unsure(from) {
        lines.extend(doubts(from));
    }
    section("CONFIDENCE LEVELS:", &lines)
}

fn list(names: Vec<String>) -> String {
    capitalised(&limit_items(names, SHOWN_DECISIONS).join(", "))
}

fn group(from: &ConversationSnapshot, wanted: ConfidenceLevel) -> String {
    let decided = from.decisions.iter().filter(|decision| {
        let certainty = decision
            .confidence
            .as_ref()
            .map(|(certainty, _)| *certainty);
        // A decision that needs revision loses confidence.
        let certainty = match certainty {
            Some(ConfidenceLevel::High) if decision.is_tentative() => Some(ConfidenceLevel::Medium),
            certainty => certainty,
        };
        certainty == Some(wanted)
    });
    // Decisions of low confidence are never settled, so the name does not say it.
    let name = match wanted {
        ConfidenceLevel::High | ConfidenceLevel::Medium => SnapshotDecision::named,
        ConfidenceLevel::Low => |decided: &SnapshotDecision| mid_sentence(&decided.decision),
    };
    let mut names: Vec<_> = decided.map(name).collect();
    if let Some((_, text)) = &from.my_confidence
        && certainty_of_answer(from) == Some(wanted)
        && from.question.is_some()
    {
        let note = from.confidence_note.as_deref();
        let note = note.map(|note| format!(": {}", mid_sentence(&clause(note))));
        // The note of an unsure answer is written further below.
        let note = note.filter(|_| !is_unsure(from)).unwrap_or_default();
        names.push(format!(
            "the answer to the critical question ({text}{note})"
        ));
    }
    if wanted == ConfidenceLevel::Low {
        let open = from
            .insights
            .iter()
            .filter(|insight| insight.is_unresolved());
        names.extend(
            open.map(|insight| {
                format!("{} (not settled)", mid_sentence(&clause(&insight.insight)))
            }),
        );
    }
    if names.is_empty() {
        return "none".to_owned();
    }
    list(names)
}

/// Describes unknown facts and names alternatives.
fn doubts(from: &ConversationSnapshot) -> Vec<String> {
    let note = from.confidence_note.as_deref();
    let note = note.map(|note| format!(" ({})", mid_sentence(&clause(note))));
    let note = note.unwrap_or_default();
    let admits = format!(
        "I am not sure about the critical question{note}. I suggest that we explore alternatives first."
    );
    let ways = limit_items(alternatives(from), SHOWN);
    let offers = match ways.as_slice() {
        [] => "The file names no alternatives. Which ones should we explore?".to_owned(),
        ways => format!("Alternatives: {}.", ways.join("; ")),
    };
    vec![admits, offers]
}
