//! Events that an agent causes at the socket, as they are recorded; and answers at checkpoints of its own.

use cra_core::base::digest::Digest;
use cra_core::trace::event::Event;

use super::*;

const ATLAS: &str = "atlas_version: '1.0'
atlas_id: org.test.reports
version: '1.2.0'
name: Reports
default_decision: allow
unknown_actions: allow
context_blocks:
  - {context_id: price, content: the price list, keywords: [price]}
  - {context_id: terms, content: the terms, keywords: [terms]}
policies:
  - {policy_id: no-drop, type: deny, actions: ['db.drop'], reason: 'never here', override: true}
checkpoints:
  - checkpoint_id: own
    trigger: {type: action_pre, patterns: ['mail.send']}
    mode: blocking
    respondent: agent
    questions:
      - {question_id: to, question: 'To whom?', response_type: text}
  - checkpoint_id: both
    trigger: {type: action_pre, patterns: ['mail.bulk']}
    mode: blocking
    respondent: agent
    questions:
      - {question_id: count, question: 'How many?', response_type: text}
  - checkpoint_id: operator
    trigger: {type: action_pre, patterns: ['mail.bulk']}
    mode: blocking
    questions:
      - {question_id: ok, question: 'Looked at it?', response_type: acknowledgment}
  - checkpoint_id: refunds
    trigger: {type: keyword, keywords: [refund]}
    mode: blocking
    respondent: agent
    questions:
      - {question_id: limit, question: 'What is the limit?', response_type: number}
  - checkpoint_id: lawsuits
    trigger: {type: keyword, keywords: [lawsuit]}
    mode: blocking
    questions:
      - {question_id: ok, question: 'May it be worked on?', response_type: acknowledgment}
  - checkpoint_id: after
    trigger: {type: action_post, patterns: ['note.add']}
    guidance: {content: 'Tell the customer.'}
";

/// Secret of the session.
const KEY: &str = "0123456789abcdef";

async fn start_console() -> (TestConsole, Agent) {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut agent = console.agent().await;
    let start = json!({"session": "s-1", "agent": "bot", "version": "2.0", "intent": "sell",
        "key": KEY});
    agent.call_ok("session.start", start).await;
    (console, agent)
}

async fn events(console: &TestConsole) -> Vec<Event> {
    let operator = console.bench.runtime.operator_handle();
    let session = "s-1".parse().unwrap();
    operator.events(session, 0, 1000).await.unwrap()
}

/// The only event of a type.
#[track_caller]
fn one<'e>(events: &'e [Event], kind: &str) -> &'e Event {
    let own: Vec<_> = events
        .iter()
        .filter(|event| event.event_type == kind)
        .collect();
    assert_eq!(own.len(), 1, "{kind}: {own:?}");
    own[0]
}

