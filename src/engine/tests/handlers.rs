//! Tests of checkpoint handlers: their effects, and the consequences of a denial.

use super::*;
use crate::engine::extensions::Extensions;

pub(super) fn table(handlers: &[&str]) -> Extensions {
    Extensions {
        handlers: handlers.iter().map(|name| (*name).to_owned()).collect(),
        ..Extensions::default()
    }
}

pub(super) fn bench(checkpoints: &str, extensions: Extensions) -> EngineBench {
    let body = format!(
        "actions: [{{action_id: a, risk_tier: low}}, {{action_id: b, risk_tier: low}}]\n\
         context_blocks: [{{context_id: tips, content: take care, inject_mode: on_demand}}]\n\
         checkpoint_config: {{budget: {{max_checkpoint_time_ms: 500}}}}\n\
         policies: [{{policy_id: never, type: deny, actions: [b]}}]\n\
         checkpoints: [{checkpoints}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.engine.set_extensions(extensions);
    bench
}

const ON_A: &str =
    "{checkpoint_id: g, trigger: {type: action_pre, patterns: ['*']}, handler: outside}";
const ON_INPUT: &str = "{checkpoint_id: one, trigger: {type: keyword, patterns: [x]}, handler: outside, priority: 9}, \
     {checkpoint_id: two, trigger: {type: keyword, patterns: [x]}, handler: second, priority: 5}";

pub(super) fn on_action() -> EngineBench {
    let mut bench = bench(ON_A, table(&["outside"]));
    bench.start("s-1");
    bench
}

// covers A15, A35
#[test]
fn a_handler_denial_blocks_with_its_reason_and_is_recorded() {
    let mut bench = on_action();
    let reply_id = bench.request("s-1", "a", json!({"n": 1}));
    let told = bench.calls()[0].to_json();
    assert_eq!(told["action"]["params"], json!({"n": 1}));
    assert_eq!(told["session"]["id"], json!("s-1"));
    bench.returns(json!({"approved": false, "reason": "not on fridays"}));
    let denied = bench.denied(reply_id);
    assert_eq!(denied.code, DenyCode::Extension);
    assert!(denied.reason.contains("not on fridays"));
    let record = &bench.payloads("plugin_event")[0];
    assert_eq!(record["custom_type"], json!("external_validation"));
    assert_eq!(record["data"]["approved"], json!(false));
    assert_eq!(bench.payloads("action_blocked")[0]["policy_id"], json!("g"));
    assert_eq!(bench.engine.sessions()[0].actions, 0);
}

#[test]
fn a_handler_that_fails_or_does_not_exist_denies() {
    for outcome in [Err("gone".to_owned()), Ok(json!({})), Ok(json!(true))] {
        let mut bench = on_action();
        let reply_id = bench.request("s-1", "a", json!({}));
        bench.returned(outcome, Duration::ZERO);
        assert_eq!(bench.denied(reply_id).code, DenyCode::Extension);
    }
    let mut bench = bench(ON_A, Extensions::default());
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::Extension);
}

// covers A19
#[test]
fn policies_decide_before_handlers_and_a_denied_action_gets_no_context() {
    let mut bench = bench(
        "{checkpoint_id: g, trigger: {type: action_pre, patterns: ['*']}, handler: outside, \
          inject_contexts: [tips]}",
        table(&["outside"]),
    );
    bench.start("s-1");
    let denied = bench.request("s-1", "b", json!({}));
    assert_eq!(bench.denied(denied).code, DenyCode::Policy);
    assert_eq!(
        bench.calls(),
        [],
        "nobody is asked about what is denied anyway"
    );
    assert_eq!(bench.payloads("context_injected"), Vec::<Value>::new());
    let attempted = &bench.payloads("action_attempted")[0];
    assert_eq!(attempted["policy_checked"], json!(true));
    assert_eq!(
        bench.payloads("policy_checked")[0]["decision"],
        json!("deny")
    );
    let allowed = bench.request("s-1", "a", json!({}));
    bench.returns(json!({"continue": true}));
    assert_eq!(
        bench.allowed(allowed).injected.contexts[0].context_id,
        "tips"
    );
}

