//! Watchdog of the store: notices files that change while nothing is written, and writes that do not end.
//!
//! The actor learns of a failed write from its acknowledgement. Two faults never produce one: a store that
//! is deleted or damaged while no agent makes a request, and a disk that does not respond. So the store is
//! checked every second. While a write takes too long, or the disk is full, the snapshot shows it and
//! agents are refused at once. When that ends, the outage is recorded, and requests are accepted again.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::time::error::Elapsed;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::message::ActorMessage;
use super::snapshot::{RuntimeSnapshot, StoreState};
use crate::store::{Batch, Store, StoreError};
use crate::trace::note::Verifier;
use crate::trace::verification::TrustAnchors;

/// Interval between two checks of the store.
const WATCH_TIME: Duration = Duration::from_secs(1);

/// Longest time for one write. A disk that is merely slow takes a fraction of it.
pub const STALL_TIME: Duration = Duration::from_secs(5);

/// Shortest interval between two full verifications because another program changed the files.
const RECHECK_TIME: Duration = Duration::from_mins(1);

/// Watchdog of one store. It ends with the runtime or the store.
pub(super) struct Watchdog {
    pub(super) store: Weak<dyn Store>,
    pub(super) snapshots: watch::Sender<Arc<RuntimeSnapshot>>,
    pub(super) messages: mpsc::WeakSender<ActorMessage>,
    /// Key of the log.
    pub(super) key: Verifier,
}

/// A period in which nothing can be recorded.
struct Stall {
    since: Instant,
    what: String,
}

/// Changes of the files by other programs that were already verified.
#[derive(Default)]
struct RecheckState {
    changes: u64,
    at: Option<Instant>,
}

impl Watchdog {
    /// Checks the store at intervals.
    pub(super) async fn run(self) {
        let mut ticks = interval(WATCH_TIME);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stall = None;
        let mut rechecked = RecheckState::default();
        loop {
            ticks.tick().await;
            let Some(store) = self.store.upgrade() else {
                return;
            };
            let since = store.writing_since();
            let since = since.filter(|since| since.elapsed() >= STALL_TIME);
            let hangs = since.is_some();
            // A disk that does not respond in time gives no new information.
            if let Ok(now) = find_stall(since, &store).await {
                self.publish_stall(now.as_ref().map(|now| now.what.clone()));
                stall = match (stall.take(), now) {
                    (Some(before), Some(_)) => Some(before),
                    (Some(before), None) => {
                        self.report_stall_end(before).await;
                        None
                    }
                    (None, now) => now,
                };
            }
            if hangs || self.is_poisoned() {
                continue;
            }
            self.recheck(&store, &mut rechecked);
            let Err(error) = probe(store).await else {
                continue;
            };
            let Some(messages) = self.messages.upgrade() else {
                return;
            };
            if messages
                .send(ActorMessage::StoreFailed(error))
                .await
                .is_err()
            {
                return;
            }
        }
    }

    fn is_poisoned(&self) -> bool {
        matches!(self.snapshots.borrow().store, StoreState::Poisoned { .. })
    }

    /// Has the runtime record that nothing could be recorded for some time.
    async fn report_stall_end(&self, stall: Stall) {
        if let Some(messages) = self.messages.upgrade() {
            let ended = ActorMessage::StallEnded(stall.since.elapsed(), stall.what);
            // Without an actor nothing is recorded.
            let _ = messages.send(ended).await;
        }
    }

    /// Verifies the whole record in the background, after another program changed the files.
    fn recheck(&self, store: &Arc<dyn Store>, rechecked: &mut RecheckState) {
        let changes = store.foreign_changes();
        let is_recent = |at: Instant| at.elapsed() < RECHECK_TIME;
        if changes == rechecked.changes || rechecked.at.is_some_and(is_recent) {
            return;
        }
        *rechecked = RecheckState {
            changes,
            at: Some(Instant::now()),
        };
        let (store, messages) = (Arc::clone(store), self.messages.clone());
        let trust = TrustAnchors::nothing().with_key(self.key.clone());
        tokio::spawn(async move {
            let checked = store.verify(trust).await;
            let checked = checked.map_err(|error| error.to_string());
            if let Some(messages) = messages.upgrade() {
                // Without an actor nothing is recorded any more.
                let _ = messages.send(ActorMessage::Verified(checked)).await;
            }
        });
    }

    /// Publishes the reason why nothing can be recorded, or that recording works again.
    fn publish_stall(&self, problem: Option<String>) {
        self.snapshots.send_if_modified(|picture| {
            let store = match (&picture.store, problem) {
                (StoreState::Ready, Some(what)) => StoreState::Stalled { what },
                (StoreState::Stalled { .. }, None) => StoreState::Ready,
                (StoreState::Stalled { what }, Some(now)) if *what != now => {
                    StoreState::Stalled { what: now }
                }
                (StoreState::Poisoned { .. }, _)
                | (StoreState::Ready, None)
                | (StoreState::Stalled { .. }, Some(_)) => return false,
            };
            *picture = Arc::new(RuntimeSnapshot {
                revision: picture.revision + 1,
                store,
                ..(**picture).clone()
            });
            true
        });
    }
}

/// Returns the reason why nothing can be recorded now, if there is one.
async fn find_stall(
    hangs_since: Option<Instant>,
    store: &Arc<dyn Store>,
) -> Result<Option<Stall>, Elapsed> {
    if let Some(since) = hangs_since {
        let what = stall_text();
        return Ok(Some(Stall { since, what }));
    }
    let since = Instant::now();
    let shortage = shortage(store).await?;
    Ok(shortage.map(|what| Stall { since, what }))
}

fn stall_text() -> String {
    format!(
        "the disk has not finished a write for more than {} seconds",
        STALL_TIME.as_secs()
    )
}

/// Returns the reason why the disk has no space for more records.
async fn shortage(store: &Arc<dyn Store>) -> Result<Option<String>, Elapsed> {
    let store = Arc::clone(store);
    let asked = tokio::task::spawn_blocking(move || store.shortage());
    Ok(timeout(WATCH_TIME, asked).await?.ok().flatten())
}

/// Has the store check its files, and waits at most until the next check.
async fn probe(store: Arc<dyn Store>) -> Result<(), StoreError> {
    let checked = timeout(WATCH_TIME, async {
        store.append(Batch::default()).await?.await
    });
    checked.await.unwrap_or(Ok(()))
}
