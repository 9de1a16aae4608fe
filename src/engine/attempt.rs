//! Attempts that were judged: denied, allowed to run, or held.

use std::collections::BTreeSet;

use crate::atlas::model::Trigger;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, ExecutionId, SessionId};
use crate::base::limits::{
    MAX_HELD, MAX_HELD_BYTES, MAX_HELD_PER_SESSION, MAX_RUNNING_PER_SESSION,
};
use crate::trace::event::{CheckpointPassed, Durability, Recommendation};

use super::Permit;
use super::command::{CallerId, DenyCode, Injected, Reply, RunPermission, StateKind};
use super::context_injection::InjectionCause;
use super::denial::Denial;
use super::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use super::gate::{GatePresence, HoldRequest, RaisedGate};
use super::handler_effects::HandledCommandKind;
use super::held::{ActionCall, Gate, GateOrigin, HeldSubject};
use super::notice::ReleaseInfo;
use super::policy;
use super::redacted_records::BlockReason;
use super::session::RunningAction;
use super::transaction::{SpanPosition, Transaction};

/// An attempt that nothing denies. Only gates can still stop it.
pub(super) struct Attempt {
    pub(super) call: ActionCall,
    pub(super) subject: HeldSubject,
    pub(super) hash: Digest,
    pub(super) place: SpanPosition,
    /// Event that recorded the attempt, if this command recorded it.
    pub(super) event: Option<EventId>,
    pub(super) deadline: Option<Timestamp>,
    /// The agent's own identifier of the call.
    pub(super) same_call: Option<String>,
    pub(super) fired: Vec<OwnedFiredCheckpoint>,
    pub(super) approvals: Vec<OwnedRequiredApproval>,
    pub(super) given: Injected,
    /// True when a permit overrules a denial of the attempt. The permit is then used up even if other gates
    /// hold the attempt.
    pub(super) overruled: bool,
}

/// Help text for an agent whose denial an operator may overrule.
pub(super) const OVERRULE_HELP: &str =
    "an operator can overrule this denial for exactly this request; repeat the request after that";

