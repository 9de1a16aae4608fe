//! The governance log, imports, pruning and legal holds, as the commands show them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::digest::Digest;
use cra_core::runtime::snapshot::RuntimeSnapshot;
use cra_core::runtime::{SessionTurn, ThreadAction};
use cra_core::store::Store;
use serde_json::{Value, json};

use super::cli::TestHome;
use super::support::{Bench, clock, request};

const HEAD: &str = "atlas_version: '1.0'\nversion: '1'\nname: Kept\ndefault_decision: allow\n\
                    actions: [{ action_id: a.look, risk_tier: low }]\n";

fn atlas(id: &str, retention: &str) -> Atlas {
    let text = format!("{HEAD}atlas_id: {id}\ntrace_config: {{ retention: {retention} }}\n");
    load_str(id, &text).unwrap().atlas
}

/// A store with a session that was recorded on the first of January under these Atlases.
fn recorded_under(atlases: Vec<Atlas>) -> TestHome {
    TestHome::of(|store| async move {
        let bench = Bench::with_atlases(atlases, store, clock()).await;
        bench.begin("s-1").await;
        let look = request("s-1", "a.look", json!({"word": "pelican"}));
        bench
            .runtime
            .agent_handle()
            .request_action(look)
            .await
            .unwrap();
        bench.runtime.stop().await;
    })
}

#[track_caller]
fn runs(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    assert_eq!(output.code, 0, "{args:?}: {}{}", output.out, output.err);
    output.out
}

