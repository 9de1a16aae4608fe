//! Messages at the socket that are invalid, too large, or that name another agent's session.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{Instant, pause, timeout};

use super::{TestConsole, rest};

/// Answer to a line.
async fn answered(console: &TestConsole, line: &[u8]) -> Value {
    let mut stream = console.connect_raw().await;
    stream.write_all(line).await.unwrap();
    stream.write_all(b"\n").await.unwrap();
    let mut answer = String::new();
    stream.read_line(&mut answer).await.unwrap();
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn invalid_request_is_answered_with_an_error_and_the_connection_stays_open() {
    let console = TestConsole::new().await;
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
    let mut stream = console.connect_raw().await;
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
async fn no_agent_call_can_decide_a_gate() {
    let console = TestConsole::new().await;
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "session.start",
        "params": {"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"}});
    let started = answered(&console, start.to_string().as_bytes()).await;
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
        let reply = answered(&console, call.to_string().as_bytes()).await;
        assert_eq!(reply["error"]["code"], json!(-32601), "{reply}");
    }
    // The one call that answers takes only what is an agent's to answer.
    let answer = json!({"session": "s-1", "key": key, "gate": "c-1",
        "answers": {"onboarding": {"agree-terms": true}}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "checkpoint.answer", "params": answer});
    let reply = answered(&console, call.to_string().as_bytes()).await;
    assert!(reply.get("error").is_some(), "{reply}");
    assert_eq!(console.bench.snapshot().held.len(), 1);
}

#[tokio::test]
async fn unknown_parameters_are_refused_by_name() {
    let console = TestConsole::new().await;
    let call = json!({"jsonrpc": "2.0", "id": "a", "method": "action.request",
        "params": {"session": "s-1", "action": "x", "dedline": "2026-01-01T00:00:00Z"}});
    let reply = answered(&console, call.to_string().as_bytes()).await;
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("unknown field `dedline`"), "{message}");
    assert_eq!(reply["id"], json!("a"));
}

#[tokio::test]
async fn endless_line_is_cut_off_without_affecting_other_connections() {
    let console = TestConsole::new().await;
    let mut huge = console.connect_raw().await;
    let block = vec![b'x'; 1 << 20];
    let mut sent = 0_usize;
    // The console closes; what is still written then fails.
    while sent < 100 && huge.write_all(&block).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 100, "all of it was taken");
    let output = rest(&mut huge).await;
    assert!(
        output.is_empty() || output.contains("at most 16777216 bytes"),
        "{output}"
    );
    let mut other = console.agent().await;
    let started = other
        .call_ok(
            "session.start",
            json!({"agent": "bot", "api_key": "sk-acme-1"}),
        )
        .await;
    assert!(started["session"].is_string());
}

#[tokio::test]
async fn incomplete_message_is_ignored() {
    let console = TestConsole::new().await;
    let mut stream = console.connect_raw().await;
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "session.start",
        "params": {"session": "s-1", "agent": "bot", "api_key": "sk-acme-1"}});
    stream
        .write_all(start.to_string().as_bytes())
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
    assert!(console.bench.snapshot().sessions.is_empty());
}

#[test]
fn arbitrary_bytes_are_answered_or_closed_and_never_allowed() {
    let threads = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let console = threads.block_on(TestConsole::new());
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
        let output = threads.block_on(async {
            let mut stream = console.connect_raw().await;
            for frame in &frames {
                stream.write_all(frame).await.unwrap();
                stream.write_all(b"\n").await.unwrap();
            }
            stream.shutdown().await.unwrap();
            rest(&mut stream).await
        });
        for line in output.lines() {
            let answer: Value = serde_json::from_str(line).unwrap();
            prop_assert!(answer.get("error").is_some(), "{}", answer);
            prop_assert!(answer.get("result").is_none(), "{}", answer);
        }
    });
    assert!(console.bench.snapshot().sessions.is_empty());
}

/// An unknown call: the server answers it without the runtime.
const UNKNOWN: &[u8] = b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"no.such\"}\n";

/// Longer than anything here may take; it passes in no time.
const LONG: Duration = Duration::from_mins(5);

/// Exchanges messages often enough that all other tasks have run.
async fn chat(stream: &mut BufReader<UnixStream>) {
    for _ in 0..50 {
        stream.write_all(UNKNOWN).await.unwrap();
        let mut answer = String::new();
        stream.read_line(&mut answer).await.unwrap();
        assert!(answer.contains("-32601"), "{answer}");
    }
}

#[tokio::test]
async fn calls_of_one_connection_over_the_rate_limit_wait() {
    let console = TestConsole::new().await;
    let stream = UnixStream::connect(console.socket()).await.unwrap();
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
async fn message_that_is_not_finished_in_time_is_answered_with_an_error_and_closed() {
    let console = TestConsole::new().await;
    let mut stream = console.connect_raw().await;
    let mut other = console.connect_raw().await;
    stream.write_all(b"{\"jsonrpc\": \"2.0\",").await.unwrap();
    chat(&mut other).await;
    pause();
    let begun = Instant::now();
    let mut output = String::new();
    let read = timeout(LONG, stream.read_to_string(&mut output));
    read.await.expect("it was never closed").unwrap();
    assert!(output.contains("complete within 30 seconds"), "{output}");
    let took = begun.elapsed().as_secs();
    assert!((29..=31).contains(&took), "{took} s");
    // Who has begun nothing may be silent for as long as they like.
    chat(&mut other).await;
}

#[tokio::test]
async fn client_that_does_not_read_its_answers_is_disconnected() {
    let console = TestConsole::new().await;
    let mut deaf = console.connect_raw().await;
    let mut connections = console.server.as_ref().unwrap().connections();
    pause();
    let begun = Instant::now();
    let asking = async {
        // Until the server stops reading and closes the connection.
        while deaf.write_all(UNKNOWN).await.is_ok() {}
    };
    timeout(LONG, asking).await.expect("it was never closed");
    connections.wait_for(|there| *there == 0).await.unwrap();
    let took = begun.elapsed().as_secs();
    assert!((29..=40).contains(&took), "{took} s");
}

#[tokio::test]
async fn unfinished_large_messages_do_not_block_messages_of_other_connections() {
    let console = TestConsole::new().await;
    let large = vec![b'x'; 80 * 1024];
    let mut small = console.connect_raw().await;
    let mut unfinished = Vec::new();
    for _ in 0..8 {
        let mut stream = console.connect_raw().await;
        stream.write_all(&large).await.unwrap();
        chat(&mut small).await;
        unfinished.push(stream);
    }
    let mut whole = console.connect_raw().await;
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
