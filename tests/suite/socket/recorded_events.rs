//! The record of requests and replies at the socket: the order of events, the grounds of decisions, the
//! contexts that were really handed over.

use std::sync::Arc;

use cra_core::base::clock::Boxed;
use cra_core::engine::extensions::CheckpointResult;
use cra_core::gateway::protocol::call::CallError;
use cra_core::runtime::extension::{CheckpointHandler, HandlerContext, Registry};
use cra_core::store::sqlite::FILE_NAME;
use cra_core::trace::event::Event;
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::TestConsole;

const HEAD: &str = "atlas_version: '1.0'\nversion: '1'\nname: Test\ndefault_decision: allow\n";

/// Events of a session that are on record.
async fn events(console: &TestConsole, session: &str) -> Vec<Event> {
    let mut records = console.bench.runtime.record_stream();
    let session = session.parse().unwrap();
    records.next_events(&session, 0, 1000).await.unwrap()
}

fn types(events: &[Event]) -> Vec<&str> {
    let types = events.iter().map(|event| event.event_type.as_str());
    types
        .filter(|event_type| *event_type != "plugin_loaded")
        .collect()
}

fn payloads<'e>(events: &'e [Event], event_type: &str) -> Vec<&'e serde_json::Map<String, Value>> {
    let of_type = events.iter().filter(|event| event.event_type == event_type);
    of_type.map(|event| &event.payload).collect()
}

/// A handler that answers when the test allows it.
struct Waits {
    called: Arc<Notify>,
    may_answer: Arc<Notify>,
}

impl CheckpointHandler for Waits {
    fn handle(&self, _: HandlerContext) -> Boxed<'_, Result<CheckpointResult, String>> {
        Box::pin(async move {
            self.called.notify_one();
            self.may_answer.notified().await;
            Ok(CheckpointResult::proceed())
        })
    }
}

