//! Every held request by its identifier, and what changed between two pictures.
//!
//! Contract: a picture in which little changed costs a walk over pointers, not over requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::engine::held::Held;

/// Every held request.
#[derive(Debug, Default)]
pub(super) struct Roll {
    by_id: HashMap<GateId, Arc<Held>>,
    /// The nearest deadline.
    earliest: Option<Timestamp>,
}

/// What changed between two pictures.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// What is held now and was not.
    pub(super) added: Vec<Arc<Held>>,
    /// What is held still and differs: as it was, and as it is.
    pub(super) changed: Vec<(Arc<Held>, Arc<Held>)>,
    /// What was held and is not any more.
    pub(super) removed: Vec<Arc<Held>>,
}

impl Roll {
    /// The held request of that name.
    pub(super) fn get(&self, id: &GateId) -> Option<&Arc<Held>> {
        self.by_id.get(id)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The nearest deadline.
    pub(super) fn earliest(&self) -> Option<Timestamp> {
        self.earliest
    }

    /// Takes in what is held now, and tells what differs from `before`.
    pub(super) fn update(&mut self, before: &[Arc<Held>], now: &[Arc<Held>]) -> Difference {
        let difference = self.compare(before, now);
        let mut outdated = false;
        for gone in &difference.removed {
            self.by_id.remove(&gone.id);
            outdated |= Some(gone.deadline) == self.earliest;
        }
        for (was, is) in &difference.changed {
            self.by_id.insert(is.id.clone(), Arc::clone(is));
            outdated |= was.deadline != is.deadline;
        }
        for new in &difference.added {
            self.by_id.insert(new.id.clone(), Arc::clone(new));
            self.earliest = Some(
                self.earliest
                    .map_or(new.deadline, |it| it.min(new.deadline)),
            );
        }
        if outdated {
            self.earliest = now.iter().map(|held| held.deadline).min();
        }
        difference
    }

    /// Both lists are in the order of asking, so that a step in both at once mostly meets the same
    /// request. What is out of step is told apart by its identifier.
    fn compare(&self, before: &[Arc<Held>], now: &[Arc<Held>]) -> Difference {
        let mut difference = Difference::default();
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
            difference.settle(&unmatched);
        }
        difference
    }
}

impl Difference {
    /// Puts right what was taken for removed because it stands elsewhere in the list.
    fn settle(&mut self, unmatched: &[&Arc<Held>]) {
        let there: HashMap<&GateId, &Arc<Held>> =
            unmatched.iter().map(|held| (&held.id, *held)).collect();
        let (moved, removed) = std::mem::take(&mut self.removed)
            .into_iter()
            .partition(|held| there.contains_key(&held.id));
        self.removed = removed;
        let moved: Vec<Arc<Held>> = moved;
        for was in moved {
            if let Some(is) = there.get(&was.id)
                && !Arc::ptr_eq(&was, is)
            {
                self.changed.push((was, Arc::clone(is)));
            }
        }
    }

    /// What is gone, by where it is in memory: quicker to look up than a name.
    pub(super) fn gone(&self) -> HashSet<*const Held> {
        self.removed.iter().map(Arc::as_ptr).collect()
    }

    /// What took the place of what.
    pub(super) fn replaced(&self) -> HashMap<*const Held, &Arc<Held>> {
        let changed = self.changed.iter();
        changed.map(|(was, is)| (Arc::as_ptr(was), is)).collect()
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
    fn what_came_went_and_changed_is_told_apart() {
        let mut roll = Roll::default();
        let first = of(&["c-1", "c-2", "c-3", "c-4"]);
        assert_eq!(roll.update(&[], &first).added.len(), 4);
        let mut second = first.clone();
        second.remove(1);
        let mut other = (*second[1]).clone();
        other.joined = 3;
        second[1] = Arc::new(other);
        second.extend(of(&["c-5"]));
        let difference = roll.update(&first, &second);
        assert_eq!(names(&difference.added), ["c-5"]);
        assert_eq!(names(&difference.removed), ["c-2"]);
        assert_eq!(difference.changed.len(), 1);
        assert_eq!(roll.get(&"c-3".parse().unwrap()).unwrap().joined, 3);
        assert_eq!(roll.len(), 4);
    }

    #[test]
    fn another_order_is_no_change() {
        let mut roll = Roll::default();
        let first = of(&["c-1", "c-2", "c-3"]);
        roll.update(&[], &first);
        let mut turned = first.clone();
        turned.reverse();
        let difference = roll.update(&first, &turned);
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
    fn the_nearest_deadline_is_known_whoever_leaves() {
        let mut roll = Roll::default();
        let near = Arc::new(fixture::held("c-1", "a.b", RiskTier::Low, 1, 10));
        let far = Arc::new(fixture::held("c-2", "a.b", RiskTier::Low, 1, 90));
        let both = [Arc::clone(&near), Arc::clone(&far)];
        roll.update(&[], &both);
        assert_eq!(roll.earliest(), Some(near.deadline));
        roll.update(&both, &[Arc::clone(&far)]);
        assert_eq!(roll.earliest(), Some(far.deadline));
        roll.update(&[far], &[]);
        assert_eq!(roll.earliest(), None);
    }
}
