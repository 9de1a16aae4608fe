//! Maintenance of a record without a console, and the head file that is kept elsewhere.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::load_str;
use cra_core::runtime::snapshot::HeadCopyState;
use cra_core::runtime::{Runtime, RuntimeParts, StartError, witness};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::head::KnownHead;
use serde_json::{Value, json};

use super::cli::TestHome;
use super::support::{ACME, Bench, clock, parts, request};

const KEPT_90_DAYS: &str =
    "trace_config: { retention: { default_days: 90, by_event_type: { 'session_*': 3650 } } }\n";

/// The record of a session under the example Atlas with this `trace_config`.
fn recorded_with(trace_config: &str) -> TestHome {
    let atlas = load_str("acme-support.yaml", &format!("{ACME}\n{trace_config}"));
    let atlas = atlas.unwrap().atlas;
    TestHome::of(|store| async move {
        let bench = Bench::with_atlases(vec![atlas], store, clock()).await;
        bench.begin("s-1").await;
        let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
        bench.pass(&snapshot.held[0]).await;
        let get = request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
        bench
            .runtime
            .agent_handle()
            .request_action(get)
            .await
            .unwrap();
        bench.runtime.stop().await;
    })
}

fn runs(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    output.succeeds();
    output.out
}

fn verified(home: &TestHome) -> Value {
    let output = home.run(&["trace", "verify", "--json"]);
    output.succeeds();
    output.json()
}

#[test]
fn verified_records_are_imported_once_and_others_are_refused() {
    let from = TestHome::recorded();
    let file = from.0.path().join("record.jsonl");
    let name = file.to_str().unwrap();
    runs(&from, &["trace", "export", "-o", name]);
    let to = TestHome::empty();
    let taken = runs(&to, &["trace", "import", name]);
    assert!(taken.contains("s-1  8 events imported"), "{taken}");
    let report = verified(&to);
    let words: Vec<_> = report["chains"].as_array().unwrap().iter().collect();
    assert!(
        words
            .iter()
            .all(|word| word["verdict"]["word"] == "IMPORTED"),
        "{report}"
    );
    // The same chain, hash for hash.
    let show = |home: &TestHome| runs(home, &["trace", "show", "s-1", "--json"]);
    assert_eq!(show(&from), show(&to));
    let again = runs(&to, &["trace", "import", name]);
    assert!(again.contains("0 sessions, 0 events imported"), "{again}");

    let changed = fs::read_to_string(&file).unwrap().replace("op-1", "op-2");
    let bad = from.0.path().join("changed.jsonl");
    fs::write(&bad, changed).unwrap();
    let other = TestHome::empty();
    let refused = other.run(&["trace", "import", bad.to_str().unwrap()]);
    refused.fails(6, &["fails verification and was not imported"]);
    assert!(!other.file().exists(), "nothing was made for it");

    // Another session of the same name is not mixed with it.
    let elsewhere = TestHome::of(|store| async move {
        let bench = Bench::start(store, clock()).await;
        bench.clock.advance(Duration::from_secs(5));
        bench.begin("s-1").await;
        bench.runtime.stop().await;
    });
    let refused = elsewhere.run(&["trace", "import", name]);
    refused.fails(1, &["session `s-1` is", "nothing was changed"]);
}

// covers T31
#[test]
fn pruning_keeps_position_time_and_hash_and_is_logged() {
    let home: TestHome = recorded_with(KEPT_90_DAYS);
    let before = verified(&home);
    let there = |bytes: Vec<u8>| bytes.windows(11).any(|item| item == b"answered_by");
    assert!(there(fs::read(home.file()).unwrap()));
    let reply = runs(&home, &["trace", "prune", "--dry-run"]);
    assert!(reply.contains("s-1  7 events would be pruned"), "{reply}");
    assert_eq!(verified(&home), before, "it was only told");
    let reply = runs(&home, &["trace", "prune"]);
    assert!(reply.contains("s-1  7 events pruned"), "{reply}");
    let report = verified(&home);
    assert_eq!(report["chains"][0]["pruned"], 7);
    let output = runs(&home, &["trace", "verify"]);
    assert!(output.contains("7 linked, content pruned"), "{output}");
    // What a rule keeps is there, what is pruned is gone from the file itself.
    let events = runs(&home, &["trace", "show", "s-1", "--json"]);
    assert!(
        events.contains("session_started") && events.contains("agent_type"),
        "{events}"
    );
    assert!(!events.contains("answered_by"), "{events}");
    assert!(!there(fs::read(home.file()).unwrap()), "it is in the file");
    let again = runs(&home, &["trace", "prune"]);
    assert!(again.contains("0 sessions, 0 events pruned"), "{again}");
    // It can be taken elsewhere all the same.
    let file = home.0.path().join("record.jsonl");
    runs(&home, &["trace", "export", "-o", file.to_str().unwrap()]);
    let other = TestHome::empty();
    runs(&other, &["trace", "import", file.to_str().unwrap()]);
    verified(&other);
    // What is left cannot be changed.
    home.sql(
        "UPDATE events SET records = replace(records, ':policy_checked:', ':policy_chequed:')",
    );
    let output = home.run(&["trace", "verify"]);
    assert!(
        output.code == 6 && output.out.contains("DIVERGED"),
        "{}",
        output.out
    );
}

