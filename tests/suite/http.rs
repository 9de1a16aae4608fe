//! Agents that come by HTTP: a real door, and what is written to it as it goes over the wire.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use cra_core::gateway::protocol::call::{AuthenticatedCall, names};
use cra_core::gateway::transport::http::{
    HttpError, HttpResources, HttpServer, TOKEN_FILE, document,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::socket::TestConsole;

mod agent_answers;
mod connections;
mod numbers;
mod results;

const WAIT: Duration = Duration::from_secs(20);

/// One tool passes, another one is held.
const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: "org.test.http"
version: "1.0.0"
name: "HTTP"
description: "Two actions"
default_decision: allow
actions:
  - { action_id: "note.read", name: "Read", risk_tier: low }
  - { action_id: "note.write", name: "Write", risk_tier: high }
  - { action_id: "shell.run", name: "Shell", risk_tier: medium }
trace_config:
  redact:
    - params: ["password"]
checkpoints:
  - checkpoint_id: "write-gate"
    name: "Writes"
    trigger: { type: action_pre, patterns: ["note.write", "shell.run"] }
    mode: blocking
    questions:
      - { question_id: "why", question: "Why?", response_type: text }
"#;

struct Web {
    console: TestConsole,
    server: HttpServer,
    token: String,
}

impl Web {
    async fn new() -> Self {
        Self::with_atlas(ATLAS).await
    }

    async fn with_atlas(atlas: &str) -> Self {
        Self::with_connections(atlas, 8).await
    }

    async fn with_connections(atlas: &str, connections: usize) -> Self {
        let console = TestConsole::with_atlas(atlas).await;
        let server = open_for(&console, "127.0.0.1:0", connections)
            .await
            .unwrap();
        let token = std::fs::read_to_string(console.folder().join(TOKEN_FILE)).unwrap();
        Self {
            console,
            server,
            token,
        }
    }

    /// Text of a request with the token.
    fn written(&self, method: &str, path: &str, more: &str, body: &str) -> String {
        let (host, token) = (self.server.address(), &self.token);
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Length: {}\r\n{more}\r\n{body}",
            body.len()
        )
    }

    async fn connect(&self, request: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.server.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    /// The status and the body that a request is answered with.
    async fn send(&self, request: &str) -> (u16, String) {
        let mut stream = self.connect(request).await;
        let mut text = String::new();
        let read = timeout(WAIT, stream.read_to_string(&mut text));
        read.await.expect("nothing came").unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    async fn call(&self, path: &str, params: &Value) -> (u16, Value) {
        let request = self.written("POST", path, "", &params.to_string());
        let (status, body) = self.send(&request).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    async fn begin(&self) -> Value {
        let start = json!({"session": "s-1", "agent": "bot"});
        let (status, started) = self.call("/v1/session.start", &start).await;
        assert_eq!(status, 200, "{started}");
        started["key"].clone()
    }
}

async fn open(console: &TestConsole, address: &str) -> Result<HttpServer, HttpError> {
    open_for(console, address, 8).await
}

async fn open_for(
    console: &TestConsole,
    address: &str,
    connections: usize,
) -> Result<HttpServer, HttpError> {
    let runtime = &console.bench.runtime;
    let behind = HttpResources {
        gateway: console.gateway.clone(),
        records: runtime.record_stream(),
        folder: console.folder().to_owned(),
        socket: console.path(),
        connections,
    };
    let address: SocketAddr = address.parse().unwrap();
    HttpServer::start(address, behind).await
}

fn action_request(key: &Value, action: &str) -> Value {
    json!({"session": "s-1", "key": key, "action": action, "params": {"password": "hunter2"}})
}

#[tokio::test]
async fn every_call_is_accepted_by_its_name_with_dots_or_slashes() {
    let web = Web::new().await;
    let key = web.begin().await;
    for path in ["/v1/action.request", "/v1/action/request"] {
        let (status, allowed) = web.call(path, &action_request(&key, "note.read")).await;
        assert_eq!(status, 200, "{allowed}");
        let done = json!({"session": "s-1", "key": key, "execution": allowed["execution"]});
        let (status, done) = web.call("/v1/action/completed", &done).await;
        assert_eq!((status, done), (200, json!({})));
    }
    for name in names() {
        let path = format!("/v1/{}", name.replace('.', "/"));
        let (status, reply) = web.call(&path, &json!({"no": "such"})).await;
        assert_eq!(
            (status, &reply["code"]),
            (400, &json!(-32602)),
            "{name}: {reply}"
        );
    }
    let (status, reply) = web.call("/v1/decide", &json!({})).await;
    assert_eq!((status, &reply["code"]), (404, &json!(-32601)));
}

#[tokio::test]
async fn a_held_action_is_answered_when_it_is_decided() {
    let web = Web::new().await;
    let key = web.begin().await;
    let request = action_request(&key, "note.write");
    let asking = web.call("/v1/action.request", &request);
    let ((status, allowed), ()) = tokio::join!(asking, web.console.pass());
    assert_eq!(status, 200, "{allowed}");
    let asking = web.call("/v1/action.request", &request);
    let ((status, reply), ()) = tokio::join!(asking, web.console.deny("not today"));
    assert_eq!(status, 403);
    assert!(reply["message"].as_str().unwrap().contains("not today"));
    assert_eq!(reply["data"]["code"], "refused");
    // A session is theirs who show its key.
    let stranger = json!({"session": "s-1", "action": "note.read"});
    let (status, _) = web.call("/v1/action.request", &stranger).await;
    assert_eq!(status, 403);
}

#[tokio::test]
async fn decision_after_the_connection_closed_is_a_permit_for_the_same_request() {
    let web = Web::new().await;
    let key = web.begin().await;
    let body = action_request(&key, "note.write").to_string();
    let request = web.written("POST", "/v1/action.request", "", &body);
    let stream = web.connect(&request).await;
    web.console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    drop(stream);
    let left = async {
        while web.server.pending_calls() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, left).await.expect("it was never noticed");
    // A decision for a disconnected caller is a permit for the same request.
    web.console.pass().await;
    let request = action_request(&key, "note.write");
    let (status, reply) = web.call("/v1/action.request", &request).await;
    assert_eq!(status, 200, "{reply}");
}

#[tokio::test]
async fn requests_without_a_token_from_a_web_page_or_for_another_host_are_refused() {
    let web = Web::new().await;
    let body = json!({"agent": "bot"}).to_string();
    let good = web.written("POST", "/v1/session.start", "", &body);
    let host = format!("Host: {}", web.server.address());
    let named = |name: &str| good.replace(&host, &format!("Host: {name}"));
    for (request, expected) in [
        (good.replace("Authorization", "X-Authorization"), 401),
        (good.replace(&web.token, &"0".repeat(64)), 401),
        (good.replace(&web.token, ""), 401),
        (good.replace("Bearer", "Basic"), 401),
        (named("evil.example"), 403),
        (named("evil.example:8377"), 403),
        (named("127.0.0.1.evil.example"), 403),
        (named("localhost.evil.example"), 403),
        (
            good.replace("Connection", "Origin: http://localhost\r\nConnection"),
            403,
        ),
        (named("localhost"), 200),
        (named("localhost:8377"), 200),
        (named("[::1]:8377"), 200),
        (good.clone(), 200),
    ] {
        let (status, reply) = web.send(&request).await;
        assert_eq!(status, expected, "{request}: {reply}");
    }
    for path in ["/v1/openapi.json", "/v1/events?session=s-1", "/", "/v1/x"] {
        let request = web
            .written("GET", path, "", "")
            .replace(&web.token, "wrong");
        assert_eq!(web.send(&request).await.0, 401, "{path}");
    }
}

#[tokio::test]
async fn denied_hook_is_answered_with_status_200_for_every_error() {
    let web = Web::new().await;
    let payload = json!({
        "session_id": "h-1", "cwd": "/src", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "tool_use_id": "toolu_1",
    });
    let good = web.written("POST", "/v1/hook/claude-code", "", &payload.to_string());
    let large = "x".repeat(17 * 1024 * 1024);
    for request in [
        good.replace(&web.token, "wrong"),
        good.replace("Connection", "Origin: http://localhost\r\nConnection"),
        good.replace("claude-code", "cursor"),
        web.written("POST", "/v1/hook/claude-code", "", "not JSON"),
        web.written("POST", "/v1/hook/claude-code", "", &large),
    ] {
        let (status, reply) = web.send(&request).await;
        assert_eq!(status, 200);
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!(reply["continue"], false, "{reply}");
        assert_eq!(reply["decision"], "block", "{reply}");
        // It is not known what was asked: an answer that names another event would be thrown away.
        assert_eq!(reply.get("hookSpecificOutput"), None, "{reply}");
    }
    let prompt = json!({"session_id": "h-1", "hook_event_name": "UserPromptSubmit", "prompt": 4});
    let prompt = web.written("POST", "/v1/hook/claude-code", "", &prompt.to_string());
    let reply: Value = serde_json::from_str(&web.send(&prompt).await.1).unwrap();
    assert_eq!(
        (&reply["decision"], reply.get("hookSpecificOutput")),
        (&json!("block"), None)
    );
    let asking = async {
        let (status, reply) = web.send(&good).await;
        assert_eq!(status, 200);
        let reply: Value = serde_json::from_str(&reply).unwrap();
        reply["hookSpecificOutput"]["permissionDecision"].clone()
    };
    let (decision, ()) = tokio::join!(asking, web.console.deny("no"));
    assert_eq!(decision, "deny");
    let asking = async { web.send(&good).await.1 };
    let (reply, ()) = tokio::join!(asking, web.console.pass());
    assert!(reply.contains(r#""permissionDecision":"allow""#), "{reply}");
    // As soon as it is known, it is named; and a hook that may wait only a moment is answered in it.
    let hasty = good.replace("/claude-code", "/claude-code?timer=1");
    let (status, reply) = web.send(&hasty).await;
    let reply: Value = serde_json::from_str(&reply).unwrap();
    let specific = &reply["hookSpecificOutput"];
    assert_eq!(
        (status, &specific["hookEventName"]),
        (200, &json!("PreToolUse"))
    );
    assert_eq!(specific["permissionDecision"], "deny", "{reply}");
}

#[tokio::test]
async fn events_of_a_session_are_streamed_to_callers_with_its_key() {
    let web = Web::new().await;
    let key = web.begin().await;
    let shown = format!("Cra-Session-Key: {}\r\n", key.as_str().unwrap());
    let stream = web.written("GET", "/v1/events?session=s-1", &shown, "");
    let mut stream = web.connect(&stream).await;
    let (status, _) = web
        .call("/v1/action.request", &action_request(&key, "note.read"))
        .await;
    assert_eq!(status, 200);
    let mut heard = String::new();
    while !heard.contains("event: action_attempted") || !heard.ends_with("\n\n") {
        let read = timeout(WAIT, stream.read_line(&mut heard)).await;
        assert!(read.expect("nothing came").unwrap() > 0, "{heard}");
    }
    assert!(
        heard.contains("id: 0\nevent: session_started\ndata: {"),
        "{heard}"
    );
    // Content that is redacted in the record is not sent either.
    assert!(!heard.contains("hunter2"), "{heard}");
    let wrong = "Cra-Session-Key: 0123456789abcdef\r\n";
    for more in ["", wrong] {
        let request = web.written("GET", "/v1/events?session=s-1", more, "");
        assert_eq!(web.send(&request).await.0, 403, "{more}");
    }
    // Who comes back goes on where it was.
    let again = format!("{shown}Last-Event-ID: 0\r\n");
    let again = web.written("GET", "/v1/events?session=s-1", &again, "");
    let mut stream = web.connect(&again).await;
    let mut heard = String::new();
    while !heard.contains("id: ") {
        heard.clear();
        timeout(WAIT, stream.read_line(&mut heard))
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(heard, "id: 1\n");
}

#[tokio::test]
async fn http_server_listens_on_loopback_only_and_its_token_file_is_private() {
    let web = Web::new().await;
    let reply = open(&web.console, "0.0.0.0:0").await.unwrap_err();
    assert!(matches!(reply, HttpError::NotLoopback(_)), "{reply}");
    let in_use = web.server.address().to_string();
    let reply = open(&web.console, &in_use).await.unwrap_err();
    assert!(matches!(reply, HttpError::Io(..)), "{reply}");
    let token = web.console.folder().join(TOKEN_FILE);
    let mode = std::fs::metadata(&token).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let reply = open(&web.console, "127.0.0.1:0").await.unwrap_err();
    assert!(
        reply.to_string().contains("must have mode 0600 (is 0644)"),
        "{reply}"
    );
}

#[tokio::test]
async fn message_that_is_too_long_or_not_json_is_refused() {
    let web = Web::new().await;
    let large = "x".repeat(17 * 1024 * 1024);
    let request = web.written("POST", "/v1/input", "", &large);
    assert_eq!(web.send(&request).await.0, 413);
    let request = web.written("POST", "/v1/input", "", "{");
    assert_eq!(web.send(&request).await.0, 400);
    let request = web.written("POST", "/v1/input", "", "[]");
    assert_eq!(web.send(&request).await.0, 400);
}

/// Parameters of each call that are all there.
fn examples() -> Vec<(&'static str, Value)> {
    let session = "s-1";
    vec![
        (
            "session.start",
            json!({"agent": "bot", "version": "1", "intent": "work", "api_key": "k"}),
        ),
        (
            "session.end",
            json!({"session": session, "status": "completed", "summary": "done"}),
        ),
        (
            "input",
            json!({"session": session, "text": "hello", "source": "user"}),
        ),
        (
            "action.request",
            json!({"session": session, "action": "a", "params": {"x": 1}, "reference": "r",
            "resolution": "r", "deadline": "2026-01-01T00:00:00.000000Z"}),
        ),
        (
            "action.completed",
            json!({"session": session, "reference": "r", "result": "ok"}),
        ),
        (
            "context.request",
            json!({"session": session, "query": "q", "hints": ["h"], "checkpoint": "c"}),
        ),
        (
            "context.feedback",
            json!({"session": session, "context_id": "c", "helpful": true, "reason": "r"}),
        ),
        (
            "turn",
            json!({"session": session, "thread": "t", "turn": {"message_id": "m", "message": "hi"}}),
        ),
        (
            "thread.hand_over",
            json!({"session": session, "thread": "t", "to": session}),
        ),
        (
            "checkpoint.answer",
            json!({"session": session, "gate": "c-1", "answers": {"c": {"q": true}}}),
        ),
        (
            "error",
            json!({"session": session, "error_type": "t", "error_code": "E", "message": "m",
            "recoverable": true, "stack_trace": "s"}),
        ),
        (
            "error.recovered",
            json!({"session": session, "error": "00000000-0000-7000-8000-000000000000",
            "method": "again", "success": true}),
        ),
        (
            "output",
            json!({"session": session, "text": "t", "contains_action": false}),
        ),
        (
            "resolve",
            json!({"session": session, "input": "i", "actions": [{"action": "a", "params": {}}]}),
        ),
        (
            "wrapper.constructed",
            json!({"session": session, "wrapper_version": "1", "components": ["c"], "plugins": [],
            "transport": "rest", "cache_backend": "none", "construction_hash": "00", "capabilities":
            {"intercept_input": true, "intercept_output": true, "intercept_actions": true}}),
        ),
        (
            "wrapper.verified",
            json!({"session": session, "verification_passed": false, "tests_run": ["t"],
            "failures": ["f"]}),
        ),
    ]
}

#[test]
fn openapi_document_describes_every_call_as_it_is_parsed() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let examples = examples();
    assert_eq!(
        names().collect::<Vec<_>>(),
        examples.iter().map(|example| example.0).collect::<Vec<_>>()
    );
    assert_eq!(
        document["paths"].as_object().unwrap().len(),
        examples.len() + 3
    );
    for (name, example) in examples {
        let path = format!("/v1/{}", name.replace('.', "/"));
        let post = &document["paths"][&path]["post"];
        assert_ne!(post["summary"], "", "{name}");
        let schema = &post["requestBody"]["content"]["application/json"]["schema"];
        jsonschema::draft202012::meta::validate(schema).unwrap();
        let schema = jsonschema::draft202012::new(schema).unwrap();
        // The schema and the reader agree: on the whole, without any part of it, and with more.
        let agree = |params: &Value| {
            let read = AuthenticatedCall::read_params(name, params.clone());
            assert_eq!(
                schema.is_valid(params),
                read.is_ok(),
                "{name} {params}: {read:?}"
            );
            read.is_ok()
        };
        assert!(agree(&example), "{name}");
        for field in example.as_object().unwrap().keys() {
            let mut less = example.clone();
            less.as_object_mut().unwrap().remove(field);
            // That a run is named in one of two ways is said in words.
            if field != "reference" || name != "action.completed" {
                agree(&less);
            }
            let mut other = example.clone();
            other[field] = json!([[1]]);
            assert!(!agree(&other), "{name} {field}");
        }
        let mut more = example.clone();
        more["no_such_field"] = json!(1);
        assert!(!agree(&more), "{name}");
    }
}

#[tokio::test]
async fn openapi_document_is_served() {
    let web = Web::new().await;
    let (status, reply) = web
        .send(&web.written("GET", "/v1/openapi.json", "", ""))
        .await;
    assert_eq!(status, 200);
    assert_eq!(serde_json::from_str::<Value>(&reply).unwrap(), document());
}

#[test]
fn every_enum_value_of_the_openapi_document_is_accepted() {
    let document = document();
    let mut offered = 0;
    for name in names() {
        let path = format!("/v1/{}", name.replace('.', "/"));
        let body = &document["paths"][&path]["post"]["requestBody"]["content"];
        let schema = &body["application/json"]["schema"];
        let fields = schema["properties"].as_object().unwrap();
        let mut least = serde_json::Map::new();
        for field in schema["required"].as_array().unwrap() {
            let field = field.as_str().unwrap();
            let sample = match fields[field]["type"].as_str() {
                Some("boolean") => json!(true),
                Some("object") => json!({}),
                _ => json!("x"),
            };
            least.insert(field.to_owned(), sample);
        }
        for (field, schema) in fields {
            for word in schema["enum"].as_array().into_iter().flatten() {
                let mut params = least.clone();
                params.insert(field.clone(), word.clone());
                let read = AuthenticatedCall::read_params(name, params.into());
                assert!(read.is_ok(), "{name} {field} {word}: {read:?}");
                offered += 1;
            }
        }
    }
    assert_eq!(offered, 19);
}
