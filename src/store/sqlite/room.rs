//! Room for more records, as each commit found it.
//!
//! The writer knows the size of the files after each commit. So a quota is passed by no more than what was handed over
//! before that commit ended.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::space;

/// Room for more records. Copies of it share what they know.
#[derive(Clone, Debug)]
pub(super) struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: PathBuf,
    /// Largest size of the database with its write-ahead log. `u64::MAX` stands for no quota.
    quota_bytes: AtomicU64,
    shortage: Mutex<Option<Arc<str>>>,
}

impl Room {
    pub(super) fn new(database: &Path) -> Self {
        Self(Arc::new(Inner {
            database: database.to_owned(),
            quota_bytes: AtomicU64::new(u64::MAX),
            shortage: Mutex::new(None),
        }))
    }

    /// Sets the largest size of the files.
    pub(super) fn set_quota(&self, quota_bytes: Option<u64>) {
        let quota = quota_bytes.unwrap_or(u64::MAX);
        self.0.quota_bytes.store(quota, Ordering::Relaxed);
    }

    /// Notes the size of the files. Says why there is no room, if there is none.
    pub(super) fn note(&self, used_bytes: u64) -> Option<Arc<str>> {
        let quota = self.0.quota_bytes.load(Ordering::Relaxed);
        let quota = Some(quota).filter(|quota| *quota < u64::MAX);
        let shortage = space::shortage(&self.0.database, used_bytes, quota).map(Arc::from);
        let mut known = self
            .0
            .shortage
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.clone_from(&shortage);
        shortage
    }

    /// The reason why there was no room after the last commit.
    pub(super) fn shortage(&self) -> Option<Arc<str>> {
        let known = self
            .0
            .shortage
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }
}
