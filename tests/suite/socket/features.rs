//! Rules of the steward, seen from an agent's side of the socket.

use std::fs;

use cra_core::gateway::protocol::call::CallError;
use serde_json::{Value, json};

use super::{Agent, TestConsole};
use crate::support::root;

fn feature_atlas(name: &str) -> String {
    let path = root().join("tests/data/features/atlas").join(name);
    fs::read_to_string(path).unwrap()
}

/// The error of a call that is not allowed.
async fn fault(agent: &mut Agent, method: &str, params: Value) -> (i64, Value) {
    match agent.call(method, params).await {
        Err(CallError::Fault(fault)) => (fault.code, fault.data.unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

// covers B2
#[tokio::test]
async fn no_agent_call_changes_the_atlas() {
    let console = TestConsole::with_atlas(&feature_atlas("definition.yaml")).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let before = console.bench.snapshot();
    let definition = json!({"session": "s-1", "checkpoint_id": "desk-gate", "mode": "observational",
        "atlas": "atlas_id: other", "priority": 0, "capability": "desk"});
    for method in [
        "atlas.load",
        "atlas.edit",
        "checkpoint.define",
        "checkpoint.remove",
        "checkpoint.pass",
        "capability.unlock",
        "policy.set",
        "approve",
    ] {
        let (code, _) = fault(&mut agent, method, definition.clone()).await;
        assert_eq!(code, -32601, "{method}");
    }
    // Nor does a member that no call has.
    for (method, more) in [
        (
            "action.request",
            json!({"action": "desk.open", "mode": "advisory"}),
        ),
        (
            "action.request",
            json!({"action": "desk.read", "approved": true}),
        ),
        (
            "input",
            json!({"text": "hello", "unlock_capabilities": ["desk"]}),
        ),
        ("resolve", json!({"allow_actions": ["*"]})),
    ] {
        let mut params = more;
        params["session"] = json!("s-1");
        let (code, _) = fault(&mut agent, method, params.clone()).await;
        assert_eq!(code, -32602, "{method} {params}");
    }
    assert_eq!(console.bench.snapshot().atlases.len(), before.atlases.len());
    for (now, then) in console
        .bench
        .snapshot()
        .atlases
        .iter()
        .zip(before.atlases.iter())
    {
        assert_eq!(now.hash, then.hash);
    }
    let read = json!({"session": "s-1", "action": "desk.read"});
    let (_, data) = fault(&mut agent, "action.request", read).await;
    assert_eq!(data["code"], "capability_locked");
}

// covers B9
#[tokio::test]
async fn question_reaches_the_agent_with_its_fields_and_its_answer_is_validated_by_them() {
    let console = TestConsole::with_atlas(&feature_atlas("questions.yaml")).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let request = json!({"session": "s-1", "action": "move"});
    let (code, data) = fault(&mut agent, "action.request", request).await;
    assert_eq!(code, -32002, "{data}");
    let pending = &data["asked"];
    let gate = &pending["gates"][0];
    assert_eq!(gate["checkpoint_id"], "moving", "{data}");
    let questions = gate["questions"].as_array().unwrap();
    let reason = &questions[0];
    for (field, wanted) in [
        ("question_id", json!("reason")),
        ("question", json!("Why is it moved?")),
        ("response_type", json!("text")),
        ("required", json!(true)),
        ("hint", json!("One sentence.")),
        ("on_invalid", json!("retry")),
    ] {
        assert_eq!(reason[field], wanted, "{field}: {reason}");
    }
    assert_eq!(reason["validation"]["min_length"], 5, "{reason}");
    assert_eq!(questions[1]["required"], false);
    assert_eq!(questions[2]["on_invalid"], "warn_and_continue");

    let answer = |answers: Value| json!({"session": "s-1", "gate": pending["gate"], "answers": {"moving": answers}});
    let short = answer(json!({"reason": "so", "count": 2}));
    let (code, data) = fault(&mut agent, "checkpoint.answer", short).await;
    assert_eq!(code, -32003, "{data}");
    assert_eq!(data["problems"][0]["question"], "reason", "{data}");
    let right = answer(json!({"reason": "because of the rain", "count": 2}));
    let allowed = agent.call_ok("checkpoint.answer", right).await;
    assert!(allowed["execution"].is_string(), "{allowed}");
}

// covers B16
#[tokio::test]
async fn api_keys_and_rate_limit_of_the_atlas_apply_at_the_socket() {
    let console = TestConsole::with_atlas(&feature_atlas("manifest.yaml")).await;
    let mut agent = console.agent().await;
    for key in [json!(null), json!("sk-acme-1"), json!("sk-museum")] {
        let mut start = json!({"session": "s-1", "agent": "bot"});
        if !key.is_null() {
            start["api_key"] = key.clone();
        }
        let (_, data) = fault(&mut agent, "session.start", start).await;
        assert_eq!(data["code"], "unauthorized", "{key}");
    }
    let start = json!({"session": "s-1", "agent": "bot", "api_key": "sk-museum-7"});
    agent.call_ok("session.start", start).await;
    console.pass().await;
    // Thirty requests a minute of one key: its start, and 29 actions.
    let list = json!({"session": "s-1", "action": "painting.list"});
    let mut allowed = 0;
    let refused = loop {
        match agent.call("action.request", list.clone()).await {
            Ok(_) => allowed += 1,
            Err(CallError::Fault(fault)) => break fault,
            Err(other) => panic!("{other:?}"),
        }
        assert!(allowed <= 30, "no limit holds");
    };
    assert_eq!(allowed, 29, "{refused:?}");
    assert_eq!(
        refused.data.unwrap()["code"],
        "limit",
        "{}",
        refused.message
    );
    console
        .bench
        .clock
        .advance(std::time::Duration::from_secs(61));
    agent.call_ok("action.request", list).await;
}
