//! Who comes and goes: connections that are cut, too many, too slow, or at somebody else's session.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::socket::tried;
use super::{ATLAS, WAIT, Web, asked, open};
use crate::impostor::{Impostor, Trick};
use crate::support::decide;
use cra_core::engine::command::{Reply, Ruling};

/// A hook before a tool that is held.
fn hook() -> Value {
    json!({
        "session_id": "h-1", "cwd": "/src", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "tool_use_id": "toolu_1",
    })
}

#[tokio::test]
async fn a_hook_whose_connection_is_cut_leaves_the_gate() {
    let web = Web::new().await;
    let request = web.written("POST", "/v1/hook/claude-code", "", &hook().to_string());
    let stream = web.connect(&request).await;
    web.house.bench.until(|it| it.held.len() == 1).await;
    // The hook needs no connection to the socket.
    let socket = web.house.door.as_ref().unwrap().connections();
    assert_eq!(*socket.borrow(), 0);
    assert_eq!(web.door.pending_hooks(), 1);
    drop(stream);
    let left = async {
        while web.door.pending_hooks() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, left).await.expect("it was never noticed");
    // A decision for somebody who has gone is a permit for the same request: it is not held again.
    web.house.pass().await;
    let (status, told) = web.send(&request).await;
    assert_eq!(status, 200);
    assert!(told.contains(r#""permissionDecision":"allow""#), "{told}");
}

#[tokio::test]
async fn a_connection_that_is_cut_amid_others_leaves_only_its_own_gate() {
    let web = Web::new().await;
    let key = web.begin().await;
    let mut other = asked(&key, "note.write");
    other["params"] = json!({"n": 2});
    let first = web.written(
        "POST",
        "/v1/action.request",
        "",
        &asked(&key, "note.write").to_string(),
    );
    let second = web.written("POST", "/v1/action.request", "", &other.to_string());
    let first = web.connect(&first).await;
    let mut second = web.connect(&second).await;
    web.house.bench.until(|it| it.held.len() == 2).await;
    drop(first);
    let left = async {
        while web.door.pending_calls() > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, left).await.expect("it was never noticed");
    let held = web.house.bench.snapshot().held.clone();
    for held in &held {
        web.house.bench.pass(held).await;
    }
    let mut told = String::new();
    let read = timeout(WAIT, second.read_to_string(&mut told));
    read.await.expect("nothing came").unwrap();
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
}

/// As many connections as there can be, each with a request that is held.
async fn busy(web: &Web) -> Vec<BufReader<TcpStream>> {
    let key = web.begin().await;
    let mut open = Vec::new();
    for number in 0..8 {
        let mut write = asked(&key, "note.write");
        write["params"] = json!({"n": number});
        let request = web.written("POST", "/v1/action.request", "", &write.to_string());
        open.push(web.connect(&request).await);
    }
    web.house.bench.until(|it| it.held.len() == 8).await;
    open
}

#[tokio::test]
async fn an_idle_connection_makes_room_and_those_that_wait_for_an_answer_stay() {
    let web = Web::new().await;
    let mut open = busy(&web).await;
    let last = open.pop().unwrap();
    drop(last);
    let left = async {
        while web.door.pending_calls() > 7 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, left).await.expect("it was never noticed");
    let mut idle = TcpStream::connect(web.door.address()).await.unwrap();
    let start = json!({"agent": "bot"}).to_string();
    let start = web.written("POST", "/v1/session.start", "", &start);
    // It comes after the idle one, and takes its place.
    let (status, told) = web.send(&start).await;
    assert_eq!(status, 200, "{told}");
    let mut rest = Vec::new();
    let read = timeout(WAIT, idle.read_to_end(&mut rest));
    read.await.expect("it was never closed").unwrap();
    assert_eq!(web.door.pending_calls(), 7);
    let held = web.house.bench.snapshot().held.clone();
    for held in &held {
        web.house.bench.pass(held).await;
    }
    for mut stream in open {
        let mut told = String::new();
        let read = timeout(WAIT, stream.read_to_string(&mut told));
        read.await.expect("nothing came").unwrap();
        assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    }
}

#[tokio::test]
async fn a_connection_too_many_is_told_so_and_a_hook_on_it_is_stopped() {
    let web = Web::new().await;
    let open = busy(&web).await;
    let start = json!({"agent": "bot"}).to_string();
    let start = web.written("POST", "/v1/session.start", "", &start);
    let (status, told) = web.send(&start).await;
    assert_eq!(status, 503, "{told}");
    assert!(
        told.contains("too many connections; try again later"),
        "{told}"
    );
    let stranger = start.replace(&web.token, "wrong");
    assert_eq!(web.send(&stranger).await.0, 401);
    let hook = web.written("POST", "/v1/hook/claude-code", "", &hook().to_string());
    let (status, told) = web.send(&hook).await;
    assert_eq!(status, 200);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["continue"], false);
    assert_eq!(told["decision"], "block");
    assert!(
        told["reason"]
            .as_str()
            .unwrap()
            .contains("too many connections")
    );
    drop(open);
    let room = async {
        while web.send(&start).await.0 != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, room)
        .await
        .expect("there was never room again");
}

#[tokio::test]
async fn who_does_not_say_in_time_what_is_wanted_is_closed() {
    let web = Web::new().await;
    let whole = web.written("POST", "/v1/session.start", "", "{}");
    let half = whole.split_once("Authorization").unwrap().0;
    let mut slow = web.connect(half).await;
    let mut silent = TcpStream::connect(web.door.address()).await.unwrap();
    // From here on time passes when nothing else is to be done.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let mut text = String::new();
    let read = timeout(WAIT, slow.read_to_string(&mut text));
    read.await.expect("it was never closed").unwrap();
    assert!(
        text.is_empty() || text.starts_with("HTTP/1.1 408"),
        "{text}"
    );
    let read = timeout(WAIT, silent.read_to_string(&mut text));
    read.await.expect("it was never closed").unwrap();
    let took = begun.elapsed().as_secs();
    assert!((9..=11).contains(&took), "{took} s");
}

#[tokio::test]
async fn who_asks_for_somebody_elses_session_is_on_record_there() {
    let web = Web::new().await;
    web.begin().await;
    let stranger = json!({"session": "s-1", "action": "note.read"});
    assert_eq!(web.call("/v1/action.request", &stranger).await.0, 403);
    let told = tried(&web.house, "s-1").await;
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("a caller over HTTP (127.0.0.1:"),
        "{told:?}"
    );
    web.house
        .bench
        .clock
        .advance(std::time::Duration::from_mins(1));
    let listen = web.written("GET", "/v1/events?session=s-1", "", "");
    assert_eq!(web.send(&listen).await.0, 403);
    let told = tried(&web.house, "s-1").await;
    assert_eq!(told.len(), 2);
}

