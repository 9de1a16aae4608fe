//! Records of attempts. Each attempt is recorded once, with its own time, before any extension is called
//! about it.
//!
//! Contract: when extensions take part, the attempt and the verdict of the policies are on disk before the
//! first extension is called. When the answers are in, policies are consulted again; a different verdict is
//! recorded again.

use crate::atlas::document::TraceLevel;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::trace::event::{Durability, PolicyChecked, PolicyOutcome as Verdict};

use super::command::{ActionRequest, CallerId, DenyCode, EngineCommand};
use super::evaluation::{self, Evaluation, EvaluationCase};
use super::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use super::held::{ActionCall, request_hash};
use super::redacted_records::{BlockReason, PolicyCheck, atlas_ref};
use super::transaction::{SpanPosition, Transaction};

/// An attempt that is on record and not yet decided. It is not persisted.
#[derive(Debug)]
pub(super) struct PendingAttempt {
    place: SpanPosition,
    call: ActionCall,
    checked: PolicyChecked,
}

impl PendingAttempt {
    pub(super) fn place(&self) -> &SpanPosition {
        &self.place
    }

    pub(super) fn is_of(&self, session: &SessionId) -> bool {
        self.place.session == *session
    }
}

/// An evaluation that owns its data.
pub(super) struct JudgedAttempt {
    pub(super) checked: PolicyChecked,
    pub(super) denial: Option<super::denial::Denial>,
    pub(super) fired: Vec<OwnedFiredCheckpoint>,
    pub(super) approvals: Vec<OwnedRequiredApproval>,
    /// True when a permit overrules a denial of the attempt.
    pub(super) overruled: bool,
}

