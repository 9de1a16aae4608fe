//! Comparison of the wall clock with the steady clock, and the handling of clock steps.

use super::Actor;
use crate::engine::command::EngineCommand;
use crate::runtime::snapshot::ClockStepAt;

impl Actor {
    /// Detects a step of the wall clock. After a step, all timers keep their remaining time.
    pub(super) async fn check_clock(&mut self) {
        let Some(step) = self.steps.check(self.clock.parse()) else {
            return;
        };
        tracing::warn!(%step, "the wall clock was set");
        let now = self.clock.now();
        self.clock_moved = Some(ClockStepAt { step, at: now });
        self.changed = true;
        self.ledger.clock_moved(step);
        self.outbox.clock_moved(step);
        // After a failed write nothing is decided any more, not even by time.
        if self.store_failure.is_some() {
            self.publish_changes();
            return;
        }
        // INVARIANT: the engine sets the deadline of every held request again.
        self.deadlines.clear();
        let effects = self.engine.handle(EngineCommand::ClockMoved(step), now);
        self.execute(effects);
        // Unsealed records come from before and after the step: they must be sealed soon.
        if self.store_failure.is_none() {
            self.seal_all().await;
        }
    }

    /// Expires all due requests.
    pub(super) async fn expire_due(&mut self) {
        // A clock step forward must not expire requests.
        self.check_clock().await;
        let now = self.clock.now();
        while let Some((at, gate)) = self.deadlines.first().cloned() {
            if at > now {
                return;
            }
            self.deadlines.pop_first();
            if self.store_failure.is_none() {
                let effects = self
                    .engine
                    .handle(EngineCommand::DeadlineReached(gate), now);
                self.execute(effects);
            }
        }
    }
}
