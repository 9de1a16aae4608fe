//! Tests of explanations: they agree with real requests, give reasons, and change nothing.

use super::super::explanation::{
    CheckpointOutcome, ExplainedVerdict, HypotheticalRequest, HypotheticalSession,
    explain_input_under, explain_under,
};
use super::*;

fn what_if(action: &str, params: Value) -> HypotheticalRequest {
    HypotheticalRequest {
        action: action.to_owned(),
        params,
        session: HypotheticalSession {
            agent: Some("bot".to_owned()),
            unlocked: BTreeSet::from(["basic-support".to_owned()]),
            ..HypotheticalSession::default()
        },
    }
}

#[test]
fn every_checkpoint_explains_its_expected_and_actual_value() {
    let bench = EngineBench::acme();
    let told = bench
        .engine
        .explain(&what_if("ticket.comment", json!({})), bench.now);
    assert!(
        matches!(told.verdict, ExplainedVerdict::Allowed),
        "{:?}",
        told.verdict
    );
    let outcomes: Vec<_> = told
        .checkpoints
        .iter()
        .map(|c| (c.checkpoint_id.as_str(), &c.outcome))
        .collect();
    let not = |wanted: &str, actual: &str| CheckpointOutcome::NotFired {
        wanted: wanted.to_owned(),
        actual: actual.to_owned(),
    };
    let skipped = CheckpointOutcome::Skipped {
        why: "fires at the start of a session".to_owned(),
    };
    assert_eq!(
        outcomes,
        [
            ("onboarding", &skipped),
            (
                "admin-gate",
                &not("a locked capability of [admin-support]", "[basic-support]")
            ),
            (
                "delete-confirm",
                &not("an action like [*.delete]", "ticket.comment")
            ),
            (
                "high-risk-gate",
                &not("risk high or higher", "detected risk low")
            ),
        ]
    );
}

#[test]
fn an_explanation_agrees_with_the_real_decision() {
    let mut bench = EngineBench::in_acme("s-1");
    for (action, params) in [
        ("ticket.get", json!({"ticket_id": "x"})),
        ("ticket.get", json!({})),
        ("ticket.delete", json!({})),
        ("user.ban", json!({"user": "prod-1"})),
        ("payment.refund", json!({})),
    ] {
        let told = bench
            .engine
            .explain(&what_if(action, params.clone()), bench.now)
            .verdict;
        let reply_id = bench.request("s-1", action, params);
        match told {
            ExplainedVerdict::Allowed => drop(bench.allowed(reply_id).clone()),
            ExplainedVerdict::Denied(denied) => assert_eq!(bench.denied(reply_id), &denied),
            ExplainedVerdict::Held { gates } => {
                assert!(bench.waits(reply_id));
                let held = bench.engine.held();
                let stands = held.iter().find(|held| held.action() == action).unwrap();
                let names: Vec<_> = stands.gates.iter().map(|gate| gate.origin.id()).collect();
                assert_eq!(names, gates);
            }
        }
    }
}

#[test]
fn an_explanation_changes_nothing() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({}));
    let before = (bench.engine.held(), format!("{:?}", bench.engine.state));
    for action in ["ticket.delete", "ticket.get", "x"] {
        let _ = bench.engine.explain(&what_if(action, json!({})), bench.now);
    }
    assert_eq!(
        before,
        (bench.engine.held(), format!("{:?}", bench.engine.state))
    );
}

#[test]
fn conditions_are_explained_leaf_by_leaf() {
    let body = "
actions: [{action_id: pay}]
policies:
  - policy_id: big
    type: requires_approval
    actions: [pay]
    when: {all: [{path: params.amount, gt: 1000}, {path: session.agent, eq: bot}]}
";
    let bench = EngineBench::new(&[&atlas(body)]);
    let told = bench
        .engine
        .explain(&what_if("pay", json!({"amount": 750})), bench.now);
    let policy = &told.policies[0];
    assert!(!policy.applies);
    let leaves: Vec<_> = policy
        .conditions
        .iter()
        .map(|leaf| leaf.wanted.as_str())
        .collect();
    assert_eq!(leaves, ["gt 1000", "eq \"bot\""]);
    assert_eq!(policy.conditions[0].actual, Some(json!(750)));
}

fn words(outcome: &CheckpointOutcome) -> String {
    match outcome {
        CheckpointOutcome::Fired { why } => format!("fired: {why}"),
        CheckpointOutcome::NotFired { wanted, actual } => format!("wanted {wanted}, {actual}"),
        CheckpointOutcome::Skipped { why } => format!("skipped: {why}"),
    }
}

const MOMENTS: &str = "
default_decision: allow
actions: [{action_id: delete_user}]
context_blocks:
  - {context_id: geometry, content: x, keywords: [formula]}
checkpoints:
  - {checkpoint_id: refund, mode: blocking, trigger: {type: keyword, patterns: [refund, cancel]}}
  - {checkpoint_id: both, trigger: {type: keyword, patterns: [refund, now], match_mode: all}}
  - checkpoint_id: bots
    trigger: {type: keyword, patterns: [refund]}
    when: {path: session.agent, eq: human}
  - {checkpoint_id: clock, mode: blocking, trigger: {type: time_interval, seconds: 300}}
  - {checkpoint_id: count, trigger: {type: count_interval, actions: 5}}
