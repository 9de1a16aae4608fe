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

async fn house() -> (House, Agent) {
    let house = House::under(ATLAS).await;
    let mut agent = house.agent().await;
    let start = json!({"session": "s-1", "agent": "bot", "version": "2.0", "intent": "sell",
        "key": KEY});
    agent.says("session.start", start).await;
    (house, agent)
}

async fn events(house: &House) -> Vec<Event> {
    let desk = house.bench.runtime.operator_handle();
    let session = "s-1".parse().unwrap();
    desk.events(session, 0, 1000).await.unwrap()
}

/// The only event of a type.
#[track_caller]
fn one<'e>(events: &'e [Event], kind: &str) -> &'e Event {
    let own: Vec<_> = events.iter().filter(|it| it.event_type == kind).collect();
    assert_eq!(own.len(), 1, "{kind}: {own:?}");
    own[0]
}

// covers T3, T4, T9, T12, T20, T21, T22
#[tokio::test]
async fn what_an_agent_tells_at_the_socket_is_on_record_in_its_fields() {
    let (house, mut agent) = house().await;
    let said = "the price of order 7";
    agent
        .says(
            "input",
            json!({"session": "s-1", "text": said, "source": "other_agent"}),
        )
        .await;
    let feedback = json!({"session": "s-1", "context_id": "price", "helpful": false,
        "reason": "out of date", "usage_outcome": "partial"});
    agent.says("context.feedback", feedback).await;
    let error =
        json!({"session": "s-1", "error_type": "network", "message": "reset", "recoverable": true});
    let error = agent.says("error", error).await["error"].clone();
    let recovered = json!({"session": "s-1", "error": error, "method": "retry", "success": true});
    agent.says("error.recovered", recovered).await;
    let output = json!({"session": "s-1", "text": "12 EUR", "output_type": "structured", "contains_action": true});
    agent.says("output", output).await;
    let drop = json!({"session": "s-1", "action": "db.drop", "params": {"table": "t"}});
    let told = agent.refused("action.request", drop).await;
    assert!(told.contains("never here"), "{told}");
    house.deny("no").await;
    let end = json!({"session": "s-1", "status": "cancelled", "summary": "asked for a price"});
    agent.says("session.end", end).await;

    let events = events(&house).await;
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
        Digest::of(said).to_string()
    );
    assert_eq!(field("input_received", "input_size_bytes"), said.len());
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
        .find(|it| it.event_type == "action_blocked")
        .unwrap();
    assert_eq!(blocked.payload["policy_id"], "no-drop");
    assert_eq!(blocked.payload["override_available"], true);
    assert_eq!(blocked.payload["action_params"], json!({"table": "t"}));
    assert_eq!(field("session_ended", "final_status"), "cancelled");
    assert_eq!(field("session_ended", "summary"), "asked for a price");
    assert_eq!(field("session_ended", "contexts_injected"), 1);
    let all =
        serde_json::to_string(&events.iter().map(|it| &it.payload).collect::<Vec<_>>()).unwrap();
    assert!(!all.contains(said) && !all.contains("12 EUR"), "{all}");
}

