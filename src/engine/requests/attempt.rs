//! Attempts that were judged: denied, allowed to run, or held.

use crate::atlas::model::Trigger;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, ExecutionId, SessionId};
use crate::base::limits::{
    MAX_HELD, MAX_HELD_BYTES, MAX_HELD_PER_SESSION, MAX_RUNNING_PER_SESSION,
};
use crate::trace::event::Recommendation;

use crate::engine::command::{
    ActionRequest, AgentReply, DenyCode, Injected, OnDisconnect, ReplyId, RunPermission, StateKind,
};
use crate::engine::evaluation::denial::Denial;
use crate::engine::evaluation::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use crate::engine::evaluation::policy;
use crate::engine::extensions::handler_effects::{HandledCommandKind, apply_handler_outcomes};
use crate::engine::extensions::required_calls::HandledCheckpoints;
use crate::engine::gates::held::{ActionCall, HeldSubject};
use crate::engine::gates::holding::{
    GrantTiming, HoldRequest, NewGate, apply_in_order, apply_non_blocking, build_approval_gate,
    build_checkpoint_gate, hold_request,
};
use crate::engine::gates::intervals::store_interval_firings;
use crate::engine::gates::permits::{consume_permit, names_of_gates, run_by_permit};
use crate::engine::injection::automatic_contexts::{InjectionCause, inject_automatic_contexts};
use crate::engine::injection::delivery::amend_attempt;
use crate::engine::injection::withholding::inject_withheld;
use crate::engine::records::action_records::{BlockReason, atlas_refs, record_risk};
use crate::engine::records::attempts::{record_blocked_action, record_unjudged};
use crate::engine::records::notice::notify_release;
use crate::engine::sessions::lifecycle::add_pending_injections;
use crate::engine::sessions::session::RunningAction;
use crate::engine::transaction::{SpanPosition, Transaction};

/// An attempt that is judged and on record, and not decided.
pub(crate) struct Attempt {
    pub(crate) call: ActionCall,
    pub(crate) subject: HeldSubject,
    pub(crate) hash: Digest,
    pub(crate) position: SpanPosition,
    /// Event that recorded the attempt, if this command recorded it.
    pub(crate) event: Option<EventId>,
    pub(crate) deadline: Option<Timestamp>,
    /// The agent's own identifier of the call.
    pub(crate) same_call: Option<String>,
    pub(crate) on_disconnect: OnDisconnect,
    /// Denial of the attempt. Answers at gates do not lift it. If `overrides` is set, an operator can overrule it for a
    /// repeated request.
    pub(crate) denial: Option<Denial>,
    pub(crate) handled: HandledCheckpoints,
    pub(crate) approvals: Vec<OwnedRequiredApproval>,
    pub(crate) injected: Injected,
    /// True when a permit overrules a denial of the attempt. The permit is then used up even if other gates
    /// hold the attempt.
    pub(crate) overruled: bool,
}

/// Help text for an agent whose denial an operator may overrule.
pub(crate) const OVERRULE_HELP: &str =
    "an operator can overrule this denial for exactly this request; repeat the request after that";

/// Denies an attempt, holds it at its gates, or allows it to run, and replies to the agent.
pub(crate) fn decide_attempt(tx: &mut Transaction<'_>, reply_id: ReplyId, mut attempt: Attempt) {
    match attempt.denial.take() {
        Some(denial) => deny_attempt(tx, reply_id, attempt, denial),
        None => apply_handlers(tx, reply_id, attempt),
    }
}

/// Denies an attempt. If an operator may overrule the denial, it is queued for that, and no caller waits
/// for it.
fn deny_attempt(tx: &mut Transaction<'_>, reply_id: ReplyId, mut attempt: Attempt, denial: Denial) {
    apply_access_checkpoints(tx, &attempt, &denial);
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
    record_risk(tx, &attempt.position, &attempt.call, Recommendation::Block);
    record_blocked_action(tx, &attempt.position, &attempt.call, &by, why);
    if let Some(overrides) = overrides
        && queue_overload(tx, &attempt.position.session).is_none()
    {
        attempt.approvals.insert(0, overrides);
        let new_gates = build_gates(tx, &attempt.handled.fired, &attempt.approvals);
        let request = HoldRequest {
            subject: attempt.subject,
            hash: attempt.hash,
            position: attempt.position,
            deadline: None,
            same_call: attempt.same_call,
            on_disconnect: OnDisconnect::Kept,
            withheld: Vec::new(),
            advice: Vec::new(),
            modified_input: None,
        };
        denied.gate = hold_request(tx, None, request, new_gates);
        denied.help = Some(OVERRULE_HELP.to_owned());
    }
    tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
}

