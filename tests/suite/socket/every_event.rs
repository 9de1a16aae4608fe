//! One session with every type of event that a session can have: agents speak at the socket, operators decide, the
//! record is exported by the program and verified by an independent reader.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

use cra_core::atlas::diagnostic::ReportColour;
use cra_core::atlas::load_file;
use cra_core::base::canonical_json::canonical;
use cra_core::base::clock::{Clock, ManualClock, SystemClock};
use cra_core::engine::command::{
    ClaimChange, ClaimChangeKind, DecisionRequest, OperatorAction, OperatorReply, Ruling,
};
use cra_core::engine::held::Held;
use cra_core::gateway::protocol::call::CallError;
use cra_core::runtime::extension::Registry;
use cra_core::trace::event::Payload;
use serde_json::{Value, json};

use super::{Agent, TestConsole};
use crate::cli::{command, command_output};
use crate::support::{decide, good_answers, root};

/// Event type that the operator's list of extensions registers.
const REGISTERED: &str = "risk_score";

/// Types of events that a session can have, in the order of the specification; then those of this program.
const OF_A_SESSION: [&str; 30] = [
    "session_started",
    "session_ended",
    "wrapper_constructed",
    "wrapper_verified",
    "context_requested",
    "context_injected",
    "context_feedback",
    "action_attempted",
    "action_completed",
    "action_blocked",
    "policy_checked",
    "policy_override",
    "checkpoint_triggered",
    "checkpoint_completed",
    "risk_detected",
    "risk_verified",
    "error_occurred",
    "error_recovered",
    "input_received",
    "output_produced",
    "plugin_loaded",
    "plugin_event",
    "checkpoint_skipped",
    "checkpoint_response",
    "checkpoint_approved",
    "checkpoint_passed",
    "checkpoint_blocked",
    "request_claimed",
    "breakpoint_decided",
    REGISTERED,
];

/// Types of events of the log over all sessions.
const OF_THE_LOG: [&str; 18] = [
    "atlas_loaded",
    "retention_applied",
    "store_recovered",
    "memento_edited",
    "drift_flagged",
    "thread_handed_over",
    "thread_dropped",
    "trace_imported",
    "key_rotated",
    "log_sealed",
    "operator_changed",
    "log_started",
    "clock_moved",
    "answer_rejected",
    "alarm_raised",
    "hold_placed",
    "hold_released",
    "operator_acknowledged",
];

/// An outside service that answers one POST, and gives what it was sent.
fn validation_service(answer: &Value) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/check", listener.local_addr().unwrap());
    let body = answer.to_string();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut sent, mut buffer) = (Vec::new(), [0; 4096]);
        while !is_whole(&sent) {
            let read = stream.read(&mut buffer).unwrap();
            assert_ne!(read, 0, "the request was cut off");
            sent.extend_from_slice(&buffer[..read]);
        }
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        String::from_utf8(sent).unwrap()
    });
    (address, served)
}

/// Tells whether a request is complete: its body has as many bytes as its header says.
fn is_whole(sent: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sent).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.split_once("content-length: ").unwrap().1;
    let length: usize = length.lines().next().unwrap().parse().unwrap();
    body.len() >= length
}

/// The operator's list: a program that scores input, a service that is asked before a deployment, an event type.
fn extensions(folder: &Path, service: &str) -> Registry {
    let script = root().join("tests/data/every-event/sentiment.py");
    let script = format!("exec python3 '{}'", script.display());
    let list = json!({
        "extensions": [
            {"name": "sentiment_negative", "version": "1.2", "answers": ["trigger"],
             "command": ["/bin/sh", "-c", script], "timeout_ms": 20_000},
            {"name": "board", "version": "7", "answers": ["handler"], "http": service, "timeout_ms": 20_000},
        ],
        "events": [{"name": REGISTERED, "description": "How risky the board finds it", "sync": true,
            "schema": {"score": "number", "judge": "string"}}],
    });
    let file = folder.join("extensions.yaml");
    fs::write(&file, list.to_string()).unwrap();
    Registry::load(&file).unwrap_or_else(|error| panic!("{}", error.report(ReportColour::None)))
}

async fn start_console(service: &str) -> TestConsole {
    let folder = tempfile::tempdir().unwrap();
    let atlas = root().join("tests/data/every-event/atlas.yaml");
    let atlas = load_file(&atlas).unwrap().atlas;
    let registry = extensions(folder.path(), service);
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    TestConsole::with_extensions(folder, vec![atlas], registry, clock).await
}

