//! Reading of the record, for the console and the command line.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Params, Row, params};

use super::super::{
    AtlasText, LOG_AGENT, LogState, RecordedSession, Seal, StateRow, StoreError, StoreReader,
};
use super::head_file::read_head;
use super::{damaged, open_error, rows, schema, with_suffix};
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::record::Record;
use crate::trace::verification::{
    ChainHead, TrustAnchors, VerificationProgress, VerificationReport,
};

/// Read-only connection to the store.
#[derive(Debug)]
pub struct SqliteReader {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
}

impl SqliteReader {
    /// Opens the store file for reading. It may be in use by a console at the same time.
    ///
    /// # Errors
    /// When it does not exist, is not a store of this version, or is damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = open_read_connection(path)?;
        let path = path.to_owned();
        match schema::inspect(&connection, &path)? {
            schema::DatabaseKind::Ours => Ok(Self { connection, path }),
            schema::DatabaseKind::Older(found) => Err(StoreError::Version {
                path: path.display().to_string(),
                found,
                known: schema::FORMAT,
            }),
            schema::DatabaseKind::Empty => {
                schema::check_not_emptied(&path)?;
                Err(StoreError::Foreign {
                    path: path.display().to_string(),
                    what: "the file is empty".to_owned(),
                })
            }
        }
    }

    /// First fault in the structure of the file, if any: pages that are missing or corrupted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn structure_fault(&self) -> Result<Option<String>, StoreError> {
        let found = self.query_one("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))?;
        Ok(found.filter(|found| found != "ok"))
    }

    /// Records from a number on, from rows that begin with the number of their first record.
    fn records_from(
        &self,
        query: &str,
        params: impl Params,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached(query)?;
            let mut rows = statement.query(params)?;
            let mut records = Vec::new();
            while records.len() < limit
                && let Some(row) = rows.next()?
            {
                let before = from.saturating_sub(count(row, 0)?);
                let before = usize::try_from(before).unwrap_or(usize::MAX);
                let some = unpacked(row, 1)?.skip(before);
                for (text, hash) in some.take(limit - records.len()) {
                    let text = String::from_utf8(text.to_vec());
                    let text = text.map_err(|error| unreadable(1, error))?;
                    let record = Record::read(text, hash);
                    records.push(record.map_err(|what| unreadable(1, what))?);
                }
            }
            Ok(records)
        };
        read().map_err(|error| damaged(&error))
    }

    /// Verifies the whole record on this many threads.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn verify_on_threads(
        &self,
        trust: TrustAnchors,
        threads: NonZeroUsize,
    ) -> Result<VerificationReport, StoreError> {
        let progress = VerificationProgress::default();
        super::file_verification::verify(self, trust, threads.get(), &progress)
    }

    pub(super) fn query_one<T>(
        &self,
        query: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.connection
            .query_row(query, params, read)
            .optional()
            .map_err(|error| damaged(&error))
    }

    pub(super) fn query_rows<T>(
        &self,
        query: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached(query)
            .map_err(|error| damaged(&error))?;
        let rows = statement.query_map(params, read);
        rows.and_then(Iterator::collect)
            .map_err(|error| damaged(&error))
    }
}

impl StoreReader for SqliteReader {
    fn state(&self) -> Result<Vec<StateRow>, StoreError> {
        let query = "SELECT kind, key, body FROM state ORDER BY kind, key";
        self.query_rows(query, [], |row| {
            Ok(StateRow {
                kind: row.get(0)?,
                key: row.get(1)?,
                body: Some(row.get(2)?),
            })
        })
    }

    fn heads(&self) -> Result<Vec<ChainHead>, StoreError> {
        let query = "SELECT session_id, count, hash, last_at FROM sessions ORDER BY session_id";
        self.query_rows(query, [], head)
    }

    fn head(&self, session: &SessionId) -> Result<Option<ChainHead>, StoreError> {
        let query = "SELECT session_id, count, hash, last_at FROM sessions WHERE session_id = ?1";
        self.query_one(query, [session.as_str()], head)
    }

    fn log(&self) -> Result<LogState, StoreError> {
        // The head file is read first: the store then covers it, even while a console keeps writing.
        let kept_head = read_head(&self.path)?;
        let log = self.query_one("SELECT log_id FROM log", [], |row| parsed(row, 0))?;
        let log: SessionId = log.ok_or_else(|| StoreError::Damaged {
            what: "the name of the log is missing".to_owned(),
        })?;
        let newest = "SELECT size, note FROM seals ORDER BY size DESC LIMIT 1";
        let seal = self.query_one(newest, [], seal)?;
        let covered = match &seal {
            None => None,
            Some(seal) => self.query_one(
                "SELECT position + ?2 - sequence FROM events WHERE sequence < ?2 AND session =
                 (SELECT number FROM sessions WHERE session_id = ?1)
                 ORDER BY sequence DESC LIMIT 1",
                params![log.as_str(), seal.size.cast_signed()],
                |row| count(row, 0),
            )?,
        };
        Ok(LogState {
            log,
            seal,
            sealed_records: covered.unwrap_or(0),
            repair_note: None,
            head_file_note: kept_head,
        })
    }

