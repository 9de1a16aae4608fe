//! End of the actor's work: finishes everything that is running. Also the end of recording, when the store
//! fails while nothing is written.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;

use super::super::acknowledgement::Acknowledgement;
use super::super::snapshot::RuntimeSnapshot;
use super::Actor;
use crate::base::clock::Timestamp;
use crate::base::limits::HEAD_FILE_TIMEOUT;
use crate::engine::command::Effect;
use crate::runtime::witness::HeadFileError;
use crate::store::{Batch, CommitError, StoreError};
use crate::trace::event::StoreRecovered;

/// Longest time for a store to check its files.
const FILE_CHECK_TIME: Duration = Duration::from_secs(1);

impl Actor {
    /// Returns the sender of snapshots, for the watchdog of the store.
    pub(in super::super) fn snapshot_sender(&self) -> watch::Sender<Arc<RuntimeSnapshot>> {
        self.snapshots.clone()
    }

    /// Stops recording, unless it has stopped already.
    pub(super) fn on_store_failure(&mut self, error: &StoreError) {
        if self.store_failure.is_none() {
            self.on_write_failure(error, Vec::new());
        }
    }

    /// Stops recording because the record is unreadable. The store may know the reason: its files are
    /// missing or damaged.
    pub(super) async fn on_unreadable_record(&mut self, what: String) {
        let files_checked = tokio::time::timeout(FILE_CHECK_TIME, async {
            self.store.append(Batch::default()).await?.await
        });
        let error = if let Ok(Err(error)) = files_checked.await {
            error
        } else {
            self.store.note_outage(&what);
            StoreError::Poisoned(CommitError::Record(what))
        };
        self.on_store_failure(&error);
    }

    /// Records that nothing could be recorded for some time.
    pub(super) fn record_stall(&mut self, lasted: Duration, what: &str) {
        if self.store_failure.is_some() {
            return;
        }
        let now = self.clock.now();
        let lasted_micros = i64::try_from(lasted.as_micros()).unwrap_or(i64::MAX);
        let since = Timestamp::from_micros(now.micros().saturating_sub(lasted_micros));
        let what = format!(
            "nothing could be recorded from {since} until {now}, {} seconds: {what}; new requests were denied",
            lasted.as_secs()
        );
        self.execute(vec![Effect::AppendToLog(
            StoreRecovered { what, by: None }.into(),
        )]);
    }

    /// Finishes running writes, and signs all records.
    pub(super) async fn drain(&mut self) {
        self.finish_writes().await;
        self.finish_notices().await;
        self.finish_writes().await;
        if self.store_failure.is_none() && self.ledger.due().is_some() {
            self.seal_all().await;
            self.finish_writes().await;
        }
        while self.sealing.is_reading() {
            let read_back = self.sealing.next().await;
            self.on_read_back(read_back).await;
            self.finish_writes().await;
        }
        if self.store_failure.is_none() {
            let batch = Batch {
                state: vec![Acknowledgement::running(self.acknowledge).stopped().row()],
                ..Batch::default()
            };
            self.write_without_reply(batch, None).await;
            self.finish_writes().await;
        }
        while self.copies.is_copying() {
            // A file system that does not respond must not keep the console from ending.
            let written = tokio::time::timeout(HEAD_FILE_TIMEOUT, self.copies.next_result()).await;
            let Ok(written) = written else {
                self.on_head_copied(Err(HeadFileError::Timeout));
                return;
            };
            self.on_head_copied(written);
        }
    }

    async fn finish_writes(&mut self) {
        self.flush().await;
        while let Some(written) = self.writes.next().await {
            self.on_written(written);
        }
    }
}
