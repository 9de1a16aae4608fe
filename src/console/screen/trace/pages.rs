//! A window onto a long chain: the pages around the view, and nothing else.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::trace::event::Event;

/// Events in a page.
pub(super) const LENGTH: usize = 100;

/// Pages kept on either side of the view.
const KEPT: u64 = 2;

/// The pages in memory.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pages: BTreeMap<u64, Page>,
}

#[derive(Debug)]
struct Page {
    /// How many events the session had when it was asked for.
    total: u64,
    /// What was read; nothing yet while it is on its way.
    events: Option<Vec<Event>>,
}

impl Pages {
    /// Which pages to ask for so that `view` can be shown; each is named by its first sequence
    /// number. Forgets what is far away.
    pub(super) fn ask(&mut self, view: Range<u64>, total: u64) -> Vec<u64> {
        if view.is_empty() {
            return Vec::new();
        }
        let length = LENGTH as u64;
        let (first, last) = (view.start / length, (view.end - 1) / length);
        let near = first.saturating_sub(KEPT)..=last + KEPT;
        self.pages.retain(|number, _| near.contains(number));
        let mut asked = Vec::new();
        for number in first..=last {
            if self.is_wanted(number, total) {
                let events = self.pages.remove(&number).and_then(|page| page.events);
                // What was read stays on screen until the rest is here.
                self.pages.insert(number, Page { total, events });
                asked.push(number * length);
            }
        }
        asked
    }

    fn is_wanted(&self, number: u64, total: u64) -> bool {
        match self.pages.get(&number) {
            None => true,
            Some(page) => {
                let length = LENGTH as u64;
                let had = page.total.min((number + 1) * length);
                let has = total.min((number + 1) * length);
                page.events.is_some() && has > had
            }
        }
    }

    /// A page is here.
    pub(super) fn arrive(&mut self, from: u64, events: Vec<Event>) {
        if let Some(page) = self.pages.get_mut(&(from / LENGTH as u64)) {
            page.events = Some(events);
        }
    }

    /// The event with that sequence number, if it is in memory.
    pub(super) fn get(&self, sequence: u64) -> Option<&Event> {
        let page = self.pages.get(&(sequence / LENGTH as u64))?;
        let mut events = page.events.as_ref()?.iter();
        events.find(|event| event.sequence == sequence)
    }

    /// Whether the page of that sequence number was read.
    pub(super) fn is_read(&self, sequence: u64) -> bool {
        let page = self.pages.get(&(sequence / LENGTH as u64));
        page.is_some_and(|page| page.events.is_some())
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_asked_for_once_and_again_only_when_it_grew() {
        let mut pages = Pages::default();
        assert_eq!(pages.ask(0..40, 150), [0]);
        assert_eq!(pages.ask(0..40, 150), Vec::<u64>::new());
        assert_eq!(pages.ask(80..120, 150), [100]);
        pages.arrive(100, Vec::new());
        assert_eq!(pages.ask(80..120, 150), Vec::<u64>::new());
        assert_eq!(pages.ask(80..120, 151), [100]);
    }

    #[test]
    fn a_long_chain_is_never_in_memory() {
        let mut pages = Pages::default();
        for start in (0..1_000_000).step_by(1000) {
            pages.ask(start..start + 40, 1_000_000);
        }
        assert!(pages.pages.len() <= 6);
    }
}