    fn seals(&self) -> Result<Vec<Seal>, StoreError> {
        self.query_rows("SELECT size, note FROM seals ORDER BY size", [], seal)
    }

    fn sessions(&self) -> Result<Vec<RecordedSession>, StoreError> {
        let query = "SELECT session_id, agent, started_at, last_at, count, ended FROM sessions
                     WHERE session_id <> (SELECT log_id FROM log)
                     ORDER BY started_at DESC, session_id";
        let notes = self.session_notes()?;
        self.query_rows(query, [], |row| {
            let session = parsed(row, 0)?;
            Ok(RecordedSession {
                imports: notes.imports(&session),
                session,
                agent: row.get(1)?,
                started_at: parsed(row, 2)?,
                last_at: parsed(row, 3)?,
                events: count(row, 4)?,
                ended: row.get(5)?,
            })
        })
    }

    fn records(&self, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let query = "SELECT position, records, hashes FROM events WHERE position >=
                     coalesce((SELECT max(position) FROM events WHERE position <= ?1), ?1)
                     ORDER BY position";
        self.records_from(query, [bounded(from)], from, limit)
    }

    fn session_records(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let query = "WITH it AS (SELECT number FROM sessions WHERE session_id = ?1)
                     SELECT sequence, records, hashes FROM events
                     WHERE session = (SELECT number FROM it) AND sequence >=
                     coalesce((SELECT max(sequence) FROM events
                               WHERE session = (SELECT number FROM it) AND sequence <= ?2), ?2)
                     ORDER BY sequence";
        let params = params![session.as_str(), bounded(from)];
        self.records_from(query, params, from, limit)
    }

    fn hashes(&self, session: &SessionId) -> Result<Vec<Digest>, StoreError> {
        let query = "SELECT records, hashes FROM events WHERE session =
                     (SELECT number FROM sessions WHERE session_id = ?1) ORDER BY sequence";
        let hashes = self.query_rows(query, [session.as_str()], |row| {
            Ok(unpacked(row, 0)?.map(|(_, hash)| hash).collect::<Vec<_>>())
        })?;
        Ok(hashes.concat())
    }

    fn atlas(&self, hash: &str) -> Result<Option<AtlasText>, StoreError> {
        let query = "SELECT hash, atlas_id, version, text FROM atlases WHERE hash = ?1";
        self.query_one(query, [hash], |row| {
            Ok(AtlasText {
                hash: row.get(0)?,
                atlas_id: row.get(1)?,
                version: row.get(2)?,
                text: row.get(3)?,
            })
        })
    }

    fn verify_with_progress(
        &self,
        trust: TrustAnchors,
        progress: &VerificationProgress,
    ) -> Result<VerificationReport, StoreError> {
        let cores = std::thread::available_parallelism();
        let cores = cores.unwrap_or(NonZeroUsize::MIN);
        super::file_verification::verify(self, trust, cores.get(), progress)
    }

    fn log_session(&self) -> Result<Option<RecordedSession>, StoreError> {
        let query = "SELECT session_id, started_at, last_at, count FROM sessions
                     WHERE session_id = (SELECT log_id FROM log)";
        self.query_one(query, [], |row| {
            Ok(RecordedSession {
                session: parsed(row, 0)?,
                agent: LOG_AGENT.to_owned(),
                started_at: parsed(row, 1)?,
                last_at: parsed(row, 2)?,
                events: count(row, 3)?,
                ended: false,
                imports: Vec::new(),
            })
        })
    }

    fn log_entries(&self, types: &[&str]) -> Result<Vec<Event>, StoreError> {
        let query = "SELECT records, hashes FROM events WHERE session =
                     (SELECT number FROM sessions WHERE session_id = (SELECT log_id FROM log))
                     AND instr(records, ?1) > 0 ORDER BY sequence";
        let mut found = BTreeMap::new();
        for event_type in types {
            let rows = self.query_rows(query, [format!(":{event_type}:")], |row| {
                let records = unpacked(row, 0)?.map(|(text, hash)| (text.to_vec(), hash));
                Ok(records.collect::<Vec<_>>())
            })?;
            for (text, hash) in rows.into_iter().flatten() {
                let damaged = |what| StoreError::Damaged { what };
                let text = String::from_utf8(text).map_err(|error| damaged(error.to_string()))?;
                let record = Record::read(text, hash).map_err(damaged)?;
                if record.envelope().map_err(damaged)?.event_type == *event_type {
                    found.insert(record.sequence, record.event_of().map_err(damaged)?);
                }
            }
        }
        Ok(found.into_values().collect())
    }
}

