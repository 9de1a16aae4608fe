//! Unanswered requests of the agent.

use std::collections::HashMap;

use tokio::sync::oneshot;

use crate::gateway::protocol::rpc::RpcId;
use crate::gateway::transport::console_session::PermittedRun;

/// Progress of a request.
#[derive(Debug)]
pub(super) enum RequestStage {
    /// A tool call that waits for the console. Dropping this cancels the task that asks.
    Held(#[expect(dead_code, reason = "dropping it cancels the waiting task")] oneshot::Sender<()>),
    /// A tool call at the server whose result is not reported yet.
    Running(PermittedRun),
    /// A request for the list of tools, at the server.
    Listing,
    /// Any other request, at the server.
    Other,
}

/// All unanswered requests.
#[derive(Debug, Default)]
pub(super) struct PendingRequests(HashMap<RpcId, RequestStage>);

impl PendingRequests {
    /// Adds a request. Returns false if its id is already in use.
    pub(super) fn add(&mut self, id: RpcId, stage: RequestStage) -> bool {
        match self.0.entry(id) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(stage);
                true
            }
        }
    }

    /// Moves a tool call from the console to the server. Returns the run if the call was cancelled.
    pub(super) fn release(&mut self, id: &RpcId, run: PermittedRun) -> Result<(), PermittedRun> {
        match self.0.get_mut(id) {
            Some(stage @ RequestStage::Held(_)) => {
                *stage = RequestStage::Running(run);
                Ok(())
            }
            Some(RequestStage::Running(_) | RequestStage::Listing | RequestStage::Other) | None => {
                Err(run)
            }
        }
    }

    /// Returns the progress of a request.
    pub(super) fn get(&self, id: &RpcId) -> Option<&RequestStage> {
        self.0.get(id)
    }

    /// Removes a request.
    pub(super) fn take(&mut self, id: &RpcId) -> Option<RequestStage> {
        self.0.remove(id)
    }

    /// Removes all requests.
    pub(super) fn take_all(&mut self) -> Vec<(RpcId, RequestStage)> {
        self.0.drain().collect()
    }
}
