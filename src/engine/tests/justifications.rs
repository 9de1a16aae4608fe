//! The justification that every approval carries.

use super::*;

/// An Atlas whose action `do` meets one gate with these questions.
fn asking(questions: &str) -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(&format!(
        "actions: [{{action_id: do, risk_tier: low}}]\n\
         default_decision: allow\n\
         checkpoints:\n\
         - {{checkpoint_id: g, name: Look, mode: blocking, trigger: {{type: action_pre, patterns: [do]}}, \
         questions: [{questions}]}}\n"
    ))]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "do", json!({}));
    assert!(bench.waits(reply_id));
    bench
}

fn justified(bench: &EngineBench, event_type: &str) -> (String, String) {
    let payloads = bench.payloads(event_type);
    let text = |name: &str| payloads[0][name].as_str().unwrap_or("none").to_owned();
    (text("justification"), text("justification_source"))
}

// covers T14
#[test]
fn answers_are_the_justification_where_no_reason_was_typed() {
    let cases = [
        (
            "{question_id: q, question: Do you agree?, response_type: boolean}",
            json!({"q": true}),
            "Do you agree?: yes",
        ),
        (
            "{question_id: q, question: Is it final?, response_type: boolean, expect: false}",
            json!({"q": "no"}),
            "Is it final?: no",
        ),
        (
            "{question_id: q, question: Read the rules, response_type: acknowledgment}",
            json!({"q": "I understand."}),
            "acknowledged: Read the rules",
        ),
        (
            "",
            json!({"acknowledge": "understood"}),
            "acknowledged: I have reviewed this request: Look",
        ),
        (
            "{question_id: q, question: Where?, response_type: choice, options: [eu, us]}, \
             {question_id: n, question: How many?, response_type: number}, \
             {question_id: j, question: Details?, response_type: json}",
            json!({"q": "us", "n": 3, "j": {"b": 1, "a": [true]}}),
            "Where?: us; How many?: 3; Details?: {\"a\":[true],\"b\":1}",
        ),
        (
            "{question_id: q, question: PIN?, sensitive: true}, \
             {question_id: n, question: Age?, response_type: number, sensitive: true}",
            json!({"q": "hunter2hunter2", "n": 4711}),
            "PIN?: (sensitive, hashed); Age?: (sensitive, hashed)",
        ),
        (
            "{question_id: q, question: Anything else?, required: false}",
            json!({}),
            "no answer was given; none was required",
        ),
    ];
    for (questions, answers, expected) in cases {
        let mut bench = asking(questions);
        let passed = bench.answer("c-1", json!([answers]));
        assert_eq!(bench.outcome(passed), HeldOutcome::Passed, "{questions}");
        let expected = (expected.to_owned(), "answers".to_owned());
        assert_eq!(justified(&bench, "checkpoint_passed"), expected);
        let written = format!("{:?}", bench.drafts().collect::<Vec<_>>());
        assert!(!written.contains("hunter2"), "{written}");
        assert!(!written.contains("4711"), "{written}");
    }
}

#[test]
fn a_typed_reason_is_the_operators() {
    let mut bench = asking("{question_id: q, question: Why?}");
    bench.answer("c-1", json!([{"q": "as agreed"}]));
    let expected = ("as agreed".to_owned(), "operator".to_owned());
    assert_eq!(justified(&bench, "checkpoint_passed"), expected);
}

#[test]
fn a_risk_gate_and_the_first_of_two_approvals_are_justified_by_answers_too() {
    let mut bench = EngineBench::new(&[&atlas(
        "actions: [{action_id: ban, risk_tier: critical}]\n\
         default_decision: allow\n\
         checkpoints:\n\
         - {checkpoint_id: two, mode: blocking, approvers: 2, \
         trigger: {type: risk_threshold, min_tier: critical}, \
         questions: [{question_id: q, question: Sure?, response_type: boolean}]}\n",
    )]);
    bench.start("s-1");
    bench.request("s-1", "ban", json!({}));
    let expected = ("Sure?: yes".to_owned(), "answers".to_owned());
    bench.answer("c-1", json!([{"q": true}]));
    assert_eq!(justified(&bench, "checkpoint_approved"), expected);
    let first = bench.held("c-1").approval.unwrap();
    assert_eq!(first.justification.as_deref(), Some("Sure?: yes"));
    let held = bench.held("c-1");
    let decide = DecisionRequest {
        gate: held.id.clone(),
        operator: "op-2".to_owned(),
        method: "console".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling: Ruling::Pass {
            answers: vec![BTreeMap::from([("q".to_owned(), json!(true))])],
        },
    };
    bench.reply_id(|reply_id| EngineCommand::Decide(reply_id, decide));
    assert_eq!(justified(&bench, "risk_verified"), expected);
    assert_eq!(justified(&bench, "checkpoint_passed"), expected);
}

