//! The SQLite file: what goes in comes back, and what is not ours is left alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader, SqliteStore};
use cra_core::store::{Batch, StateRow, Store, StoreError};
use cra_core::trace::head::LogHead;
use cra_core::trace::note::Signer;
use cra_core::trace::verification::{TrustAnchors, VerificationReport};
use rusqlite::Connection;
use serde_json::json;

use super::support::{Bench, SPLIT_ROWS, clock, request};

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
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    bench.pass(&snapshot.held[0]).await;
    let get = request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    bench
        .runtime
        .agent_handle()
        .request_action(get)
        .await
        .unwrap();
    bench.runtime.stop().await;
}

fn reader(folder: &std::path::Path) -> SqliteReader {
    SqliteReader::open(&folder.join(FILE_NAME)).unwrap()
}

/// Verification of the record with the public key.
fn verified(folder: &std::path::Path) -> VerificationReport {
    let reader = reader(folder);
    let log = reader.log().unwrap().log;
    let signer = Signer::new(&LogHead::origin(&log), &[7; 32]).unwrap();
    reader
        .verify(TrustAnchors::nothing().with_key(signer.verifier()))
        .unwrap()
}

fn edit(folder: &std::path::Path, sql: &str) {
    let connection = Connection::open(folder.join(FILE_NAME)).unwrap();
    connection.execute_batch(SPLIT_ROWS).unwrap();
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
    let report = verified(folder.path());
    let last = sessions[0].events - 1;
    assert_eq!(
        report.chains[0].verdict.to_string(),
        format!("SEALED 0..{last}")
    );
    // The window moves without reading the rest.
    let window = reader.events(&sessions[0].session, 2, 2).unwrap();
    assert_eq!(window, events[2..4]);
}

#[tokio::test]
async fn tampering_with_the_file_is_found() {
    let session = "session = (SELECT number FROM sessions WHERE session_id = 's-1')";
    let of_session = |sql: &str| format!("{sql} WHERE {session}");
    let cases = [
        (
            "UPDATE events SET records = replace(records, 'op-1', 'op-2')".to_owned(),
            "BROKEN at 2",
        ),
        (of_session("DELETE FROM events") + " AND sequence = 3", "BROKEN at 3"),
        (
            of_session("DELETE FROM events")
                + " AND sequence = (SELECT max(sequence) FROM events WHERE session <> 1)",
            "TRUNCATED",
        ),
        (of_session("DELETE FROM events"), "TRUNCATED"),
        ("DELETE FROM sessions".to_owned(), "TRUNCATED: 0 of"),
        (
            "UPDATE events SET records = replace(records, '2026-01-01T', '2025-01-01T') WHERE sequence = 1"
                .to_owned(),
            "BROKEN at 1",
        ),
        (
            "UPDATE sessions SET session_id = 'other' WHERE session_id = 's-1'".to_owned(),
            "BROKEN at 0: is listed under another session",
        ),
        (
            of_session("UPDATE events SET sequence = sequence + 1000"),
            "BROKEN at 0: is listed under another sequence",
        ),
        (
            of_session("UPDATE events SET records = 'x'") + " AND sequence = 0",
            "BROKEN at 0",
        ),
        ("UPDATE sessions SET hash = zeroblob(32)".to_owned(), "BROKEN"),
        ("UPDATE events SET hashes = zeroblob(32) WHERE sequence = 2".to_owned(), "BROKEN at 2"),
        ("UPDATE events SET hashes = zeroblob(31) WHERE sequence = 2".to_owned(), "BROKEN at 2"),
        // The listed owner of a session: a session must not be attributed to another agent.
        ("UPDATE sessions SET agent = 'other'".to_owned(), "BROKEN"),
        ("UPDATE sessions SET ended = 1".to_owned(), "BROKEN"),
        (
            "UPDATE sessions SET started_at = '2020-01-01T00:00:00.000000Z'".to_owned(),
            "BROKEN",
        ),
        (
            "UPDATE sessions SET last_at = '2030-01-01T00:00:00.000000Z'".to_owned(),
            "BROKEN",
        ),
        // Rows where no chain would look for them.
        (
            "INSERT INTO events SELECT -1, session, -1, records, hashes FROM events LIMIT 1".to_owned(),
            "BROKEN",
        ),
        (
            "INSERT INTO events SELECT 1000000, session, 1000, records, hashes FROM events LIMIT 1"
                .to_owned(),
            "BROKEN",
        ),
        ("DELETE FROM seals".to_owned(), "DIVERGED"),
        ("UPDATE seals SET note = 'x'".to_owned(), "BROKEN"),
        ("UPDATE seals SET size = size + 1000".to_owned(), "BROKEN"),
        ("UPDATE log SET log_id = 'log-other'".to_owned(), "DIVERGED"),
    ];
    for (sql, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        with_record(folder.path()).await;
        edit(folder.path(), &sql);
        let report = verified(folder.path());
        let log = report.log.iter().map(|log| log.verdict.to_string());
        let reply = report.chains.iter().map(|one| one.verdict.to_string());
        let reply: Vec<_> = reply.chain(log).collect();
        assert!(
            reply.iter().any(|reply| reply.starts_with(expected)),
            "{sql}: {reply:?}"
        );
    }
}

