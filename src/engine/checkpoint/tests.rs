use serde_json::json;

use super::*;
use crate::atlas::condition::{ConditionDef, Operator};
use crate::atlas::document::{
    AnswerValidation, CheckpointQuestion, CheckpointTrigger, InvalidAnswerAction, MatchMode,
    RiskTier,
};

fn actions(patterns: &[&str]) -> CheckpointTrigger {
    CheckpointTrigger::ActionPre {
        patterns: patterns
            .iter()
            .map(|pattern| (*pattern).to_owned())
            .collect(),
    }
}

fn gate() -> StewardCheckpointDef {
    StewardCheckpointDef::new("gate", "Gate", actions(&["*.delete"]))
        .blocking()
        .with_question(CheckpointQuestion::boolean("ok", "Do you agree?"))
        .with_guidance(GuidanceBlock::text("slowly"))
        .lock_capabilities(vec!["public".to_owned()])
}

fn asks_nothing(trigger: CheckpointTrigger) -> StewardCheckpointDef {
    StewardCheckpointDef::new("gate", "Gate", trigger).blocking()
}

fn evaluate(definition: &StewardCheckpointDef, data: Value) -> TriggeredCheckpoint {
    let evaluator = CheckpointEvaluator::new(CheckpointConfig::default());
    evaluator.evaluate_steward_checkpoint(definition, data)
}

/// Validates an answer that acknowledges a gate without questions.
fn acknowledge(definition: &StewardCheckpointDef, data: Value) -> CheckpointValidation {
    let answers = CheckpointAnswers::new("gate").with_answer("acknowledge", "understood");
    CheckpointValidator::validate(&evaluate(definition, data), &answers)
}

fn is_blocked(validation: &CheckpointValidation) -> bool {
    !validation.is_valid && !validation.actions.contains(&CheckpointAction::Proceed)
}

// covers B22, B23
#[test]
fn answers_decide_the_actions_of_a_checkpoint() {
    let answer = |action: &str, said: Value| {
        let triggered = evaluate(&gate(), json!({ "action_id": action }));
        let answers = CheckpointAnswers::new("gate").with_answer("ok", said);
        CheckpointValidator::validate(&triggered, &answers)
    };
    let yes = answer("ticket.delete", json!(true));
    assert!(yes.is_valid);
    assert_eq!(
        yes.actions,
        [
            CheckpointAction::Proceed,
            CheckpointAction::InjectGuidance {
                guidance: GuidanceBlock::text("slowly")
            },
            CheckpointAction::LockCapability {
                capability_id: "public".to_owned()
            },
        ]
    );
    let no = answer("ticket.delete", json!("false"));
    assert!(is_blocked(&no));
    assert!(matches!(no.actions[..], [CheckpointAction::Retry { .. }]));
    let elsewhere = answer("ticket.get", json!(false));
    assert_eq!(elsewhere.actions, [CheckpointAction::Proceed]);
}

#[test]
fn a_question_with_an_invalid_pattern_blocks() {
    let mut broken = gate();
    broken.questions[0] =
        CheckpointQuestion::text("ok", "Why?").with_validation(AnswerValidation {
            pattern: Some("(".to_owned()),
            ..Default::default()
        });
    let triggered = evaluate(&broken, json!({ "action_id": "ticket.delete" }));
    let answers = CheckpointAnswers::new("gate").with_answer("ok", "x");
    assert!(is_blocked(&CheckpointValidator::validate(
        &triggered, &answers
    )));
}

// covers B22
#[test]
fn an_answer_without_a_validator_verdict_passes_no_gate() {
    for on_invalid in [
        InvalidAnswerAction::Retry,
        InvalidAnswerAction::Block,
        InvalidAnswerAction::WarnAndContinue,
        InvalidAnswerAction::LogAndContinue,
    ] {
        let mut asked = CheckpointQuestion::text("ok", "Why?").with_validation(AnswerValidation {
            custom_validator: Some("legal".to_owned()),
            ..Default::default()
        });
        asked.on_invalid = on_invalid;
        let gate = asks_nothing(actions(&["*"])).with_question(asked);
        let triggered = evaluate(&gate, json!({ "action_id": "a" }));
        let answers = CheckpointAnswers::new("gate").with_answer("ok", "because");
        let judged = CheckpointValidator::validate(&triggered, &answers);
        assert!(is_blocked(&judged), "{on_invalid:?}: {judged:?}");
        let accepts = |name: &str, question: &str, answer: &Value| {
            assert_eq!((name, question), ("legal", "ok"));
            Some(match answer.as_str() {
                Some("because") => Ok(()),
                _ => Err("not a reason".to_owned()),
            })
        };
        let judged = CheckpointValidator::validate_with(&triggered, &answers, &accepts);
        assert!(judged.is_valid, "{judged:?}");
    }
}

// covers B22
#[test]
fn only_an_acknowledgment_passes_a_gate_without_questions() {
    let gate = asks_nothing(actions(&["*"]));
    let triggered = evaluate(&gate, json!({ "action_id": "a" }));
    let silent = CheckpointValidator::validate(&triggered, &CheckpointAnswers::new("gate"));
    assert!(is_blocked(&silent));
    let other = CheckpointAnswers::new("other").with_answer("acknowledge", "understood");
    assert!(is_blocked(&CheckpointValidator::validate(
        &triggered, &other
    )));
    assert!(acknowledge(&gate, json!({ "action_id": "a" })).is_valid);
}

