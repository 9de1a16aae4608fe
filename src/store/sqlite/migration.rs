//! Migration of older formats in one transaction: it completes, or nothing changes.

use rusqlite::{Row, Transaction, params};

use super::super::StoreError;
use super::medium::{InsertPositions, insert_records};
use super::reader::digest;
use super::schema;
use crate::base::digest::Digest;
use crate::trace::hash::Envelope;
use crate::trace::record::Record;

/// Migrates a file of an older format to the current one. Returns the number of events.
pub(super) fn migrate(transaction: &Transaction<'_>, format: i64) -> Result<u64, StoreError> {
    match format {
        1 => migrate_format_1(transaction),
        _ => migrate_format_2(transaction),
    }
}

/// Records being moved into the tables of the current format.
#[derive(Default)]
struct RecordMigration {
    places: InsertPositions,
    waiting: Vec<Record>,
    moved: u64,
}

impl RecordMigration {
    /// Number of records moved at a time.
    const STEP: usize = 1000;

    fn push(&mut self, transaction: &Transaction<'_>, record: Record) -> Result<(), StoreError> {
        self.moved += 1;
        self.waiting.push(record);
        if self.waiting.len() < Self::STEP {
            return Ok(());
        }
        self.write(transaction)
    }

    fn write(&mut self, transaction: &Transaction<'_>) -> Result<(), StoreError> {
        let waiting = std::mem::take(&mut self.waiting);
        insert_records(transaction, &mut self.places, &waiting)
            .map_err(|error| super::damaged(&error))
    }
}

/// Migrates format 2, which had one row per event. Acknowledged records stay as they were; verification
/// finds inconsistencies as before.
fn migrate_format_2(transaction: &Transaction<'_>) -> Result<u64, StoreError> {
    let failed = |error: rusqlite::Error| super::damaged(&error);
    transaction
        .execute_batch("DROP VIEW trace; ALTER TABLE events RENAME TO events_2;")
        .map_err(failed)?;
    schema::make_events(transaction).map_err(failed)?;
    let mut moving = RecordMigration::default();
    {
        let mut statement = transaction
            .prepare("SELECT record, hash FROM events_2 ORDER BY position")
            .map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let read = || {
                let hash = digest(row, 1).map_err(|error| error.to_string())?;
                Record::read(row.get(0).map_err(|error| error.to_string())?, hash)
            };
            let record = read().map_err(|what| StoreError::Damaged { what })?;
            moving.push(transaction, record)?;
        }
    }
    moving.write(transaction)?;
    transaction
        .execute_batch("DROP TABLE events_2")
        .map_err(failed)?;
    Ok(moving.moved)
}

/// Migrates format 1, which had a column for each field of an event, and no log. Its records become
/// texts; every hash stays the same.
fn migrate_format_1(transaction: &Transaction<'_>) -> Result<u64, StoreError> {
    let failed = |error: rusqlite::Error| super::damaged(&error);
    transaction
        .execute_batch(
            "ALTER TABLE events RENAME TO events_1; ALTER TABLE heads RENAME TO heads_1;",
        )
        .map_err(failed)?;
    schema::create_tables(transaction).map_err(failed)?;
    let mut moving = RecordMigration::default();
    {
        let mut statement = transaction
            .prepare(
                "SELECT trace_version, event_id, trace_id, span_id, parent_span_id, session_id,
                 sequence, timestamp, event_type, payload, previous_hash, hash
                 FROM events_1 ORDER BY position",
            )
            .map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let record = record(row).map_err(|what| StoreError::Damaged { what })?;
            moving.push(transaction, record)?;
        }
    }
    moving.write(transaction)?;
    moving.places.write_heads(transaction).map_err(failed)?;
    check_heads(transaction)?;
    transaction
        .execute_batch("DROP TABLE events_1; DROP TABLE heads_1;")
        .map_err(failed)?;
    Ok(moving.moved)
}

/// Checks that the moved records are those that the old format acknowledged: migration must not make a
/// truncated record look complete.
fn check_heads(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let odd: i64 = transaction
        .query_row(
            "SELECT count(*) FROM heads_1 old FULL JOIN sessions new USING (session_id)
             WHERE old.count IS NOT new.count OR old.hash IS NOT lower(hex(new.hash))",
            params![],
            |row| row.get(0),
        )
        .map_err(|error| super::damaged(&error))?;
    if odd == 0 {
        return Ok(());
    }
    Err(StoreError::Damaged {
        what: format!("{odd} sessions of format 1 lack acknowledged events"),
    })
}

fn record(row: &Row<'_>) -> Result<Record, String> {
    let text = |index: usize| {
        row.get::<_, String>(index)
            .map_err(|error| error.to_string())
    };
    let fields = [0, 1, 2, 3, 5, 7, 8, 9, 10].map(text);
    let [
        version,
        event,
        trace,
        span,
        session,
        timestamp,
        kind,
        payload,
        previous,
    ] = fields;
    let parent: Option<String> = row.get(4).map_err(|error| error.to_string())?;
    let sequence: i64 = row.get(6).map_err(|error| error.to_string())?;
    let hash: Digest = text(11)?
        .parse()
        .map_err(|error| format!("hash of an event: {error}"))?;
    let mut out = String::new();
    Envelope {
        trace_version: &version?,
        event_id: &event?,
        trace_id: &trace?,
        span_id: &span?,
        parent_span_id: parent.as_deref().unwrap_or(""),
        session_id: &session?,
        sequence: u64::try_from(sequence).map_err(|error| error.to_string())?,
        timestamp: &timestamp?,
        event_type: &kind?,
        payload: &payload?,
        previous_hash: &previous?,
    }
    .write(&mut out);
    Record::read(out, hash)
}
