//! Caches: bounded, short-lived, and never a reason to let an action run.
//!
//! A request is judged anew every time before it may run. Approvals and limits are not cached.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::atlas::index::KeywordMatches;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::limits::MAX_CACHED;

use crate::engine::Engine;
use crate::engine::extensions::consultation::PolicyAnswer;

/// All caches of the engine.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    /// Incremented whenever cached results may be outdated: by a lock, an unlock or an override.
    generation: u64,
    contexts: ExpiringMap<String, ()>,
    keywords: ExpiringMap<Digest, Arc<KeywordMatches>>,
    policies: ExpiringMap<Digest, PolicyAnswer>,
}

impl Caches {
    /// Invalidates all results of earlier generations.
    pub(crate) fn new_generation(&mut self) {
        self.generation += 1;
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.new_generation();
        self.contexts.entries.clear();
        self.keywords.entries.clear();
        self.policies.entries.clear();
    }

    /// Applies `adjust` to the expiry time of each entry.
    pub(crate) fn adjust_timestamps(&mut self, adjust: impl Fn(Timestamp) -> Timestamp) {
        let contexts = self.contexts.expiry_times();
        let untils = contexts.chain(self.keywords.expiry_times());
        for until in untils.chain(self.policies.expiry_times()) {
            *until = adjust(*until);
        }
    }

    /// Removes a context.
    pub(crate) fn forget_context(&mut self, id: &str) {
        let ending = format!("/{id}");
        self.contexts
            .entries
            .retain(|key, _| !key.ends_with(&ending));
    }

    /// Returns whether a context was injected into any session and is still valid.
    pub(crate) fn has_context(&self, key: &str, now: Timestamp) -> bool {
        // A context's text does not depend on what a session may do, so every generation shares it.
        let entry = self.contexts.entries.get(key);
        entry.is_some_and(|entry| entry.until > now)
    }

    pub(crate) fn keep_context(&mut self, key: String, until: Timestamp) {
        self.contexts.put(key, (), until, self.generation);
    }

    /// Returns the keywords found in an input.
    pub(crate) fn keywords(&self, input: Digest, now: Timestamp) -> Option<&Arc<KeywordMatches>> {
        self.keywords.get(&input, now, self.generation)
    }

    pub(crate) fn keep_keywords(
        &mut self,
        input: Digest,
        found: Arc<KeywordMatches>,
        until: Timestamp,
    ) {
        self.keywords.put(input, found, until, self.generation);
    }

    /// Returns the answer of the policies to a request.
    pub(crate) fn policy(&self, request: Digest, now: Timestamp) -> Option<&PolicyAnswer> {
        self.policies.get(&request, now, self.generation)
    }

    pub(crate) fn keep_policy(&mut self, request: Digest, said: PolicyAnswer, until: Timestamp) {
        self.policies.put(request, said, until, self.generation);
    }
}

impl Engine {
    /// Returns whether the keywords of an input are in the cache.
    pub(crate) fn has_cached_keywords(&self, text: &str, now: Timestamp) -> bool {
        let input = Digest::of(text);
        self.state.caches.keywords(input, now).is_some()
    }
}

/// A bounded map whose entries expire.
#[derive(Debug)]
struct ExpiringMap<K, V> {
    entries: BTreeMap<K, CacheEntry<V>>,
}

#[derive(Debug)]
struct CacheEntry<V> {
    value: V,
    until: Timestamp,
    generation: u64,
}

impl<K, V> Default for ExpiringMap<K, V> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
        }
    }
}

impl<K, V> ExpiringMap<K, V> {
    fn expiry_times(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        self.entries.values_mut().map(|entry| &mut entry.until)
    }
}

impl<K: Ord + Clone, V> ExpiringMap<K, V> {
    fn get(&self, key: &K, now: Timestamp, generation: u64) -> Option<&V> {
        let entry = self.entries.get(key)?;
        (entry.until > now && entry.generation == generation).then_some(&entry.value)
    }

    /// Stores a value. A full cache drops the entry that expires first.
    fn put(&mut self, key: K, value: V, until: Timestamp, generation: u64) {
        if self.entries.len() >= MAX_CACHED && !self.entries.contains_key(&key) {
            let first = self.entries.iter().min_by_key(|(_, entry)| entry.until);
            if let Some(first) = first.map(|(key, _)| key.clone()) {
                self.entries.remove(&first);
            }
        }
        self.entries.insert(
            key,
            CacheEntry {
                value,
                until,
                generation,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00.000000Z".parse().unwrap();
        start.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn cache_entries_expire_by_time_and_by_generation() {
        let mut cache = ExpiringMap::default();
        cache.put("a", 1, at(10), 0);
        assert_eq!(cache.get(&"a", at(9), 0), Some(&1));
        assert_eq!(cache.get(&"a", at(10), 0), None);
        assert_eq!(cache.get(&"a", at(9), 1), None);
    }

    #[test]
    fn a_full_cache_drops_the_entry_that_expires_first() {
        let mut cache = ExpiringMap::default();
        for index in 0..MAX_CACHED as u64 {
            cache.put(index, (), at(index + 10), 0);
        }
        cache.put(u64::MAX, (), at(1), 0);
        assert_eq!(cache.entries.len(), MAX_CACHED);
        assert_eq!(cache.get(&0, at(0), 0), None);
        assert_eq!(cache.get(&1, at(0), 0), Some(&()));
    }
}
