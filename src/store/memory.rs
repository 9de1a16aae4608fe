//! A store in memory, for tests: it can forget what was not yet durable, and fail on request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Ack, Batch, RecordedSession, StateRow, Store, StoreError};
use crate::base::clock::Boxed;
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::jsonl;
use crate::trace::verify::{Checked, Head, Known, Verifier};

/// A store in memory. Clones are the same opening of it.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    disk: Arc<Mutex<Disk>>,
    opening: u64,
}

#[derive(Debug, Default)]
struct Disk {
    events: BTreeMap<SessionId, Vec<Event>>,
    state: BTreeMap<(String, String), String>,
    writes_until_failure: Option<u64>,
    poison: Option<StoreError>,
    opening: u64,
}

impl MemoryStore {
    /// Makes the write after the next `count` fail, and all that follow.
    pub fn fail_after(&self, count: u64) {
        self.disk().writes_until_failure = Some(count);
    }

    /// The same store as a new process would open it: working again, with what was acknowledged.
    /// Earlier openings write nothing any more, as a process that died does not.
    #[must_use]
    pub fn reopen(&self) -> Self {
        let mut disk = self.disk();
        disk.writes_until_failure = None;
        disk.poison = None;
        disk.opening += 1;
        Self {
            disk: Arc::clone(&self.disk),
            opening: disk.opening,
        }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Disk) -> T,
    ) -> Boxed<'_, Result<T, StoreError>> {
        let found = query(&self.disk());
        Box::pin(async move { Ok(found) })
    }
}

impl Disk {
    fn write(&mut self, opening: u64, batch: Batch) -> Result<(), StoreError> {
        if opening != self.opening {
            return Err(StoreError::Poisoned {
                what: "another process has it".to_owned(),
            });
        }
        if let Some(error) = &self.poison {
            return Err(error.clone());
        }
        if let Some(left) = &mut self.writes_until_failure {
            if *left == 0 {
                let error = StoreError::Poisoned {
                    what: "no space left on device".to_owned(),
                };
                self.poison = Some(error.clone());
                return Err(error);
            }
            *left -= 1;
        }
        for event in batch.events {
            self.events
                .entry(event.session_id.clone())
                .or_default()
                .push(event);
        }
        for row in batch.state {
            let key = (row.kind, row.key);
            match row.body {
                Some(body) => drop(self.state.insert(key, body)),
                None => drop(self.state.remove(&key)),
            }
        }
        Ok(())
    }

    fn head(events: &[Event]) -> Option<Head> {
        let last = events.last()?;
        Some(Head {
            session: last.session_id.clone(),
            count: last.sequence + 1,
            hash: last.hash,
            last_at: last.timestamp,
        })
    }
}

impl Store for MemoryStore {
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>> {
        let written = self.disk().write(self.opening, batch);
        Box::pin(async move {
            let ack: Ack = Box::pin(async move { written });
            Ok(ack)
        })
    }

    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>> {
        self.read(|disk| {
            let rows = disk.state.iter().map(|((kind, key), body)| StateRow {
                kind: kind.clone(),
                key: key.clone(),
                body: Some(body.clone()),
            });
            rows.collect()
        })
    }

    fn heads(&self) -> Boxed<'_, Result<Vec<Head>, StoreError>> {
        self.read(|disk| {
            disk.events
                .values()
                .filter_map(|events| Disk::head(events))
                .collect()
        })
    }

    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>> {
        self.read(|disk| {
            let sessions = disk.events.values().filter_map(|events| {
                let (first, last) = (events.first()?, events.last()?);
                let agent = first
                    .payload
                    .get("agent_type")
                    .and_then(|agent| agent.as_str());
                Some(RecordedSession {
                    session: first.session_id.clone(),
                    agent: agent.unwrap_or_default().to_owned(),
                    started_at: first.timestamp,
                    last_at: last.timestamp,
                    events: last.sequence + 1,
                    ended: last.event_type == "session_ended",
                })
            });
            sessions.collect()
        })
    }

    fn events(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Event>, StoreError>> {
        self.read(|disk| {
            let events = disk.events.get(&session).into_iter().flatten();
            events
                .filter(|event| event.sequence >= from)
                .take(limit)
                .cloned()
                .collect()
        })
    }

    fn verify(&self) -> Boxed<'_, Result<Vec<Checked>, StoreError>> {
        self.read(|disk| {
            let chains = disk.events.iter().map(|(session, events)| {
                let mut verifier = Verifier::new(session.clone());
                for event in events {
                    match jsonl::read_line(&jsonl::line(event)) {
                        Ok(raw) => verifier.push(&raw),
                        Err(what) => verifier.push_unreadable(what),
                    }
                }
                verifier.finish(Known::Head(Disk::head(events).as_ref()))
            });
            chains.collect()
        })
    }
}
