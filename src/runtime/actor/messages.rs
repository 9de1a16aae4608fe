//! Dispatch of messages to the actor.

use std::ops::ControlFlow;

use super::Actor;
use crate::runtime::message::Message;

impl Actor {
    /// Handles messages that arrived together. Their changes are written in one batch. Returns `Break` when
    /// the actor has to end.
    pub(super) async fn take_messages(&mut self, burst: &mut Vec<Message>) -> ControlFlow<()> {
        for message in burst.drain(..) {
            // Handle deadlines before messages, also within a burst: a late decision must find its gate
            // expired.
            let due = self.deadlines.first().map(|(at, _)| *at);
            if due.is_some_and(|at| at <= self.clock.now()) {
                self.wake().await;
            }
            self.take_message(message).await?;
        }
        ControlFlow::Continue(())
    }

    async fn take_message(&mut self, message: Message) -> ControlFlow<()> {
        match message {
            Message::Ask {
                ask,
                command,
                reply,
            } => self.ask(ask, command, reply).await,
            Message::Returned(id, returned) => self.returned(id, returned),
            Message::Checked(checked) => self.checked(&checked).await,
            Message::Draft(of, draft) => self.keep_draft(of, draft),
            Message::Explain(question, reply) => {
                // The caller may have disconnected; that changes nothing.
                let _ = reply.send(self.engine.account(&question, self.clock.now()));
            }
            Message::Watch(watch) => self.watch(watch),
            Message::Shadow(load) => self.shadow(load),
            Message::Turn(asked) => self.turn(*asked).await,
            Message::HandOver(asked) => self.hand_over(*asked),
            Message::ThreadAct(asked) => self.thread_act(*asked),
            Message::Enter(asked) => self.enter_asked(*asked),
            Message::Load(load, reply) => {
                let _ = reply.send(self.load(load).await);
            }
            Message::StoreFailed(error) => self.store_failed(&error),
            Message::StallEnded(lasted, what) => self.stall_ended(lasted, &what),
            Message::Stop(done) => {
                self.drain().await;
                let _ = done.send(());
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
