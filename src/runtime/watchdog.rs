//! The watch over the store: files that vanish while nothing is written, and writes that do not end.
//!
//! The actor learns of a failed write from its acknowledgement. Two faults never come to one: a store
//! that is deleted while no agent asks, and a disk that does not answer. So the store is looked at every
//! second. While a write takes too long, or there is no room for more records, the picture says so and agents are
//! refused at once; when that ends, everything goes on.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::message::Message;
use super::snapshot::{Snapshot, StoreState};
use crate::store::{Batch, Store, StoreError};

/// Time between two looks at the store.
const WATCH_TIME: Duration = Duration::from_secs(1);

/// Longest time that one write may take. A disk that is only slow takes a fraction of it.
pub const STALL_TIME: Duration = Duration::from_secs(5);

/// The watch over one store. It ends with the runtime or the store.
pub(super) struct Watchdog {
    pub(super) store: Weak<dyn Store>,
    pub(super) snapshots: watch::Sender<Arc<Snapshot>>,
    pub(super) messages: mpsc::WeakSender<Message>,
}

impl Watchdog {
    /// Looks at the store again and again.
    pub(super) async fn run(self) {
        let mut ticks = interval(WATCH_TIME);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(store) = self.store.upgrade() else {
                return;
            };
            let since = store.writing_since();
            let stalled = since.is_some_and(|since| since.elapsed() >= STALL_TIME);
            let problem = if stalled {
                Some(stall_text())
            } else {
                shortage(&store).await
            };
            self.show(problem);
            if stalled || self.is_poisoned() {
                continue;
            }
            let Err(error) = probe(store).await else {
                continue;
            };
            let Some(messages) = self.messages.upgrade() else {
                return;
            };
            if messages.send(Message::StoreFailed(error)).await.is_err() {
                return;
            }
        }
    }

    fn is_poisoned(&self) -> bool {
        matches!(self.snapshots.borrow().store, StoreState::Poisoned { .. })
    }

    /// Shows why nothing can be recorded, or that recording goes on.
    fn show(&self, problem: Option<String>) {
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
            *picture = Arc::new(Snapshot {
                revision: picture.revision + 1,
                store,
                ..(**picture).clone()
            });
            true
        });
    }
}

fn stall_text() -> String {
    format!(
        "the disk has not finished a write for more than {} seconds",
        STALL_TIME.as_secs()
    )
}

/// The reason why there is no room for more records. A disk that does not tell in time is not asked.
async fn shortage(store: &Arc<dyn Store>) -> Option<String> {
    let store = Arc::clone(store);
    let asked = tokio::task::spawn_blocking(move || store.shortage());
    timeout(WATCH_TIME, asked).await.ok()?.ok()?
}

/// Has the store look at its files, and waits for it no longer than until the next look.
async fn probe(store: Arc<dyn Store>) -> Result<(), StoreError> {
    let looked = timeout(WATCH_TIME, async {
        store.append(Batch::default()).await?.await
    });
    looked.await.unwrap_or(Ok(()))
}
