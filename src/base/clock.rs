//! Timestamps with one fixed-width text form, and the clock that provides them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Datelike, NaiveDate, Timelike, Utc};
#[cfg(feature = "app")]
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Deserializer, Serialize};

use super::clock_step::ClockReading;
use super::text::one_line;

/// A moment in UTC, to the microsecond.
///
/// Its text is always `YYYY-MM-DDTHH:MM:SS.ffffffZ`: 27 characters. So the same moment has one spelling in JSON, in
/// the hash and on the screen, and text order is time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(DateTime<Utc>);

/// The error for a text that is not a [`Timestamp`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a timestamp of the form 2026-01-31T23:59:59.000000Z")]
pub struct TimestampError {
    text: String,
}

/// The error for a text that is not an RFC 3339 time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an RFC 3339 time; write it as 2026-01-31T23:59:59Z or 2026-01-31T23:59:59.5+01:00"
)]
pub struct Rfc3339Error {
    text: String,
}

/// The text of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimestampText([u8; TimestampText::WIDTH]);

impl TimestampText {
    /// Number of characters of every timestamp text.
    pub const WIDTH: usize = 27;

    /// Checks and returns the text of a timestamp. Faster than parsing a [`Timestamp`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text: &[u8; Self::WIDTH] = text.as_bytes().try_into().ok()?;
        let number = |place: std::ops::Range<usize>| {
            let digits = text.get(place)?;
            digits.iter().try_fold(0_u32, |number, digit| {
                let digit = digit.wrapping_sub(b'0');
                (digit < 10).then(|| number * 10 + u32::from(digit))
            })
        };
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        let behind = [(19, b'.'), (26, b'Z')];
        let separated = separators.iter().chain(&behind);
        if !separated
            .copied()
            .all(|(at, wanted)| text.get(at) == Some(&wanted))
        {
            return None;
        }
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => 31,
        };
        let date = year >= 1970 && (1..=12).contains(&month) && (1..=days).contains(&day);
        let time = number(11..13)? < 24 && number(14..16)? < 60 && number(17..19)? < 60;
        number(20..26)?;
        (date && time).then_some(Self(*text))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // INVARIANT: digits and separators only.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Timestamp {
    /// Creates a timestamp from microseconds since 1970-01-01T00:00:00Z, clamped to the years that the fixed-width
    /// text supports.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        const YEAR_10000: i64 = 253_402_300_800_000_000;
        let held = micros.clamp(0, YEAR_10000 - 1);
        Self(DateTime::from_timestamp_micros(held).unwrap_or_default())
    }

    /// Parses an RFC 3339 time, with or without a fraction, with any offset. Digits below a microsecond are cut
    /// off.
    ///
    /// # Errors
    /// Fails when the text is not an RFC 3339 time.
    pub fn parse_rfc3339(text: &str) -> Result<Self, Rfc3339Error> {
        let wrong = || Rfc3339Error {
            text: one_line(&text.chars().take(64).collect::<String>()),
        };
        // chrono also accepts a space in place of the `T`.
        let separated = text
            .as_bytes()
            .get(10)
            .is_some_and(|b| matches!(b, b'T' | b't'));
        let read = DateTime::parse_from_rfc3339(text).ok();
        let read = read.filter(|_| separated).ok_or_else(wrong)?;
        Ok(Self::from_micros(read.timestamp_micros()))
    }

    /// Deserializes an optional RFC 3339 time, for `serde(deserialize_with)`.
    ///
    /// # Errors
    /// Fails when a value is present and is not an RFC 3339 time.
    pub fn deserialize_rfc3339<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let moment = text.map(|text| Self::parse_rfc3339(&text)).transpose();
        moment.map_err(serde::de::Error::custom)
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0.timestamp_micros()
    }

    /// Returns the moment that is `span` later.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.micros().saturating_add(micros))
    }

    /// Returns the time since `earlier`, or zero if `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.micros().saturating_sub(earlier.micros());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    /// Returns the text without heap allocation, because every record has one.
    #[must_use]
    pub fn text(self) -> TimestampText {
        let mut text = TimestampText(*b"0000-00-00T00:00:00.000000Z");
        let year = u32::try_from(self.0.year()).unwrap_or(0);
        let parts = [
            (0..4, year),
            (5..7, self.0.month()),
            (8..10, self.0.day()),
            (11..13, self.0.hour()),
            (14..16, self.0.minute()),
            (17..19, self.0.second()),
            (20..26, self.0.timestamp_subsec_micros()),
        ];
        for (place, mut number) in parts {
            for digit in text.0.get_mut(place).into_iter().flatten().rev() {
                *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
                number /= 10;
            }
        }
        text
    }

    /// Returns `HH:MM:SS`, for lists on the screen.
    #[must_use]
    pub fn time_of_day(self) -> String {
        self.0.format("%H:%M:%S").to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text().as_str())
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || TimestampError {
            text: text.chars().take(64).collect(),
        };
        let number = |place: std::ops::Range<usize>| {
            let digits = text.as_bytes().get(place)?;
            digits.iter().try_fold(0_u32, |number, digit| {
                digit
                    .is_ascii_digit()
                    .then(|| number * 10 + u32::from(digit - b'0'))
            })
        };
        let moment = || {
            let year = i32::try_from(number(0..4)?).ok()?;
            let date = NaiveDate::from_ymd_opt(year, number(5..7)?, number(8..10)?)?;
            let (hour, minute) = (number(11..13)?, number(14..16)?);
            let time = date.and_hms_micro_opt(hour, minute, number(17..19)?, number(20..26)?)?;
            Some(Self::from_micros(time.and_utc().timestamp_micros()))
        };
        let moment = moment().ok_or_else(wrong)?;
        // Other separators would parse, but would not give the same text again.
        if moment.text().as_str() == text {
            Ok(moment)
        } else {
            Err(wrong())
        }
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(moment: Timestamp) -> Self {
        moment.to_string()
    }
}

