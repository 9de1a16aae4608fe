//! HTTP connections that are cut, too many, too slow, or that name another agent's session.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::socket::refused_attempts;
use super::{ATLAS, WAIT, Web, action_request, open};
use crate::impostor::{Impostor, Trick};
use crate::support::decide;
use cra_core::engine::command::{OperatorReply, Ruling};

/// A hook before a tool that is held.
fn hook() -> Value {
    json!({
        "session_id": "h-1", "cwd": "/src", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "tool_use_id": "toolu_1",
    })
}

#[tokio::test]
async fn request_of_a_hook_whose_connection_was_cut_is_withdrawn() {
    let web = Web::new().await;
    let request = web.written("POST", "/v1/hook/claude-code", "", &hook().to_string());
    let stream = web.connect(&request).await;
    web.console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    // The hook needs no connection to the socket.
    let socket = web.console.server.as_ref().unwrap().connections();
    assert_eq!(*socket.borrow(), 0);
    assert_eq!(web.server.pending_hooks(), 1);
    drop(stream);
    let left = async {
        while web.server.pending_hooks() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, left).await.expect("it was never noticed");
    // The agent was denied with its hook, so no operator has to decide. The same request is held again.
    web.console
        .bench
        .wait_until(|snapshot| snapshot.held.is_empty())
        .await;
    let (answer, ()) = tokio::join!(web.send(&request), web.console.pass());
    let (status, reply) = answer;
    assert_eq!(status, 200);
    assert!(reply.contains(r#""permissionDecision":"allow""#), "{reply}");
}

#[tokio::test]
async fn cut_connection_abandons_only_its_own_request() {
    let web = Web::new().await;
    let key = web.begin().await;
    let mut other = action_request(&key, "note.write");
    other["params"] = json!({"n": 2});
    let first = web.written(
        "POST",
        "/v1/action.request",
        "",
        &action_request(&key, "note.write").to_string(),
    );
    let second = web.written("POST", "/v1/action.request", "", &other.to_string());
    let first = web.connect(&first).await;
    let mut second = web.connect(&second).await;
    web.console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 2)
        .await;
    drop(first);
    let left = async {
        while web.server.pending_calls() > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, left).await.expect("it was never noticed");
    let held = web.console.bench.snapshot().held.clone();
    for held in &held {
        web.console.bench.pass(held).await;
    }
    let mut reply = String::new();
    let read = timeout(WAIT, second.read_to_string(&mut reply));
    read.await.expect("nothing came").unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

/// As many connections as there can be, each with a request that is held.
async fn busy(web: &Web) -> Vec<BufReader<TcpStream>> {
    let key = web.begin().await;
    let mut open = Vec::new();
    for number in 0..8 {
        let mut write = action_request(&key, "note.write");
        write["params"] = json!({"n": number});
        let request = web.written("POST", "/v1/action.request", "", &write.to_string());
        open.push(web.connect(&request).await);
    }
    web.console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 8)
        .await;
    open
}

#[tokio::test]
async fn idle_connection_is_closed_for_a_new_one_and_waiting_connections_stay() {
    let web = Web::new().await;
    let mut open = busy(&web).await;
    let last = open.pop().unwrap();
    drop(last);
    let left = async {
        while web.server.pending_calls() > 7 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, left).await.expect("it was never noticed");
    let mut idle = TcpStream::connect(web.server.address()).await.unwrap();
    let start = json!({"agent": "bot"}).to_string();
    let start = web.written("POST", "/v1/session.start", "", &start);
    // It comes after the idle one, and takes its place.
    let (status, reply) = web.send(&start).await;
    assert_eq!(status, 200, "{reply}");
    let mut rest = Vec::new();
    let read = timeout(WAIT, idle.read_to_end(&mut rest));
    read.await.expect("it was never closed").unwrap();
    assert_eq!(web.server.pending_calls(), 7);
    let held = web.console.bench.snapshot().held.clone();
    for held in &held {
        web.console.bench.pass(held).await;
    }
    for mut stream in open {
        let mut reply = String::new();
        let read = timeout(WAIT, stream.read_to_string(&mut reply));
        read.await.expect("nothing came").unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    }
}

#[tokio::test]
async fn connection_over_the_limit_is_refused_and_its_hook_is_stopped() {
    let web = Web::new().await;
    let open = busy(&web).await;
    let start = json!({"agent": "bot"}).to_string();
    let start = web.written("POST", "/v1/session.start", "", &start);
    let (status, reply) = web.send(&start).await;
    assert_eq!(status, 503, "{reply}");
    assert!(
        reply.contains("too many connections; try again later"),
        "{reply}"
    );
    let stranger = start.replace(&web.token, "wrong");
    assert_eq!(web.send(&stranger).await.0, 401);
    let hook = web.written("POST", "/v1/hook/claude-code", "", &hook().to_string());
    let (status, reply) = web.send(&hook).await;
    assert_eq!(status, 200);
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(reply["continue"], false);
    assert_eq!(reply["decision"], "block");
    assert!(
        reply["reason"]
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
async fn connection_without_a_request_in_time_is_closed() {
    let web = Web::new().await;
    let whole = web.written("POST", "/v1/session.start", "", "{}");
    let half = whole.split_once("Authorization").unwrap().0;
    let mut slow = web.connect(half).await;
    let mut silent = TcpStream::connect(web.server.address()).await.unwrap();
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
async fn request_for_a_session_without_its_key_is_recorded_in_that_session() {
    let web = Web::new().await;
    web.begin().await;
    let stranger = json!({"session": "s-1", "action": "note.read"});
    assert_eq!(web.call("/v1/action.request", &stranger).await.0, 403);
    let reply = refused_attempts(&web.console, "s-1").await;
    assert_eq!(reply.len(), 1);
    assert!(
        reply[0].starts_with("a caller over HTTP (127.0.0.1:"),
        "{reply:?}"
    );
    web.console
        .bench
        .clock
        .advance(std::time::Duration::from_mins(1));
    let listen = web.written("GET", "/v1/events?session=s-1", "", "");
    assert_eq!(web.send(&listen).await.0, 403);
    let reply = refused_attempts(&web.console, "s-1").await;
    assert_eq!(reply.len(), 2);
}

#[tokio::test]
async fn address_file_exists_while_the_http_server_is_open() {
    let web = Web::new().await;
    let folder = web.console.folder().to_owned();
    let address = web.server.address();
    assert_ne!(address.port(), 0);
    assert_eq!(
        cra_core::gateway::transport::http::read_address(&folder),
        Some(address)
    );
    let Web {
        console, server, ..
    } = web;
    drop(server);
    assert_eq!(
        cra_core::gateway::transport::http::read_address(&folder),
        None
    );
    let again = open(&console, "127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(again.address()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    // No connection outlives the server.
    drop(again);
    let mut rest = Vec::new();
    let read = timeout(WAIT, stream.read_to_end(&mut rest));
    let _ = read.await.expect("it was never closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_hook_is_answered_by_its_console_when_another_process_listens_at_the_socket() {
    let web = Web::new().await;
    let _impostor = Impostor::at(&web.console.path(), Trick::Allow);
    let request = web.written("POST", "/v1/hook/claude-code", "", &hook().to_string());
    let sent = web.send(&request);
    let denied = web.console.deny("not today");
    let ((status, reply), ()) = tokio::join!(sent, denied);
    assert_eq!(status, 200);
    let reply: Value = serde_json::from_str(&reply).unwrap();
    let specific = &reply["hookSpecificOutput"];
    assert_eq!(specific["permissionDecision"], "deny", "{reply}");
    let reason = specific["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("not today"), "{reason}");
}

/// More hooks than a pool of threads would hold.
const HOOKS: usize = 300;

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_hooks_wait_at_once_and_each_gets_its_own_answer() {
    let web = Web::with_connections(ATLAS, HOOKS).await;
    let mut waiting = Vec::new();
    for number in 0..HOOKS {
        let mut payload = hook();
        payload["session_id"] = json!(format!("h-{number}"));
        payload["tool_input"] = json!({"command": format!("make {number}")});
        let path = "/v1/hook/claude-code?timer=600";
        let request = web.written("POST", path, "", &payload.to_string());
        waiting.push(web.connect(&request).await);
    }
    let snapshot = web
        .console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == HOOKS)
        .await;
    assert_eq!(web.server.pending_hooks(), HOOKS);
    // Every third one is denied.
    for held in &snapshot.held {
        let session = held.session.as_str().strip_prefix("claude-code.h-");
        let number: usize = session.unwrap().parse().unwrap();
        let reply = if number.is_multiple_of(3) {
            let reason = format!("no {number}");
            let ruling = Ruling::Deny { reason };
            let operator = web.console.bench.runtime.operator_handle();
            operator.decide(decide(held, ruling)).await
        } else {
            web.console.bench.pass(held).await
        };
        assert!(matches!(reply, OperatorReply::Decided(_)), "{reply:?}");
    }
    for (number, mut stream) in waiting.into_iter().enumerate() {
        let mut reply = String::new();
        let read = timeout(WAIT, stream.read_to_string(&mut reply));
        read.await.expect("nothing came").unwrap();
        let (_, body) = reply.split_once("\r\n\r\n").unwrap();
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
    assert_eq!(web.server.pending_hooks(), 0);
}

/// The session belongs to a caller that another secret proves.
#[tokio::test]
async fn http_hook_cannot_use_a_session_of_another_caller() {
    let web = Web::new().await;
    let mut agent = web.console.agent().await;
    let start = json!({"session": "claude-code.h-1", "agent": "claude-code"});
    agent.call_ok("session.start", start).await;
    let request = web.written("POST", "/v1/hook/claude-code", "", &hook().to_string());
    let (status, reply) = web.send(&request).await;
    assert_eq!(status, 200);
    let reply: Value = serde_json::from_str(&reply).unwrap();
    let specific = &reply["hookSpecificOutput"];
    assert_eq!(specific["permissionDecision"], "deny", "{reply}");
    assert!(web.console.bench.snapshot().held.is_empty());
    let attempts = refused_attempts(&web.console, "claude-code.h-1").await;
    assert!(
        !attempts.is_empty() && attempts.iter().all(|from| from.contains("127.0.0.1")),
        "{attempts:?}"
    );
}
