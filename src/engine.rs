//! Decisions. A pure state machine: what happened goes in, what must happen comes out.
//!
//! `Engine::handle(command, now) -> effects` performs no I/O, reads no clock and rolls no dice: the
//! same commands at the same times give the same effects, byte for byte. The runtime carries the
//! effects out and feeds what comes of them back as commands.
//!
//! Contract: an `Allowed` reply exists only after every gate in the way was passed. Whatever is
//! unclear is denied, with a reason.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::atlas::Atlas;
use crate::atlas::document::TraceLevel;
use crate::atlas::recording;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{GateId, IdSource, SessionId, SpanId, TraceId};
use crate::base::limits::RECENT_DECISIONS;

use access::Askers;
use begin::Begun;
use cache::Caches;
use command::{ActionRequest, AskId, Command, Decided, Effect, Given, Overruled, RecordFault};
use ended::EndedSessions;
use extension::Extensions;
use held::{Held, PassEffects, request_hash};
use queue::{Parked, Permits, Queue};
use resolve::Issued;
use session::Session;
use suspend::Suspension;
use tried::Tries;
use turn::Turn;
use usage::Usage;
use withhold::Withheld;

mod abandoned;
mod access;
mod action;
pub mod answer;
pub mod approval;
mod attempt;
mod begin;
mod cache;
pub mod checkpoint;
mod clock_moved;
pub mod command;
mod complete;
mod consider;
pub mod consult;
mod context;
mod customs;
mod decide;
mod deliver;
mod deny;
mod ended;
mod evaluate;
pub mod explain;
mod explicit;
pub mod extension;
mod fired;
mod gate;
mod give;
mod handle;
mod hear;
pub mod held;
mod interval;
mod invalid;
pub mod judge;
mod lifecycle;
mod moment;
pub mod notice;
mod operate;
mod park;
mod pass_gates;
mod policy;
mod queue;
mod recorded;
pub mod reload;
mod report;
pub mod resolve;
mod respond;
mod restore;
pub mod risk;
mod said;
mod second;
pub mod session;
mod session_limits;
mod settle;
pub mod shade;
mod successor;
mod suspend;
mod tried;
mod turn;
pub mod usage;
mod validate;
pub mod withhold;

#[cfg(test)]
mod tests;

pub use restore::{RestoreError, held_in};

/// The engine.
pub struct Engine {
    atlases: Arc<[Atlas]>,
    extensions: Extensions,
    atlas_hash: Digest,
    /// Which events are stored.
    level: TraceLevel,
    state: State,
    ids: Box<dyn IdSource>,
}

/// Everything that changes.
#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<SessionId, Session>,
    /// Live sessions by the process that began them.
    peers: BTreeMap<String, usize>,
    /// Sessions that are over: their identifiers are not used again.
    ended: EndedSessions,
    held: Queue,
    permits: Permits,
    parked: Parked,
    /// Attempts that wait for extensions, by asker.
    begun: BTreeMap<AskId, Begun>,
    usage: Usage,
    asked: Askers,
    tries: Tries,
    /// Answers to "what may I do" that can still be relied on, in the order given. They go with the
    /// process: who relies on one asks again.
    resolutions: Vec<Issued>,
    caches: Caches,
    suspension: Suspension,
    settled: VecDeque<Arc<Decided>>,
    /// Denials that were overruled, and that nobody has acknowledged.
    overruled: BTreeMap<GateId, Overruled>,
    /// What an operator knows to be wrong with the record.
    fault: Option<RecordFault>,
    gates_opened: u64,
}

/// A held request with who waits for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Waiting {
    held: Arc<Held>,
    /// What advisory checkpoints gave along; handed over when it passes. Only earlier versions wrote it.
    #[serde(default)]
    given: Given,
    /// What advisory checkpoints give along when it passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withheld: Vec<Withheld>,
    /// The agent's own identifier of the call, where it gave one: the same call asked again joins it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// What advisory checkpoints grant; it takes effect when it passes.
    #[serde(default)]
    advice: Vec<Advice>,
    /// The input as it should read. Like the input it is not kept.
    #[serde(skip)]
    modified_input: Option<String>,
    /// Who waits, in the order asked. They go with the process.
    #[serde(skip)]
    askers: Vec<AskId>,
    /// Bytes of what is asked for.
    #[serde(skip)]
    bytes: usize,
}

/// What an advisory checkpoint does to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Advice {
    atlas_id: String,
    checkpoint_id: String,
    effects: PassEffects,
}

