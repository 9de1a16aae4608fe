//! Turns of conversations, through the runtime, onto a disk and back.

use std::sync::Arc;
use std::time::Duration;

use cra_core::base::clock::Clock;
use cra_core::engine::command::{DecisionRefusal, DenyCode};
use cra_core::memento::{
    DecisionRule, KeptReason, SummaryResult, SummaryShape, Thread, ThreadOwner, Turn, TurnDecision,
    TurnIds, TurnOutcome,
};
use cra_core::runtime::{SessionTurn, ThreadAction, stored_threads};
use cra_core::store::memory::MemoryStore;
use cra_core::store::sqlite::SqliteStore;
use cra_core::store::{StateRow, Store};
use cra_core::trace::verification::TrustAnchors;
use serde_json::{Value, json};

use super::support::{Bench, clock, close, reopen_store};

fn take(session: &str, number: u32, fields: &Value) -> SessionTurn {
    let mut turn = json!({"message_id": format!("m-{number}"), "message": "go on"});
    let fields = fields.as_object().unwrap().clone();
    turn.as_object_mut().unwrap().extend(fields);
    SessionTurn {
        session: session.parse().unwrap(),
        thread: None,
        turn: Turn::read(turn.to_string().as_bytes()).unwrap(),
    }
}

async fn taken(bench: &Bench, number: u32, fields: &Value) -> TurnOutcome {
    let agents = bench.runtime.agent_handle();
    let taken = agents.turn(take("s-1", number, fields)).await.unwrap();
    taken.outcome
}

fn heated(intensity: f64) -> Value {
    json!({
        "affect": {"label": "tense", "intensity": intensity, "confidence": "high", "source": "model"},
        "proposed": {"arc": format!("at {intensity}"), "next": ["go"]}
    })
}

async fn begun(store: Arc<dyn Store>) -> Bench {
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let held = bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await
        .held[0]
        .clone();
    bench.pass(&held).await;
    bench
}

// covers D17, D18
#[tokio::test]
async fn turn_is_recorded_and_answered_with_its_resulting_memento() {
    let store = Arc::new(MemoryStore::default());
    let bench = begun(Arc::clone(&store) as Arc<dyn Store>).await;
    let outcome = taken(&bench, 1, &heated(0.9)).await;
    assert_eq!(outcome.summary, SummaryResult::Updated);
    let frozen = taken(&bench, 2, &heated(0.9)).await;
    assert_eq!(frozen.summary, SummaryResult::Kept(KeptReason::AtPeak));
    assert_eq!(frozen.memento.arc, outcome.memento.arc);
    let session = "s-1".parse().unwrap();
    let events = store.events(session, 0, 1000).await.unwrap();
    let decided: Vec<_> = events
        .iter()
        .filter(|event| event.event_type == "breakpoint_decided")
        .collect();
    assert_eq!(decided.len(), 2);
    let last = &decided[1].payload;
    assert_eq!(last["actor"], "solserver");
    assert_eq!(last["phase"], "breakpoint");
    assert_eq!(last["status"], "completed");
    assert_eq!(last["summary"], "Breakpoint decision: SHOULD");
    assert_eq!(
        last["metadata"],
        json!({
            "kind": "breakpoint_engine",
            "decision": "should",
            "peakGuardrailActive": true,
            "source": "stored_latest"
        })
    );
    assert_eq!(last["thread"]["update"], "kept_at_peak");
    assert_eq!(last["thread"]["etag"], frozen.etag);
    assert_eq!(decided[0].payload["metadata"]["source"], "empty_seed");
    let snapshot = bench
        .wait_until(|snapshot| !snapshot.threads.is_empty())
        .await;
    let thread = &snapshot.threads[0];
    assert_eq!(thread.id.as_str(), "s-1", "a session has its own thread");
    assert!(thread.is_frozen());
    assert_eq!(thread.turns[0].event.as_ref(), Some(&decided[1].event_id));
    bench.runtime.stop().await;
    assert!(
        store
            .verify(TrustAnchors::nothing())
            .await
            .unwrap()
            .is_sound()
    );
}