impl Transaction<'_> {
    /// Records the attempt of a command that has to wait for extensions.
    pub(super) fn record_pending_attempt(&mut self, command: &EngineCommand) {
        let EngineCommand::RequestAction(ask, request) = command else {
            return;
        };
        let begun = &self.engine.state.pending_attempts;
        if begun.contains_key(ask) || self.live_session(&request.session).is_none() {
            return;
        }
        let hash = hash_of_request(request);
        let call = ActionCall::of(&self.engine.atlases, &request.action, &request.params);
        let Some(place) = self.attempt_place(*ask, &request.session, hash) else {
            return;
        };
        let Some(judged) = self.judge_call(&request.session, &call, hash) else {
            return;
        };
        let checked = judged.checked;
        // The agent may be gone, and this process with it, before the extension answers.
        self.record_judged(*ask, (&place, &call), checked.clone(), Durability::Sync);
        let begun = PendingAttempt {
            place,
            call,
            checked,
        };
        self.state().pending_attempts.insert(*ask, begun);
    }

    /// Judges an action of a session, with the permit that is valid for it.
    pub(super) fn judge_call(
        &self,
        session: &SessionId,
        call: &ActionCall,
        hash: Digest,
    ) -> Option<JudgedAttempt> {
        let known = self.engine.state.sessions.get(session)?;
        let overridden = self.permitted_overrides(hash);
        let found = evaluation::evaluate_action(EvaluationCase {
            overridden: &overridden,
            ..self.evaluation_case(known, call)
        });
        let mut checked = self.policy_record(session, call, &found);
        let denial = found.denial;
        let fired: Vec<OwnedFiredCheckpoint> = found.fired.into_iter().map(Into::into).collect();
        let approvals: Vec<OwnedRequiredApproval> =
            found.approvals.into_iter().map(Into::into).collect();
        let overruled = !overridden.is_empty();
        let gated =
            overruled || !approvals.is_empty() || fired.iter().any(OwnedFiredCheckpoint::is_gate);
        let permit = self
            .valid_permit(hash)
            .filter(|_| gated && denial.is_none());
        match permit {
            Some(permit) if permit.opens(&fired, &approvals) => {
                checked.permit = Some(permit.gate.to_string());
                checked.approved_by.clone_from(&permit.approved_by);
            }
            // The overruled denial is asked about again, together with the gates that stand there now.
            Some(_) if overruled => checked.decision = Verdict::RequireApproval,
            Some(_) | None => {}
        }
        Some(JudgedAttempt {
            checked,
            denial,
            fired,
            approvals,
            overruled,
        })
    }

    fn policy_record(
        &self,
        session: &SessionId,
        call: &ActionCall,
        found: &Evaluation<'_>,
    ) -> PolicyChecked {
        let policy = &found.policy;
        PolicyChecked {
            policy_id: policy.policy_id.clone().into_owned(),
            action_type: call.action.clone(),
            decision: policy.decision,
            conditions_evaluated: policy.looked_at,
            matching_rule: policy.rule.map(str::to_owned),
            context_used: self.contexts_in_use(session),
            permit: None,
            approved_by: None,
            judged_under: policy.atlas.map(atlas_ref).into_iter().collect(),
        }
    }

    /// Records an attempt and its policy verdict, unless they are on record. Returns the attempt's event.
    pub(super) fn record_judged(
        &mut self,
        ask: CallerId,
        (place, call): (&SpanPosition, &ActionCall),
        checked: PolicyChecked,
        durability: Durability,
    ) -> Option<EventId> {
        let begun = self.state().pending_attempts.remove(&ask);
        let event = begun.is_none().then(|| {
            let mut attempted = self.attempt_record(call, PolicyCheck::Yes);
            attempted.permit.clone_from(&checked.permit);
            attempted.approved_by.clone_from(&checked.approved_by);
            self.record_as(place, attempted, durability)
        });
        if begun.is_none_or(|begun| begun.checked != checked) {
            self.record_below(place, checked);
        }
        event
    }

    /// Records an attempt that ends before policies are consulted, unless it is on record. Returns its span
    /// position.
    pub(super) fn record_unjudged(
        &mut self,
        ask: CallerId,
        place: SpanPosition,
        call: &ActionCall,
    ) -> SpanPosition {
        if let Some(begun) = self.state().pending_attempts.remove(&ask) {
            return begun.place;
        }
        let attempted = self.attempt_record(call, PolicyCheck::No);
        self.record(&place, attempted);
        place
    }

    /// Returns the span position for the records of a request. A request with a permit continues the trace of
    /// its approval.
    pub(super) fn attempt_place(
        &mut self,
        ask: CallerId,
        session: &SessionId,
        hash: Digest,
    ) -> Option<SpanPosition> {
        if let Some(begun) = self.engine.state.pending_attempts.get(&ask) {
            return Some(begun.place.clone());
        }
        let mut place = self.new_position(session)?;
        if let Some(permit) = self.valid_permit(hash) {
            place.trace_id = permit.trace_id.clone();
        }
        Some(place)
    }

    /// Records the end of an attempt whose agent left while extensions were called.
    pub(super) fn abandon_attempt(&mut self, ask: CallerId) {
        let Some(begun) = self.state().pending_attempts.remove(&ask) else {
            return;
        };
        let reason = "the agent disconnected before the extensions answered";
        let why = BlockReason::final_reason(DenyCode::Withdrawn, reason);
        self.record_blocked_action(&begun.place, &begun.call, "withdrawn", why);
    }

    /// Returns the durability of an attempt's record.
    ///
    /// If an operator or an extension decides about the attempt, it is stored at every level of detail. A
    /// denied attempt is covered by the record of the denial.
    pub(super) fn attempt_durability(&self, judged: &JudgedAttempt) -> Durability {
        let in_the_way = !judged.approvals.is_empty()
            || judged.fired.iter().any(OwnedFiredCheckpoint::is_gate)
            || !self.answers.is_empty();
        if in_the_way && self.engine.level < TraceLevel::Standard {
            Durability::Sync
        } else {
            Durability::Async
        }
    }
}

/// Returns the digest that binds decisions to a request.
pub(super) fn hash_of_request(request: &ActionRequest) -> Digest {
    request_hash(&request.session, &request.action, &request.params)
}
