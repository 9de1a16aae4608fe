//! Tests of denials that an operator may overrule, for exactly one request.

use super::*;

const OVERRIDABLE: &str = "\
actions: [{action_id: pay, risk_tier: low}]
policies:
  - {policy_id: no-pay, type: deny, actions: [pay], reason: closed, override: true}
";

fn bench(more: &str) -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(&format!("{OVERRIDABLE}{more}"))]);
    bench.start("s-1");
    bench
}

#[test]
fn an_overruled_denial_lets_the_identical_request_run_once() {
    let mut bench = bench("");
    let first = bench.request("s-1", "pay", json!({"amount": 1}));
    let denied = bench.denied(first).clone();
    assert_eq!(denied.code, DenyCode::Policy);
    assert_eq!(denied.gate, Some("c-1".parse().unwrap()));
    assert_eq!(
        bench.payloads("action_blocked")[0]["override_available"],
        json!(true)
    );
    // A repeated request does not wait and does not pass.
    let again = bench.request("s-1", "pay", json!({"amount": 1}));
    assert_eq!(bench.denied(again).code, DenyCode::Policy);
    assert_eq!(bench.held_ids(), ["c-1"]);

    bench.pass("c-1");
    let record = &bench.payloads("policy_override")[0];
    assert_eq!(record["policy_id"], json!("no-pay"));
    assert_eq!(record["approver"], json!("op-1"));
    let other = bench.request("s-1", "pay", json!({"amount": 2}));
    assert_eq!(
        bench.denied(other).code,
        DenyCode::Policy,
        "another request"
    );
    let retry = bench.request("s-1", "pay", json!({"amount": 1}));
    bench.allowed(retry);
    let spent = bench.request("s-1", "pay", json!({"amount": 1}));
    assert_eq!(
        bench.denied(spent).code,
        DenyCode::Policy,
        "a permit is good for one run"
    );
}

#[test]
fn a_refused_or_expired_override_changes_nothing() {
    let mut bench = bench("");
    bench.request("s-1", "pay", json!({}));
    bench.refuse("c-1", "no");
    let reply_id = bench.request("s-1", "pay", json!({}));
    bench.denied(reply_id);
    bench.pass("c-2");
    bench.advance(PERMIT_LIFETIME.as_secs());
    let late = bench.request("s-1", "pay", json!({}));
    bench.denied(late);
}

#[test]
fn a_final_denial_cannot_be_overruled_together_with_another() {
    for more in [
        "  - {policy_id: never, type: deny, actions: ['*']}\n",
        "  - {policy_id: few, type: budget, actions: [pay], limit: 1, cost: amount}\n",
    ] {
        let mut bench = bench(more);
        let reply_id = bench.request("s-1", "pay", json!({"amount": 9}));
        bench.denied(reply_id);
        assert_eq!(bench.held_ids(), Vec::<String>::new(), "{more}");
        assert_eq!(
            bench.payloads("action_blocked")[0]["override_available"],
            json!(false)
        );
    }
}

#[test]
fn gates_and_an_override_are_decided_together() {
    let mut bench = bench(
        "checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: [pay]}, mode: blocking}]\n",
    );
    bench.request("s-1", "pay", json!({}));
    let held = bench.held("c-1");
    let origins: Vec<_> = held.gates.iter().map(|gate| gate.origin.id()).collect();
    assert_eq!(origins, ["g", "no-pay"]);
    let again = bench.request("s-1", "pay", json!({}));
    assert_eq!(bench.denied(again).code, DenyCode::Policy);
    bench.pass("c-1");
    let retry = bench.request("s-1", "pay", json!({}));
    bench.allowed(retry);
}

#[test]
fn a_permit_from_an_override_survives_a_restart() {
    let mut bench = bench("");
    bench.request("s-1", "pay", json!({}));
    bench.pass("c-1");
    let (engine, _) = Engine::restore(
        atlases_of(&[&atlas(OVERRIDABLE)]),
        Box::new(CountedIds::starting_at(1000)),
        bench.persisted_state(),
        BTreeSet::new(),
        bench.now,
    )
    .unwrap();
    let mut bench = EngineBench::with(engine);
    let retry = bench.request("s-1", "pay", json!({}));
    bench.allowed(retry);
}

#[test]
fn a_permit_opens_only_the_gates_that_were_passed() {
    let body = "actions: [{action_id: pay, risk_tier: low}, {action_id: look, risk_tier: low}]\n\
        checkpoints:\n\
        - {checkpoint_id: one, trigger: {type: action_pre, patterns: [pay]}, mode: blocking}\n\
        - {checkpoint_id: two, trigger: {type: action_pre, patterns: [pay]}, mode: blocking, \
           when: {path: session.actions, gte: 1}}\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let left = bench.request("s-1", "pay", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(left));
    bench.pass("c-1");
    bench.request("s-1", "look", json!({}));
    let retry = bench.request("s-1", "pay", json!({}));
    assert!(bench.waits(retry), "nobody has passed `two`");
    assert_eq!(bench.held("c-2").gates.len(), 2);
    bench.pass("c-2");
    bench.allowed(retry);
    let spent = bench.request("s-1", "pay", json!({}));
    assert!(bench.waits(spent), "the first permit is gone");
}

