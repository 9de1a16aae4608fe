//! Commits to the tables.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params,
};

use super::super::space;
use super::super::writer::Medium;
use super::super::{AtlasText, Batch, CommitError, PruneRanges, Seal, StateRow};
use super::files::{CommitEffect, CommitFault, StoreFiles, WalState};
use super::head_file::HeadFileWriter;
use super::lock::StoreLock;
use super::rows;
use super::space_monitor::SpaceMonitor;
use super::wal_end::WalFault;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::record::Record;

/// SQLite file opened for writing.
#[derive(Debug)]
pub(super) struct SqliteMedium {
    connection: Connection,
    places: InsertPositions,
    /// Absent only in tests of the tables.
    parts: Option<StoreParts>,
}

/// Companions of the tables: files, lock, head and free space.
#[derive(Debug)]
pub(super) struct StoreParts {
    pub(super) files: StoreFiles,
    pub(super) head: HeadFileWriter,
    pub(super) lock: StoreLock,
    pub(super) room: SpaceMonitor,
}

impl SqliteMedium {
    /// Continues at the end of the file.
    pub(super) fn new(connection: Connection, parts: Option<StoreParts>) -> rusqlite::Result<Self> {
        let places = InsertPositions::read(&connection)?;
        Ok(Self {
            connection,
            places,
            parts,
        })
    }
}

impl Medium for SqliteMedium {
    fn commit(&mut self, batches: &[&Batch]) -> Result<(), CommitError> {
        let written = self.commit_with_checks(batches);
        if let (Err(error), Some(parts)) = (&written, &mut self.parts) {
            parts.lock.note_outage(&error.to_string());
            // A checkpoint on close would move pages of a possibly damaged write-ahead log into the database.
            // Best effort: these pages were not acknowledged.
            let stay = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let _ = self.connection.set_db_config(stay, true);
        }
        written
    }
}

impl SqliteMedium {
    /// Writes between two checks of the files: an acknowledgement means that the data is in the folder.
    fn commit_with_checks(&mut self, batches: &[&Batch]) -> Result<(), CommitError> {
        self.check_before()?;
        let is_empty = batches.iter().all(|batch| batch.is_empty());
        if !is_empty {
            self.write(batches)
                .map_err(|error| self.explain(error, space::ROOM_BYTES))?;
        }
        let has_news = |batch: &&Batch| !batch.records.is_empty() || !batch.seals.is_empty();
        let mut wrote = if batches.iter().any(has_news) {
            CommitEffect::Pages
        } else {
            CommitEffect::NothingNew
        };
        if batches.iter().any(|batch| batch.compact) {
            let needed_bytes = self.size_bytes();
            self.compact()
                .map_err(|error| self.explain(error, needed_bytes))?;
            wrote = CommitEffect::Rewritten;
        }
        self.check_written(wrote)?;
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        if !is_empty {
            parts.lock.clear_outage();
        }
        let seals = batches.iter().flat_map(|batch| &batch.seals);
        if let Some(newest) = seals.max_by_key(|seal| seal.size) {
            parts.head.queue_head(&newest.note);
        }
        Ok(())
    }

    /// Checks that the files are as the last commit left them.
    fn check_before(&mut self) -> Result<(), CommitError> {
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        match parts.files.check_before()? {
            WalState::Whole => Ok(()),
            WalState::Emptied => self.check_emptied(),
        }
    }

    /// Checks that a commit is in the files, and updates the free space.
    fn check_written(&mut self, wrote: CommitEffect) -> Result<(), CommitError> {
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        match parts.files.check_written(wrote) {
            Ok(used_bytes) => {
                parts.room.update(used_bytes);
                Ok(())
            }
            Err(CommitFault::Emptied) => self.check_emptied(),
            Err(CommitFault::Other(error)) => Err(error),
        }
    }