/// Entries of the governance log, as `cra trace show log --json` prints them.
fn log(home: &TestHome) -> Vec<Value> {
    let shown = runs(home, &["trace", "show", "log", "--json"]);
    let lines = shown.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

fn entry(home: &TestHome, event_type: &str) -> Value {
    let entries = log(home);
    let found = entries
        .iter()
        .rev()
        .find(|entry| entry["event_type"] == event_type);
    found.unwrap_or_else(|| panic!("no {event_type}: {entries:?}"))["payload"].clone()
}

fn write(home: &TestHome, name: &str, text: &str) -> String {
    let path = home.0.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn exported(home: &TestHome, session: &str) -> String {
    let path = home.0.path().join(format!("{session}.jsonl"));
    let path = path.to_str().unwrap().to_owned();
    runs(home, &["trace", "export", session, "-o", &path]);
    path
}

#[test]
fn governance_log_can_be_read_by_name_and_by_session_id() {
    let home = TestHome::recorded();
    let shown = runs(&home, &["trace", "show", "log"]);
    assert!(
        shown.contains("log_started") && shown.contains("atlas_loaded"),
        "{shown}"
    );
    assert!(!shown.contains("log_sealed  "), "{shown}");
    let listed = runs(&home, &["trace", "list", "log", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed[0]["session"].as_str().unwrap().to_owned();
    assert!(runs(&home, &["trace", "list"]).contains(&id));
    assert_eq!(runs(&home, &["trace", "show", &id]), shown);
    for name in ["log", &id] {
        let reply = runs(&home, &["trace", "replay", name]);
        assert!(
            reply.contains("Atlas acme.support") || reply.contains(" loaded"),
            "{reply}"
        );
        let verified = runs(&home, &["trace", "verify", name]);
        assert!(
            verified.contains(&id) && verified.contains("SEALED"),
            "{verified}"
        );
        assert!(!verified.contains("s-1"), "{verified}");
    }
    // An export has it too.
    let file = home.0.path().join("all.jsonl");
    let file = file.to_str().unwrap();
    runs(&home, &["trace", "export", "-o", file]);
    let reply = runs(&home, &["trace", "replay", &format!("{file}:log")]);
    assert!(reply.contains(" loaded"), "{reply}");
}

#[test]
fn every_entry_of_the_log_has_an_actor() {
    let home = TestHome::recorded();
    let from = TestHome::recorded();
    let file = exported(&from, "s-1");
    assert_eq!(
        home.run(&["trace", "import", &file]).code,
        1,
        "s-1 is there already"
    );
    runs(&home, &["trace", "key", "--rotate", "--operator", "kim"]);
    runs(
        &home,
        &[
            "trace",
            "hold",
            "s-1",
            "--reason",
            "case 7",
            "--operator",
            "lee",
        ],
    );
    for entry in log(&home) {
        let by = entry["payload"]["by"].as_str();
        assert!(by.is_some_and(|by| !by.is_empty()), "{entry}");
    }
    assert_eq!(entry(&home, "atlas_loaded")["by"], "op-1");
    assert_eq!(entry(&home, "log_sealed")["by"], "cra");
    assert_eq!(entry(&home, "key_rotated")["by"], "kim");
    assert_eq!(entry(&home, "hold_placed")["by"], "lee");
}

#[test]
fn memento_edit_is_logged_with_both_texts_and_without_secrets() {
    let home = TestHome::of(|store| async move {
        let bench = Bench::start(store, clock()).await;
        bench.begin("s-1").await;
        let turn = json!({"session": "s-1", "message_id": "m-1", "message": "go on",
            "proposed": {"arc": "ship it with ghp_16C7e42F292c6912E7710c838347Ae178B4a",
                "active": ["a"], "parked": [], "decisions": [], "next": []}});
        let take = SessionTurn::read_all(turn.to_string().as_bytes()).unwrap();
        let agents = bench.runtime.agent_handle();
        let taken = agents.turn(take.into_iter().next().unwrap()).await;
        let outcome = taken.unwrap().outcome;
        assert_eq!(outcome.memento.arc.as_str(), "ship it with [redacted]");
        let shape = serde_json::from_value(json!({"arc": "stop it, password=hunter22",
            "active": [], "parked": ["a"], "decisions": ["wait"], "next": []}));
        let act = ThreadAction::Edit {
            shape: shape.unwrap(),
            if_match: outcome.etag,
        };
        let thread = "s-1".parse().unwrap();
        bench
            .runtime
            .operator_handle()
            .act_on_thread(thread, act)
            .await
            .unwrap();
        bench.runtime.stop().await;
    });
    let edited = entry(&home, "memento_edited");
    assert_eq!(edited["text_before"]["arc"], "ship it with [redacted]");
    assert_eq!(edited["text_now"]["arc"], "stop it, password=[redacted]");
    assert_eq!(edited["text_now"]["decisions"], json!(["wait"]));
    assert_eq!(edited["by"], "op-1");
    let reply = runs(&home, &["trace", "replay", "log"]);
    assert!(reply.contains("rewrites the summary of s-1"), "{reply}");
    assert!(reply.contains("stop it"), "{reply}");
    let file = fs::read(home.file()).unwrap();
    for secret in [&b"hunter22"[..], b"ghp_16C7"] {
        assert!(!file.windows(secret.len()).any(|part| part == secret));
    }
}

#[test]
fn imported_session_stays_marked_everywhere_and_is_never_called_sealed() {
    let from = TestHome::recorded();
    let file = exported(&from, "s-1");
    let home = TestHome::empty();
    runs(&home, &["trace", "import", &file, "--operator", "mallory"]);
    let imported = entry(&home, "trace_imported");
    assert_eq!(imported["by"], "mallory");
    let digest = Digest::of(fs::read(&file).unwrap()).to_string();
    assert_eq!(imported["file_hash"], digest);
    let verified = runs(&home, &["trace", "verify"]);
    let line = verified
        .lines()
        .find(|line| line.starts_with("s-1 "))
        .unwrap();
    assert!(
        line.contains("IMPORTED 0..7; imported by mallory at 20"),
        "{line}"
    );
    assert!(
        line.contains("nothing before the import is proven"),
        "{line}"
    );
    assert!(!line.contains("SEALED"), "{line}");
    let json: Value = serde_json::from_str(&runs(&home, &["trace", "verify", "--json"])).unwrap();
    assert_eq!(json["chains"][0]["verdict"]["word"], "IMPORTED");
    assert_eq!(json["chains"][0]["imports"][0]["by"], "mallory");
    for args in [&["trace", "list"][..], &["trace", "show", "s-1"]] {
        let reply = runs(&home, args);
        assert!(
            reply.contains("IMPORTED by mallory at 20"),
            "{args:?}: {reply}"
        );
    }
    assert!(runs(&home, &["trace", "show", "s-1"]).contains(&digest));
    let listed: Value = serde_json::from_str(&runs(&home, &["trace", "list", "--json"])).unwrap();
    assert_eq!(listed[0]["imports"][0]["file_hash"], digest);
    let html = runs(&home, &["trace", "export", "--format", "html"]);
    assert!(
        html.contains("IMPORTED 0..7; imported by mallory"),
        "not marked"
    );
    assert!(
        !html.contains("All records verified"),
        "an import is called proven"
    );
    assert!(html.contains("Governance log") && html.contains(digest.get(..16).unwrap()));
}

#[test]
fn imported_session_is_marked_in_every_export_and_in_snapshot_files() {
    let from = TestHome::recorded();
    let file = exported(&from, "s-1");
    let home = TestHome::empty();
    runs(&home, &["trace", "import", &file, "--operator", "mallory"]);
    let export =
        |home: &TestHome, format| runs(home, &["trace", "export", "s-1", "--format", format]);
    let mark = "IMPORTED by mallory at 20";
    let csv = export(&home, "csv");
    let (names, rows) = csv.split_once("\r\n").unwrap();
    assert!(names.ends_with(",imported"), "{names}");
    assert_eq!(rows.matches(mark).count(), 8, "{rows}");
    let otlp: Value = serde_json::from_str(&export(&home, "otlp")).unwrap();
    let resource = otlp["resourceSpans"][0]["resource"].to_string();
    assert!(
        resource.contains("cra.imported") && resource.contains(mark),
        "{resource}"
    );
    let golden = export(&home, "golden");
    assert_eq!(golden.matches("\"imported\":true").count(), 8, "{golden}");
    let snapshot: Value = serde_json::from_str(&runs(&home, &["snapshot", "s-1"])).unwrap();
    let reply = snapshot["checkpoint_metadata"]["imported"]
        .as_str()
        .unwrap();
    assert!(reply.starts_with(mark), "{reply}");
    // Sessions that were recorded here have no mark.
    for format in ["otlp", "golden"] {
        assert!(!export(&from, format).contains("imported"), "{format}");
    }
    assert!(!export(&from, "csv").contains("IMPORTED"));
    assert!(!runs(&from, &["snapshot", "s-1"]).contains("\"imported\""));
}

#[test]
fn import_refuses_future_events_and_payloads_that_violate_their_type() {
    let text = fs::read_to_string(exported(&TestHome::recorded(), "s-1")).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let cases = [
        (
            json!({"timestamp": "2127-01-01T00:00:00.000000Z"}),
            "is in the future",
        ),
        (json!({"payload": {}}), "missing field `agent_type`"),
        (
            json!({"event_type": "policy_checked", "payload": {"policy_id": "p", "action_type": "a",
            "decision": "maybe", "conditions_evaluated": 1}}),
            "maybe",
        ),
    ];
    for (change, reply) in cases {
        let mut forged = first.clone();
        for (name, value) in change.as_object().unwrap() {
            forged[name] = value.clone();
        }
        let home = TestHome::empty();
        let file = write(&home, "forged.jsonl", &format!("{}\n", sealed(forged)));
        runs(&home, &["trace", "verify", "--file", &file]);
        let refused = home.run(&["trace", "import", &file]);
        refused.fails(6, &["was not imported", reply]);
        assert!(!home.file().exists(), "nothing was made for it");
    }
}

/// The line of a first event with a hash that fits it.
fn sealed(mut event: Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let covered = [
        text("trace_version"),
        text("event_id"),
        text("trace_id"),
        text("span_id"),
        text("parent_span_id"),
        text("session_id"),
        event["sequence"].to_string(),
        text("timestamp"),
        text("event_type"),
        cra_core::base::canonical_json::canonical(&event["payload"]),
        text("previous_hash"),
    ];
    event["hash"] = Digest::of(covered.join(":")).to_string().into();
    cra_core::base::canonical_json::canonical(&event)
}

// covers T2
#[test]
fn the_hash_of_an_exported_event_covers_its_eleven_fields_joined_by_colons() {
    let text = fs::read_to_string(exported(&TestHome::recorded(), "s-1")).unwrap();
    for line in text.lines() {
        assert_eq!(sealed(serde_json::from_str(line).unwrap()), line);
    }
}

// covers T1
#[test]
fn an_exported_event_has_the_whole_envelope_and_sequences_have_no_gap() {
    let text = fs::read_to_string(exported(&TestHome::recorded(), "s-1")).unwrap();
    let mut before = "0".repeat(64);
    let mut ids = std::collections::BTreeSet::new();
    for (sequence, line) in text.lines().enumerate() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["sequence"], sequence as u64);
        assert_eq!(event["session_id"], "s-1");
        assert_eq!(event["trace_version"], "1.0");
        assert_eq!(event["previous_hash"], before);
        before = event["hash"].as_str().unwrap().to_owned();
        let id = event["event_id"].as_str().unwrap();
        assert_eq!(id.len(), 36, "{id}");
        assert!(ids.insert(id.to_owned()), "{id} is there twice");
        let time = event["timestamp"].as_str().unwrap();
        assert!(time.len() == 27 && time.ends_with('Z'), "{time}");
        for name in ["trace_id", "span_id", "event_type"] {
            assert!(
                event[name].as_str().is_some_and(|value| !value.is_empty()),
                "{line}"
            );
        }
        assert!(event["payload"].is_object(), "{line}");
        assert_eq!(event["parent_span_id"].is_string(), sequence > 0, "{line}");
    }
    assert!(ids.len() > 3);
}

const SCORED: &str = "atlas_id: scored
trace_config: { custom_events: [custom_analysis] }
checkpoints: [{ checkpoint_id: look, trigger: { type: session_start }, handler: scorer }]
";

/// An extension that wants an event recorded that fits its type, one that does not, and one of no registered type.
const SCORER: &str = r#"
extensions:
  - name: scorer
    answers: [handler]
    command:
      - /bin/sh
      - -c
      - |
        echo '{"continue": true, "trace_events": [
          {"event_type": "custom_analysis", "payload": {"analysis_type": "tone", "score": 0.5, "details": {}}},
          {"event_type": "custom_analysis", "payload": {"analysis_type": "tone", "score": "high", "details": {}}},
          {"event_type": "something_else", "payload": {"seen": 1}}]}'
