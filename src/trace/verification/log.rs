//! Verification of the log over all sessions, and through it of the whole record.
//!
//! Records come in the order they were written. A `log_sealed` entry states where every chain that grew
//! stands at that point, so a session that is missing, changed or truncated is detected there. The
//! log's own entries are leaves of a tree, and a head covers that tree, so the entries cannot be
//! replaced.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::base::clock::{Timestamp, TimestampText};
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{MAX_UNSEALED, MAX_UNSEALED_ENTRIES, MAX_UNSEALED_TIME};
use crate::trace::event::{LogSealed, Payload, SealedHead};
use crate::trace::hash::Envelope;
use crate::trace::merkle_tree::MerkleTree;
use crate::trace::note::Verifier;

use super::chain::ChainCheck;
use super::trust::TrustAnchors;
use super::verdict::{ChainHead, LogVerification, VerificationReport, VerificationVerdict};
use super::{RecordContent, RecordLink, RecordOwner, RecordRun};

mod heads;
mod imports;

/// Verifier of a whole record, one event at a time. Memory grows with the number of sessions and heads,
/// not with events.
#[derive(Debug)]
pub struct LogVerifier {
    trust: TrustAnchors,
    /// Only this session and the log are in the input: other sessions are not reported as missing.
    only: Option<SessionId>,
    chains: Vec<ChainCheck>,
    indexes: HashMap<SessionId, usize>,
    /// Chain of the previous record: often the next record belongs to it too.
    last: Option<(SessionId, usize)>,
    log: Option<usize>,
    tree: MerkleTree,
    /// Chains that grew since the last `log_sealed`.
    changed: Vec<usize>,
    /// Chains that wait for a signed head, and for one from elsewhere.
    awaiting: (Vec<usize>, Vec<usize>),
    /// Keys named by entries that no head covers yet.
    offered: Vec<Verifier>,
    key: Option<String>,
    unsealed: UncoveredRecords,
    /// Imported chains according to the log, with their announced ends.
    imported: HashMap<usize, (u64, String)>,
    /// First item that was not a record of any chain.
    doubt: Option<String>,
}

/// Records after the last signed head.
#[derive(Debug, Default)]
struct UncoveredRecords {
    events: u64,
    /// Number of them that are entries of the log.
    entries: u64,
    /// Chains of the others.
    chains: Vec<usize>,
}

impl LogVerifier {
    /// Creates a verifier that checks records against `trust`.
    #[must_use]
    pub fn new(trust: TrustAnchors) -> Self {
        Self {
            trust,
            only: None,
            chains: Vec::new(),
            indexes: HashMap::new(),
            last: None,
            log: None,
            tree: MerkleTree::default(),
            changed: Vec::new(),
            awaiting: (Vec::new(), Vec::new()),
            offered: Vec::new(),
            key: None,
            unsealed: UncoveredRecords::default(),
            imported: HashMap::new(),
            doubt: None,
        }
    }

    /// Limits verification to one session and the log.
    #[must_use]
    pub fn limit_to(mut self, session: SessionId) -> Self {
        self.only = Some(session);
        self
    }

    /// Index of a chain. Callers pass it along with records.
    pub fn chain_index(&mut self, session: &SessionId) -> usize {
        if let Some(place) = self.indexes.get(session) {
            return *place;
        }
        let place = self.chains.len();
        self.chains.push(ChainCheck::new(session.clone()));
        self.indexes.insert(session.clone(), place);
        if self.trust.log() == Some(session) {
            self.log = Some(place);
        }
        place
    }

    /// Owner of a session's records: the log or a session.
    #[must_use]
    pub fn owner(&self, session: &str) -> RecordOwner {
        match self.trust.log() {
            Some(log) if log.as_str() == session => RecordOwner::Log,
            Some(_) | None => RecordOwner::Session,
        }
    }