checkpoint_config:
  action_pre:
    mappings: {'delete_*': {require_confirmation: true}, delete_user: {}}
";

#[test]
fn input_is_explained_checkpoint_by_checkpoint() {
    let atlases = atlases_of(&[&atlas(MOMENTS)]);
    let now = EngineBench::acme().now;
    let session = HypotheticalSession::default();
    let told = explain_input_under(&atlases, "I want a REFUND", &session, now);
    let outcomes = told.checkpoints.iter().map(|checkpoint| {
        (
            checkpoint.checkpoint_id.as_str(),
            words(&checkpoint.outcome),
        )
    });
    let outcomes: Vec<_> = outcomes.collect();
    let named = |name| {
        outcomes
            .iter()
            .find(|(id, _)| *id == name)
            .unwrap()
            .1
            .as_str()
    };
    assert_eq!(
        named("refund"),
        "fired: keywords found: `refund` at character 9"
    );
    assert_eq!(named("both"), "wanted all of [refund, now], not all found");
    assert_eq!(named("bots"), "wanted when, its condition does not hold");
    assert_eq!(named("clock"), "wanted 300 seconds, 0 seconds");
    assert_eq!(named("count"), "wanted 5 actions, 0 actions");
    assert_eq!(named("config.action_pre.1"), "skipped: fires at actions");
    assert_eq!(
        words(&told.contexts[0].outcome),
        "wanted one of [formula], none found"
    );
    assert!(matches!(&told.verdict, ExplainedVerdict::Held { gates } if gates == &["refund"]));
    let nothing = explain_input_under(&atlases, "hello", &session, now);
    assert!(matches!(nothing.verdict, ExplainedVerdict::Allowed));
    assert_eq!(
        words(&nothing.checkpoints[2].outcome),
        "wanted one of [refund, cancel], none found"
    );
}

#[test]
fn due_intervals_come_before_a_request_and_the_most_specific_key_applies() {
    let atlases = atlases_of(&[&atlas(MOMENTS)]);
    let now = EngineBench::acme().now;
    let asked = |age_seconds| {
        let session = HypotheticalSession {
            age_seconds,
            actions: 3,
            ..HypotheticalSession::default()
        };
        let what_if = HypotheticalRequest {
            action: "delete_user".to_owned(),
            params: json!({}),
            session,
        };
        explain_under(&atlases, &what_if, now)
    };
    let told = asked(299);
    assert!(
        matches!(told.verdict, ExplainedVerdict::Allowed),
        "{:?}",
        told.verdict
    );
    let outcome = |name| {
        let mut all = told.checkpoints.iter();
        words(
            &all.find(|checkpoint| checkpoint.checkpoint_id == name)
                .unwrap()
                .outcome,
        )
    };
    assert_eq!(outcome("clock"), "wanted 300 seconds, 299 seconds");
    assert_eq!(outcome("count"), "wanted 5 actions, 3 actions");
    let general = told
        .checkpoints
        .iter()
        .find(|checkpoint| checkpoint.checkpoint_id == "config.action_pre.1");
    assert_eq!(
        words(&general.unwrap().outcome),
        "wanted no closer pattern than `delete_*`, `delete_user` also matches delete_user"
    );
    assert!(matches!(asked(300).verdict, ExplainedVerdict::Held { gates } if gates == ["clock"]));
}

#[test]
fn held_and_hypothetical_requests_of_a_session_can_be_explained() {
    let mut bench = EngineBench::in_acme("s-1");
    bench.request("s-1", "ticket.delete", json!({}));
    let held: HeldRequestId = "c-2".parse().unwrap();
    let before = bench.records().len();
    let told = bench.engine.explain_held(&held, bench.now).unwrap();
    let fired = told
        .checkpoints
        .iter()
        .filter(|checkpoint| matches!(checkpoint.outcome, CheckpointOutcome::Fired { .. }));
    let fired: Vec<_> = fired
        .map(|checkpoint| checkpoint.checkpoint_id.as_str())
        .collect();
    let gates = bench.held("c-2").gates;
    let gates: Vec<_> = gates.iter().map(|gate| gate.origin.id()).collect();
    assert_eq!(gates, [fired, vec!["require-admin-approval"]].concat());
    assert!(
        told.policies
            .iter()
            .any(|policy| policy.applies && policy.policy_id == "require-admin-approval")
    );

    // The current state of the session counts: its gate is no longer in the way.
    let session = "s-1".parse().unwrap();
    let again = |bench: &EngineBench| {
        let told = bench
            .engine
            .explain_request(&session, "user.ban", &json!({}), bench.now);
        let told = told.unwrap();
        let gate = told
            .checkpoints
            .into_iter()
            .find(|checkpoint| checkpoint.checkpoint_id == "admin-gate");
        gate.unwrap().outcome
    };
    assert!(matches!(again(&bench), CheckpointOutcome::Fired { .. }));
    bench.pass("c-2");
    assert!(matches!(again(&bench), CheckpointOutcome::NotFired { .. }));
    assert!(bench.engine.explain_held(&held, bench.now).is_none());
    let unknown = "s-9".parse().unwrap();
    assert!(
        bench
            .engine
            .explain_request(&unknown, "user.ban", &json!({}), bench.now)
            .is_none()
    );
    assert!(bench.records().len() > before, "only passing was recorded");
}
