//! Disconnected callers: the engine is told before it decides something that depends on them.

use super::super::message::ReplySender;

use super::Actor;
use crate::engine::command::{ActionRequest, EngineCommand};

impl Actor {
    /// Tells the engine which callers have disconnected.
    pub(super) fn note_disconnected(&mut self) {
        let gone = self
            .waiting_callers
            .extract_if(|_, reply| reply.is_closed());
        for ask in gone.map(|(ask, _)| ask).collect::<Vec<_>>() {
            let effects = self
                .engine
                .handle(EngineCommand::CallerLeft(ask), self.clock.now());
            self.execute(effects);
        }
    }

    /// Tells the engine which callers of identical held requests have disconnected: the new request then
    /// joins theirs.
    pub(super) fn note_disconnected_twins(&mut self, request: &ActionRequest) {
        for ask in self.engine.joinable_callers(request) {
            let waiting = self.waiting_callers.get(&ask);
            if waiting.is_none_or(ReplySender::is_closed) {
                self.waiting_callers.remove(&ask);
                let left = EngineCommand::CallerLeft(ask);
                let effects = self.engine.handle(left, self.clock.now());
                self.execute(effects);
            }
        }
    }
}
