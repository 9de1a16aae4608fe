//! Tests of decisions by operators, and of missed deadlines.

use super::*;

// covers B19, T14, T18
#[test]
fn an_approval_records_approver_method_and_justification() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({"ids": [1]}));
    let hash = bench.held("c-2").request_hash.to_string();
    let decision = bench.answer(
        "c-2",
        json!([
            {"admin-ack": "understood"},
            {"confirm-delete": "i understand"},
            {"justify-risk": "duplicates of T-1, confirmed by mail"},
            {"justification": "the customer asked for it"},
        ]),
    );
    assert_eq!(bench.outcome(decision), HeldOutcome::Passed);
    bench.allowed(delete);
    assert_eq!(
        bench.payloads("policy_override"),
        [json!({
            "policy_id": "require-admin-approval", "action_type": "ticket.delete",
            "approver": "op-1", "approval_method": "console",
            "justification": "the customer asked for it",
            "justification_source": "operator",
            "request_hash": hash,
        })]
    );
    assert_eq!(
        bench.payloads("risk_verified"),
        [json!({
            "risk_tier": "high", "verification_method": "console", "verified_by": "op-1",
            "action_type": "ticket.delete",
            "justification": "duplicates of T-1, confirmed by mail",
            "justification_source": "operator", "request_hash": hash,
        })]
    );
    let responses = bench.payloads("checkpoint_response");
    assert_eq!(
        responses[2]["answers"],
        json!({"confirm-delete": "acknowledged"})
    );
    assert_eq!(responses[2]["validation_result"], "valid");
}

#[test]
fn the_allowed_reply_comes_after_every_record() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({}));
    bench.pass("c-2");
    let reply = bench
        .effects
        .iter()
        .position(|e| matches!(e, Effect::Reply(a, _) if *a == delete));
    let last = bench
        .effects
        .iter()
        .rposition(|e| matches!(e, Effect::Record(_)));
    assert!(reply > last, "{reply:?} {last:?}");
    let dropped = bench.effects.iter().rposition(
        |e| matches!(e, Effect::Persist(c) if c.kind == StateKind::Held && c.body.is_none()),
    );
    assert!(reply > dropped);
}

// covers B11
#[test]
fn an_invalid_answer_keeps_the_request_held_and_lists_the_problems() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({}));
    let attempt = bench.answer(
        "c-2",
        json!([
            {"admin-ack": "understood"}, {"confirm-delete": "not understood"},
            {"justify-risk": "short"}, {},
        ]),
    );
    let Reply::Operator(OperatorReply::Invalid(invalid)) = bench.reply(attempt) else {
        panic!()
    };
    assert_eq!(invalid.held.invalid_attempts, 1);
    let wrong: Vec<_> = invalid
        .problems
        .iter()
        .map(|p| (p.gate, p.question.as_str()))
        .collect();
    assert_eq!(
        wrong,
        [
            (1, "confirm-delete"),
            (2, "justify-risk"),
            (3, "justification")
        ]
    );
    assert!(bench.waits(delete));
    assert!(bench.payloads("risk_verified").is_empty());
    bench.pass("c-2");
    bench.allowed(delete);
}

#[test]
fn answering_no_to_the_terms_does_not_open_the_session() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    let get = bench.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    for said in [json!(false), json!("false"), json!("no")] {
        let attempt = bench.answer("c-1", json!([{"agree-terms": said}]));
        assert!(matches!(
            bench.reply(attempt),
            Reply::Operator(OperatorReply::Invalid(_))
        ));
    }
    assert!(bench.waits(get));
}

