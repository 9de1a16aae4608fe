//! Disconnected callers: the engine is told before it decides something that depends on them.

use super::super::message::ReplySender;

use super::Actor;
use crate::engine::command::{ActionRequest, EngineCommand, ReplyId};

impl Actor {
    /// Ends the request of a caller that has disconnected. The agent was denied with it.
    pub(super) fn on_disconnected(&mut self, reply_id: ReplyId) {
        if self.store_failure.is_none() && self.pending_replies.remove(&reply_id).is_some() {
            let left = EngineCommand::CallerDisconnected(reply_id);
            let effects = self.engine.handle(left, self.clock.now());
            self.execute(effects);
        }
    }

    /// Tells the engine which callers have disconnected.
    pub(super) fn note_disconnected(&mut self) {
        let gone = self
            .pending_replies
            .extract_if(|_, reply| reply.is_closed());
        for reply_id in gone.map(|(reply_id, _)| reply_id).collect::<Vec<_>>() {
            let effects = self.engine.handle(
                EngineCommand::CallerDisconnected(reply_id),
                self.clock.now(),
            );
            self.execute(effects);
        }
    }

    /// Tells the engine which callers of identical held requests have disconnected: the new request then
    /// joins theirs.
    pub(super) fn note_disconnected_twins(&mut self, request: &ActionRequest) {
        for reply_id in self.engine.joinable_replies(request) {
            let waiting = self.pending_replies.get(&reply_id);
            if waiting.is_none_or(ReplySender::is_closed) {
                self.pending_replies.remove(&reply_id);
                let left = EngineCommand::CallerDisconnected(reply_id);
                let effects = self.engine.handle(left, self.clock.now());
                self.execute(effects);
            }
        }
    }
}
