//! Progress and cancellation of a verification.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress shared by the verifying thread and the waiting caller. A cancelled verification stays
/// cancelled and proves nothing.
#[derive(Clone, Debug, Default)]
pub struct VerificationProgress(Arc<ProgressCounters>);

#[derive(Debug, Default)]
struct ProgressCounters {
    done: AtomicU64,
    all: AtomicU64,
    stopped: AtomicBool,
}

impl VerificationProgress {
    /// Starts a verification of `all` records.
    pub fn begin(&self, all: u64) {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.all.store(all, Ordering::Relaxed);
    }

    /// Adds checked records.
    pub fn add(&self, records: u64) {
        self.0.done.fetch_add(records, Ordering::Relaxed);
    }

    /// Cancels the verification.
    pub fn cancel(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// True if the verification was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// Checked records and their total; `None` before they are counted.
    #[must_use]
    pub fn checked_and_total(&self) -> Option<(u64, u64)> {
        let all = self.0.all.load(Ordering::Relaxed);
        let done = self.0.done.load(Ordering::Relaxed);
        (all > 0).then_some((done.min(all), all))
    }

    /// Progress in percent.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        let (done, all) = self.checked_and_total()?;
        done.saturating_mul(100).checked_div(all)
    }
}

impl PartialEq for VerificationProgress {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for VerificationProgress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_known_after_the_total_is() {
        let progress = VerificationProgress::default();
        assert_eq!(
            (progress.checked_and_total(), progress.percent()),
            (None, None)
        );
        progress.begin(300);
        progress.add(100);
        assert_eq!(progress.percent(), Some(33));
        progress.add(900);
        assert_eq!(progress.percent(), Some(100), "never more than all");
        progress.begin(10);
        assert_eq!(progress.percent(), Some(0));
    }
}
