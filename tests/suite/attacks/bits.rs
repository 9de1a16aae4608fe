//! Single bits of the database, turned.

use std::fs;
use std::path::Path;

use cra_core::base::clock::Timestamp;
use cra_core::store::sqlite::{FILE_NAME, Reader, SqliteStore};
use cra_core::store::{Batch, Store};
use cra_core::trace::chain::Chain;
use cra_core::trace::event::{Draft, Durability, Payload};
use cra_core::trace::verify::Trust;
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
    let reader = Reader::open(&file).unwrap();
    let sound = || {
        reader
            .verify(Trust::nothing())
            .is_ok_and(|report| report.is_sound())
    };
    assert!(sound());
    for (column, kind) in [("record", "TEXT"), ("hash", "BLOB")] {
        let read = format!("SELECT CAST({column} AS BLOB) FROM events WHERE position = ?1");
        let write = format!("UPDATE events SET {column} = CAST(?2 AS {kind}) WHERE position = ?1");
        for position in 0..3 {
            let whole: Vec<u8> = store
                .query_row(&read, [position], |row| row.get(0))
                .unwrap();
            for bit in 0..whole.len() * 8 {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                store.execute(&write, params![position, flipped]).unwrap();
                assert!(!sound(), "{column} {position} bit {bit}");
            }
            store.execute(&write, params![position, whole]).unwrap();
        }
    }
    assert!(sound());
}

/// Bits anywhere in the file: what is then said to be sound is what it was.
#[tokio::test]
async fn a_flipped_bit_anywhere_in_the_file_changes_no_event_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    tiny(folder.path()).await;
    let file = folder.path().join(FILE_NAME);
    let events = |reader: &Reader| {
        let session = "s".parse().unwrap();
        (
            reader.records(0, 100),
            reader.session_records(&session, 0, 100),
            reader.heads(),
        )
    };
    let honest = events(&Reader::open(&file).unwrap());
    let whole = fs::read(&file).unwrap();
    let mut dice = Dice(1);
    let mut noticed = 0;
    for _ in 0..3000 {
        let mut bytes = whole.clone();
        let place = usize::try_from(dice.roll(bytes.len() as u64 * 8)).unwrap();
        bytes[place / 8] ^= 1 << (place % 8);
        fs::write(&file, &bytes).unwrap();
        let Ok(reader) = Reader::open(&file) else {
            noticed += 1;
            continue;
        };
        match reader.verify(Trust::nothing()) {
            Ok(report) if report.is_sound() => assert_eq!(events(&reader), honest, "bit {place}"),
            Ok(_) | Err(_) => noticed += 1,
        }
    }
    assert!(noticed > 20, "{noticed}");
}
