//! Stream of durable records, with notice of new ones.

use std::fmt;
use std::sync::Arc;

use super::SnapshotReceiver;
use crate::base::id::SessionId;
use crate::store::Store;
use crate::trace::event::Event;

/// Read-only access to the growing record. It shows only durable events.
#[derive(Clone)]
pub struct RecordStream {
    store: Arc<dyn Store>,
    snapshots: SnapshotReceiver,
}

impl RecordStream {
    pub(super) fn new(store: Arc<dyn Store>, snapshots: SnapshotReceiver) -> Self {
        Self { store, snapshots }
    }

    /// Returns events of a session from a sequence number on; waits until there are some.
    ///
    /// # Errors
    /// Fails with a message when the record cannot be read, or when the runtime has stopped.
    pub async fn next_events(
        &mut self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, String> {
        loop {
            // Marked before reading, so that later changes are noticed.
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

impl fmt::Debug for RecordStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}
