//! How often what matters most happened in a session.

use super::Marks;

/// How often what matters most happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Gates that waited for an answer.
    pub waits: u64,
    /// What was denied.
    pub denied: u64,
    /// What nobody answered.
    pub lapsed: u64,
    /// What a person signed for.
    pub signed: u64,
    /// Numbers that the record has no event for.
    pub missing: u64,
}

impl Tally {
    /// Counts an event that comes after another one. What is written of one decision stands together, and
    /// counts once: a request that expires blocks its gate and its action, and nobody denied it.
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
    fn what_one_decision_writes_counts_once() {
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