/// The right to run one approved request once, for an asker that had left when it was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Permit {
    request_hash: Digest,
    atlas_hash: Digest,
    session: SessionId,
    gate: GateId,
    expires_at: Timestamp,
    given: Given,
    /// Denials that an operator overruled for it.
    #[serde(default)]
    overrides: BTreeSet<String>,
    /// The gates that were passed for it. It opens no other.
    #[serde(default)]
    passed: BTreeSet<String>,
    /// The operator who let it pass.
    #[serde(default)]
    approved_by: Option<String>,
    trace_id: TraceId,
    span_id: SpanId,
}

impl Engine {
    /// An engine that has seen nothing yet.
    #[must_use]
    pub fn new(atlases: Vec<Atlas>, ids: Box<dyn IdSource>) -> Self {
        let atlas_hash = combined_hash(&atlases);
        let level = recording::level(&atlases);
        Self {
            atlases: atlases.into(),
            extensions: Extensions::default(),
            atlas_hash,
            level,
            state: State::default(),
            ids,
        }
    }

    /// Says which extensions there are to ask. Before, there are none.
    pub fn set_extensions(&mut self, extensions: Extensions) {
        self.extensions = extensions;
    }

    /// Takes in something that happened, and says what must happen because of it, in order.
    pub fn handle(&mut self, command: Command, now: Timestamp) -> Vec<Effect> {
        let mut turn = Turn::new(self, now);
        turn.tell_tries(&command);
        if !turn.asked_too_often(&command) {
            turn.take_up(command);
        }
        turn.finish()
    }

    /// A session that has not ended.
    #[must_use]
    pub fn session(&self, session: &SessionId) -> Option<&Session> {
        self.state.sessions.get(session)
    }

    /// Identifiers of the sessions that have not ended.
    pub fn session_ids(&self) -> impl Iterator<Item = &SessionId> {
        self.state.sessions.keys()
    }

    /// A held request.
    #[must_use]
    pub fn held_request(&self, gate: &GateId) -> Option<Arc<Held>> {
        let waiting = self.state.held.get(gate)?;
        Some(Arc::clone(&waiting.held))
    }

    /// Identifiers of the held requests.
    pub fn held_ids(&self) -> impl Iterator<Item = &GateId> {
        self.state.held.keys()
    }

    /// Held requests, in the order they were asked.
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

    /// Askers that wait for held requests which `request` could join. A runtime that finds one of them gone says
    /// so before it hands the request over.
    #[must_use]
    pub fn twin_askers(&self, request: &ActionRequest) -> Vec<AskId> {
        if self.state.held.count_of(&request.session) == 0 {
            return Vec::new();
        }
        let hash = request_hash(&request.session, &request.action, &request.params);
        let twins = self.state.held.of_request(&hash);
        twins.flat_map(|twin| twin.askers.iter().copied()).collect()
    }

    /// Sessions that have not ended, in the order they started.
    #[must_use]
    pub fn sessions(&self) -> Vec<&Session> {
        let mut sessions: Vec<_> = self.state.sessions.values().collect();
        sessions.sort_by_key(|session| session.started_at);
        sessions
    }

    /// How held requests ended, newest first.
    pub fn settled(&self) -> impl Iterator<Item = &Arc<Decided>> {
        self.state.settled.iter()
    }

    /// Denials that were overruled and that nobody has acknowledged, the oldest first.
    #[must_use]
    pub fn overruled(&self) -> Vec<Overruled> {
        let mut overruled: Vec<_> = self.state.overruled.values().cloned().collect();
        overruled.sort_by_key(|it| it.at);
        overruled
    }

    /// What an operator knows to be wrong with the record.
    #[must_use]
    pub fn known_fault(&self) -> Option<&RecordFault> {
        self.state.fault.as_ref()
    }

    /// The Atlases in force.
    #[must_use]
    pub fn atlases(&self) -> &[Atlas] {
        &self.atlases
    }

    /// The same for those who keep them.
    #[must_use]
    pub fn shared_atlases(&self) -> Arc<[Atlas]> {
        Arc::clone(&self.atlases)
    }
}

impl State {
    fn note_settled(&mut self, decided: Arc<Decided>) {
        self.settled.push_front(decided);
        self.settled.truncate(RECENT_DECISIONS);
    }
}

/// One digest for all Atlases in force: a decision under one set does not count under another.
pub(crate) fn combined_hash(atlases: &[Atlas]) -> Digest {
    let texts: Vec<_> = atlases.iter().map(|atlas| atlas.hash.to_string()).collect();
    Digest::of_parts(texts.iter().map(String::as_bytes))
}
