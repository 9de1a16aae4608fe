//! Snapshots for the screen.

use std::sync::Arc;

use super::super::snapshot::{OperatorActs, RecordSummary, RuntimeSnapshot, StoreState};
use super::Actor;

impl Actor {
    /// Publishes the changes, unless some are not durable yet: then a later write publishes them.
    pub(super) fn publish_changes(&mut self) {
        if self.changed && self.writes.is_empty() && self.pending.batch.is_empty() {
            let picture = self.make_snapshot();
            self.publish(picture);
        }
    }

    /// Publishes a snapshot. It may be older than the current state of the store, so that state is not
    /// taken from it: a published stall stays until the watchdog ends it.
    pub(super) fn publish(&self, mut picture: Arc<RuntimeSnapshot>) {
        let shortage = self.store.known_shortage();
        self.snapshots.send_modify(|last| {
            let shown = Arc::make_mut(&mut picture);
            shown.revision = last.revision + 1;
            shown.store = shown.store.after_last(&last.store, shortage.as_deref());
            *last = picture;
        });
    }

    /// Publishes a full disk as soon as a commit failed for it.
    pub(super) fn publish_shortage(&self) {
        let Some(shortage) = self.store.known_shortage() else {
            return;
        };
        self.snapshots.send_if_modified(|picture| {
            let store = picture.store.after_last(&picture.store, Some(&shortage));
            if store == picture.store {
                return false;
            }
            let shown = Arc::make_mut(picture);
            shown.revision += 1;
            shown.store = store;
            true
        });
    }

    pub(super) fn make_snapshot(&mut self) -> Arc<RuntimeSnapshot> {
        self.changed = false;
        let last = Arc::clone(&self.snapshots.borrow());
        let revision = last.revision + 1;
        let mut chain = RecordSummary {
            sessions: self.ledger.chains().sessions(),
            events: self.ledger.chains().events(),
            verdict: self.verdict.clone(),
            head: self.head_state(),
        };
        let Some(what) = &self.store_failure else {
            self.live.refresh(&self.engine);
            return Arc::new(RuntimeSnapshot {
                revision,
                operator: self.console_operator.operator.clone(),
                access: self.console_operator.access,
                atlases: self.live.atlases.clone(),
                loaded: self.engine.shared_atlases(),
                load_info: self.in_force.clone(),
                watched: self.watching.summary(&self.engine, self.clock.now()),
                threads: self.threads.all(),
                sessions: self.live.sessions.clone(),
                held: self.live.held.clone(),
                decided: self.live.decided.clone(),
                drafts: Arc::clone(&self.drafts),
                thread_drafts: self.threads.drafts(),
                operator_acts: OperatorActs {
                    overruled: self.engine.overruled_denials(),
                    acknowledged_fault: self.engine.acknowledged_fault().cloned(),
                },
                chain,
                store: StoreState::Ready,
                undelivered: self.dropped,
                clock_step: self.clock_moved,
                threads_full_at: self.threads.full_at(),
                ran_unasked: self.ran_unasked.clone(),
                distrusted: self.distrusted.clone(),
                head_file_missing: self.store.was_head_missing(),
                notices: self.outbox.state(),
            });
        };
        // The engine is ahead of the disk and stays ahead. The screen shows what was durable.
        chain.sessions = last.chain.sessions;
        chain.events = last.chain.events;
        Arc::new(RuntimeSnapshot {
            revision,
            chain,
            store: StoreState::Poisoned { what: what.clone() },
            undelivered: self.dropped,
            ..(*last).clone()
        })
    }
}
