//! The views of the console that are not the record's, without a screen.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{load_file, load_str};
use cra_core::engine::command::{
    ClaimChange, ClaimChangeKind, OperatorAction, OperatorReply, Ruling,
};
use cra_core::engine::held::Held;
use cra_core::runtime::snapshot::RuntimeSnapshot;
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use serde_json::{Value, json};

use super::cli::TestHome;
use super::support::{Bench, clock, decide, good_answers, request, root};

/// Two sessions that wait to begin, and one that wants something dangerous, with a hostile name in it.
async fn waiting(store: Arc<dyn Store>) {
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&held).await;
    let delete = request(
        "s-1",
        "ticket.delete",
        json!({"ticket_id": "T-\u{1b}[2J\u{202e}1"}),
    );
    let pending = bench.runtime.agent_handle();
    let pending = tokio::spawn(async move { pending.request_action(delete).await });
    bench.wait_until(|s| s.held.len() == 1).await;
    bench.begin("s-2").await;
    bench.wait_until(|s| s.held.len() == 2).await;
    bench.runtime.stop().await;
    // The waiting caller is denied at shutdown.
    let _ = pending.await;
}

#[test]
fn held_requests_are_listed_riskiest_first() {
    let home = TestHome::of(waiting);
    let listed = home.run(&["queue"]);
    listed.succeeds();
    let lines: Vec<_> = listed.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", listed.out);
    assert!(lines[1].contains("ticket.delete") && lines[1].contains("bot/s-1"));
    assert!(lines[2].contains("session_start") && lines[2].contains("onboarding"));
    // Its time is long over by the clock of this machine.
    assert!(lines[1].contains("overdue"), "{}", listed.out);

    let all = home.run(&["queue", "--json"]).json();
    assert_eq!(all[0]["action"], "ticket.delete");
    assert_eq!(all[0]["seconds_left"], 0);
    assert_eq!(all[1]["risk_tier"], "low");
    let id = all[0]["id"].as_str().unwrap();
    let one = home.run(&["queue", id]);
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
    let one = home.run(&["queue", id, "--json"]).json();
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0]["id"], id);
    home.run(&["queue", "c-99"])
        .fails(1, &["request `c-99` is not held", "cra queue"]);
}

/// A request that one of two operators approved, and that another one claims.
async fn half_approved(store: Arc<dyn Store>) {
    let text = "atlas_version: '1.0'\natlas_id: two\nversion: '1'\nname: Two\ndefault_decision: allow\n\
                actions: [{action_id: ban, risk_tier: critical}]\n\
                checkpoints: [{checkpoint_id: two, mode: blocking, approvers: 2, trigger: {type: risk_threshold}}]\n";
    let atlas = load_str("two.yaml", text).unwrap().atlas;
    let bench = Bench::with_atlases(vec![atlas], store, clock()).await;
    bench.begin("s-1").await;
    let agents = bench.runtime.agent_handle();
    let ban = request("s-1", "ban", json!({}));
    let pending = tokio::spawn(async move { agents.request_action(ban).await });
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    assert!(matches!(
        bench.pass(&held).await,
        OperatorReply::Approved(_)
    ));
    let claiming = ClaimChange {
        gate: held.id.clone(),
        operator: "o2\u{202e}".to_owned(),
        seen: None,
        wish: ClaimChangeKind::Take,
    };
    let operator = bench.runtime.operator_handle();
    let claimed = operator.operate(OperatorAction::Claim(claiming)).await;
    assert_eq!(claimed, Ok(()));
    drop(operator);
    bench.runtime.stop().await;
    let _ = pending.await;
}

