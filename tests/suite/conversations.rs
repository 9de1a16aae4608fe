//! Turns, threads and snapshot files, from the command line.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use cra_core::atlas::load_str;
use cra_core::base::digest::Digest;
use cra_core::engine::command::{Ruling, SessionOwner, StartSession};
use cra_core::gateway::simulated_agents::AgentScript;
use cra_core::gateway::transport::socket_lock::SocketLock;
use cra_core::gateway::transport::unix_server::UnixServer;
use cra_core::memento::{KeptReason, SummaryResult};
use cra_core::runtime::SessionTurn;
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use serde_json::{Value, json};

use super::cli::{CommandOutput, TestHome};
use super::support::{Bench, clock, decide, gateway_state, reopen_store, request, root};

fn acme() -> String {
    let path = root().join("assets/atlas/acme-support.yaml");
    path.to_str().unwrap().to_owned()
}

/// A turn of `s-1` with a proposal, heated so much.
fn turn(number: u32, intensity: f64) -> Value {
    json!({
        "session": "s-1",
        "message_id": format!("m-{number}"),
        "message": "go on",
        "affect": {"label": "tense", "intensity": intensity, "confidence": "high", "source": "model"},
        "proposed": {"arc": format!("arc {number}"), "next": [format!("step {number}")]},
    })
}

/// A turn that decides something.
fn must(number: u32) -> Value {
    let mut turn = turn(number, 0.9);
    turn["signals"] = json!([{
        "endMessageId": format!("m-{number}"), "kind": "decision_made", "confidence": "high",
        "source": "model", "summary": "keep 4398",
    }]);
    turn
}

/// Writes turns to a file and takes them.
fn take(home: &TestHome, turns: &Value, more: &[&str]) -> CommandOutput {
    let file = home.0.path().join("turns.json");
    fs::write(&file, turns.to_string()).unwrap();
    let args = [&["turn", file.to_str().unwrap()][..], more].concat();
    home.run(&args)
}

