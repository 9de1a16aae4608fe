//! The SQLite file under conditions that nobody wants: older formats, torn write-ahead logs, files that
//! somebody made to do harm.

use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use cra_core::base::clock::Clock;
use cra_core::base::id::CountedIds;
use cra_core::runtime::extension::Registry;
use cra_core::runtime::snapshot::Access;
use cra_core::runtime::{Parts, Runtime};
use cra_core::store::sqlite::{FILE_NAME, Reader, SqliteStore};
use cra_core::store::{Batch, StateRow, Store, StoreError};
use cra_core::trace::record::Record;
use cra_core::trace::verify::Trust;
use rusqlite::{Connection, params};
use serde_json::json;
use tempfile::TempDir;

use super::support::{Bench, Dice, acme, clock, key_of, request, signer};

/// The tables of format 1, as they were.
const FIRST_FORMAT: &str = include_str!("../data/format-1.sql");

fn connect(folder: &Path) -> Connection {
    Connection::open(folder.join(FILE_NAME)).unwrap()
}

/// A store with some sessions, as a console leaves it.
async fn recorded() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let bench = Bench::start(store, clock()).await;
    for n in 0..4 {
        let session = format!("s-{n}");
        bench.begin(&session).await;
        let held = bench.until(|s| s.held.len() == 1).await.held[0].clone();
        bench.pass(&held).await;
        let get = request(&session, "ticket.get", json!({"ticket_id": "T-1"}));
        bench.runtime.agents().request_action(get).await.unwrap();
    }
    bench.runtime.stop().await;
    folder
}

/// The records of the sessions, without those of the log.
fn of_sessions(folder: &Path) -> Vec<Record> {
    let reader = Reader::open(&folder.join(FILE_NAME)).unwrap();
    let log = reader.log().unwrap().log;
    let mut records = reader.records(0, 10_000).unwrap();
    records.retain(|record| record.session != log);
    records
}

/// A file of format 1 with the same sessions.
fn first_format(records: &[Record]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut store = connect(folder.path());
    store.pragma_update(None, "journal_mode", "WAL").unwrap();
    store.execute_batch(FIRST_FORMAT).unwrap();
    let change = store.transaction().unwrap();
    for (position, record) in (0_i64..).zip(records) {
        let it = record.envelope().unwrap();
        let parent = Some(it.parent_span_id).filter(|parent| !parent.is_empty());
        let insert =
            "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
        change
            .execute(
                insert,
                params![
                    position,
                    it.trace_version,
                    it.event_id,
                    it.trace_id,
                    it.span_id,
                    parent,
                    it.session_id,
                    it.sequence.cast_signed(),
                    it.timestamp,
                    it.event_type,
                    it.payload,
                    it.previous_hash,
                    record.hash.to_string(),
                ],
            )
            .unwrap();
        let head = "INSERT INTO heads VALUES (?1, ?2, ?3, 'bot', ?4, ?4, 0)
                    ON CONFLICT DO UPDATE SET count = ?2, hash = ?3, last_at = ?4";
        let (count, hash) = (record.sequence.cast_signed() + 1, record.hash.to_string());
        let head = change.execute(head, params![it.session_id, count, hash, it.timestamp]);
        head.unwrap();
    }
    change.commit().unwrap();
    drop(store);
    folder
}