    /// Processes a record that was already checked on its own, with its text.
    pub fn push(&mut self, envelope: &Envelope<'_>, link: &RecordLink, text: &str) {
        let place = self.chain_index_of(envelope);
        let owner = self.owner(envelope.session_id);
        let content = RecordContent::of(envelope, text, &link.hash, owner);
        match place {
            Ok(place) => self.push_run(place, &RecordRun::from(link), &content),
            Err(what) => self.report_unreadable(None, &what),
        }
    }

    /// Index of the chain that a record belongs to. The first log that begins is the log.
    fn chain_index_of(&mut self, envelope: &Envelope<'_>) -> Result<usize, String> {
        if let Some((session, place)) = &self.last
            && session.as_str() == envelope.session_id
        {
            return Ok(*place);
        }
        let session = envelope.session_id.parse::<SessionId>();
        let session = session.map_err(|error| error.to_string())?;
        // A file does not say which log it belongs to: the first log that begins in it counts.
        if self.trust.log().is_none() && is_log_start(envelope) {
            self.trust = std::mem::take(&mut self.trust).with_log(session.clone());
        }
        let place = self.chain_index(&session);
        self.last = Some((session, place));
        Ok(place)
    }

    /// Processes consecutive records that were already checked on their own. A record with content, and
    /// every log entry, comes alone.
    pub fn push_run(&mut self, place: usize, stretch: &RecordRun, content: &RecordContent<'_>) {
        let Some(chain) = self.chains.get_mut(place) else {
            return;
        };
        let follows = chain.link(stretch, content);
        if !follows {
            return;
        }
        let (count, is_log) = (stretch.count, self.log == Some(place));
        self.unsealed.events += count;
        // Times of imported records do not show when they were written here, and times in the log continue
        // when a console restarts.
        if !is_log && !self.imported.contains_key(&place) {
            if chain.unsealed_times.is_none() {
                self.unsealed.chains.push(place);
            }
            let first = stretch.first_at;
            let (first, _) = *chain.unsealed_times.get_or_insert((first, first));
            chain.unsealed_times = Some((first, stretch.end.at));
        }
        if is_log {
            self.unsealed.entries += count;
            if let RecordContent::Entry(event_type, payload) = content {
                self.process_entry(event_type, payload, stretch.end.at);
            }
            self.tree.push(stretch.end.hash.as_bytes());
            self.check_heads(place);
        } else if !chain.changed {
            chain.changed = true;
            self.changed.push(place);
        }
    }

    /// Records an item that is not a record. If it belongs to no chain, it casts doubt on all of them.
    pub fn report_unreadable(&mut self, place: Option<usize>, what: &str) {
        match place.and_then(|place| self.chains.get_mut(place)) {
            Some(chain) => chain.record_damage(what),
            None => drop(self.doubt.get_or_insert_with(|| what.to_owned())),
        }
    }

    /// Counts an export line that is valid but not in canonical form.
    pub fn count_not_canonical(&mut self, session: &SessionId) {
        let place = self.chain_index(session);
        if let Some(chain) = self.chains.get_mut(place) {
            chain.not_canonical += 1;
        }
    }

    /// Records that the log differs from another source about it.
    pub fn diverges(&mut self, what: &str) {
        self.fail_log(VerificationVerdict::diverged(0, what));
    }

    /// Checks a chain against the session list: its head and its session data. An agent that is unknown
    /// because its record was pruned is accepted as listed.
    pub fn check_listed(
        &mut self,
        head: &ChainHead,
        agent: &str,
        started_at: &Timestamp,
        ended: ListedEnd,
    ) {
        let place = self.chain_index(&head.session);
        let Some(chain) = self.chains.get_mut(place) else {
            return;
        };
        if chain.count < head.count {
            let (found, expected) = (chain.count, head.count);
            return chain.fail(VerificationVerdict::Truncated { found, expected });
        }
        let last = chain.count.saturating_sub(1);
        let what = if chain.count == 0 {
            Some("listed, but has no events")
        } else if chain.count > head.count {
            Some("has events that cra never acknowledged")
        } else if chain.last_hash() != head.hash {
            Some("the last event differs from the acknowledged one")
        } else if chain
            .facts
            .agent
            .as_deref()
            .is_some_and(|recorded| recorded != agent)
        {
            Some("agent differs between session list and first event")
        } else if chain.facts.started_at != Some(started_at.text()) {
            Some("start time differs between session list and first event")
        } else if chain.facts.last_at != Some(head.last_at.text()) {
            Some("time differs between session list and last event")
        } else if chain.facts.ended != matches!(ended, ListedEnd::Yes) {
            Some("state differs between session list and events")
        } else {
            None
        };
        if let Some(what) = what {
            chain.fail(VerificationVerdict::broken(last, what));
        }
    }

