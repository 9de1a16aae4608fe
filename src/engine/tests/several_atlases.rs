//! Tests of several Atlases at once, and of the verdicts of policies.

use super::*;

#[test]
fn an_atlas_does_not_unlock_a_capability_of_the_same_name_in_another() {
    let lax = "
capabilities: [{capability_id: admin-support, actions: [lax.use]}]
checkpoints:
  - checkpoint_id: open-wide
    trigger: {type: session_start}
    unlock_capabilities: [admin-support]
";
    let lax = atlas(lax).replace("atlas_id: test", "atlas_id: lax");
    let mut bench = EngineBench::new(&[&lax, ACME]);
    bench.start("s-1");
    bench.pass("c-1");
    let own = bench.request("s-1", "lax.use", json!({}));
    bench.allowed(own);
    bench.request("s-1", "ticket.delete", json!({}));
    assert_eq!(bench.held("c-2").gates[0].origin.id(), "admin-gate");
}

#[test]
fn an_atlas_that_denies_by_default_is_not_overruled_by_another() {
    let strict = "
default_decision: deny
actions: [{action_id: a}]
";
    let lax = "
actions: [{action_id: a}, {action_id: b}]
policies: [{policy_id: ok, type: allow, actions: ['*']}]
";
    let strict = atlas(strict);
    let lax = atlas(lax).replace("atlas_id: test", "atlas_id: lax");
    for atlases in [[&*strict, &*lax], [&*lax, &*strict]] {
        let mut bench = EngineBench::new(&atlases);
        bench.start("s-1");
        let a = bench.request("s-1", "a", json!({}));
        assert_eq!(bench.denied(a).code, DenyCode::Policy);
        assert_eq!(bench.payloads("policy_checked")[0]["decision"], "deny");
        // The strict Atlas does not deny an action that it does not know.
        let b = bench.request("s-1", "b", json!({}));
        bench.allowed(b);
    }
}

#[test]
fn allow_actions_of_one_atlas_do_not_overrule_the_default_deny_of_another() {
    let strict = atlas("default_decision: deny\nactions: [{action_id: a}]\n");
    let lax = "
actions: [{action_id: b}]
checkpoints:
  - checkpoint_id: open-wide
    trigger: {type: session_start}
    allow_actions: ['*']
";
    let lax = atlas(lax).replace("atlas_id: test", "atlas_id: lax");
    for atlases in [[&*strict, &*lax], [&*lax, &*strict]] {
        let mut bench = EngineBench::new(&atlases);
        bench.start("s-1");
        let a = bench.request("s-1", "a", json!({}));
        assert_eq!(bench.denied(a).code, DenyCode::Policy);
        // The other Atlas may allow an action that the strict one does not know.
        let b = bench.request("s-1", "b", json!({}));
        bench.allowed(b);
    }
}

#[test]
fn the_highest_tier_and_priority_of_several_atlases_apply() {
    let with = |id: &str, tier: &str, priority: u64| {
        let body = format!(
            "actions: [{{action_id: a, risk_tier: {tier}}}]\n\
             checkpoints:\n\
             - checkpoint_id: gate-{id}\n  trigger: {{type: action_pre, patterns: [a]}}\n  \
             mode: blocking\n  priority: {priority}\n"
        );
        atlas(&body).replace("atlas_id: test", &format!("atlas_id: {id}"))
    };
    let mut bench = EngineBench::new(&[&with("one", "low", 5), &with("two", "high", 50)]);
    bench.start("s-1");
    bench.request("s-1", "a", json!({}));
    let held = bench.held("c-1");
    assert_eq!(held.tier(), crate::atlas::document::RiskTier::High);
    let gates: Vec<_> = held.gates.iter().map(|gate| gate.origin.id()).collect();
    assert_eq!(gates, ["gate-two", "gate-one"]);
}

#[test]
fn the_policy_record_names_the_deciding_rule() {
    let verdict = |bench: &EngineBench, n: usize| {
        let checked = bench.payloads("policy_checked")[n].clone();
        (checked["policy_id"].clone(), checked["decision"].clone())
    };
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "payment.refund", json!({}));
    assert_eq!(
        verdict(&bench, 0),
        (json!("unknown_actions"), json!("deny"))
    );

    let body = "
default_decision: deny
actions: [{action_id: open}, {action_id: work}]
policies: [{policy_id: ok, type: allow, actions: [open]}]
checkpoints:
  - checkpoint_id: advise
    trigger: {type: action_pre, patterns: [open]}
    allow_actions: [work, 'unknown.*']
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench.request("s-1", "work", json!({}));
    assert_eq!(
        verdict(&bench, 0),
        (json!("default_decision"), json!("deny"))
    );
    bench.request("s-1", "open", json!({}));
    for action in ["work", "unknown.thing"] {
        let reply_id = bench.request("s-1", action, json!({}));
        bench.allowed(reply_id);
    }
    for n in [2, 3] {
        assert_eq!(verdict(&bench, n), (json!("allow_actions"), json!("allow")));
    }
}

#[test]
fn unknown_actions_can_be_allowed_or_left_to_the_operator() {
    let mut open = EngineBench::new(&[&atlas("unknown_actions: allow\n")]);
    open.start("s-1");
    let reply_id = open.request("s-1", "x.y", json!({}));
    open.allowed(reply_id);

    let mut asked = EngineBench::new(&[&atlas("unknown_actions: approve\n")]);
    asked.start("s-1");
    let reply_id = asked.request("s-1", "x.y", json!({}));
    assert!(asked.waits(reply_id));
    asked.pass("c-1");
    asked.allowed(reply_id);

    // A denial in any Atlas wins.
    let mut both = EngineBench::new(&[&atlas("unknown_actions: allow\n"), ACME]);
    both.start("s-1");
    both.pass("c-1");
    let reply_id = both.request("s-1", "x.y", json!({}));
    assert_eq!(both.denied(reply_id).code, DenyCode::UnknownAction);
}
