//! Features that show in commands: types and tiers, records with the draft's names, signals of turns.

use std::fs;

use cra_core::base::canonical_json::canonical;
use cra_core::base::digest::Digest;
use serde_json::{Value, json};

use super::cli::TestHome;

// covers A25, A28, B4
#[test]
fn types_command_lists_every_type_with_its_priority_and_every_tier_with_examples() {
    let home = TestHome::empty();
    let reply = home.run(&["atlas", "types"]);
    reply.succeeds();
    let row = |name: &str| {
        let mut rows = reply.out.lines();
        let row = rows.find(|row| row.split_whitespace().next() == Some(name));
        row.unwrap_or_else(|| panic!("no {name} in:\n{}", reply.out))
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    for (name, priority) in [
        ("session_start", "1000"),
        ("interactive", "950"),
        ("capability_access", "920"),
        ("risk_threshold", "900"),
        ("action_pre", "800"),
        ("keyword", "600"),
        ("time_interval", "500"),
        ("count_interval", "400"),
        ("explicit_request", "300"),
        ("custom", "200"),
        ("action_post", "100"),
        ("error_occurred", "50"),
        ("session_end", "0"),
    ] {
        let row = row(name);
        assert_eq!(row[1], priority, "{row:?}");
        assert!(row.len() > 5, "{name} has a moment and a purpose: {row:?}");
    }
    for (tier, example) in [
        ("low", "read_file,"),
        ("medium", "write_file,"),
        ("high", "delete_ticket,"),
        ("critical", "drop_database,"),
    ] {
        let row = row(tier);
        assert!(row.len() > 5 && row.contains(&example), "{row:?}");
    }
}

/// A session as another program recorded it, with these types of events.
fn foreign(types: &[(&str, Value)]) -> String {
    let id = |kind: u32, number: usize| format!("{kind:08}-0000-7000-8000-{number:012}");
    let mut previous = "0".repeat(64);
    let mut lines = String::new();
    for (number, (event_type, payload)) in types.iter().enumerate() {
        let mut event = json!({
            "trace_version": "1.0", "event_id": id(1, number), "trace_id": id(2, 0), "span_id": id(3, number),
            "session_id": "foreign-1", "sequence": number, "timestamp": format!("2026-01-01T00:00:{number:02}.000000Z"),
            "event_type": event_type, "payload": payload, "previous_hash": previous,
        });
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let sequence = number.to_string();
        let parts = [
            text("trace_version"),
            text("event_id"),
            text("trace_id"),
            text("span_id"),
            text("parent_span_id"),
            text("session_id"),
            sequence,
            text("timestamp"),
            text("event_type"),
            canonical(payload),
            previous,
        ];
        previous = Digest::of(parts.join(":")).to_string();
        event["hash"] = json!(previous);
        lines.push_str(&canonical(&event));
        lines.push('\n');
    }
    lines
}

// covers A31
#[test]
fn record_with_draft_event_names_is_imported_and_the_names_are_reported() {
    let home = TestHome::recorded();
    let file = home.0.path().join("foreign.jsonl");
    let started = json!({"agent_type": "bot", "wrapper_version": "1", "atlas_ids": [], "initial_contexts": [],
        "environment": {"platform": "linux"}});
    let risk = json!({"risk_tier": "high", "trigger": "delete", "recommended_action": "verify"});
    let handled = json!({"error_type": "io", "message": "slow", "recoverable": true});
    let events = [
        ("session_started", started),
        ("risk_checkpoint", risk),
        ("error_handled", handled),
    ];
    fs::write(&file, foreign(&events)).unwrap();
    let imported = home.run(&["trace", "import", file.to_str().unwrap()]);
    assert_eq!(imported.code, 0, "{}{}", imported.out, imported.err);
    let shown = home.run(&["trace", "show", "foreign-1", "--json"]);
    shown.succeeds();
    // The record stays as it was written; it is shown with the later names.
    let types: Vec<_> = shown
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["event_type"].clone())
        .collect();
    assert_eq!(
        types,
        ["session_started", "risk_checkpoint", "error_handled"]
    );
    let replayed = home.run(&["trace", "replay", "foreign-1"]);
    replayed.succeeds();
    for words in ["risk high", "slow"] {
        assert!(
            replayed.out.contains(words),
            "`{words}` is not in:\n{}",
            replayed.out
        );
    }
    let verified = home.run(&["trace", "verify", "foreign-1", "--json"]);
    assert_eq!(verified.json()["sound"], true, "{}", verified.out);
}