#[tokio::test]
async fn threads_are_stored_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let bench = begun(Arc::clone(&store) as Arc<dyn Store>).await;
    taken(&bench, 1, &heated(0.9)).await;
    let outcome = taken(&bench, 2, &heated(0.95)).await;
    let before = bench
        .wait_until(|snapshot| snapshot.threads[0].turns.len() == 2)
        .await;
    let before = before.threads[0].clone();
    bench.runtime.stop().await;
    close(store, folder.path()).await;
    let store = Arc::new(reopen_store(folder.path()));
    let again = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    let snapshot = again.snapshot();
    assert_eq!(snapshot.threads[0], before);
    assert_eq!(snapshot.threads[0].etag(), Some(outcome.etag));
    let next = taken(&again, 3, &json!({})).await;
    assert_eq!(next.source.as_str(), "stored_latest");
    assert!(next.freeze.is_frozen(), "a restart thaws nothing");
    again.runtime.stop().await;
}

// covers D20
#[tokio::test]
async fn named_thread_continues_in_the_session_that_an_operator_assigns() {
    let store = Arc::new(MemoryStore::default());
    let bench = begun(Arc::clone(&store) as Arc<dyn Store>).await;
    let agents = bench.runtime.agent_handle();
    let named = |session: &str, number| SessionTurn {
        thread: Some("t-31".parse().unwrap()),
        ..take(session, number, &heated(0.2))
    };
    agents.turn(named("s-1", 1)).await.unwrap();
    bench.begin("s-2").await;
    let refused = agents.turn(named("s-2", 2)).await.unwrap_err();
    assert_eq!(refused.code, DenyCode::Thread);
    let operator = bench.runtime.operator_handle();
    let hand_over = |to: &str| {
        let to = to.parse().unwrap();
        operator.act_on_thread("t-31".parse().unwrap(), ThreadAction::HandOver { to })
    };
    let Err(DecisionRefusal::Unavailable(why)) = hand_over("s-9").await else {
        panic!("handed over to a session that is not there");
    };
    assert_eq!(
        why,
        "session `s-9` does not exist, so the thread cannot be handed over"
    );
    hand_over("s-2").await.unwrap();
    let second = agents.turn(named("s-2", 2)).await.unwrap();
    assert_eq!(second.outcome.source.as_str(), "stored_latest");
    let back = agents.turn(named("s-1", 3)).await.unwrap_err();
    assert_eq!(back.code, DenyCode::Thread);
    let taken_up = |thread: &Thread| thread.turns.len() == 2;
    let snapshot = bench
        .wait_until(|snapshot| {
            snapshot
                .threads
                .first()
                .is_some_and(|snapshot| taken_up(snapshot))
        })
        .await;
    let thread = &snapshot.threads[0];
    assert_eq!(thread.session.as_str(), "s-2");
    assert_eq!(thread.owner.as_ref().unwrap().session.as_str(), "s-2");
    let log = store.log().await.unwrap().log;
    let entries = store.events(log, 0, 1000).await.unwrap();
    let mut entries = entries.iter();
    let handed = entries.find(|entry| entry.event_type == "thread_handed_over");
    let wanted = json!({"thread_id": "t-31", "from": "s-1", "to": "s-2", "by": "op-1"});
    assert_eq!(Value::Object(handed.unwrap().payload.clone()), wanted);
    bench.runtime.stop().await;
}

/// A thread as it was stored before threads had owners, with turns of these sessions.
fn stored_without_owner(id: &str, writers: &[&str]) -> StateRow {
    let mut thread = Thread::new(id.parse().unwrap(), writers[0].parse().unwrap());
    for (number, writer) in (1..).zip(writers) {
        let by = ThreadOwner {
            session: writer.parse().unwrap(),
            secret: None,
            process: None,
        };
        thread.owner = Some(by.clone());
        let named = TurnIds {
            by,
            memento: format!("mm-{number}").parse().unwrap(),
        };
        let turn = take(writer, number, &heated(0.2)).turn;
        thread = thread.process_turn(&turn, named, clock().now()).unwrap().0;
    }
    let mut old = serde_json::to_value(&thread).unwrap();
    for field in ["owner", "offered_to", "refused"] {
        old.as_object_mut().unwrap().remove(field);
    }
    StateRow {
        kind: "thread".to_owned(),
        key: id.to_owned(),
        body: Some(old.to_string()),
    }
}

