//! Notices that stewards asked for: kept with the record that causes them, sent until they are taken.
//!
//! A notice is a row of state that is written in one batch with its record, and dropped when it was
//! delivered. So what was not acknowledged before a crash is sent after it, under the same identifier:
//! at least once. Bodies are signed as the Standard Webhooks convention has it.
//!
//! Nothing of it decides anything, and nobody who asks or decides waits for it.

use std::collections::BTreeMap;

use crate::base::clock::Timestamp;
use crate::store::{Batch, StateRow, Store, StoreError};

mod kept;
mod outbox;
mod post;
mod secret;

pub(super) use kept::NOTICE;
pub use kept::{KeptNotice, NoticeState};
pub(super) use outbox::{Came, Outbox};
pub use secret::{SECRET_FILE, Secret, SecretError, SecretSource};

/// Whether stewards are told.
#[derive(Clone, Debug)]
pub enum Webhooks {
    /// They are, with what is signed with this.
    On(SecretSource),
    /// They are not, and nothing is kept for them.
    Off(Off),
}

/// Why no steward is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// The user does not want it.
    Setting,
    /// Nothing that is played for show reaches anybody.
    Demo,
    /// Nobody is told of what is done without a console.
    NoConsole,
}

impl Off {
    /// It, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Setting => "off: config.yaml says `webhooks: off`",
            Self::Demo => "off: the demo calls nobody",
            Self::NoConsole => "off: nobody is told without a console",
        }
    }
}

/// What is known about notices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticesState {
    /// Why none are sent, where none are.
    pub off: Option<Off>,
    /// Those that are not delivered yet.
    pub waiting: usize,
    /// Those that were given up.
    pub failed: usize,
    /// Those that there was no room for, since the runtime started.
    pub left_out: u64,
    /// What became of the last try that came to nothing, while any are left.
    pub error: Option<String>,
    /// The same for each Atlas with any.
    pub by_atlas: BTreeMap<String, AtlasNotices>,
}

impl NoticesState {
    /// Those that nobody hears of by itself any more: given up, or left out.
    #[must_use]
    pub fn unheard(&self) -> usize {
        let left_out = usize::try_from(self.left_out).unwrap_or(usize::MAX);
        self.failed.saturating_add(left_out)
    }
}

/// What is known about the notices of one Atlas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtlasNotices {
    /// Those that are not delivered yet.
    pub waiting: usize,
    /// Those that were given up.
    pub failed: usize,
    /// What became of a try that came to nothing.
    pub error: Option<String>,
}

/// The notices among rows of state, the oldest first. What cannot be read is told with its key.
#[must_use]
pub fn kept_notices(rows: Vec<StateRow>) -> (Vec<KeptNotice>, Vec<(String, String)>) {
    let rows = rows.into_iter().filter(|row| row.kind == NOTICE);
    let (mut notices, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        match KeptNotice::read(&row) {
            Ok(notice) => notices.push(notice),
            Err(error) => unreadable.push((row.key, error)),
        }
    }
    notices.sort_by(|a: &KeptNotice, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
    (notices, unreadable)
}

/// Has notices tried again as if they were new, while no console has the store.
///
/// # Errors
/// When the store fails.
pub async fn retry(
    store: &dyn Store,
    notices: Vec<KeptNotice>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let again = notices.into_iter().map(|mut notice| {
        notice.begin_again(now);
        notice.row()
    });
    write(store, again.collect()).await
}

/// Forgets notices, while no console has the store. The record keeps what they were about.
///
/// # Errors
/// When the store fails.
pub async fn forget(store: &dyn Store, notices: &[KeptNotice]) -> Result<(), StoreError> {
    write(store, notices.iter().map(KeptNotice::no_row).collect()).await
}

async fn write(store: &dyn Store, state: Vec<StateRow>) -> Result<(), StoreError> {
    let batch = Batch {
        state,
        ..Batch::default()
    };
    store.append(batch).await?.await
}
