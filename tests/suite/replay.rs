//! Reading the record back: replay, comparison, and exports.

mod recorded_session;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use cra_core::base::pattern::Patterns;
use cra_core::runtime::snapshot::{RuntimeSnapshot, SessionSummary};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::event::Event;
use cra_core::trace::replay::state::{HoldScope, ReplayPhase};
use cra_core::trace::replay::{Replay, ReplayState};
use cra_core::trace::source::MemorySource;
use cra_core::trace::verification::TrustAnchors;
use serde_json::{Value, json};

use super::cli::{CommandOutput, TestHome};
use super::support::request;
use recorded_session::{HOSTILE, Life, lived};

/// Capabilities that the example Atlas grants only after a gate is passed.
const GATED: [&str; 2] = ["basic-support", "admin-support"];

async fn record(store: &MemoryStore, session: &str) -> Vec<Event> {
    let session = session.parse().unwrap();
    store.events(session, 0, 10_000).await.unwrap()
}

/// State derived from the events of a session, compared with the snapshot of the console.
async fn agrees(store: &MemoryStore, life: &Life, session: &str, at: &str) -> ReplayState {
    let snapshot = life.bench.wait_until(|_| true).await;
    let events = record(store, session).await;
    let source = MemorySource::new(events.clone());
    let mut replay = Replay::load(&source, session.parse().unwrap())
        .unwrap()
        .unwrap();
    let state = replay.state_at(u64::MAX).unwrap();
    assert_eq!(state.events, events.len() as u64, "{at}");
    assert_eq!(
        held_by_events(&state),
        held_by_runtime(&snapshot, session),
        "{at}"
    );
    let known = snapshot
        .sessions
        .iter()
        .find(|item| item.id.as_str() == session);
    let Some(known) = known else {
        assert_eq!(state.phase, ReplayPhase::Ended, "{at}");
        return state;
    };
    assert_eq!(state.unlocked, unlocked(known), "{at}");
    let contexts: Vec<_> = state.contexts.keys().cloned().collect();
    assert_eq!(contexts, known.contexts, "{at}");
    assert_eq!(
        (state.events, &state.agent.name),
        (known.events, &known.agent),
        "{at}"
    );
    let runs = state.actions.going.len() as u64 + state.actions.completed;
    assert_eq!(runs, known.actions, "{at}");
    state
}

fn unlocked(session: &SessionSummary) -> BTreeSet<String> {
    let gated = session
        .unlocked
        .iter()
        .filter(|id| GATED.contains(&id.as_str()));
    gated.cloned().collect()
}

fn held_by_runtime(snapshot: &RuntimeSnapshot, session: &str) -> BTreeMap<String, Vec<String>> {
    let held = snapshot
        .held
        .iter()
        .filter(|held| held.session.as_str() == session);
    held.map(|held| {
        let gates = held.gates.iter().map(|gate| gate.span_id.to_string());
        (held.span_id.to_string(), gates.collect())
    })
    .collect()
}

fn held_by_events(state: &ReplayState) -> BTreeMap<String, Vec<String>> {
    let held = state.held.iter().map(|held| {
        let gates = held.gates.iter().map(|gate| gate.span_id.to_string());
        (held.span_id.as_ref().unwrap().to_string(), gates.collect())
    });
    held.collect()
}

