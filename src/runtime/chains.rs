//! The ends of chains: where the next event of each session goes.
//!
//! Chains of sessions that are over are forgotten: nothing follows in them.

use std::collections::HashMap;

use crate::base::id::SessionId;
use crate::trace::chain::Chain;
use crate::trace::event::Draft;
use crate::trace::record::Record;
use crate::trace::verify::Head;

/// The ends of all chains.
#[derive(Debug)]
pub(super) struct Chains {
    ends: HashMap<SessionId, Chain>,
    /// The log itself, which people do not count among the sessions.
    log: SessionId,
    sessions: u64,
    events: u64,
}

impl Chains {
    /// The chains as they lie in a store.
    pub(super) fn resume(heads: Vec<Head>, log: SessionId) -> Self {
        let mut ends = HashMap::new();
        let mut events = 0;
        let sessions = heads.iter().filter(|head| head.session != log).count() as u64;
        for head in heads {
            if head.session != log {
                // What a list claims is not believed to be a number of events that can be.
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

    /// Gives a draft its place.
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
        // INVARIANT: it is there since just now.
        end.map_or_else(
            || Chain::new(draft.session_id.clone()).seal(draft),
            |end| end.seal(draft),
        )
    }

    /// Takes in a record that was sealed elsewhere and follows what is there.
    pub(super) fn adopt(&mut self, record: &Record) {
        let session = record.session.clone();
        let count = record.sequence + 1;
        self.events += 1;
        self.sessions += u64::from(record.sequence == 0);
        let chain = Chain::resume(session.clone(), count, record.hash, record.timestamp);
        self.ends.insert(session, chain);
    }

    /// The end of a chain.
    pub(super) fn get(&self, session: &SessionId) -> Option<&Chain> {
        self.ends.get(session)
    }

    /// Forgets the chain of a session that is over.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.ends.remove(session);
    }

    /// Forgets the chains of all sessions but the log and those that are live.
    pub(super) fn keep(&mut self, is_live: impl Fn(&SessionId) -> bool) {
        let log = &self.log;
        self.ends
            .retain(|session, _| session == log || is_live(session));
        self.ends.shrink_to_fit();
    }

    /// Sessions on record.
    pub(super) fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Events on record, without those of the log itself.
    pub(super) fn events(&self) -> u64 {
        self.events
    }
}
