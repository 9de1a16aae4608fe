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
    kept: BTreeMap<String, StoredNotice>,
    lanes: BTreeMap<String, AddressQueue>,
    /// Notices that are created and not on disk yet.
    drafted: Vec<StoredNotice>,
    /// Number of notices that exceeded the limit.
    left_out: u64,
    /// Number of unreadable stored notices.
    unreadable: usize,
    last_error: Option<String>,
    state: Arc<NoticeSummary>,
    back: mpsc::Sender<NoticeResult>,
    came: mpsc::Receiver<NoticeResult>,
}

/// Queue of one address.
#[derive(Default)]
struct AddressQueue {
    /// Waiting notices by the time of their next attempt.
    waiting: BTreeSet<(Timestamp, String)>,
    under_way: Option<String>,
    /// Number of notices for this address, in any state.
    kept: usize,
}

impl NoticeOutbox {
    /// Loads stored notices. A notice that was given up is tried once more: the problem may have been
    /// solved before the restart.
    pub(in crate::runtime) fn new(webhooks: Webhooks, rows: &[StateRow], now: Timestamp) -> Self {
        // The channel has room for all running attempts, so sending a result never blocks.
        let (back, came) = mpsc::channel(MAX_NOTICES_IN_DELIVERY);
        let post = match &webhooks {
            Webhooks::On(secret) => Some(NoticeSender::new(secret.clone())),
            Webhooks::Off(_) => None,
        };
        let mut outbox = Self {
            webhooks,
            post,
            kept: BTreeMap::new(),
            lanes: BTreeMap::new(),
            drafted: Vec::new(),
            left_out: 0,
            unreadable: 0,
            last_error: None,
            state: Arc::default(),
            back,
            came,
        };
        for row in rows {
            match StoredNotice::read(row) {
                Ok(notice) => outbox.enter(notice, now),
                Err(error) => {
                    tracing::error!(key = row.key, error, "a notice cannot be read");
                    outbox.unreadable += 1;
                }
            }
        }
        outbox.changed();
        outbox
    }

    /// Returns the summary for the console.
    pub(in crate::runtime) fn state(&self) -> Arc<NoticeSummary> {
        Arc::clone(&self.state)
    }

    /// Creates a notice about one of `records`, to be written together with it.
    pub(in crate::runtime) fn draft(
        &mut self,
        notice: &StewardNotice,
        records: &[Record],
        now: Timestamp,
    ) -> Option<StateRow> {
        self.post.as_ref()?;
        let told = |record: &&Record| {
            let envelope = record.envelope();
            envelope.is_ok_and(|envelope| envelope.event_id == notice.event.as_str())
        };
        let Some(record) = records.iter().rev().find(told) else {
            tracing::error!(event = %notice.event, "a notice names a record that is not there");
            self.left_out += 1;
            self.changed();
            return None;
        };
        let there = self.lanes.get(&notice.address).map_or(0, |lane| lane.kept);
        let same = |kept: &&StoredNotice| kept.address == notice.address;
        if there + self.drafted.iter().filter(same).count() >= MAX_NOTICES_PER_ADDRESS {
            tracing::error!(notice.address, "a notice is not kept: too many wait for it");
            self.left_out += 1;
            self.changed();
            return None;
        }
        let kept = StoredNotice::of(notice, record, now);
        let row = kept.row();
        self.drafted.push(kept);
        Some(row)
    }

    /// Returns the notices that were created since the last call.
    pub(in crate::runtime) fn take_new_notices(&mut self) -> Vec<StoredNotice> {
        std::mem::take(&mut self.drafted)
    }

    /// Queues notices that are now on disk.
    pub(in crate::runtime) fn written(&mut self, notices: Vec<StoredNotice>, now: Timestamp) {
        if notices.is_empty() {
            return;
        }
        for notice in notices {
            self.enter(notice, now);
        }
        self.changed();
    }

    /// Returns the time of the next attempt, if there is one.
    pub(in crate::runtime) fn due(&self) -> Option<Timestamp> {
        self.post.as_ref()?;
        if self.under_way() >= MAX_NOTICES_IN_DELIVERY {
            return None;
        }
        let idle = self.lanes.values().filter(|lane| lane.under_way.is_none());
        let next = idle.filter_map(|lane| lane.waiting.first());
        next.map(|(at, _)| *at).min()
    }

    /// Adjusts the queues to a clock step: the remaining times stay equal.
    pub(in crate::runtime) fn clock_moved(&mut self, step: ClockStep) {
        for lane in self.lanes.values_mut() {
            let waiting = std::mem::take(&mut lane.waiting).into_iter();
            lane.waiting = waiting.map(|(at, id)| (step.apply(at), id)).collect();
        }
        for notice in self.kept.values_mut() {
            notice.clock_moved(step);
        }
    }