#[test]
fn queue_command_reports_the_first_of_two_approvals_and_a_claim() {
    let home = TestHome::of(half_approved);
    let listed = home.run(&["queue"]);
    listed.succeeds();
    let state = "1 of 2 (op-1), claimed: o2\\u{202e}";
    assert!(listed.out.contains(&format!("[{state}]")), "{}", listed.out);
    let all = home.run(&["queue", "--json"]).json();
    assert_eq!(all[0]["state"], state);
    assert_eq!(all[0]["approvers"], 2);
    assert_eq!(all[0]["approval"]["by"], "op-1");
    assert_eq!(all[0]["claim"]["by"], "o2\u{202e}");
    let one = home.run(&["queue", "c-1"]);
    one.succeeds();
    assert!(one.out.contains("approved   op-1 at "), "{}", one.out);
    let replayed = home.run(&["trace", "replay", "s-1", "--at", "7"]);
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
    let state = home
        .run(&["trace", "replay", "s-1", "--at", "7", "--json"])
        .json();
    assert_eq!(
        state["state"]["held"][0]["approved"]["by"], "op-1",
        "{state}"
    );
}

#[test]
fn unreadable_operator_name_is_refused_before_the_store_opens() {
    let home = TestHome::empty();
    for name in ["a\u{202e}b", "agent bot"] {
        home.run(&["queue", "--operator", name])
            .fails(2, &["--operator"]);
    }
}

#[test]
fn queue_command_reports_an_empty_missing_or_unreadable_store() {
    let home = TestHome::recorded();
    assert_eq!(home.run(&["queue"]).out, "No requests are held.\n");
    assert_eq!(home.run(&["queue", "--json"]).json(), json!([]));
    home.sql("INSERT INTO state VALUES ('held', 'c-7', '{}')");
    home.run(&["queue"]).fails(
        1,
        &[
            "the stored `held` entry `c-7` cannot be read",
            "cra trace verify",
        ],
    );
    TestHome::empty()
        .run(&["queue"])
        .fails(1, &["no record yet"]);
}

#[test]
fn paths_command_lists_used_and_existing_paths() {
    let home = TestHome::recorded();
    let paths = home.run(&["paths", "--json"]).json();
    assert_eq!(paths["store"]["path"], home.file().to_str().unwrap());
    assert_eq!(paths["store"]["exists"], true);
    assert_eq!(paths["extensions"]["exists"], false);
    let reply = home.run(&["paths", "--head-file", "/elsewhere/head"]);
    reply.succeeds();
    assert!(
        reply.out.contains("/elsewhere/head  (does not exist yet)"),
        "{}",
        reply.out
    );
    assert!(reply.out.contains(".config/cra/atlas"), "{}", reply.out);
}

#[test]
fn completions_contain_every_command() {
    let home = TestHome::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.run(&["completions", shell]);
        script.succeeds();
        for command in ["demo", "queue", "trace", "atlas"] {
            assert!(script.out.contains(command), "{shell} {command}");
        }
    }
    home.run(&["completions", "csh"]).fails(2, &["csh"]);
}

