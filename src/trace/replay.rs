//! Replay: reads a session step by step, forward and back, with the state at each step.
//!
//! Contract: a replay keeps one window of events and a few states in memory, regardless of the
//! session's length. Showing the event at a sequence reads only that window. The state there depends on
//! every event before it, so computing it takes a pass over them from the nearest kept state; stepping
//! on from there only applies the events in between.

use crate::base::id::SessionId;
use crate::base::pattern::Patterns;

use super::event::{Event, canonical_type};
use super::source::{EventSource, PAGE};
use super::verification::ChainVerification;

mod fold;
pub mod state;
mod state_cache;
mod stop_condition;
#[cfg(test)]
pub(crate) mod tests;
mod turn;

pub use state::{HoldScope, ReplayState};
pub use state_cache::StateCache;
pub use stop_condition::{StopCondition, StopConditionError};

/// Replay of one session.
#[derive(Debug)]
pub struct Replay<S> {
    source: S,
    session: SessionId,
    end: u64,
    types: Option<Patterns>,
    window: Vec<Event>,
    /// Sequence of the current event; `None` before the first event.
    at: Option<u64>,
    kept: StateCache,
}

impl<S: EventSource> Replay<S> {
    /// Loads a session. Events recorded later are not part of it. Returns `None` if it has no event.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn load(source: S, session: SessionId) -> Result<Option<Self>, S::Error> {
        let end = source.end(&session)?;
        Ok((end > 0).then(|| Self {
            source,
            session,
            end,
            types: None,
            window: Vec::new(),
            at: None,
            kept: StateCache::default(),
        }))
    }

    /// Result of verifying the session's chain.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn verify(&self) -> Result<Option<ChainVerification>, S::Error> {
        self.source.verify(&self.session)
    }

    /// Limits steps to events whose type matches one of these patterns. The state still follows from all
    /// events.
    #[must_use]
    pub fn filter(mut self, types: Patterns) -> Self {
        self.types = (!types.is_empty()).then_some(types);
        self
    }

    /// The replayed session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Sequence after the last event.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Sequence of the current event; `None` before the first event.
    #[must_use]
    pub fn at(&self) -> Option<u64> {
        self.at
    }

    /// Moves to the next event. At the end it stays there and returns `None`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn forward(&mut self) -> Result<Option<&Event>, S::Error> {
        self.next_where(|_| true)
    }

    /// Moves to the previous event. At the first event it stays there and returns `None`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn back(&mut self) -> Result<Option<&Event>, S::Error> {
        let mut before = self.at.unwrap_or(0);
        // The loaded window is searched first: it holds every event between its ends.
        let (first, last) = self.ends();
        if first < before && before <= last.saturating_add(1) {
            if let Some(found) = self.last_between(first, before)? {
                self.at = Some(found);
                return self.move_to(found);
            }
            before = first;
        }
        let mut reach = PAGE as u64;
        while before > 0 {
            let from = before.saturating_sub(reach);
            if let Some(found) = self.last_between(from, before)? {
                self.at = Some(found);
                return self.move_to(found);
            }
            before = from;
            // Gaps in the numbers are crossed in doubling strides.
            reach = reach.saturating_mul(2);
        }
        Ok(None)
    }

    /// Moves to the event with this sequence, or to the first later event that the filter accepts. Beyond
    /// the last event it stays and returns `None`.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn seek(&mut self, sequence: u64) -> Result<Option<&Event>, S::Error> {
        self.find_from(sequence, |_| true)
    }

    /// Calls `callback` for every event from here on.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn step(&mut self, mut callback: impl FnMut(&Event)) -> Result<(), S::Error> {
        while let Some(event) = self.forward()? {
            callback(event);
        }
        Ok(())
    }

    /// Moves to the next event that matches `stop`. Without a match it stays.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn run_to(&mut self, stop: &StopCondition) -> Result<Option<&Event>, S::Error> {
        self.next_where(|event| stop.stops_at(event))
    }

    /// State after the current event.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn state(&mut self) -> Result<ReplayState, S::Error> {
        let wanted = self.at.map_or(0, |at| at.saturating_add(1));
        self.state_before(wanted)
    }

    /// State after the event with this sequence; the current position does not matter.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn state_at(&mut self, sequence: u64) -> Result<ReplayState, S::Error> {
        self.state_before(sequence.saturating_add(1))
    }

    fn state_before(&mut self, wanted: u64) -> Result<ReplayState, S::Error> {
        let wanted = wanted.min(self.end);
        let (mut from, mut state) = self.kept.nearest(wanted);
        while from < wanted {
            let page = self.source.events(&self.session, from, PAGE)?;
            let Some(last) = page.last() else { break };
            let next = last.sequence.saturating_add(1);
            for event in page.iter().filter(|event| event.sequence < wanted) {
                state.apply(event);
            }
            if next <= from || next >= wanted {
                break;
            }
            from = next;
            self.kept.insert(from, &state);
        }
        self.kept.set_last_query(wanted, &state);
        Ok(state)
    }

    fn next_where(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<Option<&Event>, S::Error> {
        let from = match self.at {
            None => 0,
            Some(at) => match at.checked_add(1) {
                Some(next) => next,
                None => return Ok(None),
            },
        };
        self.find_from(from, wanted)
    }

    fn find_from(
        &mut self,
        mut from: u64,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Option<&Event>, S::Error> {
        while from < self.end {
            self.load_window(from)?;
            let (end, types) = (self.end, self.types.as_ref());
            let lets = |event: &&Event| {
                event.sequence >= from && event.sequence < end && is_accepted(types, event)
            };
            let mut found = self.window.iter().filter(lets);
            if let Some(sequence) = found
                .find(|event| wanted(event))
                .map(|event| event.sequence)
            {
                self.at = Some(sequence);
                return self.move_to(sequence);
            }
            match self
                .window
                .last()
                .and_then(|last| last.sequence.checked_add(1))
            {
                Some(next) if next > from => from = next,
                Some(_) | None => break,
            }
        }
        Ok(None)
    }

    /// Last event accepted by the filter with a sequence from `from` on and before `before`.
    fn last_between(&mut self, mut from: u64, before: u64) -> Result<Option<u64>, S::Error> {
        let mut found = None;
        while from < before {
            self.load_window(from)?;
            let types = self.types.as_ref();
            let mut inside = self.window.iter().filter(|event| {
                event.sequence >= from && event.sequence < before && is_accepted(types, event)
            });
            found = inside.next_back().map(|event| event.sequence).or(found);
            match self
                .window
                .last()
                .and_then(|last| last.sequence.checked_add(1))
            {
                Some(next) if next > from => from = next,
                Some(_) | None => break,
            }
        }
        Ok(found)
    }

    /// Loads a window that begins at or before the first event from `from` on.
    fn load_window(&mut self, from: u64) -> Result<(), S::Error> {
        let (first, last) = self.ends();
        if self.window.is_empty() || from < first || from > last {
            self.window = self.source.events(&self.session, from, PAGE)?;
        }
        Ok(())
    }

    /// First and last sequence of the window.
    fn ends(&self) -> (u64, u64) {
        let sequence = |event: Option<&Event>| event.map_or(0, |event| event.sequence);
        (sequence(self.window.first()), sequence(self.window.last()))
    }

    fn move_to(&mut self, sequence: u64) -> Result<Option<&Event>, S::Error> {
        self.load_window(sequence)?;
        let mut window = self.window.iter();
        Ok(window.find(|event| event.sequence == sequence))
    }
}

fn is_accepted(types: Option<&Patterns>, event: &Event) -> bool {
    types.is_none_or(|types| {
        types.matches(&event.event_type) || types.matches(canonical_type(&event.event_type))
    })
}
