//! The record for those who listen: what is on disk, and when there is more of it.

use std::fmt;
use std::sync::Arc;

use super::Snapshots;
use crate::base::id::SessionId;
use crate::store::Store;
use crate::trace::event::Event;

/// The record, as it grows. It shows nothing that could still be lost, and can do nothing.
#[derive(Clone)]
pub struct Records {
    store: Arc<dyn Store>,
    snapshots: Snapshots,
}

impl Records {
    pub(super) fn new(store: Arc<dyn Store>, snapshots: Snapshots) -> Self {
        Self { store, snapshots }
    }

    /// Events of a session, from a sequence number on; waits until there are some.
    ///
    /// # Errors
    /// When the record cannot be read, in words; or the runtime has stopped.
    pub async fn next(
        &mut self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, String> {
        loop {
            // Before reading: what comes after that is news again.
            self.snapshots.mark_unchanged();
            let events = self.store.events(session.clone(), from, limit).await;
            let events = events.map_err(|error| error.to_string())?;
            if !events.is_empty() {
                return Ok(events);
            }
            let changed = self.snapshots.changed().await;
            changed.map_err(|_| "the console has stopped".to_owned())?;
        }
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}
