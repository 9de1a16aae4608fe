//! Effects of time alone: clock steps, due requests, and sessions that are ended because they sent nothing
//! for a long time.

use super::Actor;
use crate::base::clock::Timestamp;
use crate::base::limits::{ABANDONED_CHECK_INTERVAL, ABANDONED_TIME};
use crate::engine::command::{DeliveryTime, EndSession, EngineCommand, FinalStatus, ReplyId};
use crate::runtime::snapshot::ClockStepAt;

/// Reply number of the console's own commands: no agent waits for the reply.
const UNUSED_REPLY: ReplyId = ReplyId(u64::MAX);

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

    /// Returns the time of the next check for abandoned sessions, if there are sessions.
    pub(super) fn abandoned_due(&mut self) -> Option<Timestamp> {
        if self.store_failure.is_some() || self.engine.session_ids().next().is_none() {
            return None;
        }
        let now = self.clock.now();
        let last = *self.abandoned_checked.get_or_insert(now);
        Some(last.plus(ABANDONED_CHECK_INTERVAL))
    }

    /// Ends all abandoned sessions.
    pub(super) async fn end_abandoned(&mut self) {
        // A clock step forward must not end sessions.
        self.check_clock().await;
        let now = self.clock.now();
        self.abandoned_checked = Some(now);
        if self.store_failure.is_some() {
            return;
        }
        for session in self.engine.abandoned_sessions(now) {
            let hours = ABANDONED_TIME.as_secs() / 3600;
            let end = EndSession {
                delivery: DeliveryTime::Later,
                session,
                status: FinalStatus::Timeout,
                summary: Some(format!("the agent sent nothing for {hours} hours")),
            };
            let effects = self
                .engine
                .handle(EngineCommand::EndSession(UNUSED_REPLY, end), now);
            self.execute(effects);
        }
    }
}