events:
  - name: custom_analysis
    description: "Custom analysis event"
    sync: false
    schema: { analysis_type: string, score: number, details: object }
"#;

// covers T23, T24, T33
#[test]
fn events_of_a_listed_extension_are_recorded_as_their_type_declares() {
    let home = TestHome::empty();
    let atlas = write(&home, "scored.yaml", &format!("{HEAD}{SCORED}"));
    let extensions = write(&home, "extensions.yaml", SCORER);
    let turn = json!({"session": "s-1", "message_id": "m-1", "message": "go on"});
    let turn = write(&home, "turn.json", &turn.to_string());
    let args = [
        "turn",
        &turn,
        "--atlas",
        &atlas,
        "--extensions",
        &extensions,
    ];
    runs(&home, &args);
    let shown = runs(&home, &["trace", "show", "s-1", "--json"]);
    let events: Vec<Value> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |event_type: &str| -> Vec<&Value> {
        let found = events
            .iter()
            .filter(|event| event["event_type"] == event_type);
        found.map(|event| &event["payload"]).collect()
    };
    let loaded = of("plugin_loaded");
    assert_eq!(loaded[0]["plugin_name"], "scorer", "{shown}");
    assert!(loaded[0]["plugin_version"].is_string() && loaded[0]["capabilities"].is_array());
    let own = of("custom_analysis");
    assert_eq!(
        own,
        [&json!({"analysis_type": "tone", "score": 0.5, "details": {}})]
    );
    let others = of("plugin_event");
    let refused = others
        .iter()
        .find(|other| other["custom_type"] == "custom_analysis")
        .unwrap();
    assert!(
        refused["data"]
            .to_string()
            .contains("field `score` must be a number"),
        "{refused}"
    );
    let strange = others
        .iter()
        .find(|other| other["custom_type"] == "something_else")
        .unwrap();
    assert_eq!(strange["plugin_name"], "scorer");
    assert_eq!(strange["data"]["seen"], 1);
    runs(&home, &["trace", "verify"]);
}

