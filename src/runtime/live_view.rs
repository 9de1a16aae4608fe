//! Sessions, held requests and decisions for the screen, updated incrementally.
//!
//! Contract: after [`LiveView::refresh`] the view equals one that is built from the whole engine. Every
//! change of a session or a held request is an effect that names it, so only named items are refreshed. A
//! new set of Atlases changes what every session may do: then the whole view is rebuilt.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::snapshot::{AtlasSummary, SessionList, SessionSummary};
use crate::base::clock::Timestamp;
use crate::base::id::{HeldRequestId, SessionId};
use crate::engine::Engine;
use crate::engine::command::{SettledRequest, StateChange, StateKind};
use crate::engine::held::Held;

/// The view, and its outdated parts.
#[derive(Debug, Default)]
pub(super) struct LiveView {
    pub(super) atlases: Vec<AtlasSummary>,
    pub(super) sessions: SessionList,
    pub(super) held: Vec<Arc<Held>>,
    pub(super) decided: Vec<Arc<SettledRequest>>,
    /// Start of each listed session: half of its key in the list.
    started: HashMap<SessionId, Timestamp>,
    /// Opening of each listed request: half of its key in the list.
    opened: HashMap<HeldRequestId, Timestamp>,
    stale_sessions: BTreeSet<SessionId>,
    stale_held: BTreeSet<HeldRequestId>,
    stale_decided: bool,
}

impl LiveView {
    /// Builds the view of an engine.
    pub(super) fn new(engine: &Engine) -> Self {
        let mut view = Self::default();
        view.rebuild(engine);
        view
    }

    /// Notes a change of state.
    pub(super) fn note_change(&mut self, change: &StateChange) {
        match change.kind {
            StateKind::Session => self.stale_sessions.extend(change.key.parse()),
            StateKind::Held => self.stale_held.extend(change.key.parse()),
            StateKind::Permit
            | StateKind::Counter
            | StateKind::Usage
            | StateKind::Overruled
            | StateKind::Fault => {}
        }
    }

    /// Notes that a held request was decided.
    pub(super) fn note_decided(&mut self) {
        self.stale_decided = true;
    }

    /// Rebuilds the view after other Atlases were loaded.
    pub(super) fn rebuild(&mut self, engine: &Engine) {
        let atlases = engine.atlases();
        self.atlases = atlases.iter().map(AtlasSummary::of).collect();
        self.sessions = SessionList::default();
        self.held.clear();
        self.started.clear();
        self.opened.clear();
        self.stale_sessions = engine.session_ids().cloned().collect();
        self.stale_held = engine.held_ids().cloned().collect();
        self.stale_decided = true;
        self.refresh(engine);
    }

    /// Refreshes the outdated parts.
    pub(super) fn refresh(&mut self, engine: &Engine) {
        for id in std::mem::take(&mut self.stale_sessions) {
            self.refresh_session(engine, id);
        }
        for id in std::mem::take(&mut self.stale_held) {
            self.refresh_held(engine, id);
        }
        if std::mem::take(&mut self.stale_decided) {
            self.decided = engine.settled().cloned().collect();
        }
        #[cfg(debug_assertions)]
        self.check(engine);
    }

    /// Compares the view with the whole engine: a change that no effect named is a bug.
    #[cfg(debug_assertions)]
    fn check(&self, engine: &Engine) {
        let sessions = engine.sessions().into_iter();
        let sessions = sessions.map(|session| SessionSummary::of(session, engine.atlases()));
        debug_assert!(self.sessions.iter().cloned().eq(sessions));
        debug_assert_eq!(self.held, engine.held());
        debug_assert!(self.decided.iter().eq(engine.settled()));
    }

    fn refresh_session(&mut self, engine: &Engine, id: SessionId) {
        let known = self.started.get(&id).copied();
        let session = engine.session(&id);
        let starts = session.map(|session| session.started_at);
        if let Some(started_at) = known.filter(|started_at| starts != Some(*started_at)) {
            self.sessions.remove(started_at, id.clone());
            self.started.remove(&id);
        }
        if let Some(session) = session {
            let summary = SessionSummary::of(session, engine.atlases());
            self.sessions.insert(summary);
            self.started.insert(id, session.started_at);
        }
    }

    fn refresh_held(&mut self, engine: &Engine, id: HeldRequestId) {
        let find = |list: &[Arc<Held>], opened_at: Timestamp| {
            list.binary_search_by(|other| {
                held_order(other).cmp(&(opened_at, id.as_str().len(), &id))
            })
        };
        if let Some(opened_at) = self.opened.remove(&id)
            && let Ok(at) = find(&self.held, opened_at)
        {
            self.held.remove(at);
        }
        if let Some(request) = engine.held_request(&id) {
            let opened_at = request.opened_at;
            let at = find(&self.held, opened_at).unwrap_or_else(|at| at);
            self.held.insert(at, request);
            self.opened.insert(id, opened_at);
        }
    }
}

/// Returns the sort key of held requests: in the order of requests; identifiers count up.
fn held_order(held: &Held) -> (Timestamp, usize, &HeldRequestId) {
    (held.opened_at, held.id.as_str().len(), &held.id)
}
