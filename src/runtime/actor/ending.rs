//! The end of an actor's work: nothing under way is left behind. Also the end of recording, when the store
//! is found to have failed while nothing was written.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;

use super::super::acknowledgement::Acknowledgement;
use super::super::snapshot::Snapshot;
use super::Actor;
use crate::base::clock::Timestamp;
use crate::base::limits::HEAD_FILE_TIME;
use crate::engine::command::Effect;
use crate::store::{Batch, StoreError};
use crate::trace::event::StoreRecovered;

/// Longest time that a store may look at its files.
const LOOK_TIME: Duration = Duration::from_secs(1);

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

    /// Ends recording, because the record cannot be read. The store may know the reason: its files are gone or damaged.
    pub(super) async fn unreadable(&mut self, what: String) {
        let looked = tokio::time::timeout(LOOK_TIME, async {
            self.store.append(Batch::default()).await?.await
        });
        let error = if let Ok(Err(error)) = looked.await {
            error
        } else {
            self.store.note_outage(&what);
            StoreError::Poisoned { what }
        };
        self.store_failed(&error);
    }

    /// Puts on record that nothing could be recorded for a while.
    pub(super) fn stall_ended(&mut self, lasted: Duration, what: &str) {
        if self.poison.is_some() {
            return;
        }
        let now = self.clock.now();
        let lasted_micros = i64::try_from(lasted.as_micros()).unwrap_or(i64::MAX);
        let since = Timestamp::from_micros(now.micros().saturating_sub(lasted_micros));
        let what = format!(
            "nothing could be recorded from {since} until {now}, {} seconds: {what}; new requests were denied",
            lasted.as_secs()
        );
        self.carry_out(vec![Effect::Enter(
            StoreRecovered { what, by: None }.into(),
        )]);
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
