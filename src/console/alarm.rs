//! Alarms: problems found by background checks while the console runs, sent whenever they change.

use std::sync::Arc;

use tokio::sync::watch;

/// Source of alarms. Each value is the full list of current problems, as text.
#[derive(Clone, Debug)]
pub struct AlarmReceiver(pub watch::Receiver<Arc<[String]>>);

impl AlarmReceiver {
    /// Waits until the list of problems changes. Without a source of alarms it waits for ever.
    pub(super) async fn next(alarms: &mut Option<Self>) -> Arc<[String]> {
        if let Some(Self(receiver)) = alarms
            && receiver.changed().await.is_ok()
        {
            return Arc::clone(&receiver.borrow_and_update());
        }
        std::future::pending().await
    }
}

/// Returns the alarms in `now` that are not in `before`.
pub(super) fn added_alarms<'a>(before: &[String], now: &'a [String]) -> Vec<&'a String> {
    now.iter().filter(|alarm| !before.contains(alarm)).collect()
}
