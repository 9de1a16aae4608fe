//! Results for agents: only their own part of the record, in the format of the `OpenAPI` document.

use cra_core::gateway::transport::http::document;
use serde_json::{Value, json};
use tokio::io::AsyncBufReadExt;
use tokio::time::timeout;

use super::{WAIT, Web, action_request};
use crate::socket::bypass::{ASKED, check_found};

/// Streamed events of a session from its beginning, until an event of that type.
async fn heard(web: &Web, key: &Value, until: &str) -> String {
    let shown = format!("Cra-Session-Key: {}\r\n", key.as_str().unwrap());
    let request = web.written("GET", "/v1/events?session=s-1", &shown, "");
    let mut stream = web.connect(&request).await;
    let mut heard = String::new();
    let last = format!("event: {until}\n");
    let listening = async {
        while !heard.contains(&last) || !heard.ends_with("\n\n") {
            let read = stream.read_line(&mut heard).await;
            assert!(read.unwrap() > 0, "{heard}");
        }
    };
    timeout(WAIT, listening).await.expect("it never came");
    heard
}

#[tokio::test]
async fn agent_receives_only_the_permitted_fields_of_its_record() {
    let web = Web::new().await;
    let key = web.begin().await;
    let request = action_request(&key, "note.write");
    let asking = web.call("/v1/action.request", &request);
    let passing = async {
        let snapshot = web
            .console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        let held = &snapshot.held[0];
        let mut decide = super::super::support::decide(
            held,
            cra_core::engine::command::Ruling::Pass {
                answers: vec![[("why".to_owned(), json!("for the auditors alone"))].into()],
            },
        );
        decide.justification = Some("between operators".to_owned());
        web.console
            .bench
            .runtime
            .operator_handle()
            .decide(decide)
            .await;
    };
    let ((status, allowed), ()) = tokio::join!(asking, passing);
    assert_eq!((status, &allowed["approved_by"]), (200, &json!("op-1")));
    let asking = web.call("/v1/action.request", &request);
    let ((status, _), ()) = tokio::join!(asking, web.console.deny("not today"));
    assert_eq!(status, 403);
    // An attempt of another process: that is for operators only, too.
    let stranger = json!({"session": "s-1", "action": "note.read"});
    assert_eq!(web.call("/v1/action.request", &stranger).await.0, 403);
    let heard = heard(&web, &key, "error_occurred").await;
    for secret in [
        "for the auditors alone",
        "between operators",
        "answered_by",
        "trigger_condition",
        "named this session",
        "hunter2",
    ] {
        assert!(!heard.contains(secret), "{secret}: {heard}");
    }
    for known in [
        "checkpoint_response",
        "write-gate",
        "not today",
        "session_takeover",
    ] {
        assert!(heard.contains(known), "{known}: {heard}");
    }
    // The record itself has all of it.
    let session = "s-1".parse().unwrap();
    let mut records = web.console.bench.runtime.record_stream();
    let events = records.next_events(&session, 0, 1000).await.unwrap();
    let all = serde_json::to_string(&events).unwrap();
    assert!(all.contains("for the auditors alone") && all.contains("between operators"));
}

