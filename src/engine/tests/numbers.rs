//! Tests of numbers in requests, conditions, limits and answers: they are compared by value, exactly.

use super::*;

const GATE: &str = "
atlas_version: '1.0'
atlas_id: org.test.numbers
version: 1.0.0
name: Numbers
description: A gate above a limit
default_decision: allow
actions: [{action_id: pay, name: Pay, risk_tier: low}]
checkpoints:
  - checkpoint_id: big
    name: Big
    mode: blocking
    trigger: {type: action_pre, patterns: [pay]}
    when: {path: params.amount, gt: 9007199254740992}
    questions: [{question_id: q, question: Why?, response_type: text}]
";

#[test]
fn a_condition_compares_large_integers_exactly() {
    let mut bench = EngineBench::new(&[GATE]);
    bench.start("s-1");
    for (amount, is_held) in [
        (json!(9_007_199_254_740_992_u64), false),
        (json!(9_007_199_254_740_993_u64), true),
        (json!(u64::MAX), true),
        (json!(i64::MIN), false),
        (json!(-9_007_199_254_740_993_i64), false),
    ] {
        let reply_id = bench.request("s-1", "pay", json!({ "amount": amount }));
        assert_eq!(bench.waits(reply_id), is_held, "{amount}");
    }
}

#[test]
fn a_condition_compares_an_integer_with_a_fraction_exactly() {
    let atlas = GATE.replace("gt: 9007199254740992", "gt: 9007199254740992.0");
    let mut bench = EngineBench::new(&[&atlas]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "pay", json!({"amount": 9_007_199_254_740_993_u64}));
    assert!(bench.waits(reply_id), "2^53 + 1 is more than 2^53");
}

#[test]
fn a_budget_counts_every_cost_or_refuses_it() {
    let atlas = "
atlas_version: '1.0'
atlas_id: org.test.budget
version: 1.0.0
name: Budget
description: A budget at the limit of exact counting
default_decision: allow
actions: [{action_id: pay, name: Pay, risk_tier: low}]
policies:
  - {policy_id: p, type: budget, actions: [pay], limit: 9007199254740992, cost: amount}
";
    let mut bench = EngineBench::new(&[atlas]);
    bench.start("s-1");
    let all = bench.request("s-1", "pay", json!({"amount": 9_007_199_254_740_991_u64}));
    bench.allowed(all);
    let last = bench.request("s-1", "pay", json!({"amount": 1}));
    bench.allowed(last);
    for amount in [json!(1), json!(0.5), json!(9_007_199_254_740_993_u64)] {
        let more = bench.request("s-1", "pay", json!({ "amount": amount }));
        assert!(
            matches!(bench.reply(more), Reply::Agent(AgentReply::Denied(_))),
            "{amount}: {:?}",
            bench.reply(more)
        );
    }
}

#[test]
fn a_small_cost_is_not_lost_in_a_large_sum() {
    let atlas = "
atlas_version: '1.0'
atlas_id: org.test.budget
version: 1.0.0
name: Budget
description: A budget
default_decision: allow
actions: [{action_id: pay, name: Pay, risk_tier: low}]
policies:
  - {policy_id: p, type: budget, actions: [pay], limit: 9007199254740992, cost: amount}
";
    let mut bench = EngineBench::new(&[atlas]);
    bench.start("s-1");
    let most = bench.request("s-1", "pay", json!({"amount": 9_007_199_254_740_000_u64}));
    bench.allowed(most);
    for amount in [json!(0.25), json!(991.75)] {
        let reply_id = bench.request("s-1", "pay", json!({ "amount": amount }));
        bench.allowed(reply_id);
    }
    let more = bench.request("s-1", "pay", json!({"amount": 0.25}));
    assert!(
        matches!(bench.reply(more), Reply::Agent(AgentReply::Denied(_))),
        "{:?}",
        bench.reply(more)
    );
}

// covers T10
#[test]
fn requests_that_hash_differently_never_read_the_same_on_record() {
    let mut bench = EngineBench::new(&[GATE]);
    bench.start("s-1");
    let sent = [
        (json!({"amount": 1}), json!({"amount": 1}), json!(null)),
        (
            json!({"amount": 1.0}),
            json!({"amount": "1.0"}),
            json!(["action_params.amount"]),
        ),
        (
            json!({"amount": "1.0"}),
            json!({"amount": "1.0"}),
            json!(null),
        ),
        (json!({"amount": 1.5}), json!({"amount": 1.5}), json!(null)),
        (
            json!({"amount": [0, -0.0, {"deep": 2.0}]}),
            json!({"amount": [0, "-0.0", {"deep": "2.0"}]}),
            json!(["action_params.amount[1]", "action_params.amount[2].deep"]),
        ),
    ];
    let mut seen = BTreeSet::new();
    let mut hashes = BTreeSet::new();
    for (at, (params, recorded, listed)) in sent.iter().enumerate() {
        bench.request("s-1", "pay", params.clone());
        let record = bench.payloads("action_attempted")[at].clone();
        assert_eq!(&record["action_params"], recorded);
        assert_eq!(&record["numbers_as_text"], listed);
        let session = "s-1".parse().unwrap();
        hashes.insert(held::request_hash(&session, "pay", params));
        let told = [&record["action_params"], &record["numbers_as_text"]];
        seen.insert(crate::base::canonical_json::canonical(&told));
    }
    assert_eq!((hashes.len(), seen.len()), (sent.len(), sent.len()));
}