// covers T32
#[tokio::test]
async fn state_derived_from_events_matches_the_console() {
    let store = MemoryStore::default();
    let life = Life::new(Arc::new(store.clone())).await;
    life.begin("s-1", "bot", "tidy up").await;
    life.held("s-1").await;
    let state = agrees(&store, &life, "s-1", "held at start").await;
    assert_eq!(
        (state.phase, state.held[0].holds),
        (ReplayPhase::AtStart, HoldScope::Start)
    );
    life.pass("s-1").await;
    life.bench.wait_until(|s| s.held.is_empty()).await;
    let state = agrees(&store, &life, "s-1", "let in").await;
    assert_eq!((state.phase, state.passed.count), (ReplayPhase::Working, 1));
    assert_eq!(state.agent.intent.as_deref(), Some("tidy up"));
    life.run("s-1", "ticket.get", json!({"ticket_id": "T-1"}), 40)
        .await;
    agrees(&store, &life, "s-1", "one action ran").await;

    let agents = life.bench.runtime.agent_handle();
    let wanted = request("s-1", "ticket.delete", json!({"ticket_id": "T-2"}));
    let pending = tokio::spawn(async move { agents.request_action(wanted).await });
    let held = life.held("s-1").await;
    let state = agrees(&store, &life, "s-1", "an action is held").await;
    let gate = &state.held[0];
    assert_eq!(
        (gate.what.as_str(), gate.holds),
        ("ticket.delete", HoldScope::Action)
    );
    assert_eq!(
        (state.phase, gate.since),
        (ReplayPhase::Held, held.opened_at)
    );
    life.deny("s-1", "not today").await;
    pending.await.unwrap().unwrap_err();
    life.bench.wait_until(|s| s.held.is_empty()).await;
    let state = agrees(&store, &life, "s-1", "it was refused").await;
    assert_eq!((state.actions.blocked, state.blocked.count), (1, 4));
    assert_eq!(state.blocked.recent[0].by.as_deref(), Some("op-1"));

    life.ask("s-1", "ticket.delete", json!({"ticket_id": "T-3"}), None)
        .await;
    let state = agrees(&store, &life, "s-1", "one was approved, and failed").await;
    assert_eq!((state.actions.completed, state.actions.failed), (2, 1));
    assert_eq!((state.overrides.count, state.verified.count), (1, 1));
    let approved = &state.overrides.recent[0];
    assert_eq!(
        approved.justification.as_deref(),
        Some("confirmed by the customer in writing")
    );
    life.fail("s-1", "slow").await;
    life.end("s-1", "done").await;
    life.bench.wait_until(|s| s.sessions.is_empty()).await;
    let state = agrees(&store, &life, "s-1", "it ended").await;
    assert_eq!(
        (state.errors.count, state.ended.unwrap().status.as_str()),
        (1, "completed")
    );
    life.stop().await;
}

// covers T29, T32
#[tokio::test]
async fn a_replay_of_a_real_record_loads_verifies_steps_seeks_and_filters() {
    let store = MemoryStore::default();
    lived(Arc::new(store.clone())).await;
    let events = record(&store, "s-1").await;
    let source = MemorySource::new(events.clone())
        .with_verification(store.verify(TrustAnchors::nothing()).await.unwrap().chains);
    let session = || "s-1".parse().unwrap();
    assert!(
        Replay::load(&source, "s-9".parse().unwrap())
            .unwrap()
            .is_none()
    );
    let mut replay = Replay::load(&source, session()).unwrap().unwrap();
    let checked = replay.verify().unwrap().unwrap();
    assert!(checked.verdict.is_sound());
    assert_eq!(
        (checked.events, replay.end()),
        (events.len() as u64, events.len() as u64)
    );
    let mut steps = Vec::new();
    replay.step(|event| steps.push(event.clone())).unwrap();
    assert_eq!(steps, events);
    assert_eq!(replay.seek(12).unwrap(), Some(&events[12]));
    let types: Patterns = ["action_*"].into_iter().collect();
    let mut actions = Vec::new();
    let mut filtered = Replay::load(&source, session())
        .unwrap()
        .unwrap()
        .filter(types);
    filtered.step(|event| actions.push(event.clone())).unwrap();
    let wanted = events
        .iter()
        .filter(|event| event.event_type.starts_with("action_"));
    assert_eq!(actions, wanted.cloned().collect::<Vec<_>>());
    // Everything that one request caused is of its operation.
    let attempt = &actions[2];
    let caused = events
        .iter()
        .filter(|event| event.trace_id == attempt.trace_id);
    let caused: BTreeSet<_> = caused.map(|event| event.event_type.as_str()).collect();
    for name in [
        "policy_checked",
        "checkpoint_triggered",
        "checkpoint_passed",
        "policy_override",
        "risk_verified",
        "action_completed",
    ] {
        assert!(caused.contains(name), "{name} is not in {caused:?}");
    }
}

fn lines(output: &CommandOutput) -> Vec<&str> {
    output.out.lines().collect()
}

