//! Conversations at the socket: each belongs to a session, and an operator's edit of one stays.

use std::time::Duration;

use cra_core::base::limits::{MAX_SESSION_THREADS, MAX_THREADS};
use cra_core::gateway::protocol::call::CallError;
use cra_core::memento::{SummaryShape, Thread};
use cra_core::runtime::ThreadAction;
use serde_json::{Value, json};

use super::{Agent, TestConsole};

/// A turn of `thread`, with these fields in addition to the message.
pub(super) fn turn(session: &str, thread: &str, number: usize, fields: &Value) -> Value {
    let mut turn = json!({"message_id": format!("m-{number}"), "message": "go on"});
    let fields = fields.as_object().unwrap().clone();
    turn.as_object_mut().unwrap().extend(fields);
    json!({"session": session, "thread": thread, "turn": turn})
}

pub(super) fn heated(arc: &str, intensity: f64) -> Value {
    json!({
        "affect": {"label": "tense", "intensity": intensity, "confidence": "high", "source": "model"},
        "proposed": {"arc": arc, "decisions": [arc]},
    })
}

fn brings(memento: &Value) -> Value {
    json!({"context": {"thread_memento": memento}})
}

fn signal(kind: &str) -> Value {
    json!({"endMessageId": "m-1", "kind": kind, "confidence": "high", "source": "model"})
}

/// An agent whose session is open; nothing holds turns.
pub(super) async fn begun(console: &TestConsole, session: &str) -> (Agent, Value) {
    let mut agent = console.agent().await;
    let key = agent.begin(session).await["key"].clone();
    (agent, key)
}

/// The code of a denial.
pub(super) fn denial(reply: Result<Value, CallError>) -> String {
    let Err(CallError::Fault(fault)) = reply else {
        panic!("{reply:?}");
    };
    let code = fault.data.unwrap()["code"].clone();
    code.as_str().unwrap().to_owned()
}

/// The messages of the errors of a type that a session has on record.
async fn errors(console: &TestConsole, session: &str, error_type: &str) -> Vec<String> {
    let operator = console.bench.runtime.operator_handle();
    let events = operator.events(session.parse().unwrap(), 0, 10_000).await;
    let errors = events.unwrap().into_iter().filter(|event| {
        event.event_type == "error_occurred" && event.payload["error_type"] == error_type
    });
    let message = |payload: serde_json::Map<String, Value>| payload["message"].clone();
    errors
        .map(|event| message(event.payload).as_str().unwrap().to_owned())
        .collect()
}

pub(super) async fn thread(console: &TestConsole, id: &str) -> Thread {
    let find = |threads: &[std::sync::Arc<Thread>]| {
        let mut threads = threads.iter();
        threads.find(|thread| thread.id.as_str() == id).cloned()
    };
    let snapshot = console
        .bench
        .wait_until(|snapshot| find(&snapshot.threads).is_some())
        .await;
    find(&snapshot.threads).unwrap().as_ref().clone()
}

/// An operator writes the arc of a thread anew.
async fn edit(console: &TestConsole, id: &str, arc: &str) {
    let kept = thread(console, id).await;
    let shape = SummaryShape {
        arc: arc.to_owned(),
        ..SummaryShape::default()
    };
    let if_match = kept.etag().unwrap();
    let act = ThreadAction::Edit { shape, if_match };
    let operator = console.bench.runtime.operator_handle();
    operator.act_on_thread(kept.id, act).await.unwrap();
}

