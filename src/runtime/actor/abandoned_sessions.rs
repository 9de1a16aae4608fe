//! Abandoned sessions: sessions without a call for a long time are ended as timed out, so that none stays
//! open forever.

use super::Actor;
use crate::base::clock::Timestamp;
use crate::base::limits::{ABANDONED_CHECK_INTERVAL, ABANDONED_TIME};
use crate::engine::command::{DeliveryTime, EndSession, EngineCommand, FinalStatus, ReplyId};

/// Reply number of the console's own commands: no agent waits for the reply.
const UNUSED_REPLY: ReplyId = ReplyId(u64::MAX);

impl Actor {
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
