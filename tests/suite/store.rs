//! The SQLite file: what goes in comes back, and what is not ours is left alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use cra_core::store::sqlite::{FILE_NAME, Reader, SqliteStore};
use cra_core::store::{Batch, StateRow, Store, StoreError};
use cra_core::trace::verify::Verdict;
use rusqlite::Connection;
use serde_json::json;

use super::support::{Bench, clock, request};

fn error(result: Result<SqliteStore, StoreError>) -> StoreError {
    match result {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

/// A store with the record of one passed gate.
async fn with_record(folder: &std::path::Path) {
    let store = Arc::new(SqliteStore::open(folder).unwrap());
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let snapshot = bench.until(|s| s.held.len() == 1).await;
    bench.pass(&snapshot.held[0]).await;
    let get = request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    bench.runtime.agents().request_action(get).await.unwrap();
    bench.runtime.stop().await;
}

fn reader(folder: &std::path::Path) -> Reader {
    Reader::open(&folder.join(FILE_NAME)).unwrap()
}

fn edit(folder: &std::path::Path, sql: &str) {
    let connection = Connection::open(folder.join(FILE_NAME)).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[tokio::test]
async fn a_record_verifies_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    with_record(folder.path()).await;
    let reader = reader(folder.path());
    let sessions = reader.sessions().unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!(
        (sessions[0].agent.as_str(), sessions[0].ended),
        ("bot", false)
    );
    let events = reader.events(&sessions[0].session, 0, 100).unwrap();
    assert_eq!(events.len() as u64, sessions[0].events);
    let checked = reader.verify().unwrap();
    assert_eq!(
        checked[0].verdict,
        Verdict::Verified {
            last: sessions[0].events - 1
        }
    );
    // The window moves without reading the rest.
    let window = reader.events(&sessions[0].session, 2, 2).unwrap();
    assert_eq!(window, events[2..4]);
}

#[tokio::test]
async fn tampering_with_the_file_is_found() {
    let cases = [
        (
            "UPDATE events SET payload = replace(payload, 'op-1', 'op-2')",
            "BROKEN at 2",
        ),
        ("DELETE FROM events WHERE sequence = 3", "BROKEN at 3"),
        (
            "DELETE FROM events WHERE sequence = (SELECT max(sequence) FROM events)",
            "TRUNCATED",
        ),
        ("DELETE FROM events", "TRUNCATED"),
        (
            "DELETE FROM heads",
            "BROKEN at 0: nothing was ever acknowledged",
        ),
        (
            "UPDATE events SET timestamp = '2026-01-01' WHERE sequence = 1",
            "BROKEN at 1",
        ),
        (
            "UPDATE events SET session_id = 'a:b' WHERE sequence = 1",
            "BROKEN",
        ),
        (
            "UPDATE events SET payload = '[1]' WHERE sequence = 0",
            "BROKEN at 0",
        ),
        (
            "UPDATE heads SET hash = replace(hash, substr(hash, 1, 1), 'f')",
            "BROKEN",
        ),
        // What is only listed about a session: nobody may be blamed for another's session.
        ("UPDATE heads SET agent = 'other'", "BROKEN"),
        ("UPDATE heads SET ended = 1", "BROKEN"),
        (
            "UPDATE heads SET started_at = '2020-01-01T00:00:00.000000Z'",
            "BROKEN",
        ),
        (
            "UPDATE heads SET last_at = '2030-01-01T00:00:00.000000Z'",
            "BROKEN",
        ),
        // Rows where no chain would look for them.
        (
            "INSERT INTO events SELECT NULL, trace_version, 'other', trace_id, span_id,
             parent_span_id, session_id, -1, timestamp, event_type, payload, previous_hash, hash
             FROM events LIMIT 1",
            "BROKEN",
        ),
    ];
    for (sql, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        with_record(folder.path()).await;
        edit(folder.path(), sql);
        let checked = reader(folder.path()).verify().unwrap();
        let told: Vec<_> = checked.iter().map(|c| c.verdict.to_string()).collect();
        assert!(
            told.iter().any(|told| told.starts_with(expected)),
            "{sql}: {told:?}"
        );
    }
}

#[test]
fn the_file_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("new");
    let store = SqliteStore::open(&inner).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    // Those that SQLite makes beside it as well.
    for ending in ["", "-wal", "-shm"] {
        let path = inner.join(format!("{FILE_NAME}{ending}"));
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!(mode(&inner.join("cra.lock")), 0o600);
    drop(store);
}

#[test]
fn a_second_console_is_refused_and_told_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = SqliteStore::open(folder.path()).unwrap();
    let told = error(SqliteStore::open(folder.path())).to_string();
    assert!(told.contains("in use by another console"), "{told}");
    assert!(told.contains(&std::process::id().to_string()), "{told}");
    drop(first);
    SqliteStore::open(folder.path()).unwrap();
}

#[test]
fn a_store_of_another_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(folder.path()).unwrap());
    edit(folder.path(), "PRAGMA user_version = 99");
    let before = fs::read(folder.path().join(FILE_NAME)).unwrap();
    let refused = error(SqliteStore::open(folder.path()));
    assert!(
        matches!(refused, StoreError::Version { found: 99, .. }),
        "{refused}"
    );
    assert!(Reader::open(&folder.path().join(FILE_NAME)).is_err());
    assert_eq!(fs::read(folder.path().join(FILE_NAME)).unwrap(), before);
}

