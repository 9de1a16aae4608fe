//! What an event is about, in bits.

use std::ops::{BitOr, BitOrAssign, BitXorAssign};

use super::{Details, Event, canonical_type, stops};
use crate::trace::tell::is_frozen;

/// What an event is about, in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u16);

impl Marks {
    /// Nothing of note.
    pub const NONE: Self = Self(0);
    /// A checkpoint fired.
    pub const CHECKPOINT: Self = Self(1);
    /// A gate waits for an answer.
    pub const WAIT: Self = Self(1 << 1);
    /// Somebody or something said no.
    pub const DENY: Self = Self(1 << 2);
    /// Nobody answered in time, or the asker left.
    pub const LAPSED: Self = Self(1 << 3);
    /// A person let it pass, and signed for it.
    pub const SIGNED: Self = Self(1 << 4);
    /// Answers broke their rules.
    pub const RETRY: Self = Self(1 << 5);
    /// Something failed.
    pub const ERROR: Self = Self(1 << 6);
    /// High risk.
    pub const HIGH: Self = Self(1 << 7);
    /// Critical risk.
    pub const CRITICAL: Self = Self(1 << 8);
    /// The record has no event with this number.
    pub const MISSING: Self = Self(1 << 9);
    /// Its details were dropped because they were old.
    pub const PRUNED: Self = Self(1 << 10);
    /// Others hang under it.
    pub const PARENT: Self = Self(1 << 11);
    /// What hangs under it is folded away.
    pub const FOLDED: Self = Self(1 << 12);
    /// It hangs under something that is folded.
    pub const HIDDEN: Self = Self(1 << 13);
    /// A turn found the summary of its conversation frozen.
    pub const FROZEN: Self = Self(1 << 14);

    /// What an event is about.
    #[must_use]
    pub fn of(event: &Event) -> Self {
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
            _ if stops(event) => Self::ERROR,
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

    /// Whether it has any of these.
    #[must_use]
    pub fn any(self, marks: Self) -> bool {
        self.0 & marks.0 != 0
    }

    pub(super) fn without(self, marks: Self) -> Self {
        Self(self.0 & !marks.0)
    }

    /// The one word that matters most; empty when nothing does.
    #[must_use]
    pub fn word(self) -> &'static str {
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
        let found = words.find(|(marks, _)| self.any(*marks));
        found.map_or("", |(_, word)| word)
    }
}

impl BitOr for Marks {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Marks {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitXorAssign for Marks {
    fn bitxor_assign(&mut self, other: Self) {
        self.0 ^= other.0;
    }
}