    /// Sends all due notices.
    pub(in crate::runtime) fn send(&mut self, now: Timestamp) {
        let Some(post) = &self.post else { return };
        let mut room = MAX_NOTICES_IN_DELIVERY.saturating_sub(self.under_way());
        for lane in self.lanes.values_mut() {
            if room == 0 {
                return;
            }
            let due = lane.waiting.first().is_some_and(|(at, _)| *at <= now);
            if lane.under_way.is_some() || !due {
                continue;
            }
            let next = lane.waiting.pop_first();
            let next = next.and_then(|(_, id)| self.kept.get(&id).cloned());
            let Some(notice) = next else { continue };
            lane.under_way = Some(notice.id.clone());
            room -= 1;
            let (post, back) = (post.clone(), self.back.clone());
            let started = thread::Builder::new()
                .name("notice".to_owned())
                .spawn(move || {
                    let came = post.send(&notice, now);
                    // If the runtime has stopped, the notice is sent again after the next start.
                    let _ = back.try_send((notice.id, came));
                });
            if let Err(error) = started {
                let id = lane.under_way.clone().unwrap_or_default();
                let _ = self
                    .back
                    .try_send((id, SendResult::Failed(error.to_string())));
            }
        }
    }

    /// Returns true if an attempt is running.
    pub(in crate::runtime) fn is_running(&self) -> bool {
        self.under_way() > 0
    }

    /// Waits for the result of a running attempt.
    pub(in crate::runtime) async fn next(&mut self) -> Option<NoticeResult> {
        self.came.recv().await
    }

    /// Handles the result of an attempt. Returns the row to store.
    pub(in crate::runtime) fn note(
        &mut self,
        (id, sent): NoticeResult,
        now: Timestamp,
    ) -> Option<StateRow> {
        let kept = self.kept.get_mut(&id)?;
        let lane = self.lanes.get_mut(&kept.address)?;
        lane.under_way = None;
        let failure = match sent {
            SendResult::Delivered => None,
            SendResult::Failed(what) => Some((what, RetryDecision::Again)),
            SendResult::Gone => Some((
                "it wants no more (status 410)".to_owned(),
                RetryDecision::Never,
            )),
        };
        let row = match failure {
            None => {
                let row = kept.no_row();
                lane.kept = lane.kept.saturating_sub(1);
                self.kept.remove(&id);
                row
            }
            Some((what, then)) => {
                kept.note_failure(&what, then, now);
                match kept.state {
                    DeliveryState::Waiting { next_at } => drop(lane.waiting.insert((next_at, id))),
                    DeliveryState::Failed { .. } => {
                        tracing::error!(id, kept.address, what, "a notice is given up");
                    }
                }
                self.last_error = Some(what);
                kept.row()
            }
        };
        self.changed();
        Some(row)
    }

    fn under_way(&self) -> usize {
        let lanes = self.lanes.values();
        lanes.filter(|lane| lane.under_way.is_some()).count()
    }

    fn enter(&mut self, notice: StoredNotice, now: Timestamp) {
        if self.kept.contains_key(&notice.id) {
            return;
        }
        let at = match notice.state {
            DeliveryState::Waiting { next_at } => next_at,
            DeliveryState::Failed { .. } => now,
        };
        if self.last_error.is_none() {
            self.last_error.clone_from(&notice.error);
        }
        let lane = self.lanes.entry(notice.address.clone()).or_default();
        lane.kept += 1;
        lane.waiting.insert((at, notice.id.clone()));
        self.kept.insert(notice.id.clone(), notice);
    }

    /// Rebuilds the summary. Called only when notices change, not for every snapshot.
    fn changed(&mut self) {
        let mut by_atlas: BTreeMap<String, AtlasNoticeSummary> = BTreeMap::new();
        for notice in self.kept.values() {
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
            left_out: self.left_out,
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
            let row = outbox.draft(&dead, &records, now);
            assert_eq!(row.is_some(), number < MAX_NOTICES_PER_ADDRESS, "{number}");
            if number % 2 == 0 {
                let drafted = outbox.take_new_notices();
                outbox.written(drafted, now);
            }
        }
        assert_eq!(outbox.state().left_out, 2);
        assert_eq!(outbox.state().unheard(), 2);
        let (alive, records) = notice("https://alive.example/");
        assert!(outbox.draft(&alive, &records, now).is_some());
    }

    #[test]
    fn a_clock_step_moves_the_next_attempt_and_keeps_the_remaining_time() {
        let now = Timestamp::from_micros(3_600_000_000);
        let source = SecretSource::Folder("/nonexistent".into());
        let mut outbox = NoticeOutbox::new(Webhooks::On(source), &[], now);
        let (notice, records) = notice("https://alive.example/");
        outbox.draft(&notice, &records, now).unwrap();
        let drafted = outbox.take_new_notices();
        outbox.written(drafted, now);
        let due = outbox.due().unwrap();
        let step = ClockStep::from_micros(-600_000_000);
        outbox.clock_moved(step);
        assert_eq!(outbox.due(), Some(step.apply(due)));
        let kept = outbox.kept.values().next().unwrap();
        assert_eq!(kept.since, step.apply(now));
        assert_eq!(
            kept.state,
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
        assert_eq!(outbox.draft(&notice, &[], now), None);
        assert_eq!(outbox.state().unheard(), 1);
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
