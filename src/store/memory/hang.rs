//! A hang of the disk: batches wait until it answers again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{oneshot, watch};

use super::super::writer::closed;
use super::super::{Ack, Batch, StoreError};

/// The hang of one opening of a store. Clones are the same hang.
#[derive(Clone, Debug, Default)]
pub(super) struct Hang {
    since: watch::Sender<Option<Instant>>,
    waiting: Arc<Mutex<Vec<Unwritten>>>,
}

/// A batch that was handed over while the disk hangs.
#[derive(Debug)]
struct Unwritten {
    batch: Batch,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl Hang {
    pub(super) fn begin(&self, since: Instant) {
        self.since.send_replace(Some(since));
    }

    /// Ends it, and writes what waits.
    pub(super) fn end(&self, write: impl Fn(&Batch) -> Result<(), StoreError>) {
        self.since.send_replace(None);
        for unwritten in std::mem::take(&mut *self.waiting()) {
            // An asker that no longer listens does not need to know.
            let _ = unwritten.done.send(write(&unwritten.batch));
        }
    }

    /// Loses what waits, as the process does that handed it over.
    pub(super) fn drop_waiting(&self) {
        self.since.send_replace(None);
        self.waiting().clear();
    }

    /// Completes when the disk answers.
    pub(super) async fn is_over(&self) {
        // The sender lives as long as `self`.
        let _ = self.since.subscribe().wait_for(Option::is_none).await;
    }

    /// Writes a batch: now, or when the disk answers.
    pub(super) fn write(
        &self,
        batch: Batch,
        write: impl FnOnce(&Batch) -> Result<(), StoreError>,
    ) -> Ack {
        if self.since.borrow().is_none() {
            let written = write(&batch);
            return Box::pin(async move { written });
        }
        let (done, written) = oneshot::channel();
        self.waiting().push(Unwritten { batch, done });
        Box::pin(async move { written.await.unwrap_or_else(|_| Err(closed())) })
    }

    /// Start of the write that does not end, if one is under way.
    pub(super) fn writing_since(&self) -> Option<Instant> {
        let since = *self.since.borrow();
        since.filter(|_| !self.waiting().is_empty())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Unwritten>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
