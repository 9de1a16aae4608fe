//! The same answer as a real request would get, with its reasons, and nothing changed.

use super::super::explain::{CheckpointOutcome, Verdict, WhatIf};
use super::*;

fn what_if(action: &str, params: Value) -> WhatIf {
    WhatIf {
        action: action.to_owned(),
        params,
        agent: "bot".to_owned(),
        unlocked: BTreeSet::from(["basic-support".to_owned()]),
        locked: BTreeSet::new(),
    }
}

#[test]
fn every_checkpoint_says_what_it_wanted_and_found() {
    let bench = Bench::acme();
    let told = bench
        .engine
        .explain(&what_if("ticket.comment", json!({})), bench.now);
    assert!(
        matches!(told.verdict, Verdict::Allowed),
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
        why: "it fires at the start of a session".to_owned(),
    };
    assert_eq!(
        outcomes,
        [
            ("onboarding", &skipped),
            (
                "admin-gate",
                &not("a locked one of [admin-support]", "[basic-support]")
            ),
            (
                "delete-confirm",
                &not("an action like [*.delete]", "ticket.comment")
            ),
            (
                "high-risk-gate",
                &not("tier high or higher", "detected tier low")
            ),
        ]
    );
}

#[test]
fn an_explanation_agrees_with_what_happens() {
    let mut bench = Bench::in_acme("s-1");
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
        let ask = bench.request("s-1", action, params);
        match told {
            Verdict::Allowed => drop(bench.allowed(ask).clone()),
            Verdict::Denied(denied) => assert_eq!(bench.denied(ask), &denied),
            Verdict::Held { gates } => {
                assert!(bench.waits(ask));
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
    let mut bench = Bench::in_acme("s-1");
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
    let bench = Bench::new(&[&atlas(body)]);
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
