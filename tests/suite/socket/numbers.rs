//! Numbers and keys at the socket: what is judged is exactly what was sent, or it is refused.

use std::sync::Arc;

use cra_core::atlas::load_str;
use cra_core::base::clock::{Clock, ManualClock, SystemClock};
use cra_core::engine::held::HeldSubject;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::TestConsole;

/// Every payment needs an operator.
pub(crate) const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: "org.test.pay"
version: "1.0.0"
name: "Payments"
description: "Every payment is held"
default_decision: allow
actions:
  - { action_id: "pay", name: "Pay", risk_tier: high }
checkpoints:
  - checkpoint_id: "pay-gate"
    name: "Payments"
    trigger: { type: action_pre, patterns: ["pay"] }
    mode: blocking
    questions:
      - { question_id: "why", question: "Why?", response_type: text }
"#;

/// Tokens that no reader here carries exactly.
pub(crate) const INEXACT: [&str; 8] = [
    "-0",
    "1271270613000041655817448348132275889066893754095",
    "18446744073709551616",
    "-9223372036854775809",
    "0.12345678901234567890123",
    "1e400",
    "1e-400",
    "9007199254740993.0",
];

async fn send(stream: &mut BufReader<UnixStream>, line: &str) {
    stream.write_all(line.as_bytes()).await.unwrap();
    stream.write_all(b"\n").await.unwrap();
}

async fn answer(stream: &mut BufReader<UnixStream>) -> Value {
    let mut answer = String::new();
    stream.read_line(&mut answer).await.unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// A session, its key, and the connection that began it.
async fn begin(console: &TestConsole) -> (String, BufReader<UnixStream>) {
    let mut stream = console.connect_raw().await;
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "session.start",
        "params": {"session": "s-1", "agent": "bot"}});
    send(&mut stream, &start.to_string()).await;
    let started = answer(&mut stream).await;
    let key = started["result"]["key"].as_str().unwrap().to_owned();
    (key, stream)
}

/// A request to pay whose parameters are this text.
fn pay(key: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"action.request","params":{{"session":"s-1","key":"{key}","action":"pay","params":{params}}}}}"#
    )
}

