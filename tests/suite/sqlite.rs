//! The SQLite file under adverse conditions: older formats, torn write-ahead logs, and
//! malicious files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader, SqliteStore};
use cra_core::store::{Batch, StateRow, Store};
use cra_core::trace::record::Record;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::support::{Bench, clock, close, open_store_retrying, reopen_store, request};

mod hostile;
mod migration;
mod rows;

fn connect(folder: &Path) -> Connection {
    Connection::open(folder.join(FILE_NAME)).unwrap()
}

/// A store with some sessions, as a console leaves it.
async fn recorded() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(reopen_store(folder.path()));
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    for n in 0..4 {
        let session = format!("s-{n}");
        bench.begin(&session).await;
        let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
        bench.pass(&held).await;
        let get = request(&session, "ticket.get", json!({"ticket_id": "T-1"}));
        bench
            .runtime
            .agent_handle()
            .request_action(get)
            .await
            .unwrap();
    }
    bench.runtime.stop().await;
    close(store, folder.path()).await;
    folder
}

/// The records of the sessions, without those of the log.
fn of_sessions(folder: &Path) -> Vec<Record> {
    let reader = SqliteReader::open(&folder.join(FILE_NAME)).unwrap();
    let log = reader.log().unwrap().log;
    let mut records = reader.records(0, 10_000).unwrap();
    records.retain(|record| record.session != log);
    records
}

#[track_caller]
fn open_error(folder: &Path) -> String {
    match open_store_retrying(folder) {
        Ok(_) => panic!("it opened"),
        Err(error) => error.to_string(),
    }
}

/// Copies a store that is open, with its write-ahead log as it is.
fn snapshot_of(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in [FILE_NAME.to_owned(), format!("{FILE_NAME}-wal")] {
        fs::copy(folder.join(&name), copy.path().join(&name)).unwrap();
    }
    copy
}

fn wal(folder: &Path) -> std::path::PathBuf {
    folder.join(format!("{FILE_NAME}-wal"))
}

fn row(n: u64) -> Batch {
    Batch {
        state: vec![StateRow {
            kind: "usage".to_owned(),
            key: n.to_string(),
            body: Some("{}".to_owned()),
        }],
        ..Batch::default()
    }
}

/// A copy of a store with this many commits in its write-ahead log, and where each ends there.
async fn with_commits(commits: u64) -> (TempDir, Vec<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let store = reopen_store(folder.path());
    let mut ends = Vec::new();
    for n in 0..commits {
        store.append(row(n)).await.unwrap().await.unwrap();
        let length = fs::metadata(wal(folder.path())).unwrap().len();
        ends.push(usize::try_from(length).unwrap());
    }
    (snapshot_of(folder.path()), ends)
}

async fn rows(store: &SqliteStore) -> usize {
    store.state().await.unwrap().len()
}

#[tokio::test]
async fn torn_end_of_the_write_ahead_log_is_reported_and_recorded() {
    let (folder, ends) = with_commits(5).await;
    let whole = fs::read(wal(folder.path())).unwrap();
    let frame = whole.len() - ends[3];
    // All of it, up to the end of the last commit, and into it.
    for (length, expected) in [
        (ends[4], 5),
        (ends[3], 4),
        (ends[4] - 1, 4),
        (ends[3] + frame / 2, 4),
    ] {
        let copy = snapshot_of(folder.path());
        fs::write(wal(copy.path()), &whole[..length]).unwrap();
        let store = Arc::new(reopen_store(copy.path()));
        assert_eq!(rows(&store).await, expected);
        assert_eq!(
            store.log().await.unwrap().repair_note,
            None,
            "less than a page is not even a page"
        );
    }
    // The last commit as a disk leaves it that wrote its parts in another order.
    let copy = snapshot_of(folder.path());
    let mut torn = whole.clone();
    torn[ends[4] - 100] ^= 1;
    fs::write(wal(copy.path()), &torn).unwrap();
    let store = Arc::new(reopen_store(copy.path()));
    assert_eq!(rows(&store).await, 4);
    let mended = store.log().await.unwrap().repair_note.unwrap();
    assert!(mended.contains("an unfinished write of"), "{mended}");
    // The loss is reported once, even if the next process dies at once: the torn part is gone from the file.
    let copy = snapshot_of(copy.path());
    drop(store);
    let store = reopen_store(copy.path());
    assert_eq!(store.log().await.unwrap().repair_note, None);
}

#[tokio::test]
async fn interrupted_write_is_logged_by_the_next_run() {
    let (folder, _) = with_commits(3).await;
    connect(folder.path())
        .execute_batch("DELETE FROM state")
        .unwrap();
    let folder = {
        let store = reopen_store(folder.path());
        store.append(Batch::default()).await.unwrap().await.unwrap();
        let row = StateRow {
            kind: "draft".to_owned(),
            key: "g".to_owned(),
            body: Some("{}".to_owned()),
        };
        let batch = Batch {
            state: vec![row],
            ..Batch::default()
        };
        store.append(batch).await.unwrap().await.unwrap();
        snapshot_of(folder.path())
    };
    let mut torn = fs::read(wal(folder.path())).unwrap();
    let last = torn.len() - 1;
    torn[last] ^= 1;
    fs::write(wal(folder.path()), torn).unwrap();
    let store = Arc::new(reopen_store(folder.path()));
    let mended = store.log().await.unwrap().repair_note.unwrap();
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.runtime.stop().await;
    let log = store.log().await.unwrap().log;
    let entries = store.events(log, 0, 100).await.unwrap();
    let reply = entries
        .iter()
        .find(|entry| entry.event_type == "store_recovered");
    // The store has no word of what the one before had promised.
    let what = format!(
        "{mended}; an older version of cra wrote it, so agents may have got answers for events in that write"
    );
    assert_eq!(reply.unwrap().payload["what"], json!(what));
}

#[tokio::test]
async fn damage_in_the_middle_of_the_write_ahead_log_is_refused() {
    let (folder, ends) = with_commits(6).await;
    let whole = fs::read(wal(folder.path())).unwrap();
    for commit in 0..4 {
        let copy = snapshot_of(folder.path());
        let mut damaged = whole.clone();
        damaged[ends[commit] - 7] ^= 4;
        fs::write(wal(copy.path()), &damaged).unwrap();
        let reply = open_error(copy.path());
        let lost = format!("at least {} acknowledged commits", 5 - commit);
        assert!(reply.contains(&lost), "{reply}");
        // Nothing was changed: with the damage undone, all of it is there.
        assert_eq!(fs::read(wal(copy.path())).unwrap(), damaged);
        fs::write(wal(copy.path()), &whole).unwrap();
        assert_eq!(rows(&reopen_store(copy.path())).await, 6);
    }
}

#[tokio::test]
async fn stale_wal_frames_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let store = reopen_store(folder.path());
    for n in 0..6 {
        store.append(row(n)).await.unwrap().await.unwrap();
    }
    let other = connect(folder.path());
    let restarted = other.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| {
        row.get::<_, i64>(0)
    });
    assert_eq!(restarted.unwrap(), 0);
    drop(other);
    let before = fs::metadata(wal(folder.path())).unwrap().len();
    store.append(row(6)).await.unwrap().await.unwrap();
    assert_eq!(
        fs::metadata(wal(folder.path())).unwrap().len(),
        before,
        "old frames lie behind"
    );
    let copy = snapshot_of(folder.path());
    let opened = reopen_store(copy.path());
    assert_eq!(opened.log().await.unwrap().repair_note, None);
    assert_eq!(rows(&opened).await, 7);
}
