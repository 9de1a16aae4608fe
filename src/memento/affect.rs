//! The emotional intensity of a conversation: a few points and their rollup.

use serde::{Deserialize, Serialize};

use super::text::{BoundedText, Datetime, ExternalName};
use crate::base::clock::Timestamp;
use crate::base::limits::{AFFECT_WINDOW, MAX_AFFECT_POINTS};

/// The phase of a conversation's intensity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AffectPhase {
    /// The intensity increases.
    Rising,
    /// The intensity is at its peak.
    Peak,
    /// The intensity decreases.
    Downshift,
    /// The conversation is calm.
    Settled,
}

impl AffectPhase {
    /// All phases.
    pub const ALL: [Self; 4] = [Self::Rising, Self::Peak, Self::Downshift, Self::Settled];

    /// Returns the phase's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rising => "rising",
            Self::Peak => "peak",
            Self::Downshift => "downshift",
            Self::Settled => "settled",
        }
    }
}

/// An intensity in three steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intensity {
    /// Below 0.34.
    Low,
    /// Below 0.7.
    Med,
    /// At least 0.7.
    High,
}

impl Intensity {
    /// All intensities.
    pub const ALL: [Self; 3] = [Self::Low, Self::Med, Self::High];

    /// Returns the intensity's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Med => "med",
            Self::High => "high",
        }
    }

    fn of(intensity: f64) -> Self {
        match intensity {
            value if value >= HIGH => Self::High,
            value if value >= MED => Self::Med,
            _ => Self::Low,
        }
    }
}

/// Lower bounds of a high and of a medium intensity.
const HIGH: f64 = 0.7;
const MED: f64 = 0.34;

/// Lower bound of a peak, and the maximum change of its last point.
const PEAK: f64 = 0.8;
const MAX_PEAK_CHANGE: f64 = 0.05;

/// Minimum change that counts as rising or falling.
const MIN_CHANGE: f64 = 0.1;

/// Tolerance for decimal differences that are exactly at a limit but not exact in binary.
const FLOAT_TOLERANCE: f64 = 1e-9;

/// The confidence of a source in its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Low confidence.
    Low,
    /// Medium confidence.
    Med,
    /// High confidence.
    High,
}

impl Confidence {
    /// Returns the confidence's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Med => "med",
            Self::High => "high",
        }
    }
}

/// The source of an intensity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AffectSource {
    /// A process that observes the conversation.
    Sentinel,
    /// The device of the author.
    DeviceHint,
    /// The server.
    Server,
    /// The model.
    Model,
}

impl AffectSource {
    /// Returns the source's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sentinel => "sentinel",
            Self::DeviceHint => "device_hint",
            Self::Server => "server",
            Self::Model => "model",
        }
    }
}

/// The intensity at one message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AffectPoint {
    /// Id of the message.
    pub end_message_id: ExternalName,
    /// One-word label of the emotion.
    pub label: BoundedText<64>,
    /// From 0 to 1.
    #[serde(deserialize_with = "deserialize_unit_interval")]
    pub intensity: f64,
    /// Confidence of the source.
    pub confidence: Confidence,
    /// Source of the intensity.
    pub source: AffectSource,
}

pub(super) fn deserialize_unit_interval<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    if (0.0..=1.0).contains(&number) {
        return Ok(number);
    }
    Err(serde::de::Error::custom(format!(
        "{number} is not between 0 and 1"
    )))
}

/// The rollup of the points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AffectRollup {
    /// The phase.
    pub phase: AffectPhase,
    /// The intensity.
    pub intensity_bucket: Intensity,
    /// Time of the last update.
    pub updated_at: Datetime,
}

/// The emotional intensity of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affect {
    /// Newest points, oldest first.
    #[serde(deserialize_with = "deserialize_points")]
    pub points: Vec<AffectPoint>,
    /// Rollup of the points.
    pub rollup: AffectRollup,
}

fn deserialize_points<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Vec<AffectPoint>, D::Error> {
    let points = Vec::<AffectPoint>::deserialize(from)?;
    if points.len() <= MAX_AFFECT_POINTS {
        return Ok(points);
    }
    let found = points.len();
    Err(serde::de::Error::custom(format!(
        "{found} points exceed the limit of {MAX_AFFECT_POINTS}"
    )))
}

/// Computes the phase and intensity of a series of intensities, oldest first.
#[must_use]
pub fn rollup(intensities: &[f64]) -> (AffectPhase, Intensity) {
    let (last, before) = match intensities {
        [] => return (AffectPhase::Settled, Intensity::Low),
        [last] => (*last, None),
        [.., before, last] => (*last, Some(*before)),
    };
    let phase = match before.map(|before| last - before) {
        None if last >= HIGH => AffectPhase::Peak,
        Some(moved) if last >= PEAK && moved.abs() <= MAX_PEAK_CHANGE + FLOAT_TOLERANCE => {
            AffectPhase::Peak
        }
        Some(moved) if moved >= MIN_CHANGE - FLOAT_TOLERANCE => AffectPhase::Rising,
        Some(moved) if moved <= FLOAT_TOLERANCE - MIN_CHANGE => AffectPhase::Downshift,
        None | Some(_) => AffectPhase::Settled,
    };
    (phase, Intensity::of(last))
}

/// Returns the points that still count: the newest few, within the affect window.
#[must_use]
pub fn within_window(
    points: &[(AffectPoint, Timestamp)],
    now: Timestamp,
) -> Vec<(AffectPoint, Timestamp)> {
    let recent = |at: Timestamp| now.since(at) <= AFFECT_WINDOW;
    let counting: Vec<_> = points.iter().filter(|(_, at)| recent(*at)).collect();
    let start = counting.len().saturating_sub(MAX_AFFECT_POINTS);
    counting.into_iter().skip(start).cloned().collect()
}