// covers T28, T29
#[tokio::test]
async fn events_of_one_input_share_its_trace_and_hang_in_one_tree() {
    let (house, mut agent) = house().await;
    agent
        .says("input", json!({"session": "s-1", "text": "the price"}))
        .await;
    let add = json!({"session": "s-1", "action": "note.add", "reference": "r"});
    agent.says("action.request", add).await;
    let done = json!({"session": "s-1", "reference": "r", "result": "ok"});
    let told = agent.says("action.completed", done).await;
    // What a checkpoint after the action says comes with this answer, and nothing else is said.
    let guidance = &told["given"]["guidance"][0];
    assert_eq!(guidance["block"]["content"], "Tell the customer.");
    assert_eq!(guidance["block"].get("append"), None, "{guidance}");
    let events = events(&house).await;
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
    let (house, mut agent) = house().await;
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
    let noted = agent.says("wrapper.constructed", wrapper.clone()).await;
    assert_eq!(noted, json!({"failures": []}));
    let check = json!({"session": "s-1", "verification_passed": false, "tests_run": ["entries"],
        "failures": ["an entry is missing"]});
    assert_eq!(agent.says("wrapper.verified", check).await, json!({}));
    let contradiction = json!({"session": "s-1", "verification_passed": true, "tests_run": ["entries"],
        "failures": ["an entry is missing"]});
    let told = agent.refused("wrapper.verified", contradiction).await;
    assert!(
        told.contains("`verification_passed` must be false"),
        "{told}"
    );
    let events = events(&house).await;
    let constructed = one(&events, "wrapper_constructed");
    assert_eq!(
        constructed.payload["construction_hash"],
        wrapper["construction_hash"]
    );
    let verified = events
        .iter()
        .filter(|it| it.event_type == "wrapper_verified");
    let passed: Vec<_> = verified
        .map(|it| it.payload["verification_passed"].clone())
        .collect();
    assert_eq!(passed, [json!(true), json!(false)]);
    // Whoever takes the session up again knows that it was told.
    let again = agent
        .says(
            "session.start",
            json!({"session": "s-1", "agent": "bot", "key": KEY}),
        )
        .await;
    assert_eq!(again["wrapper_reported"], true);
}

/// Questions in an answer that is no result, and the call that answers them.
async fn asked(agent: &mut Agent, method: &str, params: Value) -> Value {
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
    let (house, mut agent) = house().await;
    let data = asked(&mut agent, "action.request", send("mail.send")).await;
    assert_eq!(data["asked"]["gate"], "c-1");
    assert_eq!(data["answer_with"]["call"], "checkpoint.answer");
    let again = asked(&mut agent, "action.request", send("mail.send")).await;
    assert_eq!(again, data, "the same gate while its questions are open");
    let answer = json!({"session": "s-1", "gate": "c-1", "answers": {"own": {"to": "maya"}}});
    let allowed = agent.says("checkpoint.answer", answer).await;
    assert!(allowed["execution"].is_string(), "{allowed}");

    // With `repeat` the next identical request runs, once, and no other does.
    asked(&mut agent, "action.request", send("mail.send")).await;
    let answer = json!({"session": "s-1", "gate": "c-2", "release": "repeat",
        "answers": {"own": {"to": "maya"}}});
    let taken = agent.says("checkpoint.answer", answer).await;
    assert!(
        taken["permit_until"].is_string() && taken["execution"].is_null(),
        "{taken}"
    );
    let mut other = send("mail.send");
    other["params"]["body"] = json!("bye");
    asked(&mut agent, "action.request", other).await;
    let allowed = agent.says("action.request", send("mail.send")).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
    let later = asked(&mut agent, "action.request", send("mail.send")).await;
    assert_eq!(later["asked"]["gate"], "c-4");
    drop(house);
}

#[tokio::test]
async fn a_repeated_request_waits_for_the_operator_that_its_gate_needs_as_well() {
    let (house, mut agent) = house().await;
    let data = asked(&mut agent, "action.request", send("mail.bulk")).await;
    assert_eq!(data["asked"]["operator"], true);
    let answer = json!({"session": "s-1", "gate": "c-1", "release": "repeat",
        "answers": {"both": {"count": "seven"}}});
    let taken = agent.says("checkpoint.answer", answer).await;
    assert_eq!(taken["needs_operator"], true, "{taken}");
    assert_eq!(taken.get("permit_until"), None);
    let (allowed, ()) = tokio::join!(agent.says("action.request", send("mail.bulk")), async {
        house
            .bench
            .until(|it| it.held.iter().any(|held| held.joined == 1))
            .await;
        house.pass().await;
    });
    assert!(allowed["execution"].is_string(), "{allowed}");
}

