//! Held requests, parked requests and permits, with indexes by session, request and caller.
//!
//! Contract: every change goes through the methods here, so that the indexes and the byte counts agree with
//! the entries. The cost of a lookup depends on the entries of one session or one request, never on all
//! entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::digest::Digest;
use crate::base::id::{GateId, SessionId};

use super::held::{Held, PassEffects};
use super::permits::Permit;
use crate::engine::command::{ActionRequest, CallerId, Injected};
use crate::engine::injection::withholding::WithheldInjection;

/// A held request, with the callers that wait for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldEntry {
    pub(crate) held: Arc<Held>,
    /// Injections of advisory checkpoints, delivered when the request passes. Only earlier versions wrote
    /// this field.
    #[serde(default)]
    pub(crate) given: Injected,
    /// Injections of advisory checkpoints that wait until the request passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) withheld: Vec<WithheldInjection>,
    /// The agent's own identifier of the call, if it gave one. A repeated request with this identifier joins
    /// the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    /// Grants of advisory checkpoints. They take effect when the request passes.
    #[serde(default)]
    pub(crate) advice: Vec<AdvisoryEffects>,
    /// Input as an extension rewrote it. Like the input, it is not persisted.
    #[serde(skip)]
    pub(crate) modified_input: Option<String>,
    /// Callers that wait for the decision, in the order asked. They are not persisted.
    #[serde(skip)]
    pub(crate) askers: Vec<CallerId>,
    /// Size of the request in bytes, for the queue's byte limit.
    #[serde(skip)]
    pub(crate) bytes: usize,
}

/// Effects of an advisory checkpoint on a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AdvisoryEffects {
    pub(crate) atlas_id: String,
    pub(crate) checkpoint_id: String,
    pub(crate) effects: PassEffects,
}

/// The queue of held requests.
#[derive(Debug, Default)]
pub(crate) struct HeldQueue {
    held: BTreeMap<GateId, HeldEntry>,
    by_session: BTreeMap<SessionId, BTreeSet<GateId>>,
    by_request: BTreeMap<Digest, BTreeSet<GateId>>,
    by_caller: BTreeMap<CallerId, GateId>,
    bytes: usize,
}

impl HeldQueue {
    pub(crate) fn get(&self, gate: &GateId) -> Option<&HeldEntry> {
        self.held.get(gate)
    }