// covers T3, T4, T9, T12, T20, T21, T22
#[tokio::test]
async fn socket_reports_are_recorded_in_their_fields() {
    let (console, mut agent) = start_console().await;
    let text = "the price of order 7";
    agent
        .call_ok(
            "input",
            json!({"session": "s-1", "text": text, "source": "other_agent"}),
        )
        .await;
    let feedback = json!({"session": "s-1", "context_id": "price", "helpful": false,
        "reason": "out of date", "usage_outcome": "partial"});
    agent.call_ok("context.feedback", feedback).await;
    let error =
        json!({"session": "s-1", "error_type": "network", "message": "reset", "recoverable": true});
    let error = agent.call_ok("error", error).await["error"].clone();
    let recovered = json!({"session": "s-1", "error": error, "method": "retry", "success": true});
    agent.call_ok("error.recovered", recovered).await;
    let output = json!({"session": "s-1", "text": "12 EUR", "output_type": "structured", "contains_action": true});
    agent.call_ok("output", output).await;
    let drop = json!({"session": "s-1", "action": "db.drop", "params": {"table": "t"}});
    let reply = agent.call_err("action.request", drop).await;
    assert!(reply.contains("never here"), "{reply}");
    console.deny("no").await;
    let end = json!({"session": "s-1", "status": "cancelled", "summary": "asked for a price"});
    agent.call_ok("session.end", end).await;

    let events = events(&console).await;
    let field = |kind: &str, name: &str| {
        one(&events, kind)
            .payload
            .get(name)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(field("session_started", "agent_type"), "bot");
    assert_eq!(field("session_started", "agent_version"), "2.0");
    assert_eq!(field("session_started", "intent"), "sell");
    assert_eq!(
        field("session_started", "atlas_ids"),
        json!(["org.test.reports"])
    );
    assert!(field("session_started", "environment")["platform"].is_string());
    assert_eq!(
        field("input_received", "input_hash"),
        Digest::of(text).to_string()
    );
    assert_eq!(field("input_received", "input_size_bytes"), text.len());
    assert_eq!(field("input_received", "source"), "other_agent");
    assert_eq!(field("context_feedback", "context_id"), "price");
    assert_eq!(field("context_feedback", "helpful"), false);
    assert_eq!(field("context_feedback", "usage_outcome"), "partial");
    assert_eq!(field("error_recovered", "original_error_id"), error);
    assert_eq!(field("error_recovered", "recovery_method"), "retry");
    assert_eq!(field("error_recovered", "success"), true);
    assert_eq!(
        field("output_produced", "output_hash"),
        Digest::of("12 EUR").to_string()
    );
    assert_eq!(field("output_produced", "output_size_bytes"), 6);
    assert_eq!(field("output_produced", "output_type"), "structured");
    assert_eq!(field("output_produced", "contains_action"), true);
    let blocked = events
        .iter()
        .find(|event| event.event_type == "action_blocked")
        .unwrap();
    assert_eq!(blocked.payload["policy_id"], "no-drop");
    assert_eq!(blocked.payload["override_available"], true);
    assert_eq!(blocked.payload["action_params"], json!({"table": "t"}));
    assert_eq!(field("session_ended", "final_status"), "cancelled");
    assert_eq!(field("session_ended", "summary"), "asked for a price");
    assert_eq!(field("session_ended", "contexts_injected"), 1);
    let all = serde_json::to_string(
        &events
            .iter()
            .map(|event| &event.payload)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    assert!(!all.contains(text) && !all.contains("12 EUR"), "{all}");
}

// covers T28, T29
#[tokio::test]
async fn events_of_one_input_share_its_trace_id_and_form_one_tree() {
    let (console, mut agent) = start_console().await;
    agent
        .call_ok("input", json!({"session": "s-1", "text": "the price"}))
        .await;
    let add = json!({"session": "s-1", "action": "note.add", "reference": "r"});
    agent.call_ok("action.request", add).await;
    let done = json!({"session": "s-1", "reference": "r", "result": "ok"});
    let reply = agent.call_ok("action.completed", done).await;
    // What a checkpoint after the action says comes with this answer, and nothing else is said.
    let guidance = &reply["given"]["guidance"][0];
    assert_eq!(guidance["block"]["content"], "Tell the customer.");
    assert_eq!(guidance["block"].get("append"), None, "{guidance}");
    let events = events(&console).await;
    let input = one(&events, "input_received");
    let attempt = one(&events, "action_attempted");
    for (kind, parent) in [
        ("context_injected", input),
        ("policy_checked", attempt),
        ("action_completed", attempt),
    ] {
        let event = one(&events, kind);
        assert_eq!(event.trace_id, input.trace_id, "{kind}");
        assert_eq!(
            event.parent_span_id.as_ref(),
            Some(&parent.span_id),
            "{kind}"
        );
    }
    assert_eq!(attempt.trace_id, input.trace_id);
}

// covers T5, T6
#[tokio::test]
async fn a_wrapper_is_reported_and_verified_at_the_socket() {
    let (console, mut agent) = start_console().await;
    let mut wrapper = json!({
        "wrapper_version": "2.0.1", "components": ["gate"], "plugins": [], "transport": "rest",
        "cache_backend": "none",
        "capabilities": {"intercept_input": true, "intercept_output": false, "intercept_actions": true},
    });
    let canonical = "{\"cache_backend\":\"none\",\"capabilities\":{\"intercept_actions\":true,\
                     \"intercept_input\":true,\"intercept_output\":false},\"components\":[\"gate\"],\
                     \"plugins\":[],\"transport\":\"rest\",\"wrapper_version\":\"2.0.1\"}";
    wrapper["construction_hash"] = json!(Digest::of(canonical).to_string());
    wrapper["session"] = json!("s-1");
    let noted = agent.call_ok("wrapper.constructed", wrapper.clone()).await;
    assert_eq!(noted, json!({"failures": []}));
    let check = json!({"session": "s-1", "verification_passed": false, "tests_run": ["entries"],
        "failures": ["an entry is missing"]});
    assert_eq!(agent.call_ok("wrapper.verified", check).await, json!({}));
    let contradiction = json!({"session": "s-1", "verification_passed": true, "tests_run": ["entries"],
        "failures": ["an entry is missing"]});
    let reply = agent.call_err("wrapper.verified", contradiction).await;
    assert!(
        reply.contains("`verification_passed` must be false"),
        "{reply}"
    );
    let events = events(&console).await;
    let constructed = one(&events, "wrapper_constructed");
    assert_eq!(
        constructed.payload["construction_hash"],
        wrapper["construction_hash"]
    );
    let verified = events
        .iter()
        .filter(|event| event.event_type == "wrapper_verified");
    let passed: Vec<_> = verified
        .map(|event| event.payload["verification_passed"].clone())
        .collect();
    assert_eq!(passed, [json!(true), json!(false)]);
    // A later `session.start` shows that the report was made.
    let again = agent
        .call_ok(
            "session.start",
            json!({"session": "s-1", "agent": "bot", "key": KEY}),
        )
        .await;
    assert_eq!(again["wrapper_reported"], true);
}

/// Questions in an error reply, and the call that answers them.
async fn call_with_questions(agent: &mut Agent, method: &str, params: Value) -> Value {
    match agent.call(method, params).await {
        Err(CallError::Fault(fault)) if fault.code == -32002 => fault.data.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn send(action: &str) -> Value {
    json!({"session": "s-1", "action": action, "params": {"body": "hello"}})
}

// covers B15
#[tokio::test]
async fn an_answer_releases_the_same_request_at_the_socket() {
    let (console, mut agent) = start_console().await;
    let data = call_with_questions(&mut agent, "action.request", send("mail.send")).await;
    assert_eq!(data["asked"]["gate"], "c-1");
    assert_eq!(data["answer_with"]["call"], "checkpoint.answer");
    let again = call_with_questions(&mut agent, "action.request", send("mail.send")).await;
    assert_eq!(again, data, "the same gate while its questions are open");
    let answer = json!({"session": "s-1", "gate": "c-1", "answers": {"own": {"to": "maya"}}});
    let allowed = agent.call_ok("checkpoint.answer", answer).await;
    assert!(allowed["execution"].is_string(), "{allowed}");

    // With `repeat` the next identical request runs, once, and no other does.
    call_with_questions(&mut agent, "action.request", send("mail.send")).await;
    let answer = json!({"session": "s-1", "gate": "c-2", "release": "repeat",
        "answers": {"own": {"to": "maya"}}});
    let taken = agent.call_ok("checkpoint.answer", answer).await;
    assert!(
        taken["permit_until"].is_string() && taken["execution"].is_null(),
        "{taken}"
    );
    let mut other = send("mail.send");
    other["params"]["body"] = json!("bye");
    call_with_questions(&mut agent, "action.request", other).await;
    let allowed = agent.call_ok("action.request", send("mail.send")).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
    let later = call_with_questions(&mut agent, "action.request", send("mail.send")).await;
    assert_eq!(later["asked"]["gate"], "c-4");
    drop(console);
}

#[tokio::test]
async fn repeated_request_still_waits_for_the_operator_of_its_gate() {
    let (console, mut agent) = start_console().await;
    let data = call_with_questions(&mut agent, "action.request", send("mail.bulk")).await;
    assert_eq!(data["asked"]["operator"], true);
    let answer = json!({"session": "s-1", "gate": "c-1", "release": "repeat",
        "answers": {"both": {"count": "seven"}}});
    let taken = agent.call_ok("checkpoint.answer", answer).await;
    assert_eq!(taken["needs_operator"], true, "{taken}");
    assert_eq!(taken.get("permit_until"), None);
    let (allowed, ()) = tokio::join!(agent.call_ok("action.request", send("mail.bulk")), async {
        console
            .bench
            .wait_until(|snapshot| snapshot.held.iter().any(|held| held.joined == 1))
            .await;
        console.pass().await;
    });
    assert!(allowed["execution"].is_string(), "{allowed}");
}

#[tokio::test]
async fn input_with_questions_for_the_agent_is_answered_with_the_questions() {
    let (_house, mut agent) = start_console().await;
    let data = call_with_questions(
        &mut agent,
        "input",
        json!({"session": "s-1", "text": "refund 7"}),
    )
    .await;
    let question = &data["asked"]["gates"][0]["questions"][0];
    assert_eq!(question["question"], "What is the limit?");
    let held = call_with_questions(&mut agent, "action.request", send("note.add")).await;
    assert_eq!(held["asked"]["gate"], data["asked"]["gate"]);
    let answer = json!({"session": "s-1", "gate": data["asked"]["gate"],
        "answers": {"refunds": {"limit": 5}}});
    let accepted = agent.call_ok("checkpoint.answer", answer).await;
    assert_eq!(accepted.get("execution"), None, "{accepted}");
    let allowed = agent.call_ok("action.request", send("note.add")).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
}

// covers T21
#[tokio::test]
async fn operator_sees_the_text_of_held_input_and_the_record_never_contains_it() {
    let (console, mut agent) = start_console().await;
    let text = "a lawsuit about order 77123";
    let input = json!({"session": "s-1", "text": text});
    let ((), reply) = tokio::join!(
        async {
            let snapshot = console
                .bench
                .wait_until(|snapshot| snapshot.held.len() == 1)
                .await;
            let subject = serde_json::to_value(&snapshot.held[0].subject).unwrap();
            assert_eq!(subject["moment"]["text"]["text"], text, "{subject}");
            console.pass().await;
        },
        agent.call_ok("input", input)
    );
    assert!(reply["given"].is_object());
    let events = events(&console).await;
    let all = serde_json::to_string(
        &events
            .iter()
            .map(|event| &event.payload)
            .collect::<Vec<_>>(),
    )
    .unwrap();
    assert!(!all.contains("77123"), "{all}");
    assert_eq!(
        one(&events, "input_received").payload["input_hash"],
        Digest::of(text).to_string()
    );
}

// covers D18
#[tokio::test]
async fn turn_returns_the_contexts_that_match_its_message() {
    let (console, mut agent) = start_console().await;
    let turn = |number: u32, message: &str| json!({"session": "s-1", "turn": {"message_id": format!("m-{number}"), "message": message}});
    let reply = agent.call_ok("turn", turn(1, "what is the price?")).await;
    assert_eq!(reply["given"]["contexts"][0]["content"], "the price list");
    assert_eq!(reply["given"]["contexts"].as_array().unwrap().len(), 1);
    assert!(reply["memento"].is_object());
    // Once while it is valid, as for input.
    let reply = agent
        .call_ok("turn", turn(2, "the price again, and the terms"))
        .await;
    assert_eq!(reply["given"]["contexts"][0]["context_id"], "terms");
    let reply = agent
        .call_ok(
            "input",
            json!({"session": "s-1", "text": "price and terms"}),
        )
        .await;
    assert_eq!(reply["given"]["contexts"], json!([]));
    let events = events(&console).await;
    let injected = events
        .iter()
        .filter(|event| event.event_type == "context_injected");
    let ids: Vec<_> = injected
        .map(|event| event.payload["context_ids"][0].clone())
        .collect();
    assert_eq!(ids, ["price", "terms"]);
}

// covers D18
#[tokio::test]
async fn turn_before_the_start_gate_is_passed_returns_no_contexts() {
    let atlas = format!(
        "{ATLAS}  - {{checkpoint_id: start, trigger: {{type: session_start}}, mode: blocking}}\n"
    );
    let console = TestConsole::with_atlas(&atlas).await;
    let mut agent = console.agent().await;
    agent
        .call_ok("session.start", json!({"session": "s-1", "agent": "bot"}))
        .await;
    let turn = json!({"session": "s-1", "turn": {"message_id": "m-1", "message": "the price?"}});
    let reply = agent.call_ok("turn", turn).await;
    assert_eq!(reply["given"]["contexts"], json!([]), "{reply}");
    assert_eq!(reply["held"], json!(["c-1"]));
    console.pass().await;
    let turn = json!({"session": "s-1", "turn": {"message_id": "m-2", "message": "go on"}});
    let reply = agent.call_ok("turn", turn).await;
    assert_eq!(
        reply["given"]["contexts"][0]["context_id"], "price",
        "{reply}"
    );
}
