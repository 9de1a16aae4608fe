//! Files of the first format.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cra_core::store::sqlite::{FILE_NAME, SqliteReader};
use cra_core::store::{Store, StoreError};
use cra_core::trace::record::Record;
use cra_core::trace::verification::TrustAnchors;
use rusqlite::params;
use tempfile::TempDir;

use super::{connect, of_sessions, open_error, recorded, snapshot_of, wal};
use crate::support::{Bench, clock, reopen_store, signer};

/// The tables of format 1, as they were.
const FIRST_FORMAT: &str = include_str!("../../data/format-1.sql");

/// A file of format 1 with the same sessions.
fn first_format(records: &[Record]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut store = connect(folder.path());
    store.pragma_update(None, "journal_mode", "WAL").unwrap();
    store.execute_batch(FIRST_FORMAT).unwrap();
    let change = store.transaction().unwrap();
    for (position, record) in (0_i64..).zip(records) {
        let envelope = record.envelope().unwrap();
        let parent = Some(envelope.parent_span_id).filter(|parent| !parent.is_empty());
        let insert =
            "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
        change
            .execute(
                insert,
                params![
                    position,
                    envelope.trace_version,
                    envelope.event_id,
                    envelope.trace_id,
                    envelope.span_id,
                    parent,
                    envelope.session_id,
                    envelope.sequence.cast_signed(),
                    envelope.timestamp,
                    envelope.event_type,
                    envelope.payload,
                    envelope.previous_hash,
                    record.hash.to_string(),
                ],
            )
            .unwrap();
        let head = "INSERT INTO heads VALUES (?1, ?2, ?3, 'bot', ?4, ?4, 0)
                    ON CONFLICT DO UPDATE SET count = ?2, hash = ?3, last_at = ?4";
        let (count, hash) = (record.sequence.cast_signed() + 1, record.hash.to_string());
        let head = change.execute(
            head,
            params![envelope.session_id, count, hash, envelope.timestamp],
        );
        head.unwrap();
    }
    change.commit().unwrap();
    drop(store);
    folder
}

#[tokio::test]
async fn store_of_the_first_format_is_migrated_completely() {
    let records = of_sessions(recorded().await.path());
    let folder = first_format(&records);
    let reply = SqliteReader::open(&folder.path().join(FILE_NAME)).unwrap_err();
    assert!(
        matches!(reply, StoreError::Version { found: 1, .. }),
        "{reply}"
    );

    let store = Arc::new(reopen_store(folder.path()));
    let mended = store.log().await.unwrap().repair_note.unwrap();
    let expected = format!("from format 1 to format 3: {} events moved", records.len());
    assert!(mended.contains(&expected), "{mended}");
    assert_eq!(of_sessions(folder.path()), records);
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.runtime.stop().await;
    let key = signer(store.as_ref()).await.verifier();
    let report = store
        .verify(TrustAnchors::nothing().with_key(key))
        .await
        .unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(
        report
            .chains
            .iter()
            .all(|chain| chain.verdict.label() == "SEALED")
    );
    let log = store.events(report.log.unwrap().log, 0, 100).await.unwrap();
    let reply = log
        .iter()
        .find(|entry| entry.event_type == "store_recovered");
    let reply = reply.unwrap().payload["what"].as_str().unwrap().to_owned();
    assert!(reply.starts_with(&mended), "{reply}");
    let unsigned = format!("{} older events, which are not signed", records.len());
    assert!(reply.ends_with(&unsigned), "{reply}");
    drop(store);
    // Once is enough.
    let store = reopen_store(folder.path());
    assert_eq!(store.log().await.unwrap().repair_note, None);
}

#[tokio::test]
async fn inconsistent_store_of_the_first_format_is_left_unchanged() {
    let records = of_sessions(recorded().await.path());
    for sql in [
        "UPDATE heads SET count = count + 1 WHERE session_id = 's-1'",
        "UPDATE heads SET hash = replace(hash, '0', '1') WHERE session_id = 's-1'",
        "DELETE FROM heads WHERE session_id = 's-1'",
        "DELETE FROM events WHERE session_id = 's-1'",
        "DELETE FROM events WHERE position = (SELECT max(position) FROM events)",
        // A head that is missing does not make up for one that is wrong.
        "DELETE FROM heads WHERE session_id = 's-1';
         DELETE FROM events WHERE position = (SELECT max(position) FROM events)",
        "DELETE FROM heads WHERE session_id = 's-1'; INSERT INTO heads SELECT 's-9', count, hash,
         agent, started_at, last_at, ended FROM heads WHERE session_id = 's-2'",
        "UPDATE events SET payload = '{ }' WHERE position = 3",
        "UPDATE events SET sequence = -1 WHERE position = 3",
        "UPDATE events SET hash = 'x' WHERE position = 3",
        "DROP TABLE heads",
        "DROP TABLE events",
        "CREATE TRIGGER harm AFTER INSERT ON state BEGIN DELETE FROM state; END",
        "CREATE TABLE seals (one INTEGER)",
    ] {
        let folder = first_format(&records);
        connect(folder.path()).execute_batch(sql).unwrap();
        let state = |folder: &Path| {
            let store = connect(folder);
            let one = |sql: &str| store.query_row(sql, [], |row| row.get::<_, i64>(0));
            let version = one("PRAGMA user_version").unwrap();
            (
                version,
                one("SELECT count(*) FROM events"),
                one("SELECT count(*) FROM sqlite_schema"),
            )
        };
        let before = state(folder.path());
        assert_eq!(before.0, 1);
        let reply = open_error(folder.path());
        assert!(reply.contains("damaged"), "{sql}: {reply}");
        assert_eq!(state(folder.path()), before, "{sql}");
    }
}

/// A fault within a chain is kept by the migration, and is found as before.
#[tokio::test]
async fn migration_repairs_no_broken_chain() {
    let records = of_sessions(recorded().await.path());
    for sql in [
        "DELETE FROM events WHERE session_id = 's-1' AND sequence = 1",
        "UPDATE events SET payload = replace(payload, 'op-1', 'op-2') WHERE session_id = 's-1'",
        "UPDATE events SET timestamp = replace(timestamp, '2026', '2025') WHERE session_id = 's-1' AND sequence = 2",
    ] {
        let folder = first_format(&records);
        connect(folder.path()).execute_batch(sql).unwrap();
        let store = reopen_store(folder.path());
        let report = store.verify(TrustAnchors::nothing()).await.unwrap();
        let (session, fault) = report.first_fault().unwrap();
        assert_eq!(
            (session.as_str(), fault.label()),
            ("s-1", "BROKEN"),
            "{sql}"
        );
    }
}

#[tokio::test]
async fn interrupted_migration_changes_nothing() {
    let records = of_sessions(recorded().await.path());
    let folder = first_format(&records);
    let store = reopen_store(folder.path());
    let moved = snapshot_of(folder.path());
    drop(store);
    let whole = fs::read(wal(moved.path())).unwrap();
    assert!(whole.len() > 50_000, "{}", whole.len());
    for part in 0..=10 {
        let copy = snapshot_of(moved.path());
        fs::write(wal(copy.path()), &whole[..whole.len() * part / 10]).unwrap();
        let store = reopen_store(copy.path());
        let mended = store.log().await.unwrap().repair_note;
        let again = mended.is_some_and(|what| what.contains("from format 1"));
        assert_eq!(again, part < 10, "{part}");
        assert_eq!(of_sessions(copy.path()), records, "{part}");
    }
}