/// A boxed future, so that a trait that returns it can be used as a trait object.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The source of time. The engine never reads it; callers pass the time in.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current wall clock time.
    fn now(&self) -> Timestamp;

    /// Reads both clocks: the wall clock, which can be set, and the steady clock, which cannot.
    fn parse(&self) -> ClockReading;

    /// Completes at `moment` or soon after; at once if `moment` has passed.
    fn sleep_until(&self, moment: Timestamp) -> Boxed<'_, ()>;

    /// Completes when `span` has passed on the steady clock, or soon after.
    fn sleep_for(&self, span: Duration) -> Boxed<'_, ()>;
}

#[cfg(feature = "app")]
/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[cfg(feature = "app")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(Utc::now().timestamp_micros())
    }

    fn parse(&self) -> ClockReading {
        // A process that is stopped between the two readings would see a clock step that did not happen. So the
        // steady clock is read before and after, and both are read again if too much time lies between.
        const CLOSE: Duration = Duration::from_millis(20);
        const TRIES: usize = 10;
        let mut reading = ClockReading {
            wall: self.now(),
            steady: steady_time(),
        };
        for _ in 0..TRIES {
            let before = steady_time();
            reading.wall = self.now();
            reading.steady = steady_time();
            if reading.steady.saturating_sub(before) <= CLOSE {
                break;
            }
        }
        reading
    }

    fn sleep_until(&self, moment: Timestamp) -> Boxed<'_, ()> {
        // After a suspend or a clock change, the wall clock differs from the one at the start of the sleep. So the
        // clock is checked at least every second.
        const LONGEST: Duration = Duration::from_secs(1);
        Box::pin(async move {
            loop {
                let left = moment.since(self.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LONGEST)).await;
            }
        })
    }

    fn sleep_for(&self, span: Duration) -> Boxed<'_, ()> {
        Box::pin(tokio::time::sleep(span))
    }
}

#[cfg(feature = "app")]
/// Returns the time since the machine was started. It includes suspended time, because agents and operators see
/// that time pass, too.
fn steady_time() -> Duration {
    // On other systems, `Monotonic` includes suspended time.
    #[cfg(target_os = "linux")]
    const STEADY: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const STEADY: ClockId = ClockId::Monotonic;
    let time = clock_gettime(STEADY);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(feature = "app")]
/// A clock that stands still until it is advanced, for tests and scripted runs.
#[derive(Debug)]
pub struct ManualClock {
    time: tokio::sync::watch::Sender<ClockReading>,
}

#[cfg(feature = "app")]
impl ManualClock {
    /// Creates a clock that stands at `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self {
            time: tokio::sync::watch::Sender::new(ClockReading {
                wall: start,
                steady: Duration::ZERO,
            }),
        }
    }

    /// Sets the wall clock back. The steady clock does not change.
    pub fn set_back(&self, span: Duration) {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        self.time.send_modify(|time| {
            time.wall = Timestamp::from_micros(time.wall.micros().saturating_sub(micros));
        });
    }

    /// Sets the wall clock forward. The steady clock does not change.
    pub fn set_forward(&self, span: Duration) {
        self.time
            .send_modify(|time| time.wall = time.wall.plus(span));
    }

    /// Advances both clocks and wakes sleepers.
    pub fn advance(&self, span: Duration) {
        self.time.send_modify(|time| {
            time.wall = time.wall.plus(span);
            time.steady = time.steady.saturating_add(span);
        });
    }
}

