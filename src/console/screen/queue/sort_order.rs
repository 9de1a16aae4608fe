//! Sort orders of the list.

use std::cmp::Ordering;

use crate::engine::held::Held;

/// Sort order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SortOrder {
    /// By risk, the highest first, then by deadline.
    #[default]
    Risk,
    /// By deadline, the earliest first.
    Deadline,
    /// By time of the request, the oldest first.
    Age,
    /// By agent and session, then by risk, the highest first.
    Agent,
}

impl SortOrder {
    /// Returns the next sort order. The last is followed by the first.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Risk => Self::Deadline,
            Self::Deadline => Self::Age,
            Self::Age => Self::Agent,
            Self::Agent => Self::Risk,
        }
    }

    /// Describes the sort order.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Risk => "risk, deadline",
            Self::Deadline => "deadline",
            Self::Age => "age, oldest first",
            Self::Agent => "agent",
        }
    }

    /// Compares two requests. Two different requests are never equal.
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
