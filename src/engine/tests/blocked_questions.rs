//! Tests of questions behind gates: neither questions nor guidance of later gates reach a blocked session.

use super::*;

fn asking() -> String {
    let survey = "mode: blocking, guidance: {content: secret guidance}, questions: [{question_id: q, \
                  question: secret question, response_type: boolean}]";
    let written = [
        "{checkpoint_id: terms, trigger: {type: session_start}, mode: blocking}".to_owned(),
        format!(
            "{{checkpoint_id: named, trigger: {{type: interactive}}, respondent: agent, {survey}}}"
        ),
        format!(
            "{{checkpoint_id: worded, trigger: {{type: keyword, patterns: [survey]}}, respondent: agent, {survey}}}"
        ),
        format!(
            "{{checkpoint_id: failed, trigger: {{type: error_occurred}}, respondent: either, {survey}}}"
        ),
        format!(
            "{{checkpoint_id: wanted, trigger: {{type: explicit_request}}, respondent: agent, {survey}}}"
        ),
        "{checkpoint_id: stop, trigger: {type: keyword, patterns: [halt]}, mode: blocking}"
            .to_owned(),
    ];
    atlas(&format!(
        "actions: [{{action_id: a, risk_tier: low}}]\ndefault_decision: allow\ncheckpoints: [{}]\n",
        written.join(", ")
    ))
}

fn session() -> SessionId {
    "s-1".parse().unwrap()
}

fn bench() -> EngineBench {
    let mut bench = EngineBench::new(&[&asking()]);
    bench.start("s-1");
    bench
}

fn input(bench: &mut EngineBench, text: &str) -> ReplyId {
    let input = InputReport {
        session: session(),
        text: text.to_owned(),
        source: InputSource::User,
        reaches_asked_agent: false,
        waits_for_start: false,
        deadline: None,
    };
    bench.reply_id(|reply_id| EngineCommand::Input(reply_id, input))
}

fn context(bench: &mut EngineBench, checkpoint: Option<&str>) -> ReplyId {
    let request = ContextRequest {
        session: session(),
        query: None,
        hints: Vec::new(),
        checkpoint: checkpoint.map(str::to_owned),
    };
    bench.reply_id(|reply_id| EngineCommand::RequestContext(reply_id, request))
}

fn failure(bench: &mut EngineBench) -> ReplyId {
    let report = ErrorReport {
        session: session(),
        error_type: "io".to_owned(),
        error_code: None,
        message: "broken".to_owned(),
        recoverable: true,
        stack_trace: None,
    };
    bench.reply_id(|reply_id| EngineCommand::ReportError(reply_id, report))
}

fn resolve(bench: &mut EngineBench) -> ReplyId {
    let resolve = ResolveRequest {
        session: session(),
        input: Some("survey".to_owned()),
        actions: Vec::new(),
    };
    bench.reply_id(|reply_id| EngineCommand::Resolve(reply_id, resolve))
}

fn respond(bench: &mut EngineBench, gate: &str, checkpoint: &str) -> ReplyId {
    let answer = AgentAnswer {
        session: session(),
        gate: gate.parse().unwrap(),
        answers: serde_json::from_value(json!({ checkpoint: { "q": true } })).unwrap(),
        release: ReleaseTo::default(),
    };
    bench.reply_id(|reply_id| EngineCommand::Answer(reply_id, answer))
}

/// Sends every command that could make the console ask the agent something.
fn call_everything(bench: &mut EngineBench) {
    context(bench, Some("named"));
    input(bench, "survey");
    failure(bench);
    context(bench, None);
    resolve(bench);
    bench.request("s-1", "a", json!({}));
    bench.start("s-1");
    for gate in bench.held_ids() {
        for checkpoint in ["named", "worded", "failed", "wanted"] {
            respond(bench, &gate, checkpoint);
        }
    }
}

fn assert_tells_nothing(bench: &EngineBench) {
    for (reply_id, reply) in &bench.replies {
        let told = serde_json::to_string(reply).unwrap();
        assert!(!told.contains("secret"), "{reply_id:?}: {told}");
    }
}

