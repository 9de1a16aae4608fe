//! Connections at their limit: idle ones make room, those that wait for an answer never do, and the operator is notified.

use std::time::Duration;

use cra_core::base::limits::MAX_RUNNING_PER_SESSION;
use cra_core::engine::held::Held;
use cra_core::gateway::protocol::call::CallError;
use cra_core::gateway::transport::client::GatewayClient;
use cra_core::gateway::transport::gateway_state::{GatewayState, ShortageOutcome};
use cra_core::gateway::transport::socket_lock::SocketLock;
use cra_core::gateway::transport::unix_server::UnixServer;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::socket::TestConsole;

const WAIT: Duration = Duration::from_secs(20);

/// Lets `look` run, and asks about `cut`.
const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: "test"
version: "1"
name: "Test"
default_decision: allow
actions:
  - { action_id: "look", name: "Look", risk_tier: low }
  - { action_id: "cut", name: "Cut", risk_tier: high }
checkpoints:
  - checkpoint_id: "cut-gate"
    name: "Cuts"
    trigger: { type: action_pre, patterns: ["cut"] }
    mode: blocking
    questions:
      - { question_id: "why", question: "Why?", response_type: text }
"#;

/// A console with room for `most` connections, and what its servers share.
async fn crowded(most: usize) -> (TestConsole, GatewayState) {
    let mut console = TestConsole::with_atlas(ATLAS).await;
    let path = console.path();
    drop(console.server.take());
    let gateway = console.gateway.clone();
    let place = SocketLock::acquire(&path).unwrap();
    console.server = Some(UnixServer::open_for(most, place, gateway.clone()).unwrap());
    (console, gateway)
}

async fn wait_for_connections(console: &TestConsole, count: usize) {
    let mut connections = console.server.as_ref().unwrap().connections();
    let wanted = connections.wait_for(|there| *there == count);
    timeout(WAIT, wanted)
        .await
        .expect("the number of connections was never reached")
        .unwrap();
}

/// Everything that is sent on a connection until it is closed.
async fn rest(stream: &mut UnixStream) -> String {
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    timeout(WAIT, read).await.expect("it stays open").unwrap();
    text
}

async fn begin(console: &TestConsole, session: &str) -> (GatewayClient, Value) {
    let mut speaker = GatewayClient::connect(&console.socket()).await.unwrap();
    let start = json!({"agent": "bot", "session": session});
    let started = speaker.call("session.start", &start).await.unwrap();
    (speaker, started["key"].clone())
}

/// An agent whose request is held.
async fn held(console: &TestConsole, session: &str) -> JoinHandle<Result<Value, CallError>> {
    let (mut speaker, key) = begin(console, session).await;
    let cut = json!({"session": session, "key": key, "action": "cut"});
    let pending = tokio::spawn(async move { speaker.call("action.request", &cut).await });
    let is_held = |held: &std::sync::Arc<Held>| held.session.as_str() == session;
    console
        .bench
        .wait_until(|snapshot| snapshot.held.iter().any(is_held))
        .await;
    pending
}

/// An agent that was let do something, and is idle now.
async fn works(console: &TestConsole, session: &str) -> GatewayClient {
    let (mut agent, key) = begin(console, session).await;
    let look = json!({"session": session, "key": key, "action": "look"});
    let allowed = agent.call("action.request", &look).await.unwrap();
    assert!(allowed["execution"].is_string(), "{allowed}");
    agent
}