/// A schema of the document that takes no field that it does not name.
fn strict(schema: &Value) -> Value {
    let mut schema = schema.clone();
    match &mut schema {
        Value::Object(fields) => {
            for field in fields.values_mut() {
                *field = strict(field);
            }
            if fields.contains_key("properties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(list) => {
            for element in list {
                *element = strict(element);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

/// Asserts that a result matches the `OpenAPI` document.
fn fits(name: &str, result: &Value) {
    let document = document();
    let path = format!("/v1/{}", name.replace('.', "/"));
    let answers = &document["paths"][&path]["post"]["responses"]["200"];
    let schema = strict(&answers["content"]["application/json"]["schema"]);
    let components = strict(&document["components"]["schemas"]);
    let whole = json!({"allOf": [schema], "components": {"schemas": components}});
    let schema = jsonschema::draft202012::new(&whole).unwrap();
    let faults: Vec<_> = schema
        .iter_errors(result)
        .map(|value| value.to_string())
        .collect();
    assert_eq!(faults, [""; 0], "{name}: {result:#}");
    // And it says something: not everything fits.
    assert!(!schema.is_valid(&json!({"no_such_field": 1})), "{name}");
}

#[tokio::test]
async fn every_result_matches_the_openapi_document() {
    let web = Web::with_atlas(RICH).await;
    let start = json!({"session": "s-1", "agent": "bot"});
    let (status, started) = web.call("/v1/session.start", &start).await;
    assert_eq!(status, 200, "{started}");
    fits("session.start", &started);
    let key = started["key"].clone();
    let call = async |name: &str, mut params: Value| {
        params["session"] = json!("s-1");
        params["key"] = key.clone();
        let (status, reply) = web.call(&format!("/v1/{name}"), &params).await;
        assert_eq!(status, 200, "{name}: {reply}");
        fits(name, &reply);
        reply
    };
    call("input", json!({"text": "please refund"})).await;
    let allowed = call("action.request", json!({"action": "note.read"})).await;
    let done = json!({"execution": allowed["execution"], "result": "ok"});
    call("action.completed", done).await;
    let wanted = json!({"hints": ["rules"]});
    let context = call("context.request", wanted).await;
    assert!(
        context["given"]["contexts"][0]["content"].is_string(),
        "{context}"
    );
    call(
        "context.feedback",
        json!({"context_id": "rules", "helpful": true}),
    )
    .await;
    let turn = json!({"turn": {"message_id": "m-1", "message": "we decided to keep T-2"}});
    call("turn", turn).await;
    let error = json!({"error_type": "network", "message": "reset", "recoverable": true});
    let error = call("error", error).await;
    let recovered = json!({"error": error["error"], "method": "again", "success": true});
    call("error.recovered", recovered).await;
    call("output", json!({"text": "done"})).await;
    let resolution = call("resolve", json!({})).await;
    for part in ["allowed", "denied", "constraints"] {
        let some = resolution[part].as_array().unwrap();
        assert!(!some.is_empty(), "{part}: {resolution:#}");
    }
    // What is the agent's to answer.
    let request = json!({"session": "s-1", "key": key, "action": "note.ask"});
    let (status, reply) = web.call("/v1/action.request", &request).await;
    assert_eq!(status, 409, "{reply}");
    let answers = json!({"gate": reply["data"]["asked"]["gate"], "answers": {"why": {"q": "the build needs it"}}});
    let allowed = call("checkpoint.answer", answers).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
    // An operator lets it pass.
    let request = json!({"action": "note.write"});
    let (allowed, ()) = tokio::join!(call("action.request", request), web.console.pass());
    assert_eq!(allowed["approved_by"], "op-1");
    call("session.end", json!({"summary": "done"})).await;
}

/// Something of everything that a result can have in it.
const RICH: &str = r#"
atlas_version: "1.0"
atlas_id: "org.test.rich"
version: "1.0.0"
name: "Rich"
default_decision: allow
actions:
  - { action_id: "note.read", name: "Read", risk_tier: low }
  - { action_id: "note.write", name: "Write", risk_tier: medium }
  - { action_id: "note.ask", name: "Ask", risk_tier: low }
  - { action_id: "note.wipe", name: "Wipe", risk_tier: high }
policies:
  - { policy_id: "never", type: deny, actions: ["note.wipe"], reason: "nobody wipes" }
context_blocks:
  - { context_id: "rules", content: "Be kind." }
checkpoints:
  - checkpoint_id: "hello"
    name: "Hello"
    trigger: { type: session_start }
    mode: advisory
    guidance: { content: "Be brief.", format: text, priority: 3 }
  - checkpoint_id: "write-gate"
    name: "Writes"
    trigger: { type: action_pre, patterns: ["note.write"] }
    mode: blocking
    questions: [{ question_id: "why", question: "Why?", response_type: text }]
  - checkpoint_id: "why"
    name: "Why"
    trigger: { type: action_pre, patterns: ["note.ask"] }
    mode: blocking
    respondent: agent
    questions: [{ question_id: q, question: "Why?", response_type: text }]
"#;

// covers A20
#[tokio::test]
async fn query_over_http_finds_contexts_and_reports_unknown_hints() {
    let web = Web::with_atlas(ASKED).await;
    let key = web.begin().await;
    let request = json!({"session": "s-1", "key": key, "query": "when does the courier come?",
        "hints": ["no-such", "secret"]});
    let (status, reply) = web.call("/v1/context.request", &request).await;
    assert_eq!(status, 200, "{reply}");
    check_found(&reply);
}
