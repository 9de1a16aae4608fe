//! What is no request, too much, or somebody else's.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{Instant, pause, timeout};

use super::{House, rest};

/// What a line is answered with.
async fn answered(house: &House, line: &[u8]) -> Value {
    let mut stream = house.raw().await;
    stream.write_all(line).await.unwrap();
    stream.write_all(b"\n").await.unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).await.unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn what_is_no_request_is_told_so_and_the_connection_goes_on() {
    let house = House::new().await;
    let cases: [(&str, i64, &str); 12] = [
        ("{", -32700, "not JSON"),
        ("nonsense", -32700, "not JSON"),
        ("[]", -32600, "batches are not supported"),
        ("7", -32600, "not a JSON-RPC 2.0 request"),
        (
            r#"{"id": 1, "method": "input"}"#,
            -32600,
            "missing field `jsonrpc`",
        ),
        (
            r#"{"jsonrpc": "1.0", "id": 1, "method": "input"}"#,
            -32600,
            "unknown variant `1.0`",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": 4}"#,
            -32600,
            "invalid type",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "approve"}"#,
            -32601,
            "unknown call `approve`",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "action.requst", "params": {}}"#,
            -32601,
            "did you mean `action.request`?",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "input", "params": [1]}"#,
            -32602,
            "the parameters must be an object",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "session.start", "params": {"agent": 5}}"#,
            -32602,
            "wrong parameters at `agent`",
        ),
        (
            r#"{"jsonrpc": "2.0", "id": 1, "method": "session.start", "params": {"agent": "x", "session": "../../etc"}}"#,
            -32602,
            "wrong parameters at `session`: `../../etc` is not an identifier",
        ),
    ];
    let mut stream = house.raw().await;
    for (line, code, why) in cases {
        stream
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let error = &answer["error"];
        assert_eq!(error["code"], json!(code), "{line}: {answer}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(why), "{line}: {message}");
        assert!(answer.get("result").is_none(), "{answer}");
    }
}

#[tokio::test]
async fn no_call_decides_about_anything() {
    let house = House::new().await;
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "session.start",
        "params": {"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"}});
    let started = answered(&house, start.to_string().as_bytes()).await;
    let key = &started["result"]["key"];
    for method in [
        "decide",
        "approve",
        "pass",
        "gate.pass",
        "checkpoint.pass",
        "checkpoint.approve",
        "operate",
        "policy_override",
        "risk_verified",
        "note",
        "session.approve",
    ] {
        let params = json!({"session": "s-1", "key": key, "gate": "c-1"});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let told = answered(&house, call.to_string().as_bytes()).await;
        assert_eq!(told["error"]["code"], json!(-32601), "{told}");
    }
    // The one call that answers takes only what is an agent's to answer.
    let answer = json!({"session": "s-1", "key": key, "gate": "c-1",
        "answers": {"onboarding": {"agree-terms": true}}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "checkpoint.answer", "params": answer});
    let told = answered(&house, call.to_string().as_bytes()).await;
    assert!(told.get("error").is_some(), "{told}");
    assert_eq!(house.bench.snapshot().held.len(), 1);
}

#[tokio::test]
async fn unknown_parameters_are_refused_by_name() {
    let house = House::new().await;
    let call = json!({"jsonrpc": "2.0", "id": "a", "method": "action.request",
        "params": {"session": "s-1", "action": "x", "dedline": "2026-01-01T00:00:00Z"}});
    let told = answered(&house, call.to_string().as_bytes()).await;
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("unknown field `dedline`"), "{message}");
    assert_eq!(told["id"], json!("a"));
}

#[tokio::test]
async fn a_line_without_an_end_is_cut_off_and_nobody_else_notices() {
    let house = House::new().await;
    let mut huge = house.raw().await;
    let block = vec![b'x'; 1 << 20];
    let mut sent = 0_usize;
    // The console closes; what is still written then fails.
    while sent < 100 && huge.write_all(&block).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "all of it was taken");
    let said = rest(&mut huge).await;
    assert!(
        said.is_empty() || said.contains("at most 16777216 bytes"),
        "{said}"
    );
    let mut other = house.agent().await;
    let started = other
        .says(
            "session.start",
            json!({"agent": "bot", "api_key": "sk-acme-1"}),
        )
        .await;
    assert!(started["session"].is_string());
}

#[tokio::test]
async fn half_a_message_is_no_message() {
    let house = House::new().await;
    let mut stream = house.raw().await;
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "session.start",
        "params": {"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"}});
    stream
        .write_all(start.to_string().as_bytes())
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
    assert!(house.bench.snapshot().sessions.is_empty());
}