#[tokio::test]
async fn idle_connections_are_closed_longest_idle_first_and_the_operator_is_notified() {
    let (console, gateway) = crowded(3).await;
    let mut first = UnixStream::connect(console.socket()).await.unwrap();
    wait_for_connections(&console, 1).await;
    let mut second = UnixStream::connect(console.socket()).await.unwrap();
    wait_for_connections(&console, 2).await;
    let waiting = held(&console, "s-1").await;
    assert_eq!(gateway.recent_shortage(WAIT), None);
    let mut newcomers = Vec::new();
    for (session, idle) in [("s-2", &mut first), ("s-3", &mut second)] {
        newcomers.push(works(&console, session).await);
        let reply = rest(idle).await;
        assert!(reply.contains("this one was idle longest"), "{reply}");
    }
    let crowd = gateway.recent_shortage(WAIT).unwrap();
    assert_eq!(crowd.outcome, ShortageOutcome::IdleClosed);
    let alarm = crowd.alarm();
    assert!(
        alarm.starts_with("the socket reached its limit of 3 connections"),
        "{alarm}"
    );
    // What waits for an operator stayed, and hears the answer.
    console.pass().await;
    let passed = timeout(WAIT, waiting).await.unwrap().unwrap().unwrap();
    assert!(passed["execution"].is_string(), "{passed}");
}

#[tokio::test]
async fn connections_that_wait_for_an_answer_are_never_closed_to_make_room() {
    let (console, gateway) = crowded(2).await;
    let waiting = [held(&console, "s-1").await, held(&console, "s-2").await];
    let mut third = UnixStream::connect(console.socket()).await.unwrap();
    let reply = rest(&mut third).await;
    assert!(reply.contains("all 2 connections are in use"), "{reply}");
    let crowd = gateway.recent_shortage(WAIT).unwrap();
    assert_eq!(crowd.outcome, ShortageOutcome::Refused);
    let alarm = crowd.alarm();
    assert!(alarm.contains("agents were refused"), "{alarm}");
    assert_eq!(gateway.recent_shortage(Duration::ZERO), None, "it is over");
    let held = console.bench.snapshot().held.clone();
    assert_eq!(held.len(), 2);
    for held in &held {
        console.bench.pass(held).await;
    }
    for waiting in waiting {
        let passed = timeout(WAIT, waiting).await.unwrap().unwrap().unwrap();
        assert!(passed["execution"].is_string(), "{passed}");
    }
    works(&console, "s-3").await;
}

#[tokio::test]
async fn first_of_257_named_runs_is_forgotten() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let (mut agent, key) = begin(&console, "s-1").await;
    for run in 0..=MAX_RUNNING_PER_SESSION {
        let look = json!({
            "session": "s-1", "key": key, "action": "look", "reference": format!("r-{run}"),
        });
        agent.call("action.request", &look).await.unwrap();
    }
    for (run, known) in [(0, false), (1, true), (MAX_RUNNING_PER_SESSION, true)] {
        let done = json!({
            "session": "s-1", "key": key, "reference": format!("r-{run}"), "result": "done",
        });
        let reply = agent.call("action.completed", &done).await;
        assert_eq!(reply.is_ok(), known, "{run}: {reply:?}");
    }
}

/// Every spelling of one moment, and texts that are none.
#[tokio::test]
async fn deadline_is_parsed_in_every_spelling_of_rfc_3339() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let (mut agent, key) = begin(&console, "s-1").await;
    for (deadline, reads) in [
        ("2999-01-31T23:59:59Z", true),
        ("2999-01-31t23:59:59z", true),
        ("2999-01-31T23:59:59.5Z", true),
        ("2999-01-31T23:59:59.000000Z", true),
        ("2999-01-31T23:59:59.123456789+05:30", true),
        ("2999-01-31T23:59:59-08:00", true),
        ("2999-01-31", false),
        ("2999-01-31 23:59:59Z", false),
        ("tomorrow", false),
    ] {
        let look = json!({"session": "s-1", "key": key, "action": "look", "deadline": deadline});
        match agent.call("action.request", &look).await {
            Ok(allowed) => {
                assert!(
                    reads && allowed["execution"].is_string(),
                    "{deadline}: {allowed}"
                );
            }
            Err(CallError::Fault(fault)) => {
                assert!(!reads, "{deadline}: {fault:?}");
                let reply = fault.message;
                assert!(reply.contains("deadline"), "{reply}");
                assert!(reply.contains("RFC 3339"), "{reply}");
            }
            Err(other) => panic!("{deadline}: {other}"),
        }
    }
    let none = json!({"session": "s-1", "key": key, "action": "look", "deadline": null});
    agent.call("action.request", &none).await.unwrap();
}
