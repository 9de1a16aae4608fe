//! What agents ask for: actions.

use std::sync::Arc;

use serde_json::Value;

use crate::atlas::document::{CheckpointMode, RiskTier};
use crate::base::canon::{canonical, exact};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{ExecutionId, GateId, SessionId};
use crate::base::limits::{
    MAX_ACTION_LEN, MAX_ASKERS_PER_REQUEST, MAX_HELD, MAX_HELD_PER_SESSION, MAX_PARAMS_BYTES,
    MAX_PARAMS_DEPTH, MAX_RUNNING_PER_SESSION,
};
use crate::trace::event::{
    ActionAttempted, ActionBlocked, CheckpointPassed, Durability, PolicyChecked, RiskDetected,
};

use super::Permit;
use super::command::{ActionRequest, Allowed, AskId, DenyCode, Given, Outcome, Reply, StateKind};
use super::context::Cause;
use super::evaluate;
use super::gate::{Beside, OwnedApproval, OwnedFired, Raised, Request, SESSION_START};
use super::held::{ActionCall, Subject, TierSource, request_hash};
use super::lifecycle::{ATLAS_CHANGED, session_place};
use super::policy;
use super::session::{Entry, Running};
use super::settle::denied;
use super::turn::{Place, Turn};

/// An attempt that nothing forbids: what may still stand in its way is gates.
struct Attempt {
    call: ActionCall,
    subject: Subject,
    hash: Digest,
    place: Place,
    deadline: Option<Timestamp>,
    fired: Vec<OwnedFired>,
    approvals: Vec<OwnedApproval>,
}

