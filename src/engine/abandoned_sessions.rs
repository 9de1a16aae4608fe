//! Sessions whose agents have been gone for a long time.

use super::Engine;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::limits::{ABANDONED_RUN_TIME, ABANDONED_TIME};

impl Engine {
    /// Returns the sessions whose agent was silent for [`ABANDONED_TIME`] and that have no held request.
    #[must_use]
    pub fn abandoned_sessions(&self, now: Timestamp) -> Vec<SessionId> {
        let ids: Vec<SessionId> = self.session_ids().cloned().collect();
        let sessions = ids.into_iter().filter(|id| {
            let Some(session) = self.session(id) else {
                return false;
            };
            let limit = if session.running.is_empty() {
                ABANDONED_TIME
            } else {
                ABANDONED_RUN_TIME
            };
            let last = session.last_at.unwrap_or(session.started_at);
            now.since(last) >= limit
        });
        let held = self.held();
        sessions
            .filter(|id| held.iter().all(|held| held.session != *id))
            .collect()
    }
}
