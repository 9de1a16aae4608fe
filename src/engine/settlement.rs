//! Ends of held requests: released, or ended without passing.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::id::GateId;
use crate::base::limits::PERMIT_LIFETIME;
use crate::trace::event::{ActionTaken, CheckpointBlocked, CheckpointCompleted, Durability};

use super::agent_answers::is_for_agent;
use super::approval;
use super::attempt::{gate_key, passed_gates};
use super::command::{
    ActionRequest, CallerId, DenialReply, DenyCode, Effect, EngineCommand, HeldOutcome, Injected,
    Reply, SettledRequest, StateKind,
};
use super::decision::overruled_denials;
use super::evaluation;
use super::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use super::held::{ActionCall, Gate, Held, HeldSubject};
use super::lifecycle::{millis, session_position};
use super::notice::ReleaseInfo;
use super::redacted_records::{BlockReason, RedactedText, may_quote_request};
use super::session::{StartState, UnpassedGates};
use super::transaction::{SpanPosition, Transaction};
use super::{HeldEntry, Permit};

/// The end of a request that does not pass.
pub(super) struct RequestEnding {
    pub(super) outcome: HeldOutcome,
    pub(super) by: Option<String>,
    pub(super) code: DenyCode,
    pub(super) reason: String,
}

impl Transaction<'_> {
    /// Allows one waiting caller to run the action, or leaves a permit if no caller waits.
    ///
    /// One approval is one run. Several callers wait only for the same call: the caller that asked last gets
    /// the run.
    pub(super) fn release_request(
        &mut self,
        held: &Held,
        place: &SpanPosition,
        call: &ActionCall,
        given: Injected,
        (mut askers, approved_by): (Vec<CallerId>, Option<String>),
    ) {
        let Some(last) = askers.pop() else {
            self.store_permit(held, given, approved_by);
            return;
        };
        for earlier in askers {
            let reason = "the agent repeated the same call, and cra allowed the repeat";
            self.reply(earlier, denied(held, DenyCode::Withdrawn, reason));
        }
        if self.blocking_gate(held).is_some() || self.meets_new_gate(held, call) {
            // It runs when the gates that stand in its way by now are passed as well.
            self.store_permit(held, given, approved_by);
            let request = ActionRequest {
                session: held.session.clone(),
                action: call.action.clone(),
                params: call.params.clone(),
                deadline: None,
                resolution: None,
                call: None,
            };
            self.start_command(EngineCommand::RequestAction(last, request));
            return;
        }
        let mut allowed = self.allow_run(place, call, given);
        let release = ReleaseInfo {
            gate: &held.id,
            approver: approved_by.as_deref(),
            passed: &passed_gates(&held.gates),
        };
        self.notify_release(place, call, Some(&release));
        allowed.approved_by = approved_by;
        self.reply(last, Reply::Allowed(allowed));
    }

    /// Returns whether a request whose gates are passed would be held if it were made now.
    ///
    /// That is the case if an interval became due, or if its session did something that a gate evaluates.
    fn meets_new_gate(&self, held: &Held, call: &ActionCall) -> bool {
        if self.has_due_gate(&held.session) {
            return true;
        }
        let Some(session) = self.live_session(&held.session) else {
            return false;
        };
        let overridden = overruled_denials(held);
        let found = evaluation::evaluate_action(evaluation::EvaluationCase {
            overridden: &overridden,
            ..self.evaluation_case(session, call)
        });
        let passed = passed_gates(&held.gates);
        let fired = found.fired.into_iter().map(OwnedFiredCheckpoint::from);
        let mut gates = fired
            .filter(OwnedFiredCheckpoint::is_gate)
            .map(|fired| gate_key("checkpoint", &fired.atlas_id, &fired.checkpoint.id));
        let approvals = found.approvals.into_iter().map(OwnedRequiredApproval::from);
        let mut approvals =
            approvals.map(|approval| gate_key("policy", &approval.atlas_id, &approval.policy_id));
        gates.any(|gate| !passed.contains(&gate))
            || approvals.any(|approval| !passed.contains(&approval))
    }

    fn store_permit(&mut self, held: &Held, given: Injected, approved_by: Option<String>) {
        // The injections go with the next reply, so that no other request of the session runs without them.
        self.add_pending_injections(&held.session, given);
        self.unname_contexts(held);
        let permit = Permit {
            request_hash: held.request_hash,
            atlas_hash: held.atlas_hash,
            session: held.session.clone(),
            gate: held.id.clone(),
            expires_at: self.now.plus(PERMIT_LIFETIME),
            given: Injected::default(),
            overrides: overruled_denials(held),
            passed: passed_gates(&held.gates),
            approved_by,
            trace_id: held.trace_id.clone(),
            span_id: held.span_id.clone(),
        };
        let now = self.now;
        let permits = &mut self.engine.state.permits;
        for gate in permits.remove_where(|permit| permit.expires_at <= now) {
            self.persist::<()>(StateKind::Permit, gate.as_str(), None);
        }
        self.persist(StateKind::Permit, permit.gate.as_str(), Some(&permit));
        self.state().permits.insert(permit);
    }

    pub(super) fn deadline_reached(&mut self, gate: &GateId) {
        let Some(waiting) = self.engine.state.held.get(gate) else {
            return;
        };
        // An early wake-up, or one for an earlier deadline, is ignored.
        if waiting.held.deadline > self.now {
            return;
        }
        let held = Arc::clone(&waiting.held);
        let seconds = held.deadline.since(held.opened_at).as_secs();
        self.end_held(
            &held,
            RequestEnding {
                outcome: HeldOutcome::Expired,
                by: None,
                code: DenyCode::Expired,
                reason: format!("no answer within {seconds} s, so the request is denied"),
            },
        );
    }

    /// Ends a held request without a decision.
    pub(super) fn withdraw(&mut self, gate: &GateId, outcome: HeldOutcome, reason: &str) {
        let Some(waiting) = self.engine.state.held.get(gate) else {
            return;
        };
        let held = Arc::clone(&waiting.held);
        self.end_held(
            &held,
            RequestEnding {
                outcome,
                by: None,
                code: DenyCode::Withdrawn,
                reason: reason.to_owned(),
            },
        );
    }

    /// Ends a held request that does not pass: writes records, sends replies, and restricts its session.
    pub(super) fn end_held(&mut self, held: &Held, ending: RequestEnding) -> SettledRequest {
        let place = self.held_position(held);
        let waiting = self.remove_held(&held.id);
        for gate in &held.gates {
            self.record_blocked(held, &place, gate, &ending);
        }
        match &held.subject {
            HeldSubject::SessionStart => {
                self.end_session_start(held, &ending);
                self.refuse_parked(&held.session, ending.code, &ending.reason);
            }
            HeldSubject::Moment(moment) => {
                if let Some(session) = self.state().sessions.get_mut(&held.session) {
                    session.pending.remove(&held.id);
                    // Refused input was not accepted, unless the agent needed it to answer. All other events
                    // did happen.
                    let taken = moment.reached_agent && is_for_agent(held);
                    if moment.kind != "keyword_match" || taken {
                        let gates = held.gates.iter();
                        session.unpassed.push(UnpassedGates {
                            moment: moment.clone().without_text(),
                            checkpoints: gates.map(|gate| gate.origin.id().to_owned()).collect(),
                        });
                    }
                }
                self.mark_changed(&held.session);
                self.deliver_withheld(&held.session);
                self.refuse_parked(&held.session, ending.code, &ending.reason);
            }
            HeldSubject::Action(call) => {
                let by = held.gates.first().map_or("", |gate| gate.origin.id());
                let under: BTreeSet<_> =
                    held.gates.iter().flat_map(approval::judged_under).collect();
                let under: Vec<_> = under.into_iter().collect();
                let why = BlockReason {
                    under: &under,
                    ..BlockReason::final_reason(ending.code, &ending.reason)
                };
                self.record_blocked_action(&place, call, by, why);
            }
        }
        let (given, askers) = waiting
            .map(|waiting| (waiting.given, waiting.askers))
            .unwrap_or_default();
        self.forget_undelivered_contexts(held, &given);
        for asker in askers {
            self.reply(asker, denied(held, ending.code, &ending.reason));
        }
        // The outcome names the operator, so the reason need not repeat the name.
        let refused_by = ending.by.as_ref().map(|by| format!("denied by {by}: "));
        let detail =
            refused_by.and_then(|prefix| ending.reason.strip_prefix(&prefix).map(str::to_owned));
        self.record_outcome(
            held,
            ending.outcome,
            ending.by,
            detail.unwrap_or(ending.reason),
        )
    }

    /// Closes a session whose start gate was not passed: it is refused, or the gate is raised again at its
    /// next command.
    fn end_session_start(&mut self, held: &Held, ending: &RequestEnding) {
        let Some(session) = self.state().sessions.get_mut(&held.session) else {
            return;
        };
        match ending.outcome {
            HeldOutcome::Denied => session.refuse(ending.reason.clone()),
            HeldOutcome::Passed
            | HeldOutcome::Expired
            | HeldOutcome::Withdrawn
            | HeldOutcome::Voided => {
                let gates = held.gates.iter();
                let owed = gates.map(|gate| gate.origin.id().to_owned()).collect();
                session.entry = StartState::Lapsed { owed };
            }
        }
    }

    /// Forgets the contexts of a request that did not pass: the agent never saw them, and gets them when they
    /// are selected again.
    fn forget_undelivered_contexts(&mut self, held: &Held, given: &Injected) {
        if let Some(session) = self.state().sessions.get_mut(&held.session) {
            for context in &given.contexts {
                session.forget_context(Some(&context.context_id));
            }
        }
        self.mark_changed(&held.session);
    }

    fn record_blocked(
        &mut self,
        held: &Held,
        place: &SpanPosition,
        gate: &Gate,
        ending: &RequestEnding,
    ) {
        let here = place.child(gate.span_id.clone());
        let span = self.new_span();
        let told = self.redact_ending(held, ending);
        let blocked = CheckpointBlocked {
            checkpoint_id: gate.origin.id().to_owned(),
            reason: told.text.clone(),
            blocked_action: held.action().to_owned(),
            outcome: ending.outcome.as_str().to_owned(),
            decided_by: ending.by.clone(),
            judged_under: approval::judged_under(gate),
            redacted: told.redacted.clone(),
        };
        self.record_as(&here.child(span), blocked, Durability::Sync);
        self.record_below(
            &here,
            CheckpointCompleted {
                checkpoint_id: gate.origin.id().to_owned(),
                checkpoint_type: gate.origin.kind().to_owned(),
                duration_ms: millis(self.now, held.opened_at),
                contexts_injected: Vec::new(),
                action_taken: Some(ActionTaken::Block),
                block_reason: Some(told.text),
                judged_under: approval::judged_under(gate),
                redacted: told.redacted,
            },
        );
    }

    /// Returns the recorded reason why a request did not pass.
    fn redact_ending(&self, held: &Held, ending: &RequestEnding) -> RedactedText {
        match &held.subject {
            HeldSubject::Action(call) if may_quote_request(ending.code) => {
                self.redact_reason(Some(call), "reason", &ending.reason)
            }
            HeldSubject::Action(_) | HeldSubject::SessionStart | HeldSubject::Moment(_) => {
                RedactedText::plain(&ending.reason)
            }
        }
    }

    /// Removes a request from the queue.
    pub(super) fn remove_held(&mut self, gate: &GateId) -> Option<HeldEntry> {
        let waiting = self.state().held.remove(gate);
        self.persist::<()>(StateKind::Held, gate.as_str(), None);
        waiting
    }

    pub(super) fn record_outcome(
        &mut self,
        held: &Held,
        outcome: HeldOutcome,
        by: Option<String>,
        detail: String,
    ) -> SettledRequest {
        let decided = SettledRequest {
            gate: held.id.clone(),
            at: self.now,
            outcome,
            by,
            detail,
            session: held.session.clone(),
            agent: held.agent.clone(),
            action: held.action().to_owned(),
            tier: held.tier(),
        };
        self.state().add_outcome(Arc::new(decided.clone()));
        self.push(Effect::RequestSettled(decided.clone()));
        decided
    }

    pub(super) fn held_position(&self, held: &Held) -> SpanPosition {
        let root = self
            .engine
            .state
            .sessions
            .get(&held.session)
            .map(session_position);
        let parent = match held.subject {
            HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
            HeldSubject::Action(_) => root.map(|root| root.span_id),
        };
        SpanPosition {
            session: held.session.clone(),
            trace_id: held.trace_id.clone(),
            span_id: held.span_id.clone(),
            parent,
        }
    }
}

pub(super) fn denied(held: &Held, code: DenyCode, reason: &str) -> Reply {
    let hint = match code {
        DenyCode::Expired => Some("try again when an operator is at the console".to_owned()),
        _ => None,
    };
    Reply::Denied(DenialReply {
        code,
        reason: reason.to_owned(),
        help: hint,
        gate: Some(held.id.clone()),
    })
}