#[track_caller]
fn open_error(folder: &Path) -> String {
    match SqliteStore::open(folder) {
        Ok(_) => panic!("it opened"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_store_of_the_first_format_is_brought_up_to_date_whole() {
    let records = of_sessions(recorded().await.path());
    let folder = first_format(&records);
    let told = Reader::open(&folder.path().join(FILE_NAME)).unwrap_err();
    assert!(
        matches!(told, StoreError::Version { found: 1, .. }),
        "{told}"
    );

    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let mended = store.log().await.unwrap().mended.unwrap();
    let expected = format!("from format 1 to format 2: {} events moved", records.len());
    assert!(mended.contains(&expected), "{mended}");
    assert_eq!(of_sessions(folder.path()), records);
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.runtime.stop().await;
    let key = signer(store.as_ref()).await.verifier();
    let report = store.verify(Trust::nothing().key(key)).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(report.chains.iter().all(|it| it.verdict.word() == "SEALED"));
    let log = store.events(report.log.unwrap().log, 0, 100).await.unwrap();
    let told = log
        .iter()
        .find(|entry| entry.event_type == "store_recovered");
    assert_eq!(told.unwrap().payload["what"], json!(mended));
    drop(store);
    // Once is enough.
    let store = SqliteStore::open(folder.path()).unwrap();
    assert_eq!(store.log().await.unwrap().mended, None);
}

#[tokio::test]
async fn a_store_of_the_first_format_that_does_not_agree_with_itself_is_left_as_it_is() {
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
        let told = open_error(folder.path());
        assert!(told.contains("damaged"), "{sql}: {told}");
        assert_eq!(state(folder.path()), before, "{sql}");
    }
}

/// What was wrong within a chain is wrong afterwards, and is found as before.
#[tokio::test]
async fn bringing_up_to_date_mends_no_chain() {
    let records = of_sessions(recorded().await.path());
    for sql in [
        "DELETE FROM events WHERE session_id = 's-1' AND sequence = 1",
        "UPDATE events SET payload = replace(payload, 'op-1', 'op-2') WHERE session_id = 's-1'",
        "UPDATE events SET timestamp = replace(timestamp, '2026', '2025') WHERE session_id = 's-1' AND sequence = 2",
    ] {
        let folder = first_format(&records);
        connect(folder.path()).execute_batch(sql).unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        let report = store.verify(Trust::nothing()).await.unwrap();
        let (session, fault) = report.first_fault().unwrap();
        assert_eq!((session.as_str(), fault.word()), ("s-1", "BROKEN"), "{sql}");
    }
}

/// Copies a store that is open, with its write-ahead log as it is.
fn snapshot_of(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in [FILE_NAME.to_owned(), format!("{FILE_NAME}-wal")] {
        fs::copy(folder.join(&name), copy.path().join(&name)).unwrap();
    }
    copy
}

fn wal(folder: &Path) -> std::path::PathBuf {
    folder.join(format!("{FILE_NAME}-wal"))
}

#[tokio::test]
async fn bringing_up_to_date_that_is_cut_short_changes_nothing() {
    let records = of_sessions(recorded().await.path());
    let folder = first_format(&records);
    let store = SqliteStore::open(folder.path()).unwrap();
    let moved = snapshot_of(folder.path());
    drop(store);
    let whole = fs::read(wal(moved.path())).unwrap();
    assert!(whole.len() > 50_000, "{}", whole.len());
    for part in 0..=10 {
        let copy = snapshot_of(moved.path());
        fs::write(wal(copy.path()), &whole[..whole.len() * part / 10]).unwrap();
        let store = SqliteStore::open(copy.path()).unwrap();
        let mended = store.log().await.unwrap().mended;
        let again = mended.is_some_and(|what| what.contains("from format 1"));
        assert_eq!(again, part < 10, "{part}");
        assert_eq!(of_sessions(copy.path()), records, "{part}");
    }
}

fn row(n: u64) -> Batch {
    Batch {
        state: vec![StateRow {
            kind: "usage".to_owned(),
            key: n.to_string(),
            body: Some("{}".to_owned()),
        }],
        ..Batch::default()
    }
}

/// A copy of a store with this many commits in its write-ahead log, and where each ends there.
async fn with_commits(commits: u64) -> (TempDir, Vec<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let mut ends = Vec::new();
    for n in 0..commits {
        store.append(row(n)).await.unwrap().await.unwrap();
        let length = fs::metadata(wal(folder.path())).unwrap().len();
        ends.push(usize::try_from(length).unwrap());
    }
    (snapshot_of(folder.path()), ends)
}

async fn rows(store: &SqliteStore) -> usize {
    store.state().await.unwrap().len()
}

#[tokio::test]
async fn a_torn_end_of_the_write_ahead_log_is_told_and_recorded() {
    let (folder, ends) = with_commits(5).await;
    let whole = fs::read(wal(folder.path())).unwrap();
    let frame = whole.len() - ends[3];
    // All of it, up to the end of the last commit, and into it.
    for (length, expected) in [
        (ends[4], 5),
        (ends[3], 4),
        (ends[4] - 1, 4),
        (ends[3] + frame / 2, 4),
    ] {
        let copy = snapshot_of(folder.path());
        fs::write(wal(copy.path()), &whole[..length]).unwrap();
        let store = Arc::new(SqliteStore::open(copy.path()).unwrap());
        assert_eq!(rows(&store).await, expected);
        assert_eq!(
            store.log().await.unwrap().mended,
            None,
            "less than a page is not even a page"
        );
    }
    // The last commit as a disk leaves it that wrote its parts in another order.
    let copy = snapshot_of(folder.path());
    let mut torn = whole.clone();
    torn[ends[4] - 100] ^= 1;
    fs::write(wal(copy.path()), &torn).unwrap();
    let store = Arc::new(SqliteStore::open(copy.path()).unwrap());
    assert_eq!(rows(&store).await, 4);
    let mended = store.log().await.unwrap().mended.unwrap();
    assert!(mended.contains("an unfinished write of"), "{mended}");
    drop(store);
    // It is told once: what was torn is gone from the file.
    let store = SqliteStore::open(copy.path()).unwrap();
    assert_eq!(store.log().await.unwrap().mended, None);
}

#[tokio::test]
async fn a_write_that_was_cut_short_is_in_the_log_of_the_next_run() {
    let (folder, _) = with_commits(3).await;
    connect(folder.path())
        .execute_batch("DELETE FROM state")
        .unwrap();
    let folder = {
        let store = SqliteStore::open(folder.path()).unwrap();
        store.append(Batch::default()).await.unwrap().await.unwrap();
        let row = StateRow {
            kind: "draft".to_owned(),
            key: "g".to_owned(),
            body: Some("{}".to_owned()),
        };
        let batch = Batch {
            state: vec![row],
            ..Batch::default()
        };
        store.append(batch).await.unwrap().await.unwrap();
        snapshot_of(folder.path())
    };
    let mut torn = fs::read(wal(folder.path())).unwrap();
    let last = torn.len() - 1;
    torn[last] ^= 1;
    fs::write(wal(folder.path()), torn).unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let mended = store.log().await.unwrap().mended.unwrap();
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.runtime.stop().await;
    let log = store.log().await.unwrap().log;
    let entries = store.events(log, 0, 100).await.unwrap();
    let told = entries
        .iter()
        .find(|entry| entry.event_type == "store_recovered");
    assert_eq!(told.unwrap().payload["what"], json!(mended));
}

#[tokio::test]
async fn damage_in_the_middle_of_the_write_ahead_log_is_refused() {
    let (folder, ends) = with_commits(6).await;
    let whole = fs::read(wal(folder.path())).unwrap();
    for commit in 0..4 {
        let copy = snapshot_of(folder.path());
        let mut damaged = whole.clone();
        damaged[ends[commit] - 7] ^= 4;
        fs::write(wal(copy.path()), &damaged).unwrap();
        let told = open_error(copy.path());
        let lost = format!("at least {} that were acknowledged", 5 - commit);
        assert!(told.contains(&lost), "{told}");
        // Nothing was changed: with the damage undone, all of it is there.
        assert_eq!(fs::read(wal(copy.path())).unwrap(), damaged);
        fs::write(wal(copy.path()), &whole).unwrap();
        assert_eq!(rows(&SqliteStore::open(copy.path()).unwrap()).await, 6);
    }
}

#[tokio::test]
async fn old_frames_behind_the_end_are_nobodys_loss() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    for n in 0..6 {
        store.append(row(n)).await.unwrap().await.unwrap();
    }
    let other = connect(folder.path());
    let restarted = other.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| {
        row.get::<_, i64>(0)
    });
    assert_eq!(restarted.unwrap(), 0);
    drop(other);
    let before = fs::metadata(wal(folder.path())).unwrap().len();
    store.append(row(6)).await.unwrap().await.unwrap();
    assert_eq!(
        fs::metadata(wal(folder.path())).unwrap().len(),
        before,
        "old frames lie behind"
    );
    let copy = snapshot_of(folder.path());
    let opened = SqliteStore::open(copy.path()).unwrap();
    assert_eq!(opened.log().await.unwrap().mended, None);
    assert_eq!(rows(&opened).await, 7);
}

