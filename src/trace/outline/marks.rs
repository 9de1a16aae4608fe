//! Marks of an event as a bit set.

use std::ops::{BitOr, BitOrAssign, BitXorAssign};

use super::{Details, Event, canonical_type, is_stop};
use crate::trace::summary::is_frozen;

/// Marks of an event as a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventMarks(u16);

impl EventMarks {
    /// No marks.
    pub const NONE: Self = Self(0);
    /// A checkpoint fired.
    pub const CHECKPOINT: Self = Self(1);
    /// A gate waits for an answer.
    pub const WAIT: Self = Self(1 << 1);
    /// An operator, a policy or a checkpoint denied it.
    pub const DENY: Self = Self(1 << 2);
    /// No answer came in time, or the requester left.
    pub const LAPSED: Self = Self(1 << 3);
    /// An operator approved it and signed for it.
    pub const SIGNED: Self = Self(1 << 4);
    /// The answers broke a validation rule.
    pub const RETRY: Self = Self(1 << 5);
    /// Something failed.
    pub const ERROR: Self = Self(1 << 6);
    /// High risk.
    pub const HIGH: Self = Self(1 << 7);
    /// Critical risk.
    pub const CRITICAL: Self = Self(1 << 8);
    /// The record has no event with this number.
    pub const MISSING: Self = Self(1 << 9);
    /// Retention dropped the details.
    pub const PRUNED: Self = Self(1 << 10);
    /// The event has children.
    pub const PARENT: Self = Self(1 << 11);
    /// The children are folded.
    pub const FOLDED: Self = Self(1 << 12);
    /// An ancestor is folded.
    pub const HIDDEN: Self = Self(1 << 13);
    /// A turn found the summary of its conversation frozen.
    pub const FROZEN: Self = Self(1 << 14);

    /// Computes the marks of an event.
    #[must_use]
    pub fn from_event(event: &Event) -> Self {
        let details = Details::of(event);
        let mut marks = match canonical_type(&event.event_type) {
            "checkpoint_triggered" if details.text("mode") == Some("blocking") => {
                Self::CHECKPOINT | Self::WAIT
            }
            "checkpoint_triggered" => Self::CHECKPOINT,
            "checkpoint_response" if details.text("validation_result") == Some("invalid") => {
                Self::RETRY
            }
            "checkpoint_passed" | "policy_override" | "risk_verified" => Self::SIGNED,
            "checkpoint_blocked" => match details.text("outcome") {
                Some("expired" | "withdrawn" | "voided") => Self::LAPSED,
                Some(_) | None => Self::DENY,
            },
            "action_blocked" => Self::DENY,
            "breakpoint_decided" if is_frozen(details) => Self::FROZEN,
            _ if is_stop(event) => Self::ERROR,
            "action_attempted" | "risk_detected" => match details.text("risk_tier") {
                Some("critical") => Self::CRITICAL,
                Some("high") => Self::HIGH,
                Some(_) | None => Self::NONE,
            },
            _ => Self::NONE,
        };
        if event.pruned {
            marks |= Self::PRUNED;
        }
        marks
    }

    /// True if any of these marks is set.
    #[must_use]
    pub fn has_any(self, marks: Self) -> bool {
        self.0 & marks.0 != 0
    }

    pub(super) fn without(self, marks: Self) -> Self {
        Self(self.0 & !marks.0)
    }

    /// The most important word; empty if there is none.
    #[must_use]
    pub fn label(self) -> &'static str {
        let words = [
            (Self::MISSING, "GONE"),
            (Self::DENY, "DENY"),
            (Self::LAPSED, "LAPSED"),
            (Self::ERROR, "ERROR"),
            (Self::WAIT, "WAIT"),
            (Self::SIGNED, "SIGNED"),
            (Self::RETRY, "RETRY"),
            (Self::FROZEN, "FROZEN"),
            (Self::CRITICAL, "CRIT!"),
            (Self::HIGH, "HIGH"),
            (Self::PRUNED, "PRUNED"),
        ];
        let mut words = words.into_iter();
        let found = words.find(|(marks, _)| self.has_any(*marks));
        found.map_or("", |(_, word)| word)
    }
}

impl BitOr for EventMarks {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for EventMarks {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitXorAssign for EventMarks {
    fn bitxor_assign(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}
