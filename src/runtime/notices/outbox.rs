//! Undelivered notices, and their delivery.
//!
//! Contract: only notices on disk are sent. Each address gets one notice at a time, so that a slow address
//! delays only itself. Nothing waits for delivery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;

use super::notice_sender::NoticeSender;
use super::stored_notice::{DeliveryState, RetryDecision, SendResult, StoredNotice};
use super::{AtlasNoticeSummary, NoticeSummary, Webhooks};
use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::limits::{MAX_NOTICES_IN_DELIVERY, MAX_NOTICES_PER_ADDRESS};
use crate::engine::notice::StewardNotice;
use crate::store::StateRow;
use crate::trace::record::Record;

/// Result of a running attempt, with the notice's identifier.
pub(in crate::runtime) type NoticeResult = (String, SendResult);

/// Undelivered notices.
pub(in crate::runtime) struct NoticeOutbox {
    webhooks: Webhooks,
    post: Option<NoticeSender>,
    notices: BTreeMap<String, StoredNotice>,
    queues: BTreeMap<String, AddressQueue>,
    /// Notices that are created and not on disk yet.
    new_notices: Vec<StoredNotice>,
    /// Number of notices that exceeded the limit.
    over_limit: u64,
    /// Number of unreadable stored notices.
    unreadable: usize,
    last_error: Option<String>,
    state: Arc<NoticeSummary>,
    result_sender: mpsc::Sender<NoticeResult>,
    results: mpsc::Receiver<NoticeResult>,
}

/// Queue of one address.
#[derive(Default)]
struct AddressQueue {
    /// Waiting notices by the time of their next attempt.
    waiting: BTreeSet<(Timestamp, String)>,
    running: Option<String>,
    /// Number of notices for this address, in any state.
    count: usize,
}

impl NoticeOutbox {
    /// Loads stored notices. A notice that was given up is tried once more: the problem may have been
    /// solved before the restart.
    pub(in crate::runtime) fn new(webhooks: Webhooks, rows: &[StateRow], now: Timestamp) -> Self {
        // The channel has room for all running attempts, so sending a result never blocks.
        let (back, results) = mpsc::channel(MAX_NOTICES_IN_DELIVERY);
        let post = match &webhooks {
            Webhooks::On(secret) => Some(NoticeSender::new(secret.clone())),
            Webhooks::Off(_) => None,
        };
        let mut outbox = Self {
            webhooks,
            post,
            notices: BTreeMap::new(),
            queues: BTreeMap::new(),
            new_notices: Vec::new(),
            over_limit: 0,
            unreadable: 0,
            last_error: None,
            state: Arc::default(),
            result_sender: back,
            results,
        };
        for row in rows {
            match StoredNotice::read(row) {
                Ok(notice) => outbox.enqueue(notice, now),
                Err(error) => {
                    tracing::error!(key = row.key, error, "a notice cannot be read");
                    outbox.unreadable += 1;
                }
            }
        }
        outbox.update_summary();
        outbox
    }

    /// Returns the summary for the console.
    pub(in crate::runtime) fn state(&self) -> Arc<NoticeSummary> {
        Arc::clone(&self.state)
    }

    /// Creates a notice about one of `records`, to be written together with it.
    pub(in crate::runtime) fn create_notice(
        &mut self,
        notice: &StewardNotice,
        records: &[Record],
        now: Timestamp,
    ) -> Option<StateRow> {
        self.post.as_ref()?;
        let is_cause = |record: &&Record| {
            let envelope = record.envelope();
            envelope.is_ok_and(|envelope| envelope.event_id == notice.event.as_str())
        };
        let Some(record) = records.iter().rev().find(is_cause) else {
            tracing::error!(event = %notice.event, "the record of a notice is missing");
            self.over_limit += 1;
            self.update_summary();
            return None;
        };
        let there = self
            .queues
            .get(&notice.address)
            .map_or(0, |lane| lane.count);
        let same = |stored: &&StoredNotice| stored.address == notice.address;
        if there + self.new_notices.iter().filter(same).count() >= MAX_NOTICES_PER_ADDRESS {
            tracing::error!(
                notice.address,
                "a notice was dropped: too many are waiting for this address"
            );
            self.over_limit += 1;
            self.update_summary();
            return None;
        }
        let stored = StoredNotice::new(notice, record, now);
        let row = stored.row();
        self.new_notices.push(stored);
        Some(row)
    }

    /// Returns the notices that were created since the last call.
    pub(in crate::runtime) fn take_new_notices(&mut self) -> Vec<StoredNotice> {
        std::mem::take(&mut self.new_notices)
    }

    /// Queues notices that are now on disk.
    pub(in crate::runtime) fn on_durable(&mut self, notices: Vec<StoredNotice>, now: Timestamp) {
        if notices.is_empty() {
            return;
        }
        for notice in notices {
            self.enqueue(notice, now);
        }
        self.update_summary();
    }