// covers T32
#[test]
fn a_replay_loads_verifies_steps_seeks_and_filters_a_session() {
    let home = TestHome::recorded();
    let reply = runs(&home, &["trace", "replay", "s-1"]);
    assert!(
        reply.contains("session s-1, 8 events") && reply.contains("SEALED 0..7"),
        "{reply}"
    );
    assert_eq!(
        reply
            .lines()
            .filter(|line| line.contains("00:00:00"))
            .count(),
        8,
        "{reply}"
    );
    let at: Value = serde_json::from_str(&runs(
        &home,
        &["trace", "replay", "s-1", "--at", "3", "--json"],
    ))
    .unwrap();
    assert_eq!(at["event"]["sequence"], 3);
    assert_eq!(at["state"]["sequence"], 3);
    let filtered = runs(
        &home,
        &["trace", "replay", "s-1", "--type", "checkpoint_*", "--json"],
    );
    for line in filtered.lines() {
        let step: Value = serde_json::from_str(line).unwrap();
        assert!(
            step["event"]["event_type"]
                .as_str()
                .unwrap()
                .starts_with("checkpoint_")
        );
    }
    assert!(filtered.lines().count() >= 2, "{filtered}");
    home.sql("UPDATE events SET records = replace(records, 'ticket.get', 'ticket.bet')");
    assert_eq!(home.run(&["trace", "replay", "s-1"]).code, 6);
}

