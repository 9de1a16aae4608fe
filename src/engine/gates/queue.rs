//! Held requests, parked calls and permits, with indexes by session, request and caller.
//!
//! Contract: every change goes through the methods here, so that the indexes and the byte counts agree with
//! the entries. The cost of a lookup depends on the entries of one session or one request, never on all
//! entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{HeldRequestId, SessionId};

use super::held::{Held, PassEffects};
use super::permits::Permit;
use crate::engine::command::{
    ActionRequest, EngineCommand, Injected, InputReport, OnDisconnect, ReplyId,
};
use crate::engine::injection::withholding::WithheldInjection;

/// A held request, with the callers that wait for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldEntry {
    pub(crate) held: Arc<Held>,
    /// Injections of advisory checkpoints, delivered when the request passes. Only earlier versions wrote
    /// this field.
    #[serde(rename = "given", default)]
    pub(crate) injected: Injected,
    /// Injections of advisory checkpoints that wait until the request passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) withheld: Vec<WithheldInjection>,
    /// The agent's own identifier of the call, if it gave one. A repeated request with this identifier joins
    /// the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
    /// End of the request when the callers that wait for it disconnect.
    #[serde(default, skip_serializing_if = "OnDisconnect::is_kept")]
    pub(crate) on_disconnect: OnDisconnect,
    /// Grants of advisory checkpoints. They take effect when the request passes.
    #[serde(default)]
    pub(crate) advice: Vec<AdvisoryEffects>,
    /// Input as an extension rewrote it. Like the input, it is not persisted.
    #[serde(skip)]
    pub(crate) modified_input: Option<String>,
    /// Callers that wait for the decision, in the order asked. They are not persisted.
    #[serde(skip)]
    pub(crate) reply_ids: Vec<ReplyId>,
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
    held: BTreeMap<HeldRequestId, HeldEntry>,
    by_session: BTreeMap<SessionId, BTreeSet<HeldRequestId>>,
    by_request: BTreeMap<Digest, BTreeSet<HeldRequestId>>,
    by_reply: BTreeMap<ReplyId, HeldRequestId>,
    bytes: usize,
}

impl HeldQueue {
    pub(crate) fn get(&self, held_id: &HeldRequestId) -> Option<&HeldEntry> {
        self.held.get(held_id)
    }

