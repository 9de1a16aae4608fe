//! Sample conversations, built from turns.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture;
use crate::base::clock::Timestamp;
use crate::memento::{Thread, ThreadOwner, Turn, TurnIds};
use crate::runtime::snapshot::RuntimeSnapshot;

fn ago(seconds: u64) -> Timestamp {
    let span = i64::try_from(Duration::from_secs(seconds).as_micros()).unwrap();
    Timestamp::from_micros(fixture::now().micros() - span)
}

/// Returns the thread after a turn `seconds` seconds ago, with its record.
pub(super) fn take(thread: &Thread, seconds: u64, number: u32, fields: Value) -> Thread {
    let mut turn = json!({"message_id": format!("m-{number}"), "message": "go on"});
    let Value::Object(fields) = fields else {
        panic!("fields of a turn");
    };
    turn.as_object_mut().unwrap().extend(fields);
    let turn = Turn::read(turn.to_string().as_bytes()).unwrap();
    let named = TurnIds {
        by: ThreadOwner {
            session: thread.session.clone(),
            secret: None,
            process: None,
        },
        memento: format!("mm-{number}").parse().unwrap(),
    };
    let taken = thread.process_turn(&turn, named, ago(seconds));
    let mut next = taken.unwrap().0;
    next.set_record(
        format!("event-{number}").parse().unwrap(),
        1800 + u64::from(number),
    );
    next
}

fn thread(id: &str, session: &str) -> Thread {
    Thread::new(id.parse().unwrap(), session.parse().unwrap())
}

fn feels(label: &str, intensity: f64) -> Value {
    json!({"label": label, "intensity": intensity, "confidence": "high", "source": "model"})
}

fn signal(kind: &str, source: &str) -> Value {
    json!([{"endMessageId": "m-1", "kind": kind, "confidence": "high", "source": source}])
}

fn summary(arc: &str, next: &[&str]) -> Value {
    json!({
        "arc": arc,
        "active": ["delete 4411..4413 (waiting c-121)", "confirm export window with o2"],
        "parked": ["SLA report format"],
        "decisions": ["keep 4398 as canonical", "no cascade on closed tickets"],
        "next": next,
    })
}

/// `t-31`: at its peak, frozen, with two proposals held back.
pub(super) fn frozen() -> Thread {
    let kept = summary(
        "dedupe ACME tickets before Friday's export",
        &["run export dry-run"],
    );
    let thread = thread("t-31", "s-12");
    let calm = json!({"affect": feels("calm", 0.2), "proposed": kept});
    let thread = take(&thread, 900, 1, calm);
    let thread = take(&thread, 600, 2, json!({"affect": feels("busy", 0.5)}));
    let hot =
        json!({"affect": feels("tense", 0.9), "signals": signal("risk_or_conflict", "server")});
    let thread = take(&thread, 300, 3, hot);
    let worse = json!({
        "affect": feels("tense", 0.9),
        "signals": signal("risk_or_conflict", "server"),
        "proposed": summary("dedupe ACME tickets, all of them", &["run export dry-run"]),
    });
    let thread = take(&thread, 201, 4, worse);
    let purge = summary(
        "purge all ACME duplicates now",
        &["delete remaining 190 duplicates"],
    );
    let last = json!({
        "affect": feels("angry", 0.92),
        "signals": signal("open_loop_created", "model"),
        "proposed": purge,
    });
    take(&thread, 21, 5, last)
}

/// `t-29`: calm, of another agent.
pub(super) fn calm() -> Thread {
    let proposed =
        json!({"arc": "answer questions about invoices", "next": ["wait for the customer"]});
    let thread = take(
        &thread("t-29", "s-07"),
        4000,
        1,
        json!({"affect": feels("calm", 0.1), "proposed": proposed}),
    );
    take(&thread, 60, 2, json!({"message": "ok thanks"}))
}

/// A thread with hostile text in every field.
pub(super) fn hostile() -> Thread {
    let evil = "safe\u{202e}\u{1b}[2J\u{200b}\n| FROZEN 0 日本語";
    let thread = thread("t\u{202e}-\u{1b}[31m日本", "s-15");
    let first = json!({
        "message_id": "m\u{1b}]0;x\u{7}",
        "affect": feels("l\u{202e}abel", 0.9),
        "proposed": {"arc": evil, "active": [evil], "parked": [evil], "decisions": [evil], "next": [evil]},
    });
    let thread = take(&thread, 120, 1, first);
    let second = json!({
        "message_id": "m\u{1b}]0;x\u{7}",
        "affect": feels("l\u{202e}abel", 0.9),
        "proposed": {"arc": format!("other {evil}"), "next": [format!("do {evil}")]},
    });
    take(&thread, 60, 2, second).flag_drift("op\u{202e}-1")
}

/// A snapshot with these conversations.
pub(super) fn with(
    mut snapshot: RuntimeSnapshot,
    threads: impl IntoIterator<Item = Thread>,
) -> RuntimeSnapshot {
    snapshot.threads = threads.into_iter().map(Arc::new).collect();
    snapshot
}

/// A snapshot with two conversations, one of them frozen.
pub(super) fn two() -> RuntimeSnapshot {
    with(fixture::idle(), [frozen(), calm()])
}
