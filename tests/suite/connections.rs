//! Connections at their limit: idle ones make room, those that wait for an answer never do, and the operator is told.

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

use super::socket::House;

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
async fn crowded(most: usize) -> (House, GatewayState) {
    let mut house = House::under(ATLAS).await;
    let path = house.path();
    drop(house.door.take());
    let hall = house.hall.clone();
    let place = SocketLock::acquire(&path).unwrap();
    house.door = Some(UnixServer::open_for(most, place, hall.clone()).unwrap());
    (house, hall)
}

async fn visitors(house: &House, count: usize) {
    let mut visitors = house.door.as_ref().unwrap().connections();
    let wanted = visitors.wait_for(|there| *there == count);
    timeout(WAIT, wanted).await.expect("never so many").unwrap();
}

/// Everything that is sent on a connection until it is closed.
async fn rest(stream: &mut UnixStream) -> String {
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    timeout(WAIT, read).await.expect("it stays open").unwrap();
    text
}

async fn begin(house: &House, session: &str) -> (GatewayClient, Value) {
    let mut speaker = GatewayClient::connect(&house.socket()).await.unwrap();
    let start = json!({"agent": "bot", "session": session});
    let started = speaker.call("session.start", &start).await.unwrap();
    (speaker, started["key"].clone())
}

/// An agent whose request is held.
async fn held(house: &House, session: &str) -> JoinHandle<Result<Value, CallError>> {
    let (mut speaker, key) = begin(house, session).await;
    let cut = json!({"session": session, "key": key, "action": "cut"});
    let asked = tokio::spawn(async move { speaker.call("action.request", &cut).await });
    let is_held = |held: &std::sync::Arc<Held>| held.session.as_str() == session;
    house.bench.until(|it| it.held.iter().any(is_held)).await;
    asked
}

/// An agent that was let do something, and is idle now.
async fn works(house: &House, session: &str) -> GatewayClient {
    let (mut agent, key) = begin(house, session).await;
    let look = json!({"session": session, "key": key, "action": "look"});
    let allowed = agent.call("action.request", &look).await.unwrap();
    assert!(allowed["execution"].is_string(), "{allowed}");
    agent
}

#[tokio::test]
async fn idle_connections_make_room_longest_idle_first_and_the_operator_is_told() {
    let (house, hall) = crowded(3).await;
    let mut first = UnixStream::connect(house.socket()).await.unwrap();
    visitors(&house, 1).await;
    let mut second = UnixStream::connect(house.socket()).await.unwrap();
    visitors(&house, 2).await;
    let waiting = held(&house, "s-1").await;
    assert_eq!(hall.recent_shortage(WAIT), None);
    let mut newcomers = Vec::new();
    for (session, idle) in [("s-2", &mut first), ("s-3", &mut second)] {
        newcomers.push(works(&house, session).await);
        let told = rest(idle).await;
        assert!(told.contains("this one was idle longest"), "{told}");
    }
    let crowd = hall.recent_shortage(WAIT).unwrap();
    assert_eq!(crowd.outcome, ShortageOutcome::IdleClosed);
    let alarm = crowd.alarm();
    assert!(
        alarm.starts_with("the socket reached its limit of 3 connections"),
        "{alarm}"
    );
    // What waits for an operator stayed, and hears the answer.
    house.pass().await;
    let passed = timeout(WAIT, waiting).await.unwrap().unwrap().unwrap();
    assert!(passed["execution"].is_string(), "{passed}");
}

#[tokio::test]
async fn connections_that_wait_for_an_answer_are_never_closed_to_make_room() {
    let (house, hall) = crowded(2).await;
    let waiting = [held(&house, "s-1").await, held(&house, "s-2").await];
    let mut third = UnixStream::connect(house.socket()).await.unwrap();
    let told = rest(&mut third).await;
    assert!(told.contains("all 2 connections are in use"), "{told}");
    let crowd = hall.recent_shortage(WAIT).unwrap();
    assert_eq!(crowd.outcome, ShortageOutcome::Refused);
    let alarm = crowd.alarm();
    assert!(alarm.contains("agents were refused"), "{alarm}");
    assert_eq!(hall.recent_shortage(Duration::ZERO), None, "it is over");
    let held = house.bench.snapshot().held.clone();
    assert_eq!(held.len(), 2);
    for held in &held {
        house.bench.pass(held).await;
    }
    for waiting in waiting {
        let passed = timeout(WAIT, waiting).await.unwrap().unwrap().unwrap();
        assert!(passed["execution"].is_string(), "{passed}");
    }
    works(&house, "s-3").await;
}

#[tokio::test]
async fn of_257_runs_that_an_agent_names_the_first_is_forgotten() {
    let house = House::under(ATLAS).await;
    let (mut agent, key) = begin(&house, "s-1").await;
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
        let told = agent.call("action.completed", &done).await;
        assert_eq!(told.is_ok(), known, "{run}: {told:?}");
    }
}

/// Every spelling of one moment, and texts that are none.
#[tokio::test]
async fn a_deadline_is_read_in_every_spelling_of_rfc_3339() {
    let house = House::under(ATLAS).await;
    let (mut agent, key) = begin(&house, "s-1").await;
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
                let told = fault.message;
                assert!(told.contains("deadline"), "{told}");
                assert!(told.contains("RFC 3339"), "{told}");
            }
            Err(other) => panic!("{deadline}: {other}"),
        }
    }
    let none = json!({"session": "s-1", "key": key, "action": "look", "deadline": null});
    agent.call("action.request", &none).await.unwrap();
}
