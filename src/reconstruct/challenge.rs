//! The critical question: why it blocks, what hangs on it, what makes it hard, and what else is open.

use super::snapshot::{Blocking, Certainty, NextStep, Snapshot, Tradeoff};
use super::words::{
    SHOWN, all_within, bounded, capitalised, clause, humanised, joined, lowered, share_subject,
    within,
};

/// Explains a blocking question that the file does not explain.
pub(super) const NOTHING_MOVES: &str = "Nothing moves forward until it is resolved";

/// Why the critical question blocks, if it does.
pub(super) fn why_blocking(from: &Snapshot) -> Option<String> {
    let of_question = from.question_blocking.as_ref();
    match of_question.and_then(Blocking::what) {
        // A text explains itself; names are of what has to wait.
        Some([one]) if one.contains(' ') => Some(humanised(one)),
        Some(what) if !what.is_empty() => {
            let what = capitalised(&joined(&bounded(all_within(what), SHOWN)));
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

/// What hangs on the answer: what the file says, else what waits for it.
pub(super) fn stakes(from: &Snapshot) -> Vec<String> {
    if !from.stakes.is_empty() {
        return bounded(clauses(&from.stakes), SHOWN);
    }
    let blocking = from.question_blocking.as_ref().and_then(Blocking::what);
    let names = blocking.unwrap_or_default().iter();
    let names: Vec<_> = names.filter(|it| !it.contains(' ')).cloned().collect();
    let about: Vec<_> = from.question.iter().chain(&names).collect();
    let waits = from.deferred.iter().filter(|deferred| {
        let until = deferred.until.as_deref().unwrap_or_default();
        blocking.is_some() && about.iter().any(|it| share_subject(it, until))
    });
    let waits: Vec<_> = waits.map(|deferred| within(&deferred.item)).collect();
    let mut said = Vec::new();
    if !names.is_empty() {
        let names = joined(&bounded(all_within(&names), SHOWN));
        said.push(format!("{names}, which cannot go on without an answer"));
    }
    if !waits.is_empty() {
        let waits = joined(&bounded(waits, SHOWN));
        said.push(format!("{waits}, put off until then"));
    }
    if let Some(goal) = &from.goal
        && !said.is_empty()
    {
        said.push(format!("the goal: {}", within(&clause(goal))));
    }
    said
}

/// What makes the question hard: what the file says, else what pulls in two directions or is not settled.
pub(super) fn difficulties(from: &Snapshot) -> Vec<String> {
    if !from.difficulty.is_empty() {
        return bounded(clauses(&from.difficulty), SHOWN);
    }
    let note = from.confidence_note.iter();
    let note = note.map(|it| within(&clause(it)));
    let insights = from.insights.iter().filter(|it| it.is_unresolved());
    let insights = insights.map(|it| format!("{} (not settled)", within(&clause(&it.insight))));
    // A trade-off without a name is about the steps.
    let pulls = from.tradeoffs.iter();
    let pulls = pulls.filter(|it| it.is_unresolved() && it.dimension.is_some());
    let said = note.chain(insights).chain(pulls.map(Tradeoff::words));
    bounded(said.collect(), SHOWN)
}

fn clauses(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| within(&clause(text))).collect()
}

/// The other open questions, those that matter most first, each with how much it matters.
pub(super) fn open_questions(from: &Snapshot) -> Vec<String> {
    let critical = from.question.as_deref();
    let others = from.open_questions.iter();
    let mut others: Vec<_> = others
        .filter(|it| Some(it.question.as_str()) != critical)
        .collect();
    let rank = |priority: Option<&String>| match priority.map(|it| it.to_lowercase()).as_deref() {
        Some("critical" | "1") => 0,
        Some("high" | "2") => 1,
        Some("low") => 3,
        Some(_) | None => 2,
    };
    others.sort_by_key(|it| rank(it.priority.as_ref()));
    let told = others.into_iter().map(|it| {
        let priority = it.priority.as_deref().map(within);
        let priority = priority.map(|it| format!(" ({it})")).unwrap_or_default();
        format!("{}{priority}", lowered(&it.question))
    });
    told.collect()
}

/// Tells whether an answer to the critical question has less than medium confidence.
pub(super) fn is_unsure(from: &Snapshot) -> bool {
    let certainty = from.my_confidence.as_ref().map(|(certainty, _)| *certainty);
    certainty == Some(Certainty::Low)
}

/// The group that an answer to the critical question belongs to. One whose note says that it is uncertain has to be
/// explored, as firm as the problem itself may be.
pub(super) fn certainty_of_answer(from: &Snapshot) -> Option<Certainty> {
    let (certainty, _) = from.my_confidence.as_ref()?;
    let note = from.confidence_note.as_deref().unwrap_or_default();
    let note = note.to_lowercase();
    let doubts = ["uncertain", "unsure", "unclear", "unknown", "unresolved"];
    match certainty {
        Certainty::Medium if doubts.iter().any(|word| note.contains(word)) => Some(Certainty::Low),
        certainty => Some(*certainty),
    }
}

/// Other ways that the file has: what it names itself, steps to choose from, what a step is instead of, and what
/// decisions that may change had rejected.
pub(super) fn alternatives(from: &Snapshot) -> Vec<String> {
    let mut ways: Vec<String> = Vec::new();
    let mut add = |way: String| {
        let known = ways
            .iter()
            .any(|it| it.to_lowercase() == way.to_lowercase());
        if !known {
            ways.push(way);
        }
    };
    for way in &from.alternatives {
        add(within(&clause(way)));
    }
    let steps = if from.alternatives.is_empty() {
        from.options()
    } else {
        Vec::new()
    };
    let open = steps.iter().filter(|step| !is_premature(from, step));
    let open: Vec<_> = open.collect();
    for step in &open {
        // One step alone is the way, and not another one.
        if open.len() > 1 || step.alternative_to.is_some() {
            add(within(&step.step));
        }
        if let Some(other) = &step.alternative_to {
            add(within(other));
        }
    }
    let firm = |it: &&super::snapshot::Decided| {
        let high = it
            .confidence
            .as_ref()
            .is_some_and(|(it, _)| *it == Certainty::High);
        high && !it.is_tentative()
    };
    for decided in from.decisions.iter().filter(|it| !firm(it)) {
        for way in &decided.rejected {
            add(format!("{} (rejected before)", within(way)));
        }
    }
    ways
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

/// Tells whether a step moves on although something blocks.
pub(super) fn is_premature(from: &Snapshot, step: &NextStep) -> bool {
    let moves_on = |text: &str| {
        let lower = text.to_lowercase();
        let mut words = lower.split(|letter: char| !letter.is_alphanumeric());
        words.any(|word| MOVING_ON.contains(&word))
    };
    // A step says first what it does: `explore how to build` builds nothing.
    let mut words = step.step.split(|letter: char| !letter.is_alphanumeric());
    let begins = words.find(|word| !word.is_empty());
    let kind = step.kind.as_deref();
    from.blocked().is_some() && (begins.is_some_and(moves_on) || kind.is_some_and(moves_on))
}