    /// Returns the time of the next attempt, if there is one.
    pub(in crate::runtime) fn due(&self) -> Option<Timestamp> {
        self.post.as_ref()?;
        if self.running_count() >= MAX_NOTICES_IN_DELIVERY {
            return None;
        }
        let idle = self.queues.values().filter(|lane| lane.running.is_none());
        let next = idle.filter_map(|lane| lane.waiting.first());
        next.map(|(at, _)| *at).min()
    }

    /// Adjusts the queues to a clock step: the remaining times stay equal.
    pub(in crate::runtime) fn clock_moved(&mut self, step: ClockStep) {
        for lane in self.queues.values_mut() {
            let waiting = std::mem::take(&mut lane.waiting).into_iter();
            lane.waiting = waiting.map(|(at, id)| (step.apply(at), id)).collect();
        }
        for notice in self.notices.values_mut() {
            notice.clock_moved(step);
        }
    }

    /// Sends all due notices.
    pub(in crate::runtime) fn send_due(&mut self, now: Timestamp) {
        let Some(post) = &self.post else { return };
        let mut room = MAX_NOTICES_IN_DELIVERY.saturating_sub(self.running_count());
        for lane in self.queues.values_mut() {
            if room == 0 {
                return;
            }
            let due = lane.waiting.first().is_some_and(|(at, _)| *at <= now);
            if lane.running.is_some() || !due {
                continue;
            }
            let next = lane.waiting.pop_first();
            let next = next.and_then(|(_, id)| self.notices.get(&id).cloned());
            let Some(notice) = next else { continue };
            lane.running = Some(notice.id.clone());
            room -= 1;
            let (post, back) = (post.clone(), self.result_sender.clone());
            let started = thread::Builder::new()
                .name("notice".to_owned())
                .spawn(move || {
                    let result = post.send(&notice, now);
                    // If the runtime has stopped, the notice is sent again after the next start.
                    let _ = back.try_send((notice.id, result));
                });
            if let Err(error) = started {
                let id = lane.running.clone().unwrap_or_default();
                let _ = self
                    .result_sender
                    .try_send((id, SendResult::Failed(error.to_string())));
            }
        }
    }

    /// Returns true if an attempt is running.
    pub(in crate::runtime) fn is_running(&self) -> bool {
        self.running_count() > 0
    }

    /// Waits for the result of a running attempt.
    pub(in crate::runtime) async fn next_result(&mut self) -> Option<NoticeResult> {
        self.results.recv().await
    }

    /// Handles the result of an attempt. Returns the row to store.
    pub(in crate::runtime) fn handle_result(
        &mut self,
        (id, sent): NoticeResult,
        now: Timestamp,
    ) -> Option<StateRow> {
        let stored = self.notices.get_mut(&id)?;
        let lane = self.queues.get_mut(&stored.address)?;
        lane.running = None;
        let failure = match sent {
            SendResult::Delivered => None,
            SendResult::Failed(what) => Some((what, RetryDecision::Retry)),
            SendResult::Unsubscribed => Some((
                "the receiver unsubscribed (status 410)".to_owned(),
                RetryDecision::GiveUp,
            )),
        };
        let row = match failure {
            None => {
                let row = stored.no_row();
                lane.count = lane.count.saturating_sub(1);
                self.notices.remove(&id);
                row
            }
            Some((what, then)) => {
                stored.note_failure(&what, then, now);
                match stored.state {
                    DeliveryState::Waiting { next_at } => drop(lane.waiting.insert((next_at, id))),
                    DeliveryState::Failed { .. } => {
                        tracing::error!(id, stored.address, what, "a notice was given up");
                    }
                }
                self.last_error = Some(what);
                stored.row()
            }
        };
        self.update_summary();
        Some(row)
    }

    fn running_count(&self) -> usize {
        let lanes = self.queues.values();
        lanes.filter(|lane| lane.running.is_some()).count()
    }

    fn enqueue(&mut self, notice: StoredNotice, now: Timestamp) {
        if self.notices.contains_key(&notice.id) {
            return;
        }
        let at = match notice.state {
            DeliveryState::Waiting { next_at } => next_at,
            DeliveryState::Failed { .. } => now,
        };
        if self.last_error.is_none() {
            self.last_error.clone_from(&notice.error);
        }
        let lane = self.queues.entry(notice.address.clone()).or_default();
        lane.count += 1;
        lane.waiting.insert((at, notice.id.clone()));
        self.notices.insert(notice.id.clone(), notice);
    }