#[tokio::test]
async fn input_that_the_agent_is_asked_about_is_told_with_its_questions() {
    let (_house, mut agent) = house().await;
    let data = asked(
        &mut agent,
        "input",
        json!({"session": "s-1", "text": "refund 7"}),
    )
    .await;
    let question = &data["asked"]["gates"][0]["questions"][0];
    assert_eq!(question["question"], "What is the limit?");
    let held = asked(&mut agent, "action.request", send("note.add")).await;
    assert_eq!(held["asked"]["gate"], data["asked"]["gate"]);
    let answer = json!({"session": "s-1", "gate": data["asked"]["gate"],
        "answers": {"refunds": {"limit": 5}}});
    let accepted = agent.says("checkpoint.answer", answer).await;
    assert_eq!(accepted.get("execution"), None, "{accepted}");
    let allowed = agent.says("action.request", send("note.add")).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
}

// covers T21
#[tokio::test]
async fn an_operator_sees_the_text_of_held_input_and_the_record_never_has_it() {
    let (house, mut agent) = house().await;
    let text = "a lawsuit about order 77123";
    let input = json!({"session": "s-1", "text": text});
    let ((), told) = tokio::join!(
        async {
            let picture = house.bench.until(|it| it.held.len() == 1).await;
            let subject = serde_json::to_value(&picture.held[0].subject).unwrap();
            assert_eq!(subject["moment"]["text"]["text"], text, "{subject}");
            house.pass().await;
        },
        agent.says("input", input)
    );
    assert!(told["given"].is_object());
    let events = events(&house).await;
    let all =
        serde_json::to_string(&events.iter().map(|it| &it.payload).collect::<Vec<_>>()).unwrap();
    assert!(!all.contains("77123"), "{all}");
    assert_eq!(
        one(&events, "input_received").payload["input_hash"],
        Digest::of(text).to_string()
    );
}

// covers D18
#[tokio::test]
async fn a_turn_hands_over_the_contexts_that_its_message_calls_for() {
    let (house, mut agent) = house().await;
    let turn = |number: u32, message: &str| json!({"session": "s-1", "turn": {"message_id": format!("m-{number}"), "message": message}});
    let told = agent.says("turn", turn(1, "what is the price?")).await;
    assert_eq!(told["given"]["contexts"][0]["content"], "the price list");
    assert_eq!(told["given"]["contexts"].as_array().unwrap().len(), 1);
    assert!(told["memento"].is_object());
    // Once while it is valid, as for input.
    let told = agent
        .says("turn", turn(2, "the price again, and the terms"))
        .await;
    assert_eq!(told["given"]["contexts"][0]["context_id"], "terms");
    let told = agent
        .says(
            "input",
            json!({"session": "s-1", "text": "price and terms"}),
        )
        .await;
    assert_eq!(told["given"]["contexts"], json!([]));
    let events = events(&house).await;
    let injected = events
        .iter()
        .filter(|it| it.event_type == "context_injected");
    let ids: Vec<_> = injected
        .map(|it| it.payload["context_ids"][0].clone())
        .collect();
    assert_eq!(ids, ["price", "terms"]);
}

// covers D18
#[tokio::test]
async fn a_turn_before_the_start_gate_is_passed_hands_over_nothing() {
    let atlas = format!(
        "{ATLAS}  - {{checkpoint_id: start, trigger: {{type: session_start}}, mode: blocking}}\n"
    );
    let house = House::under(&atlas).await;
    let mut agent = house.agent().await;
    agent
        .says("session.start", json!({"session": "s-1", "agent": "bot"}))
        .await;
    let turn = json!({"session": "s-1", "turn": {"message_id": "m-1", "message": "the price?"}});
    let told = agent.says("turn", turn).await;
    assert_eq!(told["given"]["contexts"], json!([]), "{told}");
    assert_eq!(told["held"], json!(["c-1"]));
    house.pass().await;
    let turn = json!({"session": "s-1", "turn": {"message_id": "m-2", "message": "go on"}});
    let told = agent.says("turn", turn).await;
    assert_eq!(
        told["given"]["contexts"][0]["context_id"], "price",
        "{told}"
    );
}
