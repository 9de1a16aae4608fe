//! Ends of chains, to which the next event of each session is added.
//!
//! Chains of ended sessions are dropped: they get no more events.

use std::collections::HashMap;

use crate::base::id::SessionId;
use crate::trace::chain::Chain;
use crate::trace::event::Draft;
use crate::trace::record::Record;
use crate::trace::verification::ChainHead;

/// The ends of all chains.
#[derive(Debug)]
pub(super) struct ChainEnds {
    ends: HashMap<SessionId, Chain>,
    /// The log, which is not counted among the sessions.
    log: SessionId,
    sessions: u64,
    events: u64,
}

impl ChainEnds {
    /// Creates the chains from the heads in a store.
    pub(super) fn resume(heads: Vec<ChainHead>, log: SessionId) -> Self {
        let mut ends = HashMap::new();
        let mut events = 0;
        let sessions = heads.iter().filter(|head| head.session != log).count() as u64;
        for head in heads {
            if head.session != log {
                // A stored count is not trusted, so the sum saturates.
                events = head.count.saturating_add(events);
            }
            let chain = Chain::resume(head.session.clone(), head.count, head.hash, head.last_at);
            ends.insert(head.session, chain);
        }
        Self {
            ends,
            log,
            sessions,
            events,
        }
    }

    /// Seals a draft as the next record of its chain.
    pub(super) fn seal(&mut self, draft: &Draft) -> Record {
        if draft.session_id != self.log {
            self.events += 1;
        }
        if !self.ends.contains_key(&draft.session_id) {
            let session = draft.session_id.clone();
            self.sessions += u64::from(session != self.log);
            self.ends.insert(session.clone(), Chain::new(session));
        }
        let end = self.ends.get_mut(&draft.session_id);
        // INVARIANT: the entry was just inserted.
        end.map_or_else(
            || Chain::new(draft.session_id.clone()).seal(draft),
            |end| end.seal(draft),
        )
    }

    /// Adds a record that another console sealed and that continues a chain.
    pub(super) fn adopt_record(&mut self, record: &Record) {
        let session = record.session.clone();
        let count = record.sequence + 1;
        self.events += 1;
        self.sessions += u64::from(record.sequence == 0);
        let chain = Chain::resume(session.clone(), count, record.hash, record.timestamp);
        self.ends.insert(session, chain);
    }

    /// Returns the end of a chain.
    pub(super) fn get(&self, session: &SessionId) -> Option<&Chain> {
        self.ends.get(session)
    }

    /// Drops the chain of an ended session.
    pub(super) fn remove(&mut self, session: &SessionId) {
        self.ends.remove(session);
    }

    /// Drops all chains except the log and those of live sessions.
    pub(super) fn retain_live(&mut self, is_live: impl Fn(&SessionId) -> bool) {
        let log = &self.log;
        self.ends
            .retain(|session, _| session == log || is_live(session));
        self.ends.shrink_to_fit();
    }

    /// Returns the number of recorded sessions.
    pub(super) fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Returns the number of recorded events, without those of the log.
    pub(super) fn events(&self) -> u64 {
        self.events
    }
}
