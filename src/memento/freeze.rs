//! The peak guardrail: at the peak of a conversation its summary does not change.

use serde::{Deserialize, Serialize};

use super::affect::{AffectPhase, AffectRollup, Intensity};
use super::decision::TurnDecision;

/// The formula `(phase is peak or intensity is high) and decision is not must`, with the value of each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    /// True if the phase is the peak.
    pub peak: bool,
    /// True if the intensity is high.
    pub high: bool,
    /// True if the turn must change the summary.
    pub must: bool,
}

impl Freeze {
    /// Evaluates the formula for a baseline. A baseline without affect freezes nothing.
    #[must_use]
    pub fn of(rollup: Option<&AffectRollup>, decision: TurnDecision) -> Self {
        Self {
            peak: rollup.is_some_and(|rollup| rollup.phase == AffectPhase::Peak),
            high: rollup.is_some_and(|rollup| rollup.intensity_bucket == Intensity::High),
            must: decision == TurnDecision::Must,
        }
    }

    /// Returns true if the summary is frozen.
    #[must_use]
    pub fn is_frozen(self) -> bool {
        (self.peak || self.high) && !self.must
    }
}

/// The condition that ends a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThawCondition {
    /// A turn that must change the summary, or a phase other than the peak.
    MustOrLeavingPeak,
    /// A turn that must change the summary, or an intensity other than high.
    MustOrLeavingHigh,
    /// A turn that must change the summary, or both another phase and another intensity.
    MustOrLeavingBoth,
}

impl ThawCondition {
    /// Describes the condition in words.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::MustOrLeavingPeak => "a must signal, or the phase leaves the peak",
            Self::MustOrLeavingHigh => "a must signal, or the intensity leaves high",
            Self::MustOrLeavingBoth => "a must signal, or phase and intensity drop",
        }
    }
}