impl Turn<'_> {
    pub(super) fn request_action(&mut self, ask: AskId, request: ActionRequest) {
        if self.live(&request.session).is_none() {
            self.deny_session(ask, &request.session);
            return;
        }
        if let Some(fault) = request_fault(&request) {
            self.deny(ask, DenyCode::BadRequest, fault);
            return;
        }
        self.renew(&request.session);
        self.reenter(&request.session);
        let Some(session) = self.live(&request.session) else {
            return;
        };
        match session.entry.clone() {
            Entry::Open => self.judge_in_turn(ask, request),
            Entry::Held(_) => self.park(ask, request),
            Entry::Lapsed { .. } => {
                let reason = "too much is held to ask about this session".to_owned();
                self.refuse_action(ask, &request, DenyCode::Overload, SESSION_START, reason);
            }
            Entry::Refused { reason } => {
                let reason = format!("this session may not act: {reason}");
                self.refuse_action(ask, &request, DenyCode::Refused, SESSION_START, reason);
            }
        }
    }

    /// Judges a request, unless a gate stands before everything its session asks for.
    fn judge_in_turn(&mut self, ask: AskId, request: ActionRequest) {
        self.keep_time(&request.session);
        let Some(session) = self.live(&request.session) else {
            return;
        };
        if !session.unpassed.is_empty() {
            let reason = "too much is held to ask about this session".to_owned();
            self.refuse_action(ask, &request, DenyCode::Overload, SESSION_START, reason);
        } else if session.pending.is_empty() {
            self.judge_action(ask, request);
        } else {
            self.park(ask, request);
        }
    }

    /// Judges a request whose session may act: denied, held, or allowed.
    pub(super) fn judge_action(&mut self, ask: AskId, request: ActionRequest) {
        let Some(session) = self.live(&request.session) else {
            self.deny_session(ask, &request.session);
            return;
        };
        let root = session_place(session);
        let (tier, tier_source) =
            evaluate::tier(&self.engine.atlases, &request.action, &request.params);
        let hash = request_hash(&request.session, &request.action, &request.params);
        let call = ActionCall {
            action: request.action,
            params: exact(&request.params),
            tier,
            tier_source,
        };
        if self.join(ask, &root, &call, hash) {
            return;
        }
        let place = Place {
            trace_id: self.new_trace(),
            ..root.below(self.new_span())
        };
        self.record(&place, attempted(&call));
        let Some(session) = self.engine.state.sessions.get(&request.session) else {
            return;
        };
        let found = evaluate::action(evaluate::Case {
            atlases: &self.engine.atlases,
            usage: &self.engine.state.usage,
            session,
            call: &call,
            now: self.now,
        });
        let checked = PolicyChecked {
            policy_id: found.policy.policy_id.to_owned(),
            action_type: call.action.clone(),
            decision: found.policy.decision.to_owned(),
            conditions_evaluated: found.policy.looked_at,
            matching_rule: found.policy.rule.map(str::to_owned),
            context_used: None,
        };
        let denial = found.denial;
        let fired: Vec<OwnedFired> = found.fired.into_iter().map(Into::into).collect();
        let approvals: Vec<OwnedApproval> = found.approvals.into_iter().map(Into::into).collect();
        self.record_below(&place, checked);
        if let Some(denial) = denial {
            self.block(&place, &call, &denial.by, &denial.denied.reason);
            self.reply(ask, Reply::Denied(denial.denied));
            return;
        }
        let attempt = Attempt {
            subject: Subject::Action(call.clone()),
            call,
            hash,
            place,
            deadline: request.deadline,
            fired,
            approvals,
        };
        self.pass_or_hold(ask, attempt);
    }

    /// Lets an attempt run when no gate is in its way or a permit opens them all; else holds it.
    fn pass_or_hold(&mut self, ask: AskId, attempt: Attempt) {
        let Attempt {
            call,
            subject,
            hash,
            place,
            deadline,
            fired,
            approvals,
        } = attempt;
        let blocking = |fired: &&OwnedFired| fired.checkpoint.mode == CheckpointMode::Blocking;
        let gated = fired.iter().any(|fired| blocking(&fired)) || !approvals.is_empty();
        let permit = gated.then(|| self.take_permit(hash)).flatten();
        let beside = if gated && permit.is_none() {
            Beside::Gate
        } else {
            Beside::Nothing
        };
        let mut given = Given::default();
        for fired in fired.iter().filter(|fired| !blocking(fired)) {
            given.extend(self.apply_passing(&place, fired, &subject, beside));
        }
        if !gated {
            let allowed = self.allow(&place, &call, given);
            self.reply(ask, Reply::Allowed(allowed));
            return;
        }
        if let Some(permit) = permit {
            let checkpoints = fired.iter().filter(blocking).map(|it| &it.checkpoint.id);
            let policies = approvals.iter().map(|approval| &approval.policy_id);
            self.run_by_permit(
                ask,
                &place,
                &call,
                checkpoints.chain(policies),
                permit,
                given,
            );
            return;
        }
        if let Some(reason) = self.overload(&place.session) {
            self.block(&place, &call, "overload", &reason);
            self.deny(ask, DenyCode::Overload, reason);
            return;
        }
        if call.tier >= RiskTier::High {
            self.record_below(&place, risk_detected(&call));
        }
        let raised = self.raise_all(&fired, &approvals);
        let advisory = |fired: &&OwnedFired| fired.checkpoint.mode == CheckpointMode::Advisory;
        let request = Request {
            subject,
            hash,
            place,
            deadline,
            given,
            advice: fired
                .iter()
                .filter(advisory)
                .map(OwnedFired::advice)
                .collect(),
        };
        self.hold(Some(ask), request, raised);
    }

    /// The gates of an attempt, in the order they are asked.
    fn raise_all(&mut self, fired: &[OwnedFired], approvals: &[OwnedApproval]) -> Vec<Raised> {
        let mut raised = Vec::new();
        for fired in fired {
            if fired.checkpoint.mode == CheckpointMode::Blocking {
                raised.push(self.raise_checkpoint(fired));
            }
        }
        raised.extend(
            approvals
                .iter()
                .map(|approval| self.raise_approval(approval)),
        );
        raised
    }

    /// Lets a request run that was approved while its asker was away.
    fn run_by_permit<'g>(
        &mut self,
        ask: AskId,
        place: &Place,
        call: &ActionCall,
        gates: impl Iterator<Item = &'g String>,
        permit: Permit,
        mut given: Given,
    ) {
        for gate in gates {
            self.record_permitted(place, gate, &permit.gate);
        }
        given.extend(permit.given);
        let allowed = self.allow(place, call, given);
        self.reply(ask, Reply::Allowed(allowed));
    }

    /// Lets an identical request wait for the decision about the one that is held.
    fn join(&mut self, ask: AskId, root: &Place, call: &ActionCall, hash: Digest) -> bool {
        let mut held = self.engine.state.held.values_mut();
        let waiting = held.find(|waiting| waiting.held.request_hash == hash);
        let Some(waiting) = waiting else { return false };
        if waiting.held.atlas_hash != self.engine.atlas_hash {
            let stale = waiting.held.id.clone();
            self.withdraw(&stale, Outcome::Voided, ATLAS_CHANGED);
            return false;
        }
        let mut held = (*waiting.held).clone();
        held.joined = held.joined.saturating_add(1);
        let place = Place {
            session: root.session.clone(),
            trace_id: held.trace_id.clone(),
            span_id: held.span_id.clone(),
            parent: Some(root.span_id.clone()),
        };
        waiting.held = Arc::new(held);
        let earliest =
            (waiting.askers.len() >= MAX_ASKERS_PER_REQUEST).then(|| waiting.askers.remove(0));
        waiting.askers.push(ask);
        let waiting = waiting.clone();
        self.record_below(&place, attempted(call));
        if let Some(earliest) = earliest {
            let reason = "identical requests that came later wait instead";
            self.reply(earliest, denied(&waiting.held, DenyCode::Withdrawn, reason));
        }
        self.persist(StateKind::Held, waiting.held.id.as_str(), Some(&waiting));
        true
    }

    /// Takes the permit for exactly this request under exactly these Atlases, if there is one.
    fn take_permit(&mut self, hash: Digest) -> Option<Permit> {
        let permit = self.state().permits.remove(&hash)?;
        self.persist::<()>(StateKind::Permit, &hash.to_string(), None);
        let good = permit.atlas_hash == self.engine.atlas_hash && permit.expires_at > self.now;
        good.then_some(permit)
    }

    /// Records that a gate stands open because the request was passed before, held as `held`.
    fn record_permitted(&mut self, place: &Place, gate: &str, held: &GateId) {
        let passed = CheckpointPassed {
            checkpoint_id: gate.to_owned(),
            unlocked_capabilities: Vec::new(),
            injected_contexts: Vec::new(),
            passed_by: format!("the permit of {held}"),
        };
        let span = self.new_span();
        self.record_as(&place.below(span), passed, Durability::Sync);
    }

    /// Notes that an action may run now, and what for.
    pub(super) fn allow(&mut self, place: &Place, call: &ActionCall, new: Given) -> Allowed {
        let state = &self.engine.state;
        let limits = state.sessions.get(&place.session).map(|session| {
            policy::limits(evaluate::Case {
                atlases: &self.engine.atlases,
                usage: &state.usage,
                session,
                call,
                now: self.now,
            })
        });
        let now = self.now;
        let counted = self
            .state()
            .usage
            .count(&limits.unwrap_or_default(), call, now);
        for (key, spent) in counted {
            self.persist(StateKind::Usage, &key, Some(&spent));
        }
        let execution: ExecutionId = self.engine.ids.next().into();
        let running = Running {
            action: call.action.clone(),
            trace_id: place.trace_id.clone(),
            span_id: place.span_id.clone(),
            since: self.now,
        };
        let called = self.give_on(place, Cause::Run(call));
        let mut given = Given::default();
        if let Some(session) = self.state().sessions.get_mut(&place.session) {
            given = std::mem::take(&mut session.owed);
            session.actions = session.actions.saturating_add(1);
            while session.running.len() >= MAX_RUNNING_PER_SESSION {
                // Identifiers are in the order of time.
                session.running.pop_first();
            }
            session.running.insert(execution.clone(), running);
        }
        self.touch(&place.session);
        given.extend(new);
        given.extend(called);
        Allowed { execution, given }
    }

    pub(super) fn asker_left(&mut self, ask: AskId) {
        let state = self.state();
        for waiting in state.held.values_mut() {
            waiting.askers.retain(|asker| *asker != ask);
        }
        for parked in state.parked.values_mut() {
            parked.retain(|(asker, _)| *asker != ask);
        }
    }

    /// Records and tells a refusal that was settled before any evaluation.
    pub(super) fn refuse_action(
        &mut self,
        ask: AskId,
        request: &ActionRequest,
        code: DenyCode,
        by: &str,
        reason: String,
    ) {
        let Some(session) = self.engine.state.sessions.get(&request.session) else {
            self.deny(ask, code, reason);
            return;
        };
        let root = session_place(session);
        let (tier, tier_source) =
            evaluate::tier(&self.engine.atlases, &request.action, &request.params);
        let call = ActionCall {
            action: request.action.clone(),
            params: exact(&request.params),
            tier,
            tier_source,
        };
        let place = Place {
            trace_id: self.new_trace(),
            ..root.below(self.new_span())
        };
        self.record(&place, attempted(&call));
        self.block(&place, &call, by, &reason);
        self.deny(ask, code, reason);
    }

    /// Records that an action may not run.
    pub(super) fn block(&mut self, place: &Place, call: &ActionCall, by: &str, reason: &str) {
        let record = ActionBlocked {
            action_type: call.action.clone(),
            action_params: call.params.clone(),
            policy_id: by.to_owned(),
            reason: reason.to_owned(),
            override_available: false,
        };
        self.record_below(place, record);
    }

    /// Why no more can be held, if so.
    fn overload(&self, session: &SessionId) -> Option<String> {
        let held = &self.engine.state.held;
        let own = held.values().filter(|it| it.held.session == *session);
        if own.count() >= MAX_HELD_PER_SESSION {
            return Some(format!(
                "{MAX_HELD_PER_SESSION} requests of this session are held"
            ));
        }
        (held.len() >= MAX_HELD).then(|| format!("{MAX_HELD} requests are held already"))
    }
}

