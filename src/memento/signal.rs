//! What happened in a turn, as whoever watched the conversation says.

use serde::{Deserialize, Serialize};

/// A kind of signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A decision that changes the direction.
    DecisionMade,
    /// The scope grew or shrank.
    ScopeChanged,
    /// The topic changed abruptly.
    Pivot,
    /// A question got its answer.
    AnswerProvided,
    /// Nothing but an acknowledgment.
    AckOnly,
    /// Something was left to be done or answered.
    OpenLoopCreated,
    /// Something that was left open is done.
    OpenLoopResolved,
    /// A risk, a conflict or a tension.
    RiskOrConflict,
}

/// What a signal asks of the memento.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// It must change.
    Must,
    /// It should.
    Should,
    /// It need not.
    Skip,
}

impl SignalKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::DecisionMade,
        Self::ScopeChanged,
        Self::Pivot,
        Self::AnswerProvided,
        Self::AckOnly,
        Self::OpenLoopCreated,
        Self::OpenLoopResolved,
        Self::RiskOrConflict,
    ];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DecisionMade => "decision_made",
            Self::ScopeChanged => "scope_changed",
            Self::Pivot => "pivot",
            Self::AnswerProvided => "answer_provided",
            Self::AckOnly => "ack_only",
            Self::OpenLoopCreated => "open_loop_created",
            Self::OpenLoopResolved => "open_loop_resolved",
            Self::RiskOrConflict => "risk_or_conflict",
        }
    }

    /// What it asks of the memento.
    #[must_use]
    pub fn category(self) -> Category {
        match self {
            Self::DecisionMade | Self::ScopeChanged | Self::Pivot | Self::AnswerProvided => {
                Category::Must
            }
            Self::OpenLoopCreated | Self::OpenLoopResolved | Self::RiskOrConflict => {
                Category::Should
            }
            Self::AckOnly => Category::Skip,
        }
    }

    /// What it means, for people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::DecisionMade => "a decision was made that changes where the thread goes",
            Self::ScopeChanged => "the scope grew or shrank: a new topic, a new constraint",
            Self::Pivot => "the topic or the direction changed abruptly",
            Self::AnswerProvided => "a question got a direct answer",
            Self::AckOnly => "the message only acknowledges",
            Self::OpenLoopCreated => "a task or a question was left to be settled later",
            Self::OpenLoopResolved => "a task or a question that was open is settled",
            Self::RiskOrConflict => "a risk, a conflict or a tension showed",
        }
    }

    /// Whether it closes something: the agent should hear that it is closed.
    #[must_use]
    pub fn closes(self) -> bool {
        match self {
            Self::DecisionMade | Self::AnswerProvided | Self::OpenLoopResolved => true,
            Self::ScopeChanged
            | Self::Pivot
            | Self::AckOnly
            | Self::OpenLoopCreated
            | Self::RiskOrConflict => false,
        }
    }
}