/// Does everything with a store that anybody does. Gives up where an error says to.
fn use_all(folder: &Path) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let read = |reader: &Reader| -> Result<(), StoreError> {
        let sessions = reader.sessions()?;
        reader.heads()?;
        reader.state()?;
        reader.seals()?;
        reader.records(0, 100)?;
        reader.atlas("x")?;
        let log = reader.log()?.log;
        for session in sessions.iter().map(|it| &it.session).chain([&log]).take(50) {
            reader.events(session, 0, 100)?;
            reader.hashes(session)?;
        }
        let key = key_of(&log, 7).verifier();
        let report = reader.verify(Trust::nothing().key(key))?;
        if report.is_sound() {
            return Ok(());
        }
        let what = "the record does not hold".to_owned();
        Err(StoreError::Damaged { what })
    };
    let read = Reader::open(&folder.join(FILE_NAME)).and_then(|reader| read(&reader));
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let started = threads.unwrap().block_on(async {
        let store = Arc::new(SqliteStore::open(folder).map_err(|e| told(&e))?);
        let log = store.log().await.map_err(|e| told(&e))?.log;
        let clock = clock();
        let runtime = Runtime::start(Parts {
            store,
            atlases: acme(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ids: Box::new(CountedIds::starting_at(1 << 60)),
            operator: "op-1".to_owned(),
            access: Access::Write,
            extensions: Registry::default(),
            signer: key_of(&log, 7),
            head_file: None,
        });
        let runtime = runtime.await.map_err(|error| told(&error))?;
        runtime.desk().verify().await?;
        runtime.stop().await;
        Ok::<_, String>(())
    });
    read.map_err(|error| told(&error)).and(started)
}

