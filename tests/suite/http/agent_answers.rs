//! Checkpoints whose questions are the agent's, and reports of wrappers, over HTTP.

use super::*;

const ASKS: &str = r#"
atlas_version: "1.0"
atlas_id: "org.test.asks"
version: "1.0.0"
name: "Asks"
description: "Questions for the agent"
default_decision: allow
actions:
  - { action_id: "note.write", name: "Write", risk_tier: high }
checkpoints:
  - checkpoint_id: "write-gate"
    name: "Writes"
    trigger: { type: action_pre, patterns: ["note.write"] }
    mode: blocking
    respondent: agent
    questions:
      - { question_id: "why", question: "Why?", response_type: text }
"#;

// covers B15
#[tokio::test]
async fn held_response_contains_the_questions_and_the_path_for_the_answer() {
    let web = Web::with_atlas(ASKS).await;
    let key = web.begin().await;
    let (status, held) = web
        .call("/v1/action/request", &action_request(&key, "note.write"))
        .await;
    assert_eq!((status, &held["code"]), (409, &json!(-32002)), "{held}");
    let question = &held["data"]["asked"]["gates"][0]["questions"][0];
    assert_eq!(question["question_id"], "why");
    let path = held["data"]["answer_with"]["path"].as_str().unwrap();
    let answer = json!({"session": "s-1", "key": key, "gate": held["data"]["asked"]["gate"],
        "answers": {"write-gate": {"why": "task 7"}}});
    let (status, allowed) = web.call(path, &answer).await;
    assert_eq!(status, 200, "{allowed}");
    assert!(allowed["execution"].is_string(), "{allowed}");
}

// covers T5, T6
#[tokio::test]
async fn a_wrapper_is_reported_and_verified_over_http() {
    let web = Web::with_atlas(ASKS).await;
    let key = web.begin().await;
    let wrapper = json!({
        "session": "s-1", "key": key, "wrapper_version": "1.0", "components": [], "transport": "rest",
        "capabilities": {"intercept_input": false, "intercept_output": false, "intercept_actions": false},
        "construction_hash": "00",
    });
    let (status, noted) = web.call("/v1/wrapper/constructed", &wrapper).await;
    assert_eq!(status, 200, "{noted}");
    assert_eq!(noted["failures"].as_array().unwrap().len(), 3, "{noted}");
    let check =
        json!({"session": "s-1", "key": key, "verification_passed": true, "tests_run": ["t"]});
    let (status, done) = web.call("/v1/wrapper/verified", &check).await;
    assert_eq!((status, done), (200, json!({})));
}
