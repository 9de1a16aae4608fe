//! Index of all held requests by id, and the difference between two snapshots.
//!
//! Contract: a snapshot with few changes costs a comparison of pointers, not of requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::engine::held::Held;

/// Index of all held requests.
#[derive(Debug, Default)]
pub(super) struct HeldIndex {
    by_id: HashMap<HeldRequestId, Arc<Held>>,
    /// Earliest deadline.
    earliest: Option<Timestamp>,
}

/// Difference between two snapshots.
#[derive(Debug, Default)]
pub(super) struct HeldDifference {
    /// Requests that are newly held.
    pub(super) added: Vec<Arc<Held>>,
    /// Requests that are still held and changed: before and after.
    pub(super) changed: Vec<(Arc<Held>, Arc<Held>)>,
    /// Requests that are no longer held.
    pub(super) removed: Vec<Arc<Held>>,
}

impl HeldIndex {
    /// Returns the held request with this id.
    pub(super) fn get(&self, id: &HeldRequestId) -> Option<&Arc<Held>> {
        self.by_id.get(id)
    }

    /// Returns the number of held requests.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the earliest deadline.
    pub(super) fn earliest_deadline(&self) -> Option<Timestamp> {
        self.earliest
    }

    /// Updates the index to `now` and returns the difference from `before`.
    pub(super) fn update(&mut self, before: &[Arc<Held>], now: &[Arc<Held>]) -> HeldDifference {
        let difference = self.compare(before, now);
        let mut outdated = false;
        for gone in &difference.removed {
            self.by_id.remove(&gone.id);
            outdated |= Some(gone.deadline) == self.earliest;
        }
        for (before_held, is) in &difference.changed {
            self.by_id.insert(is.id.clone(), Arc::clone(is));
            outdated |= before_held.deadline != is.deadline;
        }
        for new in &difference.added {
            self.by_id.insert(new.id.clone(), Arc::clone(new));
            self.earliest = Some(
                self.earliest
                    .map_or(new.deadline, |earliest| earliest.min(new.deadline)),
            );
        }
        if outdated {
            self.earliest = now.iter().map(|held| held.deadline).min();
        }
        difference
    }

    /// Compares two lists. Both are in the order of asking, so walking both at once mostly meets the same
    /// request. Requests that are out of step are matched by id.
    fn compare(&self, before: &[Arc<Held>], now: &[Arc<Held>]) -> HeldDifference {
        let mut difference = HeldDifference::default();
        let mut unmatched: Vec<&Arc<Held>> = Vec::new();
        let mut old = before.iter().peekable();
        for new in now {
            match old.peek() {
                Some(same) if Arc::ptr_eq(same, new) => {
                    old.next();
                    continue;
                }
                Some(_) | None => {}
            }
            if !self.by_id.contains_key(&new.id) {
                difference.added.push(Arc::clone(new));
                continue;
            }
            loop {
                match old.next() {
                    Some(same) if same.id == new.id => {
                        if !Arc::ptr_eq(same, new) {
                            difference.changed.push((Arc::clone(same), Arc::clone(new)));
                        }
                        break;
                    }
                    Some(other) => difference.removed.push(Arc::clone(other)),
                    None => {
                        unmatched.push(new);
                        break;
                    }
                }
            }
        }
        difference.removed.extend(old.cloned());
        if !unmatched.is_empty() {
            difference.correct_moved_requests(&unmatched);
        }
        difference
    }
}

impl HeldDifference {
    /// Corrects requests that were counted as removed although they only moved in the list.
    fn correct_moved_requests(&mut self, unmatched: &[&Arc<Held>]) {
        let there: HashMap<&HeldRequestId, &Arc<Held>> =
            unmatched.iter().map(|held| (&held.id, *held)).collect();
        let (moved, removed) = std::mem::take(&mut self.removed)
            .into_iter()
            .partition(|held| there.contains_key(&held.id));
        self.removed = removed;
        let moved: Vec<Arc<Held>> = moved;
        for before_held in moved {
            if let Some(is) = there.get(&before_held.id)
                && !Arc::ptr_eq(&before_held, is)
            {
                self.changed.push((before_held, Arc::clone(is)));
            }
        }
    }

    /// Returns the addresses of the removed requests: faster to look up than ids.
    pub(super) fn removed_addresses(&self) -> HashSet<*const Held> {
        self.removed.iter().map(Arc::as_ptr).collect()
    }

    /// Maps the address of each changed request to its new version.
    pub(super) fn replacements(&self) -> HashMap<*const Held, &Arc<Held>> {
        let changed = self.changed.iter();
        changed
            .map(|(before_held, is)| (Arc::as_ptr(before_held), is))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::document::RiskTier;
    use crate::console::tests::fixture;

    fn of(ids: &[&str]) -> Vec<Arc<Held>> {
        let held = |id: &&str| Arc::new(fixture::held(id, "a.b", RiskTier::Low, 1, 60));
        ids.iter().map(held).collect()
    }

    fn names(list: &[Arc<Held>]) -> Vec<&str> {
        list.iter().map(|held| held.id.as_str()).collect()
    }

    #[test]
    fn an_update_reports_added_removed_and_changed_requests() {
        let mut index = HeldIndex::default();
        let first = of(&["c-1", "c-2", "c-3", "c-4"]);
        assert_eq!(index.update(&[], &first).added.len(), 4);
        let mut second = first.clone();
        second.remove(1);
        let mut other = (*second[1]).clone();
        other.joined = 3;
        second[1] = Arc::new(other);
        second.extend(of(&["c-5"]));
        let difference = index.update(&first, &second);
        assert_eq!(names(&difference.added), ["c-5"]);
        assert_eq!(names(&difference.removed), ["c-2"]);
        assert_eq!(difference.changed.len(), 1);
        assert_eq!(index.get(&"c-3".parse().unwrap()).unwrap().joined, 3);
        assert_eq!(index.len(), 4);
    }

    #[test]
    fn reordered_requests_do_not_count_as_changed() {
        let mut index = HeldIndex::default();
        let first = of(&["c-1", "c-2", "c-3"]);
        index.update(&[], &first);
        let mut turned = first.clone();
        turned.reverse();
        let difference = index.update(&first, &turned);
        assert_eq!(
            (
                difference.added.len(),
                difference.changed.len(),
                difference.removed.len()
            ),
            (0, 0, 0)
        );
    }

    #[test]
    fn the_earliest_deadline_stays_correct_when_requests_leave() {
        let mut index = HeldIndex::default();
        let near = Arc::new(fixture::held("c-1", "a.b", RiskTier::Low, 1, 10));
        let far = Arc::new(fixture::held("c-2", "a.b", RiskTier::Low, 1, 90));
        let both = [Arc::clone(&near), Arc::clone(&far)];
        index.update(&[], &both);
        assert_eq!(index.earliest_deadline(), Some(near.deadline));
        index.update(&both, &[Arc::clone(&far)]);
        assert_eq!(index.earliest_deadline(), Some(far.deadline));
        index.update(&[far], &[]);
        assert_eq!(index.earliest_deadline(), None);
    }
}