#[test]
fn atlas_init_writes_the_first_atlas_once_and_never_overwrites_it() {
    let home = TestHome::empty();
    let output = home.run(&["atlas", "init"]);
    output.succeeds();
    let file = home.0.path().join(".config/cra/atlas/coding-agents.yaml");
    assert!(
        output.out.contains(file.to_str().unwrap()),
        "{}",
        output.out
    );
    home.run(&["atlas", "lint", file.to_str().unwrap()])
        .succeeds();
    fs::write(&file, "mine").unwrap();
    home.run(&["atlas", "init"])
        .fails(1, &["already exists", "nothing was changed"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let other = home.0.path().join("new/other.yaml");
    let other = other.to_str().unwrap();
    let output = home.run(&["atlas", "init", other, "--example", "acme-support"]);
    output.succeeds();
    assert!(
        output.out.contains(&format!("cra --atlas {other}")),
        "{}",
        output.out
    );
    // A user who follows an example must not call a foreign address.
    let reply = "it sends notices to https://acme.example/cra-events: change this";
    assert!(output.out.contains(reply), "{}", output.out);
    home.run(&["atlas", "explain", other, "--action", "ticket.delete"]);
    home.run(&["atlas", "init", "/proc/no/where.yaml"])
        .fails(1, &["cannot write"]);
}

#[test]
fn run_command_plays_scenarios_and_names_failed_ones() {
    let home = TestHome::empty();
    let folder = root().join("assets/scenarios");
    let folder = folder.to_str().unwrap();
    let played = home.run(&["atlas", "test", folder]);
    played.succeeds();
    assert!(played.out.lines().count() > 10 && !played.out.contains("FAILED"));
    let atlas = root().join("assets/atlas/acme-support.yaml");
    let bad = home.0.path().join("bad.yaml");
    let text = format!(
        "atlas: {}\nsteps:\n- start: {{ session: s-1, agent: bot }}\n  expect: {{ held: [] }}\n",
        atlas.display()
    );
    fs::write(&bad, text).unwrap();
    let bad = bad.to_str().unwrap();
    let played = home.run(&["atlas", "test", folder, bad]);
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
    let all = home.run(&["atlas", "test", bad, "--json"]).json();
    assert_eq!(
        (&all[0]["ok"], &all[0]["steps"]),
        (&json!(false), &json!(1))
    );
    fs::create_dir(home.0.path().join("none")).unwrap();
    let none = home.0.path().join("none");
    home.run(&["atlas", "test", none.to_str().unwrap()])
        .fails(1, &["contains no scenario"]);
}

#[test]
fn schema_command_prints_a_valid_json_schema() {
    let schema = TestHome::empty().run(&["atlas", "schema"]).json();
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
    let home = TestHome::of(move |store| async move {
        let time = clock();
        time.advance(Duration::from_secs(97 * earlier as u64));
        let bench = Bench::start(store, time).await;
        for other in 0..earlier {
            bench.begin(&format!("other-{other}")).await;
        }
        bench.begin(session).await;
        let held = |snapshot: &RuntimeSnapshot| {
            let mut held = snapshot.held.iter();
            held.find(|held| held.session.as_str() == session).cloned()
        };
        let first = bench.wait_until(|s| held(s).is_some()).await;
        let first = held(&first).unwrap();
        bench
            .runtime
            .operator_handle()
            .decide(decide(&first, ruling(&first)))
            .await;
        bench.runtime.stop().await;
    });
    let reply = home.run(&["trace", "export", session, "--format", "golden"]);
    reply.succeeds();
    reply.out
}

#[test]
fn golden_traces_are_identical_exactly_for_identical_decisions() {
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
async fn demo_has_a_gate_that_needs_two_operators() {
    let folder = root().join("assets");
    let load = |name: &str| load_file(folder.join(name)).unwrap().atlas;
    let atlases = vec![load("atlas/acme-support.yaml"), load("demo/treasury.yaml")];
    let bench = Bench::with_atlases(atlases, Arc::new(MemoryStore::default()), clock()).await;
    bench.begin("s-1").await;
    let onboarding = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&onboarding).await;
    bench.wait_until(|s| s.held.is_empty()).await;
    let text = fs::read_to_string(folder.join("demo/agents.json")).unwrap();
    let script: Value = serde_json::from_str(&text).unwrap();
    let agents = script["agents"].as_array().unwrap().iter();
    let steps = agents.flat_map(|agent| agent["steps"].as_array().unwrap());
    let mut payouts = steps.filter(|step| step["action"] == json!("payout.release"));
    let params = payouts.next().unwrap()["params"].clone();
    let agents = bench.runtime.agent_handle();
    let payout = request("s-1", "payout.release", params);
    let pending = tokio::spawn(async move { agents.request_action(payout).await });
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    assert!(!held.approvers().is_one());
    let reply = bench.pass(&held).await;
    assert!(matches!(reply, OperatorReply::Approved(_)), "{reply:?}");
    assert!(!pending.is_finished(), "one operator is not enough");
}