    /// Checks a write-ahead log that was found empty. After a checkpoint SQLite starts it anew. If the file
    /// was truncated, SQLite continues far after its end, and the header is missing.
    fn check_emptied(&mut self) -> Result<(), CommitError> {
        let name = "application_id";
        let same: Result<i64, _> = self
            .connection
            .pragma_query_value(None, name, |row| row.get(0));
        let written = same.and_then(|same| self.connection.pragma_update(None, name, same));
        written.map_err(|error| self.explain(error, space::ROOM_BYTES))?;
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        parts.files.reset_wal_end();
        match parts.files.check_written(CommitEffect::Pages) {
            Ok(_) => Ok(()),
            Err(CommitFault::Emptied) => Err(parts.files.wal_fault(WalFault::Empty)),
            Err(CommitFault::Other(error)) => Err(error),
        }
    }

    /// Size of the file: rewriting it takes as much again.
    fn size_bytes(&self) -> u64 {
        let path = self.connection.path();
        let found = path.and_then(|path| std::fs::metadata(path).ok());
        found.map_or(space::ROOM_BYTES, |found| found.len())
    }

    /// Rewrites the file without its free pages, and empties the write-ahead log.
    fn compact(&mut self) -> rusqlite::Result<()> {
        self.connection.execute_batch("VACUUM")?;
        let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
        self.connection.query_row(truncate, [], |_| Ok(()))
    }

    /// Classifies an error. A full disk is named, with the free space.
    fn explain(&self, error: rusqlite::Error, needed_bytes: u64) -> CommitError {
        let path = self.connection.path().map(PathBuf::from);
        let scarce = |path: &PathBuf| {
            let failed = error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure);
            failed && space::is_scarce(path)
        };
        match path {
            Some(path)
                if error.sqlite_error_code() == Some(ErrorCode::DiskFull) || scarce(&path) =>
            {
                CommitError::Full {
                    shortage: space::full_disk(&path, needed_bytes),
                    source: Arc::new(error),
                }
            }
            Some(_) | None => CommitError::backend(error),
        }
    }

    fn write(&mut self, batches: &[&Batch]) -> rusqlite::Result<()> {
        let places = &mut self.places;
        let mut write = || -> rusqlite::Result<()> {
            // Immediate: a transaction that reads first fails at once if another connection was faster.
            let behavior = TransactionBehavior::Immediate;
            let transaction = self.connection.transaction_with_behavior(behavior)?;
            for batch in batches {
                insert_records(&transaction, places, &batch.records)?;
                for seal in &batch.seals {
                    put_seal(&transaction, seal)?;
                }
                for atlas in &batch.atlases {
                    put_atlas(&transaction, atlas)?;
                }
                for prune in &batch.prune {
                    // Pruned data is overwritten in the file, not only removed from its tables.
                    transaction.pragma_update(None, "secure_delete", "ON")?;
                    prune_content(&transaction, places, prune)?;
                }
            }
            for row in newest_state(batches) {
                put_state(&transaction, row)?;
            }
            places.write_heads(&transaction)?;
            transaction.commit()
        };
        write()
    }
}

/// Position of the next record, and the chains that this commit extended.
#[derive(Debug, Default)]
pub(super) struct InsertPositions {
    next_position: i64,
    numbers: HashMap<SessionId, i64>,
    moved: HashMap<i64, ChainTail>,
}

/// End of a chain after a commit.
#[derive(Clone, Copy, Debug)]
struct ChainTail {
    count: u64,
    hash: Digest,
    last_at: Timestamp,
    ended: bool,
}

