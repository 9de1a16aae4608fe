//! Faults of the store, below the console: files that go, disks that hang, outages, imports cut short.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use cra_core::base::clock::Boxed;
use cra_core::base::digest::Digest;
use cra_core::base::id::SessionId;
use cra_core::engine::command::{DecisionRefusal, DenyCode, OperatorReply, Ruling};
use cra_core::runtime::snapshot::StoreState;
use cra_core::runtime::{RecordedSession, STALL_TIME};
use cra_core::store::memory::MemoryStore;
use cra_core::store::sqlite::{HEAD_FILE_NAME, SqliteStore};
use cra_core::store::{Ack, AtlasText, Batch, LogState, StateRow, Store, StoreError};
use cra_core::trace::record::Record;
use cra_core::trace::verification::{ChainHead, TrustAnchors, VerificationReport};
use serde_json::json;
use tokio::sync::watch;

use super::cli::TestHome;
use super::support::{ACME, Bench, clock, decide, reopen_store, request};

/// A store whose disk hangs for as long as a test wants.
#[derive(Debug)]
pub(super) struct HangingStore {
    pub(super) inner: MemoryStore,
    pub(super) hangs: AtomicBool,
    /// Tells whether the disk is full.
    pub(super) full: AtomicBool,
    /// Tells whether acknowledgements wait.
    pub(super) waits: watch::Sender<bool>,
}

impl Default for HangingStore {
    fn default() -> Self {
        Self {
            inner: MemoryStore::default(),
            hangs: AtomicBool::new(false),
            full: AtomicBool::new(false),
            waits: watch::Sender::new(false),
        }
    }
}

impl Store for HangingStore {
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>> {
        // The watch over the store writes nothing: it never waits here.
        let waits = (!batch.is_empty()).then(|| self.waits.subscribe());
        Box::pin(async move {
            let ack = self.inner.append(batch).await?;
            let ack: Ack = Box::pin(async move {
                if let Some(mut waits) = waits {
                    waits.wait_for(|waits| !waits).await.unwrap();
                }
                ack.await
            });
            Ok(ack)
        })
    }

    fn shortage(&self) -> Option<String> {
        let full = self.full.load(Ordering::Relaxed);
        full.then(|| "there is no room".to_owned())
    }

    fn writing_since(&self) -> Option<Instant> {
        let hangs = self.hangs.load(Ordering::Relaxed);
        hangs.then(|| Instant::now().checked_sub(STALL_TIME).unwrap())
    }

    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>> {
        self.inner.state()
    }

    fn heads(&self) -> Boxed<'_, Result<Vec<ChainHead>, StoreError>> {
        self.inner.heads()
    }

    fn head(&self, session: SessionId) -> Boxed<'_, Result<Option<ChainHead>, StoreError>> {
        self.inner.head(session)
    }

    fn log(&self) -> Boxed<'_, Result<LogState, StoreError>> {
        self.inner.log()
    }

    fn records(&self, from: u64, limit: usize) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.inner.records(from, limit)
    }

    fn session_records(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.inner.session_records(session, from, limit)
    }

    fn hashes(&self, session: SessionId) -> Boxed<'_, Result<Vec<Digest>, StoreError>> {
        self.inner.hashes(session)
    }

    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>> {
        self.inner.sessions()
    }

    fn atlas(&self, hash: String) -> Boxed<'_, Result<Option<AtlasText>, StoreError>> {
        self.inner.atlas(hash)
    }

    fn verify(&self, trust: TrustAnchors) -> Boxed<'_, Result<VerificationReport, StoreError>> {
        self.inner.verify(trust)
    }
}

