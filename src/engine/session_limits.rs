//! Bounds on the number of live sessions.
//!
//! The processes of one terminal or service may have [`MAX_SESSIONS_PER_PEER`] sessions. When
//! [`MAX_SESSIONS`] are live in all, idle sessions of the callers with the most sessions are ended to make
//! room, the longest idle first: a caller with few sessions loses none to a caller with many. An agent whose
//! session was ended starts another one. A session with a held or running request is never ended for this.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::limits::{IDLE_SESSIONS_PER_EVICTION, MAX_SESSIONS, MAX_SESSIONS_PER_PEER};
use crate::trace::event::FinalStatus;

use super::State;
use super::command::{DenialReply, DenyCode, EndSession, StartSession};
use super::session::Session;
use super::transaction::Transaction;

/// Returns the group of callers whose sessions are counted together.
pub(super) fn peer(start: &StartSession) -> Option<String> {
    let group = start.owner.as_ref()?.from.as_ref()?.limit_group();
    group.map(|group| group.to_string())
}

impl State {
    /// Adds a live session.
    pub(super) fn add_session(&mut self, session: Session) {
        if let Some(peer) = &session.peer {
            *self.peers.entry(peer.clone()).or_default() += 1;
        }
        self.sessions.insert(session.id.clone(), session);
    }

    /// Removes an ended session.
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

impl Transaction<'_> {
    /// Makes room for one more session. Fails if there is none.
    pub(super) fn make_room(&mut self, start: &StartSession) -> Result<(), DenialReply> {
        let own = peer(start).and_then(|peer| self.engine.state.peers.get(&peer));
        if own.is_some_and(|count| *count >= MAX_SESSIONS_PER_PEER) {
            return Err(too_many(format!(
                "the processes of this terminal or service already have {MAX_SESSIONS_PER_PEER} open sessions"
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
            "{MAX_SESSIONS} sessions are open, and none is idle"
        )))
    }

    /// Ends idle sessions of the callers that have the most, the longest idle first.
    fn end_idle_sessions(&mut self) {
        let mut idle = self.idle_sessions();
        let mut ended = Vec::new();
        // Sessions of unknown callers count as one each. They are ended last, like those of a caller with one
        // session.
        let mut counts: BTreeMap<_, _> = idle.keys().map(|peer| (peer.clone(), 1)).collect();
        for (peer, count) in &self.engine.state.peers {
            counts.insert(Some(peer.clone()), *count);
        }
        while ended.len() < IDLE_SESSIONS_PER_EVICTION {
            let largest = idle.keys().max_by_key(|peer| counts.get(*peer)).cloned();
            let Some(peer) = largest else { break };
            let Some(session) = idle.get_mut(&peer).and_then(Vec::pop) else {
                idle.remove(&peer);
                continue;
            };
            if let (Some(count), Some(_)) = (counts.get_mut(&peer), &peer) {
                *count = count.saturating_sub(1);
            }
            ended.push(session);
        }
        for (since, session) in ended {
            let end = EndSession {
                delivery: crate::engine::command::DeliveryTime::Later,
                session,
                status: FinalStatus::Timeout,
                summary: Some(format!("ended to make room: idle since {since}")),
            };
            self.finish_session(end);
        }
    }

    /// Returns the sessions without waiting or running requests, by caller, the longest idle last.
    fn idle_sessions(&self) -> BTreeMap<Option<String>, Vec<(Timestamp, SessionId)>> {
        let state = &self.engine.state;
        let held = state.held.values().map(|waiting| &waiting.held.session);
        let busy: BTreeSet<_> = held.chain(state.parked.sessions()).collect();
        let mut idle: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for session in state.sessions.values() {
            if session.running.is_empty() && !busy.contains(&session.id) {
                let since = session.last_at.unwrap_or(session.started_at);
                let of_peer = idle.entry(session.peer.clone()).or_default();
                of_peer.push((since, session.id.clone()));
            }
        }
        for sessions in idle.values_mut() {
            sessions.sort_unstable_by(|one, other| other.cmp(one));
        }
        idle
    }
}

fn too_many(reason: String) -> DenialReply {
    DenialReply {
        code: DenyCode::Overload,
        reason,
        help: Some("end sessions that are no longer needed with session.end".to_owned()),
        gate: None,
    }
}