// covers T31
#[test]
fn pruning_uses_only_the_retention_of_atlases_that_were_loaded() {
    let home = recorded_under(vec![atlas("long", "{ default_days: 4000 }")]);
    let short =
        format!("{HEAD}atlas_id: short\ntrace_config: {{ retention: {{ default_days: 1 }} }}\n");
    let short = write(&home, "short.yaml", &short);
    let reply = runs(
        &home,
        &["trace", "prune", "--atlas", &short, "--operator", "mallory"],
    );
    assert!(reply.contains("0 sessions, 0 events pruned"), "{reply}");
    // Of two in force the one that keeps longer counts, and one without a rule keeps for ever.
    let both = [
        ("a", "{ default_days: 1 }"),
        ("b", "{ default_days: 4000 }"),
    ];
    let home = recorded_under(both.map(|(id, rule)| atlas(id, rule)).to_vec());
    assert!(runs(&home, &["trace", "prune"]).contains("0 events pruned"));
    let silent = load_str("c", &format!("{HEAD}atlas_id: c\n"))
        .unwrap()
        .atlas;
    let home = recorded_under(vec![atlas("a", "{ default_days: 1 }"), silent]);
    assert!(runs(&home, &["trace", "prune"]).contains("0 events pruned"));
    // What is named on the command line lengthens.
    let rules = "{ default_days: 90, by_event_type: { 'session_*': 3650 } }";
    let home = recorded_under(vec![atlas("kept", rules)]);
    let long =
        format!("{HEAD}atlas_id: long\ntrace_config: {{ retention: {{ default_days: 4000 }} }}\n");
    let long = write(&home, "long.yaml", &long);
    assert!(runs(&home, &["trace", "prune", "--atlas", &long]).contains("0 events pruned"));
    let reply = runs(&home, &["trace", "prune", "--operator", "kim"]);
    assert!(reply.contains("s-1  2 events pruned"), "{reply}");
    let applied = entry(&home, "retention_applied");
    assert_eq!(applied["by"], "kim");
    assert_eq!(applied["rules"][0]["atlas_id"], "kept");
    assert_eq!(applied["rules"][0]["days"], 90);
    let reason = applied["reason"].as_str().unwrap();
    assert!(
        reason.contains("action_attempted 90 days by kept"),
        "{reason}"
    );
}