#[test]
fn events_without_a_retention_rule_are_not_pruned() {
    let home = TestHome::recorded();
    home.run(&["trace", "prune"])
        .fails(1, &["keeps all events"]);
}

#[test]
fn rotated_key_signs_new_entries_and_the_old_key_still_verifies() {
    let home = TestHome::recorded();
    let old = runs(&home, &["trace", "key"]);
    let head = runs(&home, &["trace", "head"]);
    let new = runs(&home, &["trace", "key", "--rotate"]);
    assert_ne!(old, new);
    for key in [old.trim(), new.trim()] {
        let output = runs(&home, &["trace", "verify", "--key", key]);
        assert!(output.contains("SEALED 0..7"), "{output}");
    }
    let output = runs(&home, &["trace", "verify", "--known-head", &head]);
    assert!(
        output.contains("s-1") && output.contains("WITNESSED 0..7"),
        "{output}"
    );
    // The same where it is kept in a file.
    let kept = home.0.path().join("head");
    fs::write(&kept, &head).unwrap();
    let output = runs(
        &home,
        &["trace", "verify", "--head-file", kept.to_str().unwrap()],
    );
    assert!(output.contains("WITNESSED 0..7"), "{output}");
    fs::write(&kept, head.replacen("\n4\n", "\n400\n", 1)).unwrap();
    let output = home.run(&["trace", "verify", "--head-file", kept.to_str().unwrap()]);
    assert!(
        output.code == 6 && output.out.contains("TRUNCATED"),
        "{}",
        output.out
    );
    // Another key proves nothing.
    let stranger = runs(&TestHome::recorded(), &["trace", "key"]);
    let refused = home.run(&["trace", "verify", "--key", stranger.trim()]);
    let reply = "no head of this log is signed with the key";
    assert!(
        refused.code == 6 && refused.out.contains(reply),
        "{}",
        refused.out
    );
    // Without the key the record is not reported as valid.
    fs::remove_file(home.0.path().join("cra.key")).unwrap();
    home.run(&["trace", "verify"])
        .fails(2, &["no key", "--key"]);
    let begun = home.run(&["trace", "key", "--new"]);
    assert_eq!(begun.code, 0, "{}", begun.err);
    assert!(begun.err.contains("1 open session"), "{}", begun.err);
    let begun = begun.out;
    let output = runs(&home, &["trace", "verify", "--key", begun.trim()]);
    assert!(output.contains("SEALED 0..7"), "{output}");
}

#[tokio::test]
async fn record_that_disagrees_with_an_external_head_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("head");
    let store = Arc::new(MemoryStore::default());
    let old = store.disk(|disk| disk.clone());
    let with_file = |store: Arc<dyn Store>| async {
        let parts = parts(store).await;
        Runtime::start(RuntimeParts {
            head_file: Some(path.clone()),
            ..parts
        })
        .await
    };
    let runtime = with_file(store.clone()).await.unwrap();
    let first = witness::read_head(&path).unwrap().unwrap();
    let begin = cra_core::engine::command::StartSession {
        delivery: cra_core::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        agent: "bot".to_owned(),
        agent_version: None,
        intent: None,
        owner: None,
    };
    runtime.agent_handle().start_session(begin).await.unwrap();
    runtime.stop().await;
    let last = witness::read_head(&path).unwrap().unwrap();
    assert!(last.head.size > first.head.size);
    let newest = store.log().await.unwrap().seal.unwrap().note;
    assert_eq!(KnownHead::read(&newest).unwrap(), last);
    // The same record opens again, and one from before does not.
    with_file(Arc::new(store.reopen()))
        .await
        .unwrap()
        .stop()
        .await;
    let before = Arc::new(MemoryStore::open(old).unwrap());
    let refused = with_file(before).await.unwrap_err();
    assert!(matches!(refused, StartError::Log(_)), "{refused}");
    // A file that holds something else is not written over.
    fs::write(&path, "shopping list").unwrap();
    let refused = with_file(Arc::new(store.reopen())).await.unwrap_err();
    assert!(matches!(refused, StartError::HeadFile(_)), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "shopping list");
}

#[tokio::test]
async fn unwritable_head_file_is_reported_and_blocks_no_agent() {
    let folder = tempfile::tempdir().unwrap();
    let away = folder.path().join("away");
    fs::create_dir(&away).unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let clock = clock();
    let runtime = Runtime::start(RuntimeParts {
        head_file: Some(away.join("head")),
        clock: clock.clone(),
        ..parts(store).await
    });
    let bench = Bench {
        runtime: runtime.await.unwrap(),
        clock,
    };
    bench.begin("s-1").await;
    let held = bench.wait_until(|s| s.held.len() == 1).await;
    assert_eq!(held.chain.head.copy, HeadCopyState::Written);
    fs::remove_dir_all(&away).unwrap();
    bench.clock.advance(Duration::from_secs(2));
    let failed = |elsewhere: &HeadCopyState| matches!(elsewhere, HeadCopyState::Failed { .. });
    bench.wait_until(|s| failed(&s.chain.head.copy)).await;
    bench.pass(&held.held[0]).await;
    let get = request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    bench
        .runtime
        .agent_handle()
        .request_action(get)
        .await
        .unwrap();
    fs::create_dir(&away).unwrap();
    bench.clock.advance(Duration::from_secs(2));
    bench
        .wait_until(|s| s.chain.head.copy == HeadCopyState::Written)
        .await;
}