#[tokio::test]
async fn a_number_that_cannot_be_carried_exactly_is_refused_with_its_path() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let (key, mut stream) = begin(&console).await;
    for token in INEXACT {
        send(&mut stream, &pay(&key, &format!(r#"{{"to":{token}}}"#))).await;
        // The next line is answered on the same connection: one that is held would come later.
        send(&mut stream, r#"{"jsonrpc":"2.0","id":8,"method":"none"}"#).await;
        let refused = answer(&mut stream).await;
        assert_eq!(refused["id"], 7, "{token} was held: {refused}");
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        for part in ["`params.to`", token, "send it as a string"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(answer(&mut stream).await["id"], 8);
    }
    assert!(console.bench.snapshot().held.is_empty());
}

#[tokio::test]
async fn duplicate_key_is_refused_with_its_path() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let (key, mut stream) = begin(&console).await;
    for params in [
        r#"{"to":"mallory","to":"alice"}"#,
        r#"{"to":"mallory","\u0074o":"alice"}"#,
    ] {
        send(&mut stream, &pay(&key, params)).await;
        send(&mut stream, r#"{"jsonrpc":"2.0","id":8,"method":"none"}"#).await;
        let refused = answer(&mut stream).await;
        assert_eq!(refused["id"], 7, "{params} was held: {refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("`params.to`"), "{message}");
        assert!(message.contains("duplicate key"), "{message}");
        assert_eq!(answer(&mut stream).await["id"], 8);
    }
    // Outside the parameters, too.
    let twice = r#"{"jsonrpc":"2.0","id":9,"id":10,"method":"input"}"#;
    send(&mut stream, twice).await;
    let refused = answer(&mut stream).await;
    assert_eq!(refused["id"], Value::Null, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("`id`"), "{message}");
    // An identifier that would come back as another one is not one.
    let inexact = r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"input"}"#;
    send(&mut stream, inexact).await;
    let refused = answer(&mut stream).await;
    assert_eq!(refused["id"], Value::Null, "{refused}");
}

/// Tokens that mean two things to some server: none of them stands for the other.
const DIFFERENT_NUMBERS: [(&str, &str); 5] = [
    ("1", "1.0"),
    ("0", "-0.0"),
    ("0.0", "-0.0"),
    ("9007199254740993", r#""9007199254740993""#),
    ("10000000000000000", "1e16"),
];

#[tokio::test]
async fn requests_with_different_numbers_are_held_apart() {
    for (one, other) in DIFFERENT_NUMBERS {
        for reference in ["", r#","reference":"r-1""#] {
            let console = TestConsole::with_atlas(ATLAS).await;
            let (key, mut first) = begin(&console).await;
            let ask = |token: &str| {
                let whole = pay(&key, &format!(r#"{{"to":{token}}}"#));
                whole.replace(
                    r#""action":"pay""#,
                    &format!(r#""action":"pay"{reference}"#),
                )
            };
            send(&mut first, &ask(one)).await;
            console
                .bench
                .wait_until(|snapshot| snapshot.held.len() == 1)
                .await;
            let mut second = console.connect_raw().await;
            send(&mut second, &ask(other)).await;
            let settled = console.bench.wait_until(|snapshot| {
                snapshot.held.len() == 2 || snapshot.held.iter().any(|held| held.joined > 0)
            });
            let snapshot = settled.await;
            assert_eq!(snapshot.held.len(), 2, "{one} and {other} are one request");
            let hashes: Vec<_> = snapshot.held.iter().map(|held| held.request_hash).collect();
            assert_ne!(hashes[0], hashes[1], "{one} and {other}");
        }
    }
}

/// Parameters of the only held request, as an operator sees them.
fn shown(console: &TestConsole) -> String {
    let snapshot = console.bench.snapshot();
    match &snapshot.held[0].subject {
        HeldSubject::Action(call) => call.params.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn large_integer_is_shown_and_stored_exactly() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let (key, mut stream) = begin(&console).await;
    let params = r#"{"name":"9007199254740993","to":18446744073709551615}"#;
    send(&mut stream, &pay(&key, params)).await;
    console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    assert_eq!(shown(&console), params);
    let hash = console.bench.snapshot().held[0].request_hash;
    // The record has strings of digits, and says which of them were numbers.
    let operator = console.bench.runtime.operator_handle();
    let events = operator
        .events("s-1".parse().unwrap(), 0, 100)
        .await
        .unwrap();
    let attempted = events
        .iter()
        .find(|event| event.event_type == "action_attempted");
    let attempted = &attempted.unwrap().payload;
    let recorded = json!({"name": "9007199254740993", "to": "18446744073709551615"});
    assert_eq!(attempted["action_params"], recorded);
    assert_eq!(attempted["numbers_as_text"], json!(["action_params.to"]));
    // A restart changes nothing of it.
    drop((stream, operator));
    let TestConsole {
        bench,
        server,
        gateway,
        folder,
    } = console;
    drop((server, gateway));
    bench.runtime.stop().await;
    let atlas = load_str("atlas.yaml", ATLAS).unwrap().atlas;
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let console = TestConsole::with(folder, vec![atlas], clock).await;
    console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    assert_eq!(shown(&console), params);
    assert_eq!(console.bench.snapshot().held[0].request_hash, hash);
}

#[tokio::test]
async fn only_numbers_that_canonical_json_would_change_are_listed_as_text() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let (key, mut stream) = begin(&console).await;
    send(
        &mut stream,
        &pay(&key, r#"{"a":1.0,"b":0.1,"to":9007199254740992}"#),
    )
    .await;
    console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    assert_eq!(
        shown(&console),
        r#"{"a":1.0,"b":0.1,"to":9007199254740992}"#
    );
    let operator = console.bench.runtime.operator_handle();
    let events = operator
        .events("s-1".parse().unwrap(), 0, 100)
        .await
        .unwrap();
    let attempted = events
        .iter()
        .find(|event| event.event_type == "action_attempted");
    // Canonical JSON would write `1.0` as `1`; it keeps the other two.
    let payload = &attempted.unwrap().payload;
    assert_eq!(payload["numbers_as_text"], json!(["action_params.a"]));
    assert_eq!(
        payload["action_params"],
        json!({"a": "1.0", "b": 0.1, "to": 9_007_199_254_740_992_u64})
    );
}