    pub(crate) fn contains(&self, gate: &GateId) -> bool {
        self.held.contains_key(gate)
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns the total size of all held requests, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds to the byte count, to simulate a full queue.
    #[cfg(test)]
    pub(crate) fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &HeldEntry> {
        self.held.values()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &GateId> {
        self.held.keys()
    }

    /// Returns the identifiers of a session's held requests.
    pub(crate) fn of_session(&self, session: &SessionId) -> impl Iterator<Item = &GateId> {
        self.by_session.get(session).into_iter().flatten()
    }

    pub(crate) fn count_of(&self, session: &SessionId) -> usize {
        self.by_session.get(session).map_or(0, BTreeSet::len)
    }

    /// Returns the held requests with this request hash.
    pub(crate) fn of_request(&self, hash: &Digest) -> impl Iterator<Item = &HeldEntry> {
        let gates = self.by_request.get(hash).into_iter().flatten();
        gates.filter_map(move |gate| self.held.get(gate))
    }

    pub(crate) fn insert(&mut self, mut waiting: HeldEntry) {
        let gate = waiting.held.id.clone();
        self.remove(&gate);
        waiting.bytes = waiting.held.subject.bytes();
        self.bytes = self.bytes.saturating_add(waiting.bytes);
        let of_session = self.by_session.entry(waiting.held.session.clone());
        of_session.or_default().insert(gate.clone());
        let of_request = self.by_request.entry(waiting.held.request_hash);
        of_request.or_default().insert(gate.clone());
        let askers = waiting.askers.iter().map(|ask| (*ask, gate.clone()));
        self.by_caller.extend(askers);
        self.held.insert(gate, waiting);
    }

    pub(crate) fn remove(&mut self, gate: &GateId) -> Option<HeldEntry> {
        let waiting = self.held.remove(gate)?;
        self.bytes = self.bytes.saturating_sub(waiting.bytes);
        remove_from(&mut self.by_session, &waiting.held.session, gate);
        remove_from(&mut self.by_request, &waiting.held.request_hash, gate);
        for ask in &waiting.askers {
            self.by_caller.remove(ask);
        }
        Some(waiting)
    }

    /// Replaces the description of a held request. Its session and its hash must not change.
    pub(crate) fn replace(&mut self, held: Arc<Held>) -> Option<&HeldEntry> {
        let waiting = self.held.get_mut(&held.id)?;
        waiting.held = held;
        Some(waiting)
    }

    /// Adds a waiting caller to a held request.
    pub(crate) fn add_asker(&mut self, gate: &GateId, ask: CallerId) {
        if let Some(waiting) = self.held.get_mut(gate) {
            waiting.askers.push(ask);
            self.by_caller.insert(ask, gate.clone());
        }
    }

    /// Removes the first waiting caller, if at least `most` wait.
    pub(crate) fn remove_earliest(&mut self, gate: &GateId, most: usize) -> Option<CallerId> {
        let waiting = self.held.get_mut(gate)?;
        let earliest = (waiting.askers.len() >= most).then(|| waiting.askers.remove(0))?;
        self.by_caller.remove(&earliest);
        Some(earliest)
    }

    /// Removes a caller that has left.
    pub(crate) fn remove_asker(&mut self, ask: CallerId) {
        let Some(gate) = self.by_caller.remove(&ask) else {
            return;
        };
        if let Some(waiting) = self.held.get_mut(&gate) {
            waiting.askers.retain(|asker| *asker != ask);
        }
    }
}

/// Requests that wait for a gate of their whole session, in the order asked. Their callers end with the
/// process, so they are not persisted.
#[derive(Debug, Default)]
pub(crate) struct ParkedRequests {
    by_session: BTreeMap<SessionId, Vec<ParkedRequest>>,
    by_caller: BTreeMap<CallerId, SessionId>,
    bytes: usize,
}

#[derive(Debug)]
struct ParkedRequest {
    ask: CallerId,
    request: ActionRequest,
    bytes: usize,
}

impl ParkedRequests {
    pub(crate) fn count_of(&self, session: &SessionId) -> usize {
        self.by_session.get(session).map_or(0, Vec::len)
    }

    /// Returns the total size of all parked requests, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the sessions with parked requests.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.by_session.keys()
    }

    pub(crate) fn requests_mut(&mut self) -> impl Iterator<Item = &mut ActionRequest> {
        let parked = self.by_session.values_mut().flatten();
        parked.map(|parked| &mut parked.request)
    }

    pub(crate) fn push(&mut self, ask: CallerId, request: ActionRequest) {
        let bytes = request.params.to_string().len();
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_caller.insert(ask, request.session.clone());
        let own = self.by_session.entry(request.session.clone()).or_default();
        own.push(ParkedRequest {
            ask,
            request,
            bytes,
        });
    }

    /// Removes and returns all parked requests of a session.
    pub(crate) fn take(&mut self, session: &SessionId) -> Vec<(CallerId, ActionRequest)> {
        let taken = self.by_session.remove(session).unwrap_or_default();
        for parked in &taken {
            self.by_caller.remove(&parked.ask);
            self.bytes = self.bytes.saturating_sub(parked.bytes);
        }
        let pairs = taken.into_iter().map(|parked| (parked.ask, parked.request));
        pairs.collect()
    }

    /// Removes the requests of a caller that has left.
    pub(crate) fn remove_asker(&mut self, ask: CallerId) {
        let Some(session) = self.by_caller.remove(&ask) else {
            return;
        };
        if let Some(own) = self.by_session.get_mut(&session) {
            for gone in own.extract_if(.., |parked| parked.ask == ask) {
                self.bytes = self.bytes.saturating_sub(gone.bytes);
            }
            if own.is_empty() {
                self.by_session.remove(&session);
            }
        }
    }
}

/// Permits by the held request that they were given for. Two approvals of identical requests are two permits.
#[derive(Debug, Default)]
pub(crate) struct PermitIndex {
    by_gate: BTreeMap<GateId, Permit>,
    by_request: BTreeMap<Digest, BTreeSet<GateId>>,
}

impl PermitIndex {
    /// Returns the permits for this request hash.
    pub(crate) fn of_request(&self, hash: &Digest) -> impl Iterator<Item = &Permit> {
        let gates = self.by_request.get(hash).into_iter().flatten();
        gates.filter_map(move |gate| self.by_gate.get(gate))
    }

    /// Returns the permit that was given for a held request.
    pub(crate) fn of_gate(&self, gate: &GateId) -> Option<&Permit> {
        self.by_gate.get(gate)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Permit> {
        self.by_gate.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Permit> {
        self.by_gate.values_mut()
    }

    pub(crate) fn insert(&mut self, permit: Permit) {
        let of_request = self.by_request.entry(permit.request_hash);
        of_request.or_default().insert(permit.gate.clone());
        self.by_gate.insert(permit.gate.clone(), permit);
    }

    pub(crate) fn remove(&mut self, gate: &GateId) -> Option<Permit> {
        let permit = self.by_gate.remove(gate)?;
        remove_from(&mut self.by_request, &permit.request_hash, gate);
        Some(permit)
    }

    /// Removes the permits that `gone` selects. Returns the held requests they were given for.
    pub(crate) fn remove_where(&mut self, gone: impl Fn(&Permit) -> bool) -> Vec<GateId> {
        let permits = self.by_gate.values().filter(|permit| gone(permit));
        let gates: Vec<_> = permits.map(|permit| permit.gate.clone()).collect();
        for gate in &gates {
            self.remove(gate);
        }
        gates
    }
}

fn remove_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<GateId>>, key: &K, gate: &GateId) {
    if let Some(gates) = index.get_mut(key) {
        gates.remove(gate);
        if gates.is_empty() {
            index.remove(key);
        }
    }
}
