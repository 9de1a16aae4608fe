//! Updates of the queue from a new snapshot: arrivals, changes and removals.

use std::sync::Arc;

use super::QueueScreen;
use super::held_index::HeldDifference;
use super::sort_order::SortOrder;
use crate::atlas::document::RiskTier;
use crate::engine::held::Held;

/// Maximum number of arrivals inserted one by one. More are appended and sorted together.
const FEW: usize = 32;

impl QueueScreen {
    /// Replaces the held requests `before` with `now`, and returns the arrivals.
    pub(crate) fn sync(&mut self, before: &[Arc<Held>], now: &[Arc<Held>]) -> Vec<Arc<Held>> {
        let news = self.index.update(before, now);
        self.replace_changed(&news);
        self.remove_settled(&news);
        self.admit(&news.added);
        self.count_hidden_critical();
        news.added
    }

    /// Replaces changed requests. Each keeps its row, even if its sort key changed.
    fn replace_changed(&mut self, news: &HeldDifference) {
        if news.changed.is_empty() {
            return;
        }
        let replaced = news.replacements();
        let lists = [&mut self.rows, &mut self.waiting, &mut self.hidden];
        for row in lists.into_iter().flatten() {
            if let Some(is) = replaced.get(&Arc::as_ptr(row)) {
                *row = Arc::clone(is);
            }
        }
        for (before_held, is) in &news.changed {
            if (before_held.request_hash, before_held.atlas_hash)
                != (is.request_hash, is.atlas_hash)
            {
                self.changed.insert(is.id.clone());
                // The mark was set for the previous content.
                self.marked.remove(&is.id);
            }
        }
    }

    fn remove_settled(&mut self, news: &HeldDifference) {
        if news.removed.is_empty() {
            return;
        }
        let gone = news.removed_addresses();
        let is_gone = |held: &Arc<Held>| gone.contains(&Arc::as_ptr(held));
        let above = self
            .rows
            .iter()
            .take(self.at)
            .filter(|held| is_gone(held))
            .count();
        for list in [&mut self.rows, &mut self.waiting, &mut self.hidden] {
            list.retain(|held| !is_gone(held));
        }
        for held in &news.removed {
            self.changed.remove(&held.id);
            self.marked.remove(&held.id);
        }
        // Select the neighbour that took the place, or the last row, on the same screen line.
        let last = self.rows.len().saturating_sub(1);
        self.at = self.at.saturating_sub(above).min(last);
        self.top = self.top.saturating_sub(above);
        self.selected = self.rows.get(self.at).map(|held| held.id.clone());
        self.top = self.top_for(self.height);
        if self.rows.is_empty() {
            // The list is empty, so no arrival can push a selected row.
            let waiting = std::mem::take(&mut self.waiting);
            self.admit(&waiting);
        }
    }

    /// Inserts arrivals below the selected row, or puts them into `waiting` if they would push it.
    fn admit(&mut self, arrivals: &[Arc<Held>]) {
        let sort = self.sort;
        let selected = self.selected().cloned();
        let mut below = Vec::new();
        for held in arrivals {
            let held = Arc::clone(held);
            if !self.filter.matches(&held, self.state(&held)) {
                self.hidden.push(held);
            } else if selected
                .as_ref()
                .is_none_or(|selected| sort.compare(selected, &held).is_le())
            {
                below.push(held);
            } else {
                self.waiting.push(held);
            }
        }
        self.waiting.sort_by(|a, b| SortOrder::Risk.compare(a, b));
        let from = selected.map_or(0, |_| self.at + 1);
        let mut tail = self.rows.split_off(from.min(self.rows.len()));
        if below.len() <= FEW {
            for held in below {
                let at = tail.partition_point(|row| sort.compare(row, &held).is_lt());
                tail.insert(at, held);
            }
        } else {
            tail.append(&mut below);
            tail.sort_by(|a, b| sort.compare(a, b));
        }
        self.rows.append(&mut tail);
        if self.selected.is_none() {
            self.select_row(0);
        }
    }

    /// Inserts the waiting arrivals into the list.
    pub(crate) fn merge(&mut self) {
        for held in std::mem::take(&mut self.waiting) {
            if self.filter.matches(&held, self.state(&held)) {
                self.rows.push(held);
            } else {
                self.hidden.push(held);
            }
        }
        self.count_hidden_critical();
        self.sort_rows();
    }

    /// Counts the hidden critical requests, which the screen reports despite the filter.
    pub(super) fn count_hidden_critical(&mut self) {
        let critical = |held: &&Arc<Held>| held.tier() == RiskTier::Critical;
        self.hidden_critical = self.hidden.iter().filter(critical).count();
    }
}