fn request_fault(request: &ActionRequest) -> Option<String> {
    let length = request.action.chars().count();
    if length == 0 || length > MAX_ACTION_LEN {
        return Some(format!(
            "an action's name has 1 to {MAX_ACTION_LEN} characters, not {length}"
        ));
    }
    if !(request.params.is_object() || request.params.is_null()) {
        return Some("parameters are a JSON object".to_owned());
    }
    // Before anything walks through them: what is too deep must not be walked through.
    if is_deeper(&request.params, MAX_PARAMS_DEPTH) {
        return Some(format!(
            "parameters are nested at most {MAX_PARAMS_DEPTH} levels deep"
        ));
    }
    let size = canonical(&request.params).len();
    (size > MAX_PARAMS_BYTES)
        .then(|| format!("parameters have at most {MAX_PARAMS_BYTES} bytes, not {size}"))
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, levels - 1)),
    }
}

fn attempted(call: &ActionCall) -> ActionAttempted {
    ActionAttempted {
        action_type: call.action.clone(),
        action_params: call.params.clone(),
        risk_tier: call.tier.as_str().to_owned(),
        policy_checked: true,
        context_injected: None,
    }
}

fn risk_detected(call: &ActionCall) -> RiskDetected {
    RiskDetected {
        risk_tier: call.tier.as_str().to_owned(),
        trigger: match call.tier_source {
            TierSource::Declared => "declared by the Atlas".to_owned(),
            TierSource::Detected => "detected from the words of the request".to_owned(),
        },
        action_type: Some(call.action.clone()),
        recommended_action: "verify".to_owned(),
    }
}
