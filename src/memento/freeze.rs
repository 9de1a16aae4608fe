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
