//! The peak guardrail: at the peak of a conversation its summary stays as it is.

use serde::{Deserialize, Serialize};

use super::affect::{Intensity, Phase, Rollup};
use super::decision::Decision;

/// `(phase is peak or intensity is high) and decision is not must`, with the truth of each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    /// Whether the phase is the peak.
    pub peak: bool,
    /// Whether the intensity is high.
    pub high: bool,
    /// Whether the turn must change the summary.
    pub must: bool,
}

impl Freeze {
    /// The formula, for what a baseline says. One that says nothing of affect freezes nothing.
    #[must_use]
    pub fn of(rollup: Option<&Rollup>, decision: Decision) -> Self {
        Self {
            peak: rollup.is_some_and(|it| it.phase == Phase::Peak),
            high: rollup.is_some_and(|it| it.intensity_bucket == Intensity::High),
            must: decision == Decision::Must,
        }
    }

    /// Whether the summary is frozen.
    #[must_use]
    pub fn holds(self) -> bool {
        (self.peak || self.high) && !self.must
    }
}

/// What would end a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThawedBy {
    /// A turn that must change the summary, or a phase that is not the peak.
    MustOrLeavingPeak,
    /// A turn that must change the summary, or an intensity that is not high.
    MustOrLeavingHigh,
    /// The same, and both have to go.
    MustOrLeavingBoth,
}

impl ThawedBy {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::MustOrLeavingPeak => "a must signal, or the phase leaves the peak",
            Self::MustOrLeavingHigh => "a must signal, or the intensity leaves high",
            Self::MustOrLeavingBoth => "a must signal, or it leaves both peak and high",
        }
    }
}