    /// Rebuilds the summary. Called only when notices change, not for every snapshot.
    fn update_summary(&mut self) {
        let mut by_atlas: BTreeMap<String, AtlasNoticeSummary> = BTreeMap::new();
        for notice in self.notices.values() {
            let own = by_atlas.entry(notice.atlas_id.clone()).or_default();
            if notice.is_failed() {
                own.failed += 1;
                own.error.clone_from(&notice.error);
            } else {
                own.waiting += 1;
                if own.error.is_none() {
                    own.error.clone_from(&notice.error);
                }
            }
        }
        let all = by_atlas.values();
        let (waiting, failed) = all.fold((0, self.unreadable), |(waiting, failed), own| {
            (waiting + own.waiting, failed + own.failed)
        });
        let error = self.last_error.clone();
        self.state = Arc::new(NoticeSummary {
            off: match &self.webhooks {
                Webhooks::On(_) => None,
                Webhooks::Off(why) => Some(*why),
            },
            waiting,
            failed,
            over_limit: self.over_limit,
            error: error.filter(|_| waiting + failed > 0),
            by_atlas,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::document::{NoticeTrigger, RiskTier};
    use crate::runtime::notices::SecretSource;
    use crate::trace::chain::Chain;
    use crate::trace::event::{Draft, Durability, LogSealed};

    fn notice(address: &str) -> (StewardNotice, Vec<Record>) {
        let draft = Draft {
            session_id: "s-1".parse().unwrap(),
            event_id: uuid::Uuid::from_u128(1).into(),
            trace_id: uuid::Uuid::from_u128(2).into(),
            span_id: uuid::Uuid::from_u128(3).into(),
            parent_span_id: None,
            timestamp: Timestamp::from_micros(0),
            payload: LogSealed {
                sessions: Vec::new(),
                state_sealed: None,
                by: None,
            }
            .into(),
            durability: Durability::Sync,
        };
        let record = Chain::new(draft.session_id.clone()).seal(&draft);
        let notice = StewardNotice {
            trigger: NoticeTrigger::HighRiskAction,
            address: address.to_owned(),
            atlas_id: "own".to_owned(),
            atlas_version: "1".to_owned(),
            session: "s-1".parse().unwrap(),
            agent: "bot".to_owned(),
            action: "cut".to_owned(),
            risk: RiskTier::High,
            passed: Vec::new(),
            approver: None,
            gate: None,
            event: draft.event_id,
        };
        (notice, vec![record])
    }

    // covers B16
    #[test]
    fn an_unreachable_address_fills_only_its_own_queue_and_the_loss_is_counted() {
        let now = Timestamp::from_micros(0);
        let source = SecretSource::Folder("/nonexistent".into());
        let mut outbox = NoticeOutbox::new(Webhooks::On(source), &[], now);
        let (mut dead, records) = notice("https://dead.example/");
        for number in 0..MAX_NOTICES_PER_ADDRESS + 2 {
            dead.atlas_id = format!("own-{number}");
            let row = outbox.create_notice(&dead, &records, now);
            assert_eq!(row.is_some(), number < MAX_NOTICES_PER_ADDRESS, "{number}");
            if number % 2 == 0 {
                let drafted = outbox.take_new_notices();
                outbox.on_durable(drafted, now);
            }
        }
        assert_eq!(outbox.state().over_limit, 2);
        assert_eq!(outbox.state().undelivered_count(), 2);
        let (alive, records) = notice("https://alive.example/");
        assert!(outbox.create_notice(&alive, &records, now).is_some());
    }

    #[test]
    fn a_clock_step_moves_the_next_attempt_and_keeps_the_remaining_time() {
        let now = Timestamp::from_micros(3_600_000_000);
        let source = SecretSource::Folder("/nonexistent".into());
        let mut outbox = NoticeOutbox::new(Webhooks::On(source), &[], now);
        let (notice, records) = notice("https://alive.example/");
        outbox.create_notice(&notice, &records, now).unwrap();
        let drafted = outbox.take_new_notices();
        outbox.on_durable(drafted, now);
        let due = outbox.due().unwrap();
        let step = ClockStep::from_micros(-600_000_000);
        outbox.clock_moved(step);
        assert_eq!(outbox.due(), Some(step.apply(due)));
        let stored = outbox.notices.values().next().unwrap();
        assert_eq!(stored.since, step.apply(now));
        assert_eq!(
            stored.state,
            DeliveryState::Waiting {
                next_at: step.apply(due)
            }
        );
    }

    #[test]
    fn a_notice_without_its_record_is_not_created_and_is_counted() {
        let now = Timestamp::from_micros(0);
        let source = SecretSource::Folder("/nonexistent".into());
        let mut outbox = NoticeOutbox::new(Webhooks::On(source), &[], now);
        let (notice, _) = notice("https://alive.example/");
        assert_eq!(outbox.create_notice(&notice, &[], now), None);
        assert_eq!(outbox.state().undelivered_count(), 1);
    }

    #[test]
    fn an_unreadable_notice_counts_as_failed_and_stays() {
        let row = StateRow {
            kind: "notice".to_owned(),
            key: "msg_1".to_owned(),
            body: Some("{}".to_owned()),
        };
        let source = SecretSource::Folder("/nonexistent".into());
        let now = Timestamp::from_micros(0);
        let outbox = NoticeOutbox::new(Webhooks::On(source), &[row], now);
        assert_eq!((outbox.state().failed, outbox.due()), (1, None));
    }
}
