//! Single bits of the database, turned.

use std::fs;
use std::path::Path;

use cra_core::base::clock::Timestamp;
use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader, SqliteStore};
use cra_core::store::{Batch, Store};
use cra_core::trace::chain::Chain;
use cra_core::trace::event::{Draft, Durability, Payload};
use cra_core::trace::verification::TrustAnchors;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::support::Dice;

/// A store with one short session and no log, as small as one can be.
async fn tiny(folder: &Path) {
    let store = SqliteStore::open(folder).unwrap();
    let mut chain = Chain::new("s".parse().unwrap());
    let fields = json!({"original_error_id": "x", "recovery_method": "r", "success": true});
    let payload = Payload::read("error_recovered", fields.as_object().unwrap().clone()).unwrap();
    let draft = |n: i64| Draft {
        session_id: "s".parse().unwrap(),
        event_id: "e".parse().unwrap(),
        trace_id: "t".parse().unwrap(),
        span_id: "p".parse().unwrap(),
        parent_span_id: None,
        timestamp: Timestamp::from_micros(n),
        payload: payload.clone(),
        durability: Durability::Sync,
    };
    let records = (0..3).map(|n| chain.seal(&draft(n))).collect();
    store
        .append(Batch::of(records))
        .await
        .unwrap()
        .await
        .unwrap();
}

#[tokio::test]
async fn every_flipped_bit_of_the_database_columns_is_found() {
    let folder = tempfile::tempdir().unwrap();
    tiny(folder.path()).await;
    let file = folder.path().join(FILE_NAME);
    let store = Connection::open(&file).unwrap();
    store
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        .unwrap();
    let reader = SqliteReader::open(&file).unwrap();
    let sound = || {
        reader
            .verify(TrustAnchors::nothing())
            .is_ok_and(|report| report.is_sound())
    };
    assert!(sound());
    for (column, kind) in [("records", "TEXT"), ("hashes", "BLOB")] {
        let read = format!("SELECT CAST({column} AS BLOB) FROM events WHERE position = ?1");
        let write = format!("UPDATE events SET {column} = CAST(?2 AS {kind}) WHERE position = ?1");
        // All three of them lie in one row.
        let whole: Vec<u8> = store.query_row(&read, [0], |row| row.get(0)).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            store.execute(&write, params![0, flipped]).unwrap();
            assert!(!sound(), "{column} bit {bit}");
        }
        store.execute(&write, params![0, whole]).unwrap();
    }
    assert!(sound());
}

/// All event data that readers of a store receive.
fn readable_content(reader: &SqliteReader) -> impl PartialEq + std::fmt::Debug + use<> {
    let session = "s".parse().unwrap();
    (
        reader.records(0, 100),
        reader.session_records(&session, 0, 100),
        reader.hashes(&session),
        reader.heads(),
    )
}

/// Flips bits one at a time. If the file still verifies, it must read as before.
/// Says how often it was not.
fn turn(file: &Path, bits: impl Iterator<Item = usize>) -> usize {
    let honest = readable_content(&SqliteReader::open(file).unwrap());
    let whole = fs::read(file).unwrap();
    let found_out = |bit: &usize| {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(file, &bytes).unwrap();
        let Ok(reader) = SqliteReader::open(file) else {
            return true;
        };
        let sound = reader
            .verify(TrustAnchors::nothing())
            .is_ok_and(|report| report.is_sound());
        if sound {
            assert!(
                readable_content(&reader) == honest,
                "bit {bit} changed what is told"
            );
        }
        !sound
    };
    bits.filter(found_out).count()
}

#[tokio::test]
async fn a_flipped_bit_anywhere_in_the_file_changes_no_event_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    tiny(folder.path()).await;
    let file = folder.path().join(FILE_NAME);
    let bits = fs::metadata(&file).unwrap().len() * 8;
    let mut dice = Dice(1);
    // Most of a small file is empty room in its pages.
    let bits = (0..6000).map(|_| usize::try_from(dice.roll(bits)).unwrap());
    let noticed = turn(&file, bits);
    assert!(noticed > 10, "{noticed}");
}

/// Readers find the events of a session by an index. One that leads elsewhere would hide them.
#[tokio::test]
async fn a_flipped_bit_of_an_index_hides_nothing_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    tiny(folder.path()).await;
    let file = folder.path().join(FILE_NAME);
    let (page, roots) = {
        let store = Connection::open(&file).unwrap();
        let number = |query: &str| {
            store
                .query_row(query, [], |row| row.get::<_, u32>(0))
                .unwrap()
        };
        let root = |table: &str| {
            let name = format!("sqlite_autoindex_{table}_1");
            number(&format!(
                "SELECT rootpage FROM sqlite_schema WHERE name = '{name}'"
            ))
        };
        (number("PRAGMA page_size"), ["events", "sessions"].map(root))
    };
    for root in roots {
        // What an index says lies at the end of its page.
        let end = usize::try_from(root * page * 8).unwrap();
        assert!(turn(&file, end - 24 * 8..end) > 10);
    }
}
