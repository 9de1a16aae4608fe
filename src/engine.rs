//! The decision engine: a pure state machine that turns commands into effects.
//!
//! `Engine::handle(command, now) -> effects` performs no I/O, reads no clock and uses no randomness: equal
//! commands at equal times give equal effects, byte for byte. The runtime executes the effects and feeds
//! their results back as commands.
//!
//! Contract: an `Allowed` reply exists only after every gate in the way was passed. Anything unclear is
//! denied, with a reason.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::atlas::Atlas;
use crate::atlas::document::TraceLevel;
use crate::atlas::recording;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{HeldRequestId, IdSource, SessionId};
use crate::base::limits::RECENT_DECISIONS;

use admission::access::RequestRates;
use admission::misuse::MisuseTallies;
use command::{
    ActionRequest, Effect, EngineCommand, OverruledDenial, RecordFault, ReplyId, SettledRequest,
};
use evaluation::usage::Usage;
use extensions::Extensions;
use extensions::suspension::SuspendedCommands;
use gates::queue::{HeldQueue, ParkedCalls, PermitIndex};
use held::{Held, request_hash};
use injection::cache::Caches;
use records::attempts::PendingAttempt;
use resolution::IssuedResolution;
use session::Session;
use sessions::ended_sessions::EndedSessions;
use transaction::Transaction;

mod admission;
pub mod checkpoint;
pub mod command;
mod evaluation;
pub mod explanation;
pub mod extensions;
mod gates;
mod injection;
mod pipeline;
mod records;
mod requests;
mod sessions;
mod transaction;

#[cfg(test)]
mod tests;

pub use evaluation::{judgement, risk, usage};
pub use explanation::shadow;
pub use extensions::consultation;
pub use gates::{answer, approval, held};
pub use injection::withholding;
pub use records::notice;
pub use requests::resolution;
pub use sessions::restoration::{RestoreError, held_in};
pub use sessions::{reload, session};

/// The decision engine: loaded Atlases, known extensions and all mutable state.
pub struct Engine {
    atlases: Arc<[Atlas]>,
    extensions: Extensions,
    atlas_hash: Digest,
    /// Level of detail that decides which events are stored.
    level: TraceLevel,
    state: State,
    ids: Box<dyn IdSource>,
}

/// All mutable state of the engine.
#[derive(Debug, Default)]
pub(crate) struct State {
    sessions: BTreeMap<SessionId, Session>,
    /// Number of live sessions per group of callers that started them.
    peers: BTreeMap<String, usize>,
    /// Ended sessions. Their identifiers are never used again.
    ended: EndedSessions,
    held: HeldQueue,
    permits: PermitIndex,
    parked: ParkedCalls,
    /// Replies that deliver no contexts, because their callers cannot show them to the agent. Each one is kept until it
    /// is sent or its caller disconnects.
    deferred_replies: BTreeMap<ReplyId, SessionId>,
    /// Attempts that wait for extensions, by the caller that waits.
    pending_attempts: BTreeMap<ReplyId, PendingAttempt>,
    usage: Usage,
    request_rates: RequestRates,
    misuse: MisuseTallies,
    /// Resolutions that agents can still rely on, in the order issued. They are kept in memory only: after a
    /// restart an agent asks again.
    resolutions: Vec<IssuedResolution>,
    caches: Caches,
    suspension: SuspendedCommands,
    recent_outcomes: VecDeque<Arc<SettledRequest>>,
    /// Overruled denials that no operator has acknowledged yet.
    overruled: BTreeMap<HeldRequestId, OverruledDenial>,
    /// Fault of the record that an operator has acknowledged.
    acknowledged_fault: Option<RecordFault>,
    gates_opened: u64,
}

impl Engine {
    /// Creates an engine without any state.
    #[must_use]
    pub fn new(atlases: Vec<Atlas>, ids: Box<dyn IdSource>) -> Self {
        let atlas_hash = combined_hash(&atlases);
        let level = recording::trace_level(&atlases);
        Self {
            atlases: atlases.into(),
            extensions: Extensions::default(),
            atlas_hash,
            level,
            state: State::default(),
            ids,
        }
    }

    /// Sets the extensions that can be called. A new engine has none.
    pub fn set_extensions(&mut self, extensions: Extensions) {
        self.extensions = extensions;
    }