/// An action, asked for in a connection of its own.
fn ask(mut agent: Agent, action: &str, key: &Value) -> tokio::task::JoinHandle<Answer> {
    let request = json!({"session": "s-1", "key": key, "action": action, "params": {"id": 7}});
    tokio::spawn(async move { agent.call("action.request", request).await })
}

type Answer = Result<Value, CallError>;

/// The one request that is held.
async fn held(console: &TestConsole) -> Arc<Held> {
    Arc::clone(
        &console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await
            .held[0],
    )
}

/// Passes what is held, as this operator.
async fn pass(console: &TestConsole, held: &Held, operator: &str) -> OperatorReply {
    let answers = good_answers(held);
    let passing = DecisionRequest {
        operator: operator.to_owned(),
        ..decide(held, Ruling::Pass { answers })
    };
    console
        .bench
        .runtime
        .operator_handle()
        .decide(passing)
        .await
}

/// Sends the reports of an agent: input, contexts, actions, errors, output, a turn.
async fn tell(agent: &mut Agent) {
    let calm = json!({"session": "s-1", "text": "thank you very much"});
    let given = agent.call_ok("input", calm).await;
    assert_eq!(given["given"]["contexts"], json!([]), "{given}");
    let angry = json!({"session": "s-1", "text": "awful awful hate refund"});
    let given = agent.call_ok("input", angry).await;
    let contexts = given["given"]["contexts"].as_array().unwrap();
    let ids = contexts
        .iter()
        .map(|given| given["context_id"].as_str().unwrap());
    let both = BTreeSet::from(["handling-negative-feedback", "refund-rules"]);
    assert_eq!(ids.collect::<BTreeSet<_>>(), both);
    for (method, params) in [
        (
            "wrapper.constructed",
            json!({"wrapper_version": "2.0.1", "components": ["tool gate"], "plugins": [],
                "transport": "direct", "cache_backend": "none", "capabilities": {"intercept_input": true,
                "intercept_output": false, "intercept_actions": true}, "construction_hash": "0123456789abcdef"}),
        ),
        (
            "wrapper.verified",
            json!({"verification_passed": true, "tests_run": ["hook_entries"], "failures": []}),
        ),
        ("context.request", json!({"hints": ["manual"]})),
        (
            "context.feedback",
            json!({"context_id": "manual", "helpful": true, "usage_outcome": "applied"}),
        ),
        (
            "action.request",
            json!({"action": "ticket.get", "reference": "r-1"}),
        ),
        (
            "action.completed",
            json!({"reference": "r-1", "result": "ticket 7"}),
        ),
        ("action.request", json!({"action": "ticket.print"})),
        (
            "output",
            json!({"text": "Done.", "output_type": "text", "contains_action": false}),
        ),
        (
            "turn",
            json!({"turn": {"message_id": "m-1", "message": "we keep T-7"}}),
        ),
    ] {
        let mut params = params;
        params["session"] = json!("s-1");
        agent.call_ok(method, params).await;
    }
    let error =
        json!({"session": "s-1", "error_type": "network", "message": "reset", "recoverable": true});
    let error = agent.call_ok("error", error).await["error"].clone();
    let recovered = json!({"session": "s-1", "error": error, "method": "retry", "success": true});
    agent.call_ok("error.recovered", recovered).await;
    let purge = json!({"session": "s-1", "action": "ticket.purge"});
    let refused = agent.call_err("action.request", purge).await;
    assert!(refused.contains("Tickets are kept."), "{refused}");
}

/// Makes the decisions of operators: an approval, a claim, two approvals of one risk, a denial.
async fn decide_all(console: &TestConsole, key: &Value) {
    let merge = ask(console.agent().await, "ticket.merge", key);
    let first = held(console).await;
    assert!(matches!(
        pass(console, &first, "op-1").await,
        OperatorReply::Decided(_)
    ));
    merge.await.unwrap().unwrap();

    let delete = ask(console.agent().await, "ticket.delete", key);
    let risky = held(console).await;
    let claiming = ClaimChange {
        gate: risky.id.clone(),
        operator: "op-1".to_owned(),
        seen: None,
        wish: ClaimChangeKind::Take,
    };
    let operator = console.bench.runtime.operator_handle();
    operator
        .operate(OperatorAction::Claim(claiming))
        .await
        .unwrap();
    assert!(matches!(
        pass(console, &risky, "op-1").await,
        OperatorReply::Approved(_)
    ));
    assert!(matches!(
        pass(console, &risky, "op-2").await,
        OperatorReply::Decided(_)
    ));
    delete.await.unwrap().unwrap();

    let again = ask(console.agent().await, "ticket.delete", key);
    console.deny("one is enough").await;
    again.await.unwrap().unwrap_err();
}

