//! Tests of double approval: two operators where a steward requires two, and names that can never approve.

use super::restarts::restart;
use super::*;

const TWO: &str = "\
actions: [{action_id: ban, risk_tier: critical}]
default_decision: allow
checkpoints:
  - checkpoint_id: two
    mode: blocking
    approvers: 2
    trigger: {type: risk_threshold, min_tier: critical}
    questions: [{question_id: why, question: Why?, response_type: text, validation: {min_length: 5}}]
";

fn held() -> (EngineBench, ReplyId) {
    let mut bench = EngineBench::new(&[&atlas(TWO)]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "ban", json!({"user": "m"}));
    assert!(bench.waits(reply_id));
    (bench, reply_id)
}

fn pass_as(bench: &mut EngineBench, operator: &str, why: &str) -> ReplyId {
    let held = bench.held("c-1");
    let decide = DecisionRequest {
        gate: held.id.clone(),
        operator: operator.to_owned(),
        method: "console".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling: Ruling::Pass {
            answers: vec![BTreeMap::from([("why".to_owned(), json!(why))])],
        },
    };
    bench.reply_id(|reply_id| EngineCommand::Decide(reply_id, decide))
}

fn refusal(bench: &EngineBench, reply_id: ReplyId) -> &DecisionRefusal {
    match bench.reply(reply_id) {
        Reply::Operator(OperatorReply::Refused(refused)) => refused,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn only_the_second_of_two_approvals_releases_the_request() {
    let (mut bench, reply_id) = held();
    let first = pass_as(&mut bench, "op-1", "as agreed with legal");
    assert!(matches!(
        bench.reply(first),
        Reply::Operator(OperatorReply::Approved(_))
    ));
    assert!(bench.waits(reply_id), "the agent is not released");
    assert_eq!(bench.held_ids(), ["c-1"]);
    assert_eq!(
        bench.held("c-1").approval_progress(),
        Some(("1 of 2", Some("op-1")))
    );
    let held = bench.held("c-1");
    assert_eq!(
        bench.payloads("checkpoint_approved"),
        [json!({
            "checkpoint_id": "two", "gate_id": "c-1", "approved_by": "op-1",
            "approval_method": "console", "justification": "as agreed with legal",
            "justification_source": "operator",
            "needed": 2, "request_hash": held.request_hash.to_string(),
        })]
    );
    for passing in ["checkpoint_passed", "risk_verified", "checkpoint_completed"] {
        assert_eq!(bench.payloads(passing), [] as [Value; 0], "{passing}");
    }
    let second = pass_as(&mut bench, "op-2", "seen it myself");
    assert_eq!(bench.outcome(second), HeldOutcome::Passed);
    bench.allowed(reply_id);
    let passed = &bench.payloads("checkpoint_passed")[0];
    assert_eq!(passed["approvers"], json!(["op-1", "op-2"]));
    assert_eq!(passed["passed_by"], json!("op-2"));
    let verified = &bench.payloads("risk_verified")[0];
    assert_eq!(verified["approvers"], json!(["op-1", "op-2"]));
    let answered = bench.payloads("checkpoint_response");
    let by: Vec<_> = answered
        .iter()
        .map(|record| &record["answered_by"])
        .collect();
    assert_eq!(
        by,
        [&json!("op-1"), &json!("op-2")],
        "each in their own words"
    );
}

#[test]
fn one_operator_cannot_give_both_approvals_in_any_spelling() {
    let (mut bench, reply_id) = held();
    pass_as(&mut bench, "op-1", "as agreed");
    let before = bench.effects.len();
    for name in ["op-1", " OP-1 ", "Op-1"] {
        let again = pass_as(&mut bench, name, "as agreed");
        let refused = DecisionRefusal::SameOperator("op-1".to_owned());
        assert_eq!(refusal(&bench, again), &refused, "{name}");
    }
    assert!(bench.waits(reply_id));
    let more = bench.effects.iter().skip(before);
    assert_eq!(
        more.filter(|effect| matches!(effect, Effect::Record(_)))
            .count(),
        0,
        "what does not count is not recorded as an answer"
    );
}

#[test]
fn the_requester_never_approves() {
    for name in ["bot", "BOT", "agent bot", "s-1"] {
        let (mut bench, reply_id) = held();
        let own = pass_as(&mut bench, name, "as agreed");
        let refused = DecisionRefusal::Requester(name.to_owned());
        assert_eq!(refusal(&bench, own), &refused, "{name}");
        assert!(bench.waits(reply_id));
        assert_eq!(bench.payloads("checkpoint_response"), [] as [Value; 0]);
        // Not as the second approver either.
        pass_as(&mut bench, "op-1", "as agreed");
        let own = pass_as(&mut bench, name, "as agreed");
        assert_eq!(
            refusal(&bench, own),
            &DecisionRefusal::Requester(name.to_owned())
        );
        assert!(bench.waits(reply_id));
    }
}

#[test]
fn either_operator_can_deny_and_a_timeout_denies() {
    for operator in ["op-1", "op-2"] {
        let (mut bench, reply_id) = held();
        pass_as(&mut bench, "op-1", "as agreed");
        let held = bench.held("c-1");
        let decide = DecisionRequest {
            gate: held.id.clone(),
            operator: operator.to_owned(),
            method: "console".to_owned(),
            request_hash: held.request_hash,
            atlas_hash: held.atlas_hash,
            justification: None,
            ruling: Ruling::Deny {
                reason: "after all".to_owned(),
            },
        };
        let denied = bench.reply_id(|reply_id| EngineCommand::Decide(reply_id, decide));
        assert_eq!(bench.outcome(denied), HeldOutcome::Denied);
        assert_eq!(bench.denied(reply_id).code, DenyCode::Refused);
    }
    let (mut bench, reply_id) = held();
    let deadline = bench.held("c-1").deadline;
    pass_as(&mut bench, "op-1", "as agreed");
    assert_eq!(bench.held("c-1").deadline, deadline, "no more time by it");
    bench.advance(300);
    bench.wake();
    assert_eq!(bench.denied(reply_id).code, DenyCode::Expired);
}

#[test]
fn the_first_approval_survives_a_restart_but_not_another_atlas() {
    let (mut bench, _) = held();
    pass_as(&mut bench, "op-1", "as agreed");
    let mut next = restart(&bench, &[&atlas(TWO)]);
    assert_eq!(
        next.held("c-1").approval_progress(),
        Some(("1 of 2", Some("op-1")))
    );
    let again = next.request("s-1", "ban", json!({"user": "m"}));
    let same = pass_as(&mut next, "op-1", "as agreed");
    assert_eq!(
        refusal(&next, same),
        &DecisionRefusal::SameOperator("op-1".to_owned())
    );
    pass_as(&mut next, "op-2", "seen it");
    next.allowed(again);

    let other = atlas(&TWO.replace("min_length: 5", "min_length: 6"));
    let mut next = restart(&bench, &[&other]);
    let late = pass_as(&mut next, "op-2", "seen it");
    assert_eq!(refusal(&next, late), &DecisionRefusal::AtlasChanged);
    let reply_id = next.request("s-1", "ban", json!({"user": "m"}));
    let fresh = next.engine.held().pop().unwrap();
    assert_eq!(fresh.first_approval(), None, "it is asked anew");
    assert!(next.waits(reply_id));
}

#[test]
fn an_approval_of_another_request_does_not_count() {
    let (mut bench, reply_id) = held();
    pass_as(&mut bench, "op-1", "as agreed");
    let id: HeldRequestId = "c-1".parse().unwrap();
    let mut held = (*bench.engine.state.held.get(&id).unwrap().held).clone();
    held.approval.as_mut().unwrap().request_hash = Digest::of("another");
    bench.engine.state.held.replace(Arc::new(held));
    assert_eq!(
        bench.held("c-1").approval_progress(),
        Some(("0 of 2", None))
    );
    let next = pass_as(&mut bench, "op-2", "seen it");
    assert!(
        matches!(
            bench.reply(next),
            Reply::Operator(OperatorReply::Approved(_))
        ),
        "the first"
    );
    assert!(bench.waits(reply_id));
}

#[test]
fn invalid_answers_do_not_count_as_approval() {
    let (mut bench, reply_id) = held();
    let thin = pass_as(&mut bench, "op-1", "no");
    assert!(matches!(
        bench.reply(thin),
        Reply::Operator(OperatorReply::Invalid(_))
    ));
    assert_eq!(bench.held("c-1").first_approval(), None);
    pass_as(&mut bench, "op-2", "seen it");
    assert!(bench.waits(reply_id));
}

#[test]
fn an_agent_answer_after_the_first_approval_voids_it() {
    let body = format!(
        "{TWO}  - {{checkpoint_id: own, mode: blocking, respondent: agent, trigger: {{type: action_pre, \
         patterns: [ban]}}, questions: [{{question_id: plan, question: Plan?, response_type: text}}]}}\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    bench.request("s-1", "ban", json!({"user": "m"}));
    let held = bench.held("c-1");
    let gate = |id: &str| {
        held.gates
            .iter()
            .position(|gate| gate.origin.id() == id)
            .unwrap()
    };
    let mut answers = vec![BTreeMap::new(); 2];
    answers[gate("two")] = BTreeMap::from([("why".to_owned(), json!("as agreed"))]);
    answers[gate("own")] = BTreeMap::from([("plan".to_owned(), json!("the operator's plan"))]);
    bench.decide(&held, Ruling::Pass { answers });
    assert!(bench.held("c-1").first_approval().is_some());
    let own = BTreeMap::from([("plan".to_owned(), json!("mine"))]);
    let answer = AgentAnswer {
        session: "s-1".parse().unwrap(),
        gate: "c-1".parse().unwrap(),
        answers: BTreeMap::from([("own".to_owned(), own)]),
        release: ReleaseTo::default(),
    };
    bench.reply_id(|reply_id| EngineCommand::Answer(reply_id, answer));
    assert_eq!(bench.held("c-1").first_approval(), None);
}

#[test]
fn a_denied_request_asks_no_second_operator() {
    let (mut bench, reply_id) = held();
    let id: SessionId = "s-1".parse().unwrap();
    let session = bench.engine.state.sessions.get_mut(&id).unwrap();
    session
        .denied
        .push(("later".to_owned(), ["ban"].into_iter().collect()));
    let first = pass_as(&mut bench, "op-1", "as agreed");
    assert_eq!(bench.outcome(first), HeldOutcome::Denied);
    assert_eq!(bench.denied(reply_id).code, DenyCode::DeniedAction);
}
