//! Calls of extensions. Each call gets an answer, even if the extension fails.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Semaphore, mpsc};

use super::extension::{CALLS_OUT, Client, Registry};
use super::message::{AskIds, Message};
use crate::engine::extension::{Call, Returned};

/// Caller of extensions.
pub(super) struct Outside {
    registry: Registry,
    messages: mpsc::WeakSender<Message>,
    ids: AskIds,
    turns: Arc<Semaphore>,
}

impl Outside {
    pub(super) fn new(
        registry: Registry,
        messages: mpsc::WeakSender<Message>,
        ids: AskIds,
    ) -> Self {
        Self {
            registry,
            messages,
            ids,
            turns: Arc::new(Semaphore::new(CALLS_OUT)),
        }
    }

    /// Sends a question, and returns the answer later as a message. Does not wait.
    pub(super) fn ask(&self, call: Call) {
        let id = call.id;
        let session = call.context.session.id.clone();
        let client = Client::new(self.messages.clone(), self.ids.clone(), session);
        let (registry, messages) = (self.registry.clone(), self.messages.clone());
        let turns = Arc::clone(&self.turns);
        tokio::spawn(async move {
            let turn = turns.acquire_owned().await;
            let begun = Instant::now();
            // Runs in a separate task: a panic counts as a failed answer.
            let asked = tokio::spawn(registry.ask(call, client)).await;
            let returned = Returned {
                outcome: asked.unwrap_or_else(|_| Err("it broke down".to_owned())),
                took: begun.elapsed(),
            };
            drop(turn);
            if let Some(messages) = messages.upgrade() {
                let _ = messages.send(Message::Returned(id, returned)).await;
            }
        });
    }
}
