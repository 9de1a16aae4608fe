//! Tests of limits and conditions.

use super::*;

fn limited(policy: &str) -> EngineBench {
    let body = format!(
        "actions: [{{action_id: pay}}, {{action_id: look}}]\n\
         policies: [{{policy_id: p, actions: [pay], {policy}}}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    bench
}

#[test]
fn a_rate_limit_counts_runs_in_a_moving_window() {
    let mut bench = limited("type: rate_limit, max_calls: 2, window_seconds: 60");
    for _ in 0..2 {
        let reply_id = bench.request("s-1", "pay", json!({}));
        bench.allowed(reply_id);
        bench.advance(10);
    }
    let third = bench.request("s-1", "pay", json!({}));
    assert_eq!(bench.denied(third).code, DenyCode::Limit);
    let other = bench.request("s-1", "look", json!({}));
    bench.allowed(other);
    bench.advance(41);
    let later = bench.request("s-1", "pay", json!({}));
    bench.allowed(later);
    let again = bench.request("s-1", "pay", json!({}));
    assert_eq!(
        bench.denied(again).code,
        DenyCode::Limit,
        "only one of the two had left the window"
    );
}

#[test]
fn a_denied_request_does_not_use_up_a_limit() {
    let mut bench = limited("type: rate_limit, max_calls: 1, window_seconds: 60");
    for _ in 0..5 {
        let bad = bench.request("s-1", "pay", json!([]));
        bench.denied(bad);
    }
    let reply_id = bench.request("s-1", "pay", json!({}));
    bench.allowed(reply_id);
}

#[test]
fn a_limit_spent_while_a_request_is_held_denies_it() {
    let body = "
actions: [{action_id: pay}]
policies:
  - {policy_id: ask, type: requires_approval, actions: [pay]}
  - {policy_id: once, type: rate_limit, actions: [pay], max_calls: 1, window_seconds: 600}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let first = bench.request("s-1", "pay", json!({"n": 1}));
    let second = bench.request("s-1", "pay", json!({"n": 2}));
    bench.pass("c-1");
    bench.allowed(first);
    let decision = bench.pass("c-2");
    assert_eq!(bench.outcome(decision), HeldOutcome::Denied);
    assert_eq!(bench.denied(second).code, DenyCode::Limit);
}

#[test]
fn limits_count_per_session_or_for_all_sessions() {
    for (scope, code) in [("session", None), ("all", Some(DenyCode::Limit))] {
        let policy = format!("type: rate_limit, max_calls: 1, window_seconds: 60, scope: {scope}");
        let mut bench = limited(&policy);
        bench.start("s-2");
        let first = bench.request("s-1", "pay", json!({}));
        bench.allowed(first);
        let second = bench.request("s-2", "pay", json!({}));
        match code {
            None => drop(bench.allowed(second).clone()),
            Some(code) => assert_eq!(bench.denied(second).code, code),
        }
    }
}

#[test]
fn a_budget_is_reduced_by_the_cost_of_each_run() {
    let mut bench = limited("type: budget, limit: 100, cost: amount");
    let first = bench.request("s-1", "pay", json!({"amount": 60}));
    bench.allowed(first);
    let over = bench.request("s-1", "pay", json!({"amount": 40.5}));
    assert_eq!(bench.denied(over).code, DenyCode::Limit);
    let exact = bench.request("s-1", "pay", json!({"amount": 40}));
    bench.allowed(exact);
    for hidden in [json!({}), json!({"amount": "1"}), json!({"amount": -50})] {
        let reply_id = bench.request("s-1", "pay", hidden.clone());
        assert_eq!(bench.denied(reply_id).code, DenyCode::Limit, "{hidden}");
    }
}

#[test]
fn usage_of_limits_survives_a_restart() {
    let text = atlas(
        "
actions: [{action_id: pay}]
policies: [{policy_id: p, type: budget, actions: [pay], limit: 2}]
",
    );
    let mut bench = EngineBench::new(&[&text]);
    bench.start("s-1");
    for _ in 0..2 {
        let reply_id = bench.request("s-1", "pay", json!({}));
        bench.allowed(reply_id);
    }
    let mut next = super::restarts::restart(&bench, &[&text]);
    let third = next.request("s-1", "pay", json!({}));
    assert_eq!(next.denied(third).code, DenyCode::Limit);
}

#[test]
fn a_condition_narrows_a_policy_and_a_checkpoint() {
    let body = "
actions: [{action_id: pay}]
checkpoints:
  - checkpoint_id: large
    trigger: {type: action_pre, patterns: [pay]}
    mode: blocking
    when: {path: params.amount, gt: 1000}
policies:
  - policy_id: never-abroad
    type: deny
    actions: [pay]
    when: {not: {path: params.country, in: [DE, FR]}}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let small = bench.request("s-1", "pay", json!({"amount": 750, "country": "DE"}));
    bench.allowed(small);
    let large = bench.request("s-1", "pay", json!({"amount": 1001, "country": "DE"}));
    assert!(bench.waits(large));
    let abroad = bench.request("s-1", "pay", json!({"amount": 1, "country": "US"}));
    assert_eq!(bench.denied(abroad).code, DenyCode::Policy);
}

#[test]
fn a_missing_parameter_does_not_bypass_a_gate() {
    let body = "
actions: [{action_id: pay}]
checkpoints:
  - checkpoint_id: large
    trigger: {type: action_pre, patterns: [pay]}
    mode: blocking
    when: {path: params.amount, gt: 1000}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    for params in [
        json!({}),
        json!({"amount": "5000"}),
        json!({"amount": null}),
    ] {
        let reply_id = bench.request("s-1", "pay", params.clone());
        assert!(bench.waits(reply_id), "{params}");
    }
}

#[test]
fn an_allow_policy_applies_only_when_its_condition_surely_holds() {
    let body = "
default_decision: deny
actions: [{action_id: pay}]
policies: [{policy_id: small, type: allow, actions: [pay], when: {path: params.amount, lt: 10}}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let small = bench.request("s-1", "pay", json!({"amount": 9}));
    bench.allowed(small);
    for params in [json!({}), json!({"amount": "9"}), json!({"amount": 10})] {
        let reply_id = bench.request("s-1", "pay", params.clone());
        assert_eq!(bench.denied(reply_id).code, DenyCode::Policy, "{params}");
    }
}

#[test]
fn a_capability_gate_whose_condition_does_not_hold_leaves_the_capability_locked() {
    let body = "
capabilities: [{capability_id: admin, actions: [wipe]}]
checkpoints:
  - checkpoint_id: gate
    trigger: {type: capability_access, capability_ids: [admin]}
    mode: blocking
    unlock_capabilities: [admin]
    when: {path: params.dry_run, eq: true}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let wet = bench.request("s-1", "wipe", json!({"dry_run": false}));
    assert_eq!(bench.denied(wet).code, DenyCode::CapabilityLocked);
    let dry = bench.request("s-1", "wipe", json!({"dry_run": true}));
    assert!(bench.waits(dry));
}

#[test]
fn a_fired_start_gate_stays_required_after_its_condition_is_over() {
    let body = "
actions: [{action_id: a}]
checkpoints:
  - checkpoint_id: early
    trigger: {type: session_start}
    mode: blocking
    timeout_seconds: 30
    when: {path: session.age_seconds, lt: 60}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench.advance(120);
    bench.wake();
    let late = bench.request("s-1", "a", json!({}));
    assert!(bench.waits(late));
    bench.pass("c-2");
    bench.allowed(late);
}

#[test]
fn a_start_gate_with_a_false_condition_is_not_raised() {
    let body = "
actions: [{action_id: a}]
checkpoints:
  - checkpoint_id: strangers
    trigger: {type: session_start}
    mode: blocking
    when: {path: session.agent, ne: bot}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    bench.allowed(reply_id);
}

// covers A26
#[test]
fn the_risk_mode_selects_the_tier_detection() {
    let body = |mode: &str| {
        atlas(&format!(
            "risk_config: {{mode: {mode}}}\n\
             actions: [{{action_id: ticket.delete}}, {{action_id: calm.delete, risk_tier: low}}]\n\
             checkpoints: [{{checkpoint_id: g, mode: blocking, trigger: {{type: risk_threshold}}}}]\n"
        ))
    };
    let mut words = EngineBench::new(&[&body("detect")]);
    words.start("s-1");
    let held = words.request("s-1", "ticket.delete", json!({}));
    assert!(words.waits(held));
    let declared = words.request("s-1", "calm.delete", json!({}));
    words.allowed(declared);
    let mut beginning = EngineBench::new(&[&body("first_match")]);
    beginning.start("s-1");
    let run = beginning.request("s-1", "ticket.delete", json!({}));
    beginning.allowed(run);
}

#[test]
fn a_run_leaves_the_rate_limit_window_exactly_at_its_end() {
    let mut bench = limited("type: rate_limit, max_calls: 1, window_seconds: 60");
    let first = bench.request("s-1", "pay", json!({}));
    bench.allowed(first);
    bench.advance(59);
    let early = bench.request("s-1", "pay", json!({}));
    assert_eq!(bench.denied(early).code, DenyCode::Limit);
    bench.advance(1);
    let due = bench.request("s-1", "pay", json!({}));
    bench.allowed(due);
}

#[test]
fn an_unknown_action_with_an_approval_policy_has_one_gate() {
    let body = "
unknown_actions: approve
policies: [{policy_id: tools, type: requires_approval, actions: ['mcp.*']}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench.request("s-1", "mcp.git.push", json!({}));
    let held = bench.held("c-1");
    let gates: Vec<_> = held.gates.iter().map(|gate| gate.origin.id()).collect();
    assert_eq!(gates, ["tools"]);
}
