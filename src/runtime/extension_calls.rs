//! Calls of extensions. Each call gets an answer, even if the extension fails.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Semaphore, mpsc};

use super::extension::{Client, MAX_RUNNING_CALLS, Registry};
use super::message::{ActorMessage, ReplyIds};
use crate::engine::extensions::{CallResult, ExtensionCall};

/// Caller of extensions.
pub(super) struct ExtensionCaller {
    registry: Registry,
    messages: mpsc::WeakSender<ActorMessage>,
    ids: ReplyIds,
    permits: Arc<Semaphore>,
}

impl ExtensionCaller {
    pub(super) fn new(
        registry: Registry,
        messages: mpsc::WeakSender<ActorMessage>,
        ids: ReplyIds,
    ) -> Self {
        Self {
            registry,
            messages,
            ids,
            permits: Arc::new(Semaphore::new(MAX_RUNNING_CALLS)),
        }
    }

    /// Sends a question, and returns the answer later as a message. Does not wait.
    pub(super) fn call_extension(&self, call: ExtensionCall) {
        let id = call.id;
        let session = call.context.session.id.clone();
        let client = Client::new(self.messages.clone(), self.ids.clone(), session);
        let (registry, messages) = (self.registry.clone(), self.messages.clone());
        let turns = Arc::clone(&self.permits);
        tokio::spawn(async move {
            let turn = turns.acquire_owned().await;
            let begun = Instant::now();
            // Runs in a separate task: a panic counts as a failed answer.
            let asked = tokio::spawn(registry.ask(call, client)).await;
            let returned = CallResult {
                outcome: asked.unwrap_or_else(|_| Err("it crashed".to_owned())),
                duration: begun.elapsed(),
            };
            drop(turn);
            if let Some(messages) = messages.upgrade() {
                let _ = messages
                    .send(ActorMessage::ExtensionAnswer(id, returned))
                    .await;
            }
        });
    }
}
