//! Tests of custom triggers and validators.

use super::*;
use crate::engine::extensions::{CallQuestion, Extensions};

fn table(triggers: &[&str], handlers: &[&str], validators: &[&str]) -> Extensions {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Extensions {
        triggers: names(triggers),
        handlers: names(handlers),
        validators: names(validators),
        by_type: BTreeMap::new(),
        ..Extensions::default()
    }
}

fn bench(checkpoint: &str, extensions: Extensions) -> EngineBench {
    let body = format!(
        "capabilities: [{{capability_id: extra, actions: [b]}}]\n\
         actions: [{{action_id: a, risk_tier: low}}, {{action_id: b, risk_tier: low}}]\n\
         checkpoints: [{{checkpoint_id: g, {checkpoint}}}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.engine.set_extensions(extensions);
    bench.start("s-1");
    bench
}

const MOOD: &str = "trigger: {type: custom, trigger_id: mood, params: {threshold: -0.5}, on: [action]}, mode: blocking";

#[test]
fn a_custom_trigger_is_called_after_the_attempt_is_recorded() {
    let mut bench = bench(MOOD, table(&["mood"], &[], &[]));
    let before = bench.records().len();
    let reply_id = bench.request("s-1", "a", json!({"x": 1}));
    assert!(bench.waits(reply_id));
    assert_eq!(
        bench.records()[before..],
        ["action_attempted", "policy_checked"]
    );
    let call = &bench.calls()[0];
    assert_eq!(call.name, "mood");
    let CallQuestion::Trigger { params } = &call.question else {
        panic!()
    };
    assert_eq!(params["threshold"], json!(-0.5));
    let told = call.to_json();
    assert_eq!(
        told["action"],
        json!({"type": "a", "params": {"x": 1}, "risk_tier": "low"})
    );
    assert_eq!(told["session"]["id"], json!("s-1"));
    bench.returns(json!({"triggered": false, "reason": "all is well"}));
    bench.allowed(reply_id);
    // A repeated answer, or an answer to no question, changes nothing.
    bench.returns(json!(true));
    assert_eq!(bench.held_ids(), Vec::<String>::new());
}

#[test]
fn a_custom_trigger_that_fires_or_fails_holds_the_request() {
    for (outcome, told) in [
        (Ok(json!(true)), "fires"),
        (Ok(json!({"triggered": true, "reason": "angry"})), "angry"),
        (Ok(json!("yes")), "failed, so it counts as fired"),
        (
            Err("no answer within 5 ms".to_owned()),
            "no answer within 5 ms",
        ),
    ] {
        let mut bench = bench(MOOD, table(&["mood"], &[], &[]));
        let reply_id = bench.request("s-1", "a", json!({}));
        bench.returned(outcome, Duration::ZERO);
        assert!(bench.waits(reply_id));
        assert_eq!(bench.held_ids(), ["c-1"]);
        let why = bench.held("c-1").gates[0].why.clone();
        assert!(why.contains(told), "{why}");
        bench.pass("c-1");
        bench.allowed(reply_id);
    }
}

#[test]
fn an_unknown_custom_trigger_counts_as_fired_unless_its_condition_decides() {
    let mut unknown = bench(MOOD, Extensions::default());
    let reply_id = unknown.request("s-1", "a", json!({}));
    assert!(unknown.waits(reply_id));
    assert_eq!(unknown.calls(), []);
    let when =
        "trigger: {type: custom, trigger_id: big, when: {path: params.n, gt: 10}}, mode: blocking";
    let mut decided = bench(when, Extensions::default());
    let small = decided.request("s-1", "a", json!({"n": 1}));
    decided.allowed(small);
    let big = decided.request("s-1", "a", json!({"n": 11}));
    assert!(decided.waits(big));
    let unclear = decided.request("s-1", "a", json!({"n": "many"}));
    assert!(
        decided.waits(unclear),
        "what cannot be told counts against the agent"
    );
    // With an extension both have to agree, and it is not called if the condition is false.
    let mut both = bench(when, table(&["big"], &[], &[]));
    let small = both.request("s-1", "a", json!({"n": 1}));
    both.allowed(small);
    let big = both.request("s-1", "a", json!({"n": 11}));
    both.returns(json!(false));
    both.allowed(big);
}

#[test]
fn an_advisory_checkpoint_with_a_failed_trigger_restricts_and_grants_nothing() {
    let advice = "trigger: {type: custom, trigger_id: mood, on: [action]}, \
                  unlock_capabilities: [extra], deny_actions: [c]";
    let mut unclear = bench(advice, table(&["mood"], &[], &[]));
    let reply_id = unclear.request("s-1", "a", json!({}));
    unclear.returned(Err("gone".to_owned()), Duration::ZERO);
    unclear.allowed(reply_id);
    let session = &unclear.engine.sessions()[0];
    assert!(session.unlocked.is_empty());
    assert!(session.denial_of("c").is_some());
    let mut clear = bench(advice, table(&["mood"], &[], &[]));
    clear.request("s-1", "a", json!({}));
    clear.returns(json!(true));
    assert_eq!(clear.engine.sessions()[0].unlocked.len(), 1);
}

#[test]
fn later_commands_of_a_session_wait_behind_a_suspended_one() {
    let on_input = "trigger: {type: custom, trigger_id: mood, on: [input]}, mode: blocking";
    let mut bench = bench(on_input, table(&["mood"], &[], &[]));
    bench.start("s-2");
    let said = bench.input("grr");
    let action = bench.request("s-1", "a", json!({}));
    let other = bench.request("s-2", "a", json!({}));
    bench.allowed(other);
    assert!(bench.waits(action), "it would have overtaken the gate");
    bench.returns(json!(true));
    assert!(bench.waits(said) && bench.waits(action));
    bench.pass("c-1");
    bench.accepted(said);
    bench.allowed(action);
}

#[test]
fn a_suspended_request_of_a_gone_caller_is_dropped_and_the_next_one_runs() {
    let mut bench = bench(MOOD, table(&["mood"], &[], &[]));
    let left = bench.request("s-1", "a", json!({}));
    let next = bench.request("s-1", "a", json!({"n": 2}));
    assert_eq!(bench.calls().len(), 1);
    bench.handle(EngineCommand::CallerDisconnected(left));
    assert_eq!(bench.calls().len(), 2);
    bench.returns(json!(false));
    bench.allowed(next);
    assert!(bench.waits(left));
    assert_eq!(bench.engine.sessions()[0].actions, 1);
}

#[test]
fn commands_behind_a_slow_extension_are_limited() {
    use crate::base::limits::MAX_HELD_PER_SESSION;
    let mut bench = bench(MOOD, table(&["mood"], &[], &[]));
    for n in 0..=MAX_HELD_PER_SESSION {
        bench.request("s-1", "a", json!({"n": n}));
    }
    let more = bench.request("s-1", "a", json!({"n": -1}));
    assert_eq!(bench.denied(more).code, DenyCode::Overload);
}

#[test]
fn parked_requests_call_extensions_once_the_start_gate_is_passed() {
    let body = format!(
        "actions: [{{action_id: a, risk_tier: low}}]\ncheckpoints: [\
         {{checkpoint_id: hello, trigger: {{type: session_start}}, mode: blocking}}, \
         {{checkpoint_id: g, {MOOD}}}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.engine.set_extensions(table(&["mood"], &[], &[]));
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    assert_eq!(bench.calls(), []);
    bench.pass("c-1");
    assert!(bench.waits(reply_id));
    bench.returns(json!(true));
    assert_eq!(bench.held_ids(), ["c-2"]);
    bench.refuse("c-2", "no");
    bench.denied(reply_id);
}

fn validated(on_invalid: &str, extensions: Extensions) -> EngineBench {
    let gate = format!(
        "trigger: {{type: action_pre, patterns: [a]}}, mode: blocking, questions: [\
         {{question_id: ticket, question: Which?, on_invalid: {on_invalid}, \
           validation: {{min_length: 3, custom_validator: is-ticket}}}}]"
    );
    let mut bench = bench(&gate, extensions);
    bench.request("s-1", "a", json!({}));
    bench
}

fn problems(bench: &EngineBench, reply_id: ReplyId) -> Vec<String> {
    match bench.reply(reply_id) {
        Reply::Operator(OperatorReply::Invalid(invalid)) => invalid.problems[0].rules.clone(),
        other => panic!("not invalid: {other:?}"),
    }
}

// covers B10
#[test]
fn a_validator_is_called_only_for_answers_that_keep_every_other_rule() {
    let mut bench = validated("retry", table(&[], &[], &["is-ticket"]));
    let short = bench.answer("c-1", json!([{"ticket": "x"}]));
    assert_eq!(bench.calls(), [], "a rule is broken already");
    problems(&bench, short);
    let wrong = bench.answer("c-1", json!([{"ticket": "T-404"}]));
    assert!(bench.waits(wrong));
    let CallQuestion::Validator { question, answer } = bench.calls()[0].question.clone() else {
        panic!()
    };
    assert_eq!((question.as_str(), answer), ("ticket", json!("T-404")));
    bench.returns(json!({"valid": false, "reason": "no such ticket"}));
    assert_eq!(
        problems(&bench, wrong),
        ["no such ticket (validator `is-ticket`)"]
    );
    let right = bench.answer("c-1", json!([{"ticket": "T-1"}]));
    bench.returns(json!(true));
    assert_eq!(bench.outcome(right), HeldOutcome::Passed);
}

#[test]
fn a_validator_that_fails_never_lets_an_answer_pass() {
    for on_invalid in ["retry", "warn_and_continue", "log_and_continue"] {
        let mut failing = validated(on_invalid, table(&[], &[], &["is-ticket"]));
        let reply_id = failing.answer("c-1", json!([{"ticket": "T-1"}]));
        failing.returned(Err("gone".to_owned()), Duration::ZERO);
        assert!(problems(&failing, reply_id)[0].contains("gone"));
        let mut unknown = validated(on_invalid, Extensions::default());
        let reply_id = unknown.answer("c-1", json!([{"ticket": "T-1"}]));
        assert!(problems(&unknown, reply_id)[0].contains("not available"));
        assert_eq!(unknown.held_ids(), ["c-1"]);
    }
    // A plain rejection is different: the steward defines its consequence.
    let mut no = validated("warn_and_continue", table(&[], &[], &["is-ticket"]));
    let reply_id = no.answer("c-1", json!([{"ticket": "T-1"}]));
    no.returns(json!(false));
    assert_eq!(no.outcome(reply_id), HeldOutcome::Passed);
    assert_eq!(
        no.payloads("checkpoint_response")[0]["validation_result"],
        json!("invalid")
    );
}

#[test]
fn a_decision_that_waits_for_a_validator_can_still_expire() {
    let mut bench = validated("retry", table(&[], &[], &["is-ticket"]));
    let reply_id = bench.answer("c-1", json!([{"ticket": "T-1"}]));
    bench.advance(301);
    bench.wake();
    bench.returns(json!(true));
    let Reply::Operator(OperatorReply::Refused(DecisionRefusal::AlreadySettled(settled))) =
        bench.reply(reply_id)
    else {
        panic!("{:?}", bench.reply(reply_id));
    };
    assert_eq!(settled.outcome, HeldOutcome::Expired);
}

#[test]
fn an_extension_answer_that_is_too_large_or_too_deep_counts_as_failed() {
    let mut deep = json!(true);
    for _ in 0..70 {
        deep = json!([deep]);
    }
    let large = json!({"triggered": false, "reason": "x".repeat(300_000)});
    for answer in [deep, large] {
        let mut bench = bench(MOOD, table(&["mood"], &[], &[]));
        let reply_id = bench.request("s-1", "a", json!({}));
        bench.returns(answer);
        assert!(bench.waits(reply_id));
        assert_eq!(bench.held_ids(), ["c-1"]);
    }
}

#[test]
fn an_agent_cannot_answer_a_gate_whose_trigger_failed() {
    let own = format!("{MOOD}, respondent: agent, unlock_capabilities: [extra]");
    let mut bench = bench(&own, table(&["mood"], &[], &[]));
    let reply_id = bench.request("s-1", "a", json!({}));
    bench.returned(Err("gone".to_owned()), Duration::ZERO);
    assert!(bench.waits(reply_id), "an operator has to look at it");
    bench.pass("c-1");
    bench.allowed(reply_id);
}

#[test]
fn an_agent_answer_is_dropped_if_the_caller_leaves_before_validation() {
    let own = "trigger: {type: action_pre, patterns: [a]}, mode: blocking, respondent: agent, \
        questions: [{question_id: q, question: Q?, validation: {custom_validator: check}}]";
    let mut bench = bench(own, table(&[], &[], &["check"]));
    bench.request("s-1", "a", json!({}));
    let answer = AgentAnswer {
        session: "s-1".parse().unwrap(),
        gate: "c-1".parse().unwrap(),
        answers: serde_json::from_value(json!({"g": {"q": "yes"}})).unwrap(),
        release: ReleaseTo::default(),
    };
    let left = bench.reply_id(|reply_id| EngineCommand::Answer(reply_id, answer.clone()));
    bench.handle(EngineCommand::CallerDisconnected(left));
    bench.returns(json!(true));
    assert_eq!(
        bench.engine.sessions()[0].actions,
        0,
        "nobody is there to run it"
    );
    let again = bench.reply_id(|reply_id| EngineCommand::Answer(reply_id, answer));
    bench.returns(json!(true));
    bench.allowed(again);
}

#[test]
fn all_triggers_are_called_once_before_the_request_continues() {
    let two = format!(
        "{MOOD}}}, {{checkpoint_id: h, {}",
        MOOD.replace("mood", "weather")
    );
    let mut bench = bench(&two, table(&["mood", "weather"], &[], &[]));
    let reply_id = bench.request("s-1", "a", json!({}));
    assert_eq!(bench.calls().len(), 2);
    bench.returns(json!(false));
    assert!(bench.waits(reply_id));
    assert_eq!(bench.calls().len(), 2, "the other one was asked already");
    let first = bench.calls().remove(0).id;
    let returned = crate::engine::extensions::CallResult {
        outcome: Ok(json!(false)),
        duration: Duration::ZERO,
    };
    bench.handle(EngineCommand::ExtensionReturned(first, returned));
    bench.allowed(reply_id);
}

#[test]
fn a_queued_command_is_dropped_when_its_caller_leaves() {
    let mut bench = bench(MOOD, table(&["mood"], &[], &[]));
    bench.request("s-1", "a", json!({}));
    let left = bench.request("s-1", "a", json!({"n": 2}));
    bench.handle(EngineCommand::CallerDisconnected(left));
    bench.returns(json!(false));
    assert_eq!(bench.calls().len(), 1, "nobody is there to hear about it");
    assert_eq!(bench.engine.sessions()[0].actions, 1);
}

#[test]
fn no_extension_is_called_for_a_checkpoint_that_cannot_fire() {
    let never = format!("{MOOD}, when: {{path: params.n, gt: 10}}");
    let mut bench = bench(&never, table(&["mood"], &[], &[]));
    let reply_id = bench.request("s-1", "a", json!({"n": 1}));
    bench.allowed(reply_id);
    assert_eq!(bench.calls(), []);
}

#[test]
fn only_a_checkpoint_that_certainly_fires_grants_anything() {
    let advice = "trigger: {type: custom, trigger_id: big, when: {path: params.n, gt: 10}}, \
                  unlock_capabilities: [extra]";
    let plain =
        "trigger: {type: custom, trigger_id: big, on: [action]}, unlock_capabilities: [extra]";
    let unlisted = Extensions::default();
    for (checkpoint, extensions, n, granted) in [
        (advice, table(&["big"], &[], &[]), json!("many"), 0),
        (advice, table(&["big"], &[], &[]), json!(11), 1),
        (advice, unlisted.clone(), json!("many"), 0),
        (advice, unlisted.clone(), json!(11), 1),
        (plain, unlisted, json!(11), 0),
    ] {
        let mut bench = bench(checkpoint, extensions);
        let reply_id = bench.request("s-1", "a", json!({ "n": n }));
        if bench.waits(reply_id) {
            bench.returns(json!(true));
        }
        bench.allowed(reply_id);
        let unlocked = bench.engine.sessions()[0].unlocked.len();
        assert_eq!(unlocked, granted, "{checkpoint} {n}");
    }
}

#[test]
fn an_advisory_input_checkpoint_with_an_unknown_condition_grants_nothing() {
    let advice = |when: &str| {
        format!(
            "trigger: {{type: custom, trigger_id: mood, on: [input]}}, when: {{{when}}}, \
             unlock_capabilities: [extra]"
        )
    };
    for (when, granted) in [
        ("path: params.n, gt: 1", 0),
        ("path: session.actions, eq: 0", 1),
    ] {
        let mut bench = bench(&advice(when), table(&["mood"], &[], &[]));
        bench.input("hello");
        // The trigger of a checkpoint that cannot fire is not called.
        assert_eq!(bench.calls().len(), granted, "{when}");
        if granted == 1 {
            bench.returns(json!(true));
        }
        assert_eq!(bench.engine.sessions()[0].unlocked.len(), granted, "{when}");
    }
}
