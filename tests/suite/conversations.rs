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

use super::cli::{Desk, Said};
use super::support::{Bench, clock, decide, hall, open_again, request, root};

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
fn take(desk: &Desk, turns: &Value, more: &[&str]) -> Said {
    let file = desk.0.path().join("turns.json");
    fs::write(&file, turns.to_string()).unwrap();
    let args = [&["turn", file.to_str().unwrap()][..], more].concat();
    desk.run(&args)
}

// covers D1, D10, D11, D15, D16, D18
#[test]
fn turns_are_taken_from_a_file_frozen_at_the_peak_and_thawed_by_what_must() {
    let desk = Desk::empty();
    let atlas = acme();
    let with = ["--atlas", atlas.as_str()];
    let first = take(&desk, &json!([turn(1, 0.9), turn(2, 0.92)]), &with);
    first.succeeds();
    for words in [
        "decision    should, rule 6: no other rule applies",
        "(FALSE or FALSE) and TRUE = FALSE",
        "summary     applied",
        "(TRUE or TRUE) and TRUE = TRUE",
        "summary     FROZEN: the peak guardrail held the proposal back",
    ] {
        assert!(first.out.contains(words), "{words}: {}", first.out);
    }
    // Another process reads what the first left on disk.
    let shown = desk.run(&["thread", "show", "s-1"]);
    shown.succeeds();
    for words in [
        "guardrail   SUMMARY FROZEN since ",
        ", 1 held back",
        "phase       peak",
        "unfreezes   a must signal",
        "- arc: arc 1",
        "+ arc: arc 2",
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    let listed = desk.run(&["thread", "list", "--json"]).json();
    assert_eq!(listed[0]["frozen"], true);
    assert_eq!(listed[0]["arc"], "arc 1");
    let etag = listed[0]["etag"].clone();
    let mut thaws = must(3);
    thaws["if_match"] = etag;
    let with = [&with[..], &["--json"]].concat();
    let thawed = take(&desk, &thaws, &with);
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
    let shown = desk.run(&["thread", "show", "--json"]).json();
    assert_eq!(shown["frozen"], false);
    assert_eq!(shown["etag"], thawed["etag"]);
    assert_eq!(shown["turns"].as_array().unwrap().len(), 3);
    // A gate stands before the session's start, and turns are no actions.
    assert_eq!(desk.run(&["queue", "--json"]).json()[0]["session"], "s-1");
    let replayed = desk
        .run(&["trace", "replay", "s-1", "--at", "3", "--json"])
        .json();
    let at = &replayed["state"]["threads"]["s-1"];
    assert_eq!((&at["frozen"], &at["version"]), (&json!(true), &json!(1)));
    let replayed = desk.run(&["trace", "replay", "s-1", "--at", "3"]).out;
    let told = "thread      s-1: peak/high, FROZEN, should by rule 6, version 1";
    assert!(replayed.contains(told), "{replayed}");
    desk.run(&["trace", "verify"]).succeeds();
}

#[test]
fn what_is_no_turn_is_told_with_its_place_and_takes_nothing() {
    let desk = Desk::empty();
    desk.run(&["turn"]).fails(2, &["FILE"]);
    desk.run(&["turn", "/nowhere/x.json"])
        .fails(1, &["cannot read"]);
    let mut wrong = turn(2, 0.3);
    wrong["affect"]["intensity"] = json!(7);
    let told = take(&desk, &json!([turn(1, 0.3), wrong]), &[]);
    told.fails(
        1,
        &[
            "[1].affect.intensity",
            "help: cra turn --help shows an example",
        ],
    );
    assert!(!desk.file().exists(), "nothing was made");
}

#[test]
fn a_refused_turn_is_told_with_its_place_and_those_before_it_stay() {
    let desk = Desk::empty();
    let mut stale = turn(2, 0.3);
    stale["if_match"] = json!("0000000000000000");
    let told = take(
        &desk,
        &json!([turn(1, 0.3), stale, turn(3, 0.3)]),
        &["--json"],
    );
    let words = [
        "turn 2 of 3 (message `m-2`) was rejected: the memento has changed since it was read",
        "help: read the memento again",
    ];
    told.fails(1, &words);
    assert_eq!(told.json().as_array().unwrap().len(), 1);
    let shown = desk.run(&["thread", "show", "--json"]).json();
    assert_eq!(shown["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn a_store_that_a_console_has_is_left_alone_and_so_is_what_is_held_under_other_atlases() {
    let desk = Desk::empty();
    let store = open_again(desk.0.path());
    take(&desk, &turn(1, 0.3), &[]).fails(1, &["in use by another console", "help: "]);
    drop(store);
    drop(open_again(desk.0.path()));
    take(&desk, &turn(1, 0.3), &["--atlas", &acme()]).succeeds();
    let before = desk.run(&["queue", "--json"]).json();
    assert_eq!(before[0]["action"], "session_start");
    let words = ["1 request is held under other Atlases", "load the Atlases"];
    take(&desk, &turn(2, 0.3), &[]).fails(1, &words);
    let after = desk.run(&["queue", "--json"]).json();
    assert_eq!(after[0]["id"], before[0]["id"], "it is still held");
    assert_eq!(desk.run(&["thread", "show", "--json"]).json()["version"], 1);
}

#[test]
fn the_turn_in_the_help_is_taken_and_an_agent_is_named() {
    let desk = Desk::empty();
    let help = desk.run(&["turn", "--help"]).out;
    let from = help.find("{ \"session\"").unwrap();
    let until = help.find("\n\nOnly session").unwrap();
    let example: Value = serde_json::from_str(help.get(from..until).unwrap()).unwrap();
    take(&desk, &example, &["--agent", "mail-bot"]).succeeds();
    let listed = desk.run(&["trace", "list", "--json"]).json();
    assert_eq!(listed[0]["agent"], "mail-bot");
    assert_eq!(
        desk.run(&["thread", "show", "t-31", "--json"]).json()["session"],
        "s-12"
    );
}

// covers D20
#[test]
fn a_thread_is_shown_with_its_owner_and_the_session_of_each_turn() {
    let desk = Desk::of(|store| async move {
        let bench = Bench::start(store, clock()).await;
        let agents = bench.runtime.agent_handle();
        let secret = "5ec2e7".to_owned();
        let start = StartSession {
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
    let shown = desk.run(&["thread", "show", "t-1"]).out;
    for words in [
        "owner       s-1\n",
        "refused     1 writes of other sessions, the last by s-2 at ",
        "  m-1  by s-1",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let whole = desk.run(&["thread", "show", "t-1", "--json"]);
    assert_eq!(whole.json()["owner"], "s-1");
    assert_eq!(whole.json()["turns"][0]["session"], "s-1");
    let secret = Digest::of("5ec2e7").to_string();
    assert!(!whole.out.contains(&secret), "{}", whole.out);
    assert_eq!(
        desk.run(&["thread", "list", "--json"]).json()[0]["owner"],
        "s-1"
    );
}

#[test]
fn a_stored_thread_that_cannot_be_read_is_not_written_over() {
    let desk = Desk::recorded();
    desk.sql("INSERT INTO state (kind, key, body) VALUES ('thread', 's-7', '{}')");
    let mut first = turn(1, 0.1);
    first["session"] = json!("s-7");
    let told = take(&desk, &first, &["--atlas", &acme()]);
    told.fails(1, &["the stored thread of that name cannot be read"]);
    let listed = desk.run(&["thread", "list"]);
    assert!(
        listed.err.contains("the thread `s-7` cannot be read"),
        "{}",
        listed.err
    );
}

#[test]
fn threads_that_are_not_there_or_cannot_be_read_are_named() {
    let desk = Desk::recorded();
    let listed = desk.run(&["thread", "list"]);
    assert_eq!(listed.out, "There are no threads yet.\n");
    desk.run(&["thread", "show"])
        .fails(1, &["there are no threads yet"]);
    desk.run(&["thread", "show", "t\u{202e}"])
        .fails(1, &["no thread `t\\u{202e}`", "thread list"]);
    desk.sql("INSERT INTO state (kind, key, body) VALUES ('thread', 't-1', '{}')");
    let listed = desk.run(&["thread", "list"]);
    assert_eq!(listed.code, 0);
    assert!(
        listed.err.contains("the thread `t-1` cannot be read"),
        "{}",
        listed.err
    );
    Desk::empty()
        .run(&["thread", "list"])
        .fails(1, &["no record yet"]);
}

/// What `cra reconstruct - ARGS` says to a text.
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
fn a_session_is_written_as_a_snapshot_file_that_says_what_is_missing() {
    let desk = Desk::of(|store| async move {
        let bench = Bench::start(store, clock()).await;
        bench.begin("s-1").await;
        let held = bench.until(|it| it.held.len() == 1).await.held[0].clone();
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
            let picture = bench.until(|it| it.held.len() == wanted).await;
            if id == "T-1" {
                continue;
            }
            let first = picture.held.iter().find(|it| it.id.as_str() == "c-2");
            let reason = "the customer still needs it".to_owned();
            let deny = decide(first.unwrap(), Ruling::Deny { reason });
            bench.runtime.operator_handle().decide(deny).await;
            bench.until(|it| it.held.len() == 1).await;
        }
        bench.runtime.stop().await;
    });
    let written = desk.run(&["snapshot", "s-1"]);
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
    let denied = all.iter().find(|it| it["status"] == "denied").unwrap();
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
    let (code, told) = reconstructed(&written.out, &["--phase", "validate"]);
    assert_eq!(code, 4, "{told}");
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
        assert!(told.contains(line), "`{line}` in {told}");
    }
    let (_, told) = reconstructed(&written.out, &[]);
    assert!(told.contains("BLOCKING ISSUE: "), "{told}");
    let path = desk.0.path().join("snapshot.json");
    let path = path.to_str().unwrap();
    desk.run(&["snapshot", "s-1", "--out", path]).succeeds();
    let once = fs::read(path).unwrap();
    desk.run(&["snapshot", "s-1", "--out", path])
        .fails(1, &["cannot write"]);
    assert_eq!(fs::read(path).unwrap(), once, "a file is not written over");
    desk.run(&["snapshot", "s-9"])
        .fails(1, &["session `s-9` is not on record", "trace list"]);
}

#[test]
fn what_the_record_leaves_out_is_not_in_a_snapshot_file() {
    let text = "atlas_version: \"1.0\"\natlas_id: t\nname: T\nversion: \"1\"\n\
        trace_config: {redact: [{params: [pin]}, {actions: [a.other], values: ['card-[0-9]+']}]}\n\
        actions:\n- {action_id: a.run, name: A, risk_tier: high}\n\
        policies:\n- {policy_id: ask, type: requires_approval, actions: [a.run], reason: r}\n";
    let atlas = load_str("t.yaml", text).unwrap().atlas;
    let desk = Desk::of(|store| async move {
        let bench = Bench::under(vec![atlas], store, clock()).await;
        bench.begin("s-1").await;
        let run = request("s-1", "a.run", json!({"pin": "sesame-4711", "id": 1}));
        let agents = bench.runtime.agent_handle();
        tokio::spawn(async move { agents.request_action(run).await });
        let picture = bench.until(|it| it.held.len() == 1).await;
        let reason = "no".to_owned();
        let deny = decide(&picture.held[0], Ruling::Deny { reason });
        bench.runtime.operator_handle().decide(deny).await;
        let again = request("s-1", "a.run", json!({"pin": "sesame-4711", "id": 2}));
        let agents = bench.runtime.agent_handle();
        tokio::spawn(async move { agents.request_action(again).await });
        bench
            .until(|it| it.held.iter().any(|held| held.id.as_str() == "c-2"))
            .await;
        // A memento is no record, and yet nothing of it gets out that a record would leave out.
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
    let written = desk.run(&["snapshot", "s-1"]);
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
fn what_only_looks_runs_no_command_that_writes() {
    let desk = Desk::recorded();
    let before = fs::read(desk.file()).unwrap();
    let turns = desk.0.path().join("turns.json");
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
        desk.run(&args)
            .fails(2, &["writes to the record", "remove --read-only"]);
    }
    assert_eq!(fs::read(desk.file()).unwrap(), before);
    for args in [
        &["trace", "key"][..],
        &["trace", "list"],
        &["thread", "list"],
    ] {
        let args = [args, &["--read-only"]].concat();
        desk.run(&args).succeeds();
    }
}

// covers D2
#[test]
fn a_turn_that_only_acknowledges_takes_its_proposal_where_it_says_so() {
    let desk = Desk::empty();
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
    let taken = take(&desk, &turns, &["--atlas", &acme(), "--json"]);
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
    let door = UnixServer::start(place, hall(&bench, store.as_ref()).await).unwrap();
    script.start(door.path());
    // Its next step is an action: a gate holds that, and never the turns.
    let seven = |turns: usize| turns == 7;
    let picture = bench
        .until(|it| it.threads.first().is_some_and(|it| seven(it.turns.len())))
        .await;
    let thread = &picture.threads[0];
    let name = thread.id.as_str();
    let run = name
        .strip_prefix("hd-")
        .and_then(|it| it.strip_suffix("-1"));
    assert!(
        run.is_some_and(|run| run.len() == 4),
        "a name of this run: {name}"
    );
    let mut summaries: Vec<_> = thread.turns.iter().map(|it| it.summary.clone()).collect();
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
