//! Tests of restarts.

use super::*;

/// Restores the engine as a new process would, at the same time.
pub(super) fn restart(bench: &EngineBench, atlases: &[&str]) -> EngineBench {
    let ids = Box::new(CountedIds::default());
    let restored = Engine::restore(
        atlases_of(atlases),
        ids,
        bench.persisted_state(),
        BTreeSet::new(),
        bench.now,
    );
    let (engine, effects) = restored.unwrap();
    let mut next = EngineBench::with(engine);
    next.now = bench.now;
    next.reply_count = 1000;
    next.effects = bench.effects.clone();
    next.effects.extend(effects);
    next
}

#[test]
fn held_requests_keep_their_identifiers_after_a_restart() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({"id": 1}));
    let mut next = restart(&bench, &[ACME]);
    assert_eq!(next.engine.held(), bench.engine.held());
    assert_eq!(next.engine.sessions(), bench.engine.sessions());
    let set = |e: &&Effect| matches!(e, Effect::SetDeadline(gate, _) if gate.as_str() == "c-2");
    assert_eq!(next.effects.iter().filter(set).count(), 2, "set again");
    // The next gate gets a new number.
    next.request("s-1", "ticket.delete", json!({"id": 2}));
    assert_eq!(next.held_ids(), ["c-2", "c-3"]);
}

#[test]
fn a_retry_after_a_restart_joins_its_held_request() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({"id": 1}));
    let mut next = restart(&bench, &[ACME]);
    let again = next.request("s-1", "ticket.delete", json!({"id": 1}));
    assert_eq!(next.held_ids(), ["c-2"]);
    next.pass("c-2");
    next.allowed(again);
}

#[test]
fn requests_that_expired_during_downtime_are_denied_at_start() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({}));
    bench.advance(1000);
    let next = restart(&bench, &[ACME]);
    assert!(next.held_ids().is_empty());
    assert_eq!(next.payloads("checkpoint_blocked")[0]["outcome"], "expired");
}

#[test]
fn permits_survive_a_restart() {
    let mut bench = EngineBench::in_acme("s-1");
    let gone = bench.request("s-1", "ticket.delete", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-2");
    let mut next = restart(&bench, &[ACME]);
    let retry = next.request("s-1", "ticket.delete", json!({}));
    next.allowed(retry);
    let mut after = restart(&next, &[ACME]);
    let again = after.request("s-1", "ticket.delete", json!({}));
    assert!(
        after.waits(again),
        "a permit that was used does not come back"
    );
}

#[test]
fn under_another_atlas_a_held_request_can_be_denied_but_not_passed() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({}));
    let changed = ACME.replace("min_length: 20", "min_length: 30");
    let mut next = restart(&bench, &[&changed]);
    let pass = next.pass("c-2");
    assert_eq!(
        next.reply(pass),
        &Reply::Operator(OperatorReply::Refused(DecisionRefusal::AtlasChanged))
    );
    let deny = next.refuse("c-2", "asked under old rules");
    assert_eq!(next.outcome(deny), HeldOutcome::Denied);
}

#[test]
fn a_repeated_request_under_another_atlas_is_judged_anew() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({}));
    let changed = ACME.replace("min_length: 20", "min_length: 30");
    let mut next = restart(&bench, &[&changed]);
    let again = next.request("s-1", "ticket.delete", json!({}));
    next.pass("c-3");
    assert_eq!(next.held_ids(), ["c-4"]);
    assert_eq!(next.payloads("checkpoint_blocked")[0]["outcome"], "voided");
    next.pass("c-4");
    next.allowed(again);
}

#[test]
fn a_session_admitted_under_another_atlas_waits_at_the_new_start_gate() {
    // Admitted without a gate, or under other questions: neither counts here.
    let open = atlas("actions: [{action_id: ticket.get}]\n");
    let asked = ACME.replace("min_length: 20", "min_length: 30");
    for before in [open, asked] {
        let mut bench = EngineBench::new(&[&before]);
        bench.start("s-1");
        if !bench.held_ids().is_empty() {
            bench.pass("c-1");
        }
        for resumes in [false, true] {
            let mut next = restart(&bench, &[ACME]);
            if resumes {
                let start = next.start("s-1");
                let Reply::Agent(AgentReply::Started(started)) = next.reply(start) else {
                    panic!()
                };
                assert_eq!(started.held.len(), 1);
            }
            let get = next.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
            assert!(next.waits(get));
            let gates = next.held_ids();
            next.pass(gates[0].as_str());
            next.allowed(get);
            // Passing the gate once is enough.
            let more = next.request("s-1", "ticket.get", json!({"ticket_id": "y"}));
            next.allowed(more);
        }
    }
}

#[test]
fn capabilities_unlocked_under_another_atlas_are_locked_again() {
    let body = "
capabilities: [{capability_id: admin, actions: ['admin.*']}]
checkpoints:
  - checkpoint_id: promote
    trigger: {type: action_pre, patterns: [promote]}
    mode: blocking
    unlock_capabilities: [admin]
actions: [{action_id: promote}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench.request("s-1", "promote", json!({}));
    bench.pass("c-1");
    let stricter = format!("{}description: stricter\n", atlas(body));
    let mut next = restart(&bench, &[&stricter]);
    let show = next.request("s-1", "admin.show", json!({}));
    assert_eq!(next.denied(show).code, DenyCode::CapabilityLocked);
}

#[test]
fn a_refused_session_stays_refused_under_another_atlas() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    bench.refuse("c-1", "");
    let mut next = restart(&bench, &[&atlas("unknown_actions: allow\n")]);
    let get = next.request("s-1", "ticket.get", json!({}));
    assert_eq!(next.denied(get).code, DenyCode::Refused);
}

