//! Bounds on the number of live sessions.
//!
//! One process at the socket may have [`MAX_SESSIONS_PER_PEER`] of them. When there are [`MAX_SESSIONS`] in all,
//! the longest idle are ended to make room: a newcomer always gets in, and an agent whose session was ended
//! starts another one. A session with a held or running request is never ended for that.

use std::collections::BTreeSet;

use crate::base::id::SessionId;
use crate::base::limits::{MAX_SESSIONS, MAX_SESSIONS_PER_PEER, SESSIONS_ENDED_TOGETHER};
use crate::trace::event::FinalStatus;

use super::State;
use super::command::{Caller, Denied, DenyCode, EndSession, StartSession};
use super::session::Session;
use super::turn::Turn;

/// The caller whose sessions are counted together: a process at the socket, or everything that comes by HTTP.
pub(super) fn peer(start: &StartSession) -> Option<String> {
    match start.owner.as_ref()?.from.as_ref()? {
        Caller::Socket { uid, pid } => pid.map(|pid| format!("{uid}/{pid}")),
        Caller::Http(_) => Some("http".to_owned()),
    }
}

impl State {
    /// Adds a live session.
    pub(super) fn add_session(&mut self, session: Session) {
        if let Some(peer) = &session.peer {
            *self.peers.entry(peer.clone()).or_default() += 1;
        }
        self.sessions.insert(session.id.clone(), session);
    }

    /// Removes a session that is over.
    pub(super) fn remove_session(&mut self, session: &SessionId) {
        let peer = self.sessions.remove(session).and_then(|over| over.peer);
        let Some(peer) = peer else { return };
        if let Some(count) = self.peers.get_mut(&peer) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.peers.remove(&peer);
            }
        }
    }
}

impl Turn<'_> {
    /// Makes room for one more session, or tells why there is none.
    pub(super) fn make_room(&mut self, start: &StartSession) -> Result<(), Denied> {
        let own = peer(start).and_then(|peer| self.engine.state.peers.get(&peer));
        if own.is_some_and(|count| *count >= MAX_SESSIONS_PER_PEER) {
            return Err(too_many(format!(
                "this process has {MAX_SESSIONS_PER_PEER} open sessions"
            )));
        }
        if self.engine.state.sessions.len() < MAX_SESSIONS {
            return Ok(());
        }
        self.end_idle_sessions();
        if self.engine.state.sessions.len() < MAX_SESSIONS {
            return Ok(());
        }
        Err(too_many(format!(
            "{MAX_SESSIONS} sessions are open, and all of them wait or work"
        )))
    }

    /// Ends the sessions that have been idle longest.
    fn end_idle_sessions(&mut self) {
        let state = &self.engine.state;
        let held = state.held.values().map(|waiting| &waiting.held.session);
        let busy: BTreeSet<_> = held.chain(state.parked.sessions()).collect();
        let idle = state
            .sessions
            .values()
            .filter(|session| session.running.is_empty() && !busy.contains(&session.id));
        let mut idle: Vec<_> = idle
            .map(|session| {
                (
                    session.last_at.unwrap_or(session.started_at),
                    session.id.clone(),
                )
            })
            .collect();
        idle.sort_unstable();
        for (since, session) in idle.into_iter().take(SESSIONS_ENDED_TOGETHER) {
            let end = EndSession {
                delivery: crate::engine::command::GivenWhen::Later,
                session,
                status: FinalStatus::Timeout,
                summary: Some(format!("ended to make room: idle since {since}")),
            };
            self.finish_session(end);
        }
    }
}

fn too_many(reason: String) -> Denied {
    Denied {
        code: DenyCode::Overload,
        reason,
        help: Some("end sessions that are no longer needed with session.end".to_owned()),
        gate: None,
    }
}