fn gate_with(question: &str) -> EngineBench {
    let body = format!(
        "actions: [{{action_id: a}}]\n\
         checkpoints:\n\
         - checkpoint_id: g\n  trigger: {{type: action_pre, patterns: [a]}}\n  mode: blocking\n  \
         questions: [{{question_id: q, question: why, {question}}}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    bench
}

// covers B11
#[test]
fn on_invalid_decides_the_consequence_of_an_invalid_answer() {
    let bad = json!([{"q": "x"}]);
    for (action, outcome) in [
        ("block", HeldOutcome::Denied),
        ("warn_and_continue", HeldOutcome::Passed),
        ("log_and_continue", HeldOutcome::Passed),
    ] {
        let mut bench = gate_with(&format!(
            "validation: {{min_length: 5}}, on_invalid: {action}"
        ));
        let reply_id = bench.request("s-1", "a", json!({}));
        let decision = bench.answer("c-1", bad.clone());
        assert_eq!(bench.outcome(decision), outcome, "{action}");
        assert_eq!(
            matches!(bench.reply(reply_id), Reply::Agent(AgentReply::Allowed(_))),
            outcome == HeldOutcome::Passed
        );
        let response = &bench.payloads("checkpoint_response")[0];
        assert_eq!(response["validation_result"], "invalid");
        assert_eq!(
            response["problems"],
            json!(["q: at least 5 characters (1 now)"])
        );
    }
}

#[test]
fn the_justification_is_recorded_even_if_no_question_asks_for_it() {
    let mut bench = gate_with("response_type: boolean");
    bench.request("s-1", "a", json!({}));
    let held = bench.held("c-1");
    let answers = std::collections::BTreeMap::from([("q".to_owned(), json!(true))]);
    let decide = DecisionRequest {
        gate: held.id.clone(),
        operator: "op-1".to_owned(),
        method: "console".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: Some("  asked for by mail ".to_owned()),
        ruling: Ruling::Pass {
            answers: vec![answers],
        },
    };
    let decision = bench.reply_id(|reply_id| EngineCommand::Decide(reply_id, decide));
    assert_eq!(bench.outcome(decision), HeldOutcome::Passed);
    let passed = &bench.payloads("checkpoint_passed")[0];
    assert_eq!(passed["justification"], "asked for by mail");
}

#[test]
fn too_many_retries_refuse_the_request() {
    let mut bench = gate_with("validation: {min_length: 5}, max_retries: 2");
    let reply_id = bench.request("s-1", "a", json!({}));
    for _ in 0..2 {
        let attempt = bench.answer("c-1", json!([{"q": "x"}]));
        assert!(matches!(
            bench.reply(attempt),
            Reply::Operator(OperatorReply::Invalid(_))
        ));
    }
    let last = bench.answer("c-1", json!([{"q": "x"}]));
    assert_eq!(bench.outcome(last), HeldOutcome::Denied);
    assert_eq!(bench.denied(reply_id).code, DenyCode::InvalidAnswer);
}

#[test]
fn a_gate_without_questions_asks_for_an_acknowledgment() {
    let body = "
actions: [{action_id: a}]
checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: [a]}, mode: blocking}]
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    let empty = bench.answer("c-1", json!([{}]));
    assert!(matches!(
        bench.reply(empty),
        Reply::Operator(OperatorReply::Invalid(_))
    ));
    assert!(bench.waits(reply_id));
    bench.answer("c-1", json!([{"acknowledge": "understood"}]));
    bench.allowed(reply_id);
}

#[test]
fn a_refusal_carries_its_reason_to_the_agent_and_the_record() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({}));
    let silent = bench.refuse("c-2", "  ");
    assert_eq!(
        bench.reply(silent),
        &Reply::Operator(OperatorReply::Refused(DecisionRefusal::ReasonMissing))
    );
    let refusal = bench.refuse("c-2", "wrong tenant");
    assert_eq!(bench.outcome(refusal), HeldOutcome::Denied);
    assert_eq!(bench.denied(delete).reason, "denied by op-1: wrong tenant");
    let blocked = &bench.payloads("action_blocked")[0];
    assert_eq!(blocked["reason"], "denied by op-1: wrong tenant");
    let gates = bench.payloads("checkpoint_blocked");
    assert_eq!(gates.len(), 4);
    assert!(
        gates
            .iter()
            .all(|g| g["outcome"] == "denied" && g["decided_by"] == "op-1")
    );
}

#[test]
fn a_timeout_denies_and_is_recorded_as_expired() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({}));
    bench.advance(299);
    bench.wake();
    assert!(bench.waits(delete));
    bench.advance(1);
    bench.wake();
    assert_eq!(bench.denied(delete).code, DenyCode::Expired);
    let gates = bench.payloads("checkpoint_blocked");
    assert!(
        gates
            .iter()
            .all(|g| g["outcome"] == "expired" && g.get("decided_by").is_none())
    );
}

#[test]
fn the_callers_deadline_counts_when_it_is_earlier() {
    let mut bench = EngineBench::in_acme("s-1");
    let request = ActionRequest {
        delivery: crate::engine::command::DeliveryTime::Now,
        on_disconnect: crate::engine::command::OnDisconnect::Kept,
        session: "s-1".parse().unwrap(),
        action: "ticket.delete".to_owned(),
        params: json!({}),
        deadline: Some(bench.now.plus(Duration::from_secs(20))),
        resolution: None,
        call: None,
    };
    let reply_id = bench.reply_id(|reply_id| EngineCommand::RequestAction(reply_id, request));
    bench.advance(20);
    bench.wake();
    assert_eq!(bench.denied(reply_id).code, DenyCode::Expired);
}

