//! Requests that wait for a gate of their whole session.

use crate::base::id::SessionId;
use crate::base::limits::{MAX_HELD_PER_SESSION, MAX_PARKED_BYTES};

use super::command::{ActionRequest, AgentQuestions, CallerId, DenyCode, EngineCommand, Reply};
use super::gate::SESSION_START;
use super::transaction::Transaction;

impl Transaction<'_> {
    /// Parks a request until its session's gate is passed. No operator is asked about it before that.
    pub(super) fn park_request(&mut self, ask: CallerId, request: ActionRequest) {
        let session = request.session.clone();
        if let Some(asked) = self.first_agent_questions(&session) {
            self.reply(ask, Reply::Asked(asked));
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
    pub(super) fn ask_parked(&mut self, session: &SessionId) {
        let Some(asked) = self.first_agent_questions(session) else {
            return;
        };
        for (ask, _) in self.state().parked.take(session) {
            self.reply(ask, Reply::Asked(asked.clone()));
        }
    }

    /// Handles the parked requests after the session's gate was passed.
    pub(super) fn release_parked(&mut self, session: &SessionId) {
        for (ask, request) in self.state().parked.take(session) {
            self.start_command(EngineCommand::RequestAction(ask, request));
        }
    }

    /// Refuses the parked requests after the session's gate was not passed.
    pub(super) fn refuse_parked(&mut self, session: &SessionId, code: DenyCode, reason: &str) {
        for (ask, request) in self.state().parked.take(session) {
            self.refuse_action(ask, &request, code, SESSION_START, reason.to_owned());
        }
    }
}
