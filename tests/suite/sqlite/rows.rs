//! Events share rows. Readers of a store must not notice.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cra_core::base::id::SessionId;
use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader};
use cra_core::store::{LogState, Store};
use cra_core::trace::record::Record;
use cra_core::trace::verification::TrustAnchors;
use rusqlite::params;
use tempfile::TempDir;

use super::{connect, of_sessions, open_error, recorded};
use crate::support::{Bench, SPLIT_ROWS, clock, reopen_store, signer};

/// The tables of format 2, as they were.
const SECOND_FORMAT: &str = include_str!("../../data/format-2.sql");

fn reader(folder: &Path) -> SqliteReader {
    SqliteReader::open(&folder.join(FILE_NAME)).unwrap()
}

fn copy_of(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    fs::copy(folder.join(FILE_NAME), copy.path().join(FILE_NAME)).unwrap();
    copy
}

fn is_sound(folder: &Path) -> bool {
    let report = reader(folder).verify(TrustAnchors::nothing());
    report.is_ok_and(|report| report.is_sound())
}

fn number(folder: &Path, query: &str) -> usize {
    let found = connect(folder).query_row(query, [], |row| row.get::<_, i64>(0));
    usize::try_from(found.unwrap()).unwrap()
}

#[tokio::test]
async fn every_window_shows_the_same_events_for_any_row_size() {
    let folder = recorded().await;
    let reader = reader(folder.path());
    let all = reader.records(0, 10_000).unwrap();
    let rows = number(folder.path(), "SELECT count(*) FROM events");
    assert!(rows * 2 < all.len(), "{rows} rows for {} events", all.len());
    let session: SessionId = "s-1".parse().unwrap();
    let own: Vec<Record> = all
        .iter()
        .filter(|entry| entry.session == session)
        .cloned()
        .collect();
    let hashes: Vec<_> = own.iter().map(|value| value.hash).collect();
    assert_eq!(reader.hashes(&session).unwrap(), hashes);
    let window = |records: &[Record], from: usize, limit: usize| {
        let window = records.iter().skip(from).take(limit);
        window.cloned().collect::<Vec<_>>()
    };
    for from in 0..all.len() + 2 {
        for limit in [0, 1, 2, 3, 7, 10_000] {
            let read = reader.records(from as u64, limit).unwrap();
            assert_eq!(read, window(&all, from, limit), "{from} {limit}");
            let read = reader.session_records(&session, from as u64, limit);
            assert_eq!(read.unwrap(), window(&own, from, limit), "{from} {limit}");
        }
    }
    // And with a row for each of them.
    let apart = copy_of(folder.path());
    connect(apart.path()).execute_batch(SPLIT_ROWS).unwrap();
    let apart = self::reader(apart.path());
    assert_eq!(apart.records(0, 10_000).unwrap(), all);
    assert_eq!(apart.session_records(&session, 2, 3).unwrap(), own[2..5]);
    assert_eq!(log_of(&apart), log_of(&reader));
    assert_eq!(
        apart.verify(TrustAnchors::nothing()).unwrap(),
        reader.verify(TrustAnchors::nothing()).unwrap()
    );
}

#[tokio::test]
async fn sqlite_view_shows_every_event_in_its_own_row() {
    let folder = recorded().await;
    let records = reader(folder.path()).records(0, 10_000).unwrap();
    let store = connect(folder.path());
    let mut shown = store
        .prepare("SELECT session_id, sequence, envelope || payload || ':' || previous_hash, hash FROM trace")
        .unwrap();
    let shown = shown.query_map([], |row| {
        let sequence: i64 = row.get(1)?;
        Ok((
            row.get(0)?,
            sequence.cast_unsigned(),
            row.get(2)?,
            row.get(3)?,
        ))
    });
    let shown: Vec<(String, u64, String, String)> = shown.unwrap().map(Result::unwrap).collect();
    let expected = records.into_iter().map(|record| {
        let (session, hash) = (record.session.to_string(), record.hash.to_string());
        (session, record.sequence, record.text, hash)
    });
    assert_eq!(shown, expected.collect::<Vec<_>>());
}

