//! The views of the console that are not the record's, without a screen.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{load_file, load_str};
use cra_core::engine::command::{ClaimChange, ClaimChangeKind, OperatorAction, Reply, Ruling};
use cra_core::engine::held::Held;
use cra_core::runtime::snapshot::RuntimeSnapshot;
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use serde_json::{Value, json};

use super::cli::Desk;
use super::support::{Bench, clock, decide, good_answers, request, root};

/// Two sessions that wait to begin, and one that wants something dangerous, with a hostile name in it.
async fn waiting(store: Arc<dyn Store>) {
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let held = bench.until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&held).await;
    let delete = request(
        "s-1",
        "ticket.delete",
        json!({"ticket_id": "T-\u{1b}[2J\u{202e}1"}),
    );
    let asked = bench.runtime.agent_handle();
    let asked = tokio::spawn(async move { asked.request_action(delete).await });
    bench.until(|s| s.held.len() == 1).await;
    bench.begin("s-2").await;
    bench.until(|s| s.held.len() == 2).await;
    bench.runtime.stop().await;
    // Whoever waited is told that nobody will answer.
    let _ = asked.await;
}

#[test]
fn what_is_held_is_listed_the_riskiest_first() {
    let desk = Desk::of(waiting);
    let listed = desk.run(&["queue"]);
    listed.succeeds();
    let lines: Vec<_> = listed.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", listed.out);
    assert!(lines[1].contains("ticket.delete") && lines[1].contains("bot/s-1"));
    assert!(lines[2].contains("session_start") && lines[2].contains("onboarding"));
    // Its time is long over by the clock of this machine.
    assert!(lines[1].contains("overdue"), "{}", listed.out);

    let all = desk.run(&["queue", "--json"]).json();
    assert_eq!(all[0]["action"], "ticket.delete");
    assert_eq!(all[0]["seconds_left"], 0);
    assert_eq!(all[1]["risk_tier"], "low");
    let id = all[0]["id"].as_str().unwrap();
    let one = desk.run(&["queue", id]);
    one.succeeds();
    assert!(
        one.out.contains("ticket_id") && one.out.contains("\\u{202e}"),
        "{}",
        one.out
    );
    assert!(!one.out.contains(['\u{1b}', '\u{202e}']), "{:?}", one.out);
    assert!(
        one.out.contains("gate       high-risk-gate: "),
        "{}",
        one.out
    );
    let one = desk.run(&["queue", id, "--json"]).json();
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0]["id"], id);
    desk.run(&["queue", "c-99"])
        .fails(1, &["request `c-99` is not held", "cra queue"]);
}

/// A request that one of two operators approved, and that another one claims.
async fn half_approved(store: Arc<dyn Store>) {
    let text = "atlas_version: '1.0'\natlas_id: two\nversion: '1'\nname: Two\ndefault_decision: allow\n\
                actions: [{action_id: ban, risk_tier: critical}]\n\
                checkpoints: [{checkpoint_id: two, mode: blocking, approvers: 2, trigger: {type: risk_threshold}}]\n";
    let atlas = load_str("two.yaml", text).unwrap().atlas;
    let bench = Bench::under(vec![atlas], store, clock()).await;
    bench.begin("s-1").await;
    let agents = bench.runtime.agent_handle();
    let ban = request("s-1", "ban", json!({}));
    let asked = tokio::spawn(async move { agents.request_action(ban).await });
    let held = bench.until(|s| s.held.len() == 1).await.held[0].clone();
    assert!(matches!(bench.pass(&held).await, Reply::Approved(_)));
    let claiming = ClaimChange {
        gate: held.id.clone(),
        operator: "o2\u{202e}".to_owned(),
        seen: None,
        wish: ClaimChangeKind::Take,
    };
    let desk = bench.runtime.operator_handle();
    let claimed = desk.operate(OperatorAction::Claim(claiming)).await;
    assert_eq!(claimed, Ok(()));
    drop(desk);
    bench.runtime.stop().await;
    let _ = asked.await;
}