#[test]
fn an_agents_answers_justify_only_the_gate_that_the_agent_answered() {
    let gate = |id: &str, respondent: &str, question: &str| {
        format!(
            "- {{checkpoint_id: {id}, mode: blocking, respondent: {respondent}, \
             trigger: {{type: action_pre, patterns: [do]}}, questions: [{{question_id: q, {question}}}]}}\n"
        )
    };
    let told = gate("told", "agent", "question: Why?");
    let ticked = gate(
        "ticked",
        "agent",
        "question: Ready?, response_type: boolean",
    );
    let own = gate(
        "own",
        "operator",
        "question: Agreed?, response_type: boolean",
    );
    let mut bench = EngineBench::new(&[&atlas(&format!(
        "actions: [{{action_id: do, risk_tier: low}}]\n\
         default_decision: allow\ncheckpoints:\n{told}{ticked}{own}"
    ))]);
    bench.start("s-1");
    bench.request("s-1", "do", json!({}));
    let answer = AgentAnswer {
        session: "s-1".parse().unwrap(),
        gate: "c-1".parse().unwrap(),
        answers: serde_json::from_value(
            json!({"told": {"q": "the user asked"}, "ticked": {"q": true}}),
        )
        .unwrap(),
        release: ReleaseTo::default(),
    };
    bench.reply_id(|reply_id| EngineCommand::Answer(reply_id, answer));
    bench.answer("c-1", json!([{}, {}, {"q": true}]));
    let passed = bench.payloads("checkpoint_passed");
    let told = |id: &str| {
        let own = passed
            .iter()
            .find(|record| record["checkpoint_id"] == id)
            .unwrap();
        (
            own["justification"].clone(),
            own["justification_source"].clone(),
        )
    };
    assert_eq!(told("told"), (json!("the user asked"), json!("agent")));
    assert_eq!(told("ticked"), (json!("Ready?: yes"), json!("answers")));
    assert_eq!(told("own"), (json!("Agreed?: yes"), json!("answers")));
}

const GIVING: &str = "\
actions: [{action_id: do, risk_tier: low}]
default_decision: allow
context_blocks: [{context_id: help, name: Help, content: look here, inject_mode: on_demand}]
checkpoints:
  - checkpoint_id: g
    mode: blocking
    trigger: {type: action_pre, patterns: [do]}
    inject_contexts: [help]
";

// covers B19, T8
#[test]
fn a_passed_gate_names_only_contexts_that_its_release_takes_along() {
    let mut bench = EngineBench::new(&[&atlas(GIVING)]);
    bench.start("s-1");
    let gone = bench.request("s-1", "do", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-1");
    let passed = &bench.payloads("checkpoint_passed")[0];
    assert_eq!(passed["injected_contexts"], json!([]));
    let completed = &bench.payloads("checkpoint_completed")[0];
    assert_eq!(completed["contexts_injected"], json!([]));
    assert_eq!(bench.payloads("context_injected"), [] as [Value; 0]);
    // The retry takes it along, and that is on record then.
    let retry = bench.request("s-1", "do", json!({}));
    assert_eq!(bench.allowed(retry).injected.contexts[0].context_id, "help");
    let injected = bench.payloads("context_injected");
    assert_eq!(injected[0]["context_ids"], json!(["help"]));

    let mut bench = EngineBench::new(&[&atlas(GIVING)]);
    bench.start("s-1");
    let waits = bench.request("s-1", "do", json!({}));
    bench.pass("c-1");
    assert_eq!(bench.allowed(waits).injected.contexts[0].context_id, "help");
    let passed = &bench.payloads("checkpoint_passed")[0];
    assert_eq!(passed["injected_contexts"], json!(["help"]));
    let completed = &bench.payloads("checkpoint_completed")[0];
    assert_eq!(completed["contexts_injected"], json!(["help"]));
}