fn head(row: &Row<'_>) -> rusqlite::Result<ChainHead> {
    Ok(ChainHead {
        session: parsed(row, 0)?,
        count: count(row, 1)?,
        hash: digest(row, 2)?,
        last_at: parsed(row, 3)?,
    })
}

/// Way to open a database on a read-only disk, where its index cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadOnlyDisk {
    /// All data is in the one file, which does not change.
    Immutable,
    /// The newest records are only in the write-ahead log, which cannot be read without an index.
    Refused,
}

impl ReadOnlyDisk {
    fn of(wal_bytes: Option<u64>) -> Self {
        match wal_bytes {
            None | Some(0) => Self::Immutable,
            Some(_) => Self::Refused,
        }
    }
}

/// Opens a read connection to a database, also on a read-only disk.
fn open_read_connection(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(|error| open_error(path, &error))?;
    let tried = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
    let cannot_open = |error: &rusqlite::Error| {
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
        )
    };
    let Err(error) = tried else {
        return Ok(connection);
    };
    if !cannot_open(&error) {
        // The later inspection of the file gives a more precise error.
        return Ok(connection);
    }
    let wal = with_suffix(path, "-wal");
    let wal_bytes = std::fs::metadata(&wal).ok().map(|found| found.len());
    match ReadOnlyDisk::of(wal_bytes) {
        ReadOnlyDisk::Refused => Err(open_error(
            path,
            &format!(
                "its disk is read-only, and the newest records are only in `{}`: copy both files to a \
                 writable folder",
                wal.display()
            ),
        )),
        ReadOnlyDisk::Immutable => {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path), flags)
                .map_err(|error| open_error(path, &error))
        }
    }
}

/// URI of a database that does not change while it is open.
fn immutable_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            other => {
                // Writing to a string does not fail.
                let _ = write!(uri, "%{other:02x}");
            }
        }
    }
    uri.push_str("?immutable=1");
    uri
}

fn seal(row: &Row<'_>) -> rusqlite::Result<Seal> {
    Ok(Seal {
        size: count(row, 0)?,
        note: row.get(1)?,
    })
}

/// Records of a row, from this column, with the hashes from the next.
pub(super) fn unpacked<'r>(
    row: &'r Row<'_>,
    index: usize,
) -> rusqlite::Result<impl Iterator<Item = (&'r [u8], Digest)>> {
    let lines = row.get_ref(index)?.as_str();
    let lines = lines.map_err(|error| unreadable(index, error))?.as_bytes();
    let hashes = row.get_ref(index + 1)?.as_blob();
    let hashes = hashes.map_err(|error| unreadable(index + 1, error))?;
    rows::unpacked(lines, hashes).map_err(|what| unreadable(index, what))
}

pub(super) fn parsed<T>(row: &Row<'_>, index: usize) -> rusqlite::Result<T>
where
    T: FromStr,
    T::Err: Display,
{
    let text: String = row.get(index)?;
    text.parse().map_err(|error| unreadable(index, error))
}

pub(super) fn digest(row: &Row<'_>, index: usize) -> rusqlite::Result<Digest> {
    match row.get_ref(index)? {
        ValueRef::Blob(bytes) => {
            let bytes = bytes.try_into();
            let bytes = bytes.map_err(|_| unreadable(index, "a hash must have 32 bytes"))?;
            Ok(Digest::from_bytes(bytes))
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => {
            Err(unreadable(index, "a hash must be 32 bytes"))
        }
    }
}

pub(super) fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(index)?;
    u64::try_from(number).map_err(|error| unreadable(index, error))
}

fn unreadable(index: usize, error: impl Display) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        index,
        rusqlite::types::Type::Text,
        error.to_string().into(),
    )
}

fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_disk_is_readable_unless_the_newest_records_would_be_hidden() {
        assert_eq!(ReadOnlyDisk::of(None), ReadOnlyDisk::Immutable);
        assert_eq!(ReadOnlyDisk::of(Some(0)), ReadOnlyDisk::Immutable);
        assert_eq!(ReadOnlyDisk::of(Some(1)), ReadOnlyDisk::Refused);
        let odd = Path::new("/data/50%? of #1/cra.db");
        let uri = "file:/data/50%25%3f%20of%20%231/cra.db?immutable=1";
        assert_eq!(immutable_uri(odd), uri);
    }
}
