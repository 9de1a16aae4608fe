//! Conversations at the socket: each belongs to a session, and an operator's edit of one stays.

use std::time::Duration;

use cra_core::base::limits::{MAX_SESSION_THREADS, MAX_THREADS};
use cra_core::gateway::protocol::call::CallError;
use cra_core::memento::{SummaryShape, Thread};
use cra_core::runtime::ThreadAction;
use serde_json::{Value, json};

use super::{Agent, House};

/// A turn of `thread`, with these fields beside the message.
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
pub(super) async fn begun(house: &House, session: &str) -> (Agent, Value) {
    let mut agent = house.agent().await;
    let key = agent.begin(session).await["key"].clone();
    (agent, key)
}

/// The code of a denial.
pub(super) fn denial(told: Result<Value, CallError>) -> String {
    let Err(CallError::Fault(fault)) = told else {
        panic!("{told:?}");
    };
    let code = fault.data.unwrap()["code"].clone();
    code.as_str().unwrap().to_owned()
}

/// The messages of the errors of a type that a session has on record.
async fn errors(house: &House, session: &str, error_type: &str) -> Vec<String> {
    let desk = house.bench.runtime.operator_handle();
    let events = desk.events(session.parse().unwrap(), 0, 10_000).await;
    let errors = events.unwrap().into_iter().filter(|event| {
        event.event_type == "error_occurred" && event.payload["error_type"] == error_type
    });
    let message = |payload: serde_json::Map<String, Value>| payload["message"].clone();
    errors
        .map(|event| message(event.payload).as_str().unwrap().to_owned())
        .collect()
}

pub(super) async fn thread(house: &House, id: &str) -> Thread {
    let find = |threads: &[std::sync::Arc<Thread>]| {
        let mut threads = threads.iter();
        threads.find(|thread| thread.id.as_str() == id).cloned()
    };
    let picture = house.bench.until(|it| find(&it.threads).is_some()).await;
    find(&picture.threads).unwrap().as_ref().clone()
}

/// An operator writes the arc of a thread anew.
async fn edit(house: &House, id: &str, arc: &str) {
    let kept = thread(house, id).await;
    let shape = SummaryShape {
        arc: arc.to_owned(),
        ..SummaryShape::default()
    };
    let if_match = kept.etag().unwrap();
    let act = ThreadAction::Edit { shape, if_match };
    let desk = house.bench.runtime.operator_handle();
    desk.act_on_thread(kept.id, act).await.unwrap();
}

// covers D20
#[tokio::test]
async fn a_session_cannot_write_into_the_thread_of_another() {
    let house = House::new().await;
    let (mut victim, _) = begun(&house, "victim").await;
    let calm = || heated("mine", 0.1);
    victim.says("turn", turn("victim", "f", 1, &calm())).await;
    let own = json!({"session": "victim", "turn": {"message_id": "m-1", "message": "go"}});
    victim.says("turn", own).await;
    let (mut other, _) = begun(&house, "other").await;
    let hijack = || json!({"proposed": {"arc": "hijacked"}});
    for name in ["f", "victim"] {
        let told = other.call("turn", turn("other", name, 2, &hijack())).await;
        assert!(
            told.is_err(),
            "{name} was written by another session: {told:?}"
        );
        assert_eq!(denial(told), "thread");
    }
    let next = victim
        .says("turn", turn("victim", "f", 3, &json!({})))
        .await;
    assert_eq!(next["memento"]["arc"], "mine");
}

// covers D20
#[tokio::test]
async fn new_threads_of_one_session_never_evict_those_of_another() {
    let house = House::new().await;
    let (mut victim, _) = begun(&house, "victim").await;
    victim
        .says("turn", turn("victim", "f", 1, &heated("mine", 0.9)))
        .await;
    let frozen = victim
        .says("turn", turn("victim", "f", 2, &heated("later", 0.9)))
        .await;
    assert_eq!(frozen["frozen"], true);
    let (mut other, _) = begun(&house, "other").await;
    for number in 0..=MAX_THREADS {
        house.bench.clock.advance(Duration::from_millis(10));
        let name = format!("new-{number}");
        // Some of them may be refused: that is another test.
        let _ = other
            .call("turn", turn("other", &name, 1, &json!({})))
            .await;
    }
    let next = victim
        .says("turn", turn("victim", "f", 3, &json!({})))
        .await;
    assert_eq!(next["source"], "stored_latest");
    assert_eq!(
        (&next["frozen"], &next["memento"]["arc"]),
        (&json!(true), &json!("mine"))
    );
}