impl InsertPositions {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let last =
            "SELECT position + length(hashes) / 32 FROM events ORDER BY position DESC LIMIT 1";
        let next_position = connection.query_row(last, [], |row| row.get(0));
        Ok(Self {
            next_position: next_position.optional()?.unwrap_or(0),
            ..Self::default()
        })
    }

    /// Number of a session in the file.
    fn number(&mut self, transaction: &Transaction<'_>, record: &Record) -> rusqlite::Result<i64> {
        if let Some(number) = self.numbers.get(&record.session) {
            return Ok(*number);
        }
        let known = transaction
            .prepare_cached("SELECT number FROM sessions WHERE session_id = ?1")?
            .query_row([record.session.as_str()], |row| row.get(0))
            .optional()?;
        let number = match known {
            Some(number) => number,
            None => insert_session(transaction, record)?,
        };
        self.numbers.insert(record.session.clone(), number);
        Ok(number)
    }

    /// Writes the heads of the extended chains, each once.
    pub(super) fn write_heads(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut statement = transaction.prepare_cached(
            "UPDATE sessions SET count = ?2, hash = ?3, last_at = ?4, ended = max(ended, ?5)
             WHERE number = ?1",
        )?;
        for (number, moved) in self.moved.drain() {
            statement.execute(params![
                number,
                moved.count.cast_signed(),
                moved.hash.as_bytes().as_slice(),
                moved.last_at.text().as_str(),
                moved.ended,
            ])?;
        }
        Ok(())
    }
}

/// Insert statement for a row of records.
const INSERT: &str = "INSERT INTO events (position, session, sequence, records, hashes)
                      VALUES (?1, ?2, ?3, ?4, ?5)";

/// Writes records and notes their extended chains.
pub(super) fn insert_records(
    transaction: &Transaction<'_>,
    places: &mut InsertPositions,
    records: &[Record],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(INSERT)?;
    for run in rows::runs(records) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            continue;
        };
        let number = places.number(transaction, first)?;
        let (lines, hashes) = rows::packed(run);
        insert.execute(params![
            places.next_position,
            number,
            first.sequence.cast_signed(),
            lines,
            hashes,
        ])?;
        places.next_position += rows::length(&hashes).cast_signed();
        let moved = ChainTail {
            count: last.sequence + 1,
            hash: last.hash,
            last_at: last.timestamp,
            ended: run.iter().any(|record| record.ends_session),
        };
        if moved.ended {
            // The chain has ended.
            places.numbers.remove(&first.session);
        }
        let known = places.moved.entry(number).or_insert(moved);
        *known = ChainTail {
            ended: known.ended || moved.ended,
            ..moved
        };
    }
    Ok(())
}

fn insert_session(transaction: &Transaction<'_>, record: &Record) -> rusqlite::Result<i64> {
    let first = record.event_of().ok();
    let agent = first.as_ref().and_then(|event| {
        let agent = event.payload.get("agent_type")?;
        agent.as_str()
    });
    transaction
        .prepare_cached(
            "INSERT INTO sessions (session_id, count, hash, agent, started_at, last_at, ended)
             VALUES (?1, 0, ?2, ?3, ?4, ?4, 0)",
        )?
        .execute(params![
            record.session.as_str(),
            Digest::ZERO.as_bytes().as_slice(),
            agent.unwrap_or(""),
            record.timestamp.to_string(),
        ])?;
    Ok(transaction.last_insert_rowid())
}

/// The newest version of each row of state. Batches committed together are one change: a version that a
/// later batch replaces is never visible.
fn newest_state<'b>(batches: &[&'b Batch]) -> Vec<&'b StateRow> {
    let mut seen = HashSet::new();
    let rows = batches
        .iter()
        .rev()
        .flat_map(|batch| batch.state.iter().rev());
    let newest = rows.filter(|row| seen.insert((row.kind.as_str(), row.key.as_str())));
    newest.collect()
}

fn put_state(transaction: &Transaction<'_>, row: &StateRow) -> rusqlite::Result<()> {
    match &row.body {
        Some(body) => transaction
            .prepare_cached(
                "INSERT INTO state (kind, key, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body",
            )?
            .execute(params![row.kind, row.key, body])?,
        None => transaction
            .prepare_cached("DELETE FROM state WHERE kind = ?1 AND key = ?2")?
            .execute(params![row.kind, row.key])?,
    };
    Ok(())
}

