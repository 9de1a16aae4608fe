//! Comparison tests on generated sessions.

use serde_json::{Value, json};

use super::{DiffSide, MAX_ALIGNED, MAX_REPORTED, SessionDiff, StepKind, diff};
use crate::trace::event::Event;
use crate::trace::replay::tests::{event, session};
use crate::trace::source::MemorySource;

fn compare(a: &[(&str, Value)], b: &[(&str, Value)]) -> SessionDiff {
    let events = |steps: &[(&str, Value)]| -> Vec<Event> {
        let steps = steps.iter().zip(0..);
        steps
            .map(|((name, payload), at)| event(at, name, payload.clone()))
            .collect()
    };
    compare_events(events(a), events(b))
}

fn compare_events(a: Vec<Event>, b: Vec<Event>) -> SessionDiff {
    let (a, b) = (MemorySource::new(a), MemorySource::new(b));
    let session = session();
    let side = |source| DiffSide {
        source,
        session: &session,
    };
    diff(side(&a), side(&b)).unwrap()
}

fn start() -> (&'static str, Value) {
    ("session_started", json!({"agent_type": "bot"}))
}

fn response(answers: &Value, by: &str) -> (&'static str, Value) {
    let payload = json!({"checkpoint_id": "g", "answers": answers, "validation_result": "valid",
        "answered_by": by});
    ("checkpoint_response", payload)
}

#[test]
fn deciding_operator_and_time_do_not_count_as_a_difference() {
    let passed = |by: &str| {
        let completed = json!({"checkpoint_id": "g", "duration_ms": by.len()});
        [
            start(),
            response(&json!({"why": "because"}), by),
            (
                "checkpoint_passed",
                json!({"checkpoint_id": "g", "passed_by": by}),
            ),
            ("checkpoint_completed", completed),
        ]
    };
    let same = compare(&passed("op-1"), &passed("somebody else"));
    assert_eq!((same.first, same.common, same.changes_found), (None, 3, 0));
    let (a, b) = same.sums;
    assert_eq!(
        (a.decided_by, b.decided_by),
        (vec!["op-1".into()], vec!["somebody else".into()])
    );
    assert_eq!((a.passed, b.passed, a.events), (1, 1, 4));
}

#[test]
fn sensitive_answers_are_compared_by_presence_only() {
    let salted = |salt: &str| response(&json!({"pin": format!("sha256:{salt}:00"), "n": 1}), "op");
    let same = compare(&[start(), salted("aa")], &[start(), salted("bb")]);
    assert_eq!(same.first, None);
    let other = compare(
        &[start(), response(&json!({"n": 1}), "op")],
        &[start(), salted("bb")],
    );
    assert!(other.first.is_some());
}

#[test]
fn first_divergence_names_both_steps_and_their_sequence() {
    let attempt = |id: u64| {
        (
            "action_attempted",
            json!({"action_type": "t.get", "action_params": {"id": id}}),
        )
    };
    let done = (
        "action_completed",
        json!({"action_type": "t.get", "success": true}),
    );
    let blocked = (
        "action_blocked",
        json!({"action_type": "t.get", "policy_id": "p"}),
    );
    let a = [start(), attempt(1), done.clone(), attempt(2)];
    let b = [
        start(),
        attempt(1),
        ("input_received", json!({"input_hash": "x"})),
        blocked,
    ];
    let found = compare(&a, &b);
    let first = found.first.unwrap();
    let (of_a, of_b) = (first.a.unwrap(), first.b.unwrap());
    assert_eq!((found.common, of_a.sequence, of_b.sequence), (2, 2, 2));
    assert!(of_a.summary.starts_with("t.get ran in"), "{}", of_a.summary);
    assert!(of_b.summary.starts_with("input of"), "{}", of_b.summary);
    // Completed and blocked are two outcomes of one action step.
    let kinds: Vec<_> = found
        .changes
        .iter()
        .map(|change| {
            (
                change.kind,
                change.a.as_ref().map(|step| step.sequence),
                change.b.as_ref().map(|step| step.sequence),
            )
        })
        .collect();
    let wanted = [
        (StepKind::Exchange, None, Some(2)),
        (StepKind::Result, Some(2), Some(3)),
        (StepKind::Action, Some(3), None),
    ];
    assert_eq!(kinds, wanted);
}

#[test]
fn a_shorter_session_diverges_where_it_ends() {
    let more = ("my_own", json!({"x": 1}));
    let found = compare(&[start()], &[start(), more]);
    let first = found.first.unwrap();
    assert_eq!((first.a, first.b.unwrap().sequence), (None, 1));
    let none = compare(&[], &[]);
    assert_eq!((none.first, none.common), (None, 0));
}

#[test]
fn sessions_with_nothing_in_common_are_compared_in_bounded_time() {
    let long = |name: &str| -> Vec<Event> {
        let count = MAX_ALIGNED as u64 + 5_000;
        let made = |at| {
            event(
                at,
                "action_attempted",
                json!({"action_type": format!("{name}{at}")}),
            )
        };
        (0..count).map(made).collect()
    };
    let found = compare_events(long("a"), long("b"));
    assert_eq!((found.common, found.not_aligned), (0, (5_000, 5_000)));
    assert_eq!(
        (found.changes.len(), found.changes_found),
        (MAX_REPORTED, 2 * MAX_ALIGNED as u64)
    );
    assert_eq!(found.sums.0.attempted, MAX_ALIGNED as u64 + 5_000);
}
