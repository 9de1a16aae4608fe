use std::path::Path;

use rusqlite::Connection;

use super::super::{FILE_NAME, connect, medium::SqliteMedium, schema};
use super::*;
use crate::base::clock::Timestamp;
use crate::store::Batch;
use crate::store::writer::BatchWriter;
use crate::trace::chain::Chain;
use crate::trace::event::{Draft, Durability, Payload};
use crate::trace::record::Record;

/// Position of a record: its place, the hash before it, and its time.
#[derive(Clone)]
struct RecordPosition {
    sequence: u64,
    previous: Digest,
    micros: i64,
}

impl RecordPosition {
    fn record(&self, session: &SessionId) -> Record {
        let fields = serde_json::json!({
            "original_error_id": "x", "recovery_method": "r", "success": true,
        });
        let fields = fields.as_object().cloned().unwrap();
        let long_ago = Timestamp::from_micros(0);
        Chain::resume(session.clone(), self.sequence, self.previous, long_ago).seal(&Draft {
            session_id: session.clone(),
            event_id: "e".parse().unwrap(),
            trace_id: "t".parse().unwrap(),
            span_id: "p".parse().unwrap(),
            parent_span_id: None,
            timestamp: Timestamp::from_micros(self.micros),
            payload: Payload::read("error_recovered", fields).unwrap(),
            durability: Durability::Sync,
        })
    }
}

/// A store of three sessions, in rows of one to seven events. `odd` may change the position of each
/// record.
fn store(folder: &Path, odd: impl Fn(i64, &mut RecordPosition)) -> Connection {
    let path = folder.join(FILE_NAME);
    let mut connection = connect(&path).unwrap();
    schema::prepare(&mut connection, &path).unwrap();
    let mut writer = BatchWriter::new(SqliteMedium::new(connection, None).unwrap());
    let sessions = ["a", "b", "c"].map(|name| name.parse::<SessionId>().unwrap());
    let mut ends = [(0, Digest::ZERO); 3];
    let mut micros = 0;
    for round in 0..40 {
        let (session, end) = (&sessions[round % 3], &mut ends[round % 3]);
        let records = (0..=round % 7).map(|_| {
            micros += 1;
            let mut place = RecordPosition {
                sequence: end.0,
                previous: end.1,
                micros,
            };
            odd(micros, &mut place);
            let record = place.record(session);
            *end = (record.sequence + 1, record.hash);
            record
        });
        let records = records.collect();
        writer.write(&[&Batch::of(records)]).unwrap();
    }
    drop(writer);
    connect(&path).unwrap()
}

fn report(folder: &Path, threads: usize) -> VerificationReport {
    let reader = SqliteReader::open(&folder.join(FILE_NAME)).unwrap();
    verify_on_threads(
        &reader,
        TrustAnchors::nothing(),
        None,
        threads,
        &VerificationProgress::default(),
    )
    .unwrap()
}

#[test]
fn verification_reports_progress_and_proves_nothing_when_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), |_, _| {});
    let reader = SqliteReader::open(&folder.path().join(FILE_NAME)).unwrap();
    for threads in [1, 3] {
        let progress = VerificationProgress::default();
        verify(&reader, TrustAnchors::nothing(), threads, &progress).unwrap();
        let (done, all) = progress.checked_and_total().unwrap();
        assert!(
            done == all && all > MIN_ROWS_FOR_THREADS,
            "threads share it: {all}"
        );

        progress.cancel();
        let stopped = verify(&reader, TrustAnchors::nothing(), threads, &progress);
        assert_eq!(stopped, Err(StoreError::Cancelled));
        assert_eq!(progress.percent(), Some(0), "nothing was read any more");
    }
}

#[test]
fn verification_ends_at_the_row_where_it_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), |_, _| {});
    let reader = SqliteReader::open(&folder.path().join(FILE_NAME)).unwrap();
    let progress = VerificationProgress::default();
    let mut rows = 0;
    let read = each_row(&reader, &progress, 0..u64::from(u32::MAX), |_| {
        rows += 1;
        if rows == 5 {
            progress.cancel();
        }
    });
    assert_eq!((read, rows), (Ok(()), 5));
}

#[test]
fn one_thread_and_several_threads_give_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path(), |_, _| ());
    let count = "SELECT count(*) FROM events";
    let rows = store.query_row(count, [], |row| row.get::<_, i64>(0));
    assert_eq!(rows, Ok(40));
    let alone = report(folder.path(), 1);
    assert!(alone.is_sound() && alone.events() > MIN_ROWS_FOR_THREADS);
    for threads in 2..5 {
        assert_eq!(report(folder.path(), threads), alone);
    }
}

#[test]
fn missing_and_displaced_rows_are_detected_on_any_number_of_threads() {
    for sql in [
        "DELETE FROM events WHERE position = (SELECT position FROM events LIMIT 1 OFFSET 20)",
        "DELETE FROM events WHERE position = (SELECT max(position) FROM events)",
        "DELETE FROM events WHERE position > 50",
        "DELETE FROM events WHERE position BETWEEN 30 AND 90",
        // By a million: too far to visit all positions in between.
        "UPDATE events SET position = position + 1000000 WHERE position > 90",
        "UPDATE events SET position = position + 4000000000000000000 WHERE position > 90",
        // By one, without two rows at one position in between.
        "UPDATE events SET position = -position WHERE position > 90;
         UPDATE events SET position = 1 - position WHERE position < 0",
        // At the boundary between two threads.
        "UPDATE events SET position = -position WHERE position >= 96;
         UPDATE events SET position = 1 - position WHERE position < 0",
        "UPDATE events SET hashes = zeroblob(64) WHERE length(hashes) = 64",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), |_, _| ());
        store.execute_batch(sql).unwrap();
        for threads in 1..4 {
            assert!(
                !report(folder.path(), threads).is_sound(),
                "{sql} {threads}"
            );
        }
    }
}

/// Within a row, and from one row to the next.
#[test]
fn every_record_must_follow_the_one_before() {
    type Odd = fn(&mut RecordPosition);
    let ways: [(Odd, &str); 3] = [
        (
            |place| place.micros = 7,
            "is earlier than the previous event",
        ),
        (
            |place| place.previous = Digest::of("x"),
            "previous_hash does not match the previous event",
        ),
        (|place| place.sequence += 1, "sequence is "),
    ];
    for (odd, expected) in ways {
        // A row of six, and the end of the row before.
        for at in 72..78 {
            let folder = tempfile::tempdir().unwrap();
            store(folder.path(), |micros, place| {
                if micros == at {
                    odd(place);
                }
            });
            for threads in 1..3 {
                let report = report(folder.path(), threads);
                let fault = report.first_fault().map(|(_, fault)| fault.to_string());
                let fault = fault.unwrap_or_default();
                assert!(fault.contains(expected), "{at}: {expected}: {fault}");
            }
        }
    }
}