#[test]
fn a_thread_of_an_older_store_belongs_to_its_only_writer_and_otherwise_to_no_session() {
    let rows = [
        stored_without_owner("t-1", &["s-1", "s-1"]),
        stored_without_owner("t-2", &["s-1", "s-2"]),
    ];
    let kept = stored_threads(rows).threads;
    let owner_of = |id: &str| {
        let thread = kept.iter().find(|thread| thread.id.as_str() == id);
        let owner = thread.unwrap().owner.as_ref();
        owner.map(|owner| owner.session.to_string())
    };
    assert_eq!(owner_of("t-1").as_deref(), Some("s-1"));
    assert_eq!(owner_of("t-2"), None);
}

#[tokio::test]
async fn turn_without_a_session_or_with_a_stale_memento_is_refused_and_changes_nothing() {
    let store = Arc::new(MemoryStore::default());
    let bench = begun(Arc::clone(&store) as Arc<dyn Store>).await;
    let agents = bench.runtime.agent_handle();
    let refused = agents.turn(take("s-9", 1, &json!({}))).await.unwrap_err();
    assert_eq!(refused.code, DenyCode::Session);
    assert!(bench.snapshot().threads.is_empty());
    taken(&bench, 1, &json!({})).await;
    let stale = take("s-1", 2, &json!({"if_match": "0000000000000000"}));
    let refused = agents.turn(stale).await.unwrap_err();
    assert_eq!(refused.code, DenyCode::BadRequest);
    assert!(refused.reason.contains("has changed since it was read"));
    let snapshot = bench
        .wait_until(|snapshot| snapshot.threads.len() == 1)
        .await;
    assert_eq!(snapshot.threads[0].turns.len(), 1);
    bench.runtime.stop().await;
}

#[tokio::test]
async fn operator_changes_to_a_thread_are_logged() {
    let store = Arc::new(MemoryStore::default());
    let bench = begun(Arc::clone(&store) as Arc<dyn Store>).await;
    let first = taken(&bench, 1, &heated(0.9)).await;
    let operator = bench.runtime.operator_handle();
    let thread = || "s-1".parse().unwrap();
    let edit = |if_match: &str| ThreadAction::Edit {
        shape: SummaryShape {
            arc: "mine".to_owned(),
            ..SummaryShape::default()
        },
        if_match: if_match.to_owned(),
    };
    let stale = operator.act_on_thread(thread(), edit("old")).await;
    let Err(DecisionRefusal::Unavailable(what)) = stale else {
        panic!("{stale:?}");
    };
    assert!(what.contains("has changed since"), "{what}");
    assert_eq!(
        operator.act_on_thread(thread(), edit(&first.etag)).await,
        Ok(())
    );
    let snapshot = bench
        .wait_until(|snapshot| snapshot.threads[0].edited)
        .await;
    let latest = snapshot.threads[0].latest.clone().unwrap();
    assert_eq!(latest.arc.as_str(), "mine");
    let mut read = heated(0.9);
    read["if_match"] = json!(latest.etag());
    let next = taken(&bench, 2, &read).await;
    assert_eq!(next.decided.rule, DecisionRule::SummaryChanged);
    assert_eq!(
        operator
            .act_on_thread(thread(), ThreadAction::FlagDrift)
            .await,
        Ok(())
    );
    let ack = taken(&bench, 3, &json!({"message": "ok"})).await;
    assert_eq!(ack.decided.decision, TurnDecision::Should);
    let log = store.log().await.unwrap().log;
    let entries = store.events(log, 0, 1000).await.unwrap();
    let of = |name: &str| {
        entries
            .iter()
            .find(|entry| entry.event_type == name)
            .unwrap()
    };
    assert_eq!(of("memento_edited").payload["before"], first.etag);
    assert_eq!(of("memento_edited").payload["now"], latest.etag());
    assert_eq!(of("drift_flagged").payload["thread_id"], "s-1");
    let none = operator.act_on_thread("t-0".parse().unwrap(), ThreadAction::FlagDrift);
    assert!(none.await.is_err());
    bench.runtime.stop().await;
    assert!(
        store
            .verify(TrustAnchors::nothing())
            .await
            .unwrap()
            .is_sound()
    );
}

#[tokio::test]
async fn points_fade_with_the_runtime_clock() {
    let bench = begun(Arc::new(MemoryStore::default())).await;
    let hot = taken(&bench, 1, &heated(0.9)).await;
    assert_eq!(hot.memento.affect.points.len(), 1);
    bench.clock.advance(Duration::from_mins(31));
    let calm = taken(&bench, 2, &json!({})).await;
    assert!(calm.memento.affect.points.is_empty());
    bench.runtime.stop().await;
}
