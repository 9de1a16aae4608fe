//! The end of an actor's work: nothing under way is left behind. Also the end of recording, when the store
//! is found to have failed while nothing was written.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio::sync::watch;

use super::super::acknowledgement::Acknowledgement;
use super::super::snapshot::Snapshot;
use super::Actor;
use crate::base::limits::HEAD_FILE_TIME;
use crate::store::{Batch, StoreError};

impl Actor {
    /// The way to the pictures, for the watch over the store.
    pub(in super::super) fn snapshot_sender(&self) -> watch::Sender<Arc<Snapshot>> {
        self.snapshots.clone()
    }

    /// Ends recording, unless it has ended.
    pub(super) fn store_failed(&mut self, error: &StoreError) {
        if self.poison.is_none() {
            self.poisoned(error, Vec::new());
        }
    }

    /// Finishes what is under way, and signs what there is.
    pub(super) async fn drain(&mut self) {
        self.finish_writes().await;
        self.finish_notices().await;
        self.finish_writes().await;
        if self.poison.is_none() && self.ledger.due().is_some() {
            self.seal_all().await;
            self.finish_writes().await;
        }
        while self.sealing.is_reading() {
            let read_back = self.sealing.next().await;
            self.read_back(read_back).await;
            self.finish_writes().await;
        }
        if self.poison.is_none() {
            let batch = Batch {
                state: vec![Acknowledgement::running(self.acknowledge).stopped().row()],
                ..Batch::default()
            };
            self.write_quietly(batch, None).await;
            self.finish_writes().await;
        }
        while self.copies.is_copying() {
            // A place that does not answer must not keep the console from ending.
            let kept = tokio::time::timeout(HEAD_FILE_TIME, self.copies.copied()).await;
            let Ok(kept) = kept else {
                self.head_kept(Err("it takes too long".to_owned()));
                return;
            };
            self.head_kept(kept);
        }
    }

    async fn finish_writes(&mut self) {
        self.flush().await;
        while let Some(written) = self.writes.next().await {
            self.written(written);
        }
    }
}