#[test]
fn replay_prints_a_session_in_order() {
    let home = TestHome::of(lived);
    let output = home.run(&["trace", "replay", "s-1"]);
    output.succeeds();
    let lines = lines(&output);
    assert_eq!(
        lines[..3],
        ["session s-1, 47 events", "chain   SEALED 0..46", ""]
    );
    assert_eq!(lines.len(), 3 + 47);
    assert_eq!(
        lines[3],
        "     0  00:00:00    session of claude-code started, intent: close stale tickets of March  (session_started)"
    );
    // Deeper is further in.
    assert!(
        lines[4].starts_with("     1  00:00:00  !   gate onboarding"),
        "{}",
        lines[4]
    );
    assert!(
        lines[5].starts_with("     2  00:00:04        op-1 answers"),
        "{}",
        lines[5]
    );

    let filtered = home.run(&[
        "trace",
        "replay",
        "s-1",
        "--type",
        "policy_*",
        "--type",
        "session_ended",
    ]);
    filtered.succeeds();
    assert_eq!(filtered.out.lines().skip(3).count(), 5);

    let stopped = home.run(&[
        "trace",
        "replay",
        "s-1",
        "--stop-on",
        "checkpoint=admin-gate",
        "--no-verify",
    ]);
    stopped.succeeds();
    for words in [
        "chain   not checked",
        "Stopped at event 13",
        "held        ticket.delete",
        "unlocked    basic-support",
    ] {
        assert!(
            stopped.out.contains(words),
            "{words} is not in {}",
            stopped.out
        );
    }
    let never = home.run(&["trace", "replay", "s-1", "--stop-on", "text=no such words"]);
    assert!(
        never.out.ends_with("No event matched --stop-on.\n"),
        "{}",
        never.out
    );
    // Nothing of what agents say is obeyed by a terminal.
    let hostile = home.run(&["trace", "replay", "s-3"]);
    hostile.succeeds();
    assert!(
        !hostile.out.contains(['\u{1b}', '\u{202e}', '\0']),
        "{}",
        hostile.out
    );
}

#[test]
fn replay_prints_the_state_at_an_event() {
    let home = TestHome::of(lived);
    let output = home.run(&["trace", "replay", "s-1", "--at", "16"]);
    output.succeeds();
    for words in [
        "session s-1, event 16 of 46",
        "phase       working, request held",
        "held        ticket.delete, since 2026-01-01T00:00:08.450000Z",
        "  gate      admin-gate: needs the capability `admin-support`, which is locked",
        "contexts    intro-context, policy-summary",
        "actions     2 requested, 1 completed (0 failed), 0 blocked",
    ] {
        assert!(
            output.out.contains(words),
            "{words} is not in {}",
            output.out
        );
    }
    let reply = home
        .run(&["trace", "replay", "s-1", "--at", "28", "--json"])
        .json();
    assert_eq!(reply["state"]["sequence"], 28);
    assert_eq!(reply["event"]["event_type"], "policy_override");
    assert_eq!(reply["state"]["overrides"]["recent"][0]["approver"], "op-1");
    assert_eq!(reply["state"]["phase"], "held");
    assert_eq!(reply["chain"]["events"], 47);
    home.run(&["trace", "replay", "s-1", "--at", "47"])
        .fails(1, &["session `s-1` has no event 47, only 0 to 46"]);
    home.run(&["trace", "replay", "s-9"])
        .fails(1, &["session `s-9` is not on record", "cra trace list"]);
    home.run(&["trace", "replay", "s-1", "--stop-on", "nonsense"])
        .fails(2, &["`nonsense` is not a stop condition", "type=PATTERN"]);
}

#[test]
fn replay_prints_each_step_and_the_stop_position_as_json() {
    let home = TestHome::of(lived);
    let output = home.run(&[
        "trace",
        "replay",
        "s-2",
        "--json",
        "--stop-on",
        "type=action_blocked",
    ]);
    output.succeeds();
    let steps: Vec<Value> = output
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (last, steps) = steps.split_last().unwrap();
    for (step, sequence) in steps.iter().zip(0..) {
        assert_eq!(step["event"]["sequence"], sequence);
        assert!(step["depth"].is_u64() && step["summary"].is_string());
    }
    assert_eq!(last["stopped_at"], steps.len() - 1);
    assert_eq!(last["state"]["actions"]["blocked"], 1);
}

