//! The ends of all chains: where the next event of each session goes.

use std::collections::HashMap;

use crate::base::id::SessionId;
use crate::trace::chain::Chain;
use crate::trace::event::{Draft, Event};
use crate::trace::verify::Head;

/// The ends of all chains.
#[derive(Debug, Default)]
pub(super) struct Chains {
    ends: HashMap<SessionId, Chain>,
    events: u64,
}

impl Chains {
    /// The chains as they lie in a store.
    pub(super) fn resume(heads: Vec<Head>) -> Self {
        let mut chains = Self::default();
        for head in heads {
            chains.events += head.count;
            let chain = Chain::resume(head.session.clone(), head.count, head.hash, head.last_at);
            chains.ends.insert(head.session, chain);
        }
        chains
    }

    /// Gives a draft its place.
    pub(super) fn seal(&mut self, draft: Draft) -> Event {
        self.events += 1;
        let session = draft.session_id.clone();
        let end = self
            .ends
            .entry(session.clone())
            .or_insert_with(|| Chain::new(session));
        end.seal(draft)
    }

    /// Sessions on record.
    pub(super) fn sessions(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Events on record.
    pub(super) fn events(&self) -> u64 {
        self.events
    }
}
