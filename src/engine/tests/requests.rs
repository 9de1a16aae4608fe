//! Tests of action requests, and of the gates in their way.

use super::*;

// covers B17, B18
#[test]
fn an_acme_session_waits_at_its_onboarding_gate() {
    let mut bench = EngineBench::acme();
    let start = bench.start("s-1");
    let Reply::Agent(AgentReply::Started(started)) = bench.reply(start) else {
        panic!()
    };
    assert_eq!(started.held, ["c-1".parse().unwrap()]);
    let held = bench.held("c-1");
    assert_eq!(held.gates[0].origin.id(), "onboarding");
    assert_eq!(held.deadline, held.opened_at.plus(Duration::from_mins(5)));
    assert_eq!(bench.records(), ["session_started", "checkpoint_triggered"]);
}

#[test]
fn a_request_waits_behind_a_pending_start_gate() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    let get = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert!(bench.waits(get));
    assert_eq!(bench.held_ids(), ["c-1"], "nobody is asked about it before");
    bench.pass("c-1");
    bench.allowed(get);
}

#[test]
fn contexts_of_the_start_gate_reach_the_agent_once() {
    let ids = |injected: &Injected| -> Vec<_> {
        let contexts = injected.contexts.iter();
        contexts.map(|c| c.context_id.clone()).collect()
    };
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    bench.pass("c-1");
    let first = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    let injected = bench.payloads("context_injected")[0]["context_ids"].clone();
    assert_eq!(json!(ids(&bench.allowed(first).injected)), injected);
    let second = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert_eq!(bench.allowed(second).injected, Injected::default());

    let mut bench = EngineBench::acme();
    bench.start("s-1");
    bench.pass("c-1");
    let again = bench.start("s-1");
    let Reply::Agent(AgentReply::Started(started)) = bench.reply(again) else {
        panic!()
    };
    assert_eq!(json!(ids(&started.injected)), injected);
}

// covers B14
#[test]
fn passing_the_onboarding_unlocks_and_injects() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    let lacks = |bench: &EngineBench| {
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
            "checkpoint_passed",
            "checkpoint_completed",
        ]
    );
    let passed = &bench.payloads("checkpoint_passed")[0];
    assert_eq!(
        passed,
        &json!({
            "checkpoint_id": "onboarding", "unlocked_capabilities": ["basic-support"],
            "injected_contexts": ["intro-context", "policy-summary"],
            "passed_by": "op-1", "approval_method": "console", "request_hash": passed["request_hash"],
            "justification": "Do you agree to ACME's terms of service?: yes", "justification_source": "answers",
        })
    );
}

#[test]
fn a_refused_session_may_not_act() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    let before = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    let refusal = bench.refuse("c-1", "");
    assert_eq!(bench.outcome(refusal), HeldOutcome::Denied);
    let after = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    assert_eq!(bench.denied(before).code, DenyCode::Refused);
    assert_eq!(bench.denied(after).code, DenyCode::Refused);
    assert!(bench.held_ids().is_empty());
}

#[test]
fn an_expired_start_gate_is_raised_again_with_the_next_request() {
    let mut bench = EngineBench::acme();
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

// covers B5
#[test]
fn a_deletion_is_held_at_every_gate_that_applies() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({"ids": [1]}));
    assert!(bench.waits(delete));
    let held = bench.held("c-2");
    let gates: Vec<_> = held
        .gates
        .iter()
        .map(|gate| (gate.origin.id(), gate.origin.kind()))
        .collect();
    assert_eq!(
        gates,
        [
            ("admin-gate", "capability_gate"),
            ("delete-confirm", "action_pre"),
            ("high-risk-gate", "risk_threshold"),
            ("require-admin-approval", "approval"),
        ]
    );
    assert_eq!(
        held.gates[0].why,
        "needs the capability `admin-support`, which is locked"
    );
    assert_eq!(
        held.gates[1].why,
        "`ticket.delete` matches the rule `*.delete`"
    );
    assert_eq!(
        held.gates[2].why,
        "detected risk is high (fires at high and above)"
    );
    bench.pass("c-2");
    bench.allowed(delete);
    // The capability stays unlocked; the other gates are raised again.
    let again = bench.request("s-1", "ticket.delete", json!({"ids": [2]}));
    assert!(bench.waits(again));
    assert_eq!(bench.held("c-3").gates.len(), 3);
}