// covers D20
#[tokio::test]
async fn a_session_cannot_write_into_the_thread_of_another() {
    let console = TestConsole::new().await;
    let (mut victim, _) = begun(&console, "victim").await;
    let calm = || heated("mine", 0.1);
    victim
        .call_ok("turn", turn("victim", "f", 1, &calm()))
        .await;
    let own = json!({"session": "victim", "turn": {"message_id": "m-1", "message": "go"}});
    victim.call_ok("turn", own).await;
    let (mut other, _) = begun(&console, "other").await;
    let hijack = || json!({"proposed": {"arc": "hijacked"}});
    for name in ["f", "victim"] {
        let reply = other.call("turn", turn("other", name, 2, &hijack())).await;
        assert!(
            reply.is_err(),
            "{name} was written by another session: {reply:?}"
        );
        assert_eq!(denial(reply), "thread");
    }
    let next = victim
        .call_ok("turn", turn("victim", "f", 3, &json!({})))
        .await;
    assert_eq!(next["memento"]["arc"], "mine");
}

// covers D20
#[tokio::test]
async fn new_threads_of_one_session_never_evict_those_of_another() {
    let console = TestConsole::new().await;
    let (mut victim, _) = begun(&console, "victim").await;
    victim
        .call_ok("turn", turn("victim", "f", 1, &heated("mine", 0.9)))
        .await;
    let frozen = victim
        .call_ok("turn", turn("victim", "f", 2, &heated("later", 0.9)))
        .await;
    assert_eq!(frozen["frozen"], true);
    let (mut other, _) = begun(&console, "other").await;
    for number in 0..=MAX_THREADS {
        console.bench.clock.advance(Duration::from_millis(10));
        let name = format!("new-{number}");
        // Some of them may be refused: that is another test.
        let _ = other
            .call("turn", turn("other", &name, 1, &json!({})))
            .await;
    }
    let next = victim
        .call_ok("turn", turn("victim", "f", 3, &json!({})))
        .await;
    assert_eq!(next["source"], "stored_latest");
    assert_eq!(
        (&next["frozen"], &next["memento"]["arc"]),
        (&json!(true), &json!("mine"))
    );
}

// covers D20
#[tokio::test]
async fn operator_edit_survives_a_client_that_sends_its_older_memento() {
    let console = TestConsole::new().await;
    let (mut agent, _) = begun(&console, "s-1").await;
    let first = agent
        .call_ok("turn", turn("s-1", "t", 1, &heated("the agent's", 0.1)))
        .await;
    edit(&console, "t", "the operator's").await;
    let mut older = first["memento"].clone();
    older["signals"] = json!({"updatedAt": "2026-01-01T00:00:00Z", "items": [signal("pivot")]});
    let next = agent
        .call_ok("turn", turn("s-1", "t", 2, &brings(&older)))
        .await;
    assert_eq!(next["memento"]["arc"], "the operator's");
    assert_eq!(next["source"], "stored_latest");
    let notes = next["notes"].to_string();
    assert!(
        notes.contains("is not the newest of this thread"),
        "{notes}"
    );
    assert!(notes.contains("which an operator has edited"), "{notes}");
}

// covers D20
#[tokio::test]
async fn operator_edit_survives_a_proposal_of_a_client_that_has_not_read_it() {
    let console = TestConsole::new().await;
    let (mut agent, _) = begun(&console, "s-1").await;
    let first = heated("the agent's", 0.1);
    agent.call_ok("turn", turn("s-1", "t", 1, &first)).await;
    edit(&console, "t", "the operator's").await;
    let blind = json!({"proposed": {"arc": "blind"}});
    let next = agent.call_ok("turn", turn("s-1", "t", 2, &blind)).await;
    assert_eq!(next["memento"]["arc"], "the operator's", "{next}");
    assert_eq!(next["summary"], "kept_before_edit");
    let notes = next["notes"].to_string();
    assert!(notes.contains("an operator edited the summary"), "{notes}");
    assert_eq!(thread(&console, "t").await.held_back_count, 1);
    let next = agent.call_ok("turn", turn("s-1", "t", 3, &blind)).await;
    assert_eq!(next["memento"]["arc"], "blind", "{next}");
}

