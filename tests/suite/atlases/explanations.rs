//! Reasons in `cra atlas explain`: positions, priorities, Atlases, effects and limits.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CommandOutput, cra, text};

const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.reasons
version: "1"
name: Reasons
default_decision: allow
unknown_actions: allow
capabilities: [{capability_id: admin, actions: ['admin.*']}]
context_blocks:
- {context_id: rules, content: Be careful., inject_mode: on_demand}
- {context_id: money, content: Up to 100., checkpoint_config: {keywords: [refund], actions: ['payment.*']}}
checkpoints:
- checkpoint_id: words
  trigger: {type: keyword, patterns: [refund, 'wire'], match_mode: any}
  inject_contexts: [rules]
  guidance: {format: text, content: Ask for the receipt.}
- checkpoint_id: gate
  trigger: {type: action_pre, patterns: ['payment.*']}
  mode: blocking
  priority: 650
  unlock_capabilities: [admin]
  deny_actions: ['mail.*']
- checkpoint_id: minute
  trigger: {type: time_interval, seconds: 60}
policies:
- {policy_id: few, type: rate_limit, actions: ['payment.*'], max_calls: 5, window_seconds: 60, reason: slow}
- {policy_id: purse, type: budget, actions: ['payment.*'], limit: 100, scope: agent, reason: enough}
"#;

fn explain(more: &[&str]) -> CommandOutput {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("atlas.yaml");
    fs::write(&file, ATLAS).unwrap();
    let output = cra(&[&["atlas", "explain", text(&file)], more].concat());
    assert_eq!(
        (output.code, output.err.as_str()),
        (0, ""),
        "{}",
        output.out
    );
    output
}

fn evidence(reply: &Value, id: &str) -> Value {
    let all = reply["checkpoints"].as_array().unwrap();
    all.iter()
        .find(|entry| entry["checkpoint_id"] == id)
        .unwrap()
        .clone()
}

// covers A23
#[test]
fn explain_reports_the_positions_of_keywords_in_input() {
    let output = explain(&["--input", "é, a wire for my refund"]);
    let lines = [
        "FIRED      keywords found: `refund` at character 17, `wire` at character 5",
        "priority 600, advisory, Atlas com.example.reasons",
        "gives rules",
        "tells Ask for the receipt.",
        "FIRED      keywords found: `refund` at character 17",
        "not fired  wanted 60 seconds, actual 0 seconds",
    ];
    for line in lines {
        assert!(
            output.out.contains(line),
            "`{line}` is not in\n{}",
            output.out
        );
    }
    let output = explain(&["--input", "é, a wire for my refund", "--json"]);
    let reply: Value = serde_json::from_str(&output.out).unwrap();
    let words = evidence(&reply["input"], "words");
    let found = json!([{"keyword": "refund", "position": 17}, {"keyword": "wire", "position": 5}]);
    assert_eq!(words["matches"], found);
    assert_eq!(words["effects"]["contexts"], json!(["rules"]));
    let context = &reply["input"]["contexts"][0];
    assert_eq!(
        context["matches"],
        json!([{"keyword": "refund", "position": 17}])
    );
}

// covers B14, B27
#[test]
fn explain_reports_priority_atlas_effects_contexts_and_limits_of_a_request() {
    let ask = [
        "--action",
        "payment.send",
        "--session",
        r#"{"age_seconds": 60}"#,
    ];
    let output = explain(&ask);
    let lines = [
        "HELD at gate",
        "priority 650, blocking, Atlas com.example.reasons",
        "when passed unlocks admin",
        "when passed denies mail.*",
        "FIRED      60 s have passed",
        "limit: 5 calls in 60 s, for each session",
        "limit: 100 in total, for all sessions of an agent",
        "FIRED      `payment.send` matches the rule `payment.*`",
    ];
    for line in lines {
        assert!(
            output.out.contains(line),
            "`{line}` is not in\n{}",
            output.out
        );
    }
    // As they are looked at: the gate before the interval.
    let (gate, minute) = (
        output.out.find("checkpoint  gate"),
        output.out.find("checkpoint  minute"),
    );
    assert!(gate < minute, "{}", output.out);
    let output = explain(&[&ask[..], &["--json"]].concat());
    let reply: Value = serde_json::from_str(&output.out).unwrap();
    let gate = evidence(&reply, "gate");
    assert_eq!(
        (&gate["priority"], &gate["mode"]),
        (&json!(650), &json!("blocking"))
    );
    assert_eq!(gate["atlas_id"], "com.example.reasons");
    assert_eq!(
        gate["effects"],
        json!({"unlock": ["admin"], "deny": ["mail.*"]})
    );
    assert_eq!(
        reply["policies"][0]["limit"],
        "5 calls in 60 s, for each session"
    );
    assert_eq!(reply["contexts"][0]["context_id"], "money");
}

// covers B5
#[test]
fn a_blocking_end_of_a_session_is_an_error_that_says_what_to_do() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("atlas.yaml");
    let end = "checkpoints: [{checkpoint_id: end, trigger: {type: session_end}, mode: blocking}]";
    fs::write(
        &file,
        format!("{}\n{end}\n", super::yaml("com.example.end", "a.run")),
    )
    .unwrap();
    let output = cra(&["atlas", "lint", text(&file)]);
    assert_eq!(output.code, 3, "{}", output.out);
    let all = format!("{}{}", output.out, output.err);
    assert!(
        all.contains("E036") && all.contains("`mode: advisory`"),
        "{all}"
    );
}
