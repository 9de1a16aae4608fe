//! Attempts of an agent to get an action past a gate with what the socket offers.

use cra_core::gateway::protocol::call::CallError;
use serde_json::{Value, json};

use super::{Agent, TestConsole};

const GATED: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.gated
version: "1"
name: Gated
default_decision: allow
capabilities: [{capability_id: admin, actions: ['admin.*']}]
context_blocks:
- {context_id: behind, name: Behind the gate, content: The key is under the mat., inject_mode: on_demand}
checkpoints:
- checkpoint_id: gate
  trigger: {type: action_pre, patterns: [deploy]}
  mode: blocking
  inject_contexts: [behind]
  questions: [{question_id: sure, question: Are you sure?, response_type: boolean}]
- checkpoint_id: promote
  trigger: {type: action_pre, patterns: [promote]}
  mode: blocking
  unlock_capabilities: [admin]
actions: [{action_id: deploy}, {action_id: note}, {action_id: promote}]
"#;

/// The code of a denial, or of another error.
async fn refused(agent: &mut Agent, method: &str, params: Value) -> String {
    match agent.call(method, params.clone()).await {
        Err(CallError::Fault(fault)) => {
            let code = fault.data.as_ref().and_then(|data| data["code"].as_str());
            code.map_or_else(|| fault.code.to_string(), str::to_owned)
        }
        other => panic!("{method} {params} was not refused: {other:?}"),
    }
}

// covers B28
#[tokio::test]
async fn no_agent_call_gets_an_action_past_a_gate() {
    let console = TestConsole::with_atlas(GATED).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    // The first request waits at the gate in a connection of its own.
    let mut waiting = console.agent().await;
    waiting.begin("s-2").await;
    let held = tokio::spawn(async move {
        let request = json!({"session": "s-2", "action": "deploy"});
        waiting.call("action.request", request).await
    });
    console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;

    // It answers the operator's gate, in its own session and in the other.
    for session in ["s-1", "s-2"] {
        let answer =
            json!({"session": session, "gate": "c-1", "answers": {"gate": {"sure": true}}});
        refused(&mut agent, "checkpoint.answer", answer).await;
    }
    // It makes up calls that decide.
    for method in [
        "decide",
        "gate.pass",
        "checkpoint.pass",
        "approve",
        "policy.override",
    ] {
        assert_eq!(
            refused(&mut agent, method, json!({"gate": "c-1"})).await,
            "-32601"
        );
    }
    // It claims a run that was never allowed, and a resolution that was never made.
    let made_up = json!({"session": "s-1", "execution": "018f0000-0000-7000-8000-000000000000", "result": "done"});
    refused(&mut agent, "action.completed", made_up).await;
    let relied = json!({"session": "s-1", "action": "note", "resolution": "r-1"});
    assert_eq!(
        refused(&mut agent, "action.request", relied).await,
        "resolution"
    );
    // A locked capability, and an undeclared action.
    let locked = json!({"session": "s-1", "action": "admin.wipe"});
    assert_eq!(
        refused(&mut agent, "action.request", locked).await,
        "capability_locked"
    );
    let unknown = json!({"session": "s-1", "action": "deploy "});
    assert_eq!(
        refused(&mut agent, "action.request", unknown).await,
        "unknown_action"
    );
    // It asks for the knowledge behind the gate, by name and in words.
    for params in [
        json!({"hints": ["behind"]}),
        json!({"query": "behind the gate, the key under the mat"}),
    ] {
        let mut params = params;
        params["session"] = json!("s-1");
        let reply = agent.call_ok("context.request", params).await;
        assert_eq!(reply["given"]["contexts"], json!([]), "{reply}");
    }
    // After all attempts, the gate is still held and nothing ran.
    assert!(!held.is_finished());
    let snapshot = console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    assert_eq!(snapshot.held[0].id.as_str(), "c-1");
    console.deny("no").await;
    let reply = held.await.unwrap();
    assert!(matches!(reply, Err(CallError::Fault(_))), "{reply:?}");
}

/// An Atlas with contexts that agents may ask for, and one that they may not.
pub(crate) const ASKED: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.asked
version: "1"
name: Asked
default_decision: allow
unknown_actions: allow
context_blocks:
- {context_id: refunds, name: Money back, content: Within thirty days., inject_mode: on_demand}
- {context_id: parcels, name: Delivery, content: A courier comes at noon., inject_mode: on_demand}
- {context_id: secret, name: Secret, content: The courier is called Ada., inject_mode: on_demand}
checkpoints:
- {checkpoint_id: gate, trigger: {type: action_pre, patterns: [open]}, mode: blocking, inject_contexts: [secret]}
"#;

/// Checks what an agent is given for a query with hints under [`ASKED`].
pub(crate) fn check_found(reply: &Value) {
    assert_eq!(
        reply["given"]["contexts"][0]["context_id"], "parcels",
        "{reply}"
    );
    assert_eq!(
        reply["given"]["contexts"].as_array().unwrap().len(),
        1,
        "{reply}"
    );
    let not_given = reply["given"]["not_given"].as_array().unwrap();
    let ids: Vec<_> = not_given
        .iter()
        .map(|value| value["context_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["no-such", "secret"], "{reply}");
    let reasons: Vec<_> = not_given
        .iter()
        .map(|value| value["reason"].as_str().unwrap())
        .collect();
    assert!(reasons[0].contains("no loaded Atlas"), "{reasons:?}");
    assert!(reasons[1].contains("checkpoint `gate`"), "{reasons:?}");
}

// covers A20
#[tokio::test]
async fn query_over_the_socket_finds_contexts_and_reports_unknown_hints() {
    let console = TestConsole::with_atlas(ASKED).await;
    let mut agent = console.agent().await;
    agent.begin("s-1").await;
    let hints = ["no-such", "secret"];
    let request = json!({"session": "s-1", "query": "when does the courier come?", "hints": hints});
    check_found(&agent.call_ok("context.request", request).await);
    let request = json!({"session": "s-1", "query": "money back"});
    let reply = agent.call_ok("context.request", request).await;
    assert_eq!(
        reply["given"]["contexts"][0]["content"], "Within thirty days.",
        "{reply}"
    );
}
