//! What is done to a record while no console has it, and the head that is kept elsewhere.

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

use super::cli::Desk;
use super::support::{ACME, Bench, clock, parts, request};

const KEPT_90_DAYS: &str =
    "trace_config: { retention: { default_days: 90, by_event_type: { 'session_*': 3650 } } }\n";

/// The record of a session under the example Atlas with this `trace_config`.
fn recorded_with(trace_config: &str) -> Desk {
    let atlas = load_str("acme-support.yaml", &format!("{ACME}\n{trace_config}"));
    let atlas = atlas.unwrap().atlas;
    Desk::of(|store| async move {
        let bench = Bench::under(vec![atlas], store, clock()).await;
        bench.begin("s-1").await;
        let snapshot = bench.until(|s| s.held.len() == 1).await;
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

fn runs(desk: &Desk, args: &[&str]) -> String {
    let said = desk.run(args);
    said.succeeds();
    said.out
}

fn verified(desk: &Desk) -> Value {
    let said = desk.run(&["trace", "verify", "--json"]);
    said.succeeds();
    said.json()
}

#[test]
fn what_verifies_is_taken_in_once_and_what_does_not_is_not() {
    let from = Desk::recorded();
    let file = from.0.path().join("record.jsonl");
    let name = file.to_str().unwrap();
    runs(&from, &["trace", "export", "-o", name]);
    let to = Desk::empty();
    let taken = runs(&to, &["trace", "import", name]);
    assert!(taken.contains("s-1  8 events imported"), "{taken}");
    let report = verified(&to);
    let words: Vec<_> = report["chains"].as_array().unwrap().iter().collect();
    assert!(
        words.iter().all(|it| it["verdict"]["word"] == "IMPORTED"),
        "{report}"
    );
    // The same chain, hash for hash.
    let show = |desk: &Desk| runs(desk, &["trace", "show", "s-1", "--json"]);
    assert_eq!(show(&from), show(&to));
    let again = runs(&to, &["trace", "import", name]);
    assert!(again.contains("0 sessions, 0 events imported"), "{again}");

    let changed = fs::read_to_string(&file).unwrap().replace("op-1", "op-2");
    let bad = from.0.path().join("changed.jsonl");
    fs::write(&bad, changed).unwrap();
    let other = Desk::empty();
    let refused = other.run(&["trace", "import", bad.to_str().unwrap()]);
    refused.fails(6, &["fails verification and was not imported"]);
    assert!(!other.file().exists(), "nothing was made for it");

    // Another session of the same name is not mixed with it.
    let elsewhere = Desk::of(|store| async move {
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
fn pruning_leaves_place_time_and_hash_and_the_log_says_what_is_left() {
    let desk: Desk = recorded_with(KEPT_90_DAYS);
    let before = verified(&desk);
    let there = |bytes: Vec<u8>| bytes.windows(11).any(|it| it == b"answered_by");
    assert!(there(fs::read(desk.file()).unwrap()));
    let told = runs(&desk, &["trace", "prune", "--dry-run"]);
    assert!(told.contains("s-1  7 events would be pruned"), "{told}");
    assert_eq!(verified(&desk), before, "it was only told");
    let told = runs(&desk, &["trace", "prune"]);
    assert!(told.contains("s-1  7 events pruned"), "{told}");
    let report = verified(&desk);
    assert_eq!(report["chains"][0]["pruned"], 7);
    let said = runs(&desk, &["trace", "verify"]);
    assert!(said.contains("7 linked, content pruned"), "{said}");
    // What a rule keeps is there, what is pruned is gone from the file itself.
    let events = runs(&desk, &["trace", "show", "s-1", "--json"]);
    assert!(
        events.contains("session_started") && events.contains("agent_type"),
        "{events}"
    );
    assert!(!events.contains("answered_by"), "{events}");
    assert!(!there(fs::read(desk.file()).unwrap()), "it is in the file");
    let again = runs(&desk, &["trace", "prune"]);
    assert!(again.contains("0 sessions, 0 events pruned"), "{again}");
    // It can be taken elsewhere all the same.
    let file = desk.0.path().join("record.jsonl");
    runs(&desk, &["trace", "export", "-o", file.to_str().unwrap()]);
    let other = Desk::empty();
    runs(&other, &["trace", "import", file.to_str().unwrap()]);
    verified(&other);
    // What is left cannot be changed.
    desk.sql(
        "UPDATE events SET records = replace(records, ':policy_checked:', ':policy_chequed:')",
    );
    let said = desk.run(&["trace", "verify"]);
    assert!(
        said.code == 6 && said.out.contains("DIVERGED"),
        "{}",
        said.out
    );
}

#[test]
fn nothing_is_pruned_where_no_steward_wants_it() {
    let desk = Desk::recorded();
    desk.run(&["trace", "prune"])
        .fails(1, &["keeps all events"]);
}

#[test]
fn a_key_hands_over_to_another_and_the_old_one_still_verifies() {
    let desk = Desk::recorded();
    let old = runs(&desk, &["trace", "key"]);
    let head = runs(&desk, &["trace", "head"]);
    let new = runs(&desk, &["trace", "key", "--rotate"]);
    assert_ne!(old, new);
    for key in [old.trim(), new.trim()] {
        let said = runs(&desk, &["trace", "verify", "--key", key]);
        assert!(said.contains("SEALED 0..7"), "{said}");
    }
    let said = runs(&desk, &["trace", "verify", "--known-head", &head]);
    assert!(
        said.contains("s-1") && said.contains("WITNESSED 0..7"),
        "{said}"
    );
    // The same where it is kept in a file.
    let kept = desk.0.path().join("head");
    fs::write(&kept, &head).unwrap();
    let said = runs(
        &desk,
        &["trace", "verify", "--head-file", kept.to_str().unwrap()],
    );
    assert!(said.contains("WITNESSED 0..7"), "{said}");
    fs::write(&kept, head.replacen("\n4\n", "\n400\n", 1)).unwrap();
    let said = desk.run(&["trace", "verify", "--head-file", kept.to_str().unwrap()]);
    assert!(
        said.code == 6 && said.out.contains("TRUNCATED"),
        "{}",
        said.out
    );
    // Somebody else's key proves nothing.
    let stranger = runs(&Desk::recorded(), &["trace", "key"]);
    let refused = desk.run(&["trace", "verify", "--key", stranger.trim()]);
    let told = "no head of this log is signed with the key";
    assert!(
        refused.code == 6 && refused.out.contains(told),
        "{}",
        refused.out
    );
    // Without the key nobody is told that all is well.
    fs::remove_file(desk.0.path().join("cra.key")).unwrap();
    desk.run(&["trace", "verify"])
        .fails(2, &["no key", "--key"]);
    let begun = desk.run(&["trace", "key", "--new"]);
    assert_eq!(begun.code, 0, "{}", begun.err);
    assert!(begun.err.contains("1 open session"), "{}", begun.err);
    let begun = begun.out;
    let said = runs(&desk, &["trace", "verify", "--key", begun.trim()]);
    assert!(said.contains("SEALED 0..7"), "{said}");
}

#[tokio::test]
async fn a_head_is_kept_elsewhere_and_a_record_that_disagrees_is_not_opened() {
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
async fn a_head_that_cannot_be_kept_elsewhere_is_told_and_stops_nobody() {
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
    let held = bench.until(|s| s.held.len() == 1).await;
    assert_eq!(held.chain.head.copy, HeadCopyState::Written);
    fs::remove_dir_all(&away).unwrap();
    bench.clock.advance(Duration::from_secs(2));
    let failed = |elsewhere: &HeadCopyState| matches!(elsewhere, HeadCopyState::Failed { .. });
    bench.until(|s| failed(&s.chain.head.copy)).await;
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
        .until(|s| s.chain.head.copy == HeadCopyState::Written)
        .await;
}