// covers B22
#[test]
fn trigger_data_without_the_required_field_passes_no_gate() {
    let keyword = CheckpointTrigger::Keyword {
        patterns: vec!["refund".to_owned()],
        case_sensitive: false,
        match_mode: MatchMode::Phrase,
        threshold: None,
    };
    let capability = CheckpointTrigger::CapabilityAccess {
        capability_ids: vec!["admin".to_owned()],
    };
    let risk = CheckpointTrigger::RiskThreshold {
        min_tier: RiskTier::High,
    };
    let after = CheckpointTrigger::ActionPost {
        patterns: vec!["*".to_owned()],
    };
    for trigger in [&keyword, &capability, &risk, &after, &actions(&["*"])] {
        let gate = asks_nothing(trigger.clone());
        for data in [json!({}), json!(null), json!("x"), json!({"action": "a"})] {
            let triggered = evaluate(&gate, data.clone());
            assert!(
                triggered.fired && triggered.unjudged.is_some(),
                "{trigger:?} {data}"
            );
            assert!(is_blocked(&acknowledge(&gate, data)), "{trigger:?}");
        }
    }
    assert!(is_blocked(&acknowledge(
        &asks_nothing(risk.clone()),
        json!({"risk_tier": "hihg"})
    )));

    let fired = |trigger: &CheckpointTrigger, data: Value| {
        let triggered = evaluate(&asks_nothing(trigger.clone()), data);
        assert_eq!(triggered.unjudged, None);
        triggered.fired
    };
    assert!(fired(&keyword, json!({"input": "a REFUND, please"})));
    assert!(!fired(&keyword, json!({"input": "the weather"})));
    assert!(fired(&capability, json!({"capability_id": "admin"})));
    assert!(!fired(&capability, json!({"capability_id": "reading"})));
    assert!(fired(&risk, json!({"risk_tier": "critical"})));
    assert!(!fired(&risk, json!({"risk_tier": "low"})));
    // Without a tier it is detected, as in the engine.
    assert!(fired(&risk, json!({"action_id": "ticket.delete"})));
    assert!(!fired(&risk, json!({"action_id": "ticket.get"})));
}

// covers B22
#[test]
fn an_unknown_condition_passes_no_gate() {
    let when = |path: &str, operator: Operator, wanted: Value| ConditionDef::Leaf {
        path: path.to_owned(),
        tests: vec![(operator, wanted)],
    };
    let gate = |condition: ConditionDef| {
        let mut gate = asks_nothing(actions(&["*"]));
        gate.when = Some(condition);
        gate
    };
    let amount = gate(when("params.amount", Operator::Gt, json!(1000)));
    let pay = |params: Value| json!({ "action_id": "pay", "params": params });
    assert!(!evaluate(&amount, pay(json!({"amount": 10}))).fired);
    assert!(acknowledge(&amount, pay(json!({"amount": 2000}))).is_valid);
    for data in [
        pay(json!({})),
        pay(json!({"amount": "2000"})),
        json!({"action_id": "pay"}),
    ] {
        assert!(is_blocked(&acknowledge(&amount, data.clone())), "{data}");
    }
    // A fact that the data lacks is not the same as a fact that is absent.
    let absent = gate(when("params.amount", Operator::Exists, json!(true)));
    assert!(is_blocked(&acknowledge(
        &absent,
        json!({"action_id": "pay"})
    )));
    let night = gate(when("time.hour", Operator::Lt, json!(6)));
    assert!(is_blocked(&acknowledge(
        &night,
        json!({"action_id": "pay"})
    )));
    let noon = json!({"action_id": "pay", "now": "2026-01-01T12:00:00.000000Z"});
    assert!(!evaluate(&night, noon).fired);
    let agent = gate(when("session.agent", Operator::Eq, json!("bot")));
    assert!(is_blocked(&acknowledge(
        &agent,
        json!({"action_id": "pay"})
    )));
    let bot = json!({"action_id": "pay", "session": {"agent": "bot"}});
    assert!(acknowledge(&agent, bot).is_valid);
    let broken = gate(when("params.amount", Operator::Matches, json!("(")));
    assert!(is_blocked(&acknowledge(
        &broken,
        pay(json!({"amount": "x"}))
    )));
}

// covers B22
#[test]
fn answers_alone_do_not_pass_a_gate_with_two_approvers_or_a_handler() {
    let mut two = asks_nothing(actions(&["*"]));
    two.approvers = Approvers::Two;
    let mut handled = asks_nothing(actions(&["*"]));
    handled.handler = Some("legal".to_owned());
    let mut advised = handled.clone();
    advised.mode = CheckpointMode::Advisory;
    let ending = asks_nothing(CheckpointTrigger::SessionEnd);
    for gate in [two, handled, advised, ending] {
        let judged = acknowledge(&gate, json!({ "action_id": "a" }));
        assert!(is_blocked(&judged), "{gate:?} {judged:?}");
    }
}

#[test]
fn an_unjudged_advisory_checkpoint_grants_nothing() {
    let advice = StewardCheckpointDef::new("gate", "Gate", actions(&["*"]))
        .unlock_capabilities(vec!["admin".to_owned()])
        .lock_capabilities(vec!["public".to_owned()]);
    let locked = CheckpointAction::LockCapability {
        capability_id: "public".to_owned(),
    };
    let judged = acknowledge(&advice, json!({}));
    assert_eq!(judged.actions, [CheckpointAction::Proceed, locked]);
    assert_eq!(
        acknowledge(&advice, json!({ "action_id": "a" }))
            .actions
            .len(),
        3
    );
}
