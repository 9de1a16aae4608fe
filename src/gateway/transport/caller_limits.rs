//! Limits per caller, so that one caller cannot keep others waiting.
//!
//! A caller is a [`LimitGroup`]: all processes of one terminal or service, with any number of connections;
//! all HTTP connections are one caller. Reports that come faster than [`REPORTS_PER_SECOND`] wait. A caller
//! may have [`MAX_LARGE_MESSAGES_PER_PEER`] large messages at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use crate::base::limits::{MAX_LARGE_MESSAGES_PER_PEER, REPORTS_PER_SECOND};
use crate::engine::command::{Caller, LimitGroup};

/// Connected callers.
#[derive(Clone, Debug, Default)]
pub(super) struct CallerLimitTable(Arc<Mutex<HashMap<LimitGroup, Weak<CallerLimits>>>>);

/// Limits of one caller.
#[derive(Debug)]
pub(super) struct CallerLimits {
    /// Permits for large messages.
    pub(super) large: Arc<Semaphore>,
    /// Time at which all reports so far are due at the allowed rate.
    due: Mutex<Instant>,
}

impl CallerLimitTable {
    /// Returns the limits of a caller. All its connections share them.
    pub(super) fn limits_of(&self, caller: &Caller) -> Arc<CallerLimits> {
        let Some(key) = caller.limit_group() else {
            // The system does not name the process: each of its connections has its own limits.
            return Arc::new(CallerLimits::new());
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = known.get(&key).and_then(Weak::upgrade) {
            return peer;
        }
        known.retain(|_, peer| peer.strong_count() > 0);
        let peer = Arc::new(CallerLimits::new());
        known.insert(key, Arc::downgrade(&peer));
        peer
    }
}

impl CallerLimits {
    /// Interval between reports at the highest rate.
    const STEP: Duration = Duration::from_nanos(1_000_000_000 / REPORTS_PER_SECOND);

    fn new() -> Self {
        Self {
            large: Arc::new(Semaphore::new(MAX_LARGE_MESSAGES_PER_PEER)),
            due: Mutex::new(Instant::now()),
        }
    }

    /// Waits until a report may be accepted. Reports of one second may come at once.
    pub(super) async fn pace_report(&self) {
        let due = {
            let now = Instant::now();
            let earliest = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
            let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
            *due = (*due).max(earliest) + Self::STEP;
            *due
        };
        sleep_until(due).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn process(pid: i32) -> Caller {
        Caller::Socket {
            uid: 1,
            pid: Some(pid),
            leader: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reports_above_the_rate_wait_and_reports_of_another_process_do_not() {
        let peers = CallerLimitTable::default();
        let (one, same, other) = (
            peers.limits_of(&process(1)),
            peers.limits_of(&process(1)),
            peers.limits_of(&process(2)),
        );
        advance(Duration::from_secs(1)).await;
        let begun = Instant::now();
        for _ in 0..REPORTS_PER_SECOND {
            one.pace_report().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        other.pace_report().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for _ in 0..REPORTS_PER_SECOND {
            same.pace_report().await;
        }
        let waited = begun.elapsed().as_millis();
        assert!((990..=1010).contains(&waited), "{waited} ms");
    }

    #[test]
    fn the_limits_of_a_disconnected_caller_are_dropped() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let _inside = runtime.as_ref().unwrap().enter();
        let peers = CallerLimitTable::default();
        for pid in 0..10 {
            drop(peers.limits_of(&process(pid)));
        }
        let _there = peers.limits_of(&process(11));
        assert_eq!(peers.0.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn one_process_leaves_permits_for_large_messages_of_others() {
        let peers = CallerLimitTable::default();
        let (one, other) = (peers.limits_of(&process(1)), peers.limits_of(&process(2)));
        let mut rooms = Vec::new();
        for _ in 0..MAX_LARGE_MESSAGES_PER_PEER {
            rooms.push(Arc::clone(&one.large).try_acquire_owned().unwrap());
        }
        assert!(one.large.try_acquire().is_err());
        assert!(other.large.try_acquire().is_ok());
    }
}
