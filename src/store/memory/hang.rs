//! Simulated hang of the disk: batches wait until it responds again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{oneshot, watch};

use super::super::writer::closed_error;
use super::super::{Ack, Batch, StoreError};

/// Hang of one opening of a store. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct DiskHang {
    since: watch::Sender<Option<Instant>>,
    waiting: Arc<Mutex<Vec<QueuedBatch>>>,
}

/// A batch queued during the hang.
#[derive(Debug)]
struct QueuedBatch {
    batch: Batch,
    done: oneshot::Sender<Result<(), StoreError>>,
}

impl DiskHang {
    pub(super) fn begin(&self, since: Instant) {
        self.since.send_replace(Some(since));
    }

    /// Ends the hang and writes the waiting batches.
    pub(super) fn end(&self, write: impl Fn(&Batch) -> Result<(), StoreError>) {
        self.since.send_replace(None);
        for unwritten in std::mem::take(&mut *self.waiting()) {
            // A caller that no longer listens needs no result.
            let _ = unwritten.done.send(write(&unwritten.batch));
        }
    }

    /// Drops the waiting batches, as the death of the process would.
    pub(super) fn drop_waiting(&self) {
        self.since.send_replace(None);
        self.waiting().clear();
    }

    /// Completes when the disk responds.
    pub(super) async fn wait_until_over(&self) {
        // The sender lives as long as `self`.
        let _ = self.since.subscribe().wait_for(Option::is_none).await;
    }

    /// Writes a batch: now, or when the disk responds.
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
        self.waiting().push(QueuedBatch { batch, done });
        Box::pin(async move { written.await.unwrap_or_else(|_| Err(closed_error())) })
    }

    /// Start of the hanging write, if one is running.
    pub(super) fn writing_since(&self) -> Option<Instant> {
        let since = *self.since.borrow();
        since.filter(|_| !self.waiting().is_empty())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<QueuedBatch>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