/// As above, and never longer than anybody waits.
fn use_in_time(folder: &Path, what: &str) -> Result<(), String> {
    let (done, outcome) = mpsc::channel();
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        // Whoever waited may have given up.
        let _ = done.send(use_all(&folder));
    });
    let outcome = outcome.recv_timeout(Duration::from_secs(20));
    let outcome = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    let panicked = outcome.as_ref().is_err_and(|told| told.contains("panic"));
    assert!(!panicked, "{what}: {outcome:?}");
    outcome
}

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)";

#[tokio::test]
async fn a_file_that_was_made_to_do_harm_is_refused_or_found_out() {
    let honest = recorded().await;
    let mut cases: Vec<String> = ["log", "sessions", "events", "seals", "atlases", "state"]
        .iter()
        .flat_map(|table| {
            [
                format!("DROP TABLE {table}"),
                format!("DROP TABLE {table}; CREATE VIEW {table} AS {ENDLESS} SELECT i AS position, i AS session, i AS sequence, 'x' AS record, x'00' AS hash, i AS number, 's' AS session_id, i AS count, i AS size, 'n' AS note, 'l' AS log_id, 'k' AS kind, 'k' AS key, 'b' AS body, 'a' AS agent, 't' AS started_at, 't' AS last_at, 0 AS ended FROM n"),
                format!("CREATE TABLE other AS SELECT * FROM {table}; DROP TABLE {table}; ALTER TABLE other RENAME TO {table}"),
                format!("CREATE TRIGGER harm AFTER INSERT ON {table} BEGIN DELETE FROM events; END"),
                format!("ALTER TABLE {table} ADD COLUMN claims TEXT"),
            ]
        })
        .collect();
    cases.extend(
        [
            "UPDATE events SET position = 9223372036854775807 WHERE position = 5",
            "UPDATE events SET position = 1000000000000000 WHERE position = 5",
            "UPDATE events SET position = -9223372036854775808 WHERE position = 5",
            "UPDATE events SET sequence = 9223372036854775807 WHERE position = 5",
            "UPDATE events SET sequence = -5 WHERE position = 5",
            "UPDATE events SET session = -session",
            "UPDATE events SET record = record || char(0) WHERE position = 5",
            "UPDATE events SET record = char(0) WHERE position = 5",
            "UPDATE events SET record = CAST(x'ff' AS TEXT) WHERE position = 5",
            "UPDATE events SET record = '' WHERE position = 5",
            "UPDATE events SET record = replace(record, ':2:2026', ':18446744073709551615:2026')",
            "UPDATE events SET hash = x'' WHERE position = 5",
            "UPDATE sessions SET count = 9223372036854775807",
            "UPDATE sessions SET count = -1",
            "UPDATE sessions SET session_id = session_id || ':'",
            "UPDATE sessions SET session_id = '' WHERE number = 2",
            "UPDATE sessions SET number = -number",
            "UPDATE sessions SET ended = 7",
            "UPDATE sessions SET last_at = 'now'",
            "INSERT INTO sessions SELECT number + 100, session_id || 'x', count, hash, agent, started_at, last_at, ended FROM sessions",
            "UPDATE seals SET size = 9223372036854775807 WHERE size = (SELECT max(size) FROM seals)",
            "UPDATE seals SET size = -size",
            "UPDATE seals SET size = size + 1000",
            "UPDATE seals SET note = note || char(0)",
            "UPDATE seals SET note = ''",
            "UPDATE log SET log_id = ''",
            "UPDATE log SET log_id = 's-1'",
            "DELETE FROM log",
            "INSERT INTO state VALUES ('what', 'x', '{}')",
            "INSERT INTO state VALUES ('held', 'x', '{}')",
            "INSERT INTO state VALUES ('permit', 'x', 'no json')",
            "CREATE TABLE notes (text TEXT)",
            "CREATE INDEX more ON events (hash)",
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage =
             (SELECT rootpage FROM sqlite_schema WHERE name = 'sessions') WHERE name = 'events'",
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE events (x)' WHERE name = 'events'",
            "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'sqlite_autoindex_events_1'",
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage =
             (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_sessions_1') WHERE name = 'sqlite_autoindex_events_1'",
        ]
        .map(str::to_owned),
    );
    for sql in cases {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(honest.path().join(FILE_NAME), folder.path().join(FILE_NAME)).unwrap();
        let store = connect(folder.path());
        store
            .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)
            .unwrap();
        store
            .pragma_update(None, "legacy_alter_table", true)
            .unwrap();
        store.execute_batch(&sql).unwrap();
        drop(store);
        let outcome = use_in_time(folder.path(), &sql);
        assert!(outcome.is_err(), "{sql} was not found out");
    }
    assert_eq!(use_in_time(honest.path(), "the honest one"), Ok(()));
}

#[tokio::test]
async fn pages_that_are_damaged_give_an_error_or_a_verdict() {
    let honest = recorded().await;
    let whole = fs::read(honest.path().join(FILE_NAME)).unwrap();
    let records = of_sessions(honest.path());
    let page = 16384;
    let pages = (whole.len() / page) as u64;
    let mut dice = Dice(3);
    let mut found = 0;
    for round in 0..60 {
        let mut bytes = whole.clone();
        let mut at = || usize::try_from(dice.roll(pages)).unwrap() * page;
        let (one, other) = (at(), at());
        match round % 4 {
            0 => bytes[one..one + page].fill(0),
            1 => bytes.copy_within(other..other + page, one),
            2 => {
                for place in one..one + 64 {
                    bytes[place] = u8::try_from(dice.roll(256)).unwrap();
                }
            }
            _ => {
                let place = one + usize::try_from(dice.roll(page as u64)).unwrap();
                bytes[place] ^= 1 << dice.roll(8);
            }
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE_NAME), &bytes).unwrap();
        match use_in_time(folder.path(), "a damaged page") {
            Ok(()) => assert_eq!(of_sessions(folder.path()), records),
            Err(_) => found += 1,
        }
    }
    assert!(found > 20, "{found}");
}