/// Applies the results of the handlers of fired checkpoints, then allows or holds the attempt.
fn apply_handlers(tx: &mut Transaction<'_>, reply_id: ReplyId, mut attempt: Attempt) {
    let gated = !attempt.approvals.is_empty() || attempt.overruled;
    tx.withheld_for_gate = gated.then(Vec::new);
    let handled = apply_handler_outcomes(
        tx,
        &attempt.position,
        &attempt.subject,
        &mut attempt.handled,
        HandledCommandKind::Action,
    );
    if let Some(stop) = handled.stop {
        let fired = attempt.handled.fired.get(stop.index);
        let by = fired.map_or_else(String::new, |fired| fired.checkpoint.id.clone());
        let under = atlas_refs(tx, fired.map(|fired| fired.atlas_id.as_str()));
        let why = BlockReason {
            under: &under,
            ..BlockReason::final_reason(DenyCode::Extension, &stop.reason)
        };
        record_risk(tx, &attempt.position, &attempt.call, Recommendation::Block);
        record_blocked_action(tx, &attempt.position, &attempt.call, &by, why);
        tx.deny(reply_id, DenyCode::Extension, stop.reason);
        return;
    }
    attempt.approvals.extend(handled.approvals);
    attempt.injected = handled.injected;
    pass_or_hold(tx, reply_id, attempt);
}

/// Allows an attempt when no gate is in its way or a permit opens all of them. Otherwise holds it.
fn pass_or_hold(tx: &mut Transaction<'_>, reply_id: ReplyId, attempt: Attempt) {
    let Attempt {
        call,
        subject,
        hash,
        position,
        event,
        deadline,
        same_call,
        on_disconnect,
        denial: _,
        handled: HandledCheckpoints { fired, .. },
        mut approvals,
        mut injected,
        overruled,
    } = attempt;
    let gated =
        fired.iter().any(OwnedFiredCheckpoint::is_gate) || !approvals.is_empty() || overruled;
    let permit = gated
        .then(|| consume_permit(tx, hash, &fired, &mut approvals))
        .flatten();
    let grants = if gated && permit.is_none() {
        GrantTiming::AfterGate
    } else {
        GrantTiming::Now
    };
    if grants == GrantTiming::AfterGate && refuse_overload(tx, reply_id, &position, &call) {
        return;
    }
    let recommended = match grants {
        GrantTiming::AfterGate => Recommendation::Verify,
        GrantTiming::Now => Recommendation::Proceed,
    };
    record_risk(tx, &position, &call, recommended);
    store_interval_firings(tx, &position.session, &fired);
    let (more, mut new_gates) = apply_fired(tx, &position, &fired, &subject, grants);
    injected.extend(more);
    let withheld = tx.withheld_for_gate.take().unwrap_or_default();
    if !gated {
        let allowed = allow_run(tx, &position, &call, injected);
        amend_attempt(tx, event.as_ref(), &allowed.injected);
        notify_release(tx, &position, &call, None);
        tx.reply_to_agent(reply_id, AgentReply::Allowed(allowed));
        return;
    }
    if let Some(permit) = permit {
        let in_the_way = names_of_gates(&fired, &approvals);
        let attempt = (&position, event.as_ref(), &call);
        run_by_permit(tx, reply_id, attempt, &in_the_way, permit, injected);
        return;
    }
    let approvals = approvals.iter();
    new_gates.extend(approvals.map(|approval| build_approval_gate(tx, approval)));
    let advice = fired
        .iter()
        .filter(|fired| fired.certain && fired.is_advisory());
    let request = HoldRequest {
        subject,
        hash,
        position,
        deadline,
        same_call,
        on_disconnect,
        withheld,
        advice: advice.map(OwnedFiredCheckpoint::advisory_effects).collect(),
        modified_input: None,
    };
    hold_request(tx, Some(reply_id), request, new_gates);
}

/// Refuses an attempt that would have to be held while the queue is full.
fn refuse_overload(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    position: &SpanPosition,
    call: &ActionCall,
) -> bool {
    let Some(reason) = queue_overload(tx, &position.session) else {
        return false;
    };
    tx.withheld_for_gate = None;
    let why = BlockReason::final_reason(DenyCode::Overload, &reason);
    record_risk(tx, position, call, Recommendation::Block);
    record_blocked_action(tx, position, call, "overload", why);
    tx.deny(reply_id, DenyCode::Overload, reason);
    true
}