/// Stores a signed head. It replaces a head of the same size, which another key signed.
fn put_seal(transaction: &Transaction<'_>, seal: &Seal) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO seals (size, note) VALUES (?1, ?2)
             ON CONFLICT (size) DO UPDATE SET note = excluded.note",
        )?
        .execute(params![seal.size.cast_signed(), seal.note])?;
    Ok(())
}

fn put_atlas(transaction: &Transaction<'_>, atlas: &AtlasText) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO atlases (hash, atlas_id, version, text) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (hash) DO NOTHING",
        )?
        .execute(params![
            atlas.hash,
            atlas.atlas_id,
            atlas.version,
            atlas.text
        ])?;
    Ok(())
}

fn prune_content(
    transaction: &Transaction<'_>,
    places: &InsertPositions,
    prune: &PruneRanges,
) -> rusqlite::Result<()> {
    let number: i64 = match places.numbers.get(&prune.session) {
        Some(number) => *number,
        None => transaction.query_row(
            "SELECT number FROM sessions WHERE session_id = ?1",
            [prune.session.as_str()],
            |row| row.get(0),
        )?,
    };
    for (first, last) in &prune.ranges {
        let rows = rows_in_range(transaction, number, *first, *last)?;
        let mut update =
            transaction.prepare_cached("UPDATE events SET records = ?2 WHERE position = ?1")?;
        for row in rows {
            let lines = rows::without_content(&row.lines, row.sequence, *first..=*last);
            update.execute(params![row.position, lines])?;
        }
    }
    Ok(())
}

/// A row with records to prune.
struct PruneRow {
    position: i64,
    sequence: u64,
    lines: String,
}

/// Rows with records in this range.
fn rows_in_range(
    transaction: &Transaction<'_>,
    session: i64,
    first: u64,
    last: u64,
) -> rusqlite::Result<Vec<PruneRow>> {
    let mut statement = transaction.prepare_cached(
        "SELECT position, sequence, records FROM events WHERE session = ?1 AND sequence <= ?3
         AND sequence >= coalesce((SELECT max(sequence) FROM events
                                   WHERE session = ?1 AND sequence <= ?2), ?2)",
    )?;
    let range = params![session, first.cast_signed(), last.cast_signed()];
    let rows = statement.query_map(range, |row| {
        Ok(PruneRow {
            position: row.get(0)?,
            sequence: row.get::<_, i64>(1)?.cast_unsigned(),
            lines: row.get(2)?,
        })
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::writer::BatchWriter;
    use super::super::super::{StoreError, StoreReader as _};
    use super::super::{FILE_NAME, connect, schema};
    use super::*;

    fn row(n: usize) -> Batch {
        let row = StateRow {
            kind: "usage".to_owned(),
            key: n.to_string(),
            body: Some("x".repeat(5000)),
        };
        Batch {
            state: vec![row],
            ..Batch::default()
        }
    }

    #[test]
    fn a_full_disk_poisons_the_store_and_keeps_acknowledged_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let mut connection = connect(&path).unwrap();
        schema::prepare(&mut connection, &path).unwrap();
        connection
            .pragma_update(None, "max_page_count", 20)
            .unwrap();
        let mut writer = BatchWriter::new(SqliteMedium::new(connection, None).unwrap());
        let written = (0..1000).find_map(|n| Some((n, writer.write(&[&row(n)]).err()?)));
        let (acknowledged, failed) = written.unwrap();
        let text = failed.to_string();
        assert!(matches!(failed, StoreError::Poisoned(_)), "{text}");
        assert!(
            text.contains("is full: ") && text.contains(" free, at least 1 MiB needed"),
            "{text}"
        );
        assert!(acknowledged > 5, "{acknowledged}");
        // There is space again, but the content of the disk is still unknown.
        let room = writer
            .medium()
            .connection
            .pragma_update(None, "max_page_count", 1000);
        room.unwrap();
        assert_eq!(writer.write(&[&row(1001)]), Err(failed));
        drop(writer);
        let reader = super::super::SqliteReader::open(&path).unwrap();
        assert_eq!(reader.state().unwrap().len(), acknowledged);
    }
}
