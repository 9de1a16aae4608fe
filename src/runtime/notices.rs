//! Notices that stewards asked for: stored with their record, and sent until they are delivered.
//!
//! A notice is a row of state that is written in one batch with its record, and removed after delivery. So
//! an unacknowledged notice is sent again after a crash, under its old identifier: delivery is at least
//! once. Bodies are signed according to the Standard Webhooks convention.
//!
//! Notices decide nothing, and no agent or operator waits for them.

use std::collections::BTreeMap;

use crate::base::clock::Timestamp;
use crate::store::{Batch, StateRow, Store, StoreError};

mod notice_sender;
mod outbox;
mod secret;
mod stored_notice;

pub(super) use outbox::{NoticeOutbox, NoticeResult};
pub use secret::{SECRET_FILE, Secret, SecretError, SecretSource};
pub(super) use stored_notice::NOTICE_KIND;
pub use stored_notice::{DeliveryState, StoredNotice};

/// Setting of notices to stewards.
#[derive(Clone, Debug)]
pub enum Webhooks {
    /// Notices are sent, signed with this secret.
    On(SecretSource),
    /// Notices are neither sent nor stored.
    Off(NoticesOff),
}

/// Reason why notices are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticesOff {
    /// The user's setting.
    Setting,
    /// The demo sends nothing.
    Demo,
    /// Changes without a running console send nothing.
    NoConsole,
}

impl NoticesOff {
    /// Returns a description, for people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Setting => "off: config.yaml has `webhooks: off`",
            Self::Demo => "off in the demo",
            Self::NoConsole => "off: no console is running",
        }
    }
}

/// Summary of notices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeSummary {
    /// Reason why notices are off, if they are.
    pub off: Option<NoticesOff>,
    /// Number of undelivered notices.
    pub waiting: usize,
    /// Number of notices that were given up.
    pub failed: usize,
    /// Number of notices that exceeded the limit, since the runtime started.
    pub over_limit: u64,
    /// Error of the last failed attempt, while any notice is left.
    pub error: Option<String>,
    /// Counts for each Atlas with notices.
    pub by_atlas: BTreeMap<String, AtlasNoticeSummary>,
}

impl NoticeSummary {
    /// Returns the number of notices that will not be sent without help: given up, or over the limit.
    #[must_use]
    pub fn undelivered_count(&self) -> usize {
        let left_out = usize::try_from(self.over_limit).unwrap_or(usize::MAX);
        self.failed.saturating_add(left_out)
    }
}

/// Summary of one Atlas' notices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtlasNoticeSummary {
    /// Number of undelivered notices.
    pub waiting: usize,
    /// Number of notices that were given up.
    pub failed: usize,
    /// Error of a failed attempt.
    pub error: Option<String>,
}

/// Returns the notices among rows of state, the oldest first, and the keys and errors of unreadable ones.
#[must_use]
pub fn stored_notices(rows: Vec<StateRow>) -> (Vec<StoredNotice>, Vec<(String, String)>) {
    let rows = rows.into_iter().filter(|row| row.kind == NOTICE_KIND);
    let (mut notices, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        match StoredNotice::read(&row) {
            Ok(notice) => notices.push(notice),
            Err(error) => unreadable.push((row.key, error)),
        }
    }
    notices.sort_by(|a: &StoredNotice, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
    (notices, unreadable)
}

/// Schedules notices again as if they were new, while no console uses the store.
///
/// # Errors
/// Fails when the store fails.
pub async fn retry_notices(
    store: &dyn Store,
    notices: Vec<StoredNotice>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let again = notices.into_iter().map(|mut notice| {
        notice.restart(now);
        notice.row()
    });
    write(store, again.collect()).await
}

/// Removes notices, while no console uses the store. The record keeps their subject.
///
/// # Errors
/// Fails when the store fails.
pub async fn remove_notices(store: &dyn Store, notices: &[StoredNotice]) -> Result<(), StoreError> {
    write(store, notices.iter().map(StoredNotice::no_row).collect()).await
}

async fn write(store: &dyn Store, state: Vec<StateRow>) -> Result<(), StoreError> {
    let batch = Batch {
        state,
        ..Batch::default()
    };
    store.append(batch).await?.await
}