#[test]
fn a_late_decision_is_rejected_with_the_earlier_outcome() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({}));
    bench.advance(301);
    // Without any wake-up, the deadline still counts.
    let late = bench.pass("c-2");
    let Reply::Operator(OperatorReply::Refused(DecisionRefusal::AlreadySettled(decided))) =
        bench.reply(late)
    else {
        panic!()
    };
    assert_eq!(decided.outcome, HeldOutcome::Expired);
    assert_eq!(bench.denied(delete).code, DenyCode::Expired);
}

#[test]
fn a_second_decision_is_rejected_with_the_first_operator() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({}));
    let held = bench.held("c-2");
    bench.refuse("c-2", "no");
    let second = bench.decide(&held, Ruling::Pass { answers: vec![] });
    let Reply::Operator(OperatorReply::Refused(refused)) = bench.reply(second) else {
        panic!()
    };
    assert_eq!(refused.to_string(), "c-2 was denied at 00:00:00 by op-1");
    let never = Held {
        id: "c-99".parse().unwrap(),
        ..held
    };
    let unknown = bench.decide(
        &never,
        Ruling::Deny {
            reason: "x".to_owned(),
        },
    );
    assert!(matches!(
        bench.reply(unknown),
        Reply::Operator(OperatorReply::Refused(DecisionRefusal::NotHeld(_)))
    ));
}

#[test]
fn a_decision_about_another_request_does_not_count() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({"id": 1}));
    let mut seen = bench.held("c-2");
    seen.request_hash = Digest::of(b"what the operator saw was something else");
    let decision = bench.decide(&seen, Ruling::Pass { answers: vec![] });
    assert_eq!(
        bench.reply(decision),
        &Reply::Operator(OperatorReply::Refused(DecisionRefusal::RequestChanged))
    );
    assert!(bench.waits(delete));
}

#[test]
fn a_repeated_call_joins_and_one_approval_is_one_run() {
    let mut bench = EngineBench::in_acme("s-1");
    let first = bench.call("call-1", "ticket.delete", json!({"a": 1, "b": 2}));
    let second = bench.call("call-1", "ticket.delete", json!({"b": 2, "a": 1}));
    let other = bench.request("s-1", "ticket.delete", json!({"a": 1}));
    assert_eq!(bench.held_ids(), ["c-2", "c-3"]);
    assert_eq!(bench.held("c-2").joined, 1);
    bench.pass("c-2");
    bench.allowed(second);
    assert_eq!(bench.denied(first).code, DenyCode::Withdrawn);
    assert!(bench.waits(other));
}

