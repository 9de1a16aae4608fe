//! Extensions of this process without a running console: `cra run` plays scenarios with them.
//!
//! Contract: the caller waits for each answer, within the extension's own time. Questions that an extension
//! asks back are answered by the caller's engine. Hooks see each event before it is noted, and again as it
//! would be on record.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use tokio::sync::mpsc;

use super::{Client, Registry, Role};
use crate::base::id::SessionId;
use crate::engine::command::{EngineCommand, Reply};
use crate::engine::extensions::{ExtensionCall, Extensions};
use crate::runtime::hooks::EventHooks;
use crate::runtime::message::{ActorMessage, ReplyIds};
use crate::trace::chain::Chain;
use crate::trace::event::Draft;

/// Extensions of this process, and the chains of events for their hooks.
pub(crate) struct InlineExtensions {
    registry: Registry,
    hooks: EventHooks,
    chains: BTreeMap<SessionId, Chain>,
}

impl InlineExtensions {
    pub(crate) fn new(registry: Registry) -> Self {
        let hooks = EventHooks::before_only(registry.hooks().to_vec(), registry.events().clone());
        Self {
            registry,
            hooks,
            chains: BTreeMap::new(),
        }
    }

    /// Returns the names of the extensions, for the engine.
    pub(crate) fn table(&self) -> Extensions {
        self.registry.table()
    }

    /// Returns true if one of the extensions answers a question.
    pub(crate) fn answers(&self, call: &ExtensionCall) -> bool {
        let key = (Role::of(&call.question), call.name.clone());
        self.registry.entries.contains_key(&key)
    }

    /// Calls an extension and waits for its answer. `consult` answers the questions that the extension asks
    /// back.
    pub(crate) fn ask(
        &self,
        call: &ExtensionCall,
        mut consult: impl FnMut(EngineCommand) -> Option<Reply>,
    ) -> Result<Value, String> {
        let (sender, mut messages) = mpsc::channel(1);
        let session = call.context.session.id.clone();
        let client = Client::new(sender.downgrade(), ReplyIds::default(), session);
        let (registry, call) = (self.registry.clone(), call.clone());
        std::thread::scope(|scope| {
            let asked = scope.spawn(move || {
                // The client holds a weak sender: questions back are accepted until the answer comes.
                let _open = sender;
                let threads = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build();
                let threads = threads.map_err(|error| error.to_string())?;
                threads.block_on(registry.ask(call, client))
            });
            while let Some(message) = messages.blocking_recv() {
                if let ActorMessage::Command { command, reply, .. } = message
                    && let Some(answer) = consult(command)
                {
                    // An extension that has given up waiting is not an error of the engine.
                    reply.send(answer);
                }
            }
            let answered = asked.join();
            answered.unwrap_or_else(|_| Err("it crashed".to_owned()))
        })
    }

    /// Returns an event after the hooks changed it.
    pub(crate) fn before_event(&self, draft: Draft) -> Draft {
        self.hooks.apply_before(draft)
    }

    /// Shows the hooks an event as it would be on record.
    pub(crate) fn on_event(&mut self, draft: &Draft) {
        if self.registry.hooks().is_empty() {
            return;
        }
        let session = draft.session_id.clone();
        let chains = self.chains.entry(session.clone());
        let chain = chains.or_insert_with(|| Chain::new(session));
        // INVARIANT: an event that was sealed here reads back.
        let Ok(event) = chain.seal(draft).event_of() else {
            return;
        };
        for (pattern, hook) in self.registry.hooks() {
            if pattern.matches(&event.event_type) {
                // A hook that panics changes nothing: it only observes.
                let _ = catch_unwind(AssertUnwindSafe(|| hook.on_event(&event)));
            }
        }
    }
}
