//! Tests that called and consulted extensions are the same ones, for random Atlases, commands and answers.

use proptest::prelude::*;

use super::*;
use crate::engine::extensions::{CallQuestion, CallResult, Extensions};

const TRIGGERS: [&str; 13] = [
    "type: session_start",
    "type: session_end",
    "type: keyword, patterns: [hello]",
    "type: action_pre, patterns: ['*']",
    "type: action_post, patterns: ['*']",
    "type: risk_threshold, min_tier: low",
    "type: time_interval, seconds: 60",
    "type: count_interval, actions: 1",
    "type: explicit_request",
    "type: error_occurred",
    "type: custom, trigger_id: asked, on: [action]",
    "type: custom, trigger_id: asked, on: [input]",
    "type: capability_access, capability_ids: [extra]",
];

const EXTRAS: [&str; 6] = [
    "",
    ", unlock_capabilities: [extra]",
    ", lock_capabilities: [extra]",
    ", when: {path: session.actions, eq: 0}",
    ", when: {path: params.n, gt: 1}",
    ", deny_actions: [act]",
];

/// Returns one random checkpoint. `number` makes its identifier unique.
fn checkpoint(number: usize) -> impl Strategy<Value = String> {
    let handlers = prop_oneof![
        Just(", handler: one"),
        Just(", handler: two"),
        Just(", handler: unknown"),
        Just(""),
    ];
    let modes = prop_oneof![Just("blocking"), Just("advisory"), Just("observational")];
    let extras = prop::sample::select(EXTRAS.to_vec());
    let triggers = prop::sample::select(TRIGGERS.to_vec());
    (triggers, modes, handlers, extras, 1..900_u32).prop_map(
        move |(trigger, mode, handler, extra, priority)| {
            let ends = trigger.contains("session_end") && mode == "blocking";
            let mode = if ends { "advisory" } else { mode };
            format!(
                "{{checkpoint_id: c{number}, trigger: {{{trigger}}}, mode: {mode}, \
                 priority: {priority}{handler}{extra}}}"
            )
        },
    )
}

fn checkpoints() -> impl Strategy<Value = Vec<String>> {
    (1..6_usize).prop_flat_map(|count| (0..count).map(checkpoint).collect::<Vec<_>>())
}

/// A step of an agent or an operator.
#[derive(Clone, Copy, Debug)]
enum Step {
    Input,
    Request,
    Complete,
    Error,
    Context,
    Advance,
    Pass,
    Refuse,
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Request),
        2 => Just(Step::Input),
        2 => Just(Step::Complete),
        2 => Just(Step::Pass),
        1 => Just(Step::Error),
        1 => Just(Step::Context),
        1 => Just(Step::Advance),
        1 => Just(Step::Refuse),
        1 => Just(Step::End),
    ];
    prop::collection::vec(step, 1..8)
}

fn answers() -> impl Strategy<Value = Vec<Result<Value, String>>> {
    let answer = prop_oneof![
        4 => Just(Ok(json!({"continue": true}))),
        2 => Just(Ok(json!({"continue": true, "modifiedInput": "hello again"}))),
        1 => Just(Ok(json!({"approved": false, "reason": "no"}))),
        1 => Just(Ok(json!({
            "continue": true,
            "policyDecision": {"decision": "require_approval", "reason": "ask"},
        }))),
        1 => Just(Err("gone".to_owned())),
    ];
    prop::collection::vec(answer, 1..6)
}

/// Answers every open call, in the order made, until no command waits for extensions.
fn answer_calls(bench: &mut EngineBench, answered: &mut usize, answers: &[Result<Value, String>]) {
    while let Some(call) = bench.calls().get(*answered).cloned() {
        let outcome = match call.question {
            CallQuestion::Trigger { .. } => Ok(json!(!call.id.0.is_multiple_of(3))),
            CallQuestion::Handler | CallQuestion::Validator { .. } => {
                answers[*answered % answers.len()].clone()
            }
        };
        *answered += 1;
        let returned = CallResult {
            outcome,
            duration: Duration::ZERO,
        };
        bench.handle(EngineCommand::ExtensionReturned(call.id, returned));
        assert!(*answered < 200, "the calls do not end");
    }
}

fn take(bench: &mut EngineBench, step: Step, reply_ids: &mut Vec<ReplyId>) {
    match step {
        Step::Input => drop(bench.input("hello")),
        Step::Request => reply_ids.push(bench.request("s-1", "act", json!({}))),
        Step::Complete => {
            let run = |reply_id: &ReplyId| {
                matches!(
                    bench.replies.get(reply_id),
                    Some(Reply::Agent(AgentReply::Allowed(_)))
                )
            };
            if let Some(index) = reply_ids.iter().position(run) {
                let reply_id = reply_ids.remove(index);
                bench.complete(reply_id, Ok("done"));
            }
        }
        Step::Error => drop(bench.error()),
        Step::Context => drop(bench.context(&[], None)),
        Step::Advance => bench.advance(61),
        Step::Pass | Step::Refuse => {
            let held = bench.held_ids();
            match (held.first(), step) {
                (Some(gate), Step::Pass) => drop(bench.pass(gate)),
                (Some(gate), _) => drop(bench.refuse(gate, "not now")),
                (None, _) => {}
            }
        }
        Step::End => drop(bench.end("s-1")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    // covers A15
    #[test]
    fn every_consulted_handler_was_called_and_every_called_handler_is_consulted(
        checkpoints in checkpoints(),
        steps in steps(),
        answers in answers(),
    ) {
        let body = format!(
            "actions: [{{action_id: act, risk_tier: low}}]\n\
             capabilities: [{{capability_id: extra, actions: [act]}}]\n\
             checkpoints: [{}]\n",
            checkpoints.join(", "),
        );
        prop_assume!(load_str("test.yaml", &atlas(&body)).is_ok());
        let mut bench = EngineBench::new(&[&atlas(&body)]);
        bench.engine.set_extensions(Extensions {
            triggers: BTreeSet::from(["asked".to_owned()]),
            handlers: BTreeSet::from(["one".to_owned(), "two".to_owned()]),
            ..Extensions::default()
        });
        let (mut answered, mut reply_ids) = (0, Vec::new());
        bench.start("s-1");
        answer_calls(&mut bench, &mut answered, &answers);
        for step in steps {
            take(&mut bench, step, &mut reply_ids);
            answer_calls(&mut bench, &mut answered, &answers);
        }
        let calls = bench.calls();
        let called = calls.iter().filter(|call| call.question == CallQuestion::Handler);
        let mut called: Vec<_> = called
            .map(|call| (call.context.checkpoint_id.clone(), call.name.clone()))
            .collect();
        let consulted = bench.payloads("plugin_event");
        let mut consulted: Vec<_> = consulted
            .iter()
            .map(|event| (
                event["data"]["checkpoint_id"].as_str().unwrap().to_owned(),
                event["plugin_name"].as_str().unwrap().to_owned(),
            ))
            .filter(|(_, handler)| handler != "unknown")
            .collect();
        called.sort();
        consulted.sort();
        prop_assert_eq!(called, consulted);
        let effects = format!("{:?}", bench.effects);
        prop_assert!(!effects.contains("was not called"), "{}", effects);
    }
}
