//! Gates of a whole session, and the calls that wait for them.
//!
//! Contract: while such a gate is not passed, no request of the session is judged. Requests are parked, or
//! refused where no operator can be asked. Input waits for the start gate only, and only if its caller asks for that.
//! The start gate expires when a caller that waits for it stops waiting, and is held again at the next call.

use std::sync::Arc;

use crate::base::id::{HeldRequestId, SessionId};
use crate::base::limits::{MAX_HELD_PER_SESSION, MAX_PARKED_BYTES};

use super::agent_answers::agent_questions;
use super::dual_approval::store_held;
use super::held::Held;
use super::holding::SESSION_START;
use super::intervals::hold_required_gates;
use super::queue::ParkedCall;
use crate::engine::command::{
    ActionRequest, AgentQuestions, AgentReply, DenyCode, Effect, InputReport, ReplyId,
};
use crate::engine::extensions::suspension::execute_or_queue;
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::requests::attempt::refuse_action;
use crate::engine::sessions::lifecycle::{adopt_loaded_atlases, reopen_start_gate};
use crate::engine::sessions::session::StartState;
use crate::engine::transaction::Transaction;

/// Lets a request pass when no gate blocks its whole session. Otherwise parks or refuses it.
pub(crate) fn pass_session_gates(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
) -> StageResult {
    if let Some(asked) = reopen_start_gate(tx, &request.session) {
        tx.reply_to_agent(reply_id, AgentReply::Asked(asked));
        return Err(StageExit::Finished);
    }
    let entry = tx.live_session(&request.session);
    match entry.map(|session| session.entry.clone()) {
        Some(StartState::Open) => pass_required_gates(tx, reply_id, request),
        Some(StartState::Held(_)) => {
            park_request(tx, reply_id, request.clone());
            Err(StageExit::Finished)
        }
        Some(StartState::Lapsed { .. }) => {
            let call = ParkedCall::Action(request.clone());
            refuse_call(tx, reply_id, call, DenyCode::Overload, NO_ROOM.to_owned());
            Err(StageExit::Finished)
        }
        Some(StartState::Refused { reason }) => {
            let call = ParkedCall::Action(request.clone());
            refuse_call(tx, reply_id, call, DenyCode::Refused, may_not_act(&reason));
            Err(StageExit::Finished)
        }
        None => Err(StageExit::Finished),
    }
}

/// Lets input pass when the start gate is passed, or waits for answers of the agent, which needs the input for
/// them. Otherwise parks or refuses it.
pub(crate) fn pass_start_gate(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    input: &InputReport,
) -> StageResult {
    adopt_loaded_atlases(tx, &input.session)?;
    reopen_start_gate(tx, &input.session);
    let entry = tx.live_session(&input.session);
    match entry.map(|session| session.entry.clone()) {
        Some(StartState::Open) => return Ok(()),
        Some(StartState::Held(gate)) if is_asked_of_agent(tx, &gate) => return Ok(()),
        Some(StartState::Held(_)) => park(tx, reply_id, ParkedCall::Input(input.clone())),
        Some(StartState::Lapsed { .. }) => {
            tx.deny(reply_id, DenyCode::Overload, NO_ROOM.to_owned());
        }
        Some(StartState::Refused { reason }) => {
            tx.deny(reply_id, DenyCode::Refused, may_not_act(&reason));
        }
        None => {}
    }
    Err(StageExit::Finished)
}

/// Reason for a session whose gates cannot be held.
const NO_ROOM: &str = "too many requests are held to open the gates of this session";

fn may_not_act(reason: &str) -> String {
    format!("this session may not act: {reason}")
}

fn is_asked_of_agent(tx: &Transaction<'_>, gate: &HeldRequestId) -> bool {
    let entry = tx.engine.state.held.get(gate);
    entry.is_some_and(|entry| agent_questions(tx, &entry.held).is_some())
}

/// Holds the gates that are still required, fires the due intervals, and lets the request pass if none of them
/// blocks the session.
fn pass_required_gates(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
) -> StageResult {
    hold_required_gates(tx, request)?;
    let Some(session) = tx.live_session(&request.session) else {
        return Err(StageExit::Finished);
    };
    if !session.unpassed.is_empty() {
        let call = ParkedCall::Action(request.clone());
        refuse_call(tx, reply_id, call, DenyCode::Overload, NO_ROOM.to_owned());
        return Err(StageExit::Finished);
    }
    if session.pending.is_empty() {
        return Ok(());
    }
    park_request(tx, reply_id, request.clone());
    Err(StageExit::Finished)
}

