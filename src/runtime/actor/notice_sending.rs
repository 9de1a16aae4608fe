//! Notices to stewards: written with their record, and sent once it is on disk.

use super::super::notices::NoticeResult;
use super::Actor;
use crate::base::clock::Timestamp;
use crate::base::limits::NOTICE_SHUTDOWN_TIMEOUT;
use crate::engine::notice::StewardNotice;
use crate::store::Batch;
use crate::trace::event::Durability;

impl Actor {
    /// Adds a notice to the batch of its record.
    pub(super) fn add_notice(&mut self, notice: &StewardNotice, batch: &mut Batch) {
        let now = self.clock.now();
        let row = self.outbox.create_notice(notice, &batch.records, now);
        batch.state.extend(row);
    }

    /// Returns the time of the next notice. After a failed write none is sent.
    pub(super) fn notice_due(&self) -> Option<Timestamp> {
        self.outbox.due().filter(|_| self.store_failure.is_none())
    }

    /// Handles the result of sending a notice.
    pub(super) fn on_notice_result(&mut self, result: NoticeResult) {
        if self.store_failure.is_some() {
            return;
        }
        let Some(row) = self.outbox.handle_result(result, self.clock.now()) else {
            return;
        };
        self.changed = true;
        let batch = Batch {
            state: vec![row],
            ..Batch::default()
        };
        self.add_to_batch(batch, Vec::new(), Durability::Async);
    }

    /// Waits a short time for notices in flight, so that a steward does not learn of the day's last
    /// decision only the next day.
    pub(super) async fn finish_notices(&mut self) {
        if self.store_failure.is_some() {
            return;
        }
        self.outbox.send_due(self.clock.now());
        let all = async {
            while self.outbox.is_running() {
                let Some(result) = self.outbox.next_result().await else {
                    return;
                };
                self.on_notice_result(result);
                self.outbox.send_due(self.clock.now());
            }
        };
        // Slower notices are sent again after the next start.
        let _ = tokio::time::timeout(NOTICE_SHUTDOWN_TIMEOUT, all).await;
    }
}
