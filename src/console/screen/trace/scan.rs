//! Background scan of a session, for a filter or a search.
//!
//! Contract: only the sequence numbers of the matches are kept. The scan starts at the cursor, so that the
//! next match is known first, continues to the end, and then covers the events from the first on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::reads::{TraceQuery, TraceRead, WindowMatches};
use crate::base::id::SessionId;

/// Events scanned at a time: some tens of milliseconds.
pub(super) const WINDOW: usize = 8_000;

/// Maximum number of different names counted. The others are counted together.
const MAX_FACETS: usize = 64;

/// State of a scan: its query, and the matches so far.
#[derive(Debug)]
pub(super) struct SessionScan {
    /// Query as it was typed.
    pub(super) text: String,
    pub(super) ticket: u64,
    query: Arc<TraceQuery>,
    /// First sequence number of the scan. INVARIANT: `after` holds numbers from here on, `before` smaller
    /// ones.
    origin: u64,
    after: Vec<u32>,
    before: Vec<u32>,
    /// Progress of the scan from the origin on. `head` is the progress before the origin.
    tail: u64,
    head: u64,
    window_state: ScanState,
    types: BTreeMap<String, u64>,
    actors: BTreeMap<String, u64>,
}

/// State of the pending window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    Idle,
    Tail(u64),
    Head(u64),
    /// The operator stopped the scan.
    Stopped,
}

impl SessionScan {
    pub(super) fn new(text: String, query: TraceQuery, origin: u64, ticket: u64) -> Self {
        Self {
            text,
            ticket,
            query: Arc::new(query),
            origin,
            after: Vec::new(),
            before: Vec::new(),
            tail: origin,
            head: 0,
            window_state: ScanState::Idle,
            types: BTreeMap::new(),
            actors: BTreeMap::new(),
        }
    }

    /// Returns the read of the next window of a session with `total` events.
    pub(super) fn next_read(&mut self, session: &SessionId, total: u64) -> Option<TraceRead> {
        if self.window_state != ScanState::Idle {
            return None;
        }
        let (from, end) = if self.tail < total {
            (self.tail, total)
        } else if self.head < self.origin {
            (self.head, self.origin)
        } else {
            return None;
        };
        let until = end.min(from.saturating_add(WINDOW as u64));
        self.window_state = if from >= self.origin {
            ScanState::Tail(until)
        } else {
            ScanState::Head(until)
        };
        Some(TraceRead::Scan {
            session: session.clone(),
            ticket: self.ticket,
            from,
            limit: usize::try_from(until - from).unwrap_or(WINDOW),
            query: Arc::clone(&self.query),
        })
    }

    /// Takes in the matches of a window.
    pub(super) fn on_read(&mut self, found: &WindowMatches) {
        match self.window_state {
            ScanState::Tail(until) => {
                self.after.extend(&found.hits);
                self.tail = until;
            }
            ScanState::Head(until) => {
                self.before.extend(&found.hits);
                self.head = until;
            }
            ScanState::Idle | ScanState::Stopped => return,
        }
        self.window_state = ScanState::Idle;
        count(&mut self.types, &found.types);
        count(&mut self.actors, &found.actors);
    }

    /// Stops the scan. Returns true if it was running.
    pub(super) fn stop(&mut self, total: u64) -> bool {
        let looking = self.is_running(total);
        if looking {
            self.window_state = ScanState::Stopped;
        }
        looking
    }

    /// Resumes a stopped scan.
    pub(super) fn resume(&mut self) {
        if self.window_state == ScanState::Stopped {
            self.window_state = ScanState::Idle;
        }
    }

    pub(super) fn is_running(&self, total: u64) -> bool {
        self.window_state != ScanState::Stopped && (self.tail < total || self.head < self.origin)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.window_state == ScanState::Stopped
    }

    /// Returns the number of events scanned.
    pub(super) fn seen(&self) -> u64 {
        (self.tail - self.origin) + self.head
    }

    /// Returns the number of matches.
    pub(super) fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// Returns the sequence number of a match.
    pub(super) fn get(&self, at: usize) -> Option<u64> {
        let found = self.before.get(at);
        let found = found.or_else(|| self.after.get(at.checked_sub(self.before.len())?));
        found.map(|sequence| u64::from(*sequence))
    }

    /// Returns the number of matches before a sequence number: the index of the first match at or after it.
    pub(super) fn rank(&self, sequence: u64) -> usize {
        let smaller = |hit: &u32| u64::from(*hit) < sequence;
        let before = self.before.partition_point(smaller);
        if before < self.before.len() {
            return before;
        }
        before + self.after.partition_point(smaller)
    }

    /// Returns true if an event is a match.
    pub(super) fn has(&self, sequence: u64) -> bool {
        self.get(self.rank(sequence)) == Some(sequence)
    }

    /// Returns the event types and the deciding actors of the matches, the most frequent first.
    pub(super) fn facets(&self) -> (FacetCounts<'_>, FacetCounts<'_>) {
        (ranked(&self.types), ranked(&self.actors))
    }
}

/// Names with counts.
pub(super) type FacetCounts<'s> = Vec<(&'s str, u64)>;

fn count(counts: &mut BTreeMap<String, u64>, more: &[(String, u64)]) {
    for (name, number) in more {
        let full = counts.len() >= MAX_FACETS && !counts.contains_key(name);
        let name = if full { "others" } else { name };
        *counts.entry(name.to_owned()).or_default() += number;
    }
}

fn ranked(counts: &BTreeMap<String, u64>) -> FacetCounts<'_> {
    let mut ranked: Vec<_> = counts.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    ranked.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    ranked
}
