//! Gates of a whole session, and the requests that wait for them.
//!
//! Contract: while such a gate is not passed, no request of the session is judged. Requests are parked, or
//! refused where no operator can be asked.

use crate::base::id::SessionId;
use crate::base::limits::{MAX_HELD_PER_SESSION, MAX_PARKED_BYTES};

use super::agent_answers::agent_questions;
use super::holding::SESSION_START;
use super::intervals::hold_required_gates;
use crate::engine::command::{
    ActionRequest, AgentQuestions, AgentReply, DenyCode, EngineCommand, ReplyId,
};
use crate::engine::extensions::suspension::execute_or_queue;
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::requests::attempt::refuse_action;
use crate::engine::sessions::lifecycle::reopen_start_gate;
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
            let reason = "too many requests are held to open the gates of this session".to_owned();
            refuse_action(
                tx,
                reply_id,
                request,
                DenyCode::Overload,
                SESSION_START,
                reason,
            );
            Err(StageExit::Finished)
        }
        Some(StartState::Refused { reason }) => {
            let reason = format!("this session may not act: {reason}");
            refuse_action(
                tx,
                reply_id,
                request,
                DenyCode::Refused,
                SESSION_START,
                reason,
            );
            Err(StageExit::Finished)
        }
        None => Err(StageExit::Finished),
    }
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
        let reason = "too many requests are held to open the gates of this session".to_owned();
        refuse_action(
            tx,
            reply_id,
            request,
            DenyCode::Overload,
            SESSION_START,
            reason,
        );
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
    let parked = &mut tx.state().parked;
    let full = if parked.count_of(&session) >= MAX_HELD_PER_SESSION {
        Some(format!(
            "{MAX_HELD_PER_SESSION} requests of this session are already waiting"
        ))
    } else if parked.bytes() >= MAX_PARKED_BYTES {
        let most = MAX_PARKED_BYTES / (1024 * 1024);
        Some(format!("waiting requests already use {most} MiB"))
    } else {
        None
    };
    match full {
        Some(reason) => {
            refuse_action(
                tx,
                reply_id,
                &request,
                DenyCode::Overload,
                SESSION_START,
                reason,
            );
        }
        None => tx.state().parked.push(reply_id, request),
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
    for (reply_id, _) in tx.state().parked.take(session) {
        tx.reply_to_agent(reply_id, AgentReply::Asked(asked.clone()));
    }
}

/// Handles the parked requests after the session's gate was passed.
pub(crate) fn release_parked(tx: &mut Transaction<'_>, session: &SessionId) {
    for (reply_id, request) in tx.state().parked.take(session) {
        execute_or_queue(tx, EngineCommand::RequestAction(reply_id, request));
    }
}

/// Refuses the parked requests after the session's gate was not passed.
pub(crate) fn refuse_parked(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    code: DenyCode,
    reason: &str,
) {
    for (reply_id, request) in tx.state().parked.take(session) {
        refuse_action(
            tx,
            reply_id,
            &request,
            code,
            SESSION_START,
            reason.to_owned(),
        );
    }
}
