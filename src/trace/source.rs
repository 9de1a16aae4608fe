//! Sources of events: a store, a file, or memory. The `trace` module reads none of them itself.

use crate::base::id::SessionId;

use super::event::Event;
use super::verification::{ChainVerification, ImportEntry};

/// Events per read, so that memory use stays constant.
pub const PAGE: usize = 1000;

/// A record that can be read from any position.
pub trait EventSource {
    /// Error of a failed read.
    type Error;

    /// Events of a session in the order of their sequence, starting at a sequence number.
    ///
    /// # Errors
    /// When they cannot be read.
    fn events(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Self::Error>;

    /// Sequence after the last event of a session; 0 if it has none.
    ///
    /// # Errors
    /// When it cannot be read.
    fn end(&self, session: &SessionId) -> Result<u64, Self::Error>;

    /// Verifies the chain of a session; `None` if it has no event.
    ///
    /// # Errors
    /// When it cannot be read. A fault in the record is a verdict, not an error.
    fn verify(&self, session: &SessionId) -> Result<Option<ChainVerification>, Self::Error>;

    /// Imports that brought a session, or parts of it, into the record; none of a session that was recorded here.
    ///
    /// # Errors
    /// When that cannot be read.
    fn imports(&self, session: &SessionId) -> Result<Vec<ImportEntry>, Self::Error> {
        let checked = self.verify(session)?;
        Ok(checked.map(|checked| checked.imports).unwrap_or_default())
    }
}

impl<S: EventSource + ?Sized> EventSource for &S {
    type Error = S::Error;

    fn events(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Self::Error> {
        (**self).events(session, from, limit)
    }

    fn end(&self, session: &SessionId) -> Result<u64, Self::Error> {
        (**self).end(session)
    }

    fn verify(&self, session: &SessionId) -> Result<Option<ChainVerification>, Self::Error> {
        (**self).verify(session)
    }

    fn imports(&self, session: &SessionId) -> Result<Vec<ImportEntry>, Self::Error> {
        (**self).imports(session)
    }
}

/// Passes the events of a session with a sequence of at least `from` and below `end` to `take`, until
/// it fails.
///
/// # Errors
/// The error of the failed read or of `take`.
pub fn for_each_event<S, E>(
    source: &S,
    session: &SessionId,
    (mut from, end): (u64, u64),
    mut take: impl FnMut(Event) -> Result<(), E>,
) -> Result<(), E>
where
    S: EventSource + ?Sized,
    E: From<S::Error>,
{
    while from < end {
        let page = source.events(session, from, PAGE)?;
        let Some(last) = page.last() else { break };
        // A source that does not advance would be read forever.
        let Some(next) = last.sequence.checked_add(1).filter(|next| *next > from) else {
            let mut rest = page.into_iter().filter(|event| event.sequence < end);
            return rest.try_for_each(take);
        };
        from = next;
        for event in page {
            if event.sequence >= end {
                return Ok(());
            }
            take(event)?;
        }
    }
    Ok(())
}

/// Events in memory, already read completely.
#[derive(Clone, Debug, Default)]
pub struct MemorySource {
    events: Vec<Event>,
    checked: Vec<ChainVerification>,
}

impl MemorySource {
    /// Creates a source of these events, of any sessions.
    #[must_use]
    pub fn new(mut events: Vec<Event>) -> Self {
        events.sort_by_key(|event| event.sequence);
        Self {
            events,
            checked: Vec::new(),
        }
    }

    /// Adds the verification results of their chains.
    #[must_use]
    pub fn with_verification(mut self, checked: Vec<ChainVerification>) -> Self {
        self.checked = checked;
        self
    }

    fn events_of<'e>(&'e self, session: &'e SessionId) -> impl Iterator<Item = &'e Event> {
        let events = self.events.iter();
        events.filter(move |event| event.session_id == *session)
    }
}

impl EventSource for MemorySource {
    type Error = std::convert::Infallible;

    fn events(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Self::Error> {
        let events = self
            .events_of(session)
            .filter(|event| event.sequence >= from);
        Ok(events.take(limit).cloned().collect())
    }

    fn end(&self, session: &SessionId) -> Result<u64, Self::Error> {
        let last = self.events_of(session).map(|event| event.sequence).max();
        Ok(last.map_or(0, |last| last.saturating_add(1)))
    }

    fn verify(&self, session: &SessionId) -> Result<Option<ChainVerification>, Self::Error> {
        let mut checked = self.checked.iter();
        Ok(checked.find(|one| one.session == *session).cloned())
    }
}
