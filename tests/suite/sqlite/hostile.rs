//! Malicious files and damaged pages.

use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use cra_core::base::clock::Clock;
use cra_core::base::id::CountedIds;
use cra_core::runtime::extension::Registry;
use cra_core::runtime::notices::{NoticesOff, Webhooks};
use cra_core::runtime::snapshot::ConsoleAccess;
use cra_core::runtime::{Runtime, RuntimeParts};
use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader};
use cra_core::store::{Store, StoreError};
use cra_core::trace::verification::TrustAnchors;

use super::{connect, of_sessions, recorded};
use crate::support::{Dice, SPLIT_ROWS, acme, clock, open_store_retrying, signer_with_seed};

/// Uses every operation of a store. Stops at the first error.
fn use_all(folder: &Path) -> Result<(), String> {
    let reply = |error: &dyn std::fmt::Display| error.to_string();
    let read = |reader: &SqliteReader| -> Result<(), StoreError> {
        let sessions = reader.sessions()?;
        reader.heads()?;
        reader.state()?;
        reader.seals()?;
        reader.records(0, 100)?;
        reader.atlas("x")?;
        let log = reader.log()?.log;
        for session in sessions
            .iter()
            .map(|session| &session.session)
            .chain([&log])
            .take(50)
        {
            reader.events(session, 0, 100)?;
            reader.hashes(session)?;
        }
        let key = signer_with_seed(&log, 7).verifier();
        let report = reader.verify(TrustAnchors::nothing().with_key(key))?;
        if report.is_sound() {
            return Ok(());
        }
        let what = "the record does not hold".to_owned();
        Err(StoreError::Damaged { what })
    };
    let read = SqliteReader::open(&folder.join(FILE_NAME)).and_then(|reader| read(&reader));
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let started = threads.unwrap().block_on(async {
        let store = Arc::new(open_store_retrying(folder).map_err(|e| reply(&e))?);
        let log = store.log().await.map_err(|e| reply(&e))?.log;
        let clock = clock();
        let runtime = Runtime::start(RuntimeParts {
            store,
            atlases: acme(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ids: Box::new(CountedIds::starting_at(1 << 60)),
            operator: "op-1".to_owned(),
            access: ConsoleAccess::Write,
            extensions: Registry::default(),
            signer: signer_with_seed(&log, 7),
            head_file: None,
            webhooks: Webhooks::Off(NoticesOff::NoConsole),
        });
        let runtime = runtime.await.map_err(|error| reply(&error))?;
        let distrusted = runtime
            .operator_handle()
            .snapshots()
            .borrow()
            .distrusted
            .clone();
        if let Some(what) = distrusted {
            runtime.stop().await;
            return Err(what.to_string());
        }
        runtime.operator_handle().verify().await?;
        runtime.stop().await;
        Ok::<_, String>(())
    });
    read.map_err(|error| reply(&error)).and(started)
}

/// Uses every operation of a store, within a time limit.
fn use_in_time(folder: &Path, what: &str) -> Result<(), String> {
    let (done, outcome) = mpsc::channel();
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        // The receiver may have timed out.
        let _ = done.send(use_all(&folder));
    });
    let outcome = outcome.recv_timeout(Duration::from_secs(20));
    let outcome = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    let panicked = outcome.as_ref().is_err_and(|reply| reply.contains("panic"));
    assert!(!panicked, "{what}: {outcome:?}");
    outcome
}

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)";

#[tokio::test]
async fn malicious_store_file_is_refused_or_detected() {
    let honest = recorded().await;
    let mut cases: Vec<String> = ["log", "sessions", "events", "seals", "atlases", "state"]
        .iter()
        .flat_map(|table| {
            [
                format!("DROP TABLE {table}"),
                format!("DROP TABLE {table}; CREATE VIEW {table} AS {ENDLESS} SELECT i AS position, i AS session, i AS sequence, 'x' AS records, x'00' AS hashes, x'00' AS hash, i AS number, 's' AS session_id, i AS count, i AS size, 'n' AS note, 'l' AS log_id, 'k' AS kind, 'k' AS key, 'b' AS body, 'a' AS agent, 't' AS started_at, 't' AS last_at, 0 AS ended FROM n"),
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
            "UPDATE events SET records = records || char(0) WHERE position = 5",
            "UPDATE events SET records = char(0) WHERE position = 5",
            "UPDATE events SET records = CAST(x'ff' AS TEXT) WHERE position = 5",
            "UPDATE events SET records = '' WHERE position = 5",
            "UPDATE events SET records = replace(records, ':2:2026', ':18446744073709551615:2026')",
            "UPDATE events SET hashes = x'' WHERE position = 5",
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
            "CREATE INDEX more ON events (hashes)",
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
        store.execute_batch(SPLIT_ROWS).unwrap();
        store
            .execute_batch(&sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        drop(store);
        let outcome = use_in_time(folder.path(), &sql);
        assert!(outcome.is_err(), "{sql} was not found out");
    }
    assert_eq!(use_in_time(honest.path(), "the honest one"), Ok(()));
}

#[tokio::test]
async fn damaged_pages_yield_an_error_or_a_verdict() {
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
                for byte in &mut bytes[one..one + 64] {
                    *byte = u8::try_from(dice.roll(256)).unwrap();
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