impl Transaction<'_> {
    /// Denies an attempt. If an operator may overrule the denial, it is queued for that, and no caller waits
    /// for it.
    pub(super) fn deny_attempt(&mut self, ask: CallerId, mut attempt: Attempt, denial: Denial) {
        self.apply_access_checkpoints(&attempt, &denial);
        let Denial {
            by,
            atlas,
            mut denied,
            overrides,
        } = denial;
        let why = BlockReason {
            code: denied.code,
            reason: &denied.reason,
            override_available: overrides.is_some(),
            under: atlas.as_slice(),
        };
        self.record_risk(&attempt.place, &attempt.call, Recommendation::Block);
        self.record_blocked_action(&attempt.place, &attempt.call, &by, why);
        if let Some(overrides) = overrides
            && self.overload(&attempt.place.session).is_none()
        {
            attempt.approvals.insert(0, overrides);
            let raised = self.raise_all(&attempt.fired, &attempt.approvals);
            let request = HoldRequest {
                subject: attempt.subject,
                hash: attempt.hash,
                place: attempt.place,
                deadline: None,
                same_call: attempt.same_call,
                withheld: Vec::new(),
                advice: Vec::new(),
                modified_input: None,
            };
            denied.gate = self.hold_request(None, request, raised);
            denied.help = Some(OVERRULE_HELP.to_owned());
        }
        self.reply(ask, Reply::Denied(denied));
    }

    /// Applies the results of the handlers of fired checkpoints, then allows or holds the attempt.
    pub(super) fn apply_handlers(&mut self, ask: CallerId, mut attempt: Attempt) {
        let gated = !attempt.approvals.is_empty() || attempt.overruled;
        self.withheld_for_gate = gated.then(Vec::new);
        let handled = self.apply_handler_outcomes(
            &attempt.place,
            &attempt.subject,
            &mut attempt.fired,
            HandledCommandKind::Action,
        );
        if let Some(stop) = handled.stop {
            let fired = attempt.fired.get(stop.index);
            let by = fired.map_or_else(String::new, |fired| fired.checkpoint.id.clone());
            let under = self.atlas_refs(fired.map(|fired| fired.atlas_id.as_str()));
            let why = BlockReason {
                under: &under,
                ..BlockReason::final_reason(DenyCode::Extension, &stop.reason)
            };
            self.record_risk(&attempt.place, &attempt.call, Recommendation::Block);
            self.record_blocked_action(&attempt.place, &attempt.call, &by, why);
            self.deny(ask, DenyCode::Extension, stop.reason);
            return;
        }
        attempt.approvals.extend(handled.approvals);
        attempt.given = handled.injected;
        self.pass_or_hold(ask, attempt);
    }

    /// Returns the denials that a permit for exactly this request overrules.
    pub(super) fn permitted_overrides(&self, hash: Digest) -> BTreeSet<String> {
        let permit = self.valid_permit(hash);
        permit
            .map(|permit| permit.overrides.clone())
            .unwrap_or_default()
    }

    /// Returns the first permit for exactly this request that is valid now under the loaded Atlases.
    pub(super) fn valid_permit(&self, hash: Digest) -> Option<&Permit> {
        let mut permits = self.engine.state.permits.of_request(&hash);
        permits.find(|permit| self.is_good(permit))
    }

    fn is_good(&self, permit: &Permit) -> bool {
        permit.atlas_hash == self.engine.atlas_hash && permit.expires_at > self.now
    }

    /// Allows an attempt when no gate is in its way or a permit opens all of them. Otherwise holds it.
    fn pass_or_hold(&mut self, ask: CallerId, attempt: Attempt) {
        let Attempt {
            call,
            subject,
            hash,
            place,
            event,
            deadline,
            same_call,
            fired,
            mut approvals,
            mut given,
            overruled,
        } = attempt;
        let gated =
            fired.iter().any(OwnedFiredCheckpoint::is_gate) || !approvals.is_empty() || overruled;
        let permit = gated
            .then(|| self.permit_for(hash, &fired, &mut approvals))
            .flatten();
        let beside = if gated && permit.is_none() {
            GatePresence::Gate
        } else {
            GatePresence::NoGate
        };
        if beside == GatePresence::Gate && self.refuse_overload(ask, &place, &call) {
            return;
        }
        let recommended = match beside {
            GatePresence::Gate => Recommendation::Verify,
            GatePresence::NoGate => Recommendation::Proceed,
        };
        self.record_risk(&place, &call, recommended);
        self.store_interval_firings(&place.session, &fired);
        let (more, mut raised) = self.apply_fired(&place, &fired, &subject, beside);
        given.extend(more);
        let withheld = self.withheld_for_gate.take().unwrap_or_default();
        if !gated {
            let allowed = self.allow_run(&place, &call, given);
            self.amend_attempt(event.as_ref(), &allowed.given);
            self.notify_release(&place, &call, None);
            self.reply(ask, Reply::Allowed(allowed));
            return;
        }
        if let Some(permit) = permit {
            let in_the_way = names_of_gates(&fired, &approvals);
            let attempt = (&place, event.as_ref(), &call);
            self.run_by_permit(ask, attempt, &in_the_way, permit, given);
            return;
        }
        let approvals = approvals.iter();
        raised.extend(approvals.map(|approval| self.raise_approval_gate(approval)));
        let advice = fired
            .iter()
            .filter(|fired| fired.certain && fired.is_advisory());
        let request = HoldRequest {
            subject,
            hash,
            place,
            deadline,
            same_call,
            withheld,
            advice: advice.map(OwnedFiredCheckpoint::advisory_effects).collect(),
            modified_input: None,
        };
        self.hold_request(Some(ask), request, raised);
    }

    /// Refuses an attempt that would have to be held while the queue is full.
    fn refuse_overload(&mut self, ask: CallerId, place: &SpanPosition, call: &ActionCall) -> bool {
        let Some(reason) = self.overload(&place.session) else {
            return false;
        };
        self.withheld_for_gate = None;
        let why = BlockReason::final_reason(DenyCode::Overload, &reason);
        self.record_risk(place, call, Recommendation::Block);
        self.record_blocked_action(place, call, "overload", why);
        self.deny(ask, DenyCode::Overload, reason);
        true
    }

    /// Applies the checkpoints of an attempt in order.
    ///
    /// If a gate fired as well, their injections are withheld and the gates are raised. Otherwise only the
    /// checkpoints that are not gates apply.
    fn apply_fired(
        &mut self,
        place: &SpanPosition,
        fired: &[OwnedFiredCheckpoint],
        subject: &HeldSubject,
        beside: GatePresence,
    ) -> (Injected, Vec<RaisedGate>) {
        let withheld = self.withheld_for_gate.take().unwrap_or_default();
        if beside == GatePresence::Gate {
            self.withheld_for_gate = Some(withheld);
            return self.apply_in_order(place, subject, fired, beside);
        }
        let mut given = self.inject_withheld(place, withheld);
        for fired in fired.iter().filter(|fired| !fired.is_gate()) {
            given.extend(self.apply_non_blocking(place, fired, subject, beside));
        }
        (given, Vec::new())
    }

    /// Applies the non-blocking checkpoints at a locked capability. They fire although the capability stays
    /// locked, and their injections go with the next answer.
    fn apply_access_checkpoints(&mut self, attempt: &Attempt, denial: &Denial) {
        if denial.denied.code != DenyCode::CapabilityLocked {
            return;
        }
        let at_capability = |fired: &&OwnedFiredCheckpoint| {
            let access = matches!(fired.checkpoint.trigger, Trigger::CapabilityAccess(_));
            access && !fired.is_gate()
        };
        let (place, subject) = (&attempt.place, &attempt.subject);
        for fired in attempt.fired.iter().filter(at_capability) {
            let given = self.apply_non_blocking(place, fired, subject, GatePresence::NoGate);
            self.add_pending_injections(&place.session, given);
        }
    }

    /// Takes the permit that opens all gates in the way.
    ///
    /// If a gate stands there that was not passed, all gates are asked again, together with the denials that
    /// the permit overruled.
    fn permit_for(
        &mut self,
        hash: Digest,
        fired: &[OwnedFiredCheckpoint],
        approvals: &mut Vec<OwnedRequiredApproval>,
    ) -> Option<Permit> {
        let permit = self.take_permit(hash)?;
        if permit.opens(fired, approvals) {
            return Some(permit);
        }
        approvals.extend(self.overruled_approvals(&permit));
        None
    }

    /// Returns the denials that a permit overrules, as approvals to ask for again.
    fn overruled_approvals(&self, permit: &Permit) -> Vec<OwnedRequiredApproval> {
        let mut again = Vec::new();
        for atlas in self.engine.atlases.iter() {
            for policy in &atlas.policies {
                if permit
                    .overrides
                    .contains(&override_key(&atlas.id, &policy.id))
                {
                    again.push(OwnedRequiredApproval {
                        atlas_id: atlas.id.clone(),
                        policy_id: policy.id.clone(),
                        reason: policy.reason.clone(),
                        why: format!("an operator overruled this denial at {}", permit.gate),
                        overrides: true,
                    });
                }
            }
        }
        again
    }

    /// Returns the gates of an attempt, in the order they are asked.
    fn raise_all(
        &mut self,
        fired: &[OwnedFiredCheckpoint],
        approvals: &[OwnedRequiredApproval],
    ) -> Vec<RaisedGate> {
        let mut raised = Vec::new();
        for fired in fired {
            if fired.is_gate() {
                raised.push(self.raise_checkpoint_gate(fired));
            }
        }
        raised.extend(
            approvals
                .iter()
                .map(|approval| self.raise_approval_gate(approval)),
        );
        raised
    }

    /// Allows a request that was approved while its caller was away.
    fn run_by_permit(
        &mut self,
        ask: CallerId,
        (place, event, call): (&SpanPosition, Option<&EventId>, &ActionCall),
        gates: &[(String, String)],
        permit: Permit,
        mut given: Injected,
    ) {
        for (atlas_id, gate) in gates {
            self.record_permitted(place, (atlas_id, gate), &permit);
        }
        given.extend(permit.given);
        let mut allowed = self.allow_run(place, call, given);
        self.amend_attempt(event, &allowed.given);
        let release = ReleaseInfo {
            gate: &permit.gate,
            approver: permit.approved_by.as_deref(),
            passed: &permit.passed,
        };
        self.notify_release(place, call, Some(&release));
        allowed.approved_by = permit.approved_by;
        self.reply(ask, Reply::Allowed(allowed));
    }

    /// Takes the permit for exactly this request under exactly the loaded Atlases, if there is one.
    fn take_permit(&mut self, hash: Digest) -> Option<Permit> {
        let gate = self.valid_permit(hash)?.gate.clone();
        self.persist::<()>(StateKind::Permit, gate.as_str(), None);
        self.state().permits.remove(&gate)
    }

    /// Records that a gate is open because the request was passed before.
    fn record_permitted(
        &mut self,
        place: &SpanPosition,
        (atlas_id, gate): (&str, &str),
        permit: &Permit,
    ) {
        let held = &permit.gate;
        let passed = CheckpointPassed {
            checkpoint_id: gate.to_owned(),
            unlocked_capabilities: Vec::new(),
            injected_contexts: Vec::new(),
            passed_by: format!("the permit of {held}"),
            approval_method: Some("permit".to_owned()),
            justification: None,
            justification_source: None,
            approvers: Vec::new(),
            request_hash: Some(permit.request_hash.to_string()),
            judged_under: self.atlas_refs(Some(atlas_id)),
        };
        let span = self.new_span();
        self.record_as(&place.child(span), passed, Durability::Sync);
    }

    /// Registers a run of an action and counts it against its limits. Returns the reply to the agent.
    pub(super) fn allow_run(
        &mut self,
        place: &SpanPosition,
        call: &ActionCall,
        new: Injected,
    ) -> RunPermission {
        let session = self.engine.state.sessions.get(&place.session);
        let limits = session.map(|session| policy::limits(self.evaluation_case(session, call)));
        let now = self.now;
        let counted = self
            .state()
            .usage
            .count(&limits.unwrap_or_default(), call, now);
        for (key, spent) in counted {
            self.persist(StateKind::Usage, &key, Some(&spent));
        }
        let execution: ExecutionId = self.engine.ids.next().into();
        let running = RunningAction {
            action: call.action.clone(),
            trace_id: place.trace_id.clone(),
            span_id: place.span_id.clone(),
            since: self.now,
        };
        let called = self.give_on(place, InjectionCause::Run(call));
        let mut given = Injected::default();
        if let Some(session) = self.state().sessions.get_mut(&place.session) {
            given = std::mem::take(&mut session.owed);
            session.actions = session.actions.saturating_add(1);
            while session.running.len() >= MAX_RUNNING_PER_SESSION {
                // Execution identifiers are ordered by time.
                session.running.pop_first();
            }
            session.running.insert(execution.clone(), running);
        }
        self.mark_changed(&place.session);
        given.extend(new);
        given.extend(called);
        RunPermission {
            execution,
            given,
            approved_by: None,
        }
    }

    /// Returns the reason why no more requests can be held, if a limit is reached.
    pub(super) fn overload(&self, session: &SessionId) -> Option<String> {
        let held = &self.engine.state.held;
        if held.count_of(session) >= MAX_HELD_PER_SESSION {
            return Some(format!(
                "{MAX_HELD_PER_SESSION} requests of this session are already held"
            ));
        }
        if held.bytes() >= MAX_HELD_BYTES {
            let most = MAX_HELD_BYTES / (1024 * 1024);
            return Some(format!("held requests already use {most} MiB"));
        }
        (held.len() >= MAX_HELD).then(|| format!("{MAX_HELD} requests are already held"))
    }
}