/// Returns the checkpoint at which a request is asked.
fn asked_at(bench: &EngineBench, reply_id: ReplyId) -> String {
    match bench.reply(reply_id) {
        Reply::Agent(AgentReply::Asked(asked)) => asked.gates[0].checkpoint_id.clone(),
        other => panic!("not asked: {other:?}"),
    }
}

// covers A17
#[test]
fn a_session_behind_its_start_gate_is_asked_nothing_at_other_gates() {
    let mut pending = bench();
    call_everything(&mut pending);
    assert_tells_nothing(&pending);
    let denied = context(&mut pending, Some("named"));
    let denied = pending.denied(denied).clone();
    assert!(
        denied.reason.contains("must pass `c-1` first"),
        "{denied:?}"
    );
    assert!(denied.help.is_some_and(|help| help.contains("c-1")));

    let mut lapsed = bench();
    lapsed.advance(3600);
    lapsed.wake();
    input(&mut lapsed, "survey");
    failure(&mut lapsed);
    call_everything(&mut lapsed);
    assert_tells_nothing(&lapsed);

    let mut refused = bench();
    refused.refuse("c-1", "not today");
    call_everything(&mut refused);
    assert_tells_nothing(&refused);
}

#[test]
fn a_session_behind_its_start_gate_is_asked_nothing_after_a_restart_or_a_reload() {
    let mut before = bench();
    call_everything(&mut before);
    let (engine, _) = Engine::restore(
        atlases_of(&[&asking()]),
        Box::new(CountedIds::starting_at(1000)),
        before.persisted_state(),
        BTreeSet::new(),
        before.now,
    )
    .unwrap();
    let mut restarted = EngineBench::with(engine);
    call_everything(&mut restarted);
    assert_tells_nothing(&restarted);

    let mut reloaded = EngineBench::new(&[&atlas("actions: [{action_id: a, risk_tier: low}]\n")]);
    reloaded.start("s-1");
    reloaded.engine.reload(atlases_of(&[&asking()]).into());
    call_everything(&mut reloaded);
    assert_tells_nothing(&reloaded);
}

#[test]
fn a_parked_request_is_asked_at_the_next_gate_once_the_start_gate_is_passed() {
    let mut bench = bench();
    context(&mut bench, Some("named"));
    let waiting = bench.request("s-1", "a", json!({}));
    assert!(bench.waits(waiting));
    bench.pass("c-1");
    assert_eq!(asked_at(&bench, waiting), "named");
    let answer = respond(&mut bench, "c-2", "named");
    assert!(matches!(
        bench.reply(answer),
        Reply::Agent(AgentReply::Accepted(_))
    ));
    let again = bench.request("s-1", "a", json!({}));
    bench.allowed(again);
}

#[test]
fn a_session_behind_an_operators_gate_is_asked_nothing_at_other_gates() {
    let mut bench = bench();
    bench.pass("c-1");
    let stopped = input(&mut bench, "halt");
    assert!(bench.waits(stopped));
    call_everything(&mut bench);
    assert_tells_nothing(&bench);
    // Without the operator's gate, the agent is asked at the others, one after the other.
    bench.pass("c-2");
    let next = bench.request("s-1", "a", json!({}));
    assert_eq!(asked_at(&bench, next), "named");
    respond(&mut bench, "c-3", "named");
    let next = bench.request("s-1", "a", json!({}));
    assert_eq!(asked_at(&bench, next), "worded");
}

#[test]
fn a_start_gate_that_the_agent_answers_asks_its_own_questions_and_no_others() {
    let own = asking().replace(
        "{checkpoint_id: terms, trigger: {type: session_start}, mode: blocking}",
        "{checkpoint_id: terms, trigger: {type: session_start}, mode: blocking, respondent: agent, \
         guidance: {content: own guidance}}",
    );
    let mut bench = EngineBench::new(&[&own]);
    let started = bench.start("s-1");
    let Reply::Agent(AgentReply::Started(start)) = bench.reply(started) else {
        panic!("{:?}", bench.reply(started));
    };
    let own = &start.asked[0].gates[0];
    assert_eq!(own.guidance.as_ref().unwrap().content, "own guidance");
    call_everything(&mut bench);
    assert_tells_nothing(&bench);
}
