//! Signals: events in a turn, as reported by a server or a model.

use serde::{Deserialize, Serialize};

/// The kind of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A decision that changes the direction.
    DecisionMade,
    /// The scope grew or shrank.
    ScopeChanged,
    /// The topic changed abruptly.
    Pivot,
    /// A question was answered.
    AnswerProvided,
    /// The message only acknowledges.
    AckOnly,
    /// A task or question was left open.
    OpenLoopCreated,
    /// An open task or question was settled.
    OpenLoopResolved,
    /// A risk, a conflict or a tension.
    RiskOrConflict,
}

/// The effect of a signal on the memento.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalCategory {
    /// The memento must change.
    Must,
    /// The memento should change.
    Should,
    /// The memento need not change.
    Skip,
}

impl SignalKind {
    /// All kinds.
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

    /// Returns the kind's name.
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

    /// Returns the effect on the memento.
    #[must_use]
    pub fn category(self) -> SignalCategory {
        match self {
            Self::DecisionMade | Self::ScopeChanged | Self::Pivot | Self::AnswerProvided => {
                SignalCategory::Must
            }
            Self::OpenLoopCreated | Self::OpenLoopResolved | Self::RiskOrConflict => {
                SignalCategory::Should
            }
            Self::AckOnly => SignalCategory::Skip,
        }
    }

    /// Returns an explanation for people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::DecisionMade => "a decision changed the direction of the thread",
            Self::ScopeChanged => "the scope grew or shrank: a new topic, a new constraint",
            Self::Pivot => "the topic or the direction changed abruptly",
            Self::AnswerProvided => "a question got a direct answer",
            Self::AckOnly => "the message only acknowledges",
            Self::OpenLoopCreated => "a task or question was left open",
            Self::OpenLoopResolved => "an open task or question was settled",
            Self::RiskOrConflict => "a risk, conflict or tension appeared",
        }
    }

    /// Returns true if the signal closes a topic; the agent should be told.
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