#[test]
fn a_handler_injects_contexts_requires_approvals_and_records_events() {
    let mut bench = on_action();
    let reply_id = bench.request("s-1", "a", json!({}));
    bench.returns(json!({
        "continue": true,
        "injectContext": ["tips", "a text of its own"],
        "policyDecision": {"decision": "require_approval", "reason": "ask someone"},
        "traceEvents": [{"eventType": "score", "payload": {"value": 0.25, "id": 9_007_199_254_740_993_u64}}],
    }));
    assert!(bench.waits(reply_id));
    let held = bench.held("c-1");
    assert_eq!(held.gates[0].origin.kind(), "approval");
    bench.pass("c-1");
    let contexts: Vec<_> = bench
        .allowed(reply_id)
        .injected
        .contexts
        .iter()
        .map(|context| context.content.as_str())
        .collect();
    assert_eq!(contexts, ["take care", "a text of its own"]);
    let injected = bench.payloads("context_injected");
    assert_eq!(injected[1]["context_ids"], json!(["outside.1"]));
    assert_eq!(injected[1]["total_size_bytes"], json!(17));
    let events = bench.payloads("plugin_event");
    assert_eq!(events[1]["custom_type"], json!("score"));
    assert_eq!(
        events[1]["data"],
        json!({"value": 0.25, "id": 9_007_199_254_740_993_u64})
    );
    // The number is written as text, and the record says so.
    assert_eq!(events[1]["numbers_as_text"], json!(["data.id"]));
    assert_eq!(
        bench.payloads("policy_override")[0]["policy_id"],
        json!("outside")
    );
}

#[test]
fn an_external_allow_overrules_no_policy_and_an_external_deny_blocks() {
    let mut bench = on_action();
    let reply_id = bench.request("s-1", "a", json!({}));
    bench.returns(
        json!({"continue": true, "policyDecision": {"decision": "denied", "reason": "odd"}}),
    );
    assert!(bench.denied(reply_id).reason.contains("odd"));
    let never = bench.request("s-1", "b", json!({}));
    assert_eq!(bench.denied(never).code, DenyCode::Policy);
}

// covers A3
#[test]
fn handlers_run_by_priority_and_see_the_input_of_the_previous_one() {
    let mut bench = bench(ON_INPUT, table(&["outside", "second"]));
    bench.start("s-1");
    let reply_id = bench.input("x marks it");
    assert_eq!(bench.calls().len(), 1);
    assert_eq!(bench.calls()[0].context.checkpoint_id, "one");
    bench.returns(json!({"continue": true, "modified_input": "x, politely"}));
    let second = bench.calls()[1].clone();
    assert_eq!(second.context.checkpoint_id, "two");
    assert_eq!(second.context.input.unwrap().content, "x, politely");
    bench.returns(json!({"continue": true}));
    let Reply::Agent(AgentReply::Accepted(accepted)) = bench.reply(reply_id) else {
        panic!()
    };
    assert_eq!(accepted.modified_input.as_deref(), Some("x, politely"));
    let taken: Vec<_> = bench
        .payloads("checkpoint_completed")
        .into_iter()
        .map(|record| record["action_taken"].clone())
        .collect();
    assert_eq!(taken, [json!("modify"), json!("continue")]);
    let kept = format!(
        "{:?} {:?}",
        bench.persisted_state(),
        bench.payloads("input_received")
    );
    assert!(
        !kept.contains("politely"),
        "input is not kept, changed or not"
    );
}

#[test]
fn input_that_a_handler_stops_is_refused() {
    let mut bench = bench(ON_INPUT, table(&["outside", "second"]));
    bench.start("s-1");
    let reply_id = bench.input("x");
    bench.returns(json!({"continue": false, "blockReason": "rude"}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::Extension);
    assert_eq!(bench.calls().len(), 1, "the second is not asked any more");
    let run = bench.request("s-1", "a", json!({}));
    bench.allowed(run);
}

#[test]
fn an_event_that_a_handler_stops_is_held_for_an_operator() {
    let post =
        "{checkpoint_id: after, trigger: {type: action_post, patterns: [a]}, handler: outside}";
    let mut bench = bench(post, table(&["outside"]));
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    let execution = bench.allowed(reply_id).execution.clone();
    let completed = ActionCompletion {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        execution,
        result: Ok(String::new()),
    };
    bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, completed));
    bench.returned(Err("gone".to_owned()), Duration::ZERO);
    assert_eq!(bench.held_ids(), ["c-1"]);
    let next = bench.request("s-1", "a", json!({}));
    assert!(bench.waits(next));
    // Without an answer the gate stays required, although the checkpoint is only advisory.
    bench.advance(301);
    bench.wake();
    let denied = bench.denied(next);
    assert_eq!(denied.code, DenyCode::Expired);
    let again = bench.request("s-1", "a", json!({}));
    assert!(bench.waits(again));
    bench.pass("c-2");
    bench.allowed(again);
}

