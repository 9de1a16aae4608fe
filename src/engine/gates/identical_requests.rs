//! Identical requests: a repeated call joins its held request instead of running twice.

use std::sync::Arc;

use crate::base::digest::Digest;
use crate::base::id::HeldRequestId;
use crate::base::limits::MAX_CALLERS_PER_REQUEST;
use crate::trace::event::{Durability, Recommendation};

use super::agent_answers::agent_questions;
use super::decision::overruled_denials;
use super::held::{ActionCall, HeldSubject};
use super::permits::valid_permit;
use super::settlement::{denied, withdraw_held};
use crate::engine::command::{
    ActionRequest, AgentReply, DenyCode, EngineCommand, HeldOutcome, ReplyId, StateKind,
};
use crate::engine::evaluation::attempt_judgement::judge_call;
use crate::engine::extensions::suspension::execute_or_queue;
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::records::action_records::{BlockReason, record_risk};
use crate::engine::records::attempts::{
    hash_of_request, record_blocked_action, record_judged, record_unjudged,
};
use crate::engine::requests::attempt::OVERRULE_HELP;
use crate::engine::requests::resolution::refuse_resolution;
use crate::engine::sessions::lifecycle::{ATLAS_CHANGED, session_position};
use crate::engine::transaction::{SpanPosition, Transaction};

/// A request with its digest and its risk tier.
pub(crate) struct IdentifiedRequest {
    pub(crate) hash: Digest,
    pub(crate) call: ActionCall,
}

/// Identifies a request, and lets it join the held request that it repeats, if there is one.
pub(crate) fn identify_request(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
) -> StageResult<IdentifiedRequest> {
    if refuse_resolution(tx, reply_id, request) {
        return Err(StageExit::Finished);
    }
    let hash = hash_of_request(request);
    let call = ActionCall::of(&tx.engine.atlases, &request.action, &request.params);
    void_outdated_twins(tx, hash);
    let Some(held_id) = joinable_request(tx, request, hash) else {
        return Ok(IdentifiedRequest { hash, call });
    };
    if let Some(root) = tx.live_session(&request.session).map(session_position) {
        if is_override(tx, &held_id) {
            ask_override_again(tx, reply_id, request, &root, &held_id);
        } else {
            join_held(tx, reply_id, &root, &call, &held_id);
        }
    }
    Err(StageExit::Finished)
}

/// Voids identical held requests that were judged under other Atlases.
fn void_outdated_twins(tx: &mut Transaction<'_>, hash: Digest) {
    let atlas_hash = tx.engine.atlas_hash;
    let twins = tx.engine.state.held.of_request(&hash);
    let stale = twins.filter(|twin| twin.held.atlas_hash != atlas_hash);
    let stale: Vec<_> = stale.map(|twin| twin.held.id.clone()).collect();
    for held_id in stale {
        withdraw_held(tx, &held_id, HeldOutcome::Voided, ATLAS_CHANGED);
    }
}

/// Returns the held request that `request` repeats: the same call, or an identical one for which no
/// caller waits any more.
///
/// Two identical calls whose callers both wait are two requests.
pub(crate) fn joinable_request(
    tx: &Transaction<'_>,
    request: &ActionRequest,
    hash: Digest,
) -> Option<HeldRequestId> {
    let atlas_hash = tx.engine.atlas_hash;
    let mut left = None;
    for twin in tx.engine.state.held.of_request(&hash) {
        let action = matches!(twin.held.subject, HeldSubject::Action(_));
        if !action || twin.held.atlas_hash != atlas_hash {
            continue;
        }
        if twin.call.is_some() && twin.call == request.call {
            return Some(twin.held.id.clone());
        }
        if twin.reply_ids.is_empty() {
            left = left.or(Some(&twin.held.id));
        }
    }
    // An approved request takes precedence over one that is still held.
    let left = left.filter(|_| valid_permit(tx, hash).is_none());
    left.cloned()
}

/// Lets a request wait for the decision about a request that is already held.
fn join_held(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    root: &SpanPosition,
    call: &ActionCall,
    held_id: &HeldRequestId,
) {
    let Some(entry) = tx.engine.state.held.get(held_id) else {
        return;
    };
    let held = Arc::clone(&entry.held);
    let trace_id = held.trace_id.clone();
    if let Some(asked) = agent_questions(tx, &held) {
        tx.reply_to_agent(reply_id, AgentReply::Asked(asked));
        return;
    }
    let mut held = (*held).clone();
    held.joined = held.joined.saturating_add(1);
    let queue = &mut tx.state().held;
    let earliest = queue.remove_earliest(held_id, MAX_CALLERS_PER_REQUEST);
    queue.add_reply(held_id, reply_id);
    let Some(entry) = queue.replace(Arc::new(held)).cloned() else {
        return;
    };
    let position = SpanPosition {
        trace_id,
        ..root.child(tx.new_span())
    };
    record_unjudged(tx, reply_id, position, call);
    if let Some(earliest) = earliest {
        let reason = "the agent repeated the same call too often";
        tx.reply_to_agent(earliest, denied(&entry.held, DenyCode::Withdrawn, reason));
    }
    tx.persist(StateKind::Held, entry.held.id.as_str(), Some(&entry));
}

/// Tells whether passing a held request would overrule a denial.
fn is_override(tx: &Transaction<'_>, held_id: &HeldRequestId) -> bool {
    let entry = tx.engine.state.held.get(held_id);
    entry.is_some_and(|entry| !overruled_denials(&entry.held).is_empty())
}

/// Judges a request again whose denial an operator may overrule and has not. No asker waits at such a gate, so
/// each request is an attempt of its own. A gate whose denial no longer holds is voided.
fn ask_override_again(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
    root: &SpanPosition,
    held_id: &HeldRequestId,
) {
    let hash = hash_of_request(request);
    let call = ActionCall::of(&tx.engine.atlases, &request.action, &request.params);
    let Some(judged) = judge_call(tx, &request.session, &call, hash) else {
        return;
    };
    let Some(denial) = judged.denial else {
        withdraw_held(tx, held_id, HeldOutcome::Voided, NO_LONGER_DENIED);
        // Extensions may have a say about it now.
        execute_or_queue(tx, EngineCommand::RequestAction(reply_id, request.clone()));
        return;
    };
    let entry = tx.engine.state.held.get(held_id);
    let Some(trace_id) = entry.map(|entry| entry.held.trace_id.clone()) else {
        return;
    };
    let new = SpanPosition {
        trace_id,
        ..root.child(tx.new_span())
    };
    let begun = tx.engine.state.pending_attempts.get(&reply_id);
    let position = begun.map_or(new, |begun| begun.position().clone());
    record_judged(
        tx,
        reply_id,
        (&position, &call),
        judged.checked,
        Durability::Async,
    );
    record_risk(tx, &position, &call, Recommendation::Block);
    let overridable = denial.overrides.is_some();
    let why = BlockReason {
        code: denial.denied.code,
        reason: &denial.denied.reason,
        override_available: overridable,
        under: denial.atlas.as_slice(),
    };
    record_blocked_action(tx, &position, &call, &denial.by, why);
    let mut denied = denial.denied;
    if overridable {
        denied.help = Some(OVERRULE_HELP.to_owned());
        denied.gate = Some(held_id.clone());
    }
    tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
}

/// Reason why a gate is voided that stood only because a policy denied the request.
const NO_LONGER_DENIED: &str = "no policy denies the request any more; cra checked it again";
