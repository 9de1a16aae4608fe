//! Tests of identical requests: one approval releases exactly one run.

use super::*;

const HELD: &str = "actions: [{action_id: pay, risk_tier: low}, {action_id: other, risk_tier: low}]\n\
    policies: [{policy_id: ask, type: requires_approval, actions: [pay]}]\n";

fn bench() -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(HELD)]);
    bench.start("s-1");
    bench
}

fn pay(bench: &mut EngineBench) -> ReplyId {
    bench.request("s-1", "pay", json!({"amount": 5}))
}

#[test]
fn two_identical_requests_with_waiting_callers_are_two_decisions() {
    let mut bench = bench();
    let (one, two) = (pay(&mut bench), pay(&mut bench));
    assert_eq!(bench.held_ids(), ["c-1", "c-2"]);
    bench.pass("c-1");
    bench.allowed(one);
    assert!(bench.waits(two), "the second has no decision yet");
    bench.refuse("c-2", "once is enough");
    bench.denied(two);
    assert_eq!(bench.engine.sessions()[0].actions, 1);
}

#[test]
fn a_retry_joins_when_the_earlier_caller_is_gone() {
    let mut bench = bench();
    let gone = pay(&mut bench);
    bench.handle(EngineCommand::CallerDisconnected(gone));
    let retry = pay(&mut bench);
    assert_eq!(bench.held_ids(), ["c-1"]);
    assert_eq!(bench.held("c-1").joined, 1);
    bench.pass("c-1");
    bench.allowed(retry);
    assert!(bench.waits(gone));
}

#[test]
fn two_approvals_after_the_callers_left_are_two_permits() {
    let mut bench = bench();
    let (one, two) = (pay(&mut bench), pay(&mut bench));
    bench.handle(EngineCommand::CallerDisconnected(one));
    bench.handle(EngineCommand::CallerDisconnected(two));
    bench.pass("c-1");
    bench.pass("c-2");
    let kept = bench.persisted_state();
    let permits = kept
        .iter()
        .filter(|change| change.kind == StateKind::Permit);
    assert_eq!(permits.count(), 2, "each is kept");
    for _ in 0..2 {
        let reply_id = pay(&mut bench);
        bench.allowed(reply_id);
    }
    let third = pay(&mut bench);
    assert!(bench.waits(third), "no permit is left");
    assert!(
        bench
            .persisted_state()
            .iter()
            .all(|change| change.kind != StateKind::Permit)
    );
}

#[test]
fn identical_requests_behind_a_start_gate_are_two_requests() {
    let body = format!(
        "{HELD}checkpoints: [{{checkpoint_id: terms, trigger: {{type: session_start}}, mode: blocking}}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    let (one, two) = (pay(&mut bench), pay(&mut bench));
    bench.pass("c-1");
    assert_eq!(bench.held_ids(), ["c-2", "c-3"]);
    bench.pass("c-2");
    bench.allowed(one);
    assert!(bench.waits(two));
}

#[test]
fn parked_requests_are_limited_by_bytes() {
    use crate::base::limits::{MAX_HELD_BYTES, MAX_HELD_PER_SESSION, MAX_PARAMS_BYTES};
    let body = format!(
        "{HELD}checkpoints: [{{checkpoint_id: terms, trigger: {{type: session_start}}, mode: blocking}}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    let text = "x".repeat(MAX_PARAMS_BYTES - 100);
    let mut refused = None;
    for _ in 0..MAX_HELD_PER_SESSION {
        let reply_id = bench.request("s-1", "pay", json!({ "text": text }));
        if !bench.waits(reply_id) {
            refused = Some(reply_id);
            break;
        }
    }
    let refused = refused.expect("every one of them waits");
    assert_eq!(bench.denied(refused).code, DenyCode::Overload);
    assert!(bench.denied(refused).reason.contains("MiB"));
    let _ = MAX_HELD_BYTES;
    // A caller that leaves makes room.
    bench.handle(EngineCommand::CallerDisconnected(ReplyId(2)));
    let reply_id = bench.request("s-1", "pay", json!({ "text": text }));
    assert!(bench.waits(reply_id));
}

#[test]
fn a_repeated_call_is_one_run_and_another_call_is_a_second_run() {
    let mut bench = bench();
    let first = bench.call("call-1", "pay", json!({}));
    let other = bench.call("call-2", "pay", json!({}));
    let again = bench.call("call-1", "pay", json!({}));
    assert_eq!(bench.held_ids(), ["c-1", "c-2"]);
    bench.pass("c-1");
    bench.allowed(again);
    assert_eq!(bench.denied(first).code, DenyCode::Withdrawn);
    assert!(bench.waits(other));
    assert_eq!(bench.engine.sessions()[0].actions, 1);
}

#[test]
fn queue_indexes_and_byte_counts_follow_the_held_requests() {
    let mut bench = bench();
    let one = bench.request("s-1", "pay", json!({"amount": 1}));
    bench.request("s-1", "pay", json!({"amount": 22}));
    let session: SessionId = "s-1".parse().unwrap();
    let queue = |bench: &EngineBench| {
        let held = &bench.engine.state.held;
        (held.count_of(&session), held.len(), held.bytes())
    };
    assert_eq!(queue(&bench), (2, 2, 25));
    bench.pass("c-2");
    assert_eq!(queue(&bench), (1, 1, 12));
    bench.handle(EngineCommand::CallerDisconnected(one));
    bench.end("s-1");
    assert_eq!(queue(&bench), (0, 0, 0));
}

#[test]
fn a_retry_uses_a_permit_before_it_joins_a_held_request() {
    let mut bench = bench();
    let (one, two) = (pay(&mut bench), pay(&mut bench));
    bench.handle(EngineCommand::CallerDisconnected(one));
    bench.handle(EngineCommand::CallerDisconnected(two));
    bench.pass("c-1");
    let retry = pay(&mut bench);
    bench.allowed(retry);
    let again = pay(&mut bench);
    assert!(bench.waits(again));
    assert_eq!(bench.held_ids(), ["c-2"], "it joins the other one");
    assert_eq!(bench.held("c-2").joined, 1);
}
