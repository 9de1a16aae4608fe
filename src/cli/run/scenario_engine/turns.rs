//! Turns of conversations: classified as the runtime does, and recorded by the engine.

use super::{ScenarioEngine, StepFault, StepOutcome};
use crate::engine::command::{
    self as engine, AgentReply, DenialReply, DenyCode, EngineCommand, Reply, RuntimeFinding,
};
use crate::memento::{
    ExternalName, SummaryShape, Thread, ThreadOwner, TurnIds, TurnOutcome, TurnRefusal,
};
use crate::runtime::{SessionTurn, turn_record};

impl ScenarioEngine {
    /// Plays a turn. The thread advances only if its session may take it.
    pub(super) fn turn(&mut self, take: &SessionTurn, noted: &mut StepOutcome) {
        let Some(id) = take.thread() else { return };
        let known = self.threads.get(&id);
        let answered = known.map_or(Ok(None), |thread| thread.repeated_outcome(&take.turn));
        if let Ok(Some(outcome)) = answered {
            noted.reply = Some(Reply::Agent(AgentReply::Noted(
                engine::ReportReceipt::default(),
            )));
            noted.turn = Some(Box::new(outcome));
            return;
        }
        match answered.and_then(|_| self.classified(&id, take)) {
            Err(refused) => {
                let code = match refused {
                    TurnRefusal::NotOwner => DenyCode::Thread,
                    TurnRefusal::Stale { .. }
                    | TurnRefusal::NoMemento
                    | TurnRefusal::MessageIdReused(_)
                    | TurnRefusal::ResponseExpired(_) => DenyCode::BadRequest,
                };
                let denied = DenialReply {
                    code,
                    reason: refused.to_string(),
                    help: None,
                    gate: None,
                };
                noted.denied.push(denied.clone());
                noted.reply = Some(Reply::Agent(AgentReply::Denied(denied)));
            }
            Ok((thread, outcome)) => {
                let payload = turn_record(&thread, take, &outcome).into();
                let finding = Box::new(RuntimeFinding::Turn {
                    event: payload,
                    message: take.turn.message.clone(),
                });
                let session = take.session.clone();
                self.run_request(
                    |reply_id| EngineCommand::RecordFinding(reply_id, session, finding),
                    noted,
                );
                if let Some(Reply::Agent(AgentReply::Noted(_))) = noted.reply {
                    self.threads.insert(id, thread);
                    noted.turn = Some(Box::new(outcome));
                }
            }
        }
    }

    /// Plays an operator's edit of the summary of a thread; the next turn must follow it.
    pub(super) fn edit(
        &mut self,
        id: &ExternalName,
        shape: &SummaryShape,
        noted: &mut StepOutcome,
    ) {
        let thread = self.threads.get(id);
        let etag = thread.and_then(Thread::etag).unwrap_or_default();
        let edited = thread.map(|thread| thread.edit(shape, &etag, id.clone(), self.now));
        match edited {
            Some(Ok(edited)) => drop(self.threads.insert(id.clone(), edited)),
            Some(Err(_)) | None => {
                noted.fault = Some(StepFault {
                    what: "no such thread",
                    wanted: format!("the summary of {}", id.as_str()),
                    actual: "the thread has no summary".to_owned(),
                });
            }
        }
    }

    fn classified(
        &self,
        id: &ExternalName,
        take: &SessionTurn,
    ) -> Result<(Thread, TurnOutcome), TurnRefusal> {
        let new = || Thread::new(id.clone(), take.session.clone());
        let thread = self.threads.get(id).cloned().unwrap_or_else(new);
        let named = TurnIds {
            by: ThreadOwner {
                session: take.session.clone(),
                secret: None,
                process: None,
            },
            // The memento id is the message it was made at, so that a scenario always gives the same result.
            memento: take.turn.message_id.clone(),
        };
        thread.process_turn(&take.turn, named, self.now)
    }
}