/// Changes of an insider within a row, without new hashes.
#[tokio::test]
async fn lines_of_a_row_cannot_be_moved_dropped_duplicated_or_added() {
    let folder = recorded().await;
    assert!(is_sound(folder.path()));
    let (position, lines, hashes): (i64, String, Vec<u8>) = connect(folder.path())
        .query_row(
            "SELECT position, records, hashes FROM events
             WHERE session = (SELECT number FROM sessions WHERE session_id = 's-1')
             ORDER BY length(hashes) DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    let texts: Vec<&str> = lines.split('\n').collect();
    let hashes = hashes.as_chunks::<32>().0;
    let mut attacks: Vec<(Vec<&str>, Vec<[u8; 32]>)> = Vec::new();
    let change = |texts: &mut Vec<&str>, hashes: &mut Vec<[u8; 32]>, kind: usize| match kind {
        0 => texts.swap(0, 1),
        1 => hashes.swap(0, 1),
        2 => {
            texts.swap(1, 2);
            hashes.swap(1, 2);
        }
        3 => drop(texts.remove(1)),
        4 => drop(hashes.remove(1)),
        5 => {
            texts.remove(1);
            hashes.remove(1);
        }
        6 => {
            texts.pop();
            hashes.pop();
        }
        7 => texts.push(""),
        8 => texts.insert(0, ""),
        9 => hashes.push([0; 32]),
        10 => {
            texts.push("");
            hashes.push([0; 32]);
        }
        _ => {
            texts.insert(1, texts[1]);
            hashes.insert(1, hashes[1]);
        }
    };
    for kind in 0..12 {
        let (mut texts, mut hashes) = (texts.clone(), hashes.to_vec());
        change(&mut texts, &mut hashes, kind);
        attacks.push((texts, hashes));
    }
    for (kind, (texts, hashes)) in attacks.iter().enumerate() {
        let copy = copy_of(folder.path());
        let update = "UPDATE events SET records = ?2, hashes = ?3 WHERE position = ?1";
        let changed = connect(copy.path()).execute(
            update,
            params![position, texts.join("\n"), hashes.as_flattened()],
        );
        assert_eq!(changed, Ok(1));
        assert!(!is_sound(copy.path()), "{kind}");
    }
    // Its hashes are more than whole ones.
    let copy = copy_of(folder.path());
    let more = "UPDATE events SET hashes = CAST(hashes || x'00' AS BLOB)";
    connect(copy.path()).execute_batch(more).unwrap();
    assert!(!is_sound(copy.path()));
}

/// A file of format 2 with the same content.
fn second_format(folder: &Path) -> TempDir {
    let older = tempfile::tempdir().unwrap();
    let store = connect(older.path());
    store.pragma_update(None, "journal_mode", "WAL").unwrap();
    store.execute_batch(SECOND_FORMAT).unwrap();
    let newer = copy_of(folder);
    connect(newer.path()).execute_batch(SPLIT_ROWS).unwrap();
    let newer = newer.path().join(FILE_NAME);
    store
        .execute("ATTACH ?1 AS newer", [newer.to_str().unwrap()])
        .unwrap();
    for table in ["log", "sessions", "events", "seals", "atlases", "state"] {
        let copy = format!("INSERT INTO main.{table} SELECT * FROM newer.{table}");
        store.execute(&copy, []).unwrap();
    }
    older
}

/// Log state of a store, without its head file.
fn log_of(reader: &SqliteReader) -> LogState {
    LogState {
        head_file_note: None,
        ..reader.log().unwrap()
    }
}

#[tokio::test]
async fn store_of_the_second_format_is_migrated_completely() {
    let folder = recorded().await;
    let before = reader(folder.path());
    let older = second_format(folder.path());
    let store = Arc::new(reopen_store(older.path()));
    let mended = store.log().await.unwrap().repair_note.unwrap();
    let moved = before.records(0, 10_000).unwrap();
    let expected = format!("from format 2 to format 3: {} events moved", moved.len());
    assert!(mended.contains(&expected), "{mended}");
    let after = reader(older.path());
    assert_eq!(after.records(0, 10_000).unwrap(), moved);
    assert_eq!(after.heads(), before.heads());
    assert_eq!(after.seals(), before.seals());
    assert_eq!(log_of(&after), log_of(&before));
    assert_eq!(after.state(), before.state());
    assert!(number(older.path(), "SELECT count(*) FROM events") * 2 < moved.len());
    assert!(is_sound(older.path()));
    drop(after);
    // A console goes on with it.
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.runtime.stop().await;
    let key = signer(store.as_ref()).await.verifier();
    let report = store
        .verify(TrustAnchors::nothing().with_key(key))
        .await
        .unwrap();
    assert!(report.is_sound(), "{report:?}");
    drop(store);
    assert_eq!(
        reopen_store(older.path()).log().await.unwrap().repair_note,
        None
    );
}

#[tokio::test]
async fn migration_of_the_second_format_repairs_nothing_and_hides_nothing() {
    let folder = recorded().await;
    for sql in [
        "DELETE FROM events WHERE position = 5",
        "DELETE FROM events WHERE position = (SELECT max(position) FROM events)",
        "UPDATE events SET record = replace(record, 'op-1', 'op-2')",
        "UPDATE sessions SET count = count + 1",
        "UPDATE sessions SET session_id = 'other' WHERE session_id = 's-1'",
        "DELETE FROM sessions WHERE session_id = 's-1'",
    ] {
        let older = second_format(folder.path());
        connect(older.path()).execute_batch(sql).unwrap();
        drop(reopen_store(older.path()));
        assert!(!is_sound(older.path()), "{sql}");
    }
    // Rows that are not records are left unchanged.
    for sql in [
        "UPDATE events SET record = 'x' WHERE position = 5",
        "UPDATE events SET hash = x'00' WHERE position = 5",
        "DROP VIEW trace",
        "CREATE TABLE more (x)",
    ] {
        let older = second_format(folder.path());
        connect(older.path()).execute_batch(sql).unwrap();
        let reply = open_error(older.path());
        assert!(reply.contains("damaged"), "{sql}: {reply}");
        assert_eq!(number(older.path(), "PRAGMA user_version"), 2, "{sql}");
    }
    assert!(!of_sessions(folder.path()).is_empty());
}