#[test]
fn whatever_is_sent_is_answered_or_closed_and_never_allowed() {
    let threads = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let house = threads.block_on(House::new());
    let frames = proptest::collection::vec(
        prop_oneof![
            any::<Vec<u8>>(),
            "\\PC{0,80}".prop_map(String::into_bytes),
            r#"\{"jsonrpc":"2.0","id":[0-9]{1,3},"method":"[a-z.]{1,20}","params":\{"session":"[a-z0-9./\\-]{0,12}"\}\}"#
                .prop_map(String::into_bytes),
        ],
        1..8,
    );
    proptest!(ProptestConfig::with_cases(64), |(frames in frames)| {
        let said = threads.block_on(async {
            let mut stream = house.raw().await;
            for frame in &frames {
                stream.write_all(frame).await.unwrap();
                stream.write_all(b"\n").await.unwrap();
            }
            stream.shutdown().await.unwrap();
            rest(&mut stream).await
        });
        for line in said.lines() {
            let answer: Value = serde_json::from_str(line).unwrap();
            prop_assert!(answer.get("error").is_some(), "{}", answer);
            prop_assert!(answer.get("result").is_none(), "{}", answer);
        }
    });
    assert!(house.bench.snapshot().sessions.is_empty());
}

/// A call that nobody knows: it is answered at the door.
const UNKNOWN: &[u8] = b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"no.such\"}\n";

/// Longer than anything here may take; it passes in no time.
const LONG: Duration = Duration::from_mins(5);

/// Says something and hears the answer, so often that everybody else had their turn.
async fn chat(stream: &mut BufReader<UnixStream>) {
    for _ in 0..50 {
        stream.write_all(UNKNOWN).await.unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).await.unwrap();
        assert!(answer.contains("-32601"), "{answer}");
    }
}

#[tokio::test]
async fn calls_of_one_connection_that_come_too_fast_wait() {
    let house = House::new().await;
    let stream = UnixStream::connect(house.socket()).await.unwrap();
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    // From here on time passes when nothing else is to be done.
    pause();
    let begun = Instant::now();
    let calls = 6000;
    let asking = async {
        for _ in 0..calls {
            writer.write_all(UNKNOWN).await.unwrap();
        }
    };
    let hearing = async {
        let mut answer = String::new();
        for _ in 0..calls {
            answer.clear();
            reader.read_line(&mut answer).await.unwrap();
        }
    };
    tokio::join!(asking, hearing);
    // Two thousand in a second; one second's worth may have been saved up.
    let took = begun.elapsed().as_millis();
    assert!((1900..=3100).contains(&took), "{took} ms");
}

#[tokio::test]
async fn half_a_message_that_is_never_finished_is_told_so_and_closed() {
    let house = House::new().await;
    let mut stream = house.raw().await;
    let mut other = house.raw().await;
    stream.write_all(b"{\"jsonrpc\": \"2.0\",").await.unwrap();
    chat(&mut other).await;
    pause();
    let begun = Instant::now();
    let mut said = String::new();
    let read = timeout(LONG, stream.read_to_string(&mut said));
    read.await.expect("it was never closed").unwrap();
    assert!(said.contains("finished within 30 seconds"), "{said}");
    let took = begun.elapsed().as_secs();
    assert!((29..=31).contains(&took), "{took} s");
    // Who has begun nothing may be silent for as long as they like.
    chat(&mut other).await;
}

#[tokio::test]
async fn who_does_not_take_their_answers_is_not_waited_for() {
    let house = House::new().await;
    let mut deaf = house.raw().await;
    let mut visitors = house.door.as_ref().unwrap().connections();
    pause();
    let begun = Instant::now();
    let asking = async {
        // Until nobody reads it any more, and nobody is there.
        while deaf.write_all(UNKNOWN).await.is_ok() {}
    };
    timeout(LONG, asking).await.expect("it was never closed");
    visitors.wait_for(|there| *there == 0).await.unwrap();
    let took = begun.elapsed().as_secs();
    assert!((29..=40).contains(&took), "{took} s");
}

#[tokio::test]
async fn unfinished_large_messages_keep_neither_large_nor_small_ones_of_others_out() {
    let house = House::new().await;
    let large = vec![b'x'; 80 * 1024];
    let mut small = house.raw().await;
    let mut unfinished = Vec::new();
    for _ in 0..8 {
        let mut stream = house.raw().await;
        stream.write_all(&large).await.unwrap();
        chat(&mut small).await;
        unfinished.push(stream);
    }
    let mut whole = house.raw().await;
    whole.write_all(&large).await.unwrap();
    whole.write_all(b"\n").await.unwrap();
    chat(&mut small).await;
    let mut answer = String::new();
    whole.read_line(&mut answer).await.unwrap();
    assert!(answer.contains("not JSON"), "{answer}");
    let mut cut = String::new();
    unfinished[0].read_line(&mut cut).await.unwrap();
    assert!(cut.contains("without pauses"), "{cut}");
}
