//! Space for more records, updated after each commit.
//!
//! The writer knows the size of the files after each commit. So a quota is exceeded at most by the
//! batches queued before that commit ended.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::space;

/// Space for more records. Clones share their data.
#[derive(Clone, Debug)]
pub(super) struct SpaceMonitor(Arc<SpaceState>);

#[derive(Debug)]
struct SpaceState {
    database: PathBuf,
    /// Maximum size of the database with its write-ahead log. `u64::MAX` means no quota.
    quota_bytes: AtomicU64,
    shortage: Mutex<Option<Arc<str>>>,
}

impl SpaceMonitor {
    pub(super) fn new(database: &Path) -> Self {
        Self(Arc::new(SpaceState {
            database: database.to_owned(),
            quota_bytes: AtomicU64::new(u64::MAX),
            shortage: Mutex::new(None),
        }))
    }

    /// Sets the maximum size of the files.
    pub(super) fn set_quota(&self, quota_bytes: Option<u64>) {
        let quota = quota_bytes.unwrap_or(u64::MAX);
        self.0.quota_bytes.store(quota, Ordering::Relaxed);
    }

    /// Updates the size of the files. Returns the reason if space for more records is missing.
    pub(super) fn update(&self, used_bytes: u64) -> Option<Arc<str>> {
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

    /// Reason why space was missing after the last commit.
    pub(super) fn shortage(&self) -> Option<Arc<str>> {
        let known = self
            .0
            .shortage
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }
}