/// Takes a turn by the command, under an Atlas that lets every session begin.
fn take(home: &TestHome, turn: &Value) -> super::cli::CommandOutput {
    let atlas = super::support::root().join("tests/data/features/atlas/conversation.yaml");
    let file = home.0.path().join("turn.json");
    fs::write(&file, turn.to_string()).unwrap();
    let (file, atlas) = (file.to_str().unwrap(), atlas.to_str().unwrap());
    home.run(&["turn", file, "--atlas", atlas, "--json"])
}

fn turn(fields: &Value) -> Value {
    let mut turn = json!({"session": "s-1", "message_id": "m-1", "message": "go on"});
    let fields = fields.as_object().unwrap().clone();
    turn.as_object_mut().unwrap().extend(fields);
    turn
}

/// A turn that brings a memento with these signals.
fn with_signals(signals: &Value) -> Value {
    let mut memento = json!({
        "mementoId": "mem-1", "threadId": "s-1", "createdTs": "2026-01-01T00:00:00Z", "version": "memento-v0.2",
        "arc": "begin", "active": [], "parked": [], "decisions": [], "next": [],
        "affect": {"points": [], "rollup": {"phase": "settled", "intensityBucket": "low", "updatedAt": "2026-01-01T00:00:00Z"}},
    });
    if !signals.is_null() {
        memento["signals"] = signals.clone();
    }
    turn(&json!({"context": {"thread_memento": memento}}))
}

fn item() -> Value {
    json!({"endMessageId": "m-1", "kind": "decision_made", "confidence": "high", "source": "model"})
}

fn changed(field: &str, value: &Value) -> Value {
    let mut item = item();
    item[field] = value.clone();
    item
}

// covers D12
#[test]
fn a_signal_has_exactly_the_fields_of_the_contract() {
    let signals =
        |item: Value| with_signals(&json!({"updatedAt": "2026-01-01T00:00:00Z", "items": [item]}));
    let longest = "é".repeat(180);
    for good in [
        item(),
        changed("summary", &json!(longest)),
        changed("source", &json!("server")),
        changed("confidence", &json!("med")),
        changed("confidence", &json!("low")),
    ] {
        let taken = take(&TestHome::empty(), &signals(good.clone()));
        assert_eq!(taken.code, 0, "{good}: {}", taken.err);
        assert_eq!(taken.json()[0]["decision"], "must", "{good}: {}", taken.out);
    }
    let without = |field: &str| {
        let mut item = item();
        item.as_object_mut().unwrap().remove(field);
        item
    };
    for bad in [
        without("endMessageId"),
        without("kind"),
        without("confidence"),
        without("source"),
        changed("endMessageId", &json!("")),
        changed("kind", &json!("decided")),
        changed("confidence", &json!("medium")),
        changed("source", &json!("device_hint")),
        changed("summary", &json!("x".repeat(181))),
        changed("extra", &json!(1)),
    ] {
        let home = TestHome::empty();
        let refused = take(&home, &signals(bad.clone()));
        assert_eq!(refused.code, 1, "{bad}: {}", refused.out);
        assert!(
            refused.err.contains("signals.items[0]"),
            "{bad}: {}",
            refused.err
        );
        assert!(!home.file().exists(), "nothing was recorded");
    }
}

// covers D13
#[test]
fn signals_default_to_none_and_hold_a_time_and_at_most_eight_items() {
    let decision = |signals: &Value| {
        let taken = take(&TestHome::empty(), &with_signals(signals));
        assert_eq!(taken.code, 0, "{signals}: {}", taken.err);
        taken.json()[0]["decision"].clone()
    };
    assert_eq!(decision(&Value::Null), "should");
    assert_eq!(
        decision(&json!({"updatedAt": "2026-01-01T00:00:00Z"})),
        "should"
    );
    let items =
        |count: usize| json!({"updatedAt": "2026-01-01T00:00:00Z", "items": vec![item(); count]});
    assert_eq!(decision(&items(0)), "should");
    assert_eq!(decision(&items(8)), "must");
    for (bad, words) in [
        (items(9), "items"),
        (json!({"items": []}), "updatedAt"),
        (json!({"updatedAt": "yesterday", "items": []}), "updatedAt"),
        (
            json!({"updatedAt": "2026-01-01T00:00:00Z", "itmes": []}),
            "itmes",
        ),
    ] {
        let refused = take(&TestHome::empty(), &with_signals(&bad));
        assert_eq!(refused.code, 1, "{bad}: {}", refused.out);
        assert!(refused.err.contains(words), "{bad}: {}", refused.err);
    }
}