#[test]
fn events_are_retained_by_the_atlas_that_was_loaded_when_they_were_recorded() {
    use cra_core::runtime::atlas_load::AtlasLoad;
    let home = TestHome::of(|store| async move {
        let long = atlas("same", "{ default_days: 4000 }");
        let bench = Bench::with_atlases(vec![long], store, clock()).await;
        bench.begin("s-1").await;
        let load = AtlasLoad {
            expected_hash: bench.snapshot().load_info.hash.unwrap(),
            atlases: vec![atlas("same", "{ default_days: 1 }")].into(),
            operator: "kim".to_owned(),
        };
        bench
            .runtime
            .operator_handle()
            .load_atlases(load)
            .await
            .unwrap();
        bench.begin("s-2").await;
        bench.runtime.stop().await;
    });
    let reply = runs(&home, &["trace", "prune"]);
    assert!(
        reply.contains("s-2  1 events pruned") && !reply.contains("s-1"),
        "{reply}"
    );
}

#[test]
fn a_legal_hold_stops_pruning_until_it_is_released() {
    let home = recorded_under(vec![atlas("short", "{ default_days: 1 }")]);
    home.run(&["trace", "hold", "s-1"]).fails(2, &["--reason"]);
    home.run(&["trace", "hold", "s-9", "--reason", "x"])
        .fails(1, &["session `s-9` is not on record"]);
    home.run(&["trace", "release", "s-1"])
        .fails(1, &["has no legal hold"]);
    runs(
        &home,
        &[
            "trace",
            "hold",
            "s-1",
            "--reason",
            "case 7/26",
            "--operator",
            "lee",
        ],
    );
    let held = runs(&home, &["trace", "hold", "--list"]);
    assert!(
        held.contains("s-1") && held.contains("by lee: case 7/26"),
        "{held}"
    );
    let output = home.run(&["trace", "prune"]);
    assert!(
        output.out.contains("0 sessions, 0 events pruned"),
        "{}",
        output.out
    );
    assert!(
        output.err.contains("s-1 is under a legal hold by lee"),
        "{}",
        output.err
    );
    runs(
        &home,
        &[
            "trace",
            "release",
            "s-1",
            "--operator",
            "kim",
            "--reason",
            "settled",
        ],
    );
    assert_eq!(entry(&home, "hold_released")["by"], "kim");
    assert!(runs(&home, &["trace", "hold", "--list"]).contains("No session"));
    assert!(runs(&home, &["trace", "prune"]).contains("s-1  3 events pruned"));
    runs(&home, &["trace", "verify"]);
}

#[test]
fn export_of_a_session_with_pruned_events_verifies_and_show_marks_them() {
    let home = recorded_under(vec![atlas("short", "{ default_days: 1 }")]);
    runs(&home, &["trace", "prune"]);
    let shown = runs(&home, &["trace", "show", "s-1"]);
    assert!(
        shown.lines().all(|line| line.contains("  pruned: ")),
        "{shown}"
    );
    let file = exported(&home, "s-1");
    let verified = runs(&home, &["trace", "verify", "--file", &file]);
    assert!(verified.contains("3 linked, content pruned"), "{verified}");
    // With the log in the file, what is gone has to be explained by it.
    let all = home.0.path().join("all.jsonl");
    let all = all.to_str().unwrap();
    runs(&home, &["trace", "export", "-o", all]);
    let text = fs::read_to_string(all).unwrap();
    let kept: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("\"retention_applied\""))
        .collect();
    let cut = write(&home, "cut.jsonl", &format!("{}\n", kept.join("\n")));
    assert_eq!(home.run(&["trace", "verify", "--file", &cut]).code, 6);
}

