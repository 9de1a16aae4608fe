//! How far a check has come, and whether anybody still wants it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared by whoever checks and whoever waits. A check that was stopped stays so, and proves nothing.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<State>);

#[derive(Debug, Default)]
struct State {
    done: AtomicU64,
    all: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// So many records are to be checked, from the first on.
    pub fn begin(&self, all: u64) {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.all.store(all, Ordering::Relaxed);
    }

    /// So many more were checked.
    pub fn add(&self, records: u64) {
        self.0.done.fetch_add(records, Ordering::Relaxed);
    }

    /// Nobody wants it any more.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether nobody wants it any more.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// How many records were checked, of how many; nothing before they are counted.
    #[must_use]
    pub fn so_far(&self) -> Option<(u64, u64)> {
        let all = self.0.all.load(Ordering::Relaxed);
        let done = self.0.done.load(Ordering::Relaxed);
        (all > 0).then_some((done.min(all), all))
    }

    /// The same in hundredths.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        let (done, all) = self.so_far()?;
        done.saturating_mul(100).checked_div(all)
    }
}

impl PartialEq for Progress {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Progress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_told_once_there_is_a_whole() {
        let progress = Progress::default();
        assert_eq!((progress.so_far(), progress.percent()), (None, None));
        progress.begin(300);
        progress.add(100);
        assert_eq!(progress.percent(), Some(33));
        progress.add(900);
        assert_eq!(progress.percent(), Some(100), "never more than all");
        progress.begin(10);
        assert_eq!(progress.percent(), Some(0));
    }
}
