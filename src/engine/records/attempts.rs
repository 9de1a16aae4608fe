//! Records of attempts. Each attempt is recorded once, with its own time, before any extension is called
//! about it.
//!
//! Contract: when extensions take part, the attempt and the verdict of the policies are on disk before the
//! first extension is called. When the answers are in, policies are consulted again; a different verdict is
//! recorded again.

use crate::atlas::document::TraceLevel;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::trace::event::{Durability, PolicyChecked};

use super::action_records::{BlockReason, PolicyCheck, attempt_record, blocked_record};
use crate::engine::command::{ActionRequest, DenyCode, EngineCommand, Injected, ReplyId};
use crate::engine::evaluation::attempt_judgement::{JudgedRequest, judge_call};
use crate::engine::evaluation::fired_checkpoint::OwnedFiredCheckpoint;
use crate::engine::gates::held::{ActionCall, HeldSubject, request_hash};
use crate::engine::gates::permits::valid_permit;
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::requests::attempt::Attempt;
use crate::engine::transaction::{SpanPosition, Transaction};

/// An attempt that is on record and not yet decided. It is not persisted.
#[derive(Debug)]
pub(crate) struct PendingAttempt {
    position: SpanPosition,
    call: ActionCall,
    checked: PolicyChecked,
}

impl PendingAttempt {
    pub(crate) fn position(&self) -> &SpanPosition {
        &self.position
    }

    pub(crate) fn is_of(&self, session: &SessionId) -> bool {
        self.position.session == *session
    }
}

/// Records an attempt and the verdict of the policies on it.
pub(crate) fn record_attempt(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
    judged: JudgedRequest,
) -> StageResult<Attempt> {
    let hash = judged.request.hash;
    let Some(position) = attempt_place(tx, reply_id, &request.session, hash) else {
        return Err(StageExit::Finished);
    };
    let durability = attempt_durability(tx, &judged);
    let attempt = judged.attempt;
    let call = judged.request.call;
    let event = record_judged(
        tx,
        reply_id,
        (&position, &call),
        attempt.checked,
        durability,
    );
    Ok(Attempt {
        subject: HeldSubject::Action(call.clone()),
        call,
        hash,
        position,
        event,
        deadline: request.deadline,
        same_call: request.call.clone(),
        on_disconnect: request.on_disconnect,
        denial: attempt.denial,
        handled: judged.handled,
        approvals: attempt.approvals,
        injected: Injected::default(),
        overruled: attempt.overruled,
    })
}

/// Records the attempt of a command that has to wait for extensions.
pub(crate) fn record_pending_attempt(tx: &mut Transaction<'_>, command: &EngineCommand) {
    let EngineCommand::RequestAction(reply_id, request) = command else {
        return;
    };
    let begun = &tx.engine.state.pending_attempts;
    if begun.contains_key(reply_id) || tx.live_session(&request.session).is_none() {
        return;
    }
    let hash = hash_of_request(request);
    let call = ActionCall::of(&tx.engine.atlases, &request.action, &request.params);
    let Some(position) = attempt_place(tx, *reply_id, &request.session, hash) else {
        return;
    };
    let Some(judged) = judge_call(tx, &request.session, &call, hash) else {
        return;
    };
    let checked = judged.checked;
    // The agent may be gone, and this process with it, before the extension answers.
    record_judged(
        tx,
        *reply_id,
        (&position, &call),
        checked.clone(),
        Durability::Sync,
    );
    let begun = PendingAttempt {
        position,
        call,
        checked,
    };
    tx.state().pending_attempts.insert(*reply_id, begun);
}

/// Records an attempt and its policy verdict, unless they are on record. Returns the attempt's event.
pub(crate) fn record_judged(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    (position, call): (&SpanPosition, &ActionCall),
    checked: PolicyChecked,
    durability: Durability,
) -> Option<EventId> {
    let begun = tx.state().pending_attempts.remove(&reply_id);
    let event = begun.is_none().then(|| {
        let mut attempted = attempt_record(tx, call, PolicyCheck::Yes);
        attempted.permit.clone_from(&checked.permit);
        attempted.approved_by.clone_from(&checked.approved_by);
        tx.record_as(position, attempted, durability)
    });
    if begun.is_none_or(|begun| begun.checked != checked) {
        tx.record_below(position, checked);
    }
    event
}

/// Records an attempt that ends before policies are consulted, unless it is on record. Returns its span
/// position.
pub(crate) fn record_unjudged(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    position: SpanPosition,
    call: &ActionCall,
) -> SpanPosition {
    if let Some(begun) = tx.state().pending_attempts.remove(&reply_id) {
        return begun.position;
    }
    let attempted = attempt_record(tx, call, PolicyCheck::No);
    tx.record(&position, attempted);
    position
}

/// Returns the span position for the records of a request. A request with a permit continues the trace of
/// its approval.
pub(crate) fn attempt_place(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    session: &SessionId,
    hash: Digest,
) -> Option<SpanPosition> {
    if let Some(begun) = tx.engine.state.pending_attempts.get(&reply_id) {
        return Some(begun.position.clone());
    }
    let mut position = tx.new_position(session)?;
    if let Some(permit) = valid_permit(tx, hash) {
        position.trace_id = permit.trace_id.clone();
    }
    Some(position)
}

/// Records the end of an attempt whose agent left while extensions were called.
pub(crate) fn abandon_attempt(tx: &mut Transaction<'_>, reply_id: ReplyId) {
    let Some(begun) = tx.state().pending_attempts.remove(&reply_id) else {
        return;
    };
    let reason = "the agent disconnected before the extensions answered";
    let why = BlockReason::final_reason(DenyCode::Withdrawn, reason);
    record_blocked_action(tx, &begun.position, &begun.call, "withdrawn", why);
}

/// Records that an action may not run.
pub(crate) fn record_blocked_action(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    call: &ActionCall,
    by: &str,
    why: BlockReason<'_>,
) {
    let record = blocked_record(tx, call, by, why);
    tx.record_below(position, record);
}

/// Returns the durability of an attempt's record.
///
/// If an operator or an extension decides about the attempt, it is stored at every level of detail. A
/// denied attempt is covered by the record of the denial.
fn attempt_durability(tx: &Transaction<'_>, judged: &JudgedRequest) -> Durability {
    let mut fired = judged.handled.fired.iter();
    let in_the_way = !judged.attempt.approvals.is_empty()
        || fired.any(OwnedFiredCheckpoint::is_gate)
        || !tx.answers.is_empty();
    if in_the_way && tx.engine.level < TraceLevel::Standard {
        Durability::Sync
    } else {
        Durability::Async
    }
}

/// Returns the digest that binds decisions to a request.
pub(crate) fn hash_of_request(request: &ActionRequest) -> Digest {
    request_hash(&request.session, &request.action, &request.params)
}