    /// Records that a chain has events that were never acknowledged.
    pub fn report_unlisted(&mut self, session: &SessionId) {
        let place = self.chain_index(session);
        if let Some(chain) = self.chains.get_mut(place) {
            chain.fail(VerificationVerdict::broken(
                0,
                "cra never acknowledged its events",
            ));
        }
    }

    /// Sessions that were read.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.chains.iter().map(|chain| &chain.session)
    }

    /// Requires the seals that a console makes: it signs within a second.
    pub fn demand_seals(&mut self) {
        let (events, span) = (self.unsealed.events, self.unsealed_span());
        let late = events > MAX_UNSEALED
            || self.unsealed.entries > MAX_UNSEALED_ENTRIES
            || span > MAX_UNSEALED_TIME;
        let never = self.key.is_none() && self.chains.len() > 1;
        if !self.trust.has_keys() || !(late || never) {
            return;
        }
        let seconds = span.as_secs();
        let what = if never {
            "no head of this log is signed with the key".to_owned()
        } else {
            format!("{events} events over {seconds} s are unsealed, more than a crash explains")
        };
        let sealed = self.log_chain().map_or(0, |log| log.proven.sealed);
        self.fail_log(VerificationVerdict::diverged(sealed, what));
    }

    /// Result of the verification.
    #[must_use]
    pub fn finish(mut self) -> VerificationReport {
        self.check_larger_heads();
        self.check_imports();
        self.spread_doubt();
        let log = self.trust.log().cloned();
        let only = self.only.take();
        let wanted = |session: &SessionId| only.as_ref().is_none_or(|only| only == session);
        let mut report = VerificationReport {
            log: None,
            chains: Vec::new(),
        };
        for mut chain in self.chains {
            // Announced by an import that never started.
            if chain.read == 0 && chain.fault.is_none() {
                continue;
            }
            // An export of one session has no log, so it cannot explain pruned records.
            if log.is_some() {
                chain.demand_explanations();
            }
            let checked = chain.finish();
            if log.as_ref() == Some(&checked.session) {
                report.log = Some(LogVerification {
                    log: checked.session,
                    entries: checked.events,
                    verdict: checked.verdict,
                    key: self.key.clone(),
                });
            } else if wanted(&checked.session) {
                report.chains.push(checked);
            }
        }
        report
            .chains
            .sort_by(|one, other| one.session.cmp(&other.session));
        report
    }

    fn is_wanted(&self, session: &SessionId) -> bool {
        self.only.as_ref().is_none_or(|only| only == session)
    }

    /// Longest time between two unsealed events of one session.
    fn unsealed_span(&self) -> Duration {
        let read = |text: TimestampText| text.as_str().parse::<Timestamp>().ok();
        let chains = self.unsealed.chains.iter();
        let spans = chains.filter_map(|place| {
            let (first, last) = self.chains.get(*place)?.unsealed_times?;
            Some(read(last)?.since(read(first)?))
        });
        spans.max().unwrap_or_default()
    }

    /// A signed head covers everything so far.
    fn clear_unsealed(&mut self) {
        for place in std::mem::take(&mut self.unsealed).chains {
            if let Some(chain) = self.chains.get_mut(place) {
                chain.unsealed_times = None;
            }
        }
    }

    fn spread_doubt(&mut self) {
        let Some(what) = self.doubt.take() else {
            return;
        };
        if self.chains.is_empty()
            // INVARIANT: the text is a legal identifier.
            && let Ok(unknown) = "unknown".parse()
        {
            self.chain_index(&unknown);
        }
        for chain in &mut self.chains {
            chain.record_damage(what.as_str());
        }
    }

    fn log_chain(&mut self) -> Option<&mut ChainCheck> {
        self.chains.get_mut(self.log?)
    }

    fn fail_log(&mut self, fault: VerificationVerdict) {
        if self.log.is_none()
            && let Some(log) = self.trust.log().cloned()
        {
            self.chain_index(&log);
        }
        if let Some(log) = self.log_chain() {
            log.fail(fault);
        }
    }

    /// Processes an entry of the log.
    fn process_entry(&mut self, event_type: &str, payload: &str, at: TimestampText) {
        let place = self.tree.size();
        let fields = serde_json::from_str::<Map<String, Value>>(payload).unwrap_or_default();
        let read = match event_type {
            "log_sealed" | "retention_applied" | "key_rotated" | "trace_imported" => {
                Payload::read(event_type, fields)
            }
            _ => return,
        };
        match read {
            Ok(Payload::LogSealed(sealed)) => self.check_sealed(sealed),
            Ok(Payload::RetentionApplied(applied)) => {
                let digest = applied.envelopes_hash.parse::<Digest>().ok();
                let chain = applied.pruned_session.parse::<SessionId>().ok();
                let chain = chain.and_then(|session| self.indexes.get(&session).copied());
                let chain = chain.and_then(|place| self.chains.get_mut(place));
                if let (Some(chain), Some(digest)) = (chain, digest)
                    && !chain.pruned.explain(&applied.pruned, &digest)
                {
                    let first = applied.pruned.first().map_or(0, |range| range.0);
                    chain.fail(VerificationVerdict::diverged(
                        first,
                        "pruned events changed after they were pruned",
                    ));
                }
            }
            Ok(Payload::TraceImported(imported)) => self.process_import(&imported, at),
            Ok(Payload::KeyRotated(rotated)) => self.offered.extend(rotated.key.parse()),
            Ok(_) => {}
            Err(error) => self.fail_log(VerificationVerdict::broken(place, error.to_string())),
        }
    }

    /// Checks every chain that grew against a `log_sealed` entry.
    fn check_sealed(&mut self, sealed: LogSealed) {
        for head in sealed.sessions {
            match self.indexes.get(&head.session) {
                Some(&place) => self.check_sealed_head(place, &head),
                None if self.is_wanted(&head.session) => {
                    // The session is missing; records added later do not make up for it.
                    let place = self.chain_index(&head.session);
                    self.check_sealed_head(place, &head);
                }
                None => {}
            }
        }
        for place in std::mem::take(&mut self.changed) {
            if let Some(chain) = self.chains.get_mut(place)
                && std::mem::take(&mut chain.changed)
            {
                let from = chain.sealed_count;
                chain.fail(VerificationVerdict::diverged(
                    from,
                    "has events that are missing in the log",
                ));
            }
        }
    }

    fn check_sealed_head(&mut self, place: usize, head: &SealedHead) {
        let Some(chain) = self.chains.get_mut(place) else {
            return;
        };
        chain.changed = false;
        if chain.count < head.count {
            let (found, expected) = (chain.count, head.count);
            return chain.fail(VerificationVerdict::Truncated { found, expected });
        }
        if chain.count > head.count || chain.last_hash() != head.hash {
            let from = chain.sealed_count;
            return chain.fail(VerificationVerdict::diverged(
                from,
                "its events differ from those in the log",
            ));
        }
        chain.sealed_count = chain.count;
        if !std::mem::replace(&mut chain.awaits.seal, true) {
            self.awaiting.0.push(place);
        }
        if !std::mem::replace(&mut chain.awaits.witness, true) {
            self.awaiting.1.push(place);
        }
    }
}

/// End state of a session in the session list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedEnd {
    /// The session is listed as ended.
    Yes,
    /// The session is listed as open.
    No,
}

/// True if a record is the first entry of a log.
fn is_log_start(envelope: &Envelope<'_>) -> bool {
    envelope.sequence == 0 && envelope.event_type == "log_started"
}
