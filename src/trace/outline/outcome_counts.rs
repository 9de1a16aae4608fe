//! Counts of the most important outcomes in a session.

use super::EventMarks;

/// Counts of the most important outcomes in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// Gates that waited for an answer.
    pub waits: u64,
    /// Denied requests.
    pub denied: u64,
    /// Requests without an answer.
    pub lapsed: u64,
    /// Requests that an operator approved.
    pub signed: u64,
    /// Sequence numbers without an event.
    pub missing: u64,
}

impl OutcomeCounts {
    /// Counts an event that follows another one. Consecutive events of one decision count once: an expired
    /// request blocks its gate and its action, and counts as lapsed, not as denied.
    pub(super) fn add(&mut self, before: EventMarks, marks: EventMarks) {
        let begins = |kind: EventMarks| marks.has_any(kind) && !before.has_any(kind);
        let ends = begins(EventMarks::DENY | EventMarks::LAPSED);
        self.waits += u64::from(marks.has_any(EventMarks::WAIT));
        self.denied += u64::from(ends && marks.has_any(EventMarks::DENY));
        self.lapsed += u64::from(ends && marks.has_any(EventMarks::LAPSED));
        self.signed += u64::from(begins(EventMarks::SIGNED));
        self.missing += u64::from(marks.has_any(EventMarks::MISSING));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_decision_count_once() {
        let counted = |marks: &[EventMarks]| {
            let mut tally = OutcomeCounts::default();
            let mut before = EventMarks::NONE;
            for mark in marks {
                tally.add(before, *mark);
                before = *mark;
            }
            (tally.signed, tally.denied, tally.lapsed)
        };
        let (signed, deny, lapsed) = (EventMarks::SIGNED, EventMarks::DENY, EventMarks::LAPSED);
        assert_eq!(counted(&[signed, signed]), (1, 0, 0));
        assert_eq!(counted(&[signed, EventMarks::NONE, signed]), (2, 0, 0));
        assert_eq!(counted(&[deny, deny]), (0, 1, 0));
        assert_eq!(counted(&[lapsed, deny]), (0, 0, 1));
    }
}
