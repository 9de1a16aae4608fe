//! Alarms: what somebody else looks after while the console runs, told as it changes.

use std::sync::Arc;

use tokio::sync::watch;

/// Where alarms come from. What is told is all that is wrong now, in words.
#[derive(Clone, Debug)]
pub struct Alarms(pub watch::Receiver<Arc<[String]>>);

impl Alarms {
    /// Waits until something else is wrong than before; for ever, where nobody looks after anything.
    pub(super) async fn next(alarms: &mut Option<Self>) -> Arc<[String]> {
        if let Some(Self(told)) = alarms
            && told.changed().await.is_ok()
        {
            return Arc::clone(&told.borrow_and_update());
        }
        std::future::pending().await
    }
}

/// Those that were not there before.
pub(super) fn new_ones<'a>(before: &[String], now: &'a [String]) -> Vec<&'a String> {
    now.iter().filter(|it| !before.contains(it)).collect()
}