#[cfg(feature = "app")]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.time.borrow().wall
    }

    fn parse(&self) -> ClockReading {
        *self.time.borrow()
    }

    fn sleep_until(&self, moment: Timestamp) -> Boxed<'_, ()> {
        let mut time = self.time.subscribe();
        Box::pin(async move {
            // The sender lives as long as `self`, so this ends only when the time has come.
            let _ = time.wait_for(|now| now.wall >= moment).await;
        })
    }

    fn sleep_for(&self, span: Duration) -> Boxed<'_, ()> {
        let mut time = self.time.subscribe();
        let end = time.borrow().steady.saturating_add(span);
        Box::pin(async move {
            let _ = time.wait_for(|now| now.steady >= end).await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_text_has_fixed_width_and_parses_back() {
        let moment = Timestamp::from_micros(1_735_387_200_000_000);
        assert_eq!(moment.to_string(), "2024-12-28T12:00:00.000000Z");
        assert_eq!("2024-12-28T12:00:00.000000Z".parse(), Ok(moment));
    }

    #[test]
    fn other_spellings_of_a_timestamp_are_rejected() {
        for text in [
            "2024-12-28T12:00:00Z",
            "2024-12-28T12:00:00.000000+00:00",
            "2024-12-28 12:00:00.000000Z",
            "2024-12-28T12:00:60.000000Z",
            "+024-12-28T12:00:00.000000Z",
            "2024-13-28T12:00:00.000000Z",
            "2023-02-29T12:00:00.000000Z",
            "2024-12-28T24:00:00.000000Z",
            "2024-12-28T12:00:00,000000Z",
            "1969-12-28T12:00:00.000000Z",
            "",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn timestamp_text_accepts_exactly_the_texts_that_parse() {
        let texts = [
            "2024-02-29T23:59:59.999999Z",
            "2023-02-29T12:00:00.000000Z",
            "2100-02-29T12:00:00.000000Z",
            "2000-02-29T12:00:00.000000Z",
            "2024-04-31T12:00:00.000000Z",
            "2024-00-01T12:00:00.000000Z",
            "2024-01-00T12:00:00.000000Z",
            "1969-12-31T23:59:59.000000Z",
            "2024-12-28T12:00:60.000000Z",
            "2024-12-28T12:60:00.000000Z",
            "2024-12-28T24:00:00.000000Z",
            "2024-12-28T12:00:00.00000xZ",
            "2024-12-28 12:00:00.000000Z",
            "2024-12-28T12:00:00.000000z",
            "2024-12-28T12:00:00.000000é",
        ];
        for text in texts {
            let read = text.parse::<Timestamp>();
            assert_eq!(TimestampText::parse(text).is_some(), read.is_ok(), "{text}");
        }
        let honest = b"2024-12-28T12:34:56.123456Z";
        for at in 0..honest.len() {
            for byte in 0..128 {
                let mut bytes = *honest;
                bytes[at] = byte;
                let text = std::str::from_utf8(&bytes).unwrap();
                let read = text.parse::<Timestamp>();
                assert_eq!(TimestampText::parse(text).is_some(), read.is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn every_rfc_3339_spelling_is_parsed() {
        let moment: Timestamp = "2024-12-28T12:00:00.000000Z".parse().unwrap();
        for text in [
            "2024-12-28T12:00:00Z",
            "2024-12-28t12:00:00z",
            "2024-12-28T12:00:00.0Z",
            "2024-12-28T12:00:00.000000000Z",
            "2024-12-28T12:00:00+00:00",
            "2024-12-28T12:00:00-00:00",
            "2024-12-28T13:30:00+01:30",
            "2024-12-27T12:01:00-23:59",
        ] {
            assert_eq!(Timestamp::parse_rfc3339(text), Ok(moment), "{text}");
        }
        let finer = Timestamp::parse_rfc3339("2024-12-28T12:00:00.000001999Z").unwrap();
        assert_eq!(finer.micros(), moment.micros() + 1);
        let leap = Timestamp::parse_rfc3339("2016-12-31T23:59:60Z").unwrap();
        assert_eq!(leap.to_string(), "2017-01-01T00:00:00.000000Z");
    }

    #[test]
    fn other_texts_than_rfc_3339_are_rejected_with_an_example() {
        for text in [
            "",
            "2024-12-28",
            "2024-12-28T12:00:00",
            "2024-12-28 12:00:00Z",
            "2024-12-28T12:00Z",
            "2024-12-28T12:00:00.Z",
            "2024-12-28T12:00:00+0100",
            "2024-12-28T12:00:00+24:00",
            "2024-13-28T12:00:00Z",
            "2024-12-28T24:00:00Z",
            "20241228T120000Z",
            "1735387200",
            " 2024-12-28T12:00:00Z",
            "2024-12-28T12:00:00Z ",
        ] {
            let message = Timestamp::parse_rfc3339(text).unwrap_err().to_string();
            assert!(message.contains("RFC 3339"), "{message}");
            assert!(message.contains("2026-01-31T23:59:59Z"), "{message}");
        }
    }

    #[test]
    fn timestamp_arithmetic_saturates() {
        let late = Timestamp::from_micros(i64::MAX);
        assert_eq!(late.plus(Duration::MAX), late);
        assert_eq!(Timestamp::from_micros(0).since(late), Duration::ZERO);
        assert_eq!(late.to_string(), "9999-12-31T23:59:59.999999Z");
    }
}