#[test]
fn an_action_without_gates_runs_at_once() {
    let mut bench = EngineBench::in_acme("s-1");
    let get = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    bench.allowed(get);
    let sync = bench
        .drafts()
        .skip(6)
        .any(|d| d.durability == crate::trace::event::Durability::Sync);
    assert!(!sync, "an allowed low-risk action waits for no disk");
}

#[test]
fn parameters_that_break_the_schema_are_denied() {
    let mut bench = EngineBench::in_acme("s-1");
    for params in [json!({}), json!({"ticket_id": 7}), json!(null)] {
        let get = bench.request("s-1", "ticket.get", params);
        assert_eq!(bench.denied(get).code, DenyCode::Parameters);
    }
    assert!(
        bench.denied(ReplyId(4)).reason.contains("/ticket_id"),
        "{:?}",
        bench.denied(ReplyId(4))
    );
}

#[test]
fn an_action_that_no_atlas_knows_is_denied() {
    let mut bench = EngineBench::in_acme("s-1");
    let refund = bench.request("s-1", "payment.refund", json!({}));
    assert_eq!(bench.denied(refund).code, DenyCode::UnknownAction);
    let mut bare = EngineBench::new(&[]);
    bare.start("s-1");
    let anything = bare.request("s-1", "ticket.get", json!({}));
    assert_eq!(
        bare.denied(anything).reason,
        "no Atlas is loaded, so nothing is allowed"
    );
}

#[test]
fn a_deny_policy_is_final_and_holds_nothing() {
    let body = "
actions: [{action_id: db.drop, risk_tier: critical}]
checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: ['db.*']}, mode: blocking}]
policies:
  - {policy_id: approve-it, type: requires_approval, actions: ['db.*']}
  - {policy_id: never, type: deny, actions: ['*.drop'], reason: not here}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let drop = bench.request("s-1", "db.drop", json!({}));
    assert_eq!(
        bench.denied(drop).reason,
        "policy `never` denies `db.drop`: not here"
    );
    assert!(bench.held_ids().is_empty());
    assert_eq!(bench.payloads("policy_checked")[0]["decision"], "deny");
    assert_eq!(bench.payloads("action_blocked")[0]["policy_id"], "never");
}