// covers D20
#[tokio::test]
async fn operator_edit_survives_an_older_memento_one_turn_later() {
    let console = TestConsole::new().await;
    let (mut agent, _) = begun(&console, "s-1").await;
    let first = heated("the agent's", 0.1);
    let first = agent.call_ok("turn", turn("s-1", "t", 1, &first)).await;
    edit(&console, "t", "the operator's").await;
    // The answer to this turn has the edit.
    agent.call_ok("turn", turn("s-1", "t", 2, &json!({}))).await;
    let mut stale = brings(&first["memento"]);
    stale["proposed"] = json!({"arc": "the agent's"});
    let next = agent.call_ok("turn", turn("s-1", "t", 3, &stale)).await;
    assert_eq!(next["summary"], "kept_before_edit", "{next}");
    assert_eq!(next["memento"]["arc"], "the operator's");
    // A client that works with the newest memento goes on.
    let mut newest = brings(&next["memento"]);
    newest["proposed"] = json!({"arc": "after the edit"});
    let next = agent.call_ok("turn", turn("s-1", "t", 4, &newest)).await;
    assert_eq!(next["memento"]["arc"], "after the edit", "{next}");
}

// covers D16, D20
#[tokio::test]
async fn a_calm_memento_of_long_ago_lifts_no_freeze_and_removes_no_points() {
    let console = TestConsole::new().await;
    let (mut agent, _) = begun(&console, "s-1").await;
    let peak = agent
        .call_ok("turn", turn("s-1", "t", 1, &heated("kept", 0.9)))
        .await;
    let mut calm = peak["memento"].clone();
    calm["mementoId"] = json!("of-2020");
    calm["createdTs"] = json!("2020-01-01T00:00:00Z");
    calm["affect"] = json!({"points": [], "rollup": {
        "phase": "settled", "intensityBucket": "low", "updatedAt": "2020-01-01T00:00:00Z"}});
    let mut fields = brings(&calm);
    fields["proposed"] = json!({"arc": "thawed"});
    let next = agent.call_ok("turn", turn("s-1", "t", 2, &fields)).await;
    assert_eq!(next["frozen"], true, "{next}");
    assert_eq!(next["memento"]["arc"], "kept");
    let points = next["memento"]["affect"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 1);
    // The name of the newest memento does not make other contents the newest.
    calm["mementoId"] = next["memento"]["mementoId"].clone();
    let mut fields = brings(&calm);
    fields["proposed"] = json!({"arc": "thawed"});
    let next = agent.call_ok("turn", turn("s-1", "t", 3, &fields)).await;
    assert_eq!(
        (&next["frozen"], &next["memento"]["arc"]),
        (&json!(true), &json!("kept"))
    );
}

// covers D14
#[tokio::test]
async fn the_signals_of_a_memento_that_is_ignored_do_not_decide() {
    let console = TestConsole::new().await;
    let (mut agent, _) = begun(&console, "s-1").await;
    let first = agent
        .call_ok("turn", turn("s-1", "t", 1, &heated("kept", 0.9)))
        .await;
    let signals = json!({"updatedAt": "2026-01-01T00:00:00Z", "items": [signal("decision_made")]});
    let mut foreign = first["memento"].clone();
    foreign["threadId"] = json!("another");
    let mut older = first["memento"].clone();
    older["mementoId"] = json!("older");
    for (number, mut ignored) in (2..).zip([foreign, older]) {
        ignored["signals"] = signals.clone();
        let mut fields = brings(&ignored);
        fields["message"] = json!("ok thanks");
        let reply = agent
            .call_ok("turn", turn("s-1", "t", number, &fields))
            .await;
        assert_eq!(
            (&reply["decision"], &reply["rule"]),
            (&json!("skip"), &json!(5)),
            "{reply}"
        );
        assert_eq!(reply["closed"], json!([]));
        assert!(reply["memento"].get("signals").is_none(), "{reply}");
    }
    let kept = thread(&console, "t").await;
    assert!(kept.turns[0].signals.is_empty());
}