#[test]
fn the_first_of_two_approvals_and_a_claim_are_told_without_a_screen() {
    let desk = Desk::of(half_approved);
    let listed = desk.run(&["queue"]);
    listed.succeeds();
    let state = "1 of 2 (op-1), claimed: o2\\u{202e}";
    assert!(listed.out.contains(&format!("[{state}]")), "{}", listed.out);
    let all = desk.run(&["queue", "--json"]).json();
    assert_eq!(all[0]["state"], state);
    assert_eq!(all[0]["approvers"], 2);
    assert_eq!(all[0]["approval"]["by"], "op-1");
    assert_eq!(all[0]["claim"]["by"], "o2\u{202e}");
    let one = desk.run(&["queue", "c-1"]);
    one.succeeds();
    assert!(one.out.contains("approved   op-1 at "), "{}", one.out);
    let replayed = desk.run(&["trace", "replay", "s-1", "--at", "7"]);
    replayed.succeeds();
    assert!(
        replayed.out.contains("  1 of 2    op-1"),
        "{}",
        replayed.out
    );
    assert!(
        replayed.out.contains("  claimed   o2\\u{202e}"),
        "{}",
        replayed.out
    );
    let state = desk
        .run(&["trace", "replay", "s-1", "--at", "7", "--json"])
        .json();
    assert_eq!(
        state["state"]["held"][0]["approved"]["by"], "op-1",
        "{state}"
    );
}

#[test]
fn a_name_that_nobody_can_read_is_refused_before_anything_opens() {
    let desk = Desk::empty();
    for name in ["a\u{202e}b", "agent bot"] {
        desk.run(&["queue", "--operator", name])
            .fails(2, &["--operator"]);
    }
}

#[test]
fn a_queue_that_is_empty_missing_or_unreadable_is_said_to_be() {
    let desk = Desk::recorded();
    assert_eq!(desk.run(&["queue"]).out, "No requests are held.\n");
    assert_eq!(desk.run(&["queue", "--json"]).json(), json!([]));
    desk.sql("INSERT INTO state VALUES ('held', 'c-7', '{}')");
    desk.run(&["queue"]).fails(
        1,
        &["the kept held `c-7` cannot be read", "cra trace verify"],
    );
    Desk::empty().run(&["queue"]).fails(1, &["no record yet"]);
}

#[test]
fn paths_say_what_is_used_and_what_is_there() {
    let desk = Desk::recorded();
    let paths = desk.run(&["paths", "--json"]).json();
    assert_eq!(paths["store"]["path"], desk.file().to_str().unwrap());
    assert_eq!(paths["store"]["exists"], true);
    assert_eq!(paths["extensions"]["exists"], false);
    let told = desk.run(&["paths", "--head-file", "/elsewhere/head"]);
    told.succeeds();
    assert!(
        told.out.contains("/elsewhere/head  (does not exist yet)"),
        "{}",
        told.out
    );
    assert!(told.out.contains(".config/cra/atlas"), "{}", told.out);
}

#[test]
fn completions_know_every_command() {
    let desk = Desk::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = desk.run(&["completions", shell]);
        script.succeeds();
        for command in ["demo", "queue", "trace", "atlas"] {
            assert!(script.out.contains(command), "{shell} {command}");
        }
    }
    desk.run(&["completions", "csh"]).fails(2, &["csh"]);
}

