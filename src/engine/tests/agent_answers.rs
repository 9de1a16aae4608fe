//! Tests of answers by agents.

use super::*;

fn gate(id: &str, respondent: &str) -> String {
    format!(
        "{{checkpoint_id: {id}, trigger: {{type: action_pre, patterns: [pay]}}, mode: blocking, \
          respondent: {respondent}, questions: [{{question_id: why, question: Why?, \
          validation: {{min_length: 5}}}}]}}"
    )
}

fn bench(checkpoints: &[String], more: &str) -> EngineBench {
    let body = format!(
        "actions: [{{action_id: pay, risk_tier: low}}]\ncheckpoints: [{}]\n{more}",
        checkpoints.join(", ")
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    bench
}

impl EngineBench {
    fn pay(&mut self) -> ReplyId {
        self.request("s-1", "pay", json!({}))
    }

    fn respond(&mut self, gate: &str, answers: Value) -> ReplyId {
        self.respond_as("s-1", gate, answers)
    }

    fn respond_as(&mut self, session: &str, gate: &str, answers: Value) -> ReplyId {
        let answer = AgentAnswer {
            session: session.parse().unwrap(),
            gate: gate.parse().unwrap(),
            answers: serde_json::from_value(answers).unwrap(),
            release: ReleaseTo::default(),
        };
        self.reply_id(|reply_id| EngineCommand::Answer(reply_id, answer))
    }

    fn asked(&self, reply_id: ReplyId) -> &AgentQuestions {
        match self.reply(reply_id) {
            Reply::Agent(AgentReply::Asked(asked)) => asked,
            other => panic!("not asked: {other:?}"),
        }
    }
}

#[test]
fn an_agent_passes_a_gate_that_it_may_answer() {
    let mut bench = bench(&[gate("g", "agent")], "");
    let reply_id = bench.pay();
    let asked = bench.asked(reply_id).clone();
    assert_eq!(asked.gates[0].checkpoint_id, "g");
    assert!(!asked.operator);
    let short = bench.respond("c-1", json!({"g": {"why": "x"}}));
    let Reply::Agent(AgentReply::Invalid(invalid)) = bench.reply(short) else {
        panic!("{:?}", bench.reply(short));
    };
    assert_eq!(invalid.held.agent_attempts, 1);
    let good = bench.respond("c-1", json!({"g": {"why": "because"}}));
    bench.allowed(good);
    assert_eq!(
        bench.payloads("checkpoint_passed")[0]["passed_by"],
        json!("agent bot")
    );
    let by: Vec<_> = bench
        .payloads("checkpoint_response")
        .into_iter()
        .map(|record| record["answered_by"].clone())
        .collect();
    assert_eq!(by, [json!("agent bot"), json!("agent bot")]);
}

#[test]
fn an_agent_cannot_answer_gates_of_an_operator() {
    let approve = "policies: [{policy_id: ok, type: requires_approval, actions: [pay]}]\n";
    let mut bench = bench(&[gate("mine", "agent"), gate("yours", "operator")], approve);
    let reply_id = bench.pay();
    assert!(bench.asked(reply_id).operator);
    for answers in [
        json!({"yours": {"why": "because"}}),
        json!({"mine": {"why": "because"}, "yours": {"why": "because"}}),
        json!({"ok": {"justification": "because"}}),
        json!({}),
    ] {
        let reply_id = bench.respond("c-1", answers.clone());
        assert_eq!(
            bench.denied(reply_id).code,
            DenyCode::BadRequest,
            "{answers}"
        );
    }
    let mine = bench.respond("c-1", json!({"mine": {"why": "because"}}));
    assert!(bench.waits(mine), "the operator's gates still stand");
    let twice = bench.respond("c-1", json!({"mine": {"why": "because"}}));
    assert_eq!(bench.denied(twice).code, DenyCode::BadRequest);
    // The operator answers the remaining gates; the agent's answers stay valid.
    bench.answer(
        "c-1",
        json!([{}, {"why": "all right"}, {"justification": "as agreed with the customer"}]),
    );
    bench.allowed(mine);
    let by: Vec<_> = bench
        .payloads("checkpoint_passed")
        .into_iter()
        .map(|record| record["passed_by"].clone())
        .collect();
    assert_eq!(by, [json!("agent bot"), json!("op-1"), json!("op-1")]);
    assert_eq!(
        bench.payloads("policy_override")[0]["approver"],
        json!("op-1")
    );
}

#[test]
fn another_session_cannot_answer_a_gate() {
    let mut bench = bench(&[gate("g", "either")], "");
    bench.pay();
    bench.start("s-2");
    let foreign = bench.respond_as("s-2", "c-1", json!({"g": {"why": "because"}}));
    assert_eq!(bench.denied(foreign).code, DenyCode::BadRequest);
    let missing = bench.respond("c-9", json!({"g": {"why": "because"}}));
    assert_eq!(bench.denied(missing).code, DenyCode::BadRequest);
    assert_eq!(bench.held_ids(), ["c-1"]);
}

#[test]
fn an_operator_may_answer_an_either_gate_first_and_a_timeout_denies() {
    let mut bench = bench(&[gate("g", "either")], "");
    let reply_id = bench.pay();
    bench.asked(reply_id);
    bench.pass("c-1");
    // The agent was asked and left: the decision is a permit for the identical request.
    let retry = bench.pay();
    bench.allowed(retry);
    bench.pay();
    bench.advance(301);
    let late = bench.respond("c-2", json!({"g": {"why": "because"}}));
    assert_eq!(bench.denied(late).code, DenyCode::BadRequest);
    assert_eq!(
        bench.payloads("checkpoint_blocked")[0]["outcome"],
        json!("expired")
    );
}

#[test]
fn agent_answers_survive_a_restart_without_sensitive_text() {
    let secret = gate("g", "agent").replace("question: Why?", "question: Why?, sensitive: true");
    let text = [secret, gate("h", "operator")];
    let mut first = bench(&text, "");
    first.pay();
    first.respond("c-1", json!({"g": {"why": "hunter2 is it"}}));
    let kept = first.persisted_state();
    assert!(!format!("{kept:?}").contains("hunter2"));
    assert!(!format!("{:?}", first.payloads("checkpoint_response")).contains("hunter2"));
    let body = format!(
        "actions: [{{action_id: pay, risk_tier: low}}]\ncheckpoints: [{}]\n",
        text.join(", ")
    );
    let (engine, _) = Engine::restore(
        atlases_of(&[&atlas(&body)]),
        Box::new(CountedIds::starting_at(1000)),
        kept,
        BTreeSet::new(),
        first.now,
    )
    .unwrap();
    let mut bench = EngineBench::with(engine);
    bench.answer("c-1", json!([{}, {"why": "all right"}]));
    let retry = bench.pay();
    bench.allowed(retry);
}

#[test]
fn an_agent_can_pass_a_start_gate_that_it_may_answer() {
    let body = "actions: [{action_id: pay}]\ncheckpoints: [{checkpoint_id: terms, \
                trigger: {type: session_start}, mode: blocking, respondent: agent}]\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    let start = bench.start("s-1");
    let Reply::Agent(AgentReply::Started(started)) = bench.reply(start) else {
        panic!()
    };
    assert_eq!(started.asked[0].gates[0].checkpoint_id, "terms");
    let parked = bench.pay();
    assert!(bench.waits(parked));
    let no = bench.respond("c-1", json!({"terms": {"acknowledge": "not understood"}}));
    assert!(matches!(
        bench.reply(no),
        Reply::Agent(AgentReply::Invalid(_))
    ));
    assert!(bench.waits(parked));
    let yes = bench.respond("c-1", json!({"terms": {"acknowledge": "understood"}}));
    bench.accepted(yes);
    bench.allowed(parked);
}

#[test]
fn a_shared_gate_name_does_not_let_the_agent_approve() {
    // An approval, an override and a gate of another Atlas, all with the name of the agent's own gate.
    let approve = "policies: [{policy_id: g, type: requires_approval, actions: [pay]}]\n";
    let overrule = "policies: [{policy_id: g, type: deny, actions: [pay], override: true}]\n";
    let answers = json!({"g": {"why": "because", "justification": "because"}});
    for more in [approve, overrule] {
        let mut bench = bench(&[gate("g", "agent")], more);
        bench.pay();
        let own = bench.respond("c-1", answers.clone());
        assert!(bench.waits(own), "{more}");
        assert_eq!(bench.held("c-1").answered.len(), 1);
        bench.answer(
            "c-1",
            json!([{}, {"justification": "as agreed with the customer"}]),
        );
        bench.allowed(own);
    }
    let head = "actions: [{action_id: pay, risk_tier: low}]\n";
    let mine = atlas(&format!("{head}checkpoints: [{}]\n", gate("g", "agent")));
    let other = format!("{head}checkpoints: [{}]\n", gate("g", "operator"));
    let other = atlas(&other).replace("atlas_id: test", "atlas_id: other");
    let mut bench = EngineBench::new(&[&mine, &other]);
    bench.start("s-1");
    bench.pay();
    let own = bench.respond("c-1", json!({"g": {"why": "because"}}));
    assert!(bench.waits(own));
    assert_eq!(bench.held_ids(), ["c-1"]);
}

#[test]
fn an_agent_that_answers_some_gates_is_asked_for_the_others() {
    let mut bench = bench(&[gate("one", "agent"), gate("two", "agent")], "");
    bench.pay();
    let first = bench.respond("c-1", json!({"one": {"why": "because"}}));
    assert_eq!(bench.asked(first).gates[0].checkpoint_id, "two");
    let nothing = bench.respond("c-1", json!({"two": {}}));
    assert_eq!(bench.asked(nothing).gates.len(), 1);
    let second = bench.respond("c-1", json!({"two": {"why": "because"}}));
    bench.allowed(second);
}

#[test]
fn every_caller_that_waits_at_an_input_gate_gets_a_reply() {
    let on_input = |id: &str, respondent: &str| {
        gate(id, respondent).replace(
            "type: action_pre, patterns: [pay]",
            "type: keyword, patterns: [x]",
        )
    };
    let mut bench = bench(
        &[
            on_input("one", "agent"),
            on_input("two", "either"),
            on_input("three", "operator"),
        ],
        "",
    );
    let said = bench.input("x");
    bench.asked(said);
    let first = bench.respond("c-1", json!({"one": {"why": "because"}}));
    let second = bench.respond("c-1", json!({"two": {"why": "because"}}));
    bench.asked(first);
    assert!(bench.waits(second));
    bench.answer("c-1", json!([{}, {}, {"why": "all right"}]));
    bench.accepted(second);
    let answered = bench.replies.len() as u64;
    assert_eq!(answered, bench.reply_count, "somebody was left waiting");
}

#[test]
fn invalid_agent_answers_do_not_use_up_operator_retries() {
    let patient = gate("mine", "agent");
    let strict =
        gate("yours", "operator").replace("question: Why?", "question: Why?, max_retries: 1");
    let mut bench = bench(&[patient, strict], "");
    bench.pay();
    for _ in 0..5 {
        bench.respond("c-1", json!({"mine": {"why": "x"}}));
    }
    let wrong = bench.answer("c-1", json!([{"why": "because"}, {"why": "x"}]));
    assert!(matches!(
        bench.reply(wrong),
        Reply::Operator(OperatorReply::Invalid(_))
    ));
    assert_eq!(bench.held("c-1").invalid_attempts, 1);
    bench.pass("c-1");
    let retry = bench.pay();
    bench.allowed(retry);
}

#[test]
fn an_agent_whose_invalid_answer_blocks_gets_a_denial() {
    let strict = gate("g", "agent").replace("question: Why?", "question: Why?, on_invalid: block");
    let with = bench;
    let mut bench = with(&[strict], "");
    bench.pay();
    let wrong = bench.respond("c-1", json!({"g": {"why": "x"}}));
    let denied = bench.denied(wrong);
    assert_eq!(denied.code, DenyCode::InvalidAnswer);
    assert!(denied.reason.contains("at least 5"), "{}", denied.reason);
    assert_eq!(bench.held_ids(), Vec::<String>::new());
    let spent = gate("g", "agent").replace("question: Why?", "question: Why?, max_retries: 1");
    let mut bench = with(&[spent], "");
    bench.pay();
    bench.respond("c-1", json!({"g": {"why": "x"}}));
    let wrong = bench.respond("c-1", json!({"g": {"why": "x"}}));
    assert_eq!(bench.denied(wrong).code, DenyCode::InvalidAnswer);
}

#[test]
fn an_agent_cannot_answer_while_another_gate_blocks_the_session() {
    let words = "{checkpoint_id: words, trigger: {type: keyword, patterns: [x]}, mode: blocking}";
    let mut bench = bench(&[gate("g", "agent"), words.to_owned()], "");
    bench.pay();
    let said = bench.input("x");
    let early = bench.respond("c-1", json!({"g": {"why": "because"}}));
    assert!(bench.denied(early).reason.contains("c-2"));
    assert_eq!(bench.engine.sessions()[0].actions, 0);
    bench.pass("c-2");
    bench.accepted(said);
    let again = bench.respond("c-1", json!({"g": {"why": "because"}}));
    bench.allowed(again);
}

#[test]
fn answers_that_are_too_deep_or_too_long_are_rejected() {
    let json = gate("g", "agent").replace("validation: {min_length: 5}", "response_type: json");
    let mut bench = bench(&[json, gate("h", "operator")], "");
    bench.pay();
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let large = json!("x".repeat(crate::base::limits::MAX_ANSWER_CHARS + 1));
    for bad in [deep.clone(), json!(deep.to_string()), json!([large])] {
        let reply_id = bench.respond("c-1", json!({"g": {"why": bad}}));
        assert!(matches!(
            bench.reply(reply_id),
            Reply::Agent(AgentReply::Invalid(_))
        ));
    }
    // They are on record as text, cut to the maximum length of an answer.
    for record in bench.payloads("checkpoint_response") {
        let said = record["answers"]["why"].as_str().unwrap();
        assert!(said.chars().count() <= crate::base::limits::MAX_ANSWER_CHARS);
    }
    for change in bench.persisted_state() {
        let text = change.body.unwrap();
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }
}

#[test]
fn an_unanswered_agent_gate_is_asked_with_the_next_request() {
    let after = "{checkpoint_id: after, trigger: {type: action_post, patterns: [pay]}, mode: blocking, \
                  respondent: agent}";
    let mut bench = bench(&[after.to_owned()], "");
    bench.run("pay");
    let next = bench.pay();
    assert_eq!(bench.asked(next).gates[0].checkpoint_id, "after");
    let answer = bench.respond("c-1", json!({"after": {"acknowledge": "understood"}}));
    bench.accepted(answer);
    let next = bench.pay();
    bench.allowed(next);
}

#[test]
fn a_lapsed_start_gate_is_raised_again() {
    let body = "actions: [{action_id: pay}]\ncheckpoints: [{checkpoint_id: terms, \
                trigger: {type: session_start}, mode: blocking, respondent: agent}]\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench.advance(301);
    bench.wake();
    let reply_id = bench.pay();
    assert_eq!(bench.asked(reply_id).gate, "c-2".parse().unwrap());
    let yes = bench.respond("c-2", json!({"terms": {"acknowledge": "understood"}}));
    bench.accepted(yes);
    let reply_id = bench.pay();
    bench.allowed(reply_id);
}