/// Applies the checkpoints of an attempt in order.
///
/// If a gate fired as well, their injections are withheld and the gates are held. Otherwise only the
/// checkpoints that are not gates apply.
fn apply_fired(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    fired: &[OwnedFiredCheckpoint],
    subject: &HeldSubject,
    grants: GrantTiming,
) -> (Injected, Vec<NewGate>) {
    let withheld = tx.withheld_for_gate.take().unwrap_or_default();
    if grants == GrantTiming::AfterGate {
        tx.withheld_for_gate = Some(withheld);
        return apply_in_order(tx, position, subject, fired, grants);
    }
    let mut injected = inject_withheld(tx, position, withheld);
    for fired in fired.iter().filter(|fired| !fired.is_gate()) {
        injected.extend(apply_non_blocking(tx, position, fired, subject, grants));
    }
    (injected, Vec::new())
}

/// Applies the non-blocking checkpoints at a locked capability. They fire although the capability stays
/// locked, and their injections go with the next answer.
fn apply_access_checkpoints(tx: &mut Transaction<'_>, attempt: &Attempt, denial: &Denial) {
    if denial.denied.code != DenyCode::CapabilityLocked {
        return;
    }
    let at_capability = |fired: &&OwnedFiredCheckpoint| {
        let access = matches!(fired.checkpoint.trigger, Trigger::CapabilityAccess(_));
        access && !fired.is_gate()
    };
    let (position, subject) = (&attempt.position, &attempt.subject);
    for fired in attempt.handled.fired.iter().filter(at_capability) {
        let injected = apply_non_blocking(tx, position, fired, subject, GrantTiming::Now);
        add_pending_injections(tx, &position.session, injected);
    }
}

/// Returns the gates of an attempt, in the order they are asked.
fn build_gates(
    tx: &mut Transaction<'_>,
    fired: &[OwnedFiredCheckpoint],
    approvals: &[OwnedRequiredApproval],
) -> Vec<NewGate> {
    let mut new_gates = Vec::new();
    for fired in fired {
        if fired.is_gate() {
            new_gates.push(build_checkpoint_gate(tx, fired));
        }
    }
    new_gates.extend(
        approvals
            .iter()
            .map(|approval| build_approval_gate(tx, approval)),
    );
    new_gates
}

/// Registers a run of an action and counts it against its limits. Returns the reply to the agent.
pub(crate) fn allow_run(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    call: &ActionCall,
    new: Injected,
) -> RunPermission {
    let session = tx.engine.state.sessions.get(&position.session);
    let limits = session.map(|session| policy::limits(tx.evaluation_case(session, call)));
    let now = tx.now;
    let counted = tx
        .state()
        .usage
        .count(&limits.unwrap_or_default(), call, now);
    for (key, spent) in counted {
        tx.persist(StateKind::Usage, &key, Some(&spent));
    }
    let execution: ExecutionId = tx.engine.ids.next().into();
    let running = RunningAction {
        action: call.action.clone(),
        trace_id: position.trace_id.clone(),
        span_id: position.span_id.clone(),
        since: tx.now,
    };
    let called = inject_automatic_contexts(tx, position, InjectionCause::Run(call));
    let mut injected = Injected::default();
    if let Some(session) = tx.state().sessions.get_mut(&position.session) {
        injected = std::mem::take(&mut session.pending_injections);
        session.actions = session.actions.saturating_add(1);
        while session.running.len() >= MAX_RUNNING_PER_SESSION {
            // Execution identifiers are ordered by time.
            session.running.pop_first();
        }
        session.running.insert(execution.clone(), running);
    }
    tx.mark_changed(&position.session);
    injected.extend(new);
    injected.extend(called);
    RunPermission {
        execution,
        injected,
        approved_by: None,
    }
}

/// Records and reports a refusal that was decided before any evaluation.
pub(crate) fn refuse_action(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
    code: DenyCode,
    by: &str,
    reason: String,
) {
    let Some(session) = tx.engine.state.sessions.get(&request.session) else {
        tx.deny(reply_id, code, reason);
        return;
    };
    let session = session.id.clone();
    let call = ActionCall::of(&tx.engine.atlases, &request.action, &request.params);
    let Some(position) = tx.new_position(&session) else {
        return;
    };
    let position = record_unjudged(tx, reply_id, position, &call);
    record_risk(tx, &position, &call, Recommendation::Block);
    record_blocked_action(
        tx,
        &position,
        &call,
        by,
        BlockReason::final_reason(code, &reason),
    );
    tx.deny(reply_id, code, reason);
}

/// Returns the reason why no more requests can be held, if a limit is reached.
pub(crate) fn queue_overload(tx: &Transaction<'_>, session: &SessionId) -> Option<String> {
    let held = &tx.engine.state.held;
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
