//! Window onto a long chain: only the pages around the view are in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::reads::EventRow;

/// Rows in a page.
pub(super) const PAGE_ROWS: usize = 100;

/// Pages in memory.
#[derive(Debug, Default)]
pub(super) struct EventPages {
    pages: BTreeMap<u64, EventPage>,
}

#[derive(Debug)]
struct EventPage {
    /// Number of events of the session when the page was requested.
    total: u64,
    /// Rows of the page. `None` while the read is pending.
    rows: Option<Vec<EventRow>>,
}

impl EventPages {
    /// Returns the first sequence numbers of the pages to request for these events. Drops the pages far from
    /// all of them.
    pub(super) fn missing_pages(
        &mut self,
        view: impl Iterator<Item = u64>,
        total: u64,
    ) -> Vec<u64> {
        let length = PAGE_ROWS as u64;
        let wanted: BTreeSet<u64> = view.map(|sequence| sequence / length).collect();
        let near = |number: &u64| {
            let around = number.saturating_sub(1)..=number.saturating_add(1);
            wanted.range(around).next().is_some()
        };
        if !wanted.is_empty() {
            self.pages.retain(|number, _| near(number));
        }
        let mut asked = Vec::new();
        for number in wanted {
            if self.is_wanted(number, total) {
                let rows = self.pages.remove(&number).and_then(|page| page.rows);
                // The old rows stay on screen until the new ones arrive.
                self.pages.insert(number, EventPage { total, rows });
                asked.push(number * length);
            }
        }
        asked
    }

    fn is_wanted(&self, number: u64, total: u64) -> bool {
        match self.pages.get(&number) {
            None => true,
            Some(page) => {
                let length = PAGE_ROWS as u64;
                let had = page.total.min((number + 1) * length);
                let has = total.min((number + 1) * length);
                page.rows.is_some() && has > had
            }
        }
    }

    /// Takes in a page.
    pub(super) fn on_read(&mut self, from: u64, rows: Vec<EventRow>) {
        if let Some(page) = self.pages.get_mut(&(from / PAGE_ROWS as u64)) {
            page.rows = Some(rows);
        }
    }

    /// Returns the row with this sequence number, if it is in memory.
    pub(super) fn get(&self, sequence: u64) -> Option<&EventRow> {
        let page = self.pages.get(&(sequence / PAGE_ROWS as u64))?;
        let rows = page.rows.as_ref()?;
        let at = rows.binary_search_by_key(&sequence, |row| row.sequence);
        rows.get(at.ok()?)
    }

    /// Returns true if the page of this sequence number was read.
    pub(super) fn is_read(&self, sequence: u64) -> bool {
        let page = self.pages.get(&(sequence / PAGE_ROWS as u64));
        page.is_some_and(|page| page.rows.is_some())
    }

    /// Drops all pages.
    pub(super) fn drop_events(&mut self) {
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_requested_once_and_again_only_after_it_grew() {
        let mut pages = EventPages::default();
        assert_eq!(pages.missing_pages(0..40, 150), [0]);
        assert_eq!(pages.missing_pages(0..40, 150), Vec::<u64>::new());
        assert_eq!(pages.missing_pages(80..120, 150), [100]);
        pages.on_read(100, Vec::new());
        assert_eq!(pages.missing_pages(80..120, 150), Vec::<u64>::new());
        assert_eq!(pages.missing_pages(80..120, 151), [100]);
    }

    #[test]
    fn a_long_chain_is_never_fully_in_memory() {
        let mut pages = EventPages::default();
        for start in (0..1_000_000).step_by(1000) {
            pages.missing_pages(start..start + 40, 1_000_000);
        }
        assert!(pages.pages.len() <= 6);
        for start in (0..1_000_000).step_by(100_000) {
            pages.missing_pages((0..40).map(|row| start + row * 1000), 1_000_000);
        }
        assert!(
            pages.pages.len() <= 40,
            "rows far apart, as a filter leaves them"
        );
    }
}