#[test]
fn a_session_that_a_handler_refuses_may_not_act() {
    let start = "{checkpoint_id: hello, trigger: {type: session_start}, handler: outside}";
    let mut refused = bench(start, table(&["outside"]));
    refused.start("s-1");
    refused.returns(json!({"continue": false, "block_reason": "closed"}));
    let reply_id = refused.request("s-1", "a", json!({}));
    assert!(refused.denied(reply_id).reason.contains("closed"));
    // If the handler failed to answer, an operator decides, even after a timeout.
    let mut unheard = bench(start, table(&["outside"]));
    unheard.start("s-1");
    unheard.returned(Err("gone".to_owned()), Duration::ZERO);
    assert_eq!(unheard.held_ids(), ["c-1"]);
    unheard.advance(301);
    unheard.wake();
    let reply_id = unheard.request("s-1", "a", json!({}));
    assert!(
        unheard.waits(reply_id),
        "it is still a gate although the checkpoint is only advice"
    );
    unheard.pass("c-2");
    unheard.allowed(reply_id);
}

#[test]
fn slow_extensions_drop_advice_but_never_gates() {
    let both = "{checkpoint_id: slow, trigger: {type: action_pre, patterns: [a]}, handler: outside, priority: 9}, \
                {checkpoint_id: late, trigger: {type: action_pre, patterns: [a]}, inject_contexts: [tips], priority: 5}, \
                {checkpoint_id: gate, trigger: {type: action_pre, patterns: [a]}, handler: second, mode: blocking, priority: 1}";
    let mut bench = bench(both, table(&["outside", "second"]));
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    bench.returned(Ok(json!({"continue": true})), Duration::from_millis(500));
    let last = bench.calls().pop().unwrap();
    assert_eq!(
        last.context.checkpoint_id, "gate",
        "a gate is never cut short"
    );
    bench.returns(json!({"continue": true}));
    assert!(bench.waits(reply_id));
    let skipped = bench.payloads("checkpoint_skipped");
    assert_eq!(skipped[0]["checkpoint_id"], json!("late"));
    bench.pass("c-1");
    bench.allowed(reply_id);
}

#[test]
fn a_handler_can_invalidate_cached_contexts() {
    let inject = "{checkpoint_id: g, trigger: {type: action_pre, patterns: [a]}, inject_contexts: [tips], handler: outside}";
    for (result, again) in [
        (json!({"continue": true}), 0),
        (json!({"continue": true, "cacheInvalidate": ["tips"]}), 1),
        (json!({"continue": true, "cacheInvalidate": ["other"]}), 0),
        (json!({"continue": true, "cacheClear": true}), 1),
    ] {
        let mut bench = bench(inject, table(&["outside"]));
        bench.start("s-1");
        bench.request("s-1", "a", json!({}));
        bench.returns(json!({"continue": true}));
        let second = bench.request("s-1", "a", json!({"n": 2}));
        bench.returns(result.clone());
        assert_eq!(
            bench.allowed(second).injected.contexts.len(),
            again,
            "{result}"
        );
    }
}

#[test]
fn handlers_of_a_type_are_called_after_the_checkpoints_own_handler() {
    let mut extensions = table(&["outside", "every"]);
    extensions
        .by_type
        .insert("action_pre".to_owned(), vec!["every".to_owned()]);
    let mut bench = bench(ON_A, extensions);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    bench.returns(json!({"continue": true}));
    assert_eq!(bench.calls()[1].name, "every");
    bench.returns(json!({"continue": false, "block_reason": "no"}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::Extension);
}