    pub(crate) fn contains(&self, held_id: &HeldRequestId) -> bool {
        self.held.contains_key(held_id)
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

    pub(crate) fn keys(&self) -> impl Iterator<Item = &HeldRequestId> {
        self.held.keys()
    }

    /// Returns the identifiers of a session's held requests.
    pub(crate) fn of_session(&self, session: &SessionId) -> impl Iterator<Item = &HeldRequestId> {
        self.by_session.get(session).into_iter().flatten()
    }

    pub(crate) fn count_of(&self, session: &SessionId) -> usize {
        self.by_session.get(session).map_or(0, BTreeSet::len)
    }

    /// Returns the held requests with this request hash.
    pub(crate) fn of_request(&self, hash: &Digest) -> impl Iterator<Item = &HeldEntry> {
        let gates = self.by_request.get(hash).into_iter().flatten();
        gates.filter_map(move |held_id| self.held.get(held_id))
    }

    pub(crate) fn insert(&mut self, mut entry: HeldEntry) {
        let held_id = entry.held.id.clone();
        self.remove(&held_id);
        entry.bytes = entry.held.subject.bytes();
        self.bytes = self.bytes.saturating_add(entry.bytes);
        let of_session = self.by_session.entry(entry.held.session.clone());
        of_session.or_default().insert(held_id.clone());
        let of_request = self.by_request.entry(entry.held.request_hash);
        of_request.or_default().insert(held_id.clone());
        let reply_ids = entry
            .reply_ids
            .iter()
            .map(|reply_id| (*reply_id, held_id.clone()));
        self.by_reply.extend(reply_ids);
        self.held.insert(held_id, entry);
    }

    pub(crate) fn remove(&mut self, held_id: &HeldRequestId) -> Option<HeldEntry> {
        let entry = self.held.remove(held_id)?;
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        remove_from(&mut self.by_session, &entry.held.session, held_id);
        remove_from(&mut self.by_request, &entry.held.request_hash, held_id);
        for reply_id in &entry.reply_ids {
            self.by_reply.remove(reply_id);
        }
        Some(entry)
    }

    /// Replaces the description of a held request. Its session and its hash must not change.
    pub(crate) fn replace(&mut self, held: Arc<Held>) -> Option<&HeldEntry> {
        let entry = self.held.get_mut(&held.id)?;
        entry.held = held;
        Some(entry)
    }

    /// Adds a waiting caller to a held request.
    pub(crate) fn add_reply(&mut self, held_id: &HeldRequestId, reply_id: ReplyId) {
        if let Some(entry) = self.held.get_mut(held_id) {
            entry.reply_ids.push(reply_id);
            self.by_reply.insert(reply_id, held_id.clone());
        }
    }

    /// Removes the first waiting caller, if at least `most` wait.
    pub(crate) fn remove_earliest(
        &mut self,
        held_id: &HeldRequestId,
        most: usize,
    ) -> Option<ReplyId> {
        let entry = self.held.get_mut(held_id)?;
        let earliest = (entry.reply_ids.len() >= most).then(|| entry.reply_ids.remove(0))?;
        self.by_reply.remove(&earliest);
        Some(earliest)
    }

    /// Removes a caller that has left. Returns its held request.
    pub(crate) fn remove_reply(&mut self, reply_id: ReplyId) -> Option<&HeldEntry> {
        let held_id = self.by_reply.remove(&reply_id)?;
        let entry = self.held.get_mut(&held_id)?;
        entry.reply_ids.retain(|waiting_id| *waiting_id != reply_id);
        Some(entry)
    }
}

/// Calls that wait for a gate of their whole session, in the order asked. Their callers end with the process, so
/// they are not persisted.
#[derive(Debug, Default)]
pub(crate) struct ParkedCalls {
    by_session: BTreeMap<SessionId, Vec<ParkedEntry>>,
    by_reply: BTreeMap<ReplyId, SessionId>,
    bytes: usize,
}

/// A call that waits for a gate of its whole session.
#[derive(Clone, Debug)]
pub(crate) enum ParkedCall {
    /// A request to run an action. It waits for every gate of the session.
    Action(ActionRequest),
    /// Input that waits for the start gate only.
    Input(InputReport),
}

#[derive(Debug)]
struct ParkedEntry {
    reply_id: ReplyId,
    call: ParkedCall,
    bytes: usize,
}

impl ParkedCall {
    pub(crate) fn session(&self) -> &SessionId {
        match self {
            Self::Action(request) => &request.session,
            Self::Input(input) => &input.session,
        }
    }

    /// Returns the time at which the caller stops waiting.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Action(request) => request.deadline,
            Self::Input(input) => input.deadline,
        }
    }

    pub(crate) fn deadline_mut(&mut self) -> &mut Option<Timestamp> {
        match self {
            Self::Action(request) => &mut request.deadline,
            Self::Input(input) => &mut input.deadline,
        }
    }

    /// Returns the size of the agent's data, in bytes.
    fn bytes(&self) -> usize {
        match self {
            Self::Action(request) => request.params.to_string().len(),
            Self::Input(input) => input.text.len(),
        }
    }

    /// Returns the command that continues the call.
    pub(crate) fn into_command(self, reply_id: ReplyId) -> EngineCommand {
        match self {
            Self::Action(request) => EngineCommand::RequestAction(reply_id, request),
            Self::Input(input) => EngineCommand::Input(reply_id, input),
        }
    }
}

impl ParkedCalls {
    pub(crate) fn count_of(&self, session: &SessionId) -> usize {
        self.by_session.get(session).map_or(0, Vec::len)
    }

