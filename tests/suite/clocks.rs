//! A wall clock that is set while the console runs: gates keep the time that is left, and the operator is told.

use std::sync::Arc;
use std::time::Duration;

use cra_core::base::clock::{Clock, ManualClock};
use cra_core::engine::command::{DenialReply, DenyCode, HeldOutcome};
use cra_core::runtime::snapshot::RuntimeSnapshot;
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::verification::TrustAnchors;
use serde_json::json;
use tokio::task::JoinHandle;

use super::support::{Bench, clock, request, settle};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// A console whose only held request waits for 300 s.
struct Waiting {
    bench: Bench,
    store: MemoryStore,
    pending: JoinHandle<Result<(), DenialReply>>,
}

impl Waiting {
    async fn new() -> Self {
        Self::at(clock()).await
    }

    async fn at(clock: Arc<ManualClock>) -> Self {
        let store = MemoryStore::default();
        let bench = Bench::start(Arc::new(store.clone()), clock).await;
        bench.begin("s-1").await;
        let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
        bench.pass(&snapshot.held[0]).await;
        let agents = bench.runtime.agent_handle();
        let ban = request("s-1", "user.ban", json!({"user": "x"}));
        let pending = tokio::spawn(async move { agents.request_action(ban).await.map(|_| ()) });
        bench.wait_until(|s| s.held.len() == 1).await;
        Self {
            bench,
            store,
            pending,
        }
    }

    /// The time that the operator sees as left.
    fn left(&self, snapshot: &RuntimeSnapshot) -> Duration {
        snapshot.held[0].deadline.since(self.bench.clock.now())
    }

    async fn expires(self) {
        let snapshot = self.bench.wait_until(|s| s.held.is_empty()).await;
        assert_eq!(snapshot.decided[0].outcome, HeldOutcome::Expired);
        let denied = self.pending.await.unwrap().unwrap_err();
        assert_eq!(denied.code, DenyCode::Expired);
        assert!(denied.reason.contains("within 300 s"), "{}", denied.reason);
        self.bench.runtime.stop().await;
        let report = self.store.verify(TrustAnchors::nothing()).await.unwrap();
        assert!(report.is_sound(), "{report:?}");
    }
}

#[tokio::test]
async fn a_clock_set_back_does_not_prolong_a_gate() {
    let waiting = Waiting::new().await;
    let clock = &waiting.bench.clock;
    clock.advance(10 * Duration::from_secs(1));
    clock.set_back(10 * MINUTE);
    clock.advance(Duration::from_secs(289));
    let snapshot = waiting.bench.wait_until(|s| s.clock_step.is_some()).await;
    assert_eq!(waiting.left(&snapshot), Duration::from_secs(1));
    assert!(!waiting.pending.is_finished());
    clock.advance(Duration::from_secs(1));
    waiting.expires().await;
}

#[tokio::test]
async fn a_clock_set_forward_does_not_deny_a_gate() {
    let waiting = Waiting::new().await;
    waiting.bench.clock.set_forward(HOUR);
    let snapshot = waiting.bench.wait_until(|s| s.clock_step.is_some()).await;
    assert_eq!(snapshot.held.len(), 1);
    assert_eq!(waiting.left(&snapshot), Duration::from_mins(5));
    waiting.bench.clock.advance(Duration::from_secs(299));
    settle().await;
    assert_eq!(waiting.bench.snapshot().held.len(), 1);
    assert!(!waiting.pending.is_finished());
    waiting.bench.clock.advance(Duration::from_secs(1));
    waiting.expires().await;
}

