//! Damage to the files of a store below the console, stalls of its disk, and its quota.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cra_core::base::clock::Clock;
use cra_core::engine::command::DenyCode;
use cra_core::runtime::snapshot::StoreState;
use cra_core::store::Store;
use cra_core::store::sqlite::SqliteStore;
use serde_json::json;

use super::faults::{HangingStore, write};
use super::support::{Bench, clock, reopen_store, request};

/// Longest time that a test waits for a clock of the file system to move on.
const DEADLINE: Duration = Duration::from_secs(20);

/// Writes over a part of a file until its time of change is another: clocks of file systems are coarse.
fn overwrite(path: &Path, from: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let time = |file: &fs::File| {
        let found = file.metadata().unwrap();
        (found.mtime(), found.mtime_nsec())
    };
    let (before, deadline) = (time(&file), Instant::now() + DEADLINE);
    while time(&file) == before {
        assert!(Instant::now() < deadline, "the clock stands still");
        file.write_all_at(bytes, from).unwrap();
    }
}

fn cut(path: &Path, part: u64) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length * part / 4).unwrap();
}

fn zero(path: &Path) {
    let length = usize::try_from(fs::metadata(path).unwrap().len()).unwrap();
    overwrite(path, 0, &vec![0; length]);
}

type Damage = fn(&Path);

#[tokio::test]
async fn nothing_is_acknowledged_after_a_file_was_damaged_in_place() {
    let damages: [(&str, Damage); 8] = [
        ("cra.db-wal", |path| cut(path, 0)),
        ("cra.db-wal", |path| cut(path, 2)),
        ("cra.db-wal", |path| overwrite(path, 0, &[0; 32])),
        // A page in the middle, and the one behind the first frame.
        ("cra.db-wal", |path| overwrite(path, 32 + 24, &[9; 100])),
        ("cra.db-wal", zero),
        ("cra.db", |path| cut(path, 2)),
        ("cra.db", |path| cut(path, 0)),
        ("cra.db", |path| {
            overwrite(path, 2 * 8192, &vec![9; 8 * 8192]);
        }),
    ];
    for (number, (name, damage)) in damages.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        for n in 0..400 {
            write(&store, n).await.unwrap();
        }
        drop(store);
        let store = reopen_store(folder.path());
        for n in 1000..1003 {
            write(&store, n).await.unwrap();
        }
        damage(&folder.path().join(name));
        let refused = write(&store, 2000).await;
        let refused = refused.expect_err(&number.to_string()).to_string();
        assert!(refused.contains(name), "{number}: {refused}");
        // The store accepts nothing more and leaves its content unchanged.
        write(&store, 2001).await.unwrap_err();
    }
}

#[tokio::test]
async fn damage_is_noticed_while_no_agent_asks() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let bench = Bench::start(store, clock()).await;
    bench.runtime.watch_store();
    cut(&folder.path().join("cra.db-wal"), 0);
    bench
        .wait_until(|snapshot| snapshot.store.problem().is_some())
        .await;
}

#[tokio::test]
async fn commits_of_other_programs_and_large_commits_are_not_reported_as_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let other = rusqlite::Connection::open(folder.path().join("cra.db")).unwrap();
    for n in 0..3000 {
        write(&store, n).await.unwrap();
        let sql = match n % 500 {
            100 => "PRAGMA wal_checkpoint(PASSIVE)",
            200 => "PRAGMA wal_checkpoint(RESTART)",
            300 => "PRAGMA wal_checkpoint(TRUNCATE)",
            400 => "INSERT OR REPLACE INTO state VALUES ('draft', 'x', '{}') RETURNING 1",
            _ => continue,
        };
        other.query_row(sql, [], |_| Ok(())).unwrap();
    }
    let batches = (0..200).map(|n| store.append(super::faults::row(n)));
    for ack in futures_util::future::join_all(batches).await {
        ack.unwrap().await.unwrap();
    }
    assert_eq!(store.state().await.unwrap().len(), 3001);
}

