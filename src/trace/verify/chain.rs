//! One session's chain: whether every record follows the one before.

use crate::base::clock::TimestampText;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::pruned::Pruned;
use super::verdict::{Checked, Imported, Proven, Verdict};
use super::{End, Said, Stretch};

/// What is known of a chain so far.
#[derive(Debug)]
pub(super) struct ChainState {
    pub(super) session: SessionId,
    /// Records that follow one another.
    pub(super) count: u64,
    /// Records that were read, those behind a fault included.
    pub(super) read: u64,
    /// The last of those that follow one another.
    end: Option<End>,
    /// The first thing that is wrong.
    pub(super) fault: Option<Verdict>,
    /// Whether it has records behind the last entry of the log that named it.
    pub(super) changed: bool,
    /// Whether it waits for a head to cover it: one that is signed, and one from elsewhere.
    pub(super) awaits: Awaits,
    /// Records that the last entry of the log that named it covers.
    pub(super) entered: u64,
    pub(super) proven: Proven,
    /// When the first and the last record behind the last signed head happened.
    pub(super) behind: Option<(TimestampText, TimestampText)>,
    pub(super) pruned: Pruned,
    /// Imports that brought records of it, in the order of the log.
    pub(super) imports: Vec<Imported>,
    /// Lines of an export that hold and are not in canonical form.
    pub(super) not_canonical: u64,
    pub(super) told: Told,
}

/// Which proofs a chain waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Awaits {
    pub(super) seal: bool,
    pub(super) witness: bool,
}

/// What the records of a chain say about their session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Not known when it was pruned.
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

    /// Takes the next records. After the first fault the rest is only counted. Says whether they follow
    /// the one before.
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

    /// The hash of the last record that follows the others.
    pub(super) fn last_hash(&self) -> Digest {
        self.end.map_or(Digest::ZERO, |end| end.hash)
    }

    /// Notes something that is not even a record.
    pub(super) fn break_with(&mut self, what: impl Into<String>) {
        self.read += 1;
        self.fail(Verdict::broken(self.count, what));
    }

    /// Notes a fault; the first one stands.
    pub(super) fn fail(&mut self, fault: Verdict) {
        self.fault.get_or_insert(fault);
    }

    /// Holds records without content against the log, which has to say that they were pruned.
    pub(super) fn demand_explanations(&mut self) {
        if let Some(sequence) = self.pruned.first_unexplained() {
            self.fail(Verdict::broken(
                sequence,
                "its content was removed, and no retention_applied of the log says so",
            ));
        }
    }

    /// Notes an import that is about to bring records.
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