#[test]
fn files_that_are_no_store_are_left_alone() {
    let foreign: [(&str, &[u8]); 2] = [
        (
            "text",
            b"this is not a database, but it is somebody's file\n",
        ),
        (
            "almost",
            b"SQLite format 3\0garbage that follows the magic words and goes on for a while",
        ),
    ];
    for (name, bytes) in foreign {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        fs::write(&path, bytes).unwrap();
        let refused = error(SqliteStore::open(folder.path()));
        assert!(
            matches!(
                refused,
                StoreError::Foreign { .. } | StoreError::Damaged { .. }
            ),
            "{name}: {refused:?}"
        );
        assert_eq!(fs::read(&path).unwrap(), bytes, "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let other = Connection::open(folder.path().join(FILE_NAME)).unwrap();
    other.execute_batch("CREATE TABLE theirs (x)").unwrap();
    assert!(matches!(
        error(SqliteStore::open(folder.path())),
        StoreError::Foreign { .. }
    ));
}

#[tokio::test]
async fn a_corrupted_store_gives_an_error_or_a_verdict_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    with_record(folder.path()).await;
    let path = folder.path().join(FILE_NAME);
    let whole = fs::read(&path).unwrap();
    for place in (0..whole.len()).step_by(whole.len() / 97) {
        let mut bytes = whole.clone();
        for byte in bytes.iter_mut().skip(place).take(64) {
            *byte = !*byte;
        }
        fs::write(&path, &bytes).unwrap();
        let sound = Reader::open(&path)
            .and_then(|reader| {
                // Whatever is not found in the record itself must be found in the chain.
                reader.sessions()?;
                let checked = reader.verify()?;
                Ok(checked.len() == 1 && checked.iter().all(|c| c.verdict.is_sound()))
            })
            .unwrap_or(false);
        if sound {
            // The damage lies where nothing is kept, or in an index or state that the record does
            // not rest on: then the record itself must be whole.
            let reader = Reader::open(&path).unwrap();
            let sessions = reader.sessions().unwrap();
            let events = reader.events(&sessions[0].session, 0, 1000).unwrap();
            assert_eq!(events.len() as u64, sessions[0].events, "at {place}");
        }
    }
}

#[tokio::test]
async fn batches_are_whole_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let put = |key: &str, body: Option<&str>| Batch {
        events: vec![],
        state: vec![StateRow {
            kind: "held".to_owned(),
            key: key.to_owned(),
            body: body.map(str::to_owned),
        }],
    };
    let mut acks = Vec::new();
    for (key, body) in [
        ("a", Some("1")),
        ("b", Some("2")),
        ("a", Some("3")),
        ("b", None),
    ] {
        acks.push(store.append(put(key, body)).await.unwrap());
    }
    for ack in acks {
        ack.await.unwrap();
    }
    let rows = store.state().await.unwrap();
    assert_eq!(rows, put("a", Some("3")).state);
}

