//! Looking through a session in the background, for a filter or for a search.
//!
//! Contract: only the sequence numbers of what was found are kept. It begins at the cursor, so that the
//! next hit is known first, goes on to the end, and then from the first event on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ask::{Ask, Found, Query};
use crate::base::id::SessionId;

/// Events looked through at a time: some tens of milliseconds.
pub(super) const WINDOW: usize = 8_000;

/// Most different names that are counted; the others are lumped together.
const MOST_FACETS: usize = 64;

/// What is looked for, and what was found so far.
#[derive(Debug)]
pub(super) struct Scan {
    /// As it was typed.
    pub(super) text: String,
    pub(super) ticket: u64,
    query: Arc<Query>,
    /// Where it began. INVARIANT: `after` holds numbers from here on, `before` smaller ones.
    origin: u64,
    after: Vec<u32>,
    before: Vec<u32>,
    /// How far it got behind the origin, and before it.
    tail: u64,
    head: u64,
    going: Going,
    types: BTreeMap<String, u64>,
    actors: BTreeMap<String, u64>,
}

/// Whether a window is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    Idle,
    Tail(u64),
    Head(u64),
    /// The operator stopped it.
    Stopped,
}

impl Scan {
    pub(super) fn new(text: String, query: Query, origin: u64, ticket: u64) -> Self {
        Self {
            text,
            ticket,
            query: Arc::new(query),
            origin,
            after: Vec::new(),
            before: Vec::new(),
            tail: origin,
            head: 0,
            going: Going::Idle,
            types: BTreeMap::new(),
            actors: BTreeMap::new(),
        }
    }

    /// The next window to look through, of a session with `total` events.
    pub(super) fn ask(&mut self, session: &SessionId, total: u64) -> Option<Ask> {
        if self.going != Going::Idle {
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
        self.going = if from >= self.origin {
            Going::Tail(until)
        } else {
            Going::Head(until)
        };
        Some(Ask::Scan {
            session: session.clone(),
            ticket: self.ticket,
            from,
            limit: usize::try_from(until - from).unwrap_or(WINDOW),
            query: Arc::clone(&self.query),
        })
    }

    /// A window was looked through.
    pub(super) fn arrive(&mut self, found: &Found) {
        match self.going {
            Going::Tail(until) => {
                self.after.extend(&found.hits);
                self.tail = until;
            }
            Going::Head(until) => {
                self.before.extend(&found.hits);
                self.head = until;
            }
            Going::Idle | Going::Stopped => return,
        }
        self.going = Going::Idle;
        count(&mut self.types, &found.types);
        count(&mut self.actors, &found.actors);
    }

    /// Looks no further; tells whether it was looking.
    pub(super) fn stop(&mut self, total: u64) -> bool {
        let looking = self.is_looking(total);
        if looking {
            self.going = Going::Stopped;
        }
        looking
    }

    /// Looks further where it was stopped.
    pub(super) fn go_on(&mut self) {
        if self.going == Going::Stopped {
            self.going = Going::Idle;
        }
    }

    pub(super) fn is_looking(&self, total: u64) -> bool {
        self.going != Going::Stopped && (self.tail < total || self.head < self.origin)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.going == Going::Stopped
    }

    /// Events that were looked at.
    pub(super) fn seen(&self) -> u64 {
        (self.tail - self.origin) + self.head
    }

    /// How many were found.
    pub(super) fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }

    /// The sequence of a hit.
    pub(super) fn get(&self, at: usize) -> Option<u64> {
        let found = self.before.get(at);
        let found = found.or_else(|| self.after.get(at.checked_sub(self.before.len())?));
        found.map(|sequence| u64::from(*sequence))
    }

    /// How many hits lie before a sequence: the place of the first that does not.
    pub(super) fn rank(&self, sequence: u64) -> usize {
        let smaller = |hit: &u32| u64::from(*hit) < sequence;
        let before = self.before.partition_point(smaller);
        if before < self.before.len() {
            return before;
        }
        before + self.after.partition_point(smaller)
    }

    /// Whether an event is one of them.
    pub(super) fn has(&self, sequence: u64) -> bool {
        self.get(self.rank(sequence)) == Some(sequence)
    }

    /// The types and those who decided, most first.
    pub(super) fn facets(&self) -> (Counted<'_>, Counted<'_>) {
        (ranked(&self.types), ranked(&self.actors))
    }
}

/// Names, and how often each was found.
pub(super) type Counted<'s> = Vec<(&'s str, u64)>;

fn count(counts: &mut BTreeMap<String, u64>, more: &[(String, u64)]) {
    for (name, number) in more {
        let full = counts.len() >= MOST_FACETS && !counts.contains_key(name);
        let name = if full { "others" } else { name };
        *counts.entry(name.to_owned()).or_default() += number;
    }
}

fn ranked(counts: &BTreeMap<String, u64>) -> Counted<'_> {
    let mut ranked: Vec<_> = counts.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    ranked.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    ranked
}