/// Parks a request until its session's gate is passed. No operator is asked about it before that.
pub(crate) fn park_request(tx: &mut Transaction<'_>, reply_id: ReplyId, request: ActionRequest) {
    let session = request.session.clone();
    if let Some(asked) = first_agent_questions(tx, &session) {
        tx.reply_to_agent(reply_id, AgentReply::Asked(asked));
        return;
    }
    park(tx, reply_id, ParkedCall::Action(request));
}

/// Parks a call, or refuses it if too many are parked.
fn park(tx: &mut Transaction<'_>, reply_id: ReplyId, call: ParkedCall) {
    let parked = &tx.engine.state.parked;
    let full = if parked.count_of(call.session()) >= MAX_HELD_PER_SESSION {
        Some(format!(
            "{MAX_HELD_PER_SESSION} requests of this session are already waiting"
        ))
    } else if parked.bytes() >= MAX_PARKED_BYTES {
        let most = MAX_PARKED_BYTES / (1024 * 1024);
        Some(format!("waiting requests already use {most} MiB"))
    } else {
        None
    };
    if let Some(reason) = full {
        refuse_call(tx, reply_id, call, DenyCode::Overload, reason);
    } else {
        limit_start_gate(tx, &call);
        tx.state().parked.push(reply_id, call);
    }
}

/// Moves the deadline of the start gate to the time at which the caller stops waiting. An agent that is asked at
/// the gate may answer later.
fn limit_start_gate(tx: &mut Transaction<'_>, call: &ParkedCall) {
    let session = tx.live_session(call.session());
    let Some(StartState::Held(gate)) = session.map(|session| session.entry.clone()) else {
        return;
    };
    let entry = tx.engine.state.held.get(&gate);
    let Some(held) = entry.map(|entry| Arc::clone(&entry.held)) else {
        return;
    };
    let earlier = call.deadline().filter(|until| *until < held.deadline);
    if let Some(deadline) = earlier.filter(|_| agent_questions(tx, &held).is_none()) {
        let limited = Held {
            deadline,
            ..(*held).clone()
        };
        store_held(tx, limited);
        tx.push(Effect::SetDeadline(gate, deadline));
    }
}

/// Refuses a call. The refusal of an action is recorded; input that is refused here never reached the agent.
fn refuse_call(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    call: ParkedCall,
    code: DenyCode,
    reason: String,
) {
    match call {
        ParkedCall::Action(request) => {
            refuse_action(tx, reply_id, &request, code, SESSION_START, reason);
        }
        ParkedCall::Input(_) => tx.deny(reply_id, code, reason),
    }
}

/// Returns the questions that the agent has to answer before any request. The reply to the session's
/// start already had those of the start gate.
fn first_agent_questions(tx: &Transaction<'_>, session: &SessionId) -> Option<AgentQuestions> {
    let mut pending = tx.live_session(session)?.pending.iter();
    pending.find_map(|gate| agent_questions(tx, &tx.engine.state.held.get(gate)?.held))
}

/// Sends questions to the agents whose requests are parked, once they may answer a gate of their session.
pub(crate) fn ask_parked(tx: &mut Transaction<'_>, session: &SessionId) {
    let Some(asked) = first_agent_questions(tx, session) else {
        return;
    };
    let requests = tx.state().parked.take_where(session, is_action);
    for (reply_id, _) in requests {
        tx.reply_to_agent(reply_id, AgentReply::Asked(asked.clone()));
    }
}

/// Handles the parked calls after every gate of the session was passed.
pub(crate) fn release_parked(tx: &mut Transaction<'_>, session: &SessionId) {
    for (reply_id, call) in tx.state().parked.take(session) {
        execute_or_queue(tx, call.into_command(reply_id));
    }
}

/// Handles the parked input after the start gate was passed.
pub(crate) fn release_parked_input(tx: &mut Transaction<'_>, session: &SessionId) {
    let input = tx
        .state()
        .parked
        .take_where(session, |call| !is_action(call));
    for (reply_id, call) in input {
        execute_or_queue(tx, call.into_command(reply_id));
    }
}

/// Refuses all parked calls: the start gate was not passed, or the session ended.
pub(crate) fn refuse_parked(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    code: DenyCode,
    reason: &str,
) {
    for (reply_id, call) in tx.state().parked.take(session) {
        refuse_call(tx, reply_id, call, code, reason.to_owned());
    }
}

/// Refuses the parked requests after a later gate of the session was not passed.
pub(crate) fn refuse_parked_requests(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    code: DenyCode,
    reason: &str,
) {
    let requests = tx.state().parked.take_where(session, is_action);
    for (reply_id, call) in requests {
        refuse_call(tx, reply_id, call, code, reason.to_owned());
    }
}

fn is_action(call: &ParkedCall) -> bool {
    matches!(call, ParkedCall::Action(_))
}