#[test]
fn lines_rewritten_by_another_program_are_not_canonical_and_not_broken() {
    let home = TestHome::recorded();
    let text = fs::read_to_string(exported(&home, "s-1")).unwrap();
    let spaced = |line: &str| line.replace("\",\"", "\", \"").replace("\":", "\": ");
    let rewritten: Vec<_> = text.lines().map(spaced).collect();
    let file = write(
        &home,
        "spaced.jsonl",
        &format!("{}\r\n", rewritten.join("\r\n")),
    );
    let verified = runs(&home, &["trace", "verify", "--file", &file]);
    assert!(verified.contains("8 lines are not canonical"), "{verified}");
    assert!(!verified.contains("BROKEN"), "{verified}");
    let other = TestHome::empty();
    runs(&other, &["trace", "import", &file]);
    assert_eq!(
        runs(&other, &["trace", "show", "s-1", "--json"]),
        runs(&home, &["trace", "show", "s-1", "--json"])
    );
    // A changed value is still a fault.
    let changed = fs::read_to_string(&file).unwrap().replace("op-1", "op-2");
    let changed = write(&home, "changed.jsonl", &changed);
    let refused = home.run(&["trace", "verify", "--file", &changed]);
    assert!(
        refused.code == 6 && refused.out.contains("BROKEN"),
        "{}",
        refused.out
    );
}

