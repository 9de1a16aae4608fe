//! Verification of one session's chain: every record follows the one before.

use crate::base::clock::TimestampText;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::pruning::PrunedRecords;
use super::verdict::{ChainVerification, ImportEntry, ProvenCounts, VerificationVerdict};
use super::{ChainEnd, RecordContent, RecordRun};

/// State of a chain so far.
#[derive(Debug)]
pub(super) struct ChainCheck {
    pub(super) session: SessionId,
    /// Number of records that follow one another.
    pub(super) count: u64,
    /// Number of records read, those after a fault included.
    pub(super) read: u64,
    /// Last of the records that follow one another.
    end: Option<ChainEnd>,
    /// First fault.
    pub(super) fault: Option<VerificationVerdict>,
    /// True if it has records after the last log entry that named it.
    pub(super) changed: bool,
    /// Heads that it still waits for: a signed one, and one from elsewhere.
    pub(super) awaits: AwaitedProofs,
    /// Number of records covered by the last log entry that named it.
    pub(super) sealed_count: u64,
    pub(super) proven: ProvenCounts,
    /// Times of the first and the last record after the last signed head.
    pub(super) unsealed_times: Option<(TimestampText, TimestampText)>,
    pub(super) pruned: PrunedRecords,
    /// Imports that brought its records, in the order of the log.
    pub(super) imports: Vec<ImportEntry>,
    /// Export lines that are valid but not in canonical form.
    pub(super) not_canonical: u64,
    pub(super) facts: SessionFacts,
}

/// Proofs that a chain waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AwaitedProofs {
    pub(super) seal: bool,
    pub(super) witness: bool,
}

/// Facts about a session from the records of its chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionFacts {
    /// Unknown if the record was pruned.
    pub(super) agent: Option<String>,
    pub(super) started_at: Option<TimestampText>,
    pub(super) last_at: Option<TimestampText>,
    pub(super) ended: bool,
}

impl ChainCheck {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            count: 0,
            read: 0,
            end: None,
            fault: None,
            changed: false,
            awaits: AwaitedProofs::default(),
            sealed_count: 0,
            proven: ProvenCounts::default(),
            unsealed_times: None,
            pruned: PrunedRecords::default(),
            imports: Vec::new(),
            not_canonical: 0,
            facts: SessionFacts::default(),
        }
    }

    /// Adds the next records. After the first fault the rest is only counted. Returns true if they follow
    /// the record before.
    pub(super) fn link(&mut self, stretch: &RecordRun, content: &RecordContent<'_>) -> bool {
        self.read += stretch.count;
        if self.fault.is_some() {
            return false;
        }
        if let Some(what) = stretch.mismatch(self.count, self.end.as_ref()) {
            self.fault = Some(VerificationVerdict::broken(self.count, what));
            return false;
        }
        match content {
            RecordContent::Nothing | RecordContent::Entry(..) => {}
            RecordContent::First(agent) => self.facts.agent = Some(agent.clone()),
            RecordContent::Pruned(remains) => self.pruned.add(stretch.sequence, *remains),
        }
        if self.count == 0 {
            self.facts.started_at = Some(stretch.first_at);
        }
        self.facts.last_at = Some(stretch.end.at);
        self.facts.ended |= stretch.ends;
        self.end = Some(stretch.end);
        self.count += stretch.count;
        true
    }

    /// Hash of the last record that follows the others.
    pub(super) fn last_hash(&self) -> Digest {
        self.end.map_or(Digest::ZERO, |end| end.hash)
    }

    /// Records a fault: an item that is not a record.
    pub(super) fn record_damage(&mut self, what: impl Into<String>) {
        self.read += 1;
        self.fail(VerificationVerdict::broken(self.count, what));
    }

    /// Records a fault; only the first one is kept.
    pub(super) fn fail(&mut self, fault: VerificationVerdict) {
        self.fault.get_or_insert(fault);
    }

    /// Requires a log entry that explains each record without details as pruned.
    pub(super) fn demand_explanations(&mut self) {
        if let Some(sequence) = self.pruned.first_unexplained() {
            self.fail(VerificationVerdict::broken(
                sequence,
                "its content was removed, but the log has no retention entry for it",
            ));
        }
    }

    /// Records an import that is about to bring records.
    pub(super) fn import(&mut self, imported: ImportEntry) {
        self.proven.imported_from.get_or_insert(self.count);
        self.imports.push(imported);
    }

    pub(super) fn finish(self) -> ChainVerification {
        let count = self.count;
        let pruned = self.pruned.count();
        ChainVerification {
            session: self.session,
            events: self.read,
            pruned,
            not_canonical: self.not_canonical,
            imports: self.imports,
            verdict: self
                .fault
                .unwrap_or(VerificationVerdict::Holds(ProvenCounts {
                    count,
                    ..self.proven
                })),
        }
    }
}