#[tokio::test]
async fn refused_writes_are_recorded_once_a_minute_and_counted_at_the_thread() {
    let console = TestConsole::new().await;
    let (mut victim, _) = begun(&console, "victim").await;
    victim
        .call_ok("turn", turn("victim", "f", 1, &json!({})))
        .await;
    let (mut other, _) = begun(&console, "other").await;
    for number in 2..7 {
        let reply = other
            .call("turn", turn("other", "f", number, &json!({})))
            .await;
        assert_eq!(denial(reply), "thread");
    }
    let recorded = errors(&console, "other", "foreign_thread").await;
    assert_eq!(
        recorded,
        ["the thread `f` was denied to this session: the thread belongs to another session"]
    );
    console.bench.clock.advance(Duration::from_secs(61));
    let hand_over = json!({"session": "other", "thread": "f", "to": "other"});
    let reply = other.call("thread.hand_over", hand_over).await;
    assert_eq!(denial(reply), "thread");
    let recorded = errors(&console, "other", "foreign_thread").await;
    assert!(
        recorded[1].ends_with(" (4 more since the last record)"),
        "{recorded:?}"
    );
    let counted = |thread: &Thread| thread.refused.as_ref().map_or(0, |refused| refused.count);
    console
        .bench
        .wait_until(|snapshot| {
            snapshot
                .threads
                .first()
                .is_some_and(|snapshot| counted(snapshot) == 6)
        })
        .await;
    let refused = thread(&console, "f").await.refused.unwrap();
    assert_eq!(refused.session.as_str(), "other");
}

#[tokio::test]
async fn thread_continues_in_a_later_session_with_the_same_key() {
    let console = TestConsole::new().await;
    let (mut first, key) = begun(&console, "s-1").await;
    let calm = heated("ours", 0.1);
    first.call_ok("turn", turn("s-1", "t", 1, &calm)).await;
    first
        .call_ok("session.end", json!({"session": "s-1"}))
        .await;
    let console = console.restart().await;
    let (mut other, _) = begun(&console, "s-2").await;
    let reply = other.call("turn", turn("s-2", "t", 2, &json!({}))).await;
    assert_eq!(denial(reply), "thread");
    let mut later = console.agent().await;
    let start = json!({"session": "s-3", "agent": "bot", "api_key": "sk-acme-3", "key": key});
    later.call_ok("session.start", start).await;
    let next = later.call_ok("turn", turn("s-3", "t", 3, &json!({}))).await;
    assert_eq!(next["memento"]["arc"], "ours");
    let kept = thread(&console, "t").await;
    assert_eq!(kept.owner.unwrap().session.as_str(), "s-3");
}

#[tokio::test]
async fn thread_is_assigned_by_its_owner_and_claimed_by_a_turn() {
    let console = TestConsole::new().await;
    let (mut owner, _) = begun(&console, "s-1").await;
    owner
        .call_ok("turn", turn("s-1", "t", 1, &heated("ours", 0.1)))
        .await;
    let (mut next, _) = begun(&console, "s-2").await;
    let hand_over = |to: &str| json!({"session": "s-1", "thread": "t", "to": to});
    let reply = owner.call_err("thread.hand_over", hand_over("s-9")).await;
    assert_eq!(
        reply,
        "session `s-9` does not exist, so the thread cannot be handed over"
    );
    owner.call_ok("thread.hand_over", hand_over("s-2")).await;
    let taken_up = next.call_ok("turn", turn("s-2", "t", 2, &json!({}))).await;
    assert_eq!(taken_up["memento"]["arc"], "ours");
    let reply = owner.call("turn", turn("s-1", "t", 3, &json!({}))).await;
    assert_eq!(denial(reply), "thread");
    let operator = console.bench.runtime.operator_handle();
    let events = operator
        .events("s-1".parse().unwrap(), 0, 1000)
        .await
        .unwrap();
    let handed = events
        .iter()
        .find(|event| event.event_type == "thread_handed_over");
    let wanted = json!({"thread_id": "t", "from": "s-1", "to": "s-2", "by": "s-1"});
    assert_eq!(Value::Object(handed.unwrap().payload.clone()), wanted);
}

