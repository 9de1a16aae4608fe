//! What the format has and this version does not hold anyone to, in one place.
//!
//! A gate that is written down and does not exist is worse than none, so its steward is told. To support
//! a feature, take its line out.

use super::decode::Section;
use super::diagnostic::{Code, Problem};
use super::yaml::Entry;

/// A key that is known and not enforced, and what its steward should know.
pub(super) struct Unsupported {
    section: Section,
    key: &'static str,
    warning: &'static str,
}

const fn warn(section: Section, key: &'static str, warning: &'static str) -> Unsupported {
    Unsupported {
        section,
        key,
        warning,
    }
}

/// The whole list.
#[rustfmt::skip]
const UNSUPPORTED: &[Unsupported] = &[
    warn(Section::Steward, "notifications", "this version of cra sends no notifications"),
];

/// Every entry of `entries`, a map of `section`, that is not enforced: with its index and its problem.
pub(super) fn find<'e>(
    section: Section,
    entries: &'e [Entry],
    path: &'e str,
) -> impl Iterator<Item = (usize, Problem)> + 'e {
    entries
        .iter()
        .enumerate()
        .filter_map(move |(index, entry)| {
            UNSUPPORTED
                .iter()
                .find(|unsupported| unsupported.is(section, entry))
                .map(|unsupported| (index, unsupported.problem(entry, path)))
        })
}

impl Unsupported {
    fn is(&self, section: Section, entry: &Entry) -> bool {
        self.section == section && self.key == entry.key
    }

    fn problem(&self, entry: &Entry, path: &str) -> Problem {
        let path = super::decode::join(path, self.key);
        let problem = Problem::new(Code::NoEffect, self.warning);
        problem.path(path).at(entry.key_span)
    }
}
