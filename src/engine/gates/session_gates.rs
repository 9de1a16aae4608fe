//! Gates of a whole session, and the requests that wait for them.
//!
//! Contract: while such a gate is not passed, no request of the session is judged. Requests are parked, or
//! refused where no operator can be asked.

use crate::base::id::SessionId;
use crate::base::limits::{MAX_HELD_PER_SESSION, MAX_PARKED_BYTES};

use super::holding::SESSION_START;
use crate::engine::command::{
    ActionRequest, AgentQuestions, AgentReply, CallerId, DenyCode, EngineCommand,
};
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::sessions::session::StartState;
use crate::engine::transaction::Transaction;

/// Lets a request pass when no gate blocks its whole session. Otherwise parks or refuses it.
pub(crate) fn pass_session_gates(
    tx: &mut Transaction<'_>,
    ask: CallerId,
    request: &ActionRequest,
) -> StageResult {
    if let Some(asked) = tx.reenter(&request.session) {
        tx.reply_to_agent(ask, AgentReply::Asked(asked));
        return Err(StageExit::Answered);
    }
    let entry = tx.live_session(&request.session);
    match entry.map(|session| session.entry.clone()) {
        Some(StartState::Open) => pass_required_gates(tx, ask, request),
        Some(StartState::Held(_)) => {
            tx.park_request(ask, request.clone());
            Err(StageExit::Answered)
        }
        Some(StartState::Lapsed { .. }) => {
            let reason = "too many requests are held to open the gates of this session".to_owned();
            tx.refuse_action(ask, request, DenyCode::Overload, SESSION_START, reason);
            Err(StageExit::Answered)
        }
        Some(StartState::Refused { reason }) => {
            let reason = format!("this session may not act: {reason}");
            tx.refuse_action(ask, request, DenyCode::Refused, SESSION_START, reason);
            Err(StageExit::Answered)
        }
        None => Err(StageExit::Answered),
    }
}

/// Raises the gates that are still required and the due intervals, and lets the request pass if none of them
/// blocks the session.
fn pass_required_gates(
    tx: &mut Transaction<'_>,
    ask: CallerId,
    request: &ActionRequest,
) -> StageResult {
    tx.raise_required_gates(request)?;
    let Some(session) = tx.live_session(&request.session) else {
        return Err(StageExit::Answered);
    };
    if !session.unpassed.is_empty() {
        let reason = "too many requests are held to open the gates of this session".to_owned();
        tx.refuse_action(ask, request, DenyCode::Overload, SESSION_START, reason);
        return Err(StageExit::Answered);
    }
    if session.pending.is_empty() {
        return Ok(());
    }
    tx.park_request(ask, request.clone());
    Err(StageExit::Answered)
}

impl Transaction<'_> {
    /// Parks a request until its session's gate is passed. No operator is asked about it before that.
    pub(crate) fn park_request(&mut self, ask: CallerId, request: ActionRequest) {
        let session = request.session.clone();
        if let Some(asked) = self.first_agent_questions(&session) {
            self.reply_to_agent(ask, AgentReply::Asked(asked));
            return;
        }
        let parked = &mut self.state().parked;
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
                self.refuse_action(ask, &request, DenyCode::Overload, SESSION_START, reason);
            }
            None => self.state().parked.push(ask, request),
        }
    }

    /// Returns the questions that the agent has to answer before any request. The reply to the session's
    /// start already had those of the start gate.
    fn first_agent_questions(&self, session: &SessionId) -> Option<AgentQuestions> {
        let mut pending = self.live_session(session)?.pending.iter();
        pending.find_map(|gate| self.agent_questions(&self.engine.state.held.get(gate)?.held))
    }

    /// Sends questions to the agents whose requests are parked, once they may answer a gate of their session.
    pub(crate) fn ask_parked(&mut self, session: &SessionId) {
        let Some(asked) = self.first_agent_questions(session) else {
            return;
        };
        for (ask, _) in self.state().parked.take(session) {
            self.reply_to_agent(ask, AgentReply::Asked(asked.clone()));
        }
    }

    /// Handles the parked requests after the session's gate was passed.
    pub(crate) fn release_parked(&mut self, session: &SessionId) {
        for (ask, request) in self.state().parked.take(session) {
            self.start_command(EngineCommand::RequestAction(ask, request));
        }
    }

    /// Refuses the parked requests after the session's gate was not passed.
    pub(crate) fn refuse_parked(&mut self, session: &SessionId, code: DenyCode, reason: &str) {
        for (ask, request) in self.state().parked.take(session) {
            self.refuse_action(ask, &request, code, SESSION_START, reason.to_owned());
        }
    }
}