#[test]
fn a_locked_capability_denies_and_names_the_unlocking_gate() {
    let body = "
capabilities: [{capability_id: admin, actions: ['admin.*']}]
checkpoints:
  - checkpoint_id: promote
    trigger: {type: action_pre, patterns: ['promote']}
    mode: blocking
    unlock_capabilities: [admin]
    deny_actions: ['admin.wipe']
  - checkpoint_id: retire
    trigger: {type: action_pre, patterns: ['retire']}
    mode: blocking
    lock_capabilities: [admin]
actions: [{action_id: promote}, {action_id: retire}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let early = bench.request("s-1", "admin.show", json!({}));
    assert_eq!(bench.denied(early).code, DenyCode::CapabilityLocked);
    assert_eq!(
        bench.denied(early).help.as_deref(),
        Some("to unlock the capability, pass `promote`")
    );

    bench.request("s-1", "promote", json!({}));
    bench.pass("c-1");
    let now = bench.request("s-1", "admin.show", json!({}));
    bench.allowed(now);
    let wipe = bench.request("s-1", "admin.wipe", json!({}));
    assert_eq!(bench.denied(wipe).code, DenyCode::DeniedAction);

    // A gate that is passed after a lock lifts the lock.
    bench.request("s-1", "retire", json!({}));
    bench.pass("c-2");
    let locked = bench.request("s-1", "admin.show", json!({}));
    assert_eq!(bench.denied(locked).code, DenyCode::CapabilityLocked);
    bench.request("s-1", "promote", json!({}));
    bench.pass("c-3");
    let late = bench.request("s-1", "admin.show", json!({}));
    bench.allowed(late);
}

#[test]
fn a_lock_set_meanwhile_denies_a_held_request() {
    let body = "
capabilities: [{capability_id: admin, actions: ['admin.*']}]
checkpoints:
  - {checkpoint_id: a, trigger: {type: action_pre, patterns: ['admin.show']}, mode: blocking}
  - checkpoint_id: b
    trigger: {type: action_pre, patterns: [leave]}
    mode: blocking
    lock_capabilities: [admin]
actions: [{action_id: leave}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let show = bench.request("s-1", "admin.show", json!({}));
    bench.request("s-1", "leave", json!({}));
    bench.pass("c-2");
    let decision = bench.pass("c-1");
    assert_eq!(bench.outcome(decision), HeldOutcome::Denied);
    assert_eq!(bench.denied(show).code, DenyCode::CapabilityLocked);
}

// covers B5
#[test]
fn advisory_checkpoints_take_effect_and_observational_ones_only_record() {
    let body = "
capabilities: [{capability_id: extra, actions: [extra.use]}]
context_blocks: [{context_id: tips, content: take care, inject_mode: on_demand}]
checkpoints:
  - checkpoint_id: advise
    trigger: {type: action_pre, patterns: [work]}
    guidance: {content: slowly}
    inject_contexts: [tips]
    unlock_capabilities: [extra]
  - checkpoint_id: watch
    trigger: {type: action_pre, patterns: [watched]}
    mode: observational
    guidance: {content: never seen}
    deny_actions: [watched]
actions: [{action_id: work}, {action_id: watched}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let work = bench.request("s-1", "work", json!({}));
    let injected = &bench.allowed(work).injected;
    assert_eq!(injected.contexts[0].content, "take care");
    assert_eq!(injected.guidance[0].block.content, "slowly");
    let extra = bench.request("s-1", "extra.use", json!({}));
    bench.allowed(extra);
    // A context is injected once per session.
    let again = bench.request("s-1", "work", json!({}));
    assert!(bench.allowed(again).injected.contexts.is_empty());

    for _ in 0..2 {
        let watched = bench.request("s-1", "watched", json!({}));
        assert_eq!(bench.allowed(watched).injected, Injected::default());
    }
    let modes: Vec<_> = bench.payloads("checkpoint_triggered");
    assert_eq!(
        modes
            .iter()
            .filter(|p| p["mode"] == "observational")
            .count(),
        2
    );
}

#[test]
fn a_default_of_deny_requires_an_allow_policy() {
    let body = "
default_decision: deny
actions: [{action_id: a}, {action_id: b}, {action_id: c}]
policies:
  - {policy_id: ok, type: allow, actions: [a]}
  - {policy_id: ask, type: requires_approval, actions: [b]}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let a = bench.request("s-1", "a", json!({}));
    bench.allowed(a);
    let b = bench.request("s-1", "b", json!({}));
    assert!(bench.waits(b));
    let c = bench.request("s-1", "c", json!({}));
    assert_eq!(bench.denied(c).code, DenyCode::Policy);
}

#[test]
fn a_declared_tier_wins_over_the_detected_one() {
    let body = "
actions: [{action_id: cache.delete, risk_tier: low}, {action_id: hello, risk_tier: critical}]
checkpoints: [{checkpoint_id: g, trigger: {type: risk_threshold, min_tier: high}, mode: blocking}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let delete = bench.request("s-1", "cache.delete", json!({}));
    bench.allowed(delete);
    let hello = bench.request("s-1", "hello", json!({}));
    assert!(bench.waits(hello));
    assert_eq!(bench.payloads("risk_detected")[0]["risk_tier"], "critical");
}

#[test]
fn malformed_requests_are_denied() {
    let mut bench = EngineBench::in_acme("s-1");
    let long = "x".repeat(300);
    for (session, action, params) in [
        ("s-1", "", json!({})),
        ("s-1", long.as_str(), json!({})),
        ("s-1", "ticket.get", json!([1])),
        ("s-1", "ticket.get", json!("x")),
        ("s-9", "ticket.get", json!({})),
    ] {
        let reply_id = bench.request(session, action, params);
        let code = bench.denied(reply_id).code;
        assert!(
            matches!(
                code,
                DenyCode::BadRequest | DenyCode::Session | DenyCode::Ended
            ),
            "{code:?}"
        );
    }
}

#[test]
fn only_a_run_that_was_allowed_can_be_completed_and_only_once() {
    let mut bench = EngineBench::in_acme("s-1");
    let get = bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    let execution = bench.allowed(get).execution.clone();
    let completed = |execution: &crate::base::id::ExecutionId| ActionCompletion {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        execution: execution.clone(),
        result: Ok("done".to_owned()),
    };
    bench.advance(2);
    let first =
        bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, completed(&execution)));
    assert_eq!(
        bench.reply(first),
        &Reply::Agent(AgentReply::Completed(Injected::default()))
    );
    assert_eq!(
        bench.payloads("action_completed"),
        [json!({
            "action_type": "ticket.get", "success": true, "duration_ms": 2000,
            "result_summary": "done",
        })]
    );
    let second =
        bench.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, completed(&execution)));
    assert_eq!(bench.denied(second).code, DenyCode::BadRequest);
    assert_eq!(bench.payloads("error_occurred").len(), 1);
}