#[test]
fn a_first_atlas_is_written_once_and_is_in_force() {
    let desk = Desk::empty();
    let said = desk.run(&["atlas", "init"]);
    said.succeeds();
    let file = desk.0.path().join(".config/cra/atlas/coding-agents.yaml");
    assert!(said.out.contains(file.to_str().unwrap()), "{}", said.out);
    desk.run(&["atlas", "lint", file.to_str().unwrap()])
        .succeeds();
    fs::write(&file, "mine").unwrap();
    desk.run(&["atlas", "init"])
        .fails(1, &["already exists", "nothing was changed"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let other = desk.0.path().join("new/other.yaml");
    let other = other.to_str().unwrap();
    let said = desk.run(&["atlas", "init", other, "--example", "acme-support"]);
    said.succeeds();
    assert!(
        said.out.contains(&format!("cra --atlas {other}")),
        "{}",
        said.out
    );
    // Nobody should call somebody else's address by following an example.
    let told = "it sends notices to https://acme.example/cra-events: change this";
    assert!(said.out.contains(told), "{}", said.out);
    desk.run(&["atlas", "explain", other, "--action", "ticket.delete"]);
    desk.run(&["atlas", "init", "/proc/no/where.yaml"])
        .fails(1, &["cannot write"]);
}

#[test]
fn scenarios_are_played_and_those_that_fail_are_named() {
    let desk = Desk::empty();
    let folder = root().join("assets/scenarios");
    let folder = folder.to_str().unwrap();
    let played = desk.run(&["atlas", "test", folder]);
    played.succeeds();
    assert!(played.out.lines().count() > 10 && !played.out.contains("FAILED"));
    let atlas = root().join("assets/atlas/acme-support.yaml");
    let bad = desk.0.path().join("bad.yaml");
    let text = format!(
        "atlas: {}\nsteps:\n- start: {{ session: s-1, agent: bot }}\n  expect: {{ held: [] }}\n",
        atlas.display()
    );
    fs::write(&bad, text).unwrap();
    let bad = bad.to_str().unwrap();
    let played = desk.run(&["atlas", "test", folder, bad]);
    assert_eq!(
        (played.code, played.err.as_str()),
        (4, ""),
        "{}",
        played.out
    );
    assert!(
        played.out.contains("FAILED") && played.out.contains("step 1, "),
        "{}",
        played.out
    );
    let all = desk.run(&["atlas", "test", bad, "--json"]).json();
    assert_eq!(
        (&all[0]["ok"], &all[0]["steps"]),
        (&json!(false), &json!(1))
    );
    fs::create_dir(desk.0.path().join("none")).unwrap();
    let none = desk.0.path().join("none");
    desk.run(&["atlas", "test", none.to_str().unwrap()])
        .fails(1, &["contains no scenario"]);
}

#[test]
fn the_schema_is_json_that_an_editor_can_use() {
    let schema = Desk::empty().run(&["atlas", "schema"]).json();
    assert!(
        schema["$schema"]
            .as_str()
            .unwrap()
            .contains("json-schema.org")
    );
    assert!(schema["properties"]["checkpoints"].is_object());
}

/// The golden trace of a session in which a deletion is asked for and refused, or passed.
fn golden(session: &'static str, earlier: usize, ruling: fn(&Held) -> Ruling) -> String {
    let desk = Desk::of(move |store| async move {
        let time = clock();
        time.advance(Duration::from_secs(97 * earlier as u64));
        let bench = Bench::start(store, time).await;
        for other in 0..earlier {
            bench.begin(&format!("other-{other}")).await;
        }
        bench.begin(session).await;
        let held = |snapshot: &RuntimeSnapshot| {
            let mut held = snapshot.held.iter();
            held.find(|it| it.session.as_str() == session).cloned()
        };
        let first = bench.until(|s| held(s).is_some()).await;
        let first = held(&first).unwrap();
        bench
            .runtime
            .operator_handle()
            .decide(decide(&first, ruling(&first)))
            .await;
        bench.runtime.stop().await;
    });
    let told = desk.run(&["trace", "export", session, "--format", "golden"]);
    told.succeeds();
    told.out
}

#[test]
fn a_golden_trace_is_the_same_bytes_for_the_same_decisions_and_no_others() {
    let pass = |held: &Held| Ruling::Pass {
        answers: good_answers(held),
    };
    let deny = |_: &Held| Ruling::Deny {
        reason: "not today".to_owned(),
    };
    let once = golden("s-1", 0, pass);
    let again = golden("another-session", 3, pass);
    assert_eq!(once, again);
    assert_ne!(once, golden("s-1", 0, deny));
    assert!(
        once.lines().count() > 3 && once.contains("span-2"),
        "{once}"
    );
    for varying in ["another", "c-1", "2026-", "\"hash\""] {
        assert!(!again.contains(varying), "{varying} in {again}");
    }
}

#[tokio::test]
async fn the_demonstration_has_a_gate_that_takes_two_operators() {
    let folder = root().join("assets");
    let load = |name: &str| load_file(folder.join(name)).unwrap().atlas;
    let atlases = vec![load("atlas/acme-support.yaml"), load("demo/treasury.yaml")];
    let bench = Bench::under(atlases, Arc::new(MemoryStore::default()), clock()).await;
    bench.begin("s-1").await;
    let onboarding = bench.until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&onboarding).await;
    bench.until(|s| s.held.is_empty()).await;
    let text = fs::read_to_string(folder.join("demo/agents.json")).unwrap();
    let script: Value = serde_json::from_str(&text).unwrap();
    let agents = script["agents"].as_array().unwrap().iter();
    let steps = agents.flat_map(|agent| agent["steps"].as_array().unwrap());
    let mut payouts = steps.filter(|step| step["action"] == json!("payout.release"));
    let params = payouts.next().unwrap()["params"].clone();
    let agents = bench.runtime.agent_handle();
    let payout = request("s-1", "payout.release", params);
    let asked = tokio::spawn(async move { agents.request_action(payout).await });
    let held = bench.until(|s| s.held.len() == 1).await.held[0].clone();
    assert!(!held.approvers().is_one());
    let reply = bench.pass(&held).await;
    assert!(matches!(reply, Reply::Approved(_)), "{reply:?}");
    assert!(!asked.is_finished(), "one operator is not enough");
}