#[test]
fn broken_chain_is_reported_as_broken() {
    let home = TestHome::of(lived);
    home.sql("UPDATE events SET records = replace(records, 'op-1', 'op-2')");
    for args in [
        &["trace", "replay", "s-1"][..],
        &["trace", "replay", "s-1", "--at", "3"],
        &["trace", "diff", "s-1", "s-2"],
    ] {
        let output = home.run(args);
        assert_eq!((output.code, output.err.as_str()), (6, ""), "{args:?}");
        assert!(output.out.contains("BROKEN at 2"), "{}", output.out);
    }
    let report = home.run(&["trace", "export", "s-1", "--format", "html"]);
    report.succeeds();
    assert!(
        report.out.contains("1 of 1 chains FAILED verification"),
        "the report says so"
    );
    assert!(
        report
            .out
            .contains("From this event on, the record differs from what cra wrote")
    );
}

#[test]
fn diff_names_the_first_divergence_and_the_differences_of_two_sessions() {
    let home = TestHome::of(lived);
    let output = home.run(&["trace", "diff", "s-1", "s-2"]);
    output.succeeds();
    for words in [
        "They differ after 16 common steps:",
        "  A      17  op-1 answers admin-gate: {\"admin-ack\":\"acknowledged\"}",
        "  B      17  admin-gate NOT passed (denied): denied by op-1: ask the customer first",
        "* overrides           1            0",
        "  actions blocked     1            1",
    ] {
        assert!(
            output.out.contains(words),
            "{words} is not in {}",
            output.out
        );
    }
    let same = home.run(&["trace", "diff", "s-1", "s-1"]);
    same.succeeds();
    assert!(same.out.contains("No difference in "), "{}", same.out);
    // The same from a file.
    let file = home.0.path().join("all.jsonl");
    let file = file.to_str().unwrap();
    home.run(&["trace", "export", "-o", file]).succeeds();
    let reply = home.run(&["trace", "diff", &format!("{file}:s-1"), "s-2", "--json"]);
    reply.succeeds();
    let reply = reply.json();
    assert_eq!(
        (&reply["same"], &reply["difference"]["common"]),
        (&json!(false), &json!(16))
    );
    assert_eq!(reply["difference"]["first"]["a"]["sequence"], 17);
    assert_eq!(reply["difference"]["sums"][1]["not_passed"], 4);
    let from_store = home.run(&["trace", "diff", "s-1", "s-2", "--json"]).json();
    assert_eq!(from_store["difference"], reply["difference"]);
    home.run(&["trace", "diff", "s-1", &format!("{file}:s-9")])
        .fails(1, &["session `s-9` is not in", "--file"]);
}

#[test]
fn chain_is_not_reported_as_verified_while_its_log_is_invalid() {
    let home = TestHome::recorded();
    home.sql("DELETE FROM seals");
    for args in [
        &["trace", "replay", "s-1"][..],
        &["trace", "diff", "s-1", "s-1"],
    ] {
        let output = home.run(args);
        assert_eq!(output.code, 6, "{}", output.out);
        let reply = "the log failed verification: DIVERGED";
        assert!(output.out.contains(reply), "{}", output.out);
    }
    let html = home.run(&["trace", "export", "--format", "html"]).out;
    assert!(html.contains("1 of 1 chains FAILED verification."));
}

