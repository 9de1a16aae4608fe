//! Files and texts from outside: a number that cannot be carried exactly, or a key that is there twice,
//! is refused with its place.

use std::fs;

use cra_core::atlas::load_str;
use cra_core::memento::Turn;
use cra_core::reconstruct::ConversationSnapshot;
use cra_core::trace::jsonl::read_event;
use tempfile::TempDir;

use super::cli::{CommandOutput, command, command_output};
use super::support::root;

fn cra(words: &[&str]) -> CommandOutput {
    let home = TempDir::new().unwrap();
    command_output(command(home.path()).args(words).output().unwrap())
}

const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: org.test.values
version: "1.0.0"
name: Values
description: Numbers of a steward
default_decision: allow
actions: [{ action_id: pay, name: Pay, risk_tier: low }]
policies:
  - { policy_id: p, type: budget, actions: [pay], limit: 100, cost: amount }
checkpoints:
  - checkpoint_id: big
    name: Big
    mode: blocking
    trigger: { type: action_pre, patterns: [pay] }
    when: { path: params.amount, gt: 1000 }
    questions: [{ question_id: q, question: "ChangeKind much?", response_type: number, max: 50 }]
"#;

#[test]
fn an_atlas_with_a_number_that_would_be_rounded_is_not_loaded() {
    assert!(load_str("atlas.yaml", ATLAS).is_ok());
    for (exact, inexact) in [
        ("gt: 1000", "gt: 123456789012345678901234567890"),
        ("gt: 1000", "gt: 9007199254740993.0"),
        ("gt: 1000", "gt: 1e-400"),
        ("gt: 1000", "gt: 0.12345678901234567890123"),
        ("limit: 100", "limit: 9007199254740993"),
        ("max: 50", "max: 9007199254740993"),
    ] {
        let text = ATLAS.replace(exact, inexact);
        assert!(load_str("atlas.yaml", &text).is_err(), "{inexact}");
    }
    let large = ATLAS.replace("gt: 1000", "gt: 18446744073709551615");
    assert!(load_str("atlas.yaml", &large).is_ok());
    let odd = ATLAS.replace("gt: 1000", "gt: +1.50e1");
    assert!(load_str("atlas.yaml", &odd).is_ok());
}

#[test]
fn json_atlas_with_a_duplicate_key_is_not_loaded() {
    for text in [
        r#"{"atlas_version":"1.0","atlas_id":"a","atlas_id":"b"}"#,
        r#"{"atlas_version":"1.0","atlas_id":"a","\u0061tlas_id":"b"}"#,
    ] {
        let refused = load_str("atlas.json", text).unwrap_err();
        let reply = format!("{refused:?}");
        assert!(reply.contains("atlas_id"), "{reply}");
    }
}

#[test]
fn a_scenario_with_a_number_that_would_be_rounded_is_not_played() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("scenario.yaml");
    let atlas = root().join("assets/atlas/acme-support.yaml");
    for amount in [
        "123456789012345678901234567890",
        "0.12345678901234567890123",
    ] {
        let text = format!(
            "atlas: {}\nsteps:\n  - start: s-1\n  - request: payment.refund\n    params: {{amount: {amount}}}\n",
            atlas.display()
        );
        fs::write(&file, text).unwrap();
        let ran = cra(&["run", file.to_str().unwrap()]);
        ran.fails(1, &[amount]);
    }
}

#[test]
fn explain_refuses_parameters_that_are_not_exact() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("atlas.yaml");
    fs::write(&file, ATLAS).unwrap();
    let file = file.to_str().unwrap();
    for (params, word) in [
        (r#"{"amount": 123456789012345678901234567890}"#, "`amount`"),
        (
            r#"{"amount": 1, "amount": 2}"#,
            "at `amount`: duplicate key",
        ),
    ] {
        let reply = cra(&[
            "atlas", "explain", file, "--action", "pay", "--params", params,
        ]);
        assert_ne!(reply.code, 0, "{params}: {}", reply.out);
        assert!(reply.err.contains(word), "{params}: {}", reply.err);
    }
}

#[test]
fn snapshot_file_with_a_duplicate_key_is_not_read() {
    let text = br#"{"checkpoint_metadata":{"version":"2.0","version":"4.0"}}"#;
    let refused = ConversationSnapshot::read(text).unwrap_err().to_string();
    assert!(refused.contains("checkpoint_metadata.version"), "{refused}");
}

#[test]
fn turn_with_a_duplicate_key_or_an_inexact_number_is_refused() {
    let turn = |more: &str| {
        format!(r#"{{"message_id":"m-1","message":"hello","author":"user","context":{{}}{more}}}"#)
    };
    for more in [r#","message":"bye""#, r#","\u006dessage":"bye""#] {
        let refused = Turn::read(turn(more).as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("duplicate key"), "{refused}");
    }
    let deep = r#"{"message_id":"m-1","message":"hello","author":"user","context":{"thread_memento":{"arc":1,"arc":2}}}"#;
    let refused = Turn::read(deep.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("duplicate key"), "{refused}");
}

#[test]
fn an_event_is_never_shown_with_a_rounded_number() {
    let event = |payload: &str| {
        format!(
            r#"{{"event_id":"01234567-89ab-cdef-0123-456789abcdef","event_type":"session_ended","hash":"{}","payload":{payload},"previous_hash":"{}","sequence":0,"session_id":"s-1","span_id":"22222222-2222-2222-2222-222222222222","timestamp":"2024-12-28T12:00:00.000000Z","trace_id":"11111111-1111-1111-1111-111111111111","trace_version":"1.0"}}"#,
            "0".repeat(64),
            "0".repeat(64)
        )
    };
    assert!(read_event(event(r#"{"a":1e+21,"b":0.1}"#).as_bytes()).is_ok());
    for payload in [
        r#"{"a":123456789012345678901234567890}"#,
        r#"{"a":1,"a":2}"#,
    ] {
        assert!(read_event(event(payload).as_bytes()).is_err(), "{payload}");
    }
}
