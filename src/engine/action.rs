//! Requests of agents to run actions.

use std::sync::Arc;

use serde_json::Value;

use crate::base::canonical_json::canonical;
use crate::base::digest::Digest;
use crate::base::id::GateId;
use crate::base::limits::{
    MAX_ACTION_LEN, MAX_CALLERS_PER_REQUEST, MAX_PARAMS_BYTES, MAX_PARAMS_DEPTH,
};
use crate::trace::event::{Durability, Recommendation};

use super::attempt::{Attempt, OVERRULE_HELP};
use super::attempt_records::hash_of_request;
use super::command::{
    ActionRequest, CallerId, DenyCode, EngineCommand, HeldOutcome, Injected, Reply, StateKind,
};
use super::decision::overruled_denials;
use super::gate::SESSION_START;
use super::held::{ActionCall, HeldSubject};
use super::lifecycle::{ATLAS_CHANGED, session_position};
use super::redacted_records::BlockReason;
use super::session::StartState;
use super::settlement::denied;
use super::transaction::{SpanPosition, Transaction};

impl Transaction<'_> {
    pub(super) fn request_action(&mut self, ask: CallerId, request: ActionRequest) {
        if self.live_session(&request.session).is_none() {
            self.deny_unknown_session(ask, &request.session);
            return;
        }
        if let Some(fault) = request_fault(&request) {
            self.deny(ask, DenyCode::BadRequest, fault);
            return;
        }
        if self.adopt_loaded_atlases(&request.session) {
            // Other Atlases may involve other extensions.
            self.start_command(EngineCommand::RequestAction(ask, request));
            return;
        }
        if let Some(asked) = self.reenter(&request.session) {
            self.reply(ask, Reply::Asked(asked));
            return;
        }
        let Some(session) = self.live_session(&request.session) else {
            return;
        };
        match session.entry.clone() {
            StartState::Open => self.judge_or_park(ask, request),
            StartState::Held(_) => self.park_request(ask, request),
            StartState::Lapsed { .. } => {
                let reason =
                    "too many requests are held to open the gates of this session".to_owned();
                self.refuse_action(ask, &request, DenyCode::Overload, SESSION_START, reason);
            }
            StartState::Refused { reason } => {
                let reason = format!("this session may not act: {reason}");
                self.refuse_action(ask, &request, DenyCode::Refused, SESSION_START, reason);
            }
        }
    }

    /// Judges a request, unless a gate blocks its whole session.
    fn judge_or_park(&mut self, ask: CallerId, request: ActionRequest) {
        self.raise_required_gates(&request);
        let Some(session) = self.live_session(&request.session) else {
            return;
        };
        if !session.unpassed.is_empty() {
            let reason = "too many requests are held to open the gates of this session".to_owned();
            self.refuse_action(ask, &request, DenyCode::Overload, SESSION_START, reason);
        } else if session.pending.is_empty() {
            self.judge_action(ask, &request);
        } else {
            self.park_request(ask, request);
        }
    }

    /// Judges a request whose session may act, and denies, holds or allows it.
    pub(super) fn judge_action(&mut self, ask: CallerId, request: &ActionRequest) {
        let Some(session) = self.live_session(&request.session) else {
            self.deny_unknown_session(ask, &request.session);
            return;
        };
        let root = session_position(session);
        if self.refuse_resolution(ask, request) {
            return;
        }
        let hash = hash_of_request(request);
        let call = ActionCall::of(&self.engine.atlases, &request.action, &request.params);
        self.void_outdated_twins(hash);
        if let Some(gate) = self.joinable(request, hash) {
            if self.is_override(&gate) {
                self.ask_override_again(ask, request, &root, &gate);
            } else {
                self.join_held(ask, &root, &call, &gate);
            }
            return;
        }
        let Some(place) = self.attempt_place(ask, &request.session, hash) else {
            return;
        };
        let Some(judged) = self.judge_call(&request.session, &call, hash) else {
            return;
        };
        let durability = self.attempt_durability(&judged);
        let event = self.record_judged(ask, (&place, &call), judged.checked, durability);
        let fired = self.with_due(&request.session, judged.fired);
        let attempt = Attempt {
            subject: HeldSubject::Action(call.clone()),
            call,
            hash,
            place,
            event,
            deadline: request.deadline,
            same_call: request.call.clone(),
            fired,
            approvals: judged.approvals,
            given: Injected::default(),
            overruled: judged.overruled,
        };
        match judged.denial {
            Some(denial) => self.deny_attempt(ask, attempt, denial),
            None => self.apply_handlers(ask, attempt),
        }
    }

    /// Voids identical held requests that were judged under other Atlases.
    fn void_outdated_twins(&mut self, hash: Digest) {
        let atlas_hash = self.engine.atlas_hash;
        let twins = self.engine.state.held.of_request(&hash);
        let stale = twins.filter(|twin| twin.held.atlas_hash != atlas_hash);
        let stale: Vec<_> = stale.map(|twin| twin.held.id.clone()).collect();
        for gate in stale {
            self.withdraw(&gate, HeldOutcome::Voided, ATLAS_CHANGED);
        }
    }

    /// Returns the held request that `request` repeats: the same call, or an identical one for which no
    /// caller waits any more.
    ///
    /// Two identical calls whose callers both wait are two requests.
    pub(super) fn joinable(&self, request: &ActionRequest, hash: Digest) -> Option<GateId> {
        let atlas_hash = self.engine.atlas_hash;
        let mut left = None;
        for twin in self.engine.state.held.of_request(&hash) {
            let action = matches!(twin.held.subject, HeldSubject::Action(_));
            if !action || twin.held.atlas_hash != atlas_hash {
                continue;
            }
            if twin.call.is_some() && twin.call == request.call {
                return Some(twin.held.id.clone());
            }
            if twin.askers.is_empty() {
                left = left.or(Some(&twin.held.id));
            }
        }
        // An approved request takes precedence over one that is still held.
        let left = left.filter(|_| self.valid_permit(hash).is_none());
        left.cloned()
    }

    /// Lets a request wait for the decision about a request that is already held.
    fn join_held(&mut self, ask: CallerId, root: &SpanPosition, call: &ActionCall, gate: &GateId) {
        let Some(waiting) = self.engine.state.held.get(gate) else {
            return;
        };
        let held = Arc::clone(&waiting.held);
        let trace_id = held.trace_id.clone();
        if let Some(asked) = self.agent_questions(&held) {
            self.reply(ask, Reply::Asked(asked));
            return;
        }
        let mut held = (*held).clone();
        held.joined = held.joined.saturating_add(1);
        let queue = &mut self.state().held;
        let earliest = queue.remove_earliest(gate, MAX_CALLERS_PER_REQUEST);
        queue.add_asker(gate, ask);
        let Some(waiting) = queue.replace(Arc::new(held)).cloned() else {
            return;
        };
        let place = SpanPosition {
            trace_id,
            ..root.child(self.new_span())
        };
        self.record_unjudged(ask, place, call);
        if let Some(earliest) = earliest {
            let reason = "the agent repeated the same call too often";
            self.reply(earliest, denied(&waiting.held, DenyCode::Withdrawn, reason));
        }
        self.persist(StateKind::Held, waiting.held.id.as_str(), Some(&waiting));
    }

    /// Tells whether passing a held request would overrule a denial.
    fn is_override(&self, gate: &GateId) -> bool {
        let waiting = self.engine.state.held.get(gate);
        waiting.is_some_and(|waiting| !overruled_denials(&waiting.held).is_empty())
    }

    /// Judges a request again whose denial an operator may overrule and has not. No asker waits at such a gate, so
    /// each request is an attempt of its own. A gate whose denial no longer holds is voided.
    fn ask_override_again(
        &mut self,
        ask: CallerId,
        request: &ActionRequest,
        root: &SpanPosition,
        gate: &GateId,
    ) {
        let hash = hash_of_request(request);
        let call = ActionCall::of(&self.engine.atlases, &request.action, &request.params);
        let Some(judged) = self.judge_call(&request.session, &call, hash) else {
            return;
        };
        let Some(denial) = judged.denial else {
            self.withdraw(gate, HeldOutcome::Voided, NO_LONGER_DENIED);
            // Extensions may have a say about it now.
            self.start_command(EngineCommand::RequestAction(ask, request.clone()));
            return;
        };
        let waiting = self.engine.state.held.get(gate);
        let Some(trace_id) = waiting.map(|waiting| waiting.held.trace_id.clone()) else {
            return;
        };
        let new = SpanPosition {
            trace_id,
            ..root.child(self.new_span())
        };
        let begun = self.engine.state.pending_attempts.get(&ask);
        let place = begun.map_or(new, |begun| begun.place().clone());
        self.record_judged(ask, (&place, &call), judged.checked, Durability::Async);
        self.record_risk(&place, &call, Recommendation::Block);
        let overridable = denial.overrides.is_some();
        let why = BlockReason {
            code: denial.denied.code,
            reason: &denial.denied.reason,
            override_available: overridable,
            under: denial.atlas.as_slice(),
        };
        self.record_blocked_action(&place, &call, &denial.by, why);
        let mut denied = denial.denied;
        if overridable {
            denied.help = Some(OVERRULE_HELP.to_owned());
            denied.gate = Some(gate.clone());
        }
        self.reply(ask, Reply::Denied(denied));
    }

    pub(super) fn caller_left(&mut self, ask: CallerId) {
        self.drop_suspended(ask);
        self.abandon_attempt(ask);
        let state = self.state();
        state.held.remove_asker(ask);
        state.parked.remove_asker(ask);
    }

    /// Records and reports a refusal that was decided before any evaluation.
    pub(super) fn refuse_action(
        &mut self,
        ask: CallerId,
        request: &ActionRequest,
        code: DenyCode,
        by: &str,
        reason: String,
    ) {
        let Some(session) = self.engine.state.sessions.get(&request.session) else {
            self.deny(ask, code, reason);
            return;
        };
        let session = session.id.clone();
        let call = ActionCall::of(&self.engine.atlases, &request.action, &request.params);
        let Some(place) = self.new_position(&session) else {
            return;
        };
        let place = self.record_unjudged(ask, place, &call);
        self.record_risk(&place, &call, Recommendation::Block);
        self.record_blocked_action(&place, &call, by, BlockReason::final_reason(code, &reason));
        self.deny(ask, code, reason);
    }

    /// Records that an action may not run.
    pub(super) fn record_blocked_action(
        &mut self,
        place: &SpanPosition,
        call: &ActionCall,
        by: &str,
        why: BlockReason<'_>,
    ) {
        let record = self.blocked_record(call, by, why);
        self.record_below(place, record);
    }
}