    /// Returns the total size of all parked calls, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the sessions with parked calls.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.by_session.keys()
    }

    pub(crate) fn calls_mut(&mut self) -> impl Iterator<Item = &mut ParkedCall> {
        let parked = self.by_session.values_mut().flatten();
        parked.map(|parked| &mut parked.call)
    }

    pub(crate) fn push(&mut self, reply_id: ReplyId, call: ParkedCall) {
        let bytes = call.bytes();
        let session = call.session().clone();
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_reply.insert(reply_id, session.clone());
        self.by_session
            .entry(session)
            .or_default()
            .push(ParkedEntry {
                reply_id,
                call,
                bytes,
            });
    }

    /// Removes and returns all parked calls of a session.
    pub(crate) fn take(&mut self, session: &SessionId) -> Vec<(ReplyId, ParkedCall)> {
        self.take_where(session, |_| true)
    }

    /// Removes and returns the parked calls of a session that `wanted` selects.
    pub(crate) fn take_where(
        &mut self,
        session: &SessionId,
        wanted: impl Fn(&ParkedCall) -> bool,
    ) -> Vec<(ReplyId, ParkedCall)> {
        let Some(own) = self.by_session.get_mut(session) else {
            return Vec::new();
        };
        let taken: Vec<_> = own.extract_if(.., |parked| wanted(&parked.call)).collect();
        if own.is_empty() {
            self.by_session.remove(session);
        }
        for parked in &taken {
            self.by_reply.remove(&parked.reply_id);
            self.bytes = self.bytes.saturating_sub(parked.bytes);
        }
        let pairs = taken.into_iter();
        pairs.map(|parked| (parked.reply_id, parked.call)).collect()
    }

    /// Removes the calls of a caller that has left.
    pub(crate) fn remove_reply(&mut self, reply_id: ReplyId) {
        let Some(session) = self.by_reply.remove(&reply_id) else {
            return;
        };
        if let Some(own) = self.by_session.get_mut(&session) {
            for gone in own.extract_if(.., |parked| parked.reply_id == reply_id) {
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
    by_held: BTreeMap<HeldRequestId, Permit>,
    by_request: BTreeMap<Digest, BTreeSet<HeldRequestId>>,
}

impl PermitIndex {
    /// Returns the permits for this request hash.
    pub(crate) fn of_request(&self, hash: &Digest) -> impl Iterator<Item = &Permit> {
        let gates = self.by_request.get(hash).into_iter().flatten();
        gates.filter_map(move |held_id| self.by_held.get(held_id))
    }

    /// Returns the permit that was given for a held request.
    pub(crate) fn of_held(&self, held_id: &HeldRequestId) -> Option<&Permit> {
        self.by_held.get(held_id)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Permit> {
        self.by_held.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Permit> {
        self.by_held.values_mut()
    }

    pub(crate) fn insert(&mut self, permit: Permit) {
        let of_request = self.by_request.entry(permit.request_hash);
        of_request.or_default().insert(permit.gate.clone());
        self.by_held.insert(permit.gate.clone(), permit);
    }

    pub(crate) fn remove(&mut self, held_id: &HeldRequestId) -> Option<Permit> {
        let permit = self.by_held.remove(held_id)?;
        remove_from(&mut self.by_request, &permit.request_hash, held_id);
        Some(permit)
    }

    /// Removes the permits that `gone` selects. Returns the held requests they were given for.
    pub(crate) fn remove_where(&mut self, gone: impl Fn(&Permit) -> bool) -> Vec<HeldRequestId> {
        let permits = self.by_held.values().filter(|permit| gone(permit));
        let gates: Vec<_> = permits.map(|permit| permit.gate.clone()).collect();
        for held_id in &gates {
            self.remove(held_id);
        }
        gates
    }
}

fn remove_from<K: Ord>(
    index: &mut BTreeMap<K, BTreeSet<HeldRequestId>>,
    key: &K,
    held_id: &HeldRequestId,
) {
    if let Some(gates) = index.get_mut(key) {
        gates.remove(held_id);
        if gates.is_empty() {
            index.remove(key);
        }
    }
}