#[tokio::test]
async fn a_failed_write_poisons_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let clock = clock();
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    bench.until(|s| s.held.len() == 1).await;
    // Another writer takes the next sequence number: the insert fails, as a broken disk would.
    edit(
        folder.path(),
        "INSERT INTO events SELECT NULL, trace_version, 'other', trace_id, span_id, parent_span_id,
         session_id, 2, timestamp, event_type, payload, previous_hash, hash FROM events LIMIT 1",
    );
    let held = bench.snapshot().held[0].clone();
    let reply = bench.pass(&held).await;
    let told = format!("{reply:?}");
    assert!(told.contains("no longer takes records"), "{told}");
    let snapshot = bench
        .until(|s| s.store != cra_core::runtime::snapshot::StoreState::Ready)
        .await;
    assert_eq!(
        snapshot.held.len(),
        1,
        "what failed is not shown as decided"
    );
    assert!(snapshot.decided.is_empty());
    let get = request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    let denied = bench
        .runtime
        .agents()
        .request_action(get)
        .await
        .unwrap_err();
    assert!(
        denied.reason.starts_with("nothing can be recorded"),
        "{}",
        denied.reason
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn verifying_while_a_console_writes_is_no_false_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let bench = Bench::start(store, clock()).await;
    for n in 0..20 {
        bench.begin(&format!("s-{n}")).await;
    }
    let agents = bench.runtime.agents();
    let writing = tokio::spawn(async move {
        // A run that was never allowed: each report of it is one record.
        for n in 0..1500 {
            let end = cra_core::engine::command::ActionCompleted {
                session: format!("s-{}", n % 20).parse().unwrap(),
                execution: "never".parse().unwrap(),
                result: Ok(String::new()),
            };
            let _ = agents.complete_action(end).await;
        }
    });
    let path = folder.path().join(FILE_NAME);
    let verifying = tokio::task::spawn_blocking(move || {
        let reader = Reader::open(&path).unwrap();
        while !writing.is_finished() {
            for checked in reader.verify().unwrap() {
                assert!(checked.verdict.is_sound(), "{checked:?}");
            }
        }
    });
    verifying.await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_closed_has_written_everything_it_was_handed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    for n in 0..200 {
        let row = StateRow {
            kind: "held".to_owned(),
            key: format!("c-{n}"),
            body: Some("{}".to_owned()),
        };
        let batch = Batch {
            events: vec![],
            state: vec![row],
        };
        // Nobody waits for it to be durable.
        drop(store.append(batch).await.unwrap());
    }
    drop(store);
    let wal = folder.path().join(format!("{FILE_NAME}-wal"));
    assert!(!wal.exists(), "the writer still has the file open");
    assert_eq!(reader(folder.path()).state().unwrap().len(), 200);
}

#[tokio::test]
async fn a_session_that_ended_is_listed_as_ended_and_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let end = cra_core::engine::command::EndSession {
        session: "s-1".parse().unwrap(),
        status: cra_core::engine::command::FinalStatus::Completed,
        summary: None,
    };
    bench.runtime.agents().end_session(end).await.unwrap();
    let reader = reader(folder.path());
    assert!(reader.sessions().unwrap()[0].ended);
    let checked = reader.verify().unwrap();
    assert!(matches!(checked[0].verdict, Verdict::Verified { .. }));
}

#[tokio::test]
async fn a_store_whose_write_failed_takes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    with_record(folder.path()).await;
    let store = SqliteStore::open(folder.path()).unwrap();
    let session = "s-1".parse().unwrap();
    // An event that is there already.
    let events = store.events(session, 0, 1).await.unwrap();
    let state = vec![];
    let twice = store.append(Batch { events, state }).await.unwrap().await;
    assert!(matches!(twice, Err(StoreError::Poisoned { .. })));
    let fine = Batch {
        events: vec![],
        state: vec![StateRow {
            kind: "held".to_owned(),
            key: "c-9".to_owned(),
            body: Some("{}".to_owned()),
        }],
    };
    let after = store.append(fine).await.unwrap().await;
    assert_eq!(after, twice);
    let kept = store.state().await.unwrap();
    assert!(kept.iter().all(|row| row.key != "c-9"));
}
