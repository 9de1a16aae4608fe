//! Tables that result from the journal's batches.

use std::collections::BTreeMap;

use super::super::{AtlasText, Batch, LogState, PruneRanges, RecordedSession, Seal, StateRow};
use super::StateMap;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::governance::SessionGovernance;
use crate::trace::head::LogHead;
use crate::trace::note::SignedNote;
use crate::trace::record::Record;
use crate::trace::verification::{self, ChainHead, LogVerifier, TrustAnchors, VerificationReport};

/// Name of the log of an in-memory store.
const LOG: &str = "log-00000000-0000-7000-8000-000000000000";

#[derive(Clone, Debug, Default)]
pub(super) struct MemoryTables {
    /// Records in the order of writing.
    pub(super) records: Vec<Record>,
    by_session: BTreeMap<SessionId, Vec<usize>>,
    state: StateMap,
    seals: BTreeMap<u64, String>,
    pub(super) atlases: BTreeMap<String, AtlasText>,
}

impl MemoryTables {
    pub(super) fn apply(&mut self, batch: Batch) {
        for record in batch.records {
            let places = self.by_session.entry(record.session.clone()).or_default();
            places.push(self.records.len());
            self.records.push(record);
        }
        for row in batch.state {
            let key = (row.kind, row.key);
            match row.body {
                Some(body) => drop(self.state.insert(key, body)),
                None => drop(self.state.remove(&key)),
            }
        }
        for seal in batch.seals {
            self.seals.insert(seal.size, seal.note);
        }
        for atlas in batch.atlases {
            self.atlases.insert(atlas.hash.clone(), atlas);
        }
        for prune in &batch.prune {
            self.prune(prune);
        }
    }

    /// Reason why batches cannot follow the present records, if they cannot.
    pub(super) fn conflict(&self, batches: &[&Batch]) -> Option<String> {
        let mut grown: BTreeMap<&SessionId, u64> = BTreeMap::new();
        for record in batches.iter().flat_map(|batch| &batch.records) {
            let there = self.by_session.get(&record.session).map_or(0, Vec::len);
            let next = grown.entry(&record.session).or_insert(there as u64);
            if record.sequence != *next {
                return Some(format!(
                    "{} has an event {} already",
                    record.session, record.sequence
                ));
            }
            *next += 1;
        }
        None
    }

    fn prune(&mut self, prune: &PruneRanges) {
        let places = self.by_session.get(&prune.session).cloned();
        for place in places.unwrap_or_default() {
            let Some(record) = self.records.get_mut(place) else {
                continue;
            };
            let within = |(first, last): &(u64, u64)| (*first..=*last).contains(&record.sequence);
            if prune.ranges.iter().any(within) {
                record.text = record.without_content();
            }
        }
    }

    /// Records of a session.
    pub(super) fn of(&self, session: &SessionId) -> impl Iterator<Item = &Record> {
        let places = self.by_session.get(session).into_iter().flatten();
        places.filter_map(|place| self.records.get(*place))
    }

    pub(super) fn hashes(&self, session: &SessionId) -> Vec<Digest> {
        self.of(session).map(|record| record.hash).collect()
    }

    pub(super) fn state(&self) -> Vec<StateRow> {
        let rows = self.state.iter().map(|((kind, key), body)| StateRow {
            kind: kind.clone(),
            key: key.clone(),
            body: Some(body.clone()),
        });
        rows.collect()
    }

    pub(super) fn heads(&self) -> Vec<ChainHead> {
        let last = self.by_session.keys().filter_map(|session| {
            let last = self.of(session).last()?;
            Some(ChainHead {
                session: session.clone(),
                count: last.sequence + 1,
                hash: last.hash,
                last_at: last.timestamp,
            })
        });
        last.collect()
    }

    pub(super) fn log(&self) -> LogState {
        let seal = self.seals.iter().next_back().map(|(size, note)| Seal {
            size: *size,
            note: note.clone(),
        });
        let log = log_id();
        let entry = seal.as_ref().and_then(|seal| {
            let places = self.by_session.get(&log)?;
            let last = usize::try_from(seal.size).ok()?.checked_sub(1)?;
            places.get(last)
        });
        LogState {
            log,
            seal,
            sealed_records: entry.map_or(0, |place| *place as u64 + 1),
            repair_note: None,
            head_file_note: None,
        }
    }

    pub(super) fn sessions(&self) -> Vec<RecordedSession> {
        let log = log_id();
        let entries: Vec<_> = self
            .of(&log)
            .filter_map(|entry| entry.event_of().ok())
            .collect();
        let notes = SessionGovernance::read(&entries);
        let names = self.by_session.keys().filter(|session| **session != log);
        let sessions = names.filter_map(|session| {
            let first = self.of(session).next()?.event_of().ok()?;
            let last = self.of(session).last()?.event_of().ok()?;
            let agent = first.payload.get("agent_type");
            let agent = agent.and_then(|agent| agent.as_str());
            Some(RecordedSession {
                session: session.clone(),
                agent: agent.unwrap_or_default().to_owned(),
                started_at: first.timestamp,
                last_at: last.timestamp,
                events: last.sequence + 1,
                ended: last.event_type == "session_ended",
                imports: notes.imports(session),
            })
        });
        sessions.collect()
    }

    pub(super) fn verify(&self, trust: TrustAnchors) -> VerificationReport {
        let signed = self.seals.values().filter_map(|note| {
            let note: SignedNote = note.parse().ok()?;
            let head: LogHead = note.text.parse().ok()?;
            Some((head, note))
        });
        let mut verifier = LogVerifier::new(trust.with_log(log_id()).with_signed_heads(signed));
        for record in &self.records {
            match verification::check_record(&record.text, &record.hash) {
                Ok((envelope, link)) => verifier.push(&envelope, &link, &record.text),
                Err(what) => {
                    let place = verifier.chain_index(&record.session);
                    verifier.report_unreadable(Some(place), &what);
                }
            }
        }
        verifier.demand_seals();
        verifier.finish()
    }
}

fn log_id() -> SessionId {
    // INVARIANT: the text is a legal identifier; the fallback is never used.
    LOG.parse().unwrap_or_else(|_| uuid::Uuid::nil().into())
}