#[tokio::test]
async fn stall_is_not_cleared_by_an_older_snapshot() {
    let store = Arc::new(HangingStore::default());
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
    bench.runtime.watch_store();
    // A picture waits for its batch while the disk runs full.
    store.waits.send_replace(true);
    let pass = tokio::spawn({
        let (operator, gate) = (bench.runtime.operator_handle(), Arc::clone(&held.held[0]));
        async move {
            let answers = super::support::good_answers(&gate);
            let ruling = cra_core::engine::command::Ruling::Pass { answers };
            operator.decide(super::support::decide(&gate, ruling)).await
        }
    });
    while store.waits.receiver_count() == 0 {
        tokio::task::yield_now().await;
    }
    store.full.store(true, Ordering::Relaxed);
    let stalled = |state: &StoreState| matches!(state, StoreState::Stalled { .. });
    bench.wait_until(|snapshot| stalled(&snapshot.store)).await;
    store.waits.send_replace(false);
    pass.await.unwrap();
    let snapshot = bench.wait_until(|snapshot| snapshot.held.is_empty()).await;
    assert!(stalled(&snapshot.store), "{:?}", snapshot.store);
}

#[tokio::test(flavor = "multi_thread")]
async fn quota_is_enforced_within_one_commit_and_stays_exceeded() {
    const QUOTA_BYTES: u64 = 2 << 20;
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let store: Arc<dyn Store> = Arc::new(store.with_quota(Some(QUOTA_BYTES)));
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
    bench.pass(&held.held[0]).await;
    // Nothing looks from time to time: each commit does.
    let asking = (0..8).map(|agent| {
        let agents = bench.runtime.agent_handle();
        tokio::spawn(async move {
            let ticket = format!("{agent} {}", "x".repeat(20_000));
            let ask = || request("s-1", "ticket.get", json!({ "ticket_id": ticket }));
            let mut allowed = 0;
            let denied = loop {
                match agents.request_action(ask()).await {
                    Ok(_) => allowed += 1,
                    Err(denied) => break denied,
                }
                assert!(allowed < 1000, "the quota is not kept");
            };
            assert_eq!(denied.code, DenyCode::Unavailable);
            assert!(denied.reason.contains("its quota is 2 MiB"), "{denied:?}");
            for _ in 0..20 {
                agents.request_action(ask()).await.unwrap_err();
            }
        })
    });
    for pending in asking.collect::<Vec<_>>() {
        pending.await.unwrap();
    }
    let size = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    let used = size("cra.db") + size("cra.db-wal");
    assert!(used < QUOTA_BYTES + (3 << 20) / 2, "{used}");
    assert!(bench.snapshot().store.stall().is_some());
}

#[tokio::test]
async fn ended_stall_is_recorded_with_its_duration() {
    let store = Arc::new(HangingStore::default());
    let time = clock();
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&time)).await;
    bench.runtime.watch_store();
    store.hangs.store(true, Ordering::Relaxed);
    bench
        .wait_until(|snapshot| snapshot.store.stall().is_some())
        .await;
    let since = time.now();
    store.hangs.store(false, Ordering::Relaxed);
    bench
        .wait_until(|snapshot| snapshot.store == StoreState::Ready)
        .await;
    let log = store.log().await.unwrap().log;
    let deadline = Instant::now() + DEADLINE;
    let what = loop {
        let entries = store.events(log.clone(), 0, 100).await.unwrap();
        let reply = entries
            .iter()
            .find(|entry| entry.event_type == "store_recovered");
        if let Some(reply) = reply {
            break reply.payload["what"].to_string();
        }
        assert!(Instant::now() < deadline, "{since}: {entries:?}");
        tokio::task::yield_now().await;
    };
    assert!(
        what.contains("has not finished a write") && what.contains(" seconds"),
        "{what}"
    );
}