#[test]
fn a_session_is_replayed_from_an_exported_file_as_from_the_store() {
    let home = TestHome::of(lived);
    let file = home.0.path().join("all.jsonl");
    let file = file.to_str().unwrap();
    home.run(&["trace", "export", "-o", file]).succeeds();
    let named = format!("{file}:s-1");
    for more in [
        &["--no-verify"][..],
        &["--no-verify", "--json"],
        &["--no-verify", "--at", "20"],
    ] {
        let replay = |name: &str| home.run(&[&["trace", "replay", name][..], more].concat());
        assert_eq!(replay("s-1").out, replay(&named).out);
    }
    // A file says nothing about how long a chain was.
    let output = home.run(&["trace", "replay", &named]);
    output.succeeds();
    assert!(
        output.out.contains("chain   UNSEALED tail 47"),
        "{}",
        output.out
    );
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, text.replacen('{', "{]", 3)).unwrap();
    home.run(&["trace", "replay", &named])
        .fails(1, &["all.jsonl", "line 1"]);
    home.run(&["trace", "replay", "/nowhere.jsonl:s-1"])
        .fails(1, &["/nowhere.jsonl"]);
}

/// Files in the folder of a test home.
fn left(home: &TestHome) -> Vec<String> {
    let files = fs::read_dir(home.0.path()).unwrap();
    let mut names: Vec<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn every_export_format_is_written_atomically_and_never_overwrites_a_file() {
    let home = TestHome::of(lived);
    for format in ["jsonl", "csv", "html", "otlp"] {
        let file = home.0.path().join(format);
        let name = file.to_str().unwrap();
        home.run(&["trace", "export", "--format", format, "-o", name])
            .succeeds();
        let output = home.run(&["trace", "export", "--format", format]);
        output.succeeds();
        let written = fs::read_to_string(&file).unwrap();
        // When a report was made is all that differs.
        let plain = |text: &str| {
            text.lines()
                .filter(|line| !line.contains("made by cra"))
                .collect::<String>()
        };
        assert_eq!(plain(&written), plain(&output.out), "{format}");
        fs::write(&file, "mine").unwrap();
        home.run(&["trace", "export", "--format", format, "-o", name])
            .fails(1, &[name, "exists"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }
    assert_eq!(
        left(&home),
        [
            "cra.db", "cra.head", "cra.key", "csv", "html", "jsonl", "otlp"
        ]
    );
    // Where the record cannot be read to its end, there is no file.
    home.sql("UPDATE events SET records = 'nothing' WHERE sequence = 40");
    for format in ["jsonl", "csv", "otlp"] {
        let file = home.0.path().join("half");
        let name = file.to_str().unwrap();
        home.run(&["trace", "export", "--format", format, "-o", name])
            .fails(1, &["damaged"]);
        assert_eq!(
            left(&home),
            [
                "cra.db", "cra.head", "cra.key", "csv", "html", "jsonl", "otlp"
            ]
        );
    }
    home.run(&["trace", "export", "-o", "/nowhere/at.all"])
        .fails(1, &["/nowhere/at.all"]);
    home.run(&["trace", "export", "--format", "pdf"])
        .fails(2, &["pdf", "otlp"]);
}

#[test]
fn exports_of_a_real_record_contain_every_event_and_escape_text() {
    let home = TestHome::of(lived);
    let csv = home.run(&["trace", "export", "s-1", "--format", "csv"]);
    csv.succeeds();
    assert_eq!(csv.out.matches("\r\n").count(), 1 + 47);
    assert!(
        csv.out
            .starts_with("session_id,sequence,timestamp,event_type,about,summary,")
    );
    let otlp = home.run(&["trace", "export", "--format", "otlp"]).json();
    let resources = otlp["resourceSpans"].as_array().unwrap();
    assert_eq!(resources.len(), 3);
    let spans = resources
        .iter()
        .flat_map(|resource| resource["scopeSpans"][0]["spans"].as_array().unwrap());
    let events = spans
        .map(|span| span["events"].as_array().unwrap().len())
        .sum::<usize>();
    assert_eq!(events, 47 + 26 + 13);
    let html = home.run(&["trace", "export", "--format", "html"]);
    html.succeeds();
    assert_eq!(html.out.matches("<details ").count(), 47 + 26 + 13);
    assert!(!html.out.contains("<script") && !html.out.contains("<img"));
    assert!(!html.out.contains(['\u{1b}', '\u{202e}', '\0']));
    assert!(html.out.contains("All records verified."));
    assert!(html.out.contains("confirmed by the customer in writing"));
    assert!(
        HOSTILE.contains("<script>"),
        "what is tried is worth trying"
    );
}
