//! Marks, and what marked requests have in common: only what can be answered at once can be decided at
//! once.

use std::sync::Arc;

use super::{Queue, overrules};
use crate::atlas::document::RiskTier;
use crate::base::id::GateId;
use crate::engine::held::Held;

/// Requests that are answered together, in the order of the list.
pub(crate) type Batch = Vec<Arc<Held>>;

/// Most requests in a batch: more cannot be looked through with care.
const MOST_TOGETHER: usize = 50;

impl Queue {
    /// Marks the chosen request, or takes its mark away.
    ///
    /// # Errors
    /// When it cannot be part of a batch, in words.
    pub(crate) fn mark(&mut self) -> Result<(), String> {
        let Some(held) = self.selected().cloned() else {
            return Ok(());
        };
        if self.marked.remove(&held.id) {
            return Ok(());
        }
        if self.marked.len() >= MOST_TOGETHER {
            return Err(format!("a batch has at most {MOST_TOGETHER} requests"));
        }
        if let Some(why) = self.unfit(&held) {
            return Err(format!("{} cannot be marked: {why}", held.id));
        }
        self.marked.insert(held.id.clone());
        Ok(())
    }

    /// Whether the chosen request has a mark to lose, or could get one.
    pub(super) fn can_mark(&self) -> bool {
        self.selected().is_some_and(|held| {
            let full = self.marked.len() >= MOST_TOGETHER;
            self.marked.contains(&held.id) || (!full && self.unfit(held).is_none())
        })
    }

    /// Why a request cannot be marked beside those that are, if so.
    fn unfit(&self, held: &Held) -> Option<String> {
        let first = self.marked.iter().next().and_then(|id| self.roll.get(id));
        unfit(held, first.map(AsRef::as_ref))
    }

    /// The marked requests.
    ///
    /// # Errors
    /// When they cannot be decided together, in words.
    pub(crate) fn marked(&self) -> Result<Batch, String> {
        let marked = self.marked.iter().filter_map(|id| self.roll.get(id));
        let mut marked: Batch = marked.cloned().collect();
        let sort = self.sort;
        marked.sort_by(|a, b| sort.compare(a, b));
        batch(marked)
    }

    /// Takes marks away: what they were made for is done.
    pub(crate) fn unmark(&mut self, gates: &[GateId]) {
        self.marked.retain(|id| !gates.contains(id));
    }
}

/// Requests that can be decided together.
///
/// # Errors
/// When they cannot, in words.
fn batch(requests: Batch) -> Result<Batch, String> {
    let first = requests.first().cloned();
    let Some(first) = first else {
        return Err("no request is marked: Space marks one".to_owned());
    };
    for held in &requests {
        if let Some(why) = unfit(held, Some(&first)) {
            return Err(format!("{} cannot be in this batch: {why}", held.id));
        }
    }
    Ok(requests)
}

/// Why a request cannot be decided together with another one, if so.
fn unfit(held: &Held, with: Option<&Held>) -> Option<String> {
    if overrules(held) {
        return Some("a denial is never overruled in a batch".to_owned());
    }
    if !held.approvers().is_one() {
        return Some("two operators have to approve it, each by itself".to_owned());
    }
    match held.tier() {
        RiskTier::Low | RiskTier::Medium => {}
        tier @ (RiskTier::High | RiskTier::Critical) => {
            return Some(format!(
                "it is of {tier} risk, and each of these is decided alone"
            ));
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
        return Some(format!("it stands at other checkpoints than {}", with.id));
    }
    if held.atlas_hash != with.atlas_hash {
        return Some(format!(
            "it was judged under another Atlas than {}",
            with.id
        ));
    }
    let asks = |held: &Held| -> Vec<_> {
        let gates = held.gates.iter().map(|gate| gate.questions.clone());
        gates.collect()
    };
    if asks(held) != asks(with) || held.answered.len() != with.answered.len() {
        return Some(format!("it asks other questions than {}", with.id));
    }
    None
}
