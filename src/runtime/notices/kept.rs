//! A notice as it is kept until it is delivered.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::canon::canonical;
use crate::base::clock::Timestamp;
use crate::base::clock_step::ClockStep;
use crate::base::digest::Digest;
use crate::base::json;
use crate::base::limits::{NOTICE_PATIENCE, NOTICE_PAUSES};
use crate::engine::notice::Notice;
use crate::store::StateRow;
use crate::trace::record::Record;

/// The kind of state that a notice is.
pub(in crate::runtime) const NOTICE: &str = "notice";

/// Digits of the digest in a notice's identifier: enough that no two are alike.
const ID_DIGITS: usize = 32;

/// A pause is made longer by at most this part of it, so that those who failed together are not all tried
/// again at once.
const SPREAD: u32 = 10;

/// A notice that is not delivered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptNotice {
    /// Its identifier. It stays the same however often it is sent: whoever gets it twice can tell.
    pub id: String,
    /// Where it goes.
    pub address: String,
    /// The Atlas whose steward asked for it.
    pub atlas_id: String,
    /// Exactly what is sent.
    pub body: String,
    /// Since when it is tried.
    pub since: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// What became of the last try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it still waits.
    pub state: NoticeState,
}

/// Whether a notice still waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeState {
    /// It is tried at that time.
    Waiting {
        /// When.
        next_at: Timestamp,
    },
    /// Nobody took it, and it is not tried again by itself until the next start.
    Failed {
        /// When it was given up.
        at: Timestamp,
    },
}

/// What came of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Sent {
    /// It was taken.
    Delivered,
    /// It was not, and why.
    Failed(String),
    /// Whoever is there wants no more of them.
    Gone,
}

impl KeptNotice {
    /// The notice about what `record` says.
    pub(super) fn of(notice: &Notice, record: &Record, now: Timestamp) -> Self {
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
            state: NoticeState::Waiting { next_at: now },
        }
    }

    /// A notice as it was kept.
    ///
    /// # Errors
    /// In words, when it is none.
    pub fn read(row: &StateRow) -> Result<Self, String> {
        let body = row.body.as_deref().unwrap_or_default();
        json::read(body.as_bytes()).map_err(|error| error.detail())
    }

    /// It, as it is kept.
    pub(in crate::runtime) fn row(&self) -> StateRow {
        // INVARIANT: plain data with text for keys, so it always becomes JSON.
        let body = serde_json::to_value(self).unwrap_or_default();
        StateRow {
            kind: NOTICE.to_owned(),
            key: self.id.clone(),
            body: Some(canonical(&body)),
        }
    }

    /// That it is kept no longer.
    pub(in crate::runtime) fn no_row(&self) -> StateRow {
        StateRow {
            body: None,
            ..self.row()
        }
    }

    /// Whether it was given up.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        matches!(self.state, NoticeState::Failed { .. })
    }

    /// Notes a try that came to nothing: when it is tried again, or that it is given up.
    pub(super) fn note_failure(&mut self, what: &str, then: Then, now: Timestamp) {
        self.attempts = self.attempts.saturating_add(1);
        self.error = Some(what.to_owned());
        let over = self.is_failed() || now.since(self.since) >= NOTICE_PATIENCE;
        self.state = match then {
            Then::Again if !over => NoticeState::Waiting {
                next_at: now.plus(self.pause()),
            },
            Then::Again | Then::Never => NoticeState::Failed { at: now },
        };
    }

    /// The wall clock was set: the next try and the last are as far away as before.
    pub(super) fn clock_moved(&mut self, step: ClockStep) {
        self.since = step.apply(self.since);
        if let NoticeState::Waiting { next_at } = &mut self.state {
            *next_at = step.apply(*next_at);
        }
    }

    /// Has it tried again, as if it were new.
    pub(super) fn begin_again(&mut self, now: Timestamp) {
        self.since = now;
        self.state = NoticeState::Waiting { next_at: now };
    }

    /// How long until the next try.
    fn pause(&self) -> Duration {
        let at = usize::try_from(self.attempts).unwrap_or(usize::MAX);
        let pause = NOTICE_PAUSES.get(at.saturating_sub(1));
        let pause = *pause.or(NOTICE_PAUSES.last()).unwrap_or(&Duration::ZERO);
        let attempts = self.attempts.to_be_bytes();
        let digest = Digest::of_parts([self.id.as_bytes(), &attempts]);
        let [first, ..] = digest.as_bytes();
        pause + pause * u32::from(*first) / (SPREAD * u32::from(u8::MAX))
    }
}

/// What follows from a try that came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Another one.
    Again,
    /// None.
    Never,
}

/// What is sent. Parameters, answers and reasons are not in it: they may hold secrets, and the record has
/// them.
fn body(notice: &Notice, record: &Record) -> String {
    let event_type = record.envelope().map_or("", |it| it.event_type).to_owned();
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

    fn notice() -> KeptNotice {
        let now = Timestamp::from_micros(1_000_000);
        KeptNotice {
            id: "msg_1".to_owned(),
            address: "https://acme.com/".to_owned(),
            atlas_id: "com.acme".to_owned(),
            body: "{}".to_owned(),
            since: now,
            attempts: 0,
            error: None,
            state: NoticeState::Waiting { next_at: now },
        }
    }

    // covers B16
    #[test]
    fn pauses_grow_to_an_hour_and_after_three_days_it_is_given_up() {
        let mut it = notice();
        let mut now = it.since;
        let mut pauses = Vec::new();
        while let NoticeState::Waiting { next_at } = it.state {
            now = now.max(next_at);
            it.note_failure("status 500", Then::Again, now);
            if let NoticeState::Waiting { next_at } = it.state {
                pauses.push(next_at.since(now));
            }
        }
        for (pause, wanted) in pauses.iter().zip(NOTICE_PAUSES) {
            assert!(
                *pause >= wanted && *pause <= wanted + wanted / 10,
                "{pause:?}"
            );
        }
        let hour = NOTICE_PAUSES[4];
        assert!(
            pauses[5..]
                .iter()
                .all(|it| *it >= hour && *it <= hour + hour / 10)
        );
        let apart: std::collections::BTreeSet<_> = pauses[5..].iter().collect();
        assert!(apart.len() > 10, "{apart:?}");
        let tried = now.since(it.since);
        assert!(
            tried >= NOTICE_PATIENCE && tried < NOTICE_PATIENCE + 2 * hour,
            "{tried:?}"
        );
        assert_eq!(it.state, NoticeState::Failed { at: now });
        // What failed is not tried again by itself, however it failed.
        it.note_failure("status 500", Then::Again, now);
        assert!(it.is_failed());
        it.begin_again(now);
        it.note_failure("status 500", Then::Again, now);
        assert!(!it.is_failed());
    }

    #[test]
    fn a_notice_comes_back_as_it_was_kept() {
        let mut it = notice();
        it.note_failure("status 410", Then::Never, it.since);
        assert_eq!(KeptNotice::read(&it.row()), Ok(it.clone()));
        assert_eq!(it.no_row().body, None);
        assert_eq!(it.no_row().key, it.row().key);
    }
}
