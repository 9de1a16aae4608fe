//! Dispatch of messages to the actor.

use std::ops::ControlFlow;

use super::Actor;
use crate::runtime::message::Message;

impl Actor {
    /// Carries out one message. Breaks when the actor is to end: told to, or out of reach.
    pub(super) async fn take_message(&mut self, message: Option<Message>) -> ControlFlow<()> {
        match message {
            Some(Message::Ask {
                ask,
                command,
                reply,
            }) => self.ask(ask, command, reply).await,
            Some(Message::Returned(id, returned)) => self.returned(id, returned).await,
            Some(Message::Checked(checked)) => self.checked(checked).await,
            Some(Message::Draft(of, draft)) => self.keep_draft(of, draft).await,
            Some(Message::Explain(question, reply)) => {
                // The caller may have left; nothing else comes of it.
                let _ = reply.send(self.engine.account(&question, self.clock.now()));
            }
            Some(Message::Watch(watch)) => self.watch(watch),
            Some(Message::Shadow(load)) => self.shadow(load),
            Some(Message::Turn(asked)) => self.turn(*asked).await,
            Some(Message::HandOver(asked)) => self.hand_over(*asked).await,
            Some(Message::ThreadAct(asked)) => self.thread_act(*asked).await,
            Some(Message::Enter(asked)) => self.enter_asked(*asked).await,
            Some(Message::Load(load, reply)) => {
                let _ = reply.send(self.load(load).await);
            }
            Some(Message::StoreFailed(error)) => self.store_failed(&error),
            Some(Message::Stop(done)) => {
                self.drain().await;
                let _ = done.send(());
                return ControlFlow::Break(());
            }
            None => {
                self.drain().await;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
