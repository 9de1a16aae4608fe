//! A notice, stored until it is delivered.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::canonical_json::canonical;
use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::digest::Digest;
use crate::base::json;
use crate::base::limits::{NOTICE_RETRY_PAUSES, NOTICE_RETRY_PERIOD};
use crate::engine::notice::StewardNotice;
use crate::store::StateRow;
use crate::trace::record::Record;

/// State kind of a notice.
pub(in crate::runtime) const NOTICE_KIND: &str = "notice";

/// Digits of the digest in a notice's identifier: enough to be unique.
const ID_DIGITS: usize = 32;

/// A pause is extended by at most this fraction, so that notices that failed together are not all retried
/// at once.
const PAUSE_SPREAD: u32 = 10;

/// A notice that is not delivered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredNotice {
    /// Identifier. It stays equal when the notice is sent again, so a receiver can detect duplicates.
    pub id: String,
    /// Address of the receiver.
    pub address: String,
    /// Atlas whose steward asked for it.
    pub atlas_id: String,
    /// Body to send.
    pub body: String,
    /// Start of the delivery attempts.
    pub since: Timestamp,
    /// Number of attempts.
    pub attempts: u32,
    /// Error of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// State of the delivery.
    pub state: DeliveryState,
}

/// State of a notice's delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Waits for the next attempt.
    Waiting {
        /// Time of the next attempt.
        next_at: Timestamp,
    },
    /// Given up. The next start tries it again.
    Failed {
        /// Time at which it was given up.
        at: Timestamp,
    },
}

/// Result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum SendResult {
    /// The receiver accepted it.
    Delivered,
    /// The attempt failed, with the reason.
    Failed(String),
    /// The receiver wants no more notices.
    Unsubscribed,
}

impl StoredNotice {
    /// Creates the notice for `record`.
    pub(super) fn new(notice: &StewardNotice, record: &Record, now: Timestamp) -> Self {
        let parts = [
            notice.event.as_str(),
            notice.trigger.as_str(),
            &notice.atlas_id,
        ];
        let digest = Digest::of_parts(parts.map(str::as_bytes));
        Self {
            id: format!("msg_{}", digest.short(ID_DIGITS)),
            address: notice.address.clone(),
            atlas_id: notice.atlas_id.clone(),
            body: body(notice, record),
            since: now,
            attempts: 0,
            error: None,
            state: DeliveryState::Waiting { next_at: now },
        }
    }

    /// Reads a stored notice.
    ///
    /// # Errors
    /// Fails with a message when the row is not a notice.
    pub fn read(row: &StateRow) -> Result<Self, String> {
        let body = row.body.as_deref().unwrap_or_default();
        json::read(body.as_bytes()).map_err(|error| error.detail())
    }

    /// Returns the row that stores it.
    pub(in crate::runtime) fn row(&self) -> StateRow {
        // INVARIANT: plain data with string keys always serialises.
        let body = serde_json::to_value(self).unwrap_or_default();
        StateRow {
            kind: NOTICE_KIND.to_owned(),
            key: self.id.clone(),
            body: Some(canonical(&body)),
        }
    }

    /// Returns the row that removes it.
    pub(in crate::runtime) fn no_row(&self) -> StateRow {
        StateRow {
            body: None,
            ..self.row()
        }
    }

    /// Returns true if it was given up.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        matches!(self.state, DeliveryState::Failed { .. })
    }

    /// Notes a failed attempt: schedules the next one, or gives up.
    pub(super) fn note_failure(&mut self, what: &str, then: RetryDecision, now: Timestamp) {
        self.attempts = self.attempts.saturating_add(1);
        self.error = Some(what.to_owned());
        let over = self.is_failed() || now.since(self.since) >= NOTICE_RETRY_PERIOD;
        self.state = match then {
            RetryDecision::Retry if !over => DeliveryState::Waiting {
                next_at: now.plus(self.pause()),
            },
            RetryDecision::Retry | RetryDecision::GiveUp => DeliveryState::Failed { at: now },
        };
    }

    /// Adjusts the times to a clock step: the remaining and elapsed times stay equal.
    pub(super) fn clock_moved(&mut self, step: ClockStep) {
        self.since = step.apply(self.since);
        if let DeliveryState::Waiting { next_at } = &mut self.state {
            *next_at = step.apply(*next_at);
        }
    }

    /// Schedules it again, as if it were new.
    pub(super) fn restart(&mut self, now: Timestamp) {
        self.since = now;
        self.state = DeliveryState::Waiting { next_at: now };
    }

    /// Returns the pause until the next attempt.
    fn pause(&self) -> Duration {
        let at = usize::try_from(self.attempts).unwrap_or(usize::MAX);
        let pause = NOTICE_RETRY_PAUSES.get(at.saturating_sub(1));
        let pause = *pause
            .or(NOTICE_RETRY_PAUSES.last())
            .unwrap_or(&Duration::ZERO);
        let attempts = self.attempts.to_be_bytes();
        let digest = Digest::of_parts([self.id.as_bytes(), &attempts]);
        let [first, ..] = digest.as_bytes();
        pause + pause * u32::from(*first) / (PAUSE_SPREAD * u32::from(u8::MAX))
    }
}