#[tokio::test]
async fn hanging_disk_is_shown_and_denies_immediately_until_it_recovers() {
    let store = Arc::new(HangingStore::default());
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
    bench.runtime.watch_store();
    store.hangs.store(true, Ordering::Relaxed);
    let stalled = |state: &StoreState| matches!(state, StoreState::Stalled { .. });
    bench.wait_until(|snapshot| stalled(&snapshot.store)).await;
    let get = || request("s-1", "ticket.get", json!({ "ticket_id": "T-1" }));
    let denied = bench
        .runtime
        .agent_handle()
        .request_action(get())
        .await
        .unwrap_err();
    assert!(
        denied.reason.contains("has not finished a write"),
        "{denied:?}"
    );
    let deny = Ruling::Deny {
        reason: "no".to_owned(),
    };
    let refused = bench
        .runtime
        .operator_handle()
        .decide(decide(&held.held[0], deny))
        .await;
    assert!(
        matches!(&refused, OperatorReply::Refused(DecisionRefusal::Unavailable(what)) if what.contains("write")),
        "{refused:?}"
    );
    store.hangs.store(false, Ordering::Relaxed);
    bench
        .wait_until(|snapshot| snapshot.store == StoreState::Ready)
        .await;
    bench.pass(&held.held[0]).await;
    bench
        .runtime
        .agent_handle()
        .request_action(get())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_store_that_fails_while_no_agent_asks_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let bench = Bench::start(store, clock()).await;
    bench.runtime.watch_store();
    fs::remove_file(folder.path().join("cra.db")).unwrap();
    let gone = |state: &StoreState| {
        state
            .problem()
            .is_some_and(|what| what.contains("was deleted or moved"))
    };
    bench.wait_until(|snapshot| gone(&snapshot.store)).await;
}

pub(super) fn row(n: usize) -> Batch {
    let row = StateRow {
        // A draft of no held request: a start passes it over.
        kind: "draft".to_owned(),
        key: format!("none {n}"),
        body: Some("{}".to_owned()),
    };
    Batch {
        state: vec![row],
        ..Batch::default()
    }
}

pub(super) async fn write(store: &SqliteStore, n: usize) -> Result<(), StoreError> {
    store.append(row(n)).await?.await
}

#[tokio::test]
async fn no_event_is_acknowledged_unless_it_is_in_the_data_folder() {
    for (name, replaced) in [
        ("cra.db", false),
        ("cra.db", true),
        ("cra.db-wal", false),
        ("cra.db-wal", true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        write(&store, 1).await.unwrap();
        let path = folder.path().join(name);
        let away = folder.path().join("away");
        fs::rename(&path, &away).unwrap();
        if replaced {
            fs::copy(&away, &path).unwrap();
        }
        let refused = write(&store, 2).await.unwrap_err().to_string();
        let what = if replaced {
            "was replaced while cra was running"
        } else {
            "was deleted or moved"
        };
        assert!(
            refused.contains(name) && refused.contains(what),
            "{refused}"
        );
        // It does not take anything more, also when the file is back.
        fs::rename(&away, &path).unwrap();
        write(&store, 3).await.unwrap_err();
    }
}

#[tokio::test]
async fn commits_and_wal_checkpoints_of_other_programs_are_not_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    for n in 0..50 {
        write(&store, n).await.unwrap();
        if n % 10 == 0 {
            let other = rusqlite::Connection::open(folder.path().join("cra.db")).unwrap();
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            other.query_row(checkpoint, [], |_| Ok(())).unwrap();
        }
    }
    assert_eq!(store.state().await.unwrap().len(), 50);
}

#[tokio::test]
async fn outage_is_recorded_once_by_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let (path, away) = (folder.path().join("cra.db"), folder.path().join("away"));
    let store = SqliteStore::open(folder.path()).unwrap();
    write(&store, 1).await.unwrap();
    fs::rename(&path, &away).unwrap();
    write(&store, 2).await.unwrap_err();
    fs::rename(&away, &path).unwrap();
    drop(store);
    let store = reopen_store(folder.path());
    let reply = store.log().await.unwrap().repair_note.unwrap_or_default();
    assert!(reply.contains("cra could not record from 20"), "{reply}");
    assert!(
        reply.contains(" until 20") && reply.contains("was deleted or moved"),
        "{reply}"
    );
    drop(store);
    // Nothing was written: it is still not on record.
    let store = Arc::new(reopen_store(folder.path()));
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.runtime.stop().await;
    super::support::close(store, folder.path()).await;
    let store = reopen_store(folder.path());
    assert_eq!(store.log().await.unwrap().repair_note, None);
    let log = store.log().await.unwrap().log;
    let entries = store.events(log, 0, 100).await.unwrap();
    let recovered: Vec<_> = entries
        .iter()
        .filter(|entry| entry.event_type == "store_recovered")
        .filter(|entry| {
            let what = entry.payload["what"].to_string();
            what.contains("cra could not record from 20")
        })
        .collect();
    assert_eq!(recovered.len(), 1, "{entries:?}");
}

/// Number of times that a text stands in the files of a store.
fn occurrences(folder: &std::path::Path, text: &str) -> usize {
    let entries = fs::read_dir(folder).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let files = files.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("cra.")
    });
    let count = |bytes: &[u8]| {
        let windows = bytes.windows(text.len());
        windows.filter(|window| *window == text.as_bytes()).count()
    };
    files
        .map(|path| count(&fs::read(path).unwrap()))
        .sum::<usize>()
}