/// The events of the session, as `cra trace show` tells them.
fn events(console: &TestConsole) -> Vec<Value> {
    let mut show = command(console.folder());
    show.args(["trace", "show", "s-1", "--json", "--data-dir"]);
    let reply = command_output(show.arg(console.folder()).output().unwrap());
    reply.succeeds();
    let lines = reply.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn of_type<'e>(events: &'e [Value], event_type: &str) -> Vec<&'e Value> {
    let own = events.iter();
    own.filter(|event| event["event_type"] == event_type)
        .collect()
}

/// A session with events of all types, shown and exported.
async fn recorded() -> (TestConsole, Vec<Value>, String) {
    let answer = json!({"approved": false, "reason": "not on a Friday",
        "traceEvents": [{"eventType": REGISTERED, "payload": {"score": 0.9, "judge": "board"}}]});
    let (service, served) = validation_service(&answer);
    let console = start_console(&service).await;
    let mut agent = console.agent().await;
    let start = json!({"session": "s-1", "agent": "support-bot", "version": "2.4", "intent": "close tickets"});
    let key = agent.call_ok("session.start", start).await["key"].clone();
    tell(&mut agent).await;
    let deploy = json!({"session": "s-1", "action": "ticket.deploy", "params": {"id": 7}});
    let refused = agent.call_err("action.request", deploy).await;
    assert!(refused.contains("not on a Friday"), "{refused}");
    decide_all(&console, &key).await;
    agent
        .call_ok("session.end", json!({"session": "s-1", "summary": "done"}))
        .await;
    let events = events(&console);
    (console, events, served.join().unwrap())
}

/// Every event type is either one of a session or one of the log.
#[test]
fn the_lists_of_event_types_are_complete() {
    let listed = OF_A_SESSION.iter().chain(&OF_THE_LOG);
    let mut listed: Vec<_> = listed.copied().filter(|name| *name != REGISTERED).collect();
    listed.sort_unstable();
    let mut known = Payload::TYPES.to_vec();
    known.sort_unstable();
    assert_eq!(listed, known);
}

// covers T2, T23, T24, T33
#[tokio::test]
async fn a_session_with_every_type_of_event_is_exported_and_verified_independently() {
    let (console, events, _) = recorded().await;
    let types: BTreeSet<_> = events
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(types, BTreeSet::from(OF_A_SESSION));

    let plugins: Vec<_> = of_type(&events, "plugin_loaded")
        .into_iter()
        .map(|event| event["payload"].clone())
        .collect();
    let plugin = |name: &str, version: &str, capability: &str| json!({"plugin_name": name, "plugin_version": version, "capabilities": [capability]});
    assert_eq!(
        plugins,
        [
            plugin("sentiment_negative", "1.2", "trigger"),
            plugin("board", "7", "handler")
        ]
    );
    let score = of_type(&events, REGISTERED);
    assert_eq!(score[0]["payload"], json!({"score": 0.9, "judge": "board"}));

    let file = console.folder().join("export.jsonl");
    let mut export = command(console.folder());
    export.args(["trace", "export", "-o"]).arg(&file);
    let exported = export.arg("--data-dir").arg(console.folder()).output();
    assert!(exported.unwrap().status.success());
    let reader = |file: &Path| {
        let mut reader = Command::new("python3");
        reader.arg(root().join("tests/data/verify.py")).arg(file);
        command_output(
            reader
                .output()
                .expect("these tests need `python3` on the PATH"),
        )
    };
    let text = fs::read_to_string(&file).unwrap();
    let verified = reader(&file);
    let lines = text.lines().count();
    assert!(
        verified.out.starts_with(&format!("ok {lines}\n")),
        "{}{}",
        verified.out,
        verified.err
    );
    for event in &events {
        assert!(text.contains(event["hash"].as_str().unwrap()), "{event}");
    }
    // Each of the eleven fields is in the hash: another value is found out.
    let honest = events
        .iter()
        .find(|event| event["event_type"] == "risk_verified");
    let honest = honest.unwrap();
    for (field, other) in [
        ("trace_version", json!("1.1")),
        ("event_id", honest["trace_id"].clone()),
        ("trace_id", honest["event_id"].clone()),
        ("span_id", honest["event_id"].clone()),
        ("parent_span_id", honest["event_id"].clone()),
        ("session_id", json!("s-2")),
        ("sequence", json!(0)),
        ("timestamp", events.last().unwrap()["timestamp"].clone()),
        ("event_type", json!("risk_detected")),
        ("payload", json!({})),
        ("previous_hash", honest["hash"].clone()),
    ] {
        let mut changed = honest.clone();
        if changed[field] == other {
            // The clock of the test stands still.
            changed[field] = json!("2100-01-01T00:00:00.000000Z");
        } else {
            changed[field] = other;
        }
        let (old, new) = (canonical(honest), canonical(&changed));
        assert!(text.contains(&old), "{old}");
        fs::write(&file, text.replacen(&old, &new, 1)).unwrap();
        let found = reader(&file);
        let reply = [
            "does not have the hash it claims",
            "does not follow the event before it",
        ];
        assert!(
            found.code != 0 && reply.iter().any(|reply| found.err.contains(reply)),
            "{field}: {}{}",
            found.out,
            found.err
        );
    }
}

