//! Ended sessions, whose names are never used again, and sessions that their agents abandoned.
//!
//! Only the newest are kept in memory. Before the runtime passes on a command about a session that is not
//! live, it looks the name up in the record and reports the result with [`Engine::mark_ended`]. An old name
//! is therefore refused as reliably as a new one. The newest are kept because their last records may not be
//! on disk yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::limits::{ABANDONED_RUN_TIME, ABANDONED_TIME, MAX_ENDED_SESSIONS};
use crate::trace::event::SessionEnded;

use crate::engine::Engine;

/// The newest ended sessions.
#[derive(Debug, Default)]
pub(crate) struct EndedSessions {
    /// Each with its end, where that is known.
    names: BTreeMap<SessionId, Option<Arc<SessionEnded>>>,
    /// The oldest first.
    order: VecDeque<SessionId>,
}

impl EndedSessions {
    pub(crate) fn contains(&self, session: &SessionId) -> bool {
        self.names.contains_key(session)
    }

    /// The end of a session, where it is known.
    pub(crate) fn end_of(&self, session: &SessionId) -> Option<&Arc<SessionEnded>> {
        self.names.get(session)?.as_ref()
    }

    /// Tells whether the end of a session is known.
    pub(crate) fn knows_end(&self, session: &SessionId) -> bool {
        self.end_of(session).is_some()
    }

    /// Adds a name. A full set drops the oldest name.
    pub(crate) fn insert(&mut self, session: SessionId) {
        if !self.contains(&session) {
            self.add(session, None);
        }
    }

    /// Adds a name with the end of its session; the oldest makes room.
    pub(crate) fn insert_end(&mut self, session: SessionId, ended: Arc<SessionEnded>) {
        match self.names.get_mut(&session) {
            Some(known) => *known = Some(ended),
            None => self.add(session, Some(ended)),
        }
    }

    fn add(&mut self, session: SessionId, ended: Option<Arc<SessionEnded>>) {
        self.names.insert(session.clone(), ended);
        self.order.push_back(session);
        while self.order.len() > MAX_ENDED_SESSIONS {
            if let Some(oldest) = self.order.pop_front() {
                self.names.remove(&oldest);
            }
        }
    }
}

impl FromIterator<SessionId> for EndedSessions {
    fn from_iter<I: IntoIterator<Item = SessionId>>(sessions: I) -> Self {
        let mut ended = Self::default();
        for session in sessions {
            ended.insert(session);
        }
        ended
    }
}

impl Engine {
    /// Returns whether the engine knows the session, as a live or an ended one.
    #[must_use]
    pub fn knows_session(&self, session: &SessionId) -> bool {
        self.state.sessions.contains_key(session) || self.state.ended.contains(session)
    }

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

    /// Marks a session as ended: the record has it, and it is not live.
    pub fn mark_ended(&mut self, session: SessionId) {
        if !self.state.sessions.contains_key(&session) {
            self.state.ended.insert(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_ended_sessions_are_kept() {
        let name = |n: usize| -> SessionId { format!("s-{n}").parse().unwrap() };
        let mut ended: EndedSessions = (0..MAX_ENDED_SESSIONS).map(name).collect();
        assert!(ended.contains(&name(0)));
        ended.insert(name(0));
        assert!(
            ended.contains(&name(0)),
            "a name that is known takes no room"
        );
        ended.insert(name(MAX_ENDED_SESSIONS));
        assert!(!ended.contains(&name(0)));
        assert!(ended.contains(&name(1)));
        assert!(ended.contains(&name(MAX_ENDED_SESSIONS)));
        assert_eq!(ended.names.len(), MAX_ENDED_SESSIONS);
    }
}