/// Reason why a gate is voided that stood only because a policy denied the request.
const NO_LONGER_DENIED: &str = "no policy denies the request any more; cra checked it again";

pub(super) fn request_fault(request: &ActionRequest) -> Option<String> {
    call_fault(&request.action, &request.params)
}

/// Returns the reason why an action name or its parameters are malformed.
pub(super) fn call_fault(action: &str, params: &Value) -> Option<String> {
    let length = action.chars().count();
    if length == 0 || length > MAX_ACTION_LEN {
        return Some(format!(
            "an action name must have 1 to {MAX_ACTION_LEN} characters, not {length}"
        ));
    }
    if !(params.is_object() || params.is_null()) {
        return Some("parameters must be a JSON object".to_owned());
    }
    // This comes first: parameters that are nested too deep must not be traversed.
    if is_deeper(params, MAX_PARAMS_DEPTH) {
        return Some(format!(
            "parameters must be nested at most {MAX_PARAMS_DEPTH} levels deep"
        ));
    }
    let size = canonical(params).len();
    (size > MAX_PARAMS_BYTES)
        .then(|| format!("parameters must have at most {MAX_PARAMS_BYTES} bytes, not {size}"))
}

/// Returns whether `value` is nested more than `levels` deep.
pub(super) fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, levels - 1)),
    }
}
