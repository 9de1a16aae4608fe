//! Ends of held requests: released, or ended without passing.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::id::HeldRequestId;
use crate::trace::event::{ActionTaken, CheckpointBlocked, CheckpointCompleted, Durability};

use super::agent_answers::{blocking_gate, is_for_agent};
use super::approval;
use super::decision::overruled_denials;
use super::held::{ActionCall, Gate, Held, HeldSubject};
use super::intervals::has_due_gate;
use super::permits::{gate_key, passed_gates, store_permit};
use super::queue::HeldEntry;
use super::session_gates::{refuse_parked, refuse_parked_requests};
use crate::engine::command::{
    ActionRequest, AgentReply, DenialReply, DenyCode, Effect, EngineCommand, HeldOutcome, Injected,
    ReplyId, SettledRequest, StateKind,
};
use crate::engine::evaluation;
use crate::engine::evaluation::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use crate::engine::extensions::suspension::execute_or_queue;
use crate::engine::injection::withholding::deliver_withheld;
use crate::engine::records::action_records::{BlockReason, may_quote_request};
use crate::engine::records::attempts::record_blocked_action;
use crate::engine::records::notice::{ReleaseInfo, notify_release};
use crate::engine::records::redaction::{RedactedText, redact_reason};
use crate::engine::requests::attempt::allow_run;
use crate::engine::sessions::lifecycle::{millis, session_position};
use crate::engine::sessions::session::{StartState, UnpassedGates};
use crate::engine::transaction::{SpanPosition, Transaction};

/// The end of a request that does not pass.
pub(crate) struct RequestEnding {
    pub(crate) outcome: HeldOutcome,
    pub(crate) by: Option<String>,
    pub(crate) code: DenyCode,
    pub(crate) reason: String,
}

/// Allows one waiting caller to run the action, or leaves a permit if no caller waits.
///
/// One approval is one run. Several callers wait only for the same call: the caller that asked last gets
/// the run.
pub(crate) fn release_request(
    tx: &mut Transaction<'_>,
    held: &Held,
    position: &SpanPosition,
    call: &ActionCall,
    injected: Injected,
    (mut reply_ids, approved_by): (Vec<ReplyId>, Option<String>),
) {
    let Some(last) = reply_ids.pop() else {
        store_permit(tx, held, injected, approved_by);
        return;
    };
    for earlier in reply_ids {
        let reason = "the agent repeated the same call, and cra allowed the repeat";
        tx.reply_to_agent(earlier, denied(held, DenyCode::Withdrawn, reason));
    }
    if blocking_gate(tx, held).is_some() || meets_new_gate(tx, held, call) {
        // It runs when the gates that stand in its way by now are passed as well.
        store_permit(tx, held, injected, approved_by);
        let request = ActionRequest {
            delivery: crate::engine::command::DeliveryTime::Now,
            on_disconnect: crate::engine::command::OnDisconnect::Kept,
            session: held.session.clone(),
            action: call.action.clone(),
            params: call.params.clone(),
            deadline: None,
            resolution: None,
            call: None,
        };
        execute_or_queue(tx, EngineCommand::RequestAction(last, request));
        return;
    }
    let mut allowed = allow_run(tx, position, call, injected);
    let release = ReleaseInfo {
        gate: &held.id,
        approver: approved_by.as_deref(),
        passed: &passed_gates(&held.gates),
    };
    notify_release(tx, position, call, Some(&release));
    allowed.approved_by = approved_by;
    tx.reply_to_agent(last, AgentReply::Allowed(allowed));
}

