//! Retention of the content of records.

use super::pattern::Pattern;

/// One steward's rules about the retention of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Retention in days for events that no pattern below matches; unlimited when absent.
    pub default_days: Option<u32>,
    /// Retention in days by pattern of the event type, in the order written. Of several matches, the one with the
    /// longest literal part wins.
    pub by_event_type: Vec<(Pattern, u32)>,
}

impl Schedule {
    /// Returns the retention in days for events of this type; `None` is unlimited.
    #[must_use]
    pub fn days_for(&self, event_type: &str) -> Option<u32> {
        let matching = self.by_event_type.iter().enumerate();
        let matching = matching.filter(|(_, (pattern, _))| pattern.matches(event_type));
        // Of two with the same length, the one written first.
        let closest = matching
            .max_by_key(|(place, (pattern, _))| (pattern.literal_len(), std::cmp::Reverse(*place)));
        closest.map(|(_, (_, days))| *days).or(self.default_days)
    }
}

/// The retention rules of several stewards: an event is kept as long as any of them wants.
///
/// A steward without rules wants to keep everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Empty if everything is kept.
    schedules: Vec<Schedule>,
}

impl Retention {
    /// Combines the rules of all stewards.
    #[must_use]
    pub fn of_all<'s>(schedules: impl IntoIterator<Item = Option<&'s Schedule>>) -> Self {
        let all: Option<Vec<_>> = schedules.into_iter().map(Option::<&_>::cloned).collect();
        Self {
            schedules: all.unwrap_or_default(),
        }
    }

    /// Returns the retention in days for events of this type; `None` is unlimited.
    ///
    /// ```
    /// use cra_core::base::retention::{Retention, Schedule};
    ///
    /// let short = Schedule { default_days: Some(90), by_event_type: vec![("session_*".to_owned().into(), 365)] };
    /// let retention = Retention::of_all([Some(&short)]);
    /// assert_eq!(retention.days_for("session_ended"), Some(365));
    /// assert_eq!(retention.days_for("input_received"), Some(90));
    /// assert_eq!(Retention::of_all([Some(&short), None]).days_for("input_received"), None);
    /// ```
    #[must_use]
    pub fn days_for(&self, event_type: &str) -> Option<u32> {
        let mut longest = None;
        for schedule in &self.schedules {
            longest = longest.max(Some(schedule.days_for(event_type)?));
        }
        longest
    }

    /// Returns true if nothing is ever pruned.
    #[must_use]
    pub fn keeps_all(&self) -> bool {
        self.schedules.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(default_days: Option<u32>, by_event_type: &[(&str, u32)]) -> Schedule {
        let by_event_type = by_event_type.iter();
        Schedule {
            default_days,
            by_event_type: by_event_type
                .map(|(pattern, days)| (Pattern::new(*pattern), *days))
                .collect(),
        }
    }

    #[test]
    fn longest_literal_pattern_applies_then_the_order() {
        let spec = schedule(
            Some(90),
            &[
                ("session_*", 365),
                ("action_blocked", 365),
                ("policy_override", 730),
                ("policy_*", 30),
                ("*_override", 10),
                ("*_checked", 3),
                ("policy_chec*", 4),
                ("policy_c*ed", 5),
            ],
        );
        let cases = [
            ("session_started", Some(365)),
            ("action_blocked", Some(365)),
            ("action_attempted", Some(90)),
            ("policy_override", Some(730)),
            ("policy_made", Some(30)),
            ("x_override", Some(10)),
            ("policy_checked", Some(4)),
        ];
        for (event_type, days) in cases {
            assert_eq!(spec.days_for(event_type), days, "{event_type}");
        }
    }

    #[test]
    fn longest_retention_of_all_stewards_applies_and_absent_rules_mean_unlimited() {
        let one = schedule(Some(90), &[("session_*", 30)]);
        let other = schedule(Some(10), &[("session_*", 60)]);
        let only_sessions = schedule(None, &[("session_*", 1)]);
        let both = Retention::of_all([Some(&one), Some(&other)]);
        assert_eq!(both.days_for("session_ended"), Some(60));
        assert_eq!(both.days_for("action_blocked"), Some(90));
        assert!(!both.keeps_all());
        let open = Retention::of_all([Some(&one), Some(&only_sessions)]);
        assert_eq!(open.days_for("session_ended"), Some(30));
        assert_eq!(open.days_for("action_blocked"), None);
        for all in [
            Retention::default(),
            Retention::of_all([]),
            Retention::of_all([None, Some(&one)]),
        ] {
            assert!(all.keeps_all());
            assert_eq!(all.days_for("session_ended"), None);
        }
    }
}