// covers A33, A35
#[tokio::test]
async fn external_service_and_program_are_called_and_their_answers_apply() {
    let (_house, events, sent) = recorded().await;
    // The program scored two inputs, and fired on the one below -0.5.
    let fired: Vec<_> = of_type(&events, "checkpoint_triggered")
        .into_iter()
        .filter(|event| event["payload"]["checkpoint_id"] == "mood")
        .collect();
    assert_eq!(fired.len(), 1);
    assert_eq!(fired[0]["payload"]["checkpoint_type"], "custom");
    assert_eq!(fired[0]["payload"]["priority"], 650);
    let injected = of_type(&events, "context_injected");
    let calm = json!(["handling-negative-feedback"]);
    assert!(
        injected
            .iter()
            .any(|event| event["payload"]["context_ids"] == calm)
    );

    // The service was sent the action and the session by POST.
    assert!(sent.starts_with("POST /check HTTP/1.1"), "{sent}");
    let body: Value = serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["action"]["type"], "ticket.deploy", "{body}");
    assert_eq!(body["action"]["params"], json!({"id": 7}), "{body}");
    assert_eq!(body["session"]["id"], "s-1", "{body}");
    let outside = of_type(&events, "plugin_event");
    let outside = outside
        .iter()
        .find(|event| event["payload"]["custom_type"] == "external_validation")
        .unwrap();
    let data = &outside["payload"]["data"];
    assert_eq!(
        (&data["approved"], &data["reason"]),
        (&json!(false), &json!("not on a Friday"))
    );
}

/// The event that another hangs under.
fn parent<'e>(events: &'e [Value], event: &Value) -> &'e Value {
    let span = &event["parent_span_id"];
    let parent = events.iter().find(|event| event["span_id"] == *span);
    parent.unwrap_or_else(|| panic!("no parent of {event}"))
}

// covers T28, T29
#[tokio::test]
async fn session_spans_nest_as_documented_and_an_operation_has_one_trace_id() {
    let (_house, events, _) = recorded().await;
    let under = |event_type: &str| {
        let own = of_type(&events, event_type);
        let parents = own.into_iter().map(|event| {
            let parent = parent(&events, event);
            parent["event_type"].as_str().unwrap().to_owned()
        });
        parents.collect::<BTreeSet<_>>()
    };
    let only = |name: &str| BTreeSet::from([name.to_owned()]);
    assert_eq!(events[0]["event_type"], "session_started");
    assert!(events[0].get("parent_span_id").is_none(), "{}", events[0]);
    for event_type in [
        "input_received",
        "action_attempted",
        "session_ended",
        "plugin_loaded",
    ] {
        assert_eq!(under(event_type), only("session_started"), "{event_type}");
    }
    for event_type in ["policy_checked", "action_completed"] {
        assert_eq!(under(event_type), only("action_attempted"), "{event_type}");
    }
    let triggered = of_type(&events, "checkpoint_triggered");
    let refund = triggered
        .iter()
        .find(|event| event["payload"]["checkpoint_id"] == "refund");
    let input = parent(&events, refund.unwrap());
    assert_eq!(input["event_type"], "input_received");

    // From the request over its two approvals to its end: one operation.
    let of_delete = |event: &&Value| {
        event["payload"]["action_type"] == "ticket.delete"
            || event["payload"]["checkpoint_id"] == "risk-gate"
    };
    let attempt = of_type(&events, "action_attempted");
    let attempt = attempt.into_iter().find(of_delete).unwrap();
    let operation: BTreeSet<_> = events
        .iter()
        .filter(|event| event["trace_id"] == attempt["trace_id"])
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    for event_type in [
        "checkpoint_triggered",
        "risk_detected",
        "request_claimed",
        "checkpoint_approved",
        "checkpoint_response",
        "checkpoint_passed",
        "risk_verified",
    ] {
        assert!(
            operation.contains(event_type),
            "{event_type}: {operation:?}"
        );
    }
    assert!(!operation.contains("session_started"), "{operation:?}");
}
