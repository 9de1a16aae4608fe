//! Counts of the most important outcomes in a session.

use super::Marks;

/// Counts of the most important outcomes in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
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

impl Tally {
    /// Counts an event that follows another one. Consecutive events of one decision count once: an expired
    /// request blocks its gate and its action, and counts as lapsed, not as denied.
    pub(super) fn add(&mut self, before: Marks, marks: Marks) {
        let begins = |kind: Marks| marks.any(kind) && !before.any(kind);
        let ends = begins(Marks::DENY | Marks::LAPSED);
        self.waits += u64::from(marks.any(Marks::WAIT));
        self.denied += u64::from(ends && marks.any(Marks::DENY));
        self.lapsed += u64::from(ends && marks.any(Marks::LAPSED));
        self.signed += u64::from(begins(Marks::SIGNED));
        self.missing += u64::from(marks.any(Marks::MISSING));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_decision_count_once() {
        let counted = |marks: &[Marks]| {
            let mut tally = Tally::default();
            let mut before = Marks::NONE;
            for mark in marks {
                tally.add(before, *mark);
                before = *mark;
            }
            (tally.signed, tally.denied, tally.lapsed)
        };
        let (signed, deny, lapsed) = (Marks::SIGNED, Marks::DENY, Marks::LAPSED);
        assert_eq!(counted(&[signed, signed]), (1, 0, 0));
        assert_eq!(counted(&[signed, Marks::NONE, signed]), (2, 0, 0));
        assert_eq!(counted(&[deny, deny]), (0, 1, 0));
        assert_eq!(counted(&[lapsed, deny]), (0, 0, 1));
    }
}
