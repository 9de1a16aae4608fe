//! Table schema: its definition, detection in a file, and creation.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use rusqlite::{Connection, ErrorCode, Transaction};
use uuid::Uuid;

use super::super::StoreError;
use super::migration;
use crate::base::id::SessionId;

/// Application id that marks the file as ours: `CRA1`.
const APPLICATION_ID: i64 = 0x4352_4131;

/// Format of the tables; incremented with every change.
pub(super) const FORMAT: i64 = 3;

/// Size of a page. Each commit writes every page that it touches completely, and agents wait for
/// commits: pages of 32 KiB make a commit of one answer half as slow again. Larger pages would make a
/// full verification a tenth faster. Only new files get this size; existing files keep theirs.
const PAGE_BYTES: i64 = 8192;

/// Pages in the write-ahead log after which a commit moves them into the database: 32 MiB. All agents
/// wait for that commit. With SQLite's default of 1,000 pages it happens four times as often, and each
/// page of a busy store is moved more often.
const CHECKPOINT_PAGES: i64 = 4000;

/// Tables of format 3, except the record itself.
///
/// `sessions` holds the acknowledged end of each chain separately, so that a missing tail is detected.
/// `seals` holds the signed heads of the log, `atlases` the Atlases that were in force, and `state` the
/// data that the engine needs after a restart.
const TABLES: &str = "
CREATE TABLE log (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    log_id TEXT NOT NULL
) STRICT;
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    count INTEGER NOT NULL,
    hash BLOB NOT NULL,
    agent TEXT NOT NULL,
    started_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    ended INTEGER NOT NULL
) STRICT;
CREATE TABLE seals (
    size INTEGER PRIMARY KEY,
    note TEXT NOT NULL
) STRICT;
CREATE TABLE atlases (
    hash TEXT PRIMARY KEY,
    atlas_id TEXT NOT NULL,
    version TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Tables of the record itself, in the order of writing.
///
/// Every row has the texts that its hashes cover, one per line, of consecutive events in one session;
/// `position` and `sequence` are those of the first. `trace` is for people with a SQLite shell.
const EVENTS: &str = r#"
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    records TEXT NOT NULL,
    hashes BLOB NOT NULL,
    UNIQUE (session, sequence)
) STRICT;
CREATE VIEW trace AS
    SELECT s.session_id, e.sequence + one.key AS sequence,
        substr(one.value, instr(one.value, '{'), length(one.value) - instr(one.value, '{') - 64) AS payload,
        substr(one.value, 1, instr(one.value, '{') - 1) AS envelope,
        substr(one.value, -64) AS previous_hash,
        lower(hex(substr(e.hashes, one.key * 32 + 1, 32))) AS hash
    FROM events e JOIN sessions s ON s.number = e.session, json_each('["' ||
        replace(replace(replace(e.records, '\', '\\'), '"', '\"'), char(10), '","') || '"]') one
    WHERE instr(one.value, '{') > 0
    ORDER BY e.position, one.key;
"#;

/// State that the engine needs after a restart; the same in every format so far.
pub(super) const STATE: &str = "
CREATE TABLE state (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
";

/// Kind of a database file.
pub(super) enum DatabaseKind {
    /// The file is empty.
    Empty,
    /// A store of the current format.
    Ours,
    /// A store of an older format.
    Older(i64),
}

/// True if the end of a file is missing. SQLite notices this only where it happens to read.
fn is_cut(path: &Path) -> bool {
    if super::with_suffix(path, "-wal").exists() {
        // Pages may still be in the write-ahead log. Also, this process may have the database open: closing a
        // second handle would drop the locks that SQLite holds on it.
        return false;
    }
    let mut header = [0; 100];
    let file = File::open(path).and_then(|mut file| {
        file.read_exact(&mut header)?;
        file.metadata()
    });
    let Ok(file) = file else {
        return false;
    };
    let [.., page_high, page_low] = header.first_chunk::<18>().copied().unwrap_or_default();
    let page = match u64::from(u16::from_be_bytes([page_high, page_low])) {
        1 => 65536,
        page => page,
    };
    let [.., a, b, c, d] = header.first_chunk::<32>().copied().unwrap_or_default();
    file.len() < page * u64::from(u32::from_be_bytes([a, b, c, d]))
}

/// Inspects a file without changing it.
pub(super) fn inspect(connection: &Connection, path: &Path) -> Result<DatabaseKind, StoreError> {
    let cut = is_cut(path);
    let path = || path.display().to_string();
    let number = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => StoreError::Foreign {
                    path: path(),
                    what: error.to_string(),
                },
                // A truncated store is reported as damaged, so that the operator does not take it for a wrong
                // folder.
                _ => super::damaged(&error),
            })
    };
    let application = number("application_id")?;
    let format = number("user_version")?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| super::damaged(&error))?;
    match (application, format, tables) {
        (0, 0, 0) => Ok(DatabaseKind::Empty),
        (APPLICATION_ID, 1..=FORMAT, _) if cut => Err(StoreError::Damaged {
            what: format!("the end of `{}` is missing", path()),
        }),
        (APPLICATION_ID, FORMAT, _) => check_shape(connection).map(|()| DatabaseKind::Ours),
        (APPLICATION_ID, found @ 1..FORMAT, _) => Ok(DatabaseKind::Older(found)),
        (APPLICATION_ID, found, _) => Err(StoreError::Version {
            path: path(),
            found,
            known: FORMAT,
        }),
        (_, _, _) => Err(StoreError::Foreign {
            path: path(),
            what: "the database belongs to another program".to_owned(),
        }),
    }
}

