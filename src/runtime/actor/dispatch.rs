//! Dispatch of messages to the actor.

use std::ops::ControlFlow;

use super::Actor;
use crate::runtime::message::ActorMessage;

impl Actor {
    /// Handles messages that arrived together. Their changes are written in one batch. Returns `Break` when
    /// the actor has to end.
    pub(super) async fn handle_messages(
        &mut self,
        burst: &mut Vec<ActorMessage>,
    ) -> ControlFlow<()> {
        for message in burst.drain(..) {
            // Handle deadlines before messages, also within a burst: a late decision must find its gate
            // expired.
            let due = self.deadlines.first().map(|(at, _)| *at);
            if due.is_some_and(|at| at <= self.clock.now()) {
                self.expire_due().await;
            }
            self.handle_message(message).await?;
        }
        ControlFlow::Continue(())
    }

    async fn handle_message(&mut self, message: ActorMessage) -> ControlFlow<()> {
        match message {
            ActorMessage::Command {
                reply_id,
                command,
                reply,
            } => self.handle_command(reply_id, command, reply).await,
            ActorMessage::CallerDisconnected(reply_id) => self.on_disconnected(reply_id),
            ActorMessage::ExtensionAnswer(id, returned) => self.on_extension_answer(id, returned),
            ActorMessage::Verified(checked) => self.on_verified(&checked).await,
            ActorMessage::Draft(of, draft) => self.keep_draft(of, draft),
            ActorMessage::Explain(question, reply) => {
                // The caller may have disconnected; that changes nothing.
                let _ = reply.send(self.engine.explain_question(&question, self.clock.now()));
            }
            ActorMessage::Watch(watch) => self.set_watch(watch),
            ActorMessage::Shadow(load) => self.set_shadow(load),
            ActorMessage::Turn(asked) => self.take_turn(*asked).await,
            ActorMessage::HandOver(asked) => self.hand_over(*asked),
            ActorMessage::ThreadAct(asked) => self.thread_act(*asked),
            ActorMessage::AddEntry(asked) => self.add_entry(*asked),
            ActorMessage::Load(load, reply) => {
                let _ = reply.send(self.load_atlases(load).await);
            }
            ActorMessage::StoreFailed(error) => self.on_store_failure(&error),
            ActorMessage::StallEnded(lasted, what) => self.record_stall(lasted, &what),
            ActorMessage::Stop(done) => {
                self.drain().await;
                let _ = done.send(());
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