#[tokio::test]
async fn a_session_at_its_limit_loses_its_own_oldest_thread_that_nothing_waits_in() {
    let console = TestConsole::new().await;
    let (mut agent, _) = begun(&console, "s-1").await;
    // The oldest is frozen, with a proposal that is held back.
    for number in [1, 2] {
        let hot = heated("kept", 0.9);
        agent
            .call_ok("turn", turn("s-1", "frozen", number, &hot))
            .await;
    }
    for number in 1..MAX_SESSION_THREADS {
        console.bench.clock.advance(Duration::from_secs(1));
        let name = format!("t-{number}");
        agent
            .call_ok("turn", turn("s-1", &name, 1, &json!({})))
            .await;
    }
    agent
        .call_ok("turn", turn("s-1", "more", 1, &json!({})))
        .await;
    let has = |threads: &[std::sync::Arc<Thread>], id: &str| {
        threads.iter().any(|thread| thread.id.as_str() == id)
    };
    let snapshot = console
        .bench
        .wait_until(|snapshot| has(&snapshot.threads, "more"))
        .await;
    assert_eq!(snapshot.threads.len(), MAX_SESSION_THREADS);
    assert!(has(&snapshot.threads, "frozen") && has(&snapshot.threads, "t-2"));
    assert!(!has(&snapshot.threads, "t-1"));
    // Where every thread is frozen, one more is refused and that is on record.
    let (mut hot, _) = begun(&console, "s-2").await;
    for number in 0..MAX_SESSION_THREADS {
        let name = format!("hot-{number}");
        for message in [1, 2] {
            let fields = heated("hot", 0.9);
            hot.call_ok("turn", turn("s-2", &name, message, &fields))
                .await;
        }
    }
    let reply = hot.call("turn", turn("s-2", "more-2", 1, &json!({}))).await;
    assert_eq!(denial(reply), "limit");
    assert_eq!(errors(&console, "s-2", "thread_limit").await.len(), 1);
}

#[tokio::test]
async fn a_new_thread_cannot_take_the_name_of_another_live_session() {
    let console = TestConsole::new().await;
    let (mut victim, _) = begun(&console, "victim").await;
    let (mut other, _) = begun(&console, "other").await;
    let reply = other
        .call("turn", turn("other", "victim", 1, &json!({})))
        .await;
    assert_eq!(denial(reply), "thread");
    let own = json!({"session": "victim", "turn": {"message_id": "m-1", "message": "go"}});
    victim.call_ok("turn", own).await;
}

#[tokio::test]
async fn session_named_like_an_existing_thread_still_gets_its_own_thread() {
    let console = TestConsole::new().await;
    let (mut other, _) = begun(&console, "other").await;
    let squats = heated("squat", 0.1);
    other
        .call_ok("turn", turn("other", "later", 1, &squats))
        .await;
    // The name of the thread that the session gets cannot be taken before.
    let reply = other.call("turn", turn("other", "session:later", 1, &squats));
    assert_eq!(denial(reply.await), "thread");
    let (mut later, _) = begun(&console, "later").await;
    let own = json!({"session": "later", "turn": {"message_id": "m-1", "message": "go"}});
    let reply = later.call_ok("turn", own.clone()).await;
    assert_eq!(reply["memento"]["threadId"], "session:later", "{reply}");
    let next = json!({"session": "later", "turn": {"message_id": "m-2", "message": "go"}});
    let reply = later.call_ok("turn", next).await;
    assert_eq!(reply["source"], "stored_latest");
    let (mut third, _) = begun(&console, "third").await;
    let hand_over = json!({"session": "later", "to": "third"});
    later.call_ok("thread.hand_over", hand_over).await;
    let taken_up = turn("third", "session:later", 3, &json!({}));
    third.call_ok("turn", taken_up).await;
    let kept = thread(&console, "later").await;
    assert_eq!(kept.owner.unwrap().session.as_str(), "other");
}