/// Rejects a database without tables next to the key or the head of a record: its write-ahead log,
/// which held all the data, is lost.
pub(super) fn check_not_emptied(path: &Path) -> Result<(), StoreError> {
    let names = [super::super::key::FILE_NAME, super::HEAD_FILE_NAME];
    super::refuse_relics(path, "has lost its tables", &names)
}

/// Prepares a writer's connection: creates the tables and sets durable commits. Returns a description
/// of a migration.
pub(super) fn prepare(
    connection: &mut Connection,
    path: &Path,
) -> Result<Option<String>, StoreError> {
    let found = inspect(connection, path)?;
    let failed = |error: rusqlite::Error| super::damaged(&error);
    if let DatabaseKind::Empty = found {
        check_not_emptied(path)?;
        connection
            .pragma_update(None, "page_size", PAGE_BYTES)
            .map_err(failed)?;
    }
    // `FAST`: data deleted within a page is overwritten without an extra write. Held requests are stored
    // unredacted.
    let settings = [
        ("journal_mode", "WAL"),
        ("synchronous", "FULL"),
        ("secure_delete", "FAST"),
    ];
    for (name, value) in settings {
        connection
            .pragma_update(None, name, value)
            .map_err(failed)?;
    }
    connection
        .pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
        .map_err(failed)?;
    // Drops the rest of an unfinished write after a crash, or every start would find it again. A reader
    // may block this; then the next start does it.
    let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
    connection
        .query_row(truncate, [], |_| Ok(()))
        .map_err(failed)?;
    match found {
        DatabaseKind::Ours => Ok(None),
        DatabaseKind::Empty => {
            let transaction = connection.transaction().map_err(failed)?;
            transaction.execute_batch(STATE).map_err(failed)?;
            create_tables(&transaction).map_err(failed)?;
            transaction.commit().map_err(failed)?;
            Ok(None)
        }
        DatabaseKind::Older(format) => {
            let transaction = connection.transaction().map_err(failed)?;
            let moved = migration::migrate(&transaction, format)?;
            check_shape(&transaction)?;
            transaction.commit().map_err(failed)?;
            Ok(Some(format!(
                "cra updated the store from format {format} to format {FORMAT}: {moved} events moved"
            )))
        }
    }
}

/// Schema object in a file: its type, its name, and the statement that created it.
type SchemaObject = (String, String, String);

/// Rejects a file with schema objects other than our tables. No hash would cover them, a trigger would
/// change what is written, and a view can be endless.
fn check_shape(connection: &Connection) -> Result<(), StoreError> {
    static OURS: OnceLock<BTreeSet<SchemaObject>> = OnceLock::new();
    let ours = OURS.get_or_init(|| {
        let made = Connection::open_in_memory().and_then(|made| {
            made.execute_batch(STATE)?;
            made.execute_batch(TABLES)?;
            made.execute_batch(EVENTS)?;
            schema_objects(&made)
        });
        // INVARIANT: the statements are constants that every store was created with.
        made.unwrap_or_default()
    });
    let found = schema_objects(connection).map_err(|error| super::damaged(&error))?;
    let missing = ours
        .difference(&found)
        .map(|thing| (thing, "is missing or was changed"));
    let odd = found
        .difference(ours)
        .map(|thing| (thing, "is unknown or was changed"));
    let mut odd = odd.chain(missing);
    odd.next().map_or(Ok(()), |((kind, name, _), what)| {
        let name = crate::base::text::one_line(name);
        Err(StoreError::Damaged {
            what: format!("the {kind} `{name}` {what}"),
        })
    })
}

/// All schema objects of a file, except SQLite's own search statistics.
fn schema_objects(connection: &Connection) -> rusqlite::Result<BTreeSet<SchemaObject>> {
    let query = "SELECT type, name, sql FROM sqlite_schema
                 WHERE sql IS NOT NULL AND NOT (type = 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4'))";
    let mut statement = connection.prepare(query)?;
    let things = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    things.collect()
}

/// Creates the tables of the current format next to existing ones.
pub(super) fn create_tables(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(TABLES)?;
    make_events(transaction)?;
    let log = format!("{}{}", SessionId::LOG_PREFIX, Uuid::now_v7().hyphenated());
    transaction.execute("INSERT INTO log (one, log_id) VALUES (1, ?1)", [log])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)
}

/// Creates the tables of the record and sets the format number.
pub(super) fn make_events(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(EVENTS)?;
    transaction.pragma_update(None, "user_version", FORMAT)
}
