//! The tables, and whether a file has them.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use super::super::StoreError;

/// Marks the file as ours: `CRA1`.
const APPLICATION_ID: i64 = 0x4352_4131;

/// Format of the tables. Grows with every change of them.
pub(super) const FORMAT: i64 = 1;

/// The tables of format 1.
///
/// `events` is the record itself, `heads` what was acknowledged about each chain, kept apart so that
/// a cut tail shows, and `state` what the engine needs to go on after a restart.
const TABLES: &str = "
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    trace_version TEXT NOT NULL,
    event_id TEXT NOT NULL UNIQUE,
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    parent_span_id TEXT,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    timestamp TEXT NOT NULL,
    event_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    previous_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (session_id, sequence)
) STRICT;
CREATE TABLE heads (
    session_id TEXT PRIMARY KEY,
    count INTEGER NOT NULL,
    hash TEXT NOT NULL,
    agent TEXT NOT NULL,
    started_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    ended INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE state (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
";

/// What a file is.
pub(super) enum Found {
    /// It has nothing in it yet.
    Empty,
    /// It is a store of our format.
    Ours,
}

/// Looks at a file without changing it.
pub(super) fn inspect(connection: &Connection, path: &Path) -> Result<Found, StoreError> {
    let path = || path.display().to_string();
    let number = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => StoreError::Foreign {
                    path: path(),
                    what: error.to_string(),
                },
                // A store that was cut is no stranger: nobody should take it for a wrong folder.
                _ => super::damaged(&error),
            })
    };
    let application = number("application_id")?;
    let format = number("user_version")?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| super::damaged(&error))?;
    match (application, format, tables) {
        (0, 0, 0) => Ok(Found::Empty),
        (APPLICATION_ID, FORMAT, _) => Ok(Found::Ours),
        (APPLICATION_ID, found, _) => Err(StoreError::Version {
            path: path(),
            found,
            known: FORMAT,
        }),
        (_, _, _) => Err(StoreError::Foreign {
            path: path(),
            what: "it is a database of another program".to_owned(),
        }),
    }
}

/// Makes a writer's connection ready: our tables, durable commits.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found = inspect(connection, path)?;
    let ready = || -> rusqlite::Result<()> {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        if let Found::Empty = found {
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
            transaction.commit()?;
        }
        Ok(())
    };
    let mut ready = ready;
    ready().map_err(|error| super::damaged(&error))
}
