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

use super::cli::Desk;
use super::support::{Bench, clock, request};

const HEAD: &str = "atlas_version: '1.0'\nversion: '1'\nname: Kept\ndefault_decision: allow\n\
                    actions: [{ action_id: a.look, risk_tier: low }]\n";

fn atlas(id: &str, retention: &str) -> Atlas {
    let text = format!("{HEAD}atlas_id: {id}\ntrace_config: {{ retention: {retention} }}\n");
    load_str(id, &text).unwrap().atlas
}

/// A store with a session that was recorded on the first of January under these Atlases.
fn recorded_under(atlases: Vec<Atlas>) -> Desk {
    Desk::of(|store| async move {
        let bench = Bench::under(atlases, store, clock()).await;
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
fn runs(desk: &Desk, args: &[&str]) -> String {
    let said = desk.run(args);
    assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
    said.out
}

/// Entries of the governance log, as `cra trace show log --json` prints them.
fn log(desk: &Desk) -> Vec<Value> {
    let shown = runs(desk, &["trace", "show", "log", "--json"]);
    let lines = shown.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

fn entry(desk: &Desk, event_type: &str) -> Value {
    let entries = log(desk);
    let found = entries
        .iter()
        .rev()
        .find(|it| it["event_type"] == event_type);
    found.unwrap_or_else(|| panic!("no {event_type}: {entries:?}"))["payload"].clone()
}

fn write(desk: &Desk, name: &str, text: &str) -> String {
    let path = desk.0.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn exported(desk: &Desk, session: &str) -> String {
    let path = desk.0.path().join(format!("{session}.jsonl"));
    let path = path.to_str().unwrap().to_owned();
    runs(desk, &["trace", "export", session, "-o", &path]);
    path
}

#[test]
fn the_governance_log_is_read_by_its_name_and_by_its_session() {
    let desk = Desk::recorded();
    let shown = runs(&desk, &["trace", "show", "log"]);
    assert!(
        shown.contains("log_started") && shown.contains("atlas_loaded"),
        "{shown}"
    );
    assert!(!shown.contains("log_sealed  "), "{shown}");
    let listed = runs(&desk, &["trace", "list", "log", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed[0]["session"].as_str().unwrap().to_owned();
    assert!(runs(&desk, &["trace", "list"]).contains(&id));
    assert_eq!(runs(&desk, &["trace", "show", &id]), shown);
    for name in ["log", &id] {
        let told = runs(&desk, &["trace", "replay", name]);
        assert!(
            told.contains("Atlas acme.support") || told.contains(" loaded"),
            "{told}"
        );
        let verified = runs(&desk, &["trace", "verify", name]);
        assert!(
            verified.contains(&id) && verified.contains("SEALED"),
            "{verified}"
        );
        assert!(!verified.contains("s-1"), "{verified}");
    }
    // An export has it too.
    let file = desk.0.path().join("all.jsonl");
    let file = file.to_str().unwrap();
    runs(&desk, &["trace", "export", "-o", file]);
    let told = runs(&desk, &["trace", "replay", &format!("{file}:log")]);
    assert!(told.contains(" loaded"), "{told}");
}

#[test]
fn every_entry_of_the_log_has_an_actor() {
    let desk = Desk::recorded();
    let from = Desk::recorded();
    let file = exported(&from, "s-1");
    assert_eq!(
        desk.run(&["trace", "import", &file]).code,
        1,
        "s-1 is there already"
    );
    runs(&desk, &["trace", "key", "--rotate", "--operator", "kim"]);
    runs(
        &desk,
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
    for entry in log(&desk) {
        let by = entry["payload"]["by"].as_str();
        assert!(by.is_some_and(|by| !by.is_empty()), "{entry}");
    }
    assert_eq!(entry(&desk, "atlas_loaded")["by"], "op-1");
    assert_eq!(entry(&desk, "log_sealed")["by"], "cra");
    assert_eq!(entry(&desk, "key_rotated")["by"], "kim");
    assert_eq!(entry(&desk, "hold_placed")["by"], "lee");
}

#[test]
fn an_edit_of_a_memento_is_in_the_log_with_both_texts_and_without_secrets() {
    let desk = Desk::of(|store| async move {
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
    let edited = entry(&desk, "memento_edited");
    assert_eq!(edited["text_before"]["arc"], "ship it with [redacted]");
    assert_eq!(edited["text_now"]["arc"], "stop it, password=[redacted]");
    assert_eq!(edited["text_now"]["decisions"], json!(["wait"]));
    assert_eq!(edited["by"], "op-1");
    let told = runs(&desk, &["trace", "replay", "log"]);
    assert!(told.contains("rewrites the summary of s-1"), "{told}");
    assert!(told.contains("stop it"), "{told}");
    let file = fs::read(desk.file()).unwrap();
    for secret in [&b"hunter22"[..], b"ghp_16C7"] {
        assert!(!file.windows(secret.len()).any(|part| part == secret));
    }
}

#[test]
fn an_import_stays_marked_everywhere_and_is_never_called_sealed() {
    let from = Desk::recorded();
    let file = exported(&from, "s-1");
    let desk = Desk::empty();
    runs(&desk, &["trace", "import", &file, "--operator", "mallory"]);
    let imported = entry(&desk, "trace_imported");
    assert_eq!(imported["by"], "mallory");
    let digest = Digest::of(fs::read(&file).unwrap()).to_string();
    assert_eq!(imported["file_hash"], digest);
    let verified = runs(&desk, &["trace", "verify"]);
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
    let json: Value = serde_json::from_str(&runs(&desk, &["trace", "verify", "--json"])).unwrap();
    assert_eq!(json["chains"][0]["verdict"]["word"], "IMPORTED");
    assert_eq!(json["chains"][0]["imports"][0]["by"], "mallory");
    for args in [&["trace", "list"][..], &["trace", "show", "s-1"]] {
        let told = runs(&desk, args);
        assert!(
            told.contains("IMPORTED by mallory at 20"),
            "{args:?}: {told}"
        );
    }
    assert!(runs(&desk, &["trace", "show", "s-1"]).contains(&digest));
    let listed: Value = serde_json::from_str(&runs(&desk, &["trace", "list", "--json"])).unwrap();
    assert_eq!(listed[0]["imports"][0]["file_hash"], digest);
    let html = runs(&desk, &["trace", "export", "--format", "html"]);
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
fn an_import_is_marked_in_every_export_and_in_snapshot_files() {
    let from = Desk::recorded();
    let file = exported(&from, "s-1");
    let desk = Desk::empty();
    runs(&desk, &["trace", "import", &file, "--operator", "mallory"]);
    let export = |desk: &Desk, format| runs(desk, &["trace", "export", "s-1", "--format", format]);
    let mark = "IMPORTED by mallory at 20";
    let csv = export(&desk, "csv");
    let (names, rows) = csv.split_once("\r\n").unwrap();
    assert!(names.ends_with(",imported"), "{names}");
    assert_eq!(rows.matches(mark).count(), 8, "{rows}");
    let otlp: Value = serde_json::from_str(&export(&desk, "otlp")).unwrap();
    let resource = otlp["resourceSpans"][0]["resource"].to_string();
    assert!(
        resource.contains("cra.imported") && resource.contains(mark),
        "{resource}"
    );
    let golden = export(&desk, "golden");
    assert_eq!(golden.matches("\"imported\":true").count(), 8, "{golden}");
    let snapshot: Value = serde_json::from_str(&runs(&desk, &["snapshot", "s-1"])).unwrap();
    let told = snapshot["checkpoint_metadata"]["imported"]
        .as_str()
        .unwrap();
    assert!(told.starts_with(mark), "{told}");
    // Sessions that were recorded here have no mark.
    for format in ["otlp", "golden"] {
        assert!(!export(&from, format).contains("imported"), "{format}");
    }
    assert!(!export(&from, "csv").contains("IMPORTED"));
    assert!(!runs(&from, &["snapshot", "s-1"]).contains("\"imported\""));
}

#[test]
fn events_of_the_future_and_payloads_that_break_their_type_are_not_taken_in() {
    let text = fs::read_to_string(exported(&Desk::recorded(), "s-1")).unwrap();
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
    for (change, told) in cases {
        let mut forged = first.clone();
        for (name, value) in change.as_object().unwrap() {
            forged[name] = value.clone();
        }
        let desk = Desk::empty();
        let file = write(&desk, "forged.jsonl", &format!("{}\n", sealed(forged)));
        runs(&desk, &["trace", "verify", "--file", &file]);
        let refused = desk.run(&["trace", "import", &file]);
        refused.fails(6, &["was not imported", told]);
        assert!(!desk.file().exists(), "nothing was made for it");
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
    let text = fs::read_to_string(exported(&Desk::recorded(), "s-1")).unwrap();
    for line in text.lines() {
        assert_eq!(sealed(serde_json::from_str(line).unwrap()), line);
    }
}

// covers T1
#[test]
fn an_exported_event_has_the_whole_envelope_and_sequences_have_no_gap() {
    let text = fs::read_to_string(exported(&Desk::recorded(), "s-1")).unwrap();
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
                event[name].as_str().is_some_and(|it| !it.is_empty()),
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
    let desk = Desk::empty();
    let atlas = write(&desk, "scored.yaml", &format!("{HEAD}{SCORED}"));
    let extensions = write(&desk, "extensions.yaml", SCORER);
    let turn = json!({"session": "s-1", "message_id": "m-1", "message": "go on"});
    let turn = write(&desk, "turn.json", &turn.to_string());
    let args = [
        "turn",
        &turn,
        "--atlas",
        &atlas,
        "--extensions",
        &extensions,
    ];
    runs(&desk, &args);
    let shown = runs(&desk, &["trace", "show", "s-1", "--json"]);
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
        .find(|it| it["custom_type"] == "custom_analysis")
        .unwrap();
    assert!(
        refused["data"].to_string().contains("is not a number"),
        "{refused}"
    );
    let strange = others
        .iter()
        .find(|it| it["custom_type"] == "something_else")
        .unwrap();
    assert_eq!(strange["plugin_name"], "scorer");
    assert_eq!(strange["data"]["seen"], 1);
    runs(&desk, &["trace", "verify"]);
}

// covers T32
#[test]
fn a_replay_loads_verifies_steps_seeks_and_filters_a_session() {
    let desk = Desk::recorded();
    let told = runs(&desk, &["trace", "replay", "s-1"]);
    assert!(
        told.contains("session s-1, 8 events") && told.contains("SEALED 0..7"),
        "{told}"
    );
    assert_eq!(
        told.lines()
            .filter(|line| line.contains("00:00:00"))
            .count(),
        8,
        "{told}"
    );
    let at: Value = serde_json::from_str(&runs(
        &desk,
        &["trace", "replay", "s-1", "--at", "3", "--json"],
    ))
    .unwrap();
    assert_eq!(at["event"]["sequence"], 3);
    assert_eq!(at["state"]["sequence"], 3);
    let filtered = runs(
        &desk,
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
    desk.sql("UPDATE events SET records = replace(records, 'ticket.get', 'ticket.bet')");
    assert_eq!(desk.run(&["trace", "replay", "s-1"]).code, 6);
}

// covers T31
#[test]
fn only_the_retention_of_atlases_that_were_in_force_prunes() {
    let desk = recorded_under(vec![atlas("long", "{ default_days: 4000 }")]);
    let short =
        format!("{HEAD}atlas_id: short\ntrace_config: {{ retention: {{ default_days: 1 }} }}\n");
    let short = write(&desk, "short.yaml", &short);
    let told = runs(
        &desk,
        &["trace", "prune", "--atlas", &short, "--operator", "mallory"],
    );
    assert!(told.contains("0 sessions, 0 events pruned"), "{told}");
    // Of two in force the one that keeps longer counts, and one without a rule keeps for ever.
    let both = [
        ("a", "{ default_days: 1 }"),
        ("b", "{ default_days: 4000 }"),
    ];
    let desk = recorded_under(both.map(|(id, rule)| atlas(id, rule)).to_vec());
    assert!(runs(&desk, &["trace", "prune"]).contains("0 events pruned"));
    let silent = load_str("c", &format!("{HEAD}atlas_id: c\n"))
        .unwrap()
        .atlas;
    let desk = recorded_under(vec![atlas("a", "{ default_days: 1 }"), silent]);
    assert!(runs(&desk, &["trace", "prune"]).contains("0 events pruned"));
    // What is named on the command line lengthens.
    let rules = "{ default_days: 90, by_event_type: { 'session_*': 3650 } }";
    let desk = recorded_under(vec![atlas("kept", rules)]);
    let long =
        format!("{HEAD}atlas_id: long\ntrace_config: {{ retention: {{ default_days: 4000 }} }}\n");
    let long = write(&desk, "long.yaml", &long);
    assert!(runs(&desk, &["trace", "prune", "--atlas", &long]).contains("0 events pruned"));
    let told = runs(&desk, &["trace", "prune", "--operator", "kim"]);
    assert!(told.contains("s-1  2 events pruned"), "{told}");
    let applied = entry(&desk, "retention_applied");
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
fn events_recorded_before_and_after_a_reload_are_kept_by_the_atlas_of_their_time() {
    use cra_core::runtime::atlas_load::AtlasLoad;
    let desk = Desk::of(|store| async move {
        let long = atlas("same", "{ default_days: 4000 }");
        let bench = Bench::under(vec![long], store, clock()).await;
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
    let told = runs(&desk, &["trace", "prune"]);
    assert!(
        told.contains("s-2  1 events pruned") && !told.contains("s-1"),
        "{told}"
    );
}

#[test]
fn a_legal_hold_stops_pruning_until_it_is_released() {
    let desk = recorded_under(vec![atlas("short", "{ default_days: 1 }")]);
    desk.run(&["trace", "hold", "s-1"]).fails(2, &["--reason"]);
    desk.run(&["trace", "hold", "s-9", "--reason", "x"])
        .fails(1, &["session `s-9` is not on record"]);
    desk.run(&["trace", "release", "s-1"])
        .fails(1, &["has no legal hold"]);
    runs(
        &desk,
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
    let held = runs(&desk, &["trace", "hold", "--list"]);
    assert!(
        held.contains("s-1") && held.contains("by lee: case 7/26"),
        "{held}"
    );
    let said = desk.run(&["trace", "prune"]);
    assert!(
        said.out.contains("0 sessions, 0 events pruned"),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("s-1 is under a legal hold by lee"),
        "{}",
        said.err
    );
    runs(
        &desk,
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
    assert_eq!(entry(&desk, "hold_released")["by"], "kim");
    assert!(runs(&desk, &["trace", "hold", "--list"]).contains("No session"));
    assert!(runs(&desk, &["trace", "prune"]).contains("s-1  3 events pruned"));
    runs(&desk, &["trace", "verify"]);
}

#[test]
fn an_export_of_one_session_with_pruned_events_verifies_and_show_says_pruned() {
    let desk = recorded_under(vec![atlas("short", "{ default_days: 1 }")]);
    runs(&desk, &["trace", "prune"]);
    let shown = runs(&desk, &["trace", "show", "s-1"]);
    assert!(
        shown.lines().all(|line| line.contains("  pruned: ")),
        "{shown}"
    );
    let file = exported(&desk, "s-1");
    let verified = runs(&desk, &["trace", "verify", "--file", &file]);
    assert!(verified.contains("3 linked, content pruned"), "{verified}");
    // With the log in the file, what is gone has to be explained by it.
    let all = desk.0.path().join("all.jsonl");
    let all = all.to_str().unwrap();
    runs(&desk, &["trace", "export", "-o", all]);
    let text = fs::read_to_string(all).unwrap();
    let kept: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("\"retention_applied\""))
        .collect();
    let cut = write(&desk, "cut.jsonl", &format!("{}\n", kept.join("\n")));
    assert_eq!(desk.run(&["trace", "verify", "--file", &cut]).code, 6);
}

#[test]
fn lines_that_another_program_wrote_anew_are_not_canonical_and_not_broken() {
    let desk = Desk::recorded();
    let text = fs::read_to_string(exported(&desk, "s-1")).unwrap();
    let spaced = |line: &str| line.replace("\",\"", "\", \"").replace("\":", "\": ");
    let rewritten: Vec<_> = text.lines().map(spaced).collect();
    let file = write(
        &desk,
        "spaced.jsonl",
        &format!("{}\r\n", rewritten.join("\r\n")),
    );
    let verified = runs(&desk, &["trace", "verify", "--file", &file]);
    assert!(verified.contains("8 lines are not canonical"), "{verified}");
    assert!(!verified.contains("BROKEN"), "{verified}");
    let other = Desk::empty();
    runs(&other, &["trace", "import", &file]);
    assert_eq!(
        runs(&other, &["trace", "show", "s-1", "--json"]),
        runs(&desk, &["trace", "show", "s-1", "--json"])
    );
    // A changed value is still a fault.
    let changed = fs::read_to_string(&file).unwrap().replace("op-1", "op-2");
    let changed = write(&desk, "changed.jsonl", &changed);
    let refused = desk.run(&["trace", "verify", "--file", &changed]);
    assert!(
        refused.code == 6 && refused.out.contains("BROKEN"),
        "{}",
        refused.out
    );
}

#[test]
fn exports_and_snapshot_files_are_for_their_owner_alone() {
    let desk = Desk::recorded();
    let mode = |name: &str| {
        let path = desk.0.path().join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    for format in ["jsonl", "csv", "html", "otlp", "golden"] {
        let path = desk.0.path().join(format);
        let path = path.to_str().unwrap();
        runs(&desk, &["trace", "export", "--format", format, "-o", path]);
        assert_eq!(mode(format), 0o600, "{format}");
    }
    let path = desk.0.path().join("checkpoint.json");
    runs(&desk, &["snapshot", "s-1", "-o", path.to_str().unwrap()]);
    assert_eq!(mode("checkpoint.json"), 0o600);
}

#[test]
fn a_golden_trace_does_not_tell_whether_a_context_came_from_a_cache() {
    let desk = Desk::of(|store| async move {
        let text = format!(
            "{HEAD}atlas_id: c\ncontext_blocks: [{{ context_id: basics, name: B, content: be kind, inject_mode: always }}]\n"
        );
        let atlas = load_str("c", &text).unwrap().atlas;
        let bench = Bench::under(vec![atlas], store, clock()).await;
        for session in ["s-1", "s-2"] {
            bench.begin(session).await;
        }
        bench.runtime.stop().await;
    });
    let golden = |session| runs(&desk, &["trace", "export", session, "--format", "golden"]);
    assert!(
        golden("s-1").contains("context_injected"),
        "{}",
        golden("s-1")
    );
    assert_eq!(golden("s-1"), golden("s-2"));
}

#[test]
fn a_report_says_that_names_are_claimed_and_spans_name_risk_action_decision_and_operator() {
    let desk = Desk::recorded();
    let html = runs(&desk, &["trace", "export", "--format", "html"]);
    assert!(html.contains("Names of operators are claimed, not proven"));
    assert!(html.contains("Governance log"));
    let spans: Value =
        serde_json::from_str(&runs(&desk, &["trace", "export", "--format", "otlp"])).unwrap();
    let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let attribute = |name: &str| -> Vec<&str> {
        let all = spans
            .iter()
            .flat_map(|span| span["attributes"].as_array().unwrap());
        let found = all.filter(|it| it["key"] == name);
        found
            .map(|it| it["value"]["stringValue"].as_str().unwrap())
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
    let desk = Desk::empty();
    for name in [
        "list", "show", "verify", "replay", "diff", "export", "import", "prune", "hold", "release",
        "head", "key",
    ] {
        let said = desk.run(&["trace", name, "--help"]);
        assert_eq!(said.code, 0, "{}", said.err);
        for strange in [
            "--socket",
            "--http",
            "--extensions",
            "--theme",
            "--ascii",
            "--linear",
            "--quota",
        ] {
            assert!(!said.out.contains(strange), "{name} {strange}");
        }
        assert!(said.out.contains("--data-dir"), "{name}");
        let writes = ["import", "prune", "hold", "release", "key"].contains(&name);
        assert_eq!(said.out.contains("--operator"), writes, "{name}");
    }
    assert!(desk.run(&["--help"]).out.contains("--socket"));
}

#[test]
fn a_message_that_is_sent_twice_is_one_turn_with_one_answer() {
    let desk = Desk::recorded();
    let turn = |id: &str, message: &str| {
        json!({"session": "t-1", "message_id": id, "message": message,
            "affect": {"label": "calm", "intensity": 0.2, "confidence": "high", "source": "model"},
            "proposed": {"arc": "ship", "active": [], "parked": [], "decisions": ["a"], "next": []},
            "signals": []})
    };
    let atlas = super::support::root().join("assets/atlas/acme-support.yaml");
    let take = |turn: &Value| {
        let file = write(&desk, "turn.json", &turn.to_string());
        desk.run(&["turn", &file, "--json", "--atlas", atlas.to_str().unwrap()])
    };
    let first = take(&turn("m-1", "hurry"));
    assert_eq!(first.code, 0, "{}", first.err);
    let again = take(&turn("m-1", "hurry"));
    assert_eq!(first.json(), again.json());
    let decided = |desk: &Desk| {
        let shown = runs(desk, &["trace", "show", "t-1", "--json"]);
        shown.matches("\"breakpoint_decided\"").count()
    };
    assert_eq!(decided(&desk), 1);
    let other = take(&turn("m-1", "something else"));
    other.fails(1, &["`m-1` was already processed with another text"]);
    assert_eq!(take(&turn("m-2", "hurry")).code, 0);
    assert_eq!(decided(&desk), 2);
    let shown: Value =
        serde_json::from_str(&runs(&desk, &["thread", "show", "t-1", "--json"])).unwrap();
    assert!(shown.to_string().contains("m-2"), "{shown}");
}

#[tokio::test]
async fn a_session_without_a_word_from_its_agent_ends_as_timed_out() {
    let store: Arc<dyn Store> = Arc::new(cra_core::store::memory::MemoryStore::default());
    let bench = Bench::under(
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
    let is_over = |picture: &RuntimeSnapshot| picture.sessions.iter().count() == 1;
    bench.until(is_over).await;
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