#[tokio::test]
async fn where_it_is_stands_in_a_file_for_as_long_as_it_is_open() {
    let web = Web::new().await;
    let folder = web.house.folder().to_owned();
    let address = web.door.address();
    assert_ne!(address.port(), 0);
    assert_eq!(
        cra_core::gateway::transport::http::read_address(&folder),
        Some(address)
    );
    let Web { house, door, .. } = web;
    drop(door);
    assert_eq!(
        cra_core::gateway::transport::http::read_address(&folder),
        None
    );
    let again = open(&house, "127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(again.address()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    // No connection outlives the door.
    drop(again);
    let mut rest = Vec::new();
    let read = timeout(WAIT, stream.read_to_end(&mut rest));
    let _ = read.await.expect("it was never closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_by_http_asks_its_own_console_when_another_process_listens_at_the_socket() {
    let web = Web::new().await;
    let _impostor = Impostor::at(&web.house.path(), Trick::Allow);
    let request = web.written("POST", "/v1/hook/claude-code", "", &hook().to_string());
    let sent = web.send(&request);
    let denied = web.house.deny("not today");
    let ((status, told), ()) = tokio::join!(sent, denied);
    assert_eq!(status, 200);
    let told: Value = serde_json::from_str(&told).unwrap();
    let specific = &told["hookSpecificOutput"];
    assert_eq!(specific["permissionDecision"], "deny", "{told}");
    let reason = specific["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("not today"), "{reason}");
}

/// More hooks than a pool of threads would hold.
const CROWD: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_hooks_wait_at_once_and_each_gets_its_own_answer() {
    let web = Web::with_connections(ATLAS, CROWD).await;
    let mut waiting = Vec::new();
    for number in 0..CROWD {
        let mut payload = hook();
        payload["session_id"] = json!(format!("h-{number}"));
        payload["tool_input"] = json!({"command": format!("make {number}")});
        let path = "/v1/hook/claude-code?timer=600";
        let request = web.written("POST", path, "", &payload.to_string());
        waiting.push(web.connect(&request).await);
    }
    let picture = web.house.bench.until(|it| it.held.len() == CROWD).await;
    assert_eq!(web.door.pending_hooks(), CROWD);
    // Every third one is denied.
    for held in &picture.held {
        let session = held.session.as_str().strip_prefix("claude-code.h-");
        let number: usize = session.unwrap().parse().unwrap();
        let reply = if number.is_multiple_of(3) {
            let reason = format!("no {number}");
            let ruling = Ruling::Deny { reason };
            let operator = web.house.bench.runtime.operator_handle();
            operator.decide(decide(held, ruling)).await
        } else {
            web.house.bench.pass(held).await
        };
        assert!(matches!(reply, Reply::Decided(_)), "{reply:?}");
    }
    for (number, mut stream) in waiting.into_iter().enumerate() {
        let mut told = String::new();
        let read = timeout(WAIT, stream.read_to_string(&mut told));
        read.await.expect("nothing came").unwrap();
        let (_, body) = told.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let specific = &body["hookSpecificOutput"];
        if number.is_multiple_of(3) {
            assert_eq!(specific["permissionDecision"], "deny", "{number}: {body}");
            let reason = specific["permissionDecisionReason"].as_str().unwrap();
            assert!(reason.contains(&format!("no {number}")), "{reason}");
        } else {
            assert_eq!(specific["permissionDecision"], "allow", "{number}: {body}");
        }
    }
    assert_eq!(web.door.pending_hooks(), 0);
}

/// The session belongs to a caller that another secret proves.
#[tokio::test]
async fn a_hook_by_http_gets_no_session_that_another_caller_owns() {
    let web = Web::new().await;
    let mut agent = web.house.agent().await;
    let start = json!({"session": "claude-code.h-1", "agent": "claude-code"});
    agent.says("session.start", start).await;
    let request = web.written("POST", "/v1/hook/claude-code", "", &hook().to_string());
    let (status, told) = web.send(&request).await;
    assert_eq!(status, 200);
    let told: Value = serde_json::from_str(&told).unwrap();
    let specific = &told["hookSpecificOutput"];
    assert_eq!(specific["permissionDecision"], "deny", "{told}");
    assert!(web.house.bench.snapshot().held.is_empty());
    let tried = tried(&web.house, "claude-code.h-1").await;
    assert!(
        !tried.is_empty() && tried.iter().all(|from| from.contains("127.0.0.1")),
        "{tried:?}"
    );
}