// covers T29
#[test]
fn records_belong_to_the_span_tree_of_their_operation() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    let drafts: Vec<_> = bench.drafts().collect();
    let (started, attempted, checked) = (drafts[0], drafts[5], drafts[6]);
    assert_eq!(started.payload.event_type(), "session_started");
    assert_eq!(started.parent_span_id, None);
    assert_eq!(attempted.payload.event_type(), "action_attempted");
    assert_eq!(attempted.parent_span_id, Some(started.span_id.clone()));
    assert_ne!(attempted.trace_id, started.trace_id);
    assert_eq!(checked.payload.event_type(), "policy_checked");
    assert_eq!(checked.parent_span_id, Some(attempted.span_id.clone()));
    assert_eq!(checked.trace_id, attempted.trace_id);
}

// covers T4
#[test]
fn ending_a_session_withdraws_its_requests_and_records_a_summary() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({}));
    bench.advance(5);
    let end = bench.end("s-1");
    assert!(
        matches!(bench.reply(end), Reply::Agent(AgentReply::Ended(last)) if last.contexts.len() == 2)
    );
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
    assert_eq!(bench.denied(act).code, DenyCode::Ended);
}

#[test]
fn a_session_belongs_to_the_agent_that_started_it() {
    let mut bench = EngineBench::in_acme("s-1");
    let again = bench.start("s-1");
    assert!(matches!(
        bench.reply(again),
        Reply::Agent(AgentReply::Started(_))
    ));
    let start = StartSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        agent: "other".to_owned(),
        agent_version: None,
        intent: None,
        owner: None,
    };
    let stolen = bench.reply_id(|reply_id| EngineCommand::StartSession(reply_id, start));
    assert_eq!(bench.denied(stolen).code, DenyCode::Session);
    assert_eq!(bench.payloads("session_started").len(), 1);
}

#[test]
fn a_caller_that_left_at_the_start_gate_runs_nothing() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    let gone = bench.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-1");
    assert!(bench.waits(gone));
    assert_eq!(bench.engine.sessions()[0].actions, 0);
}

#[test]
fn an_access_gate_does_not_open_a_capability_locked_by_a_checkpoint() {
    let body = "
capabilities: [{capability_id: admin, actions: ['admin.*']}]
checkpoints:
  - checkpoint_id: gate
    trigger: {type: capability_access, capability_ids: [admin]}
    mode: blocking
  - checkpoint_id: retire
    trigger: {type: action_pre, patterns: [retire]}
    lock_capabilities: [admin]
actions: [{action_id: retire}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let retire = bench.request("s-1", "retire", json!({}));
    bench.allowed(retire);
    let show = bench.request("s-1", "admin.show", json!({}));
    assert_eq!(bench.denied(show).code, DenyCode::CapabilityLocked);
    assert!(bench.held_ids().is_empty());
}