/// Returns whether a request whose gates are passed would be held if it were made now.
///
/// That is the case if an interval became due, or if its session did something that a gate evaluates.
fn meets_new_gate(tx: &Transaction<'_>, held: &Held, call: &ActionCall) -> bool {
    if has_due_gate(tx, &held.session) {
        return true;
    }
    let Some(session) = tx.live_session(&held.session) else {
        return false;
    };
    let overridden = overruled_denials(held);
    let found = evaluation::evaluate_action(evaluation::EvaluationCase {
        overridden: &overridden,
        ..tx.evaluation_case(session, call)
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

pub(crate) fn expire_held(tx: &mut Transaction<'_>, held_id: &HeldRequestId) {
    let Some(entry) = tx.engine.state.held.get(held_id) else {
        return;
    };
    // An early wake-up, or one for an earlier deadline, is ignored.
    if entry.held.deadline > tx.now {
        return;
    }
    let held = Arc::clone(&entry.held);
    let seconds = held.deadline.since(held.opened_at).as_secs();
    let reason = match held.subject {
        HeldSubject::SessionStart => format!(
            "no answer within {seconds} s: no operator passed the start gate of this session"
        ),
        HeldSubject::Action(_) | HeldSubject::Moment(_) => {
            format!("no answer within {seconds} s, so the request is denied")
        }
    };
    end_held(
        tx,
        &held,
        RequestEnding {
            outcome: HeldOutcome::Expired,
            by: None,
            code: DenyCode::Expired,
            reason,
        },
    );
}

/// Ends a held request without a decision.
pub(crate) fn withdraw_held(
    tx: &mut Transaction<'_>,
    held_id: &HeldRequestId,
    outcome: HeldOutcome,
    reason: &str,
) {
    let Some(entry) = tx.engine.state.held.get(held_id) else {
        return;
    };
    let held = Arc::clone(&entry.held);
    end_held(
        tx,
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
pub(crate) fn end_held(
    tx: &mut Transaction<'_>,
    held: &Held,
    ending: RequestEnding,
) -> SettledRequest {
    let position = held_position(tx, held);
    let entry = remove_held(tx, &held.id);
    for gate in &held.gates {
        record_blocked(tx, held, &position, gate, &ending);
    }
    match &held.subject {
        HeldSubject::SessionStart => {
            end_session_start(tx, held, &ending);
            refuse_parked(tx, &held.session, ending.code, &ending.reason);
        }
        HeldSubject::Moment(moment) => {
            if let Some(session) = tx.state().sessions.get_mut(&held.session) {
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
            tx.mark_changed(&held.session);
            deliver_withheld(tx, &held.session);
            refuse_parked_requests(tx, &held.session, ending.code, &ending.reason);
        }
        HeldSubject::Action(call) => {
            let by = held.gates.first().map_or("", |gate| gate.origin.id());
            let under: BTreeSet<_> = held.gates.iter().flat_map(approval::judged_under).collect();
            let under: Vec<_> = under.into_iter().collect();
            let why = BlockReason {
                under: &under,
                ..BlockReason::final_reason(ending.code, &ending.reason)
            };
            record_blocked_action(tx, &position, call, by, why);
        }
    }
    let (injected, reply_ids) = entry
        .map(|entry| (entry.injected, entry.reply_ids))
        .unwrap_or_default();
    forget_undelivered_contexts(tx, held, &injected);
    for reply_id in reply_ids {
        tx.reply_to_agent(reply_id, denied(held, ending.code, &ending.reason));
    }
    // The outcome names the operator, so the reason need not repeat the name.
    let refused_by = ending.by.as_ref().map(|by| format!("denied by {by}: "));
    let detail =
        refused_by.and_then(|prefix| ending.reason.strip_prefix(&prefix).map(str::to_owned));
    record_outcome(
        tx,
        held,
        ending.outcome,
        ending.by,
        detail.unwrap_or(ending.reason),
    )
}

/// Closes a session whose start gate was not passed: it is refused, or the gate is held again at its
/// next command.
fn end_session_start(tx: &mut Transaction<'_>, held: &Held, ending: &RequestEnding) {
    let Some(session) = tx.state().sessions.get_mut(&held.session) else {
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
fn forget_undelivered_contexts(tx: &mut Transaction<'_>, held: &Held, injected: &Injected) {
    if let Some(session) = tx.state().sessions.get_mut(&held.session) {
        for context in &injected.contexts {
            session.forget_context(Some(&context.context_id));
        }
    }
    tx.mark_changed(&held.session);
}

fn record_blocked(
    tx: &mut Transaction<'_>,
    held: &Held,
    position: &SpanPosition,
    gate: &Gate,
    ending: &RequestEnding,
) {
    let gate_position = position.child(gate.span_id.clone());
    let span = tx.new_span();
    let redacted_ending = redact_ending(tx, held, ending);
    let blocked = CheckpointBlocked {
        checkpoint_id: gate.origin.id().to_owned(),
        reason: redacted_ending.text.clone(),
        blocked_action: held.action().to_owned(),
        outcome: ending.outcome.as_str().to_owned(),
        decided_by: ending.by.clone(),
        judged_under: approval::judged_under(gate),
        redacted: redacted_ending.redacted.clone(),
    };
    tx.record_as(&gate_position.child(span), blocked, Durability::Sync);
    tx.record_below(
        &gate_position,
        CheckpointCompleted {
            checkpoint_id: gate.origin.id().to_owned(),
            checkpoint_type: gate.origin.kind().to_owned(),
            duration_ms: millis(tx.now, held.opened_at),
            contexts_injected: Vec::new(),
            action_taken: Some(ActionTaken::Block),
            block_reason: Some(redacted_ending.text),
            judged_under: approval::judged_under(gate),
            redacted: redacted_ending.redacted,
        },
    );
}

/// Returns the recorded reason why a request did not pass.
fn redact_ending(tx: &Transaction<'_>, held: &Held, ending: &RequestEnding) -> RedactedText {
    match &held.subject {
        HeldSubject::Action(call) if may_quote_request(ending.code) => {
            redact_reason(tx, Some(call), "reason", &ending.reason)
        }
        HeldSubject::Action(_) | HeldSubject::SessionStart | HeldSubject::Moment(_) => {
            RedactedText::plain(&ending.reason)
        }
    }
}

/// Removes a request from the queue.
pub(crate) fn remove_held(tx: &mut Transaction<'_>, held_id: &HeldRequestId) -> Option<HeldEntry> {
    let entry = tx.state().held.remove(held_id);
    tx.persist::<()>(StateKind::Held, held_id.as_str(), None);
    entry
}

pub(crate) fn record_outcome(
    tx: &mut Transaction<'_>,
    held: &Held,
    outcome: HeldOutcome,
    by: Option<String>,
    detail: String,
) -> SettledRequest {
    let decided = SettledRequest {
        gate: held.id.clone(),
        at: tx.now,
        outcome,
        by,
        detail,
        session: held.session.clone(),
        agent: held.agent.clone(),
        action: held.action().to_owned(),
        tier: held.tier(),
    };
    tx.state().add_outcome(Arc::new(decided.clone()));
    tx.push(Effect::RequestSettled(decided.clone()));
    decided
}

pub(crate) fn held_position(tx: &Transaction<'_>, held: &Held) -> SpanPosition {
    let root = tx
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

pub(crate) fn denied(held: &Held, code: DenyCode, reason: &str) -> AgentReply {
    let hint = match code {
        DenyCode::Expired => Some("try again when an operator is at the console".to_owned()),
        _ => None,
    };
    AgentReply::Denied(DenialReply {
        code,
        reason: reason.to_owned(),
        help: hint,
        gate: Some(held.id.clone()),
    })
}
