//! Phase 3: checks that enough is known to continue.

use serde::Serialize;

use super::json_view::SnapshotFault;
use super::retrieve::calibration;
use super::snapshot::ConversationSnapshot;

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChecklistItem {
    /// Name of the check.
    pub name: &'static str,
    /// Question that the check answers.
    pub question: &'static str,
    /// Missing fields that would make it clear.
    pub missing: Vec<&'static str>,
    /// Question to the user, if it is unclear.
    pub ask: Option<&'static str>,
}

impl ChecklistItem {
    /// True if the check passed.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.missing.is_empty()
    }
}

/// Result of all checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checklist {
    /// The six checks.
    pub checks: Vec<ChecklistItem>,
    /// Faults found in the file.
    pub faults: Vec<SnapshotFault>,
    /// Doubt about the format itself.
    pub format: Option<String>,
}

impl Checklist {
    /// True if all checks passed.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.checks.iter().all(ChecklistItem::is_clear)
            && self.faults.is_empty()
            && self.format.is_none()
    }

    /// Unclear points, one per line.
    #[must_use]
    pub fn uncertainties(&self) -> Vec<String> {
        let unclear = self.checks.iter().filter(|check| !check.is_clear());
        let unclear = unclear.map(|check| {
            let missing = check.missing.join(", ");
            format!("{} is unclear: {missing} missing", check.name)
        });
        let faults = self.faults.iter();
        let faults = faults.map(|fault| format!("{} {}", fault.place, fault.what));
        self.format
            .iter()
            .cloned()
            .chain(unclear)
            .chain(faults)
            .collect()
    }

    /// Questions to ask before continuing.
    pub fn questions(&self) -> impl Iterator<Item = &'static str> {
        let unclear = self.checks.iter().filter(|check| !check.is_clear());
        unclear.filter_map(|check| check.ask)
    }
}

/// Runs all checks.
#[must_use]
pub fn validate(from: &ConversationSnapshot) -> Checklist {
    let format = from.later.then(|| {
        format!(
            "the file has version {}, but only 2.x is known: some fields may mean something else",
            from.version
        )
    });
    Checklist {
        checks: vec![
            position(from),
            history(from),
            challenge(from),
            person(from),
            direction(from),
            confidence(from),
        ],
        faults: from.faults.clone(),
        format,
    }
}

fn check(
    name: &'static str,
    question: &'static str,
    ask: &'static str,
    wanted: &[(&'static str, FieldPresence)],
) -> ChecklistItem {
    let missing = wanted
        .iter()
        .filter(|(_, known)| *known == FieldPresence::No);
    let missing: Vec<_> = missing.map(|(path, _)| *path).collect();
    ChecklistItem {
        name,
        question,
        ask: (!missing.is_empty()).then_some(ask),
        missing,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldPresence {
    Yes,
    No,
}

fn presence_of<T>(value: Option<&T>) -> FieldPresence {
    match value {
        Some(_) => FieldPresence::Yes,
        None => FieldPresence::No,
    }
}

fn presence_of_list<T>(list: &[T]) -> FieldPresence {
    presence_of(list.first())
}

fn position(from: &ConversationSnapshot) -> ChecklistItem {
    check(
        "Position",
        "Do I understand WHERE we are in the conversation?",
        "Where are we right now, and how far along are we?",
        &[
            ("session_state.phase", presence_of(from.phase.as_ref())),
            ("current_position.stage", presence_of(from.stage.as_ref())),
            (
                "session_state.completion_percentage",
                presence_of(from.completion.as_ref()),
            ),
            (
                "current_position.momentum",
                presence_of(from.momentum.as_ref()),
            ),
        ],
    )
}

fn history(from: &ConversationSnapshot) -> ChecklistItem {
    check(
        "History",
        "Do I understand HOW we got here?",
        "Which decisions led here, and what changed the direction?",
        &[
            ("decisions_made", presence_of_list(&from.decisions)),
            (
                "intellectual_journey.key_pivots",
                presence_of_list(&from.pivots),
            ),
        ],
    )
}

fn challenge(from: &ConversationSnapshot) -> ChecklistItem {
    let why = super::challenge::why_blocking(from);
    let recorded = from.question_blocking.is_some() || why.is_some();
    let blocking = if recorded {
        FieldPresence::Yes
    } else {
        FieldPresence::No
    };
    check(
        "Challenge",
        "Do I understand WHAT'S unresolved?",
        "Which question must be resolved first, and what depends on it?",
        &[
            (
                "critical_question.question",
                presence_of(from.question.as_ref()),
            ),
            ("critical_question.blocking", blocking),
        ],
    )
}

fn person(from: &ConversationSnapshot) -> ChecklistItem {
    let approach = [&from.style, &from.preference];
    let approach = approach.into_iter().flatten().chain(&from.values).next();
    check(
        "User",
        "Do I understand WHO I'm talking to?",
        "What do you want to achieve, and how do you like to work?",
        &[
            ("user_profile.goals", presence_of(from.goal.as_ref())),
            ("user_profile.approach", presence_of(approach)),
            (
                "user_profile.communication_calibration",
                presence_of(calibration(from).next()),
            ),
        ],
    )
}

fn direction(from: &ConversationSnapshot) -> ChecklistItem {
    check(
        "Direction",
        "Do I understand WHAT'S NEXT?",
        "What should happen next, and what should not happen yet?",
        &[("next_steps", presence_of_list(&from.next_steps))],
    )
}

fn confidence(from: &ConversationSnapshot) -> ChecklistItem {
    let mut decided = from.decisions.iter();
    let rated = decided.find_map(|decision| decision.confidence.as_ref());
    check(
        "Confidence",
        "Do I understand MY uncertainty?",
        "Which of the decisions are firm, and which are tentative?",
        &[
            ("decisions_made[].confidence", presence_of(rated)),
            (
                "critical_question.my_confidence",
                presence_of(from.my_confidence.as_ref()),
            ),
        ],
    )
}
