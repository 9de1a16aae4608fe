//! Which requests of the agent nobody has answered yet.

use std::collections::HashMap;

use tokio::sync::oneshot;

use super::super::gate::Run;
use crate::gateway::rpc::Id;

/// Where a request is.
#[derive(Debug)]
pub(super) enum Stage {
    /// A use of a tool, at the gate. Dropping this calls whoever asks there back.
    Held(#[expect(dead_code, reason = "it is there to be dropped")] oneshot::Sender<()>),
    /// A use of a tool, at the server, and nobody said yet what came of it.
    Running(Run),
    /// A list of the tools, at the server.
    Listing,
    /// Anything else, at the server.
    Asked,
}

/// What is not answered yet.
#[derive(Debug, Default)]
pub(super) struct Pending(HashMap<Id, Stage>);

impl Pending {
    /// Notes a request; whether there was none by that name.
    pub(super) fn note(&mut self, id: Id, stage: Stage) -> bool {
        match self.0.entry(id) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(stage);
                true
            }
        }
    }

    /// A use of a tool goes from the gate to the server; the run, if nobody wants it any more.
    pub(super) fn release(&mut self, id: &Id, run: Run) -> Result<(), Run> {
        match self.0.get_mut(id) {
            Some(stage @ Stage::Held(_)) => {
                *stage = Stage::Running(run);
                Ok(())
            }
            Some(Stage::Running(_) | Stage::Listing | Stage::Asked) | None => Err(run),
        }
    }

    /// Where a request is.
    pub(super) fn get(&self, id: &Id) -> Option<&Stage> {
        self.0.get(id)
    }

    /// Forgets a request.
    pub(super) fn take(&mut self, id: &Id) -> Option<Stage> {
        self.0.remove(id)
    }

    /// Forgets all of them.
    pub(super) fn take_all(&mut self) -> Vec<(Id, Stage)> {
        self.0.drain().collect()
    }
}
