//! What agents answer themselves.

use super::*;

fn gate(id: &str, respondent: &str) -> String {
    format!(
        "{{checkpoint_id: {id}, trigger: {{type: action_pre, patterns: [pay]}}, mode: blocking, \
          respondent: {respondent}, questions: [{{question_id: why, question: Why?, \
          validation: {{min_length: 5}}}}]}}"
    )
}

fn bench(checkpoints: &[String], more: &str) -> Bench {
    let body = format!(
        "actions: [{{action_id: pay, risk_tier: low}}]\ncheckpoints: [{}]\n{more}",
        checkpoints.join(", ")
    );
    let mut bench = Bench::new(&[&atlas(&body)]);
    bench.start("s-1");
    bench
}

impl Bench {
    fn pay(&mut self) -> AskId {
        self.request("s-1", "pay", json!({}))
    }

    fn respond(&mut self, gate: &str, answers: Value) -> AskId {
        self.respond_as("s-1", gate, answers)
    }

    fn respond_as(&mut self, session: &str, gate: &str, answers: Value) -> AskId {
        let answer = Answer {
            session: session.parse().unwrap(),
            gate: gate.parse().unwrap(),
            answers: serde_json::from_value(answers).unwrap(),
        };
        self.ask(|ask| Command::Answer(ask, answer))
    }

    fn asked(&self, ask: AskId) -> &Asked {
        match self.reply(ask) {
            Reply::Asked(asked) => asked,
            other => panic!("not asked: {other:?}"),
        }
    }
}

#[test]
fn an_agent_passes_a_gate_that_is_its_to_answer() {
    let mut bench = bench(&[gate("g", "agent")], "");
    let ask = bench.pay();
    let asked = bench.asked(ask).clone();
    assert_eq!(asked.gates[0].checkpoint_id, "g");
    assert!(!asked.operator);
    let short = bench.respond("c-1", json!({"g": {"why": "x"}}));
    let Reply::Invalid(invalid) = bench.reply(short) else {
        panic!("{:?}", bench.reply(short));
    };
    assert_eq!(invalid.held.invalid_attempts, 1);
    let good = bench.respond("c-1", json!({"g": {"why": "because"}}));
    bench.allowed(good);
    assert_eq!(
        bench.payloads("checkpoint_passed")[0]["passed_by"],
        json!("agent bot")
    );
    let by: Vec<_> = bench
        .payloads("checkpoint_response")
        .into_iter()
        .map(|it| it["answered_by"].clone())
        .collect();
    assert_eq!(by, [json!("agent bot"), json!("agent bot")]);
}

#[test]
fn an_agent_answers_nothing_that_is_an_operators() {
    let approve = "policies: [{policy_id: ok, type: requires_approval, actions: [pay]}]\n";
    let mut bench = bench(&[gate("mine", "agent"), gate("yours", "operator")], approve);
    let ask = bench.pay();
    assert!(bench.asked(ask).operator);
    for answers in [
        json!({"yours": {"why": "because"}}),
        json!({"mine": {"why": "because"}, "yours": {"why": "because"}}),
        json!({"ok": {"justification": "because"}}),
        json!({}),
    ] {
        let ask = bench.respond("c-1", answers.clone());
        assert_eq!(bench.denied(ask).code, DenyCode::BadRequest, "{answers}");
    }
    let mine = bench.respond("c-1", json!({"mine": {"why": "because"}}));
    assert!(bench.waits(mine), "the operator's gates still stand");
    let twice = bench.respond("c-1", json!({"mine": {"why": "because"}}));
    assert_eq!(bench.denied(twice).code, DenyCode::BadRequest);
    // The operator answers what is left; what the agent said stands.
    bench.answer(
        "c-1",
        json!([{}, {"why": "all right"}, {"justification": "all right"}]),
    );
    bench.allowed(mine);
    let by: Vec<_> = bench
        .payloads("checkpoint_passed")
        .into_iter()
        .map(|it| it["passed_by"].clone())
        .collect();
    assert_eq!(by, [json!("agent bot"), json!("op-1"), json!("op-1")]);
    assert_eq!(
        bench.payloads("policy_override")[0]["approver"],
        json!("op-1")
    );
}

#[test]
fn another_session_answers_nothing() {
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
fn what_either_may_answer_an_operator_may_answer_first_and_silence_denies() {
    let mut bench = bench(&[gate("g", "either")], "");
    let ask = bench.pay();
    bench.asked(ask);
    bench.pass("c-1");
    // The agent was told and left: the decision is a permit for the identical request.
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
fn what_an_agent_answered_survives_a_restart_without_its_secrets() {
    let secret = gate("g", "agent").replace("question: Why?", "question: Why?, sensitive: true");
    let text = [secret, gate("h", "operator")];
    let mut first = bench(&text, "");
    first.pay();
    first.respond("c-1", json!({"g": {"why": "hunter2 is it"}}));
    let kept = first.kept();
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
    let mut bench = Bench::with(engine);
    bench.answer("c-1", json!([{}, {"why": "all right"}]));
    let retry = bench.pay();
    bench.allowed(retry);
}

#[test]
fn an_agent_can_pass_the_start_gate_that_is_its_to_answer() {
    let body = "actions: [{action_id: pay}]\ncheckpoints: [{checkpoint_id: terms, \
                trigger: {type: session_start}, mode: blocking, respondent: agent}]\n";
    let mut bench = Bench::new(&[&atlas(body)]);
    let start = bench.start("s-1");
    let Reply::Started(started) = bench.reply(start) else {
        panic!()
    };
    assert_eq!(started.asked[0].gates[0].checkpoint_id, "terms");
    let parked = bench.pay();
    assert!(bench.waits(parked));
    let no = bench.respond("c-1", json!({"terms": {"acknowledge": "not understood"}}));
    assert!(matches!(bench.reply(no), Reply::Invalid(_)));
    assert!(bench.waits(parked));
    let yes = bench.respond("c-1", json!({"terms": {"acknowledge": "understood"}}));
    bench.accepted(yes);
    bench.allowed(parked);
}