impl Permit {
    /// Returns whether the permit was given for every gate that stands in the way now.
    pub(super) fn opens(
        &self,
        fired: &[OwnedFiredCheckpoint],
        approvals: &[OwnedRequiredApproval],
    ) -> bool {
        let gates = fired
            .iter()
            .filter(|fired| fired.is_gate())
            .map(|fired| ("checkpoint", &fired.atlas_id, &fired.checkpoint.id));
        let approvals = approvals
            .iter()
            .map(|approval| ("policy", &approval.atlas_id, &approval.policy_id));
        let mut all = gates.chain(approvals);
        all.all(|(kind, atlas_id, id)| self.passed.contains(&gate_key(kind, atlas_id, id)))
    }
}

/// Returns the Atlas and identifier of each gate in the way of an attempt: checkpoints first, then policies.
fn names_of_gates(
    fired: &[OwnedFiredCheckpoint],
    approvals: &[OwnedRequiredApproval],
) -> Vec<(String, String)> {
    let checkpoints = fired.iter().filter(|fired| fired.is_gate());
    let checkpoints =
        checkpoints.map(|fired| (fired.atlas_id.clone(), fired.checkpoint.id.clone()));
    let policies = approvals
        .iter()
        .map(|approval| (approval.atlas_id.clone(), approval.policy_id.clone()));
    checkpoints.chain(policies).collect()
}

