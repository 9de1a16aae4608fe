//! Sessions: their start, their gates, their end.

use super::*;

#[test]
fn a_request_behind_a_pending_session_gate_does_not_run() {
    let mut bench = Bench::acme();
    bench.start("s-1");
    let get = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert!(bench.waits(get));
    assert_eq!(bench.held_ids(), ["c-1"], "nobody is asked about it before");
    bench.pass("c-1");
    bench.allowed(get);
}

#[test]
fn what_the_start_gate_gives_reaches_the_agent_once() {
    let ids = |given: &Given| -> Vec<_> {
        let contexts = given.contexts.iter();
        contexts.map(|c| c.context_id.clone()).collect()
    };
    let mut bench = Bench::acme();
    bench.start("s-1");
    bench.pass("c-1");
    let injected = bench.payloads("context_injected")[0]["context_ids"].clone();
    let first = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert_eq!(json!(ids(&bench.allowed(first).given)), injected);
    let second = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert_eq!(bench.allowed(second).given, Given::default());

    let mut bench = Bench::acme();
    bench.start("s-1");
    bench.pass("c-1");
    let again = bench.start("s-1");
    let Reply::Started(started) = bench.reply(again) else {
        panic!()
    };
    assert_eq!(json!(ids(&started.given)), injected);
}

// covers B14
#[test]
fn passing_the_onboarding_unlocks_and_injects() {
    let mut bench = Bench::acme();
    bench.start("s-1");
    let lacks = |bench: &Bench| {
        let atlas = &bench.engine.atlases()[0];
        bench.engine.sessions()[0].lacks(atlas, &atlas.capabilities[0])
    };
    assert!(lacks(&bench));
    bench.pass("c-1");
    assert!(!lacks(&bench));
    assert_eq!(
        bench.records()[2..],
        [
            "checkpoint_response",
            "context_injected",
            "checkpoint_passed",
            "checkpoint_completed",
        ]
    );
    let passed = &bench.payloads("checkpoint_passed")[0];
    assert_eq!(
        passed,
        &json!({
            "checkpoint_id": "onboarding",
            "unlocked_capabilities": ["basic-support"],
            "injected_contexts": ["intro-context", "policy-summary"],
            "passed_by": "op-1",
        })
    );
}

#[test]
fn a_session_that_was_refused_may_not_act() {
    let mut bench = Bench::acme();
    bench.start("s-1");
    let before = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    let refusal = bench.refuse("c-1", "");
    assert_eq!(bench.outcome(refusal), Outcome::Denied);
    let after = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert_eq!(bench.denied(before).code, DenyCode::Refused);
    assert_eq!(bench.denied(after).code, DenyCode::Refused);
    assert!(bench.held_ids().is_empty());
}

#[test]
fn a_session_whose_gate_expired_is_asked_again_when_it_wants_to_act() {
    let mut bench = Bench::acme();
    bench.start("s-1");
    let waiting = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    bench.advance(300);
    bench.wake();
    assert_eq!(bench.denied(waiting).code, DenyCode::Expired);
    let again = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert!(bench.waits(again));
    bench.pass("c-2");
    bench.allowed(again);
}

// covers T4
#[test]
fn ending_a_session_withdraws_what_it_asked_and_sums_it_up() {
    let mut bench = Bench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({}));
    bench.advance(5);
    let end = bench.end("s-1");
    assert_eq!(bench.reply(end), &Reply::Ended);
    assert_eq!(bench.denied(delete).code, DenyCode::Withdrawn);
    assert!(bench.held_ids().is_empty());
    let blocked = bench.payloads("checkpoint_blocked");
    assert!(
        blocked.iter().all(|p| p["outcome"] == "withdrawn"),
        "{blocked:?}"
    );
    let ended = &bench.payloads("session_ended")[0];
    assert_eq!(ended["event_count"], bench.records().len());
    assert_eq!(ended["duration_ms"], 5000);

    let again = bench.start("s-1");
    assert_eq!(bench.denied(again).reason, "session `s-1` has ended");
    let act = bench.request("s-1", "ticket.get", json!({}));
    assert_eq!(bench.denied(act).code, DenyCode::Session);
}

#[test]
fn a_session_belongs_to_the_agent_that_started_it() {
    let mut bench = Bench::in_acme("s-1");
    let again = bench.start("s-1");
    assert!(matches!(bench.reply(again), Reply::Started(_)));
    let start = StartSession {
        session: "s-1".parse().unwrap(),
        agent: "other".to_owned(),
        agent_version: None,
        intent: None,
    };
    let stolen = bench.ask(|ask| Command::StartSession(ask, start));
    assert_eq!(bench.denied(stolen).code, DenyCode::Session);
    assert_eq!(bench.payloads("session_started").len(), 1);
}

#[test]
fn a_runaway_session_is_denied_not_queued_without_end() {
    let mut bench = Bench::in_acme("s-1");
    let asks: Vec<_> = (0..70)
        .map(|n| bench.request("s-1", "ticket.delete", json!({"n": n})))
        .collect();
    assert_eq!(bench.held_ids().len(), 64);
    assert_eq!(bench.denied(asks[69]).code, DenyCode::Overload);
}