// covers D20
#[tokio::test]
async fn an_edit_of_an_operator_survives_a_client_that_sends_its_older_memento() {
    let house = House::new().await;
    let (mut agent, _) = begun(&house, "s-1").await;
    let first = agent
        .says("turn", turn("s-1", "t", 1, &heated("the agent's", 0.1)))
        .await;
    edit(&house, "t", "the operator's").await;
    let mut older = first["memento"].clone();
    older["signals"] = json!({"updatedAt": "2026-01-01T00:00:00Z", "items": [signal("pivot")]});
    let next = agent
        .says("turn", turn("s-1", "t", 2, &brings(&older)))
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
async fn an_edit_of_an_operator_survives_a_proposal_of_a_client_that_has_not_read_it() {
    let house = House::new().await;
    let (mut agent, _) = begun(&house, "s-1").await;
    let first = heated("the agent's", 0.1);
    agent.says("turn", turn("s-1", "t", 1, &first)).await;
    edit(&house, "t", "the operator's").await;
    let blind = json!({"proposed": {"arc": "blind"}});
    let next = agent.says("turn", turn("s-1", "t", 2, &blind)).await;
    assert_eq!(next["memento"]["arc"], "the operator's", "{next}");
    assert_eq!(next["summary"], "kept_before_edit");
    let notes = next["notes"].to_string();
    assert!(notes.contains("an operator has edited"), "{notes}");
    assert_eq!(thread(&house, "t").await.held_back_count, 1);
    let next = agent.says("turn", turn("s-1", "t", 3, &blind)).await;
    assert_eq!(next["memento"]["arc"], "blind", "{next}");
}

// covers D20
#[tokio::test]
async fn an_edit_of_an_operator_survives_an_older_memento_that_comes_a_turn_later() {
    let house = House::new().await;
    let (mut agent, _) = begun(&house, "s-1").await;
    let first = heated("the agent's", 0.1);
    let first = agent.says("turn", turn("s-1", "t", 1, &first)).await;
    edit(&house, "t", "the operator's").await;
    // The answer to this turn has the edit.
    agent.says("turn", turn("s-1", "t", 2, &json!({}))).await;
    let mut stale = brings(&first["memento"]);
    stale["proposed"] = json!({"arc": "the agent's"});
    let next = agent.says("turn", turn("s-1", "t", 3, &stale)).await;
    assert_eq!(next["summary"], "kept_before_edit", "{next}");
    assert_eq!(next["memento"]["arc"], "the operator's");
    // A client that works with the newest memento goes on.
    let mut newest = brings(&next["memento"]);
    newest["proposed"] = json!({"arc": "after the edit"});
    let next = agent.says("turn", turn("s-1", "t", 4, &newest)).await;
    assert_eq!(next["memento"]["arc"], "after the edit", "{next}");
}

// covers D16, D20
#[tokio::test]
async fn a_calm_memento_of_long_ago_lifts_no_freeze_and_removes_no_points() {
    let house = House::new().await;
    let (mut agent, _) = begun(&house, "s-1").await;
    let peak = agent
        .says("turn", turn("s-1", "t", 1, &heated("kept", 0.9)))
        .await;
    let mut calm = peak["memento"].clone();
    calm["mementoId"] = json!("of-2020");
    calm["createdTs"] = json!("2020-01-01T00:00:00Z");
    calm["affect"] = json!({"points": [], "rollup": {
        "phase": "settled", "intensityBucket": "low", "updatedAt": "2020-01-01T00:00:00Z"}});
    let mut fields = brings(&calm);
    fields["proposed"] = json!({"arc": "thawed"});
    let next = agent.says("turn", turn("s-1", "t", 2, &fields)).await;
    assert_eq!(next["frozen"], true, "{next}");
    assert_eq!(next["memento"]["arc"], "kept");
    let points = next["memento"]["affect"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 1);
    // The name of the newest memento does not make other contents the newest.
    calm["mementoId"] = next["memento"]["mementoId"].clone();
    let mut fields = brings(&calm);
    fields["proposed"] = json!({"arc": "thawed"});
    let next = agent.says("turn", turn("s-1", "t", 3, &fields)).await;
    assert_eq!(
        (&next["frozen"], &next["memento"]["arc"]),
        (&json!(true), &json!("kept"))
    );
}

// covers D14
#[tokio::test]
async fn the_signals_of_a_memento_that_is_ignored_do_not_decide() {
    let house = House::new().await;
    let (mut agent, _) = begun(&house, "s-1").await;
    let first = agent
        .says("turn", turn("s-1", "t", 1, &heated("kept", 0.9)))
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
        let told = agent.says("turn", turn("s-1", "t", number, &fields)).await;
        assert_eq!(
            (&told["decision"], &told["rule"]),
            (&json!("skip"), &json!(5)),
            "{told}"
        );
        assert_eq!(told["closed"], json!([]));
        assert!(told["memento"].get("signals").is_none(), "{told}");
    }
    let kept = thread(&house, "t").await;
    assert!(kept.turns[0].signals.is_empty());
}