/// Reaction to a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// Try again.
    Retry,
    /// Give up.
    GiveUp,
}

/// Builds the body. It has no parameters, answers or reasons: they may hold secrets, and the record has
/// them.
fn body(notice: &StewardNotice, record: &Record) -> String {
    let event_type = record
        .envelope()
        .map_or("", |envelope| envelope.event_type)
        .to_owned();
    let body = json!({
        "type": notice.trigger.as_str(),
        "timestamp": record.timestamp,
        "data": {
            "atlas": { "id": notice.atlas_id, "version": notice.atlas_version },
            "session": notice.session,
            "agent": notice.agent,
            "action": notice.action,
            "risk": notice.risk.as_str(),
            "passed": notice.passed,
            "approver": notice.approver,
            "gate": notice.gate,
            "event": {
                "id": notice.event,
                "type": event_type,
                "sequence": record.sequence,
                "hash": record.hash,
            },
        },
    });
    body.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice() -> StoredNotice {
        let now = Timestamp::from_micros(1_000_000);
        StoredNotice {
            id: "msg_1".to_owned(),
            address: "https://acme.com/".to_owned(),
            atlas_id: "com.acme".to_owned(),
            body: "{}".to_owned(),
            since: now,
            attempts: 0,
            error: None,
            state: DeliveryState::Waiting { next_at: now },
        }
    }

    // covers B16
    #[test]
    fn pauses_grow_to_an_hour_and_a_notice_is_given_up_after_three_days() {
        let mut kept = notice();
        let mut now = kept.since;
        let mut pauses = Vec::new();
        while let DeliveryState::Waiting { next_at } = kept.state {
            now = now.max(next_at);
            kept.note_failure("status 500", RetryDecision::Retry, now);
            if let DeliveryState::Waiting { next_at } = kept.state {
                pauses.push(next_at.since(now));
            }
        }
        for (pause, wanted) in pauses.iter().zip(NOTICE_RETRY_PAUSES) {
            assert!(
                *pause >= wanted && *pause <= wanted + wanted / 10,
                "{pause:?}"
            );
        }
        let hour = NOTICE_RETRY_PAUSES[4];
        assert!(
            pauses[5..]
                .iter()
                .all(|pause| *pause >= hour && *pause <= hour + hour / 10)
        );
        let apart: std::collections::BTreeSet<_> = pauses[5..].iter().collect();
        assert!(apart.len() > 10, "{apart:?}");
        let tried = now.since(kept.since);
        assert!(
            tried >= NOTICE_RETRY_PERIOD && tried < NOTICE_RETRY_PERIOD + 2 * hour,
            "{tried:?}"
        );
        assert_eq!(kept.state, DeliveryState::Failed { at: now });
        // A failed notice is not retried without a restart, in whichever way it fails again.
        kept.note_failure("status 500", RetryDecision::Retry, now);
        assert!(kept.is_failed());
        kept.restart(now);
        kept.note_failure("status 500", RetryDecision::Retry, now);
        assert!(!kept.is_failed());
    }

    #[test]
    fn a_notice_reads_back_as_stored() {
        let mut kept = notice();
        kept.note_failure("status 410", RetryDecision::GiveUp, kept.since);
        assert_eq!(StoredNotice::read(&kept.row()), Ok(kept.clone()));
        assert_eq!(kept.no_row().body, None);
        assert_eq!(kept.no_row().key, kept.row().key);
    }
}