// covers D1, D10, D11, D15, D16, D18
#[test]
fn turns_from_a_file_freeze_at_the_peak_and_thaw_with_a_must_turn() {
    let home = TestHome::empty();
    let atlas = acme();
    let with = ["--atlas", atlas.as_str()];
    let first = take(&home, &json!([turn(1, 0.9), turn(2, 0.92)]), &with);
    first.succeeds();
    for words in [
        "decision    should, rule 6: no other rule applies",
        "(FALSE or FALSE) and TRUE = FALSE",
        "summary     applied",
        "(TRUE or TRUE) and TRUE = TRUE",
        "summary     FROZEN: the peak guardrail saved the proposal for later",
    ] {
        assert!(first.out.contains(words), "{words}: {}", first.out);
    }
    // Another process reads what the first left on disk.
    let shown = home.run(&["thread", "show", "s-1"]);
    shown.succeeds();
    for words in [
        "guardrail   SUMMARY FROZEN since ",
        ", 1 saved for later",
        "phase       peak",
        "unfreezes   a must signal",
        "- arc: arc 1",
        "+ arc: arc 2",
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    let listed = home.run(&["thread", "list", "--json"]).json();
    assert_eq!(listed[0]["frozen"], true);
    assert_eq!(listed[0]["arc"], "arc 1");
    let etag = listed[0]["etag"].clone();
    let mut thaws = must(3);
    thaws["if_match"] = etag;
    let with = [&with[..], &["--json"]].concat();
    let thawed = take(&home, &thaws, &with);
    thawed.succeeds();
    let thawed = &thawed.json()[0];
    assert_eq!(
        (&thawed["decision"], &thawed["rule"]),
        (&json!("must"), &json!(2))
    );
    let truth = json!({"peak": true, "high": true, "must": true, "holds": false});
    assert_eq!(thawed["freeze"], truth);
    assert_eq!(thawed["closed"], json!(["decision_made: keep 4398"]));
    assert_eq!(thawed["memento"]["arc"], "arc 3");
    assert_eq!(thawed["version"], 2);
    let shown = home.run(&["thread", "show", "--json"]).json();
    assert_eq!(shown["frozen"], false);
    assert_eq!(shown["etag"], thawed["etag"]);
    assert_eq!(shown["turns"].as_array().unwrap().len(), 3);
    // A gate holds the session's start, and turns are not actions.
    assert_eq!(home.run(&["queue", "--json"]).json()[0]["session"], "s-1");
    let replayed = home
        .run(&["trace", "replay", "s-1", "--at", "3", "--json"])
        .json();
    let at = &replayed["state"]["threads"]["s-1"];
    assert_eq!((&at["frozen"], &at["version"]), (&json!(true), &json!(1)));
    let replayed = home.run(&["trace", "replay", "s-1", "--at", "3"]).out;
    let reply = "thread      s-1: peak/high, FROZEN, should by rule 6, version 1";
    assert!(replayed.contains(reply), "{replayed}");
    home.run(&["trace", "verify"]).succeeds();
}

#[test]
fn invalid_turn_is_reported_with_its_location_and_no_turn_is_applied() {
    let home = TestHome::empty();
    home.run(&["turn"]).fails(2, &["FILE"]);
    home.run(&["turn", "/nowhere/x.json"])
        .fails(1, &["cannot read"]);
    let mut wrong = turn(2, 0.3);
    wrong["affect"]["intensity"] = json!(7);
    let reply = take(&home, &json!([turn(1, 0.3), wrong]), &[]);
    reply.fails(
        1,
        &[
            "[1].affect.intensity",
            "help: cra turn --help shows an example",
        ],
    );
    assert!(!home.file().exists(), "nothing was made");
}

#[test]
fn refused_turn_is_reported_with_its_location_and_earlier_turns_stay() {
    let home = TestHome::empty();
    let mut stale = turn(2, 0.3);
    stale["if_match"] = json!("0000000000000000");
    let reply = take(
        &home,
        &json!([turn(1, 0.3), stale, turn(3, 0.3)]),
        &["--json"],
    );
    let words = [
        "turn 2 of 3 (message `m-2`) was rejected: the memento has changed since it was read",
        "help: read the memento again",
    ];
    reply.fails(1, &words);
    assert_eq!(reply.json().as_array().unwrap().len(), 1);
    let shown = home.run(&["thread", "show", "--json"]).json();
    assert_eq!(shown["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn turn_command_leaves_a_store_in_use_and_requests_held_under_other_atlases_unchanged() {
    let home = TestHome::empty();
    let store = reopen_store(home.0.path());
    take(&home, &turn(1, 0.3), &[]).fails(1, &["in use by another console", "help: "]);
    drop(store);
    drop(reopen_store(home.0.path()));
    take(&home, &turn(1, 0.3), &["--atlas", &acme()]).succeeds();
    let before = home.run(&["queue", "--json"]).json();
    assert_eq!(before[0]["action"], "session_start");
    let words = ["1 request is held under other Atlases", "load the Atlases"];
    take(&home, &turn(2, 0.3), &[]).fails(1, &words);
    let after = home.run(&["queue", "--json"]).json();
    assert_eq!(after[0]["id"], before[0]["id"], "it is still held");
    assert_eq!(home.run(&["thread", "show", "--json"]).json()["version"], 1);
}

#[test]
fn example_turn_of_the_help_is_accepted_and_an_agent_can_be_named() {
    let home = TestHome::empty();
    let help = home.run(&["turn", "--help"]).out;
    let from = help.find("{ \"session\"").unwrap();
    let until = help.find("\n\nOnly session").unwrap();
    let example: Value = serde_json::from_str(help.get(from..until).unwrap()).unwrap();
    take(&home, &example, &["--agent", "mail-bot"]).succeeds();
    let listed = home.run(&["trace", "list", "--json"]).json();
    assert_eq!(listed[0]["agent"], "mail-bot");
    assert_eq!(
        home.run(&["thread", "show", "t-31", "--json"]).json()["session"],
        "s-12"
    );
}

// covers D20
#[test]
fn a_thread_is_shown_with_its_owner_and_the_session_of_each_turn() {
    let home = TestHome::of(|store| async move {
        let bench = Bench::start(store, clock()).await;
        let agents = bench.runtime.agent_handle();
        let secret = "5ec2e7".to_owned();
        let start = StartSession {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: "s-1".parse().unwrap(),
            agent: "bot".to_owned(),
            agent_version: None,
            intent: None,
            owner: Some(SessionOwner {
                secret: Digest::of(&secret),
                api_key: Some("sk-acme-1".to_owned()),
                from: None,
            }),
        };
        agents.start_session(start).await.unwrap();
        bench.begin("s-2").await;
        let take = |session: &str| {
            let mut turn = turn(1, 0.1);
            turn["session"] = json!(session);
            turn["thread"] = json!("t-1");
            let turns = SessionTurn::read_all(turn.to_string().as_bytes()).unwrap();
            turns.into_iter().next().unwrap()
        };
        agents.turn(take("s-1")).await.unwrap();
        agents.turn(take("s-2")).await.unwrap_err();
        bench.runtime.stop().await;
    });
    let shown = home.run(&["thread", "show", "t-1"]).out;
    for words in [
        "owner       s-1\n",
        "refused     1 writes of other sessions, the last by s-2 at ",
        "  m-1  by s-1",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let whole = home.run(&["thread", "show", "t-1", "--json"]);
    assert_eq!(whole.json()["owner"], "s-1");
    assert_eq!(whole.json()["turns"][0]["session"], "s-1");
    let secret = Digest::of("5ec2e7").to_string();
    assert!(!whole.out.contains(&secret), "{}", whole.out);
    assert_eq!(
        home.run(&["thread", "list", "--json"]).json()[0]["owner"],
        "s-1"
    );
}

#[test]
fn unreadable_stored_thread_is_not_overwritten() {
    let home = TestHome::recorded();
    home.sql("INSERT INTO state (kind, key, body) VALUES ('thread', 's-7', '{}')");
    let mut first = turn(1, 0.1);
    first["session"] = json!("s-7");
    let reply = take(&home, &first, &["--atlas", &acme()]);
    reply.fails(1, &["the stored thread of that name cannot be read"]);
    let listed = home.run(&["thread", "list"]);
    assert!(
        listed.err.contains("cannot read the thread `s-7`"),
        "{}",
        listed.err
    );
}

#[test]
fn missing_and_unreadable_threads_are_named() {
    let home = TestHome::recorded();
    let listed = home.run(&["thread", "list"]);
    assert_eq!(listed.out, "There are no threads yet.\n");
    home.run(&["thread", "show"])
        .fails(1, &["there are no threads yet"]);
    home.run(&["thread", "show", "t\u{202e}"])
        .fails(1, &["thread `t\\u{202e}` does not exist", "thread list"]);
    home.sql("INSERT INTO state (kind, key, body) VALUES ('thread', 't-1', '{}')");
    let listed = home.run(&["thread", "list"]);
    assert_eq!(listed.code, 0);
    assert!(
        listed.err.contains("cannot read the thread `t-1`"),
        "{}",
        listed.err
    );
    TestHome::empty()
        .run(&["thread", "list"])
        .fails(1, &["no record yet"]);
}

/// Exit code and output of `cra reconstruct - ARGS` for a text.
fn reconstructed(text: &str, args: &[&str]) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cra"))
        .args(["reconstruct", "-"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

// covers R1, R14
#[test]
fn session_is_written_as_a_snapshot_file_that_lists_missing_parts() {
    let home = TestHome::of(|store| async move {
        let bench = Bench::start(store, clock()).await;
        bench.begin("s-1").await;
        let held = bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await
            .held[0]
            .clone();
        bench.pass(&held).await;
        let agents = bench.runtime.agent_handle();
        let turns = json!([turn(1, 0.2), must(2)]).to_string();
        for take in cra_core::runtime::SessionTurn::read_all(turns.as_bytes()).unwrap() {
            agents.turn(take).await.unwrap();
        }
        for id in ["T-1", "T-2"] {
            let delete = request("s-1", "ticket.delete", json!({"ticket_id": id}));
            tokio::spawn({
                let agents = agents.clone();
                async move { agents.request_action(delete).await }
            });
            let wanted = if id == "T-1" { 1 } else { 2 };
            let snapshot = bench
                .wait_until(|snapshot| snapshot.held.len() == wanted)
                .await;
            if id == "T-1" {
                continue;
            }
            let first = snapshot.held.iter().find(|held| held.id.as_str() == "c-2");
            let reason = "the customer still needs it".to_owned();
            let deny = decide(first.unwrap(), Ruling::Deny { reason });
            bench.runtime.operator_handle().decide(deny).await;
            bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
        }
        bench.runtime.stop().await;
    });
    let written = home.run(&["snapshot", "s-1"]);
    written.succeeds();
    let file = written.json();
    assert_eq!(file["checkpoint_metadata"]["session_id"], "s-1");
    assert_eq!(file["session_state"]["phase"], "waiting_for_an_operator");
    // What is still held was not completed: the denial was.
    let last = file["current_position"]["last_major_activity"].as_str();
    assert!(
        last.unwrap().contains("the customer still needs it"),
        "{last:?}"
    );
    let decisions = file["decisions_made"].to_string();
    let all = file["decisions_made"].as_array().unwrap();
    let denied = all
        .iter()
        .find(|entry| entry["status"] == "denied")
        .unwrap();
    let why = denied["rationale"].as_str().unwrap();
    assert!(why.starts_with("op-1: "), "{why}");
    assert!(why.ends_with("the customer still needs it"), "{why}");
    assert!(decisions.contains("(onboarding)"), "{decisions}");
    let pivot = json!({"from": "arc 1", "to": "arc 2", "insight": "keep 4398"});
    assert_eq!(file["intellectual_journey"]["key_pivots"][0], pivot);
    assert_eq!(
        file["session_metrics"]["held"], 4,
        "the gates of one request"
    );
    let (code, reply) = reconstructed(&written.out, &["--phase", "validate"]);
    assert_eq!(code, 4, "{reply}");
    for line in [
        "[ ] Position: ",
        "[x] History: ",
        "[x] Challenge: ",
        "[ ] User: ",
        "[x] Direction: ",
        "[ ] Confidence: ",
        "      missing: session_state.completion_percentage",
        "      missing: user_profile.communication_calibration",
    ] {
        assert!(reply.contains(line), "`{line}` in {reply}");
    }
    let (_, reply) = reconstructed(&written.out, &[]);
    assert!(reply.contains("BLOCKING ISSUE: "), "{reply}");
    let path = home.0.path().join("snapshot.json");
    let path = path.to_str().unwrap();
    home.run(&["snapshot", "s-1", "--out", path]).succeeds();
    let once = fs::read(path).unwrap();
    home.run(&["snapshot", "s-1", "--out", path])
        .fails(1, &["cannot write"]);
    assert_eq!(fs::read(path).unwrap(), once, "a file is not written over");
    home.run(&["snapshot", "s-9"])
        .fails(1, &["session `s-9` is not on record", "trace list"]);
}

#[test]
fn redacted_content_is_not_in_a_snapshot_file() {
    let text = "atlas_version: \"1.0\"\natlas_id: t\nname: T\nversion: \"1\"\n\
        trace_config: {redact: [{params: [pin]}, {actions: [a.other], values: ['card-[0-9]+']}]}\n\
        actions:\n- {action_id: a.run, name: A, risk_tier: high}\n\
        policies:\n- {policy_id: ask, type: requires_approval, actions: [a.run], reason: r}\n";
    let atlas = load_str("t.yaml", text).unwrap().atlas;
    let home = TestHome::of(|store| async move {
        let bench = Bench::with_atlases(vec![atlas], store, clock()).await;
        bench.begin("s-1").await;
        let run = request("s-1", "a.run", json!({"pin": "sesame-4711", "id": 1}));
        let agents = bench.runtime.agent_handle();
        tokio::spawn(async move { agents.request_action(run).await });
        let snapshot = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
        let reason = "no".to_owned();
        let deny = decide(&snapshot.held[0], Ruling::Deny { reason });
        bench.runtime.operator_handle().decide(deny).await;
        let again = request("s-1", "a.run", json!({"pin": "sesame-4711", "id": 2}));
        let agents = bench.runtime.agent_handle();
        tokio::spawn(async move { agents.request_action(again).await });
        bench
            .wait_until(|snapshot| snapshot.held.iter().any(|held| held.id.as_str() == "c-2"))
            .await;
        // A memento is not a record, but the same redaction applies to it.
        let mut turns = json!([turn(1, 0.2), must(2)]);
        for list in ["active", "parked", "decisions", "next"] {
            turns[0]["proposed"][list] = json!([format!("{list} of card-4711")]);
            turns[1]["proposed"][list] = turns[0]["proposed"][list].clone();
        }
        turns[0]["proposed"]["arc"] = json!("refund card-4711");
        turns[1]["signals"][0]["summary"] = json!("keep card-4712");
        let turns = turns.to_string();
        let agents = bench.runtime.agent_handle();
        for take in cra_core::runtime::SessionTurn::read_all(turns.as_bytes()).unwrap() {
            agents.turn(take).await.unwrap();
        }
        bench.runtime.stop().await;
    });
    let written = home.run(&["snapshot", "s-1"]);
    written.succeeds();
    assert!(written.out.contains("a.run"), "{}", written.out);
    assert!(!written.out.contains("sesame"), "{}", written.out);
    assert!(!written.out.contains("card-"), "{}", written.out);
    let file = written.json();
    let pivot = json!({"from": "refund [redacted]", "to": "arc 2", "insight": "keep [redacted]"});
    assert_eq!(file["intellectual_journey"]["key_pivots"][0], pivot);
    assert_eq!(
        file["user_profile"]["goals"]["key_needs"][0],
        "active of [redacted]"
    );
}

#[test]
fn read_only_flag_refuses_commands_that_write() {
    let home = TestHome::recorded();
    let before = fs::read(home.file()).unwrap();
    let turns = home.0.path().join("turns.json");
    fs::write(&turns, turn(1, 0.2).to_string()).unwrap();
    let (file, atlas) = (turns.to_str().unwrap(), acme());
    let writing: [&[&str]; 5] = [
        &["turn", file],
        &["trace", "import", file],
        &["trace", "prune", "--atlas", &atlas],
        &["trace", "key", "--rotate"],
        &["trace", "key", "--new"],
    ];
    for args in writing {
        let args = [args, &["--read-only"]].concat();
        home.run(&args)
            .fails(2, &["writes to the record", "remove --read-only"]);
    }
    assert_eq!(fs::read(home.file()).unwrap(), before);
    for args in [
        &["trace", "key"][..],
        &["trace", "list"],
        &["thread", "list"],
    ] {
        let args = [args, &["--read-only"]].concat();
        home.run(&args).succeeds();
    }
}

// covers D2
#[test]
fn acknowledging_turn_applies_its_proposal_only_with_skip_updates() {
    let home = TestHome::empty();
    let acknowledging = |number: u32, updates: bool| {
        let mut turn = turn(number, 0.1);
        turn["message"] = json!("ok thanks");
        turn["skip_updates"] = json!(updates);
        turn
    };
    let turns = json!([
        turn(1, 0.1),
        acknowledging(2, false),
        acknowledging(3, true)
    ]);
    let taken = take(&home, &turns, &["--atlas", &acme(), "--json"]);
    taken.succeeds();
    let came = |number: usize| {
        let all = taken.json();
        let one = &all[number];
        (
            one["decision"].clone(),
            one["summary"].clone(),
            one["memento"]["arc"].clone(),
        )
    };
    assert_eq!(came(0), (json!("should"), json!("updated"), json!("arc 1")));
    let kept = (
        json!("skip"),
        json!("kept_only_acknowledged"),
        json!("arc 1"),
    );
    assert_eq!(came(1), kept);
    assert_eq!(came(2), (json!("skip"), json!("updated"), json!("arc 3")));
}

// covers D16, D19
#[tokio::test]
async fn the_conversation_of_the_demo_freezes_at_its_peak_and_thaws() {
    let text = fs::read_to_string(root().join("assets/demo/agents.json")).unwrap();
    let mut script = AgentScript::read(&text).unwrap();
    script.agents.retain(|agent| agent.agent == "helpdesk-bot");
    for agent in &mut script.agents {
        agent.pause_ms = 0;
        agent.sessions = Some(1);
    }
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::start(Arc::clone(&store), clock()).await;
    let folder = tempfile::tempdir().unwrap();
    let place = SocketLock::acquire(&folder.path().join("run/demo.sock")).unwrap();
    let server = UnixServer::start(place, gateway_state(&bench, store.as_ref()).await).unwrap();
    script.start(server.path());
    // Its next step is an action: a gate holds that, and never the turns.
    let seven = |turns: usize| turns == 7;
    let snapshot = bench
        .wait_until(|snapshot| {
            snapshot
                .threads
                .first()
                .is_some_and(|snapshot| seven(snapshot.turns.len()))
        })
        .await;
    let thread = &snapshot.threads[0];
    let name = thread.id.as_str();
    let run = name
        .strip_prefix("hd-")
        .and_then(|item| item.strip_suffix("-1"));
    assert!(
        run.is_some_and(|run| run.len() == 4),
        "a name of this run: {name}"
    );
    let mut summaries: Vec<_> = thread
        .turns
        .iter()
        .map(|turn| turn.summary.clone())
        .collect();
    summaries.reverse();
    let frozen = || SummaryResult::Kept(KeptReason::AtPeak);
    let wanted = [
        SummaryResult::Updated,
        SummaryResult::Updated,
        SummaryResult::Updated,
        frozen(),
        SummaryResult::Kept(KeptReason::NothingProposed),
        frozen(),
        SummaryResult::Updated,
    ];
    assert_eq!(summaries, wanted);
    assert!(!thread.is_frozen());
    let latest = thread.latest.as_ref().unwrap();
    assert!(
        latest.arc.as_str().contains("T-10"),
        "numbers are filled in"
    );
    bench.runtime.stop().await;
}