// covers T10, T15, T16, B28
#[tokio::test]
async fn attempt_is_recorded_with_its_own_time_while_a_handler_runs() {
    let atlas = format!(
        "{HEAD}atlas_id: test\nactions: [{{action_id: pay, risk_tier: critical}}]\ncheckpoints: \
         [{{checkpoint_id: guard, trigger: {{type: action_pre, patterns: [pay]}}, handler: slow}}]\n"
    );
    let (called, may_answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let mut registry = Registry::default();
    let handler = Waits {
        called: Arc::clone(&called),
        may_answer: Arc::clone(&may_answer),
    };
    registry
        .register_handler("slow", Arc::new(handler))
        .unwrap();
    let console = TestConsole::with_atlas_and_extensions(&atlas, registry).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let request = json!({"session": "s-1", "action": "pay"});
    let ((), _) = tokio::join!(
        async {
            called.notified().await;
            // What a process would leave behind that is killed now.
            let now = events(&console, "s-1").await;
            assert_eq!(
                types(&now),
                ["session_started", "action_attempted", "policy_checked"]
            );
            console
                .bench
                .clock
                .advance(std::time::Duration::from_secs(2));
            may_answer.notify_one();
        },
        agent.call_ok("action.request", request)
    );
    let all = events(&console, "s-1").await;
    assert_eq!(
        types(&all)[1..],
        [
            "action_attempted",
            "policy_checked",
            "checkpoint_triggered",
            "plugin_event",
            "risk_detected",
            "checkpoint_completed"
        ]
    );
    let at = |event_type: &str| {
        let event = all.iter().find(|event| event.event_type == event_type);
        event.unwrap().timestamp
    };
    let waited = at("plugin_event").since(at("action_attempted"));
    assert_eq!(waited.as_secs(), 2);
    let took = &payloads(&all, "plugin_event")[0]["data"]["duration_ms"];
    assert_eq!(
        &payloads(&all, "checkpoint_completed")[0]["duration_ms"],
        took
    );
}

const GIVING: &str = "atlas_id: test
actions: [{action_id: note, risk_tier: low}, {action_id: wait, risk_tier: low}]
context_blocks:
  - {context_id: rules, content: be kind, inject_mode: on_demand}
  - {context_id: after, content: file it, inject_mode: on_demand}
  - {context_id: last, content: close it, inject_mode: on_demand}
checkpoints:
  - {checkpoint_id: start, trigger: {type: session_start}, mode: blocking, inject_contexts: [rules]}
  - {checkpoint_id: filing, trigger: {type: action_post, patterns: [note]}, inject_contexts: [after]}
  - {checkpoint_id: end, trigger: {type: session_end}, inject_contexts: [last]}
";

// covers T7, T8, T11
#[tokio::test]
async fn context_injection_is_recorded_when_an_answer_delivers_it() {
    let console = TestConsole::with_atlas(&format!("{HEAD}{GIVING}")).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    console.pass().await;
    // The gate is passed, and no answer has gone out since.
    let now = events(&console, "s-1").await;
    assert_eq!(payloads(&now, "context_injected").len(), 0);
    let note = json!({"session": "s-1", "action": "note"});
    let allowed = agent.call_ok("action.request", note).await;
    assert_eq!(allowed["given"]["contexts"][0]["context_id"], "rules");
    let done = json!({"session": "s-1", "execution": allowed["execution"], "result": "ok"});
    let reply = agent.call_ok("action.completed", done).await;
    assert_eq!(reply["given"]["contexts"][0]["context_id"], "after");
    let reply = agent
        .call_ok("session.end", json!({"session": "s-1"}))
        .await;
    assert_eq!(reply["given"]["contexts"][0]["context_id"], "last");
    let all = events(&console, "s-1").await;
    let injected = payloads(&all, "context_injected");
    let ids: Vec<_> = injected
        .iter()
        .map(|value| value["context_ids"].clone())
        .collect();
    assert_eq!(ids, [json!(["rules"]), json!(["after"]), json!(["last"])]);
    assert_eq!(payloads(&all, "session_ended")[0]["contexts_injected"], 3);
    assert_eq!(
        payloads(&all, "action_attempted")[0]["context_injected"],
        json!(["rules"])
    );
}

const ASKING: &str = "atlas_id: test
actions: [{action_id: pay, risk_tier: low}, {action_id: hold, risk_tier: low}]
checkpoints:
  - checkpoint_id: mine
    trigger: {type: action_pre, patterns: [pay]}
    mode: blocking
    respondent: agent
    questions:
      - {question_id: ack, question: Understood?, response_type: acknowledgment}
      - {question_id: env, question: Where?, response_type: choice, options: [dev, prod]}
      - {question_id: plan, question: How?, response_type: json}
      - {question_id: why, question: Why?, response_type: text, validation: {min_length: 5}, on_invalid: warn_and_continue}
      - {question_id: who, question: Who?, response_type: text, validation: {min_length: 5}, on_invalid: log_and_continue}
  - {checkpoint_id: theirs, trigger: {type: action_pre, patterns: [hold]}, mode: blocking}
";

// covers B10, B11, B15, B19
#[tokio::test]
async fn refused_answers_are_recorded_verbatim_and_tolerated_ones_warn_the_agent() {
    let console = TestConsole::with_atlas(&format!("{HEAD}{ASKING}")).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let pay = json!({"session": "s-1", "action": "pay"});
    assert!(agent.call_err("action.request", pay).await.contains("c-1"));
    let mut answers = json!({"mine": {"ack": "not understood", "env": "root", "plan": "{bad", "why": "x", "who": "y"}});
    let answer = |answers: &Value| json!({"session": "s-1", "gate": "c-1", "answers": answers});
    agent.call_err("checkpoint.answer", answer(&answers)).await;
    let now = events(&console, "s-1").await;
    let response = payloads(&now, "checkpoint_response")[0];
    assert_eq!(response["validation_result"], "invalid");
    assert_eq!(response["answers"], answers["mine"]);
    // The agent tries again, and goes on. It is warned of one answer; the other is only recorded.
    answers["mine"] =
        json!({"ack": "understood", "env": "dev", "plan": {}, "why": "x", "who": "y"});
    let allowed = agent.call_ok("checkpoint.answer", answer(&answers)).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
    let warnings = allowed["given"]["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].as_str().unwrap().contains("`why`"),
        "{warnings:?}"
    );
    let now = events(&console, "s-1").await;
    let response = payloads(&now, "checkpoint_response")[1];
    assert_eq!(response["validation_result"], "invalid");
    assert_eq!(response["problems"].as_array().unwrap().len(), 2);
    let passed = payloads(&now, "checkpoint_passed")[0];
    assert_eq!(passed["approval_method"], "agent");
    assert_eq!(passed["passed_by"], "agent bot");
    assert!(passed["request_hash"].is_string());
}

// covers B19, B28
#[tokio::test]
async fn agent_answer_to_an_operators_gate_is_refused_and_recorded() {
    let console = TestConsole::with_atlas(&format!("{HEAD}{ASKING}")).await;
    let mut waiting = console.agent().await;
    let key = waiting.begin("s-1").await["key"].clone();
    let mut other = console.agent().await;
    other.begin("s-2").await;
    let held = tokio::spawn(async move {
        let hold = json!({"session": "s-1", "action": "hold"});
        waiting.call("action.request", hold).await
    });
    console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    let answers = json!({"theirs": {"acknowledge": "understood"}});
    let answer = |session: &str| json!({"session": session, "gate": "c-1", "answers": answers});
    // From another session, and from the one whose request is held.
    other.call_err("checkpoint.answer", answer("s-2")).await;
    let foreign = events(&console, "s-2").await;
    assert_eq!(
        payloads(&foreign, "error_occurred")[0]["error_type"],
        "foreign_gate"
    );
    let mut same = answer("s-1");
    same["key"] = key;
    let reply = other.call_err("checkpoint.answer", same).await;
    assert!(
        reply.contains("the agent may not answer `theirs` here"),
        "{reply}"
    );
    let now = events(&console, "s-1").await;
    let response = payloads(&now, "checkpoint_response")[0];
    assert_eq!(response["checkpoint_id"], "theirs");
    assert_eq!(response["validation_result"], "invalid");
    assert_eq!(response["answered_by"], "agent bot");
    assert_eq!(response["answers"], json!({"acknowledge": "acknowledged"}));
    console.deny("no").await;
    assert!(matches!(held.await.unwrap(), Err(CallError::Fault(_))));
}

// covers B15, B19
#[tokio::test]
async fn same_checkpoint_id_in_two_atlases_stays_distinct_and_one_answer_passes_one_gate() {
    let body = "actions: [{action_id: pay, risk_tier: low}]\ncheckpoints: [{checkpoint_id: g, \
                trigger: {type: action_pre, patterns: [pay]}, mode: blocking, respondent: agent, \
                questions: [{question_id: q, question: Why?, response_type: text}]}]\n";
    let texts = ["com.one", "com.two"].map(|id| format!("{HEAD}atlas_id: {id}\n{body}"));
    let console = TestConsole::with_atlases(&texts).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let pay = json!({"session": "s-1", "action": "pay"});
    let Err(CallError::Fault(fault)) = agent.call("action.request", pay).await else {
        panic!()
    };
    let pending = &fault.data.unwrap()["asked"]["gates"];
    assert_eq!(pending[0]["atlas_id"], "com.one");
    assert_eq!(pending[1]["atlas_id"], "com.two");
    let snapshot = console.bench.snapshot();
    let names: Vec<_> = snapshot.held[0]
        .gates
        .iter()
        .map(cra_core::engine::held::Gate::name)
        .collect();
    assert_eq!(names, ["com.one/g", "com.two/g"]);
    let answer = |answers: Value| json!({"session": "s-1", "gate": "c-1", "answers": answers});
    // The checkpoint id alone names both gates, so the answer is refused.
    let both = answer(json!({"g": {"q": "because"}}));
    let reply = agent.call_err("checkpoint.answer", both).await;
    assert!(reply.contains("`com.one/g` and `com.two/g`"), "{reply}");
    let one = answer(json!({"com.one/g": {"q": "because"}}));
    let reply = agent.call_err("checkpoint.answer", one).await;
    assert!(
        reply.contains("must answer its questions with checkpoint.answer"),
        "{reply}"
    );
    let other = answer(json!({"com.two/g": {"q": "as agreed"}}));
    let allowed = agent.call_ok("checkpoint.answer", other).await;
    assert!(allowed["execution"].is_string());
    let all = events(&console, "s-1").await;
    for event_type in [
        "checkpoint_triggered",
        "checkpoint_response",
        "checkpoint_passed",
    ] {
        let under: Vec<_> = payloads(&all, event_type)
            .iter()
            .map(|value| value["judged_under"][0]["atlas_id"].clone())
            .collect();
        assert_eq!(under, [json!("com.one"), json!("com.two")], "{event_type}");
    }
    let attempted = payloads(&all, "action_attempted")[0];
    let under = attempted["judged_under"].as_array().unwrap();
    assert_eq!(under.len(), 2);
    assert!(
        under
            .iter()
            .all(|item| item["atlas_hash"].as_str().unwrap().len() == 64)
    );
}

// covers T2, T32
#[tokio::test]
async fn verification_detects_a_changed_or_missing_atlas_text() {
    for change in [
        "UPDATE atlases SET text = text || ' '",
        "UPDATE atlases SET version = version || '.1'",
        "UPDATE atlases SET atlas_id = atlas_id || '.other'",
        "DELETE FROM atlases",
    ] {
        let console = TestConsole::new().await;
        let verify = |console: &TestConsole| {
            let folder = console.folder().to_owned();
            let run = std::process::Command::new(env!("CARGO_BIN_EXE_cra"))
                .args(["trace", "verify", "--data-dir"])
                .arg(folder)
                .output()
                .unwrap();
            let reply = String::from_utf8_lossy(&run.stdout).into_owned();
            (
                run.status.code(),
                reply + &String::from_utf8_lossy(&run.stderr),
            )
        };
        let mut agent = console.agent().await;
        agent.begin("s-1").await;
        let (code, reply) = verify(&console);
        assert_eq!(code, Some(0), "{reply}");
        let store = Connection::open(console.folder().join(FILE_NAME)).unwrap();
        store.execute(change, []).unwrap();
        let (code, reply) = verify(&console);
        assert_eq!(code, Some(6), "{change}: {reply}");
        assert!(reply.contains("Atlas `com.acme.support`"), "{reply}");
    }
}