/// Returns the keys of the gates that a held request passes.
pub(super) fn passed_gates(gates: &[Gate]) -> BTreeSet<String> {
    let keys = gates.iter().map(|gate| {
        let kind = match &gate.origin {
            GateOrigin::Checkpoint { .. } => "checkpoint",
            GateOrigin::Approval { .. } | GateOrigin::Override { .. } => "policy",
        };
        gate_key(kind, gate.origin.atlas_id(), gate.origin.id())
    });
    keys.collect()
}

/// Returns the checkpoints and policies of one Atlas among passed gates.
pub(super) fn gates_of_atlas(passed: &BTreeSet<String>, atlas_id: &str) -> Vec<String> {
    let kinds = ["checkpoint", "policy"].map(|kind| gate_key(kind, atlas_id, ""));
    let own = |key: &String| {
        let id = kinds.iter().find_map(|kind| key.strip_prefix(kind));
        id.map(str::to_owned)
    };
    passed.iter().filter_map(own).collect()
}

pub(super) fn gate_key(kind: &str, atlas_id: &str, id: &str) -> String {
    format!("{kind}/{atlas_id}/{id}")
}

/// Returns the key under which an overruled denial is stored.
pub(super) fn override_key(atlas_id: &str, policy_id: &str) -> String {
    format!("{atlas_id}/{policy_id}")
}