#[test]
fn exports_and_snapshot_files_are_readable_by_their_owner_only() {
    let home = TestHome::recorded();
    let mode = |name: &str| {
        let path = home.0.path().join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    for format in ["jsonl", "csv", "html", "otlp", "golden"] {
        let path = home.0.path().join(format);
        let path = path.to_str().unwrap();
        runs(&home, &["trace", "export", "--format", format, "-o", path]);
        assert_eq!(mode(format), 0o600, "{format}");
    }
    let path = home.0.path().join("checkpoint.json");
    runs(&home, &["snapshot", "s-1", "-o", path.to_str().unwrap()]);
    assert_eq!(mode("checkpoint.json"), 0o600);
}

#[test]
fn golden_trace_does_not_depend_on_the_context_cache() {
    let home = TestHome::of(|store| async move {
        let text = format!(
            "{HEAD}atlas_id: c\ncontext_blocks: [{{ context_id: basics, name: B, content: be kind, inject_mode: always }}]\n"
        );
        let atlas = load_str("c", &text).unwrap().atlas;
        let bench = Bench::with_atlases(vec![atlas], store, clock()).await;
        for session in ["s-1", "s-2"] {
            bench.begin(session).await;
        }
        bench.runtime.stop().await;
    });
    let golden = |session| runs(&home, &["trace", "export", session, "--format", "golden"]);
    assert!(
        golden("s-1").contains("context_injected"),
        "{}",
        golden("s-1")
    );
    assert_eq!(golden("s-1"), golden("s-2"));
}

#[test]
fn report_marks_names_as_claimed_and_spans_name_risk_action_decision_and_operator() {
    let home = TestHome::recorded();
    let html = runs(&home, &["trace", "export", "--format", "html"]);
    assert!(html.contains("Names of operators are claimed, not proven"));
    assert!(html.contains("Governance log"));
    let spans: Value =
        serde_json::from_str(&runs(&home, &["trace", "export", "--format", "otlp"])).unwrap();
    let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let attribute = |name: &str| -> Vec<&str> {
        let all = spans
            .iter()
            .flat_map(|span| span["attributes"].as_array().unwrap());
        let found = all.filter(|span| span["key"] == name);
        found
            .map(|value| value["value"]["stringValue"].as_str().unwrap())
            .collect()
    };
    assert!(attribute("cra.action").contains(&"ticket.get"));
    assert!(attribute("cra.risk").contains(&"low"));
    assert!(attribute("cra.decision").contains(&"passed"));
    assert!(attribute("cra.decision").contains(&"allow"));
    assert!(attribute("cra.operator").contains(&"op-1"));
}

#[test]
fn help_of_trace_commands_lists_only_options_that_apply() {
    let home = TestHome::empty();
    for name in [
        "list", "show", "verify", "replay", "diff", "export", "import", "prune", "hold", "release",
        "head", "key",
    ] {
        let output = home.run(&["trace", name, "--help"]);
        assert_eq!(output.code, 0, "{}", output.err);
        for strange in [
            "--socket",
            "--http",
            "--extensions",
            "--theme",
            "--ascii",
            "--linear",
            "--quota",
        ] {
            assert!(!output.out.contains(strange), "{name} {strange}");
        }
        assert!(output.out.contains("--data-dir"), "{name}");
        let writes = ["import", "prune", "hold", "release", "key"].contains(&name);
        assert_eq!(output.out.contains("--operator"), writes, "{name}");
    }
    assert!(home.run(&["--help"]).out.contains("--socket"));
}

#[test]
fn message_sent_twice_is_one_turn_with_one_answer() {
    let home = TestHome::recorded();
    let turn = |id: &str, message: &str| {
        json!({"session": "t-1", "message_id": id, "message": message,
            "affect": {"label": "calm", "intensity": 0.2, "confidence": "high", "source": "model"},
            "proposed": {"arc": "ship", "active": [], "parked": [], "decisions": ["a"], "next": []},
            "signals": []})
    };
    let atlas = super::support::root().join("assets/atlas/acme-support.yaml");
    let take = |turn: &Value| {
        let file = write(&home, "turn.json", &turn.to_string());
        home.run(&["turn", &file, "--json", "--atlas", atlas.to_str().unwrap()])
    };
    let first = take(&turn("m-1", "hurry"));
    assert_eq!(first.code, 0, "{}", first.err);
    let again = take(&turn("m-1", "hurry"));
    assert_eq!(first.json(), again.json());
    let decided = |home: &TestHome| {
        let shown = runs(home, &["trace", "show", "t-1", "--json"]);
        shown.matches("\"breakpoint_decided\"").count()
    };
    assert_eq!(decided(&home), 1);
    let other = take(&turn("m-1", "something else"));
    other.fails(1, &["`m-1` was already processed with another text"]);
    assert_eq!(take(&turn("m-2", "hurry")).code, 0);
    assert_eq!(decided(&home), 2);
    let shown: Value =
        serde_json::from_str(&runs(&home, &["thread", "show", "t-1", "--json"])).unwrap();
    assert!(shown.to_string().contains("m-2"), "{shown}");
}

#[tokio::test]
async fn session_without_calls_from_its_agent_ends_as_timed_out() {
    let store: Arc<dyn Store> = Arc::new(cra_core::store::memory::MemoryStore::default());
    let bench = Bench::with_atlases(
        vec![atlas("a", "{ default_days: 1 }")],
        Arc::clone(&store),
        clock(),
    )
    .await;
    bench.begin("s-1").await;
    bench.clock.advance(Duration::from_hours(30));
    bench.begin("s-2").await;
    let look = request("s-2", "a.look", json!({}));
    bench
        .runtime
        .agent_handle()
        .request_action(look)
        .await
        .unwrap();
    assert_eq!(bench.snapshot().sessions.iter().count(), 2);
    bench.clock.advance(Duration::from_hours(19));
    let is_over = |snapshot: &RuntimeSnapshot| snapshot.sessions.iter().count() == 1;
    bench.wait_until(is_over).await;
    let events = store.events("s-1".parse().unwrap(), 0, 100).await.unwrap();
    let ended = events.last().unwrap();
    assert_eq!(ended.event_type, "session_ended");
    assert_eq!(ended.payload["final_status"], "timeout");
    bench.runtime.stop().await;
}

#[tokio::test]
async fn the_first_message_of_a_thread_is_kept_without_its_secrets() {
    let store: Arc<dyn Store> = Arc::new(cra_core::store::memory::MemoryStore::default());
    let bench = Bench::start(Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    let turn = json!({"session": "s-1", "message_id": "m-1",
        "message": "deploy with password=unlisted5550199"});
    let take = SessionTurn::read_all(turn.to_string().as_bytes()).unwrap();
    let agents = bench.runtime.agent_handle();
    let taken = agents.turn(take.into_iter().next().unwrap()).await;
    let arc = taken.unwrap().outcome.memento.arc.as_str().to_owned();
    assert_eq!(arc, "deploy with password=[redacted]");
    bench.runtime.stop().await;
    let rows = store.state().await.unwrap();
    let bodies = rows.into_iter().filter_map(|row| row.body);
    assert!(!bodies.collect::<String>().contains("unlisted5550199"));
}
