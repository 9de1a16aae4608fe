//! Disconnected callers: the engine is told before it decides something that depends on them.

use tokio::sync::oneshot;

use super::Actor;
use crate::engine::command::{ActionRequest, Command};

impl Actor {
    /// Tells the engine which callers have disconnected.
    pub(super) fn notice_who_left(&mut self) {
        let gone = self.waiting.extract_if(|_, reply| reply.is_closed());
        for ask in gone.map(|(ask, _)| ask).collect::<Vec<_>>() {
            let effects = self
                .engine
                .handle(Command::AskerLeft(ask), self.clock.now());
            self.carry_out(effects);
        }
    }

    /// Tells the engine which callers of identical held requests have disconnected: the new request then
    /// joins theirs.
    pub(super) fn notice_twins_left(&mut self, request: &ActionRequest) {
        for ask in self.engine.twin_askers(request) {
            let waiting = self.waiting.get(&ask);
            if waiting.is_none_or(oneshot::Sender::is_closed) {
                self.waiting.remove(&ask);
                let left = Command::AskerLeft(ask);
                let effects = self.engine.handle(left, self.clock.now());
                self.carry_out(effects);
            }
        }
    }
}