#[tokio::test]
async fn clock_step_is_recorded_and_shown_once_and_small_corrections_are_not() {
    let waiting = Waiting::new().await;
    let clock = &waiting.bench.clock;
    clock.set_back(Duration::from_secs(1));
    clock.advance(Duration::from_secs(2));
    settle().await;
    assert_eq!(waiting.bench.snapshot().clock_step, None);
    clock.set_back(10 * MINUTE);
    clock.advance(Duration::from_secs(2));
    let snapshot = waiting.bench.wait_until(|s| s.clock_step.is_some()).await;
    let moved = snapshot.clock_step.unwrap();
    assert_eq!(moved.at, clock.now());
    assert!(moved.step.to_string().starts_with("back by 10 min"));
    for _ in 0..5 {
        clock.advance(Duration::from_secs(2));
        settle().await;
    }
    let log = waiting.store.log().await.unwrap().log;
    let entries = waiting.store.events(log, 0, 1000).await.unwrap();
    let recorded: Vec<_> = entries
        .iter()
        .filter(|entry| entry.event_type == "clock_moved")
        .collect();
    assert_eq!(recorded.len(), 1);
    let what = recorded[0].payload["what"].as_str().unwrap();
    assert!(what.contains("set back by 10 min"), "{what}");
    assert!(
        entries.is_sorted_by_key(|entry| entry.timestamp),
        "times on record never go back"
    );
}

#[tokio::test]
async fn deadline_named_by_the_caller_survives_a_clock_step() {
    let waiting = Waiting::new().await;
    let bench = &waiting.bench;
    let mut ban = request("s-1", "user.ban", json!({"user": "y"}));
    ban.deadline = Some(bench.clock.now().plus(Duration::from_secs(20)));
    let agents = bench.runtime.agent_handle();
    let pending = tokio::spawn(async move { agents.request_action(ban).await });
    bench.wait_until(|s| s.held.len() == 2).await;
    bench.clock.set_forward(HOUR);
    bench.wait_until(|s| s.clock_step.is_some()).await;
    assert_eq!(bench.snapshot().held.len(), 2);
    bench.clock.advance(Duration::from_secs(20));
    let denied = pending.await.unwrap().unwrap_err();
    assert!(denied.reason.contains("within 20 s"), "{}", denied.reason);
    bench.wait_until(|s| s.held.len() == 1).await;
}

#[tokio::test]
async fn gate_after_a_restart_with_the_clock_set_back_waits_at_most_its_full_timeout() {
    let waiting = Waiting::new().await;
    let Waiting { bench, store, .. } = waiting;
    let clock = Arc::clone(&bench.clock);
    clock.advance(Duration::from_secs(100));
    bench.runtime.stop().await;
    clock.set_back(HOUR);
    let bench = Bench::start(Arc::new(store), clock).await;
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    let left = snapshot.held[0].deadline.since(bench.clock.now());
    assert_eq!(left, Duration::from_mins(5));
    bench.clock.advance(Duration::from_mins(5));
    bench.wait_until(|s| s.held.is_empty()).await;
}

#[tokio::test]
async fn second_restart_does_not_renew_the_timeout_of_a_gate() {
    let waiting = Waiting::new().await;
    let Waiting { bench, store, .. } = waiting;
    let clock = Arc::clone(&bench.clock);
    bench.runtime.stop().await;
    clock.set_back(HOUR);
    let bench = Bench::start(Arc::new(store.clone()), Arc::clone(&clock)).await;
    bench.wait_until(|s| s.held.len() == 1).await;
    clock.advance(Duration::from_secs(200));
    bench.runtime.stop().await;
    let bench = Bench::start(Arc::new(store), clock).await;
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    let left = snapshot.held[0].deadline.since(bench.clock.now());
    assert_eq!(left, Duration::from_secs(100));
    bench.runtime.stop().await;
}

#[tokio::test]
async fn second_restart_does_not_renew_the_lifetime_of_a_permit() {
    let waiting = Waiting::new().await;
    let Waiting {
        bench,
        store,
        pending,
    } = waiting;
    let clock = Arc::clone(&bench.clock);
    pending.abort();
    let held = bench.snapshot().held[0].clone();
    bench.pass(&held).await;
    bench.runtime.stop().await;
    clock.set_back(HOUR);
    for _ in 0..2 {
        let bench = Bench::start(Arc::new(store.clone()), Arc::clone(&clock)).await;
        clock.advance(Duration::from_secs(200));
        bench.runtime.stop().await;
    }
    let bench = Bench::start(Arc::new(store), clock).await;
    let agents = bench.runtime.agent_handle();
    let ban = request("s-1", "user.ban", json!({"user": "x"}));
    tokio::spawn(async move { agents.request_action(ban).await });
    bench.wait_until(|s| s.held.len() == 1).await;
    bench.runtime.stop().await;
}
