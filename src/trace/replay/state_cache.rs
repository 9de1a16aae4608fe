//! Cache of intermediate states, so that going back does not start from the first event.

use std::collections::BTreeMap;

use super::ReplayState;

/// Most cached states: enough for one in every few pages of a long session.
const MAX_KEPT: usize = 32;

/// States by the sequence after their last event.
#[derive(Debug, Default)]
pub struct StateCache {
    states: BTreeMap<u64, ReplayState>,
    /// Distance between two cached states; it doubles when the cache is full.
    stride: u64,
    /// State of the last query: the next query is probably close to it.
    last_query: Option<(u64, ReplayState)>,
}

impl StateCache {
    /// State at exactly this position, if cached.
    #[must_use]
    pub fn at(&self, wanted: u64) -> Option<&ReplayState> {
        let last_state = self.last_query.as_ref().filter(|(at, _)| *at == wanted);
        let last_state = last_state.map(|(_, state)| state);
        last_state.or_else(|| self.states.get(&wanted))
    }

    /// Latest cached state at or before `wanted`, and its position.
    #[must_use]
    pub fn nearest(&self, wanted: u64) -> (u64, ReplayState) {
        let cached = self.states.range(..=wanted).next_back();
        let cached = cached.map(|(at, state)| (*at, state));
        let last_state = self.last_query.as_ref().map(|(at, state)| (*at, state));
        let known = cached.into_iter().chain(last_state);
        let best = known
            .filter(|(at, _)| *at <= wanted)
            .max_by_key(|(at, _)| *at);
        best.map_or_else(Default::default, |(at, state)| (at, state.clone()))
    }

    /// Stores the state of the last query.
    pub fn set_last_query(&mut self, at: u64, state: &ReplayState) {
        self.last_query = Some((at, state.clone()));
    }

    /// Caches an intermediate state, if it is far enough from the others.
    pub fn insert(&mut self, at: u64, state: &ReplayState) {
        let last = self.states.last_key_value().map_or(0, |(last, _)| *last);
        if at < last.saturating_add(self.stride.max(1)) {
            return;
        }
        self.states.insert(at, state.clone());
        if self.states.len() > MAX_KEPT {
            let mut odd = false;
            self.states.retain(|_, _| {
                odd = !odd;
                odd
            });
            self.stride = self.spacing();
        }
    }

    /// Distance between the remaining states.
    fn spacing(&self) -> u64 {
        let last = self.states.last_key_value().map_or(0, |(last, _)| *last);
        last / (self.states.len().max(1) as u64)
    }
}
