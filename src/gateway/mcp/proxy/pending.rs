//! Unanswered requests of the agent.

use std::collections::HashMap;

use tokio::sync::oneshot;

use super::super::gate::Run;
use crate::gateway::rpc::Id;

/// Progress of a request.
#[derive(Debug)]
pub(super) enum Stage {
    /// A tool call that waits for the console. Dropping this cancels the task that asks.
    Held(#[expect(dead_code, reason = "dropping it cancels the waiting task")] oneshot::Sender<()>),
    /// A tool call at the server whose result is not reported yet.
    Running(Run),
    /// A request for the list of tools, at the server.
    Listing,
    /// Any other request, at the server.
    Asked,
}

/// All unanswered requests.
#[derive(Debug, Default)]
pub(super) struct Pending(HashMap<Id, Stage>);

impl Pending {
    /// Adds a request. Returns false if its id is already in use.
    pub(super) fn note(&mut self, id: Id, stage: Stage) -> bool {
        match self.0.entry(id) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(stage);
                true
            }
        }
    }

    /// Moves a tool call from the console to the server. Returns the run if the call was cancelled.
    pub(super) fn release(&mut self, id: &Id, run: Run) -> Result<(), Run> {
        match self.0.get_mut(id) {
            Some(stage @ Stage::Held(_)) => {
                *stage = Stage::Running(run);
                Ok(())
            }
            Some(Stage::Running(_) | Stage::Listing | Stage::Asked) | None => Err(run),
        }
    }

    /// Returns the progress of a request.
    pub(super) fn get(&self, id: &Id) -> Option<&Stage> {
        self.0.get(id)
    }

    /// Removes a request.
    pub(super) fn take(&mut self, id: &Id) -> Option<Stage> {
        self.0.remove(id)
    }

    /// Removes all requests.
    pub(super) fn take_all(&mut self) -> Vec<(Id, Stage)> {
        self.0.drain().collect()
    }
}