#[tokio::test]
async fn refused_writes_are_on_record_once_a_minute_and_counted_at_the_thread() {
    let house = House::new().await;
    let (mut victim, _) = begun(&house, "victim").await;
    victim
        .says("turn", turn("victim", "f", 1, &json!({})))
        .await;
    let (mut other, _) = begun(&house, "other").await;
    for number in 2..7 {
        let told = other
            .call("turn", turn("other", "f", number, &json!({})))
            .await;
        assert_eq!(denial(told), "thread");
    }
    let recorded = errors(&house, "other", "foreign_thread").await;
    assert_eq!(
        recorded,
        ["the thread `f` was denied to this session: the thread belongs to another session"]
    );
    house.bench.clock.advance(Duration::from_secs(61));
    let hand_over = json!({"session": "other", "thread": "f", "to": "other"});
    let told = other.call("thread.hand_over", hand_over).await;
    assert_eq!(denial(told), "thread");
    let recorded = errors(&house, "other", "foreign_thread").await;
    assert!(recorded[1].contains("4 more like it"), "{recorded:?}");
    let counted = |thread: &Thread| thread.refused.as_ref().map_or(0, |refused| refused.count);
    house
        .bench
        .until(|it| it.threads.first().is_some_and(|it| counted(it) == 6))
        .await;
    let refused = thread(&house, "f").await.refused.unwrap();
    assert_eq!(refused.session.as_str(), "other");
}

#[tokio::test]
async fn a_thread_goes_on_in_a_later_session_that_shows_the_same_key() {
    let house = House::new().await;
    let (mut first, key) = begun(&house, "s-1").await;
    let calm = heated("ours", 0.1);
    first.says("turn", turn("s-1", "t", 1, &calm)).await;
    first.says("session.end", json!({"session": "s-1"})).await;
    let house = house.again().await;
    let (mut other, _) = begun(&house, "s-2").await;
    let told = other.call("turn", turn("s-2", "t", 2, &json!({}))).await;
    assert_eq!(denial(told), "thread");
    let mut later = house.agent().await;
    let start = json!({"session": "s-3", "agent": "bot", "api_key": "sk-acme-3", "key": key});
    later.says("session.start", start).await;
    let next = later.says("turn", turn("s-3", "t", 3, &json!({}))).await;
    assert_eq!(next["memento"]["arc"], "ours");
    let kept = thread(&house, "t").await;
    assert_eq!(kept.owner.unwrap().session.as_str(), "s-3");
}

#[tokio::test]
async fn a_thread_is_handed_over_by_its_owner_and_taken_up_by_a_turn() {
    let house = House::new().await;
    let (mut owner, _) = begun(&house, "s-1").await;
    owner
        .says("turn", turn("s-1", "t", 1, &heated("ours", 0.1)))
        .await;
    let (mut next, _) = begun(&house, "s-2").await;
    let hand_over = |to: &str| json!({"session": "s-1", "thread": "t", "to": to});
    let told = owner.refused("thread.hand_over", hand_over("s-9")).await;
    assert_eq!(
        told,
        "session `s-9` does not exist, so the thread cannot be handed over"
    );
    owner.says("thread.hand_over", hand_over("s-2")).await;
    let taken_up = next.says("turn", turn("s-2", "t", 2, &json!({}))).await;
    assert_eq!(taken_up["memento"]["arc"], "ours");
    let told = owner.call("turn", turn("s-1", "t", 3, &json!({}))).await;
    assert_eq!(denial(told), "thread");
    let desk = house.bench.runtime.operator_handle();
    let events = desk.events("s-1".parse().unwrap(), 0, 1000).await.unwrap();
    let handed = events
        .iter()
        .find(|it| it.event_type == "thread_handed_over");
    let wanted = json!({"thread_id": "t", "from": "s-1", "to": "s-2", "by": "s-1"});
    assert_eq!(Value::Object(handed.unwrap().payload.clone()), wanted);
}

