//! List of live sessions for the screen.

use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use super::SessionSummary;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;

/// Live sessions in the order of their start.
///
/// A clone shares everything with its original, and a change copies only the path to the changed session: a
/// snapshot of 20,000 sessions costs as little as one of ten.
#[derive(Clone, Debug, Default)]
pub struct SessionList(RedBlackTreeMapSync<(Timestamp, SessionId), Arc<SessionSummary>>);

impl SessionList {
    /// Returns the sessions in the order of their start.
    pub fn iter(&self) -> impl Iterator<Item = &SessionSummary> {
        self.0.values().map(AsRef::as_ref)
    }

    /// Returns the number of sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Returns true if no session is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the session that started first.
    #[must_use]
    pub fn first(&self) -> Option<&SessionSummary> {
        self.iter().next()
    }

    /// Returns the session at an index in the order of starts.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&SessionSummary> {
        self.iter().nth(index)
    }

    /// Adds or replaces a session.
    pub fn insert(&mut self, summary: SessionSummary) {
        let key = (summary.started_at, summary.id.clone());
        self.0.insert_mut(key, Arc::new(summary));
    }

    /// Removes a session.
    pub(in super::super) fn remove(&mut self, started_at: Timestamp, session: SessionId) {
        self.0.remove_mut(&(started_at, session));
    }
}

impl PartialEq for SessionList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for SessionList {}

impl FromIterator<SessionSummary> for SessionList {
    fn from_iter<I: IntoIterator<Item = SessionSummary>>(summaries: I) -> Self {
        let mut list = Self::default();
        for summary in summaries {
            list.insert(summary);
        }
        list
    }
}
