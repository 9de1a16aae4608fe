//! The picture that the screen is shown.

use std::sync::Arc;

use super::super::snapshot::{Acts, ChainState, Snapshot, StoreState};
use super::Actor;

impl Actor {
    /// Shows what changed, unless something in it is not durable yet: then a later write does.
    pub(super) fn show(&mut self) {
        if self.changed && self.writes.is_empty() && self.pending.batch.is_empty() {
            let picture = self.picture();
            self.snapshots.send_replace(picture);
        }
    }

    pub(super) fn picture(&mut self) -> Arc<Snapshot> {
        self.changed = false;
        let last = Arc::clone(&self.snapshots.borrow());
        let revision = last.revision + 1;
        let mut chain = ChainState {
            sessions: self.ledger.chains().sessions(),
            events: self.ledger.chains().events(),
            verdict: self.verdict.clone(),
            head: self.head(),
        };
        let Some(what) = &self.poison else {
            self.live.refresh(&self.engine);
            return Arc::new(Snapshot {
                revision,
                operator: self.seat.operator.clone(),
                access: self.seat.access,
                atlases: self.live.atlases.clone(),
                loaded: self.engine.shared_atlases(),
                in_force: self.in_force.clone(),
                watched: self.watching.picture(&self.engine, self.clock.now()),
                threads: self.threads.all(),
                sessions: self.live.sessions.clone(),
                held: self.live.held.clone(),
                decided: self.live.decided.clone(),
                drafts: Arc::clone(&self.drafts),
                thread_drafts: self.threads.drafts(),
                acts: Acts {
                    overruled: self.engine.overruled(),
                    known: self.engine.known_fault().cloned(),
                },
                chain,
                // The watch over the store says when a stall ends.
                store: match &last.store {
                    StoreState::Stalled { what } => StoreState::Stalled { what: what.clone() },
                    StoreState::Ready | StoreState::Poisoned { .. } => StoreState::Ready,
                },
                dropped: self.dropped,
                clock_moved: self.clock_moved,
                threads_full_at: self.threads.full_at(),
                distrusted: self.distrusted.clone(),
                notices: self.outbox.state(),
            });
        };
        // The engine is ahead of what is on disk and stays so. What is shown is what was durable.
        chain.sessions = last.chain.sessions;
        chain.events = last.chain.events;
        Arc::new(Snapshot {
            revision,
            chain,
            store: StoreState::Poisoned { what: what.clone() },
            dropped: self.dropped,
            ..(*last).clone()
        })
    }
}
