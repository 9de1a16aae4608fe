//! In which order requests stand in the list.

use std::cmp::Ordering;

use crate::engine::held::Held;

/// What the list goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// The riskiest first, and of these the one that is due first.
    #[default]
    Risk,
    /// What is due first.
    Deadline,
    /// What was asked first.
    Age,
    /// By agent and session, and of these the riskiest first.
    Agent,
}

impl Sort {
    /// The one after it, around the end.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Risk => Self::Deadline,
            Self::Deadline => Self::Age,
            Self::Age => Self::Agent,
            Self::Agent => Self::Risk,
        }
    }

    /// It, in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Risk => "risk, deadline",
            Self::Deadline => "deadline",
            Self::Age => "age, oldest first",
            Self::Agent => "agent",
        }
    }

    /// Which of two comes first. Two requests are never equal.
    pub(super) fn compare(self, a: &Held, b: &Held) -> Ordering {
        let risk = || b.tier().cmp(&a.tier());
        let due = || a.deadline.cmp(&b.deadline);
        let age = || a.opened_at.cmp(&b.opened_at);
        let first = match self {
            Self::Risk => risk(),
            Self::Deadline => due(),
            Self::Age => age(),
            Self::Agent => a
                .agent
                .cmp(&b.agent)
                .then_with(|| a.session.cmp(&b.session)),
        };
        first
            .then_with(risk)
            .then_with(due)
            .then_with(age)
            .then_with(|| a.id.cmp(&b.id))
    }
}