#[tokio::test]
async fn a_session_at_its_limit_loses_its_own_oldest_thread_that_nothing_waits_in() {
    let house = House::new().await;
    let (mut agent, _) = begun(&house, "s-1").await;
    // The oldest is frozen, with a proposal that is held back.
    for number in [1, 2] {
        let hot = heated("kept", 0.9);
        agent
            .says("turn", turn("s-1", "frozen", number, &hot))
            .await;
    }
    for number in 1..MAX_SESSION_THREADS {
        house.bench.clock.advance(Duration::from_secs(1));
        let name = format!("t-{number}");
        agent.says("turn", turn("s-1", &name, 1, &json!({}))).await;
    }
    agent.says("turn", turn("s-1", "more", 1, &json!({}))).await;
    let has = |threads: &[std::sync::Arc<Thread>], id: &str| {
        threads.iter().any(|thread| thread.id.as_str() == id)
    };
    let picture = house.bench.until(|it| has(&it.threads, "more")).await;
    assert_eq!(picture.threads.len(), MAX_SESSION_THREADS);
    assert!(has(&picture.threads, "frozen") && has(&picture.threads, "t-2"));
    assert!(!has(&picture.threads, "t-1"));
    // Where every thread is frozen, one more is refused and that is on record.
    let (mut hot, _) = begun(&house, "s-2").await;
    for number in 0..MAX_SESSION_THREADS {
        let name = format!("hot-{number}");
        for message in [1, 2] {
            let fields = heated("hot", 0.9);
            hot.says("turn", turn("s-2", &name, message, &fields)).await;
        }
    }
    let told = hot.call("turn", turn("s-2", "more-2", 1, &json!({}))).await;
    assert_eq!(denial(told), "limit");
    assert_eq!(errors(&house, "s-2", "thread_limit").await.len(), 1);
}

#[tokio::test]
async fn a_new_thread_cannot_take_the_name_of_another_live_session() {
    let house = House::new().await;
    let (mut victim, _) = begun(&house, "victim").await;
    let (mut other, _) = begun(&house, "other").await;
    let told = other
        .call("turn", turn("other", "victim", 1, &json!({})))
        .await;
    assert_eq!(denial(told), "thread");
    let own = json!({"session": "victim", "turn": {"message_id": "m-1", "message": "go"}});
    victim.says("turn", own).await;
}

#[tokio::test]
async fn a_session_whose_name_is_taken_by_a_thread_has_an_own_thread_all_the_same() {
    let house = House::new().await;
    let (mut other, _) = begun(&house, "other").await;
    let squats = heated("squat", 0.1);
    other.says("turn", turn("other", "later", 1, &squats)).await;
    // The name of the thread that the session gets cannot be taken before.
    let told = other.call("turn", turn("other", "session:later", 1, &squats));
    assert_eq!(denial(told.await), "thread");
    let (mut later, _) = begun(&house, "later").await;
    let own = json!({"session": "later", "turn": {"message_id": "m-1", "message": "go"}});
    let told = later.says("turn", own.clone()).await;
    assert_eq!(told["memento"]["threadId"], "session:later", "{told}");
    let next = json!({"session": "later", "turn": {"message_id": "m-2", "message": "go"}});
    let told = later.says("turn", next).await;
    assert_eq!(told["source"], "stored_latest");
    let (mut third, _) = begun(&house, "third").await;
    let hand_over = json!({"session": "later", "to": "third"});
    later.says("thread.hand_over", hand_over).await;
    let taken_up = turn("third", "session:later", 3, &json!({}));
    third.says("turn", taken_up).await;
    let kept = thread(&house, "later").await;
    assert_eq!(kept.owner.unwrap().session.as_str(), "other");
}
