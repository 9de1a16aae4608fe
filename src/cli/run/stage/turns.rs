//! Turns of conversations: classified as the runtime does, and noted by the engine.

use super::{Noted, Stage};
use crate::engine::command::{Command, Denied, DenyCode, Finding, Reply};
use crate::memento::{Name, Named, Outcome, Refusal, Thread, ThreadOwner};
use crate::runtime::{TakeTurn, recorded_turn};

impl Stage {
    /// A turn. The thread goes on only if its session may take it.
    pub(super) fn turn(&mut self, take: &TakeTurn, noted: &mut Noted) {
        let Some(id) = take.thread() else { return };
        match self.classified(&id, take) {
            Err(refused) => {
                let code = match refused {
                    Refusal::NotOwner => DenyCode::Thread,
                    Refusal::Stale { .. } | Refusal::Nothing => DenyCode::BadRequest,
                };
                let denied = Denied {
                    code,
                    reason: refused.to_string(),
                    help: None,
                    gate: None,
                };
                noted.denied.push(denied.clone());
                noted.reply = Some(Reply::Denied(denied));
            }
            Ok((thread, outcome)) => {
                let payload = recorded_turn(&thread, take, &outcome).into();
                let finding = Box::new(Finding::Turn {
                    event: payload,
                    message: take.turn.message.clone(),
                });
                let session = take.session.clone();
                self.ask(|ask| Command::Note(ask, session, finding), noted);
                if let Some(Reply::Noted(_)) = noted.reply {
                    self.threads.insert(id, thread);
                    noted.turn = Some(Box::new(outcome));
                }
            }
        }
    }

    fn classified(&self, id: &Name, take: &TakeTurn) -> Result<(Thread, Outcome), Refusal> {
        let new = || Thread::new(id.clone(), take.session.clone());
        let thread = self.threads.get(id).cloned().unwrap_or_else(new);
        let named = Named {
            by: ThreadOwner {
                session: take.session.clone(),
                secret: None,
                process: None,
            },
            // A memento goes by the message it was made at: the same scenario gives the same.
            memento: take.turn.message_id.clone(),
        };
        thread.take(&take.turn, named, self.now)
    }
}
