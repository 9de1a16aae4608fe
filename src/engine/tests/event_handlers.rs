//! Tests of handlers at events other than action requests: approvals, missing answers, other Atlases.

use super::handlers::{bench, on_action, table};
use super::*;
use crate::engine::extensions::Extensions;

type CauseEventFn = fn(&mut EngineBench) -> ReplyId;

/// Returns every other event at which a handler can be called, with a function that causes it.
fn moments() -> [(&'static str, CauseEventFn); 5] {
    [
        ("{type: session_start}", |bench| bench.start("s-1")),
        ("{type: keyword, patterns: [x]}", |bench| bench.input("x")),
        ("{type: error_occurred}", |bench| bench.error()),
        ("{type: explicit_request}", |bench| bench.context(&[], None)),
        ("{type: action_post, patterns: [a]}", |bench| bench.run("a")),
    ]
}

fn at_moment(trigger: &str, more: &str) -> EngineBench {
    let checkpoint = format!("{{checkpoint_id: g, trigger: {trigger}, handler: outside{more}}}");
    let mut bench = bench(&checkpoint, table(&["outside"]));
    if !trigger.contains("session_start") {
        bench.start("s-1");
    }
    bench
}

#[test]
fn an_approval_required_by_a_handler_needs_an_operator_at_every_event() {
    let wants = json!({"continue": true, "policy_decision": {"decision": "require_approval", "reason": "look"}});
    for more in [
        "",
        ", respondent: agent",
        ", mode: blocking, respondent: agent",
    ] {
        for (trigger, happens) in moments() {
            let mut bench = at_moment(trigger, more);
            happens(&mut bench);
            bench.returns(wants.clone());
            assert_eq!(bench.held_ids(), ["c-1"], "{trigger}");
            let gate = bench.held("c-1").gates[0].clone();
            assert!(gate.why.contains("look"), "{}", gate.why);
            assert_eq!(
                gate.respondent,
                crate::atlas::document::Respondent::Operator
            );
            let action = bench.request("s-1", "a", json!({}));
            assert!(bench.waits(action), "{trigger}{more}");
            bench.pass("c-1");
            bench.allowed(action);
        }
    }
}

#[test]
fn after_a_handler_failure_only_an_operator_may_answer_the_gate() {
    for (trigger, happens) in moments() {
        if trigger.contains("keyword") {
            continue; // Such input is refused at once.
        }
        let mut bench = at_moment(trigger, ", mode: blocking, respondent: agent");
        happens(&mut bench);
        bench.returned(Err("gone".to_owned()), Duration::ZERO);
        for _ in 0..2 {
            let held = bench.held_ids().pop().unwrap();
            let gate = bench.held(&held).gates[0].clone();
            assert_eq!(
                gate.respondent,
                crate::atlas::document::Respondent::Operator
            );
            bench.advance(301);
            bench.wake();
            let reply_id = bench.request("s-1", "a", json!({}));
            assert!(bench.waits(reply_id), "{trigger}");
        }
    }
}

#[test]
fn a_missing_handler_raises_a_gate_even_after_the_time_budget() {
    let three = "{checkpoint_id: slow, trigger: {type: error_occurred}, handler: outside, priority: 9}, \
         {checkpoint_id: late, trigger: {type: error_occurred}, handler: second, priority: 5}, \
         {checkpoint_id: lost, trigger: {type: error_occurred}, handler: nobody, priority: 1}";
    let mut bench = bench(three, table(&["outside", "second"]));
    bench.start("s-1");
    let reply_id = bench.error();
    bench.returned(Ok(json!({"continue": true})), Duration::from_secs(1));
    bench.returned(Ok(json!({"continue": true})), Duration::from_secs(1));
    assert!(bench.waits(reply_id));
    assert_eq!(bench.held("c-1").gates[0].origin.id(), "lost");
}

#[test]
fn a_delayed_interval_with_a_handler_does_not_become_a_gate() {
    let both = "{checkpoint_id: words, trigger: {type: keyword, patterns: [x]}, mode: blocking}, \
         {checkpoint_id: beat, trigger: {type: time_interval, seconds: 10}, handler: outside}";
    let mut bench = bench(both, table(&["outside"]));
    bench.start("s-1");
    bench.input("x");
    bench.advance(11);
    let reply_id = bench.request("s-1", "a", json!({}));
    assert_eq!(bench.held_ids(), ["c-1"]);
    bench.pass("c-1");
    assert_eq!(bench.calls().len(), 1, "it is asked when its turn comes");
    bench.returns(json!({"continue": true}));
    bench.allowed(reply_id);
}

#[test]
fn handlers_are_called_for_a_request_whose_denial_was_overruled() {
    let body = "actions: [{action_id: pay, risk_tier: low}]\n\
         policies: [{policy_id: no, type: deny, actions: [pay], override: true}]\n\
         checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: [pay]}, handler: outside}]\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.engine.set_extensions(table(&["outside"]));
    bench.start("s-1");
    bench.request("s-1", "pay", json!({}));
    bench.pass("c-1");
    let no = bench.request("s-1", "pay", json!({}));
    bench.returns(json!({"continue": false, "reason": "not today"}));
    assert!(bench.denied(no).reason.contains("not today"));
    let yes = bench.request("s-1", "pay", json!({}));
    bench.returns(json!({"continue": true}));
    bench.allowed(yes);
}

#[test]
fn an_earlier_permit_does_not_cover_an_approval_required_at_the_retry() {
    let mut bench = bench(
        "{checkpoint_id: g, trigger: {type: action_pre, patterns: [a]}, handler: outside, mode: blocking}",
        table(&["outside"]),
    );
    bench.start("s-1");
    let left = bench.request("s-1", "a", json!({}));
    bench.returns(json!({"continue": true}));
    bench.handle(EngineCommand::CallerDisconnected(left));
    bench.pass("c-1");
    let retry = bench.request("s-1", "a", json!({}));
    bench.returns(json!({
        "continue": true,
        "policy_decision": {"decision": "require_approval", "reason": "suspicious"},
    }));
    assert!(bench.waits(retry), "nobody approved that");
    bench.pass("c-2");
    bench.allowed(retry);
}

#[test]
fn a_malformed_request_is_not_sent_to_extensions() {
    let mut bench = on_action();
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "a": deep });
    }
    let reply_id = bench.request("s-1", "a", deep);
    assert_eq!(bench.denied(reply_id).code, DenyCode::BadRequest);
    assert_eq!(bench.calls(), []);
}

