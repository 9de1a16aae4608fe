//! Verification of one session's chain: every record follows the one before.

use crate::base::clock::TimestampText;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::pruned::Pruned;
use super::verdict::{Checked, Imported, Proven, Verdict};
use super::{End, Said, Stretch};

/// State of a chain so far.
#[derive(Debug)]
pub(super) struct ChainState {
    pub(super) session: SessionId,
    /// Number of records that follow one another.
    pub(super) count: u64,
    /// Number of records read, those after a fault included.
    pub(super) read: u64,
    /// Last of the records that follow one another.
    end: Option<End>,
    /// First fault.
    pub(super) fault: Option<Verdict>,
    /// True if it has records after the last log entry that named it.
    pub(super) changed: bool,
    /// Heads that it still waits for: a signed one, and one from elsewhere.
    pub(super) awaits: Awaits,
    /// Number of records covered by the last log entry that named it.
    pub(super) entered: u64,
    pub(super) proven: Proven,
    /// Times of the first and the last record after the last signed head.
    pub(super) behind: Option<(TimestampText, TimestampText)>,
    pub(super) pruned: Pruned,
    /// Imports that brought its records, in the order of the log.
    pub(super) imports: Vec<Imported>,
    /// Export lines that are valid but not in canonical form.
    pub(super) not_canonical: u64,
    pub(super) told: Told,
}

/// Proofs that a chain waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Awaits {
    pub(super) seal: bool,
    pub(super) witness: bool,
}

/// Facts about a session from the records of its chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Unknown if the record was pruned.
    pub(super) agent: Option<String>,
    pub(super) started_at: Option<TimestampText>,
    pub(super) last_at: Option<TimestampText>,
    pub(super) ended: bool,
}

impl ChainState {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            count: 0,
            read: 0,
            end: None,
            fault: None,
            changed: false,
            awaits: Awaits::default(),
            entered: 0,
            proven: Proven::default(),
            behind: None,
            pruned: Pruned::default(),
            imports: Vec::new(),
            not_canonical: 0,
            told: Told::default(),
        }
    }

    /// Adds the next records. After the first fault the rest is only counted. Returns true if they follow
    /// the record before.
    pub(super) fn link(&mut self, stretch: &Stretch, said: &Said<'_>) -> bool {
        self.read += stretch.count;
        if self.fault.is_some() {
            return false;
        }
        if let Some(what) = stretch.misfit(self.count, self.end.as_ref()) {
            self.fault = Some(Verdict::broken(self.count, what));
            return false;
        }
        match said {
            Said::Nothing | Said::Entry(..) => {}
            Said::First(agent) => self.told.agent = Some(agent.clone()),
            Said::Pruned(remains) => self.pruned.note(stretch.sequence, *remains),
        }
        if self.count == 0 {
            self.told.started_at = Some(stretch.first_at);
        }
        self.told.last_at = Some(stretch.end.at);
        self.told.ended |= stretch.ends;
        self.end = Some(stretch.end);
        self.count += stretch.count;
        true
    }

    /// Hash of the last record that follows the others.
    pub(super) fn last_hash(&self) -> Digest {
        self.end.map_or(Digest::ZERO, |end| end.hash)
    }

    /// Records a fault: an item that is not a record.
    pub(super) fn break_with(&mut self, what: impl Into<String>) {
        self.read += 1;
        self.fail(Verdict::broken(self.count, what));
    }

    /// Records a fault; only the first one is kept.
    pub(super) fn fail(&mut self, fault: Verdict) {
        self.fault.get_or_insert(fault);
    }

    /// Requires a log entry that explains each record without details as pruned.
    pub(super) fn demand_explanations(&mut self) {
        if let Some(sequence) = self.pruned.first_unexplained() {
            self.fail(Verdict::broken(
                sequence,
                "its content was removed, and no retention_applied of the log says so",
            ));
        }
    }

    /// Records an import that is about to bring records.
    pub(super) fn import(&mut self, imported: Imported) {
        self.proven.imported_from.get_or_insert(self.count);
        self.imports.push(imported);
    }

    pub(super) fn finish(self) -> Checked {
        let count = self.count;
        let pruned = self.pruned.count();
        Checked {
            session: self.session,
            events: self.read,
            pruned,
            not_canonical: self.not_canonical,
            imports: self.imports,
            verdict: self.fault.unwrap_or(Verdict::Holds(Proven {
                count,
                ..self.proven
            })),
        }
    }
}
