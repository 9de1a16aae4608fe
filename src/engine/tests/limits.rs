//! Tests of the limits on held and running requests of one agent.

use super::*;

#[test]
fn held_requests_of_a_session_are_limited() {
    let mut bench = EngineBench::in_acme("s-1");
    let reply_ids: Vec<_> = (0..70)
        .map(|n| bench.request("s-1", "ticket.delete", json!({"n": n})))
        .collect();
    assert_eq!(bench.held_ids().len(), 64);
    assert_eq!(bench.denied(reply_ids[69]).code, DenyCode::Overload);
}

#[test]
fn repetitions_of_a_call_are_limited() {
    let mut bench = EngineBench::in_acme("s-1");
    let reply_ids: Vec<_> = (0..70)
        .map(|_| bench.call("call-1", "ticket.delete", json!({})))
        .collect();
    for early in &reply_ids[..6] {
        assert_eq!(bench.denied(*early).code, DenyCode::Withdrawn);
    }
    assert!(reply_ids[6..].iter().all(|reply_id| bench.waits(*reply_id)));
    bench.pass("c-2");
    bench.allowed(reply_ids[69]);
}

#[test]
fn uncompleted_runs_are_limited() {
    let mut bench = EngineBench::in_acme("s-1");
    let get =
        |bench: &mut EngineBench| bench.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    let first = get(&mut bench);
    for _ in 0..300 {
        get(&mut bench);
    }
    let last = get(&mut bench);
    assert_eq!(bench.engine.sessions()[0].running.len(), 256);
    for (reply_id, known) in [(first, false), (last, true)] {
        let completed = ActionCompletion {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: "s-1".parse().unwrap(),
            execution: bench.allowed(reply_id).execution.clone(),
            result: Ok(String::new()),
        };
        let done = bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, completed));
        assert_eq!(
            bench.reply(done) == &Reply::Agent(AgentReply::Completed(Injected::default())),
            known
        );
    }
}

#[test]
fn a_session_keeps_its_last_256_running_actions_and_forgets_the_257th_oldest() {
    use crate::base::limits::MAX_RUNNING_PER_SESSION;
    let mut bench = EngineBench::in_acme("s-1");
    let mut reply_ids = Vec::new();
    let mut get = |bench: &mut EngineBench| {
        let reply_id = bench.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
        reply_ids.push(bench.allowed(reply_id).execution.clone());
        reply_ids.clone()
    };
    let mut runs = Vec::new();
    for _ in 0..MAX_RUNNING_PER_SESSION {
        runs = get(&mut bench);
    }
    let running = |bench: &EngineBench| bench.engine.sessions()[0].running.clone();
    assert_eq!(running(&bench).len(), MAX_RUNNING_PER_SESSION);
    assert!(running(&bench).contains_key(&runs[0]));
    runs = get(&mut bench);
    assert_eq!(running(&bench).len(), MAX_RUNNING_PER_SESSION);
    assert!(!running(&bench).contains_key(&runs[0]));
    assert!(running(&bench).contains_key(&runs[1]));
    assert!(running(&bench).contains_key(&runs[256]));
}

#[test]
fn a_denial_because_of_a_full_queue_is_recorded() {
    use crate::base::limits::MAX_HELD;
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({"n": 0}));
    let gate = "c-2".parse().unwrap();
    let mut waiting = bench.engine.state.held.get(&gate).unwrap().clone();
    let mut held = bench.held("c-2");
    held.session = "s-9".parse().unwrap();
    held.request_hash = Digest::ZERO;
    for n in 0..MAX_HELD {
        held.id = HeldRequestId::from_number(1_000_000 + n as u64);
        waiting.held = Arc::new(held.clone());
        bench.engine.state.held.insert(waiting.clone());
    }
    let reply_id = bench.request("s-1", "ticket.delete", json!({"n": 1}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::Overload);
    assert_eq!(bench.payloads("action_blocked")[0]["policy_id"], "overload");
}

#[test]
fn held_requests_are_limited_by_bytes() {
    use crate::base::limits::MAX_HELD_BYTES;
    let mut bench = EngineBench::in_acme("s-1");
    let free = bench.engine.state.held.bytes();
    bench.request("s-1", "ticket.delete", json!({"n": "x".repeat(1000)}));
    let held = bench.engine.state.held.bytes() - free;
    assert!((1000..1100).contains(&held), "{held}");
    bench.refuse("c-2", "no");
    assert_eq!(bench.engine.state.held.bytes(), free);
    bench.engine.state.held.add_bytes(MAX_HELD_BYTES);
    let reply_id = bench.request("s-1", "ticket.delete", json!({"n": 1}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::Overload);
    // A request that needs no operator still runs.
    let reply_id = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert!(matches!(
        bench.reply(reply_id),
        Reply::Agent(AgentReply::Allowed(_))
    ));
}

#[test]
fn texts_of_agents_are_limited() {
    let mut bench = EngineBench::acme();
    let long = "x".repeat(70_000);
    let start = |agent: &str, intent: Option<&String>| StartSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        agent: agent.to_owned(),
        agent_version: None,
        intent: intent.cloned(),
        owner: None,
    };
    for start in [start(&long, None), start("bot", Some(&long))] {
        let reply_id = bench.reply_id(|reply_id| EngineCommand::StartSession(reply_id, start));
        assert_eq!(bench.denied(reply_id).code, DenyCode::BadRequest);
    }
    bench.start("s-1");
    bench.pass("c-1");
    let get = bench.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    let completed = ActionCompletion {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        execution: bench.allowed(get).execution.clone(),
        result: Ok(long.clone()),
    };
    let done = bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, completed));
    assert_eq!(bench.denied(done).code, DenyCode::BadRequest);
    let end = EndSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        status: FinalStatus::Completed,
        summary: Some(long),
    };
    let ended = bench.reply_id(|reply_id| EngineCommand::EndSession(reply_id, end));
    assert_eq!(bench.denied(ended).code, DenyCode::BadRequest);
    assert!(bench.drafts().all(|d| d.payload.fields().len() < 100));
}

#[test]
fn parameters_that_are_too_large_are_denied() {
    let mut bench = EngineBench::in_acme("s-1");
    let huge = "x".repeat(10 * 1024 * 1024);
    let reply_id = bench.request("s-1", "ticket.get", json!({"ticket_id": huge}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::BadRequest);
}

#[test]
fn parked_requests_are_limited_in_number() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    let reply_ids: Vec<_> = (0..65)
        .map(|n| bench.request("s-1", "ticket.get", json!({"ticket_id": n.to_string()})))
        .collect();
    assert!(bench.waits(reply_ids[63]));
    assert_eq!(bench.denied(reply_ids[64]).code, DenyCode::Overload);
    assert_eq!(bench.payloads("action_blocked").len(), 1);
}

#[test]
fn an_advisory_checkpoint_grants_nothing_until_the_gate_is_passed() {
    let body = "
capabilities: [{capability_id: admin, actions: [wipe]}]
checkpoints:
  - checkpoint_id: gate
    trigger: {type: capability_access, capability_ids: [admin]}
    mode: blocking
  - checkpoint_id: advice
    trigger: {type: action_pre, patterns: [wipe]}
    unlock_capabilities: [admin]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let first = bench.request("s-1", "wipe", json!({"n": 1}));
    bench.refuse("c-1", "no");
    bench.denied(first);
    let second = bench.request("s-1", "wipe", json!({"n": 2}));
    assert!(bench.waits(second), "the first try must not have opened it");
    bench.pass("c-2");
    bench.allowed(second);
    let third = bench.request("s-1", "wipe", json!({"n": 3}));
    bench.allowed(third);
}
