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
use cache::Caches;
use command::{ActionRequest, AskId, Command, Decided, Effect, Given, Overruled, RecordFault};
use extension::Extensions;
use held::{Held, PassEffects};
use resolve::Issued;
use session::Session;
use suspend::Suspension;
use tried::Tries;
use turn::Turn;
use usage::Usage;

mod access;
mod action;
pub mod answer;
pub mod approval;
mod attempt;
mod cache;
pub mod checkpoint;
pub mod command;
mod complete;
mod consider;
pub mod consult;
mod context;
mod customs;
mod decide;
mod deny;
mod evaluate;
pub mod explain;
pub mod extension;
mod gate;
mod give;
mod handle;
mod hear;
pub mod held;
pub mod judge;
mod lifecycle;
mod moment;
pub mod notice;
mod operate;
mod policy;
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
mod settle;
pub mod shade;
mod suspend;
mod tried;
mod turn;
pub mod usage;
mod validate;

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
    /// Sessions that are over: their identifiers are not used again.
    ended: BTreeSet<SessionId>,
    held: BTreeMap<GateId, Waiting>,
    /// Bytes that they keep in memory, all together.
    held_bytes: usize,
    permits: BTreeMap<Digest, Permit>,
    /// Requests that wait for their session's start gate, in the order asked. Their askers go with
    /// the process, so these are not kept.
    parked: BTreeMap<SessionId, Vec<(AskId, ActionRequest)>>,
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
    /// What advisory checkpoints gave along; handed over when it passes.
    given: Given,
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

impl State {
    /// Puts a request into the queue.
    fn hold(&mut self, mut waiting: Waiting) {
        waiting.bytes = waiting.held.subject.bytes();
        self.held_bytes = self.held_bytes.saturating_add(waiting.bytes);
        self.held.insert(waiting.held.id.clone(), waiting);
    }

    /// Takes a request out of the queue.
    fn release(&mut self, gate: &GateId) -> Option<Waiting> {
        let waiting = self.held.remove(gate)?;
        self.held_bytes = self.held_bytes.saturating_sub(waiting.bytes);
        Some(waiting)
    }
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

    /// Held requests, in the order they were asked.
    #[must_use]
    pub fn held(&self) -> Vec<Arc<Held>> {
        let mut held: Vec<_> = self
            .state
            .held
            .values()
            .map(|w| Arc::clone(&w.held))
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
