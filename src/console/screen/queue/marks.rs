//! Marks for batch decisions. Only requests that can share one answer can be decided together.

use std::sync::Arc;

use super::{QueueScreen, overrules};
use crate::atlas::document::RiskTier;
use crate::base::id::HeldRequestId;
use crate::engine::held::Held;

/// Requests that are answered together, in list order.
pub(crate) type MarkedRequests = Vec<Arc<Held>>;

/// Maximum number of requests in a batch: an operator cannot review more with care.
const MAX_BATCH: usize = 50;

impl QueueScreen {
    /// Marks or unmarks the selected request.
    ///
    /// # Errors
    /// The reason why the request cannot be part of a batch.
    pub(crate) fn mark(&mut self) -> Result<(), String> {
        let Some(held) = self.selected().cloned() else {
            return Ok(());
        };
        if self.marked.remove(&held.id) {
            return Ok(());
        }
        if self.marked.len() >= MAX_BATCH {
            return Err(format!("a batch has at most {MAX_BATCH} requests"));
        }
        if let Some(reason) = self.batch_obstacle(&held) {
            return Err(format!("{} cannot be marked: {reason}", held.id));
        }
        self.marked.insert(held.id.clone());
        Ok(())
    }

    /// Returns true if the selected request can be marked or unmarked.
    pub(super) fn can_mark(&self) -> bool {
        self.selected().is_some_and(|held| {
            let full = self.marked.len() >= MAX_BATCH;
            self.marked.contains(&held.id) || (!full && self.batch_obstacle(held).is_none())
        })
    }

    /// Returns the reason why a request cannot join the marked ones, if there is one.
    fn batch_obstacle(&self, held: &Held) -> Option<String> {
        let first = self.marked.iter().next().and_then(|id| self.index.get(id));
        batch_obstacle(held, first.map(AsRef::as_ref))
    }

    /// Returns the marked requests.
    ///
    /// # Errors
    /// The reason why they cannot be decided together.
    pub(crate) fn marked(&self) -> Result<MarkedRequests, String> {
        let marked = self.marked.iter().filter_map(|id| self.index.get(id));
        let mut marked: MarkedRequests = marked.cloned().collect();
        let sort = self.sort;
        marked.sort_by(|a, b| sort.compare(a, b));
        batch(marked)
    }

    /// Removes the marks of requests whose batch is done.
    pub(crate) fn unmark(&mut self, gates: &[HeldRequestId]) {
        self.marked.retain(|id| !gates.contains(id));
    }
}

/// Checks that requests can be decided together.
///
/// # Errors
/// The reason why they cannot.
fn batch(requests: MarkedRequests) -> Result<MarkedRequests, String> {
    let first = requests.first().cloned();
    let Some(first) = first else {
        return Err("no request is marked: press Space".to_owned());
    };
    for held in &requests {
        if let Some(reason) = batch_obstacle(held, Some(&first)) {
            return Err(format!("{} cannot be in this batch: {reason}", held.id));
        }
    }
    Ok(requests)
}

/// Returns the reason why a request cannot be decided together with another one, if there is one.
fn batch_obstacle(held: &Held, with: Option<&Held>) -> Option<String> {
    if overrules(held) {
        return Some("a batch cannot overrule a denial".to_owned());
    }
    if !held.approvers().is_one() {
        return Some("two operators must approve it".to_owned());
    }
    match held.tier() {
        RiskTier::Low | RiskTier::Medium => {}
        tier @ (RiskTier::High | RiskTier::Critical) => {
            return Some(format!("its risk is {tier}; decide it separately"));
        }
    }
    let with = with?;
    let checkpoints = |held: &Held| -> Vec<String> {
        let gates = held.gates.iter().map(|gate| &gate.origin);
        gates
            .map(|origin| format!("{}/{}", origin.atlas_id(), origin.id()))
            .collect()
    };
    if checkpoints(held) != checkpoints(with) {
        return Some(format!("its checkpoints differ from {}", with.id));
    }
    if held.atlas_hash != with.atlas_hash {
        return Some(format!("its Atlas differs from {}", with.id));
    }
    let asks = |held: &Held| -> Vec<_> {
        let gates = held.gates.iter().map(|gate| gate.questions.clone());
        gates.collect()
    };
    if asks(held) != asks(with) || held.answered.len() != with.answered.len() {
        return Some(format!("its questions differ from {}", with.id));
    }
    None
}