#[test]
fn extensions_are_called_again_under_another_atlas() {
    let body = |version: &str| {
        atlas(
            "actions: [{action_id: a, risk_tier: low}]\n\
             checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: [a]}, \
             handler: outside, mode: blocking}, \
             {checkpoint_id: first, trigger: {type: session_start}, handler: outside}]\n",
        )
        .replace("version: \"1\"", version)
    };
    let mut first = EngineBench::new(&[&body("version: \"1\"")]);
    first.engine.set_extensions(table(&["outside"]));
    first.start("s-1");
    first.returns(json!({"continue": true}));
    first.request("s-1", "a", json!({}));
    first.returns(json!({"continue": true}));
    assert_eq!(first.held_ids(), ["c-1"]);
    let (engine, _) = Engine::restore(
        atlases_of(&[&body("version: \"2\"")]),
        Box::new(CountedIds::starting_at(1000)),
        first.persisted_state(),
        BTreeSet::new(),
        first.now,
    )
    .unwrap();
    let mut bench = EngineBench::with(engine);
    bench.engine.set_extensions(table(&["outside"]));
    let reply_id = bench.request("s-1", "a", json!({}));
    assert_eq!(bench.calls()[0].context.checkpoint_id, "first");
    bench.returns(json!({"continue": true}));
    assert_eq!(bench.calls()[1].context.checkpoint_id, "g");
    bench.returns(json!({"continue": true}));
    assert_eq!(bench.held_ids(), ["c-2"]);
    bench.pass("c-2");
    bench.allowed(reply_id);
}

#[test]
fn a_required_approval_is_kept_after_the_time_budget() {
    let both = Extensions {
        by_type: BTreeMap::from([("error_occurred".to_owned(), vec!["second".to_owned()])]),
        ..table(&["outside", "second"])
    };
    let mut bench = bench(
        "{checkpoint_id: g, trigger: {type: error_occurred}, handler: outside}",
        both,
    );
    bench.start("s-1");
    let reply_id = bench.error();
    let wants = json!({"continue": true, "policy_decision": {"decision": "require_approval"}});
    bench.returned(Ok(wants), Duration::from_secs(1));
    assert_eq!(bench.calls().len(), 2, "a gate is heard to the end");
    bench.returns(json!({"continue": true}));
    assert!(bench.waits(reply_id));
    assert_eq!(bench.held_ids(), ["c-1"]);
}

#[test]
fn nothing_is_injected_when_a_later_handler_denies() {
    let two = "{checkpoint_id: one, trigger: {type: action_pre, patterns: [a]}, handler: outside, priority: 9}, \
         {checkpoint_id: two, trigger: {type: action_pre, patterns: [a]}, handler: second, priority: 5}";
    let mut bench = bench(two, table(&["outside", "second"]));
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    bench.returns(json!({"continue": true, "inject_context": ["tips"]}));
    bench.returns(json!({"continue": false}));
    bench.denied(reply_id);
    assert!(bench.engine.sessions()[0].contexts.is_empty());
}

#[test]
fn no_extension_is_called_for_a_refused_session() {
    let first = "{checkpoint_id: g, trigger: {type: session_start}, handler: outside}";
    let mut before = bench(first, table(&["outside"]));
    before.start("s-1");
    before.returns(json!({"continue": false, "reason": "not you"}));
    let other = atlas(
        "actions: [{action_id: a}]\ncheckpoints: [{checkpoint_id: g, \
         trigger: {type: session_start}, handler: outside}]\n",
    );
    let (engine, _) = Engine::restore(
        atlases_of(&[&other]),
        Box::new(CountedIds::starting_at(1000)),
        before.persisted_state(),
        BTreeSet::new(),
        before.now,
    )
    .unwrap();
    let mut bench = EngineBench::with(engine);
    bench.engine.set_extensions(table(&["outside"]));
    let reply_id = bench.request("s-1", "a", json!({}));
    assert!(bench.denied(reply_id).reason.contains("not you"));
    assert_eq!(bench.calls(), []);
}