#[test]
fn an_overruled_denial_is_asked_again_with_a_new_gate() {
    let more = "checkpoints:\n\
        - {checkpoint_id: two, trigger: {type: action_pre, patterns: [pay]}, mode: blocking, \
           when: {path: session.age_seconds, gte: 60}}\n";
    let mut bench = bench(more);
    bench.request("s-1", "pay", json!({}));
    bench.pass("c-1");
    bench.advance(61);
    let retry = bench.request("s-1", "pay", json!({}));
    assert!(bench.waits(retry));
    let kinds: Vec<_> = bench
        .held("c-2")
        .gates
        .iter()
        .map(|gate| gate.origin.kind().to_owned())
        .collect();
    assert_eq!(kinds, ["action_pre", "override"]);
    bench.pass("c-2");
    bench.allowed(retry);
}

#[test]
fn one_session_cannot_fill_the_queue_with_denied_requests() {
    use crate::base::limits::MAX_HELD_PER_SESSION;
    let mut bench = bench("");
    for amount in 0..MAX_HELD_PER_SESSION + 3 {
        let reply_id = bench.request("s-1", "pay", json!({ "amount": amount }));
        assert_eq!(bench.denied(reply_id).code, DenyCode::Policy);
    }
    assert_eq!(bench.held_ids().len(), MAX_HELD_PER_SESSION);
}

// covers T13
#[test]
fn every_attempt_at_an_open_override_gate_is_judged_and_recorded() {
    let mut bench = bench("");
    for attempt in 1..=3 {
        let reply_id = bench.request("s-1", "pay", json!({}));
        assert_eq!(bench.denied(reply_id).gate, Some("c-1".parse().unwrap()));
        let attempts = bench.payloads("action_attempted");
        assert_eq!(attempts.len(), attempt);
        assert_eq!(attempts[attempt - 1]["policy_checked"], json!(true));
        let checked = bench.payloads("policy_checked");
        assert_eq!(checked.len(), attempt);
        assert_eq!(checked[attempt - 1]["decision"], json!("deny"));
        assert_eq!(checked[attempt - 1]["policy_id"], json!("no-pay"));
        assert_eq!(bench.payloads("action_blocked").len(), attempt);
    }
    assert_eq!(bench.held_ids(), ["c-1"]);
}

#[test]
fn a_repeated_attempt_meets_the_verdict_of_now() {
    let body = "actions: [{action_id: pay, risk_tier: low}]\npolicies:\n\
        - {policy_id: no-pay, type: deny, actions: [pay], reason: closed, override: true, \
           when: {path: session.age_seconds, lt: 60}}\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let closed = bench.request("s-1", "pay", json!({}));
    assert!(bench.denied(closed).reason.ends_with("closed"));
    bench.advance(61);
    let open = bench.request("s-1", "pay", json!({}));
    bench.allowed(open);
    assert_eq!(
        bench.held_ids(),
        Vec::<String>::new(),
        "nothing is left to overrule"
    );
    let ended = &bench.payloads("checkpoint_blocked")[0];
    assert_eq!(ended["outcome"], json!("voided"));
}

#[test]
fn a_final_denial_at_an_open_override_gate_offers_nothing_to_overrule() {
    let mut bench = bench(
        "  - {policy_id: never, type: deny, actions: [pay], reason: late, \
         when: {path: session.age_seconds, gte: 60}}\n",
    );
    bench.request("s-1", "pay", json!({}));
    bench.advance(61);
    let late = bench.request("s-1", "pay", json!({}));
    assert_eq!(bench.denied(late).gate, None);
    let blocked = bench.payloads("action_blocked");
    assert_eq!(blocked[1]["override_available"], json!(false));
}

#[test]
fn a_reason_that_is_too_short_to_overrule_is_recorded_and_overrules_nothing() {
    let mut bench = bench("");
    bench.request("s-1", "pay", json!({}));
    let thin = bench.answer("c-1", json!([{"justification": "nineteen characters"}]));
    assert!(matches!(
        bench.reply(thin),
        Reply::Operator(OperatorReply::Invalid(_))
    ));
    let refused = &bench.payloads("checkpoint_response")[0];
    assert_eq!(refused["validation_result"], json!("invalid"));
    assert_eq!(
        refused["answers"],
        json!({"justification": "nineteen characters"})
    );
    assert_eq!(refused["answered_by"], json!("op-1"));
    assert_eq!(bench.held_ids(), ["c-1"]);
    let enough = bench.answer("c-1", json!([{"justification": "twenty characters ok"}]));
    assert_eq!(bench.outcome(enough), HeldOutcome::Passed);
}
