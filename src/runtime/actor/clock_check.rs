//! Comparison of the wall clock with the steady clock, and the handling of clock steps.

use super::Actor;
use crate::engine::command::EngineCommand;
use crate::runtime::snapshot::ClockStepAt;

impl Actor {
    /// Detects a step of the wall clock. After a step, all timers keep their remaining time.
    pub(super) async fn check_clock(&mut self) {
        let Some(step) = self.steps.check(self.clock.read()) else {
            return;
        };
        tracing::warn!(%step, "the wall clock was set");
        let now = self.clock.now();
        self.clock_moved = Some(ClockStepAt { step, at: now });
        self.changed = true;
        self.ledger.clock_moved(step);
        self.outbox.clock_moved(step);
        // After a failed write nothing is decided any more, not even by time.
        if self.poison.is_some() {
            self.show();
            return;
        }
        // INVARIANT: the engine sets the deadline of every held request again.
        self.deadlines.clear();
        let effects = self.engine.handle(EngineCommand::ClockMoved(step), now);
        self.carry_out(effects);
        // Unsealed records come from before and after the step: they must be sealed soon.
        if self.poison.is_none() {
            self.seal_all().await;
        }
    }

    /// Expires all due requests.
    pub(super) async fn wake(&mut self) {
        // A clock step forward must not expire requests.
        self.check_clock().await;
        let now = self.clock.now();
        while let Some((at, gate)) = self.deadlines.first().cloned() {
            if at > now {
                return;
            }
            self.deadlines.pop_first();
            if self.poison.is_none() {
                let effects = self
                    .engine
                    .handle(EngineCommand::DeadlineReached(gate), now);
                self.carry_out(effects);
            }
        }
    }
}