#[test]
fn store_file_is_readable_by_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("new");
    let store = SqliteStore::open(&inner).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    // The files that SQLite creates next to it as well.
    for ending in ["", "-wal", "-shm"] {
        let path = inner.join(format!("{FILE_NAME}{ending}"));
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!(mode(&inner.join("cra.lock")), 0o600);
    drop(store);
}

#[test]
fn second_console_is_refused_and_the_owner_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let first = SqliteStore::open(folder.path()).unwrap();
    let reply = error(SqliteStore::open(folder.path())).to_string();
    assert!(reply.contains("in use by another console"), "{reply}");
    assert!(reply.contains(&std::process::id().to_string()), "{reply}");
    drop(first);
    SqliteStore::open(folder.path()).unwrap();
}

#[test]
fn store_of_another_version_is_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(folder.path()).unwrap());
    edit(folder.path(), "PRAGMA user_version = 99");
    let before = fs::read(folder.path().join(FILE_NAME)).unwrap();
    let refused = error(SqliteStore::open(folder.path()));
    assert!(
        matches!(refused, StoreError::Version { found: 99, .. }),
        "{refused}"
    );
    assert!(SqliteReader::open(&folder.path().join(FILE_NAME)).is_err());
    assert_eq!(fs::read(folder.path().join(FILE_NAME)).unwrap(), before);
}

#[test]
fn files_that_are_not_a_store_are_left_unchanged() {
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
async fn corrupted_store_yields_an_error_or_a_verdict_never_a_panic() {
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
        let sound = SqliteReader::open(&path)
            .and_then(|reader| {
                // A fault that is not found in the record itself must be found in the chain.
                reader.sessions()?;
                let report = reader.verify(TrustAnchors::nothing())?;
                Ok(report.chains.len() == 1 && report.is_sound())
            })
            .unwrap_or(false);
        if sound {
            // The damage lies where nothing is kept, or in an index or state that the record does
            // not rest on: then the record itself must be whole.
            let reader = SqliteReader::open(&path).unwrap();
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
        state: vec![StateRow {
            kind: "held".to_owned(),
            key: key.to_owned(),
            body: body.map(str::to_owned),
        }],
        ..Batch::default()
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
    bench.wait_until(|s| s.held.len() == 1).await;
    // Another writer takes the next sequence number: the insert fails, as a broken disk would.
    edit(
        folder.path(),
        "INSERT INTO events SELECT 1000000, number, 2, 'x', hash FROM sessions
         WHERE session_id = 's-1'",
    );
    let held = bench.snapshot().held[0].clone();
    let reply = bench.pass(&held).await;
    let response = format!("{reply:?}");
    assert!(response.contains("no longer accepts records"), "{response}");
    let snapshot = bench
        .wait_until(|s| s.store != cra_core::runtime::snapshot::StoreState::Ready)
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
        .agent_handle()
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
async fn verification_while_a_console_writes_raises_no_false_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let bench = Bench::start(store, clock()).await;
    for n in 0..20 {
        bench.begin(&format!("s-{n}")).await;
    }
    let agents = bench.runtime.agent_handle();
    let writing = tokio::spawn(async move {
        // A run that was never allowed: each report of it is one record.
        for n in 0..1500 {
            let end = cra_core::engine::command::ActionCompletion {
                delivery: cra_core::engine::command::DeliveryTime::Now,
                session: format!("s-{}", n % 20).parse().unwrap(),
                execution: "never".parse().unwrap(),
                result: Ok(String::new()),
            };
            let _ = agents.complete_action(end).await;
        }
    });
    let path = folder.path().join(FILE_NAME);
    let verifying = tokio::task::spawn_blocking(move || {
        let reader = SqliteReader::open(&path).unwrap();
        while !writing.is_finished() {
            let report = reader.verify(TrustAnchors::nothing()).unwrap();
            assert!(report.is_sound(), "{report:?}");
        }
    });
    verifying.await.unwrap();
}

#[tokio::test]
async fn closed_store_has_written_every_accepted_batch() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    for n in 0..200 {
        let row = StateRow {
            kind: "held".to_owned(),
            key: format!("c-{n}"),
            body: Some("{}".to_owned()),
        };
        let batch = Batch {
            state: vec![row],
            ..Batch::default()
        };
        // The caller does not wait until it is durable.
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
        delivery: cra_core::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        status: cra_core::engine::command::FinalStatus::Completed,
        summary: None,
    };
    bench.runtime.agent_handle().end_session(end).await.unwrap();
    let reader = reader(folder.path());
    assert!(reader.sessions().unwrap()[0].ended);
    bench.runtime.stop().await;
    let report = verified(folder.path());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.chains[0].verdict.label(), "SEALED");
}

#[tokio::test]
async fn store_with_a_failed_write_accepts_no_more_batches() {
    let folder = tempfile::tempdir().unwrap();
    with_record(folder.path()).await;
    let store = SqliteStore::open(folder.path()).unwrap();
    // A record that is there already.
    let records = store.records(0, 1).await.unwrap();
    let twice = store.append(Batch::of(records)).await.unwrap().await;
    assert!(matches!(twice, Err(StoreError::Poisoned(_))));
    let fine = Batch {
        state: vec![StateRow {
            kind: "held".to_owned(),
            key: "c-9".to_owned(),
            body: Some("{}".to_owned()),
        }],
        ..Batch::default()
    };
    let after = store.append(fine).await.unwrap().await;
    assert_eq!(after, twice);
    let kept = store.state().await.unwrap();
    assert!(kept.iter().all(|row| row.key != "c-9"));
}
