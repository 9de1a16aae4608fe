//! The critical question: why it blocks, its stakes, its difficulties, and the other open questions.

use super::snapshot::{Blocker, ConfidenceLevel, ConversationSnapshot, NextStep, Tradeoff};
use super::wording::{
    SHOWN, all_mid_sentence, capitalised, clause, humanised, join_and, limit_items, mid_sentence,
    replace_identifiers, share_subject,
};

/// Explanation of a blocking question that the file does not explain.
pub(super) const NOTHING_MOVES: &str = "Work cannot move forward until this is resolved";

/// Reason why the critical question blocks, if it does.
pub(super) fn why_blocking(from: &ConversationSnapshot) -> Option<String> {
    let of_question = from.question_blocking.as_ref();
    match of_question.and_then(Blocker::what) {
        // A text explains the block; names are those of waiting work.
        Some([one]) if one.contains(' ') => Some(humanised(one)),
        Some(what) if !what.is_empty() => {
            let what = capitalised(&join_and(&limit_items(all_mid_sentence(what), SHOWN)));
            Some(format!("{what} cannot continue without resolving this"))
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

/// Stakes of the answer: those in the file, else the work that waits for it.
pub(super) fn stakes(from: &ConversationSnapshot) -> Vec<String> {
    if !from.stakes.is_empty() {
        return limit_items(clauses(&from.stakes), SHOWN);
    }
    let blocking = from.question_blocking.as_ref().and_then(Blocker::what);
    let names = blocking.unwrap_or_default().iter();
    let names: Vec<_> = names.filter(|name| !name.contains(' ')).cloned().collect();
    let about: Vec<_> = from.question.iter().chain(&names).collect();
    let waits = from.deferred.iter().filter(|deferred| {
        let until = deferred.until.as_deref().unwrap_or_default();
        blocking.is_some() && about.iter().any(|text| share_subject(text, until))
    });
    let waits: Vec<_> = waits.map(|deferred| mid_sentence(&deferred.item)).collect();
    let mut parts = Vec::new();
    if !names.is_empty() {
        let names = join_and(&limit_items(all_mid_sentence(&names), SHOWN));
        parts.push(format!("{names} (cannot continue without an answer)"));
    }
    if !waits.is_empty() {
        let waits = join_and(&limit_items(waits, SHOWN));
        parts.push(format!("{waits} (deferred until then)"));
    }
    if let Some(goal) = &from.goal
        && !parts.is_empty()
    {
        parts.push(format!("the goal: {}", mid_sentence(&clause(goal))));
    }
    parts
}

/// Difficulties of the question: those in the file, else tensions and unsettled insights.
pub(super) fn difficulties(from: &ConversationSnapshot) -> Vec<String> {
    if !from.difficulty.is_empty() {
        return limit_items(clauses(&from.difficulty), SHOWN);
    }
    let note = from.confidence_note.iter();
    let note = note.map(|note| mid_sentence(&clause(note)));
    let insights = from
        .insights
        .iter()
        .filter(|insight| insight.is_unresolved());
    let insights = insights
        .map(|insight| format!("{} (not settled)", mid_sentence(&clause(&insight.insight))));
    // A trade-off without a name is about the steps.
    let pulls = from.tradeoffs.iter();
    let pulls = pulls.filter(|tradeoff| tradeoff.is_unresolved() && tradeoff.dimension.is_some());
    let reasons = note.chain(insights).chain(pulls.map(Tradeoff::words));
    limit_items(reasons.collect(), SHOWN)
}

fn clauses(texts: &[String]) -> Vec<String> {
    texts
        .iter()
        .map(|text| mid_sentence(&clause(text)))
        .collect()
}

/// Other open questions, the most important first, each with its priority.
pub(super) fn open_questions(from: &ConversationSnapshot) -> Vec<String> {
    let critical = from.question.as_deref();
    let others = from.open_questions.iter();
    let mut others: Vec<_> = others
        .filter(|question| Some(question.question.as_str()) != critical)
        .collect();
    let rank = |priority: Option<&String>| match priority.map(|text| text.to_lowercase()).as_deref()
    {
        Some("critical" | "1") => 0,
        Some("high" | "2") => 1,
        Some("low") => 3,
        Some(_) | None => 2,
    };
    others.sort_by_key(|question| rank(question.priority.as_ref()));
    let questions = others.into_iter().map(|question| {
        let priority = question.priority.as_deref().map(mid_sentence);
        let priority = priority
            .map(|word| format!(" ({word})"))
            .unwrap_or_default();
        format!("{}{priority}", replace_identifiers(&question.question))
    });
    questions.collect()
}

/// True if an answer to the critical question has less than medium confidence.
pub(super) fn is_unsure(from: &ConversationSnapshot) -> bool {
    let certainty = from.my_confidence.as_ref().map(|(certainty, _)| *certainty);
    certainty == Some(ConfidenceLevel::Low)
}

/// Confidence group of an answer to the critical question. An answer whose note says that it is
/// uncertain has to be explored, even if the problem itself is clear.
pub(super) fn certainty_of_answer(from: &ConversationSnapshot) -> Option<ConfidenceLevel> {
    let (certainty, _) = from.my_confidence.as_ref()?;
    let note = from.confidence_note.as_deref().unwrap_or_default();
    let note = note.to_lowercase();
    let doubts = ["uncertain", "unsure", "unclear", "unknown", "unresolved"];
    match certainty {
        ConfidenceLevel::Medium if doubts.iter().any(|word| note.contains(word)) => {
            Some(ConfidenceLevel::Low)
        }
        certainty => Some(*certainty),
    }
}

/// Alternatives in the file: those it names, steps to choose from, what a step replaces, and options
/// rejected by decisions that may change.
pub(super) fn alternatives(from: &ConversationSnapshot) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut add = |option: String| {
        let known = options
            .iter()
            .any(|known| known.to_lowercase() == option.to_lowercase());
        if !known {
            options.push(option);
        }
    };
    for option in &from.alternatives {
        add(mid_sentence(&clause(option)));
    }
    let steps = if from.alternatives.is_empty() {
        from.options()
    } else {
        Vec::new()
    };
    let open = steps.iter().filter(|step| !is_premature(from, step));
    let open: Vec<_> = open.collect();
    for step in &open {
        // A single step is the main way, not an alternative.
        if open.len() > 1 || step.alternative_to.is_some() {
            add(mid_sentence(&step.step));
        }
        if let Some(other) = &step.alternative_to {
            add(mid_sentence(other));
        }
    }
    let firm = |decided: &&super::snapshot::SnapshotDecision| {
        let high = decided
            .confidence
            .as_ref()
            .is_some_and(|(level, _)| *level == ConfidenceLevel::High);
        high && !decided.is_tentative()
    };
    for decided in from.decisions.iter().filter(|decision| !firm(decision)) {
        for option in &decided.rejected {
            add(format!("{} (rejected before)", mid_sentence(option)));
        }
    }
    options
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

/// True if a step moves on although a question blocks.
pub(super) fn is_premature(from: &ConversationSnapshot, step: &NextStep) -> bool {
    let moves_on = |text: &str| {
        let lower = text.to_lowercase();
        let mut words = lower.split(|letter: char| !letter.is_alphanumeric());
        words.any(|word| MOVING_ON.contains(&word))
    };
    // The first verb of a step is what it does: `explore how to build` builds nothing.
    let mut words = step.step.split(|letter: char| !letter.is_alphanumeric());
    let begins = words.find(|word| !word.is_empty());
    let kind = step.kind.as_deref();
    from.blocked().is_some() && (begins.is_some_and(moves_on) || kind.is_some_and(moves_on))
}
