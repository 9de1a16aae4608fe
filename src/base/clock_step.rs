//! Detection of wall clock steps against a steady clock.
//!
//! Contract: the time that remains for a person or an agent is measured by the steady clock. The wall clock only
//! gives the current time. A step is reported once, with its size; small corrections of the wall clock are followed
//! without a report.

use std::fmt;
use std::time::Duration;

use super::clock::{Clock, Timestamp};

/// Difference between wall clock and steady clock that counts as a step.
///
/// Time servers correct smaller differences by running the clock faster or slower, and leap seconds are one second.
pub const CLOCK_TOLERANCE: Duration = Duration::from_millis(1500);

/// Fastest correction of the wall clock that does not count as a step: 1 part in 2000, the limit of Linux.
const SLEW_DIVISOR: i64 = 2000;

/// The distance by which the wall clock was set; positive is forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockStep {
    micros: i64,
}

impl ClockStep {
    /// Creates a step of the given size in microseconds.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self { micros }
    }

    /// Returns the step in milliseconds; negative is back.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.micros / 1000
    }

    /// Shifts a moment by the step, so that it keeps its distance to the current time.
    #[must_use]
    pub fn apply(self, moment: Timestamp) -> Timestamp {
        Timestamp::from_micros(moment.micros().saturating_add(self.micros))
    }
}

impl fmt::Display for ClockStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.micros < 0 { "back" } else { "forward" };
        let seconds = self.micros.unsigned_abs().div_ceil(1_000_000);
        let parts = [
            (seconds / 86_400, "d"),
            (seconds / 3600 % 24, "h"),
            (seconds / 60 % 60, "min"),
            (seconds % 60, "s"),
        ];
        write!(f, "{direction} by")?;
        let shown = parts.iter().filter(|(count, _)| *count > 0).take(2);
        for (count, unit) in shown {
            write!(f, " {count} {unit}")?;
        }
        Ok(())
    }
}

/// A simultaneous reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Wall clock.
    pub wall: Timestamp,
    /// Time on the steady clock since a fixed moment. This clock cannot be set.
    pub steady: Duration,
}

impl ClockReading {
    fn offset(self) -> i64 {
        self.wall.micros().saturating_sub(micros(self.steady))
    }
}

/// A detector of clock steps; compares each reading with the one before.
#[derive(Clone, Copy, Debug)]
pub struct StepDetector {
    /// Expected difference between wall clock and steady clock.
    offset: i64,
    steady: Duration,
}

impl StepDetector {
    /// Creates a detector that treats the current wall clock as correct.
    #[must_use]
    pub fn new(clock: &dyn Clock) -> Self {
        let reading = clock.parse();
        Self {
            offset: reading.offset(),
            steady: reading.steady,
        }
    }

    /// Returns the step since the last check, if any.
    pub fn check(&mut self, reading: ClockReading) -> Option<ClockStep> {
        let passed = micros(reading.steady.saturating_sub(self.steady));
        self.steady = reading.steady;
        let difference = reading.offset().saturating_sub(self.offset);
        if difference.saturating_abs() > micros(CLOCK_TOLERANCE) {
            self.offset = reading.offset();
            return Some(ClockStep::from_micros(difference));
        }
        // Many small steps add up to one that is reported, unless they are as slow as a time server's correction.
        let most = passed / SLEW_DIVISOR;
        self.offset += difference.clamp(-most, most);
        None
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::clock::ManualClock;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clock() -> ManualClock {
        ManualClock::new(Timestamp::from_micros(1_767_225_600_000_000))
    }

    #[test]
    fn running_clock_reports_no_step() {
        let clock = clock();
        let mut detector = StepDetector::new(&clock);
        for hours in [0, 1, 1000] {
            clock.advance(Duration::from_hours(hours));
            assert_eq!(detector.check(clock.parse()), None, "{hours}");
        }
    }

    #[test]
    fn clock_step_is_reported_once_and_only_beyond_the_tolerance() {
        let beyond = CLOCK_TOLERANCE + Duration::from_micros(1);
        let clock = clock();
        let mut detector = StepDetector::new(&clock);
        clock.set_back(CLOCK_TOLERANCE);
        assert_eq!(detector.check(clock.parse()), None);
        clock.set_forward(CLOCK_TOLERANCE);
        assert_eq!(detector.check(clock.parse()), None);
        clock.set_back(beyond);
        let step = detector.check(clock.parse());
        assert_eq!(step, Some(ClockStep::from_micros(-micros(beyond))));
        assert_eq!(detector.check(clock.parse()), None);
        clock.set_forward(beyond);
        let step = detector.check(clock.parse());
        assert_eq!(step, Some(ClockStep::from_micros(micros(beyond))));
    }

    #[test]
    fn small_steps_add_up_but_slow_corrections_do_not() {
        let clock = clock();
        let mut detector = StepDetector::new(&clock);
        let reported = (0..10).find_map(|_| {
            clock.advance(SECOND);
            clock.set_back(SECOND);
            detector.check(clock.parse())
        });
        assert!(reported.is_some());
        let mut detector = StepDetector::new(&clock);
        for _ in 0..100_000 {
            clock.advance(SECOND);
            clock.set_back(SECOND / 2000);
            assert_eq!(detector.check(clock.parse()), None);
        }
    }

    #[test]
    fn clock_step_displays_its_direction_and_two_largest_units() {
        for (seconds, text) in [
            (-600, "back by 10 min"),
            (3600, "forward by 1 h"),
            (3_725, "forward by 1 h 2 min"),
            (-2, "back by 2 s"),
            (90_061, "forward by 1 d 1 h"),
        ] {
            let step = ClockStep::from_micros(seconds * 1_000_000);
            assert_eq!(step.to_string(), text);
        }
        assert_eq!(
            ClockStep::from_micros(-1_600_000).to_string(),
            "back by 2 s"
        );
    }

    #[test]
    fn clock_step_preserves_the_remaining_time() {
        let clock = clock();
        let deadline = clock.now().plus(SECOND * 5);
        let mut detector = StepDetector::new(&clock);
        clock.set_back(SECOND * 600);
        let step = detector.check(clock.parse()).unwrap();
        assert_eq!(step.apply(deadline).since(clock.now()), SECOND * 5);
    }
}
