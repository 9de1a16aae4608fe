//! Tests of steps of the wall clock: the remaining time of every deadline, lifetime and window stays
//! unchanged.

use super::*;
use crate::base::clock_step::ClockStep;

const HOUR: i64 = 3600;

/// Sets the wall clock while no time passes, and reports it to the engine.
fn set_clock(bench: &mut EngineBench, seconds: i64) {
    let step = ClockStep::from_micros(seconds * 1_000_000);
    bench.now = step.apply(bench.now);
    bench.handle(EngineCommand::ClockMoved(step));
}

fn entries(bench: &EngineBench) -> Vec<Value> {
    let entered = bench.effects.iter().filter_map(|effect| match effect {
        Effect::AppendToLog(payload) => Some(payload.fields().into()),
        _ => None,
    });
    entered.collect()
}

#[test]
fn a_clock_step_keeps_the_remaining_time_of_a_gate() {
    for seconds in [-HOUR, HOUR, 10 * 24 * HOUR] {
        let mut bench = EngineBench::in_acme("s-1");
        let reply_id = bench.request("s-1", "ticket.delete", json!({}));
        let whole = bench.held("c-2").deadline.since(bench.now);
        bench.advance(10);
        set_clock(&mut bench, seconds);
        let held = bench.held("c-2");
        assert_eq!(
            held.deadline.since(bench.now) + Duration::from_secs(10),
            whole
        );
        assert_eq!(bench.now.since(held.opened_at), Duration::from_secs(10));
        let set = Effect::SetDeadline(held.id.clone(), held.deadline);
        assert!(bench.effects.contains(&set));
        // The persisted state agrees: a restart changes nothing.
        let next = super::restarts::restart(&bench, &[ACME]);
        assert_eq!(next.engine.held(), bench.engine.held());
        bench.wake();
        assert!(bench.waits(reply_id), "{seconds}");
        bench.advance(whole.as_secs() - 11);
        bench.wake();
        assert!(bench.waits(reply_id), "{seconds}");
        bench.advance(1);
        bench.wake();
        let denied = bench.denied(reply_id);
        assert_eq!(denied.code, DenyCode::Expired);
        let told = format!("within {} s", whole.as_secs());
        assert!(denied.reason.contains(&told), "{}", denied.reason);
    }
}

#[test]
fn a_clock_step_is_logged_with_direction_and_size() {
    let mut bench = EngineBench::in_acme("s-1");
    set_clock(&mut bench, -600);
    let told = "the system clock was set back by 10 min";
    assert_eq!(
        entries(&bench),
        [json!({"moved_ms": -600_000, "what": told})]
    );
}

#[test]
fn a_clock_step_keeps_the_remaining_lifetime_of_a_permit() {
    for seconds in [-HOUR, HOUR] {
        for (wait, allowed) in [
            (PERMIT_LIFETIME.as_secs() - 1, true),
            (PERMIT_LIFETIME.as_secs(), false),
        ] {
            let mut bench = EngineBench::in_acme("s-1");
            let gone = bench.request("s-1", "ticket.delete", json!({}));
            bench.handle(EngineCommand::CallerDisconnected(gone));
            bench.pass("c-2");
            set_clock(&mut bench, seconds);
            bench.advance(wait);
            let retry = bench.request("s-1", "ticket.delete", json!({}));
            assert_eq!(!bench.waits(retry), allowed, "{seconds} {wait}");
        }
    }
}

#[test]
fn a_clock_step_keeps_the_window_of_a_rate_limit() {
    let limited = atlas(
        "default_decision: allow\nactions: [{action_id: look, risk_tier: low}]\n\
         policies: [{policy_id: few, type: rate_limit, actions: [look], max_calls: 1, window_seconds: 60}]\n",
    );
    for seconds in [-HOUR, HOUR] {
        let mut bench = EngineBench::new(&[&limited]);
        bench.start("s-1");
        let first = bench.request("s-1", "look", json!({}));
        bench.allowed(first);
        set_clock(&mut bench, seconds);
        bench.advance(59);
        let second = bench.request("s-1", "look", json!({}));
        bench.denied(second);
        bench.advance(1);
        let third = bench.request("s-1", "look", json!({}));
        bench.allowed(third);
    }
}

#[test]
fn a_clock_step_keeps_the_window_of_a_limit_with_unknown_usage() {
    let limited = atlas(
        "default_decision: allow\nactions: [{action_id: look, risk_tier: low}]\n\
         policies: [{policy_id: few, type: rate_limit, actions: [look], max_calls: 1, window_seconds: 60, \
         scope: all}]\n",
    );
    let restored = |kept: Vec<StateChange>, now| {
        let ids = Box::new(CountedIds::starting_at(1000));
        let atlases = atlases_of(&[&limited]);
        let restored = Engine::restore(atlases, ids, kept, BTreeSet::new(), now);
        EngineBench::with(restored.unwrap().0)
    };
    for seconds in [-HOUR, HOUR] {
        let now = EngineBench::new(&[&limited]).now;
        let mut bench = restored(vec![Engine::usage_unknown(now)], now);
        bench.start("s-1");
        set_clock(&mut bench, seconds);
        bench.advance(59);
        let early = bench.request("s-1", "look", json!({}));
        let denied = bench.denied(early);
        assert_eq!(denied.code, DenyCode::Limit);
        assert!(denied.reason.contains("60 s from"), "{}", denied.reason);
        // The persisted state agrees: a restart changes nothing.
        let mut next = restored(bench.persisted_state(), bench.now);
        next.now = bench.now;
        let again = next.request("s-1", "look", json!({}));
        assert_eq!(next.denied(again).code, DenyCode::Limit);
        bench.advance(1);
        let late = bench.request("s-1", "look", json!({}));
        bench.allowed(late);
    }
}

#[test]
fn a_clock_step_moves_every_timestamp_of_a_session() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    let id: SessionId = "s-1".parse().unwrap();
    let now = bench.now;
    let session = bench.engine.state.sessions.get_mut(&id).unwrap();
    session.contexts.insert("a/c".to_owned(), now);
    session.interval_marks.push(session::IntervalMark {
        key: ("a".to_owned(), "b".to_owned()),
        at: now,
        actions: 0,
    });
    set_clock(&mut bench, HOUR);
    let session = &bench.engine.state.sessions[&id];
    let moments = [
        session.started_at,
        session.contexts["a/c"],
        session.interval_marks[0].at,
    ];
    let running = session.running.values().map(|running| running.since);
    for moment in moments.into_iter().chain(running) {
        assert_eq!(moment, bench.now);
    }
    let kept = bench.persisted_state();
    let kept = kept.iter().find(|change| change.kind == StateKind::Session);
    let body = kept.unwrap().body.as_ref().unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["started_at"], json!(bench.now));
}

#[test]
fn a_clock_set_back_during_downtime_gives_a_gate_at_most_its_full_time() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({}));
    let whole = bench.held("c-2").deadline.since(bench.now);
    let gone = bench.request("s-1", "user.ban", json!({"user": "x"}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-3");
    bench.now = Timestamp::from_micros(bench.now.micros() - HOUR * 1_000_000);
    let mut next = super::restarts::restart(&bench, &[ACME]);
    assert_eq!(next.held("c-2").deadline, next.now.plus(whole));
    let started = next.engine.sessions()[0].started_at;
    assert_eq!(started, next.now);
    next.advance(PERMIT_LIFETIME.as_secs());
    let retry = next.request("s-1", "user.ban", json!({"user": "x"}));
    assert!(next.waits(retry), "the permit is over");
    next.wake();
    assert!(!next.held_ids().contains(&"c-2".to_owned()));
}
