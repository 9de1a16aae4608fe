//! Secrets in what agents say of themselves: out of the record, and out of the state.

use super::*;
use crate::trace::event::WrapperCapabilities;

const KEY: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

const ASKS: &str = "\
actions: [{action_id: do, risk_tier: low}]
default_decision: allow
checkpoints:
  - checkpoint_id: start
    mode: blocking
    trigger: {type: session_start}
    when: {path: session.intent, contains: ghp_}
  - checkpoint_id: own
    mode: blocking
    respondent: agent
    trigger: {type: action_pre, patterns: [do]}
    questions: [{question_id: why, question: Why?}]
";

fn started() -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(ASKS)]);
    let start = StartSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        agent: format!("bot {KEY}"),
        agent_version: Some(format!("1 token={KEY}")),
        intent: Some(format!("deploy with {KEY}")),
        owner: None,
    };
    bench.reply_id(|reply_id| EngineCommand::StartSession(reply_id, start));
    bench
}

#[track_caller]
fn assert_nowhere(bench: &EngineBench) {
    for draft in bench.drafts() {
        let written = serde_json::to_string(&draft.payload.fields()).unwrap();
        assert!(!written.contains(KEY), "{written}");
    }
    for effect in &bench.effects {
        if let Effect::Persist(change) = effect {
            let kept = change.body.as_deref().unwrap_or_default();
            assert!(!kept.contains(KEY), "{kept}");
        }
    }
}

#[test]
fn the_name_the_version_and_the_purpose_of_an_agent_are_written_without_secrets() {
    let bench = started();
    // The rules of the steward still see what was said.
    assert_eq!(bench.held_ids(), ["c-1"]);
    let record = &bench.payloads("session_started")[0];
    assert_eq!(record["agent_type"], json!("bot [redacted]"));
    assert_eq!(record["agent_version"], json!("1 token=[redacted]"));
    assert_eq!(record["intent"], json!("deploy with [redacted]"));
    assert_eq!(
        record["redacted"].as_array().map(Vec::is_empty),
        Some(false)
    );
    assert_eq!(
        bench.held("c-1").intent.as_deref(),
        Some("deploy with [redacted]")
    );
    assert_nowhere(&bench);
}

#[test]
fn answers_of_an_agent_are_written_without_secrets() {
    let mut bench = started();
    bench.pass("c-1");
    bench.request("s-1", "do", json!({}));
    let answer = AgentAnswer {
        session: "s-1".parse().unwrap(),
        gate: "c-2".parse().unwrap(),
        answers: serde_json::from_value(json!({"own": {"why": format!("I have {KEY}")}})).unwrap(),
        release: ReleaseTo::default(),
    };
    bench.reply_id(|reply_id| EngineCommand::Answer(reply_id, answer));
    let responses = bench.payloads("checkpoint_response");
    let own = responses
        .iter()
        .find(|record| record["checkpoint_id"] == "own")
        .unwrap();
    assert_eq!(own["answers"], json!({"why": "I have [redacted]"}));
    let passed = bench.payloads("checkpoint_passed");
    let own = passed
        .iter()
        .find(|record| record["checkpoint_id"] == "own")
        .unwrap();
    assert_eq!(own["justification"], json!("I have [redacted]"));
    assert_nowhere(&bench);
}

#[test]
fn a_wrapper_and_its_check_are_written_without_secrets() {
    let mut bench = started();
    let wrapper = Wrapper {
        session: "s-1".parse().unwrap(),
        wrapper_version: format!("2 {KEY}"),
        components: vec![format!("proxy {KEY}")],
        plugins: vec![format!("plugin {KEY}")],
        transport: "mcp".to_owned(),
        cache_backend: format!("redis://x:{KEY}@cache"),
        capabilities: WrapperCapabilities {
            intercept_input: true,
            intercept_output: true,
            intercept_actions: true,
        },
        construction_hash: "none".to_owned(),
    };
    bench.reply_id(|reply_id| EngineCommand::Report(reply_id, AgentReport::Wrapper(wrapper)));
    let check = WrapperCheck {
        session: "s-1".parse().unwrap(),
        verification_passed: false,
        tests_run: vec![format!("with {KEY}")],
        failures: vec![format!("{KEY} was refused")],
    };
    bench.reply_id(|reply_id| EngineCommand::Report(reply_id, AgentReport::WrapperCheck(check)));
    assert_eq!(bench.payloads("wrapper_constructed").len(), 1);
    assert_eq!(bench.payloads("wrapper_verified").len(), 2);
    assert_nowhere(&bench);
}