#[test]
fn secret_of_a_decided_request_is_erased_from_every_page() {
    let home = TestHome::of(|store| async move {
        let bench = Bench::start(store, clock()).await;
        bench.begin("s-1").await;
        let gate = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
        bench.pass(&gate.held[0]).await;
        let params = json!({"ticket_ids": ["T-1"], "note": "password=unlisted5550199"});
        let agents = bench.runtime.agent_handle();
        let ask = request("s-1", "ticket.delete", params);
        let asking = tokio::spawn(async move { agents.request_action(ask).await });
        let gate = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
        let reason = "no".to_owned();
        let deny = decide(&gate.held[0], Ruling::Deny { reason });
        bench.runtime.operator_handle().decide(deny).await;
        asking.await.unwrap().unwrap_err();
        bench.runtime.stop().await;
    });
    assert_eq!(occurrences(home.0.path(), "unlisted5550199"), 0);
    assert!(occurrences(home.0.path(), "password=[redacted]") > 0);
}

#[test]
fn pruned_text_is_erased_from_every_page() {
    const SECRET: &str = "the customer's unlisted number is 555-0199";
    let text = format!("{ACME}\ntrace_config: {{ retention: {{ default_days: 1 }} }}\n");
    let atlas = cra_core::atlas::load_str("short.yaml", &text)
        .unwrap()
        .atlas;
    let home = TestHome::of(|store| async move {
        let bench = Bench::with_atlases(vec![atlas], store, clock()).await;
        bench.begin("s-1").await;
        let gate = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
        bench.pass(&gate.held[0]).await;
        // Held requests are kept with their parameters, and the row goes when they are decided.
        for n in 0..20 {
            let params = json!({ "ticket_ids": ["T-1"], "note": format!("{SECRET} {n}") });
            let agents = bench.runtime.agent_handle();
            let ask = request("s-1", "ticket.delete", params);
            let asking = tokio::spawn(async move { agents.request_action(ask).await });
            let gate = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
            let reason = "no".to_owned();
            let deny = decide(&gate.held[0], Ruling::Deny { reason });
            bench.runtime.operator_handle().decide(deny).await;
            bench.wait_until(|snapshot| snapshot.held.is_empty()).await;
            asking.await.unwrap().unwrap_err();
        }
        bench.runtime.stop().await;
    });
    let in_files = || occurrences(home.0.path(), SECRET);
    assert!(in_files() > 20, "{}", in_files());
    home.run(&["trace", "prune"]).succeeds();
    assert_eq!(in_files(), 0);
    home.run(&["trace", "verify"]).succeeds();
}

#[test]
fn store_older_than_its_head_file_is_not_opened_and_does_not_verify() {
    let home = TestHome::recorded();
    let head = home.0.path().join(HEAD_FILE_NAME);
    let before = fs::read(home.file()).unwrap();
    // Another event is recorded, and its head is written to the head file.
    home.run(&["trace", "key", "--rotate"]).succeeds();
    let newer = fs::read_to_string(&head).unwrap();
    assert_eq!(newer, home.run(&["trace", "head"]).out);
    fs::write(home.file(), before).unwrap();
    let output = home.run(&["trace", "verify"]);
    assert_eq!(output.code, 6, "{}", output.out);
    let rotated = home.run(&["trace", "key", "--new"]);
    rotated.fails(1, &["`cra.head` next to the store covers"]);
    // An invalid head file is not ignored either.
    fs::write(&head, "shopping list").unwrap();
    let output = home.run(&["trace", "verify"]);
    assert!(
        output.code == 6 && output.out.contains("does not contain a signed head"),
        "{}",
        output.out
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn record_at_its_quota_denies_agents_and_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let store: Arc<dyn Store> = Arc::new(store.with_quota(Some(1)));
    let bench = Bench::start(store, clock()).await;
    bench.runtime.watch_store();
    let full = bench.wait_until(|snapshot| snapshot.store.problem().is_some());
    let view = full.await;
    let problem = view.store.problem().unwrap();
    assert!(problem.contains("its quota is 1 bytes"), "{problem}");
    let get = request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    let denied = bench.runtime.agent_handle().request_action(get).await;
    let denied = denied.unwrap_err();
    assert_eq!(denied.code, DenyCode::Unavailable);
    assert!(denied.reason.contains("--quota"), "{denied:?}");
}
