//! Classification of turns: must, should or need not change the memento.

use serde::{Deserialize, Serialize};

use super::signal::{SignalCategory, SignalKind};

/// Words that acknowledge and have no other content.
const ACKNOWLEDGING: [&str; 15] = [
    "ok", "okay", "kk", "thx", "thanks", "got", "it", "sounds", "good", "cool", "yep", "yup",
    "sure", "all", "right",
];

/// The classification of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnDecision {
    /// The summary must follow the turn, even at the peak.
    Must,
    /// The summary follows the turn, unless the peak guardrail holds it back.
    Should,
    /// The turn only acknowledges: the summary stays unchanged.
    Skip,
}

impl TurnDecision {
    /// All decisions.
    pub const ALL: [Self; 3] = [Self::Must, Self::Should, Self::Skip];

    /// Returns the decision's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Skip => "skip",
        }
    }

    /// Returns an explanation for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Must => "important: updates the summary, even at the peak",
            Self::Should => "ordinary: updates the summary, except at the peak",
            Self::Skip => "only an acknowledgment: the summary stays unchanged",
        }
    }
}

/// The inputs of a decision.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecisionInputs<'a> {
    /// Text of the message.
    pub message: &'a str,
    /// Signals of the message.
    pub signals: &'a [SignalKind],
    /// True if the agent's context window is nearly full.
    pub context_pressure: bool,
    /// True if the agent or an operator reports that the conversation drifts.
    pub drift_risk: bool,
    /// True if the memento was edited since the previous turn.
    pub summary_changed: bool,
}

/// The rule that decided; the first match wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionRule {
    /// The memento was edited.
    SummaryChanged,
    /// A signal that must change the memento.
    MustSignal,
    /// A signal that should change the memento.
    ShouldSignal,
    /// The context window is nearly full, or the conversation drifts.
    PressureOrDrift,
    /// The message only acknowledges.
    Acknowledgment,
    /// No other rule matches.
    Default,
}

impl DecisionRule {
    /// All rules, in the order in which they are tried.
    pub const ALL: [Self; 6] = [
        Self::SummaryChanged,
        Self::MustSignal,
        Self::ShouldSignal,
        Self::PressureOrDrift,
        Self::Acknowledgment,
        Self::Default,
    ];

    /// Returns the rule's number, from 1.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::SummaryChanged => 1,
            Self::MustSignal => 2,
            Self::ShouldSignal => 3,
            Self::PressureOrDrift => 4,
            Self::Acknowledgment => 5,
            Self::Default => 6,
        }
    }

    /// Describes the rule in words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::SummaryChanged => "the memento was edited since the last turn",
            Self::MustSignal => "a signal in the MUST set",
            Self::ShouldSignal => "a signal in the SHOULD set",
            Self::PressureOrDrift => "context pressure or drift risk",
            Self::Acknowledgment => "only an acknowledgment",
            Self::Default => "no other rule applies",
        }
    }

    /// Returns the rule's decision.
    #[must_use]
    pub fn decision(self) -> TurnDecision {
        match self {
            Self::SummaryChanged | Self::MustSignal => TurnDecision::Must,
            Self::ShouldSignal | Self::PressureOrDrift | Self::Default => TurnDecision::Should,
            Self::Acknowledgment => TurnDecision::Skip,
        }
    }

    fn applies_to(self, inputs: &DecisionInputs<'_>) -> bool {
        let any = |category| {
            inputs
                .signals
                .iter()
                .any(|signal| signal.category() == category)
        };
        match self {
            Self::SummaryChanged => inputs.summary_changed,
            Self::MustSignal => any(SignalCategory::Must),
            Self::ShouldSignal => any(SignalCategory::Should),
            Self::PressureOrDrift => inputs.context_pressure || inputs.drift_risk,
            Self::Acknowledgment => any(SignalCategory::Skip) || is_ack_only(inputs.message),
            Self::Default => true,
        }
    }
}

/// A decision with its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnClassification {
    /// Classification of the turn.
    pub decision: TurnDecision,
    /// Rule that decided.
    pub rule: DecisionRule,
}

/// Classifies a turn.
#[must_use]
pub fn classify_turn(inputs: &DecisionInputs<'_>) -> TurnClassification {
    let fitting = DecisionRule::ALL
        .into_iter()
        .find(|rule| rule.applies_to(inputs));
    let rule = fitting.unwrap_or(DecisionRule::Default);
    TurnClassification {
        decision: rule.decision(),
        rule,
    }
}

/// Returns true if every word of a message acknowledges. A message without words does not.
#[must_use]
pub fn is_ack_only(message: &str) -> bool {
    let lower = message.to_lowercase();
    // Punctuation separates words: `ok,thanks` is two words.
    let mut words = lower
        .split(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | '!' | '?'))
        .filter(|word| !word.is_empty())
        .peekable();
    words.peek().is_some() && words.all(|word| ACKNOWLEDGING.contains(&word))
}