    /// Handles one command and returns its effects, in the order in which the runtime must execute them.
    pub fn handle(&mut self, command: EngineCommand, now: Timestamp) -> Vec<Effect> {
        let mut tx = Transaction::new(self, now);
        pipeline::handle_command(&mut tx, command);
        tx.finish()
    }

    /// Returns a session that has not ended.
    #[must_use]
    pub fn session(&self, session: &SessionId) -> Option<&Session> {
        self.state.sessions.get(session)
    }

    /// Returns the identifiers of the sessions that have not ended.
    pub fn session_ids(&self) -> impl Iterator<Item = &SessionId> {
        self.state.sessions.keys()
    }

    /// Returns a held request.
    #[must_use]
    pub fn held_request(&self, held_id: &HeldRequestId) -> Option<Arc<Held>> {
        let waiting = self.state.held.get(held_id)?;
        Some(Arc::clone(&waiting.held))
    }

    /// Returns the identifiers of the held requests.
    pub fn held_ids(&self) -> impl Iterator<Item = &HeldRequestId> {
        self.state.held.keys()
    }

    /// Returns the held requests, in the order they were asked.
    #[must_use]
    pub fn held(&self) -> Vec<Arc<Held>> {
        let mut held: Vec<_> = self
            .state
            .held
            .values()
            .map(|waiting| Arc::clone(&waiting.held))
            .collect();
        held.sort_by(|a, b| {
            (a.opened_at, a.id.as_str().len(), &a.id).cmp(&(
                b.opened_at,
                b.id.as_str().len(),
                &b.id,
            ))
        });
        held
    }

    /// Returns the callers that wait for held requests which `request` could join.
    ///
    /// A runtime that finds one of these callers gone reports that to the engine before it passes `request`
    /// on.
    #[must_use]
    pub fn joinable_replies(&self, request: &ActionRequest) -> Vec<ReplyId> {
        if self.state.held.count_of(&request.session) == 0 {
            return Vec::new();
        }
        let hash = request_hash(&request.session, &request.action, &request.params);
        let twins = self.state.held.of_request(&hash);
        twins
            .flat_map(|twin| twin.reply_ids.iter().copied())
            .collect()
    }

    /// Returns the sessions that have not ended, in the order they started.
    #[must_use]
    pub fn sessions(&self) -> Vec<&Session> {
        let mut sessions: Vec<_> = self.state.sessions.values().collect();
        sessions.sort_by_key(|session| session.started_at);
        sessions
    }

    /// Returns the outcomes of earlier held requests, newest first.
    pub fn settled(&self) -> impl Iterator<Item = &Arc<SettledRequest>> {
        self.state.recent_outcomes.iter()
    }

    /// Returns the overruled denials that no operator has acknowledged, oldest first.
    #[must_use]
    pub fn overruled_denials(&self) -> Vec<OverruledDenial> {
        let mut overruled: Vec<_> = self.state.overruled.values().cloned().collect();
        overruled.sort_by_key(|denial| denial.at);
        overruled
    }

    /// Returns the fault of the record that an operator has acknowledged.
    #[must_use]
    pub fn acknowledged_fault(&self) -> Option<&RecordFault> {
        self.state.acknowledged_fault.as_ref()
    }

    /// Returns the loaded Atlases.
    #[must_use]
    pub fn atlases(&self) -> &[Atlas] {
        &self.atlases
    }

    /// Returns the loaded Atlases as a shared pointer, for callers that keep them.
    #[must_use]
    pub fn shared_atlases(&self) -> Arc<[Atlas]> {
        Arc::clone(&self.atlases)
    }
}

impl State {
    fn add_outcome(&mut self, decided: Arc<SettledRequest>) {
        self.recent_outcomes.push_front(decided);
        self.recent_outcomes.truncate(RECENT_DECISIONS);
    }
}

/// Returns one digest for all given Atlases. A decision under one set does not count under another.
pub(crate) fn combined_hash(atlases: &[Atlas]) -> Digest {
    let texts: Vec<_> = atlases.iter().map(|atlas| atlas.hash.to_string()).collect();
    Digest::of_parts(texts.iter().map(String::as_bytes))
}
