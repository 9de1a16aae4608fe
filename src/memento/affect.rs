//! How heated a conversation is: a few points, and what they come to.

use serde::{Deserialize, Serialize};

use super::text::{Datetime, Name, Text};
use crate::base::clock::Timestamp;
use crate::base::limits::{AFFECT_WINDOW, MAX_AFFECT_POINTS};

/// Where a conversation is on its way up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It heats up.
    Rising,
    /// It is at its height.
    Peak,
    /// It cools down.
    Downshift,
    /// It is calm.
    Settled,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rising, Self::Peak, Self::Downshift, Self::Settled];

    /// Its name.
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

/// How intense, in three steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intensity {
    /// Below 0.34.
    Low,
    /// Below 0.7.
    Med,
    /// From 0.7 on.
    High,
}

impl Intensity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Low, Self::Med, Self::High];

    /// Its name.
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
            it if it >= HIGH => Self::High,
            it if it >= MED => Self::Med,
            _ => Self::Low,
        }
    }
}

/// From here on an intensity is high, and from here on it is in the middle.
const HIGH: f64 = 0.7;
const MED: f64 = 0.34;

/// A last point this high that hardly moved is the peak.
const PEAK: f64 = 0.8;
const STEADY: f64 = 0.05;

/// A change of this much has a direction.
const MOVED: f64 = 0.1;

/// Two decimal numbers whose difference is exactly a limit may miss it by a hair as binary ones.
const HAIR: f64 = 1e-9;

/// How sure somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Not very.
    Low,
    /// Rather.
    Med,
    /// Very.
    High,
}

impl Confidence {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Med => "med",
            Self::High => "high",
        }
    }
}

/// Who says how intense it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointSource {
    /// A watcher beside the conversation.
    Sentinel,
    /// The device of whoever writes.
    DeviceHint,
    /// The server.
    Server,
    /// The model itself.
    Model,
}

impl PointSource {
    /// Its name.
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

/// How intense it was at one message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Point {
    /// The message.
    pub end_message_id: Name,
    /// What it felt like, in a word.
    pub label: Text<64>,
    /// From 0 to 1.
    #[serde(deserialize_with = "from_zero_to_one")]
    pub intensity: f64,
    /// How sure whoever says so is.
    pub confidence: Confidence,
    /// Who says so.
    pub source: PointSource,
}

pub(super) fn from_zero_to_one<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    if (0.0..=1.0).contains(&number) {
        return Ok(number);
    }
    Err(serde::de::Error::custom(format!(
        "{number} is not between 0 and 1"
    )))
}

/// What the points come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rollup {
    /// The phase.
    pub phase: Phase,
    /// The intensity.
    pub intensity_bucket: Intensity,
    /// Since when.
    pub updated_at: Datetime,
}

/// How heated a conversation is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affect {
    /// The newest points, oldest first.
    #[serde(deserialize_with = "few_points")]
    pub points: Vec<Point>,
    /// What they come to.
    pub rollup: Rollup,
}

fn few_points<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Point>, D::Error> {
    let points = Vec::<Point>::deserialize(from)?;
    if points.len() <= MAX_AFFECT_POINTS {
        return Ok(points);
    }
    let found = points.len();
    Err(serde::de::Error::custom(format!(
        "{found} points are more than {MAX_AFFECT_POINTS}"
    )))
}

/// What intensities come to, oldest first.
#[must_use]
pub fn rollup(intensities: &[f64]) -> (Phase, Intensity) {
    let (last, before) = match intensities {
        [] => return (Phase::Settled, Intensity::Low),
        [last] => (*last, None),
        [.., before, last] => (*last, Some(*before)),
    };
    let phase = match before.map(|before| last - before) {
        None if last >= HIGH => Phase::Peak,
        Some(moved) if last >= PEAK && moved.abs() <= STEADY + HAIR => Phase::Peak,
        Some(moved) if moved >= MOVED - HAIR => Phase::Rising,
        Some(moved) if moved <= HAIR - MOVED => Phase::Downshift,
        None | Some(_) => Phase::Settled,
    };
    (phase, Intensity::of(last))
}

/// Points that still count: the newest few, of the last half hour.
#[must_use]
pub fn within_window(points: &[(Point, Timestamp)], now: Timestamp) -> Vec<(Point, Timestamp)> {
    let recent = |at: Timestamp| now.since(at) <= AFFECT_WINDOW;
    let counting: Vec<_> = points.iter().filter(|(_, at)| recent(*at)).collect();
    let start = counting.len().saturating_sub(MAX_AFFECT_POINTS);
    counting.into_iter().skip(start).cloned().collect()
}