#[test]
fn a_session_acts_at_once_when_the_new_atlas_has_no_start_gate() {
    for expires in [false, true] {
        let mut bench = EngineBench::acme();
        bench.start("s-1");
        if expires {
            bench.advance(300);
            bench.wake();
        }
        let mut next = restart(&bench, &[&atlas("actions: [{action_id: a}]\n")]);
        let reply_id = next.request("s-1", "a", json!({}));
        next.allowed(reply_id);
    }
}

#[test]
fn a_lost_start_gate_is_raised_again() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    bench
        .effects
        .retain(|e| !matches!(e, Effect::Persist(c) if c.kind == StateKind::Held));
    let mut next = restart(&bench, &[ACME]);
    let get = next.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    assert_eq!(next.held_ids(), ["c-2"]);
    next.pass("c-2");
    next.allowed(get);
}

#[test]
fn a_permit_given_under_another_atlas_is_void() {
    let mut bench = EngineBench::in_acme("s-1");
    let gone = bench.request("s-1", "ticket.delete", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-2");
    let changed = ACME.replace("min_length: 20", "min_length: 30");
    let mut next = restart(&bench, &[&changed]);
    let retry = next.request("s-1", "ticket.delete", json!({}));
    assert!(next.waits(retry));
}

#[test]
fn a_start_gate_of_another_atlas_is_raised_anew() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    let changed = ACME.replace("min_length: 20", "min_length: 30");
    let mut next = restart(&bench, &[&changed]);
    let get = next.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    assert_eq!(next.held_ids(), ["c-2"]);
    next.pass("c-2");
    next.allowed(get);
}

#[test]
fn unreadable_state_stops_the_start() {
    let bench = EngineBench::in_acme("s-1");
    let mut kept = bench.persisted_state();
    kept.push(StateChange {
        kind: StateKind::Held,
        key: "c-9".to_owned(),
        body: Some(json!({"held": "nonsense"}).to_string()),
    });
    let ids = Box::new(CountedIds::default());
    let failed = Engine::restore(atlases_of(&[ACME]), ids, kept, BTreeSet::new(), bench.now);
    let told = failed.err().unwrap().to_string();
    assert!(
        told.starts_with("the stored `held` entry `c-9` cannot be read"),
        "{told}"
    );
}

#[test]
fn a_held_request_without_its_session_cannot_be_passed() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({}));
    bench
        .effects
        .retain(|e| !matches!(e, Effect::Persist(c) if c.kind == StateKind::Session));
    let mut next = restart(&bench, &[ACME]);
    let pass = next.pass("c-2");
    assert_eq!(next.outcome(pass), HeldOutcome::Denied);
}

/// Requests an action for a caller whose agent is denied when the connection breaks.
fn one_shot_request(bench: &mut EngineBench, delivery: DeliveryTime) -> ReplyId {
    let request = ActionRequest {
        session: "s-1".parse().unwrap(),
        action: "ticket.delete".to_owned(),
        params: json!({"id": 1}),
        deadline: None,
        resolution: None,
        call: None,
        delivery,
        on_disconnect: OnDisconnect::Denied,
    };
    bench.reply_id(|reply_id| EngineCommand::RequestAction(reply_id, request))
}

#[test]
fn request_of_a_denied_agent_is_withdrawn_after_a_restart() {
    let mut bench = EngineBench::in_acme("s-1");
    one_shot_request(&mut bench, DeliveryTime::Now);
    bench.request("s-1", "ticket.delete", json!({"id": 2}));
    let next = restart(&bench, &[ACME]);
    assert_eq!(next.held_ids(), ["c-3"]);
    let blocked = &next.payloads("checkpoint_blocked")[0];
    assert_eq!(blocked["outcome"], "withdrawn");
    let reason = blocked["reason"].as_str().unwrap();
    assert!(reason.contains("the console stopped"), "{reason}");
    let again = restart(&next, &[ACME]);
    let blocked = [&next, &again].map(|bench| bench.payloads("checkpoint_blocked").len());
    assert_eq!(blocked[0], blocked[1], "it is withdrawn once");
}

#[test]
fn request_of_a_denied_agent_is_withdrawn_with_its_last_caller() {
    let mut bench = EngineBench::in_acme("s-1");
    let gone = one_shot_request(&mut bench, DeliveryTime::Now);
    bench.handle(EngineCommand::CallerDisconnected(gone));
    assert!(bench.held_ids().is_empty());
    let again = bench.request("s-1", "ticket.delete", json!({"id": 1}));
    assert!(bench.waits(again), "nothing was permitted");
}

#[test]
fn deferred_contexts_come_with_a_later_reply_and_are_recorded_then() {
    let mut bench = EngineBench::in_acme("s-1");
    let given = bench.payloads("context_injected").len();
    let waiting = one_shot_request(&mut bench, DeliveryTime::Later);
    bench.pass("c-2");
    let allowed = bench.allowed(waiting).clone();
    assert!(allowed.injected.is_empty(), "{allowed:?}");
    assert_eq!(bench.payloads("context_injected").len(), given);
    let completed = ActionCompletion {
        delivery: DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        execution: allowed.execution,
        result: Ok(String::new()),
    };
    let done = bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, completed));
    let Reply::Agent(AgentReply::Completed(injected)) = bench.reply(done) else {
        panic!("{:?}", bench.reply(done));
    };
    assert!(!injected.is_empty());
    let names: Vec<_> = injected
        .contexts
        .iter()
        .map(|c| c.context_id.clone())
        .collect();
    let recorded = &bench.payloads("context_injected")[given..];
    assert_eq!(
        recorded.is_empty(),
        names.is_empty(),
        "{recorded:?} {names:?}"
    );
}