#[test]
fn a_decision_after_the_caller_left_is_a_permit_for_the_identical_retry() {
    let mut bench = EngineBench::in_acme("s-1");
    let gone = bench.request("s-1", "ticket.delete", json!({"id": 1}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-2");
    assert!(bench.waits(gone), "nobody is there to be told");

    let different = bench.request("s-1", "ticket.delete", json!({"id": 2}));
    assert!(bench.waits(different));
    let retry = bench.request("s-1", "ticket.delete", json!({"id": 1}));
    bench.allowed(retry);
    let again = bench.request("s-1", "ticket.delete", json!({"id": 1}));
    assert!(bench.waits(again), "a permit is used once");
}

#[test]
fn a_permit_expires() {
    let mut bench = EngineBench::in_acme("s-1");
    let gone = bench.request("s-1", "ticket.delete", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-2");
    bench.advance(PERMIT_LIFETIME.as_secs());
    let late = bench.request("s-1", "ticket.delete", json!({}));
    assert!(bench.waits(late));
}

#[test]
fn a_permit_does_not_count_for_another_session() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.start("s-2");
    bench.pass("c-2");
    let gone = bench.request("s-1", "ticket.delete", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-3");
    let thief = bench.request("s-2", "ticket.delete", json!({}));
    assert!(bench.waits(thief));
}

#[test]
fn equal_commands_give_equal_effects() {
    let run = || {
        let mut bench = EngineBench::in_acme("s-1");
        bench.request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
        bench.request("s-1", "ticket.delete", json!({"id": 1}));
        bench.pass("c-2");
        bench.request("s-1", "user.ban", json!({"id": 1}));
        bench.advance(400);
        bench.wake();
        bench.end("s-1");
        bench.effects
    };
    assert_eq!(run(), run());
}

#[test]
fn a_sensitive_answer_is_recorded_only_as_a_salted_hash() {
    let mut bench = gate_with("sensitive: true");
    bench.request("s-1", "a", json!({}));
    let decision = bench.answer("c-1", json!([{"q": "my secret words"}]));
    assert_eq!(bench.outcome(decision), HeldOutcome::Passed);
    let answer = bench.payloads("checkpoint_response")[0]["answers"]["q"].clone();
    assert!(answer.as_str().unwrap().starts_with("sha256:"), "{answer}");
    let everything = format!("{:?}", bench.effects);
    assert!(!everything.contains("my secret words"));
}

#[test]
fn a_decision_seen_under_other_atlases_does_not_count() {
    let mut bench = EngineBench::in_acme("s-1");
    let delete = bench.request("s-1", "ticket.delete", json!({}));
    let mut seen = bench.held("c-2");
    seen.atlas_hash = Digest::of(b"the operator saw it under something else");
    let reason = "no".to_owned();
    let decision = bench.decide(&seen, Ruling::Deny { reason });
    assert_eq!(
        bench.reply(decision),
        &Reply::Operator(OperatorReply::Refused(DecisionRefusal::RequestChanged))
    );
    assert!(bench.waits(delete));
}

#[test]
fn a_run_by_permit_is_recorded_with_the_permit() {
    let mut bench = EngineBench::in_acme("s-1");
    let gone = bench.request("s-1", "ticket.delete", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-2");
    let before = bench.payloads("checkpoint_passed").len();
    let retry = bench.request("s-1", "ticket.delete", json!({}));
    bench.allowed(retry);
    let passed = bench.payloads("checkpoint_passed").split_off(before);
    let told: Vec<_> = passed.iter().map(|p| &p["checkpoint_id"]).collect();
    // The approval unlocked the capability; the other three gates stood there again.
    assert_eq!(
        told,
        ["delete-confirm", "high-risk-gate", "require-admin-approval"]
    );
    assert!(passed.iter().all(|p| p["passed_by"] == "the permit of c-2"));
}

#[test]
fn unused_permits_are_dropped() {
    let mut bench = EngineBench::in_acme("s-1");
    for (n, gate) in [(1, "c-2"), (2, "c-3")] {
        let gone = bench.request("s-1", "ticket.delete", json!({"n": n}));
        bench.handle(EngineCommand::CallerDisconnected(gone));
        bench.pass(gate);
        let permits = |bench: &EngineBench| {
            let kept = bench.persisted_state().into_iter();
            kept.filter(|c| c.kind == StateKind::Permit).count()
        };
        assert_eq!(permits(&bench), 1);
        bench.advance(PERMIT_LIFETIME.as_secs());
    }
    bench.end("s-1");
    let kept: Vec<_> = bench
        .persisted_state()
        .into_iter()
        .map(|c| c.kind)
        .collect();
    assert_eq!(kept, [StateKind::Counter], "nothing of a session is left");
}

#[test]
fn records_that_release_or_stop_an_agent_are_sync() {
    use crate::trace::event::Durability;
    let durability = |bench: &EngineBench, event_type: &str| -> Vec<_> {
        let drafts = bench.drafts();
        let of_type = drafts.filter(|draft| draft.payload.event_type() == event_type);
        of_type.map(|draft| draft.durability).collect()
    };
    for (force, triggered) in [(false, Durability::Async), (true, Durability::Sync)] {
        let body = format!(
            "actions: [{{action_id: a}}]\n\
             checkpoints:\n\
             - checkpoint_id: g\n  trigger: {{type: action_pre, patterns: [a]}}\n  \
             mode: blocking\n  force_sync_trace: {force}\n"
        );
        let mut bench = EngineBench::new(&[&atlas(&body)]);
        bench.start("s-1");
        bench.request("s-1", "a", json!({"n": 1}));
        bench.pass("c-1");
        bench.request("s-1", "a", json!({"n": 2}));
        bench.refuse("c-2", "");
        assert_eq!(durability(&bench, "checkpoint_triggered"), [triggered; 2]);
        for waited in ["checkpoint_passed", "checkpoint_blocked", "action_blocked"] {
            assert_eq!(durability(&bench, waited), [Durability::Sync], "{waited}");
        }
        for not in ["session_started", "checkpoint_completed"] {
            let all = durability(&bench, not);
            assert!(all.iter().all(|d| *d == Durability::Async), "{not}");
        }
    }
}
