//! Time of answers to agents: after their events are on disk, or before, where Atlases allow it; and what the record
//! says about acknowledged events after a crash.

use std::sync::Arc;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::limits::MAX_EARLY_EVENTS;
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::event::Event;
use serde_json::json;

use super::runtime::SlowStore;
use super::support::{Bench, clock, request, settle};

fn atlas(acknowledge: &str) -> Vec<Atlas> {
    let text = format!(
        "atlas_version: '1.0'\natlas_id: a\nversion: '1'\nname: A\ndefault_decision: allow\n\
         trace_config: {{acknowledge: {acknowledge}}}\n\
         actions:\n  - {{action_id: note.read, name: Read, risk_tier: low}}\n\
         \x20 - {{action_id: note.write, name: Write, risk_tier: low}}\n\
         checkpoints:\n  - checkpoint_id: gate\n    name: Gate\n    mode: blocking\n\
         \x20   trigger: {{type: action_pre, patterns: [note.write]}}\n"
    );
    vec![load_str("a.yaml", &text).unwrap().atlas]
}

async fn recoveries(store: &dyn Store) -> Vec<String> {
    let log = store.log().await.unwrap().log;
    let entries = store.events(log, 0, 1000).await.unwrap();
    let recovered = entries
        .iter()
        .filter(|entry| entry.event_type == "store_recovered");
    let texts = recovered.map(|entry| entry.payload["what"].as_str().unwrap().to_owned());
    texts.collect()
}

// covers T26
#[tokio::test]
async fn ungated_action_is_answered_only_after_its_events_are_on_disk() {
    let store = SlowStore::new();
    let dynamic = Arc::clone(&store) as Arc<dyn Store>;
    let bench = Bench::with_atlases(atlas("durable"), dynamic, clock()).await;
    bench.begin("s-1").await;
    store.durable.send_replace(false);
    let agents = bench.runtime.agent_handle();
    let asking = tokio::spawn(async move {
        let read = request("s-1", "note.read", json!({}));
        agents.request_action(read).await
    });
    settle().await;
    assert!(!asking.is_finished(), "answered before it was on disk");
    store.durable.send_replace(true);
    asking.await.unwrap().unwrap();
}

// covers T25
#[tokio::test]
async fn early_answers_leave_a_bounded_number_of_unwritten_events_and_a_gate_waits_for_all_of_them()
{
    let store = SlowStore::new();
    let dynamic = Arc::clone(&store) as Arc<dyn Store>;
    let bench = Bench::with_atlases(atlas("early"), dynamic, clock()).await;
    bench.begin("s-1").await;
    let shown = bench.snapshot().chain.events;
    store.durable.send_replace(false);
    let agents = bench.runtime.agent_handle();
    let mut answered = 0;
    let waiting = loop {
        let agents = agents.clone();
        let read = request("s-1", "note.read", json!({"n": answered}));
        let asking = tokio::spawn(async move { agents.request_action(read).await });
        settle().await;
        if !asking.is_finished() {
            break asking;
        }
        asking.await.unwrap().unwrap();
        answered += 1;
        assert!(answered <= MAX_EARLY_EVENTS, "answered without a bound");
    };
    let session = || "s-1".parse().unwrap();
    let events = store.events(session(), shown, 1000).await.unwrap();
    let attempted = |event: &Event| event.event_type == "action_attempted";
    let first_unanswered = events
        .iter()
        .filter(|event| attempted(event))
        .nth(usize::try_from(answered).unwrap());
    let acknowledged = first_unanswered.unwrap().sequence - shown;
    assert!(answered > 0);
    assert!(acknowledged <= MAX_EARLY_EVENTS, "{acknowledged}");
    let asking = tokio::spawn(async move {
        let write = request("s-1", "note.write", json!({}));
        agents.request_action(write).await
    });
    settle().await;
    assert_eq!(bench.snapshot().held.len(), 0);
    store.durable.send_replace(true);
    waiting.await.unwrap().unwrap();
    bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
    assert!(!asking.is_finished());
    let events = store.events(session(), 0, 1000).await.unwrap();
    let sequences: Vec<_> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (0..events.len() as u64).collect::<Vec<_>>());
}

// covers T25
#[tokio::test]
async fn record_states_how_many_acknowledged_events_a_crash_may_have_lost() {
    for (acknowledge, says) in [("early", true), ("durable", false)] {
        let memory = MemoryStore::default();
        let store: Arc<dyn Store> = Arc::new(memory.clone());
        let crashed = Bench::with_atlases(atlas(acknowledge), store, clock()).await;
        crashed.begin("s-1").await;
        // Another process opens the store: the first one never stopped in order.
        let memory = memory.reopen();
        let store: Arc<dyn Store> = Arc::new(memory.clone());
        let next = Bench::with_atlases(atlas(acknowledge), Arc::clone(&store), clock()).await;
        let reply = recoveries(store.as_ref()).await;
        let text = format!("up to {MAX_EARLY_EVENTS} acknowledged events may be missing");
        assert_eq!(
            reply.iter().any(|reply| reply.contains(&text)),
            says,
            "{reply:?}"
        );
        // After an orderly stop there is nothing more to say.
        next.runtime.stop().await;
        let memory = memory.reopen();
        let store: Arc<dyn Store> = Arc::new(memory);
        let third = Bench::with_atlases(atlas(acknowledge), Arc::clone(&store), clock()).await;
        assert_eq!(recoveries(store.as_ref()).await, reply);
        third.runtime.stop().await;
    }
}

// covers T25
#[tokio::test]
async fn one_atlas_with_durable_answers_makes_all_answers_durable() {
    let store = SlowStore::new();
    let dynamic = Arc::clone(&store) as Arc<dyn Store>;
    let second = "atlas_version: '1.0'\natlas_id: b\nversion: '1'\nname: B\ndefault_decision: allow\n\
                  unknown_actions: allow\n";
    let mut atlases = atlas("early");
    atlases.push(load_str("b.yaml", second).unwrap().atlas);
    let bench = Bench::with_atlases(atlases, dynamic, clock()).await;
    bench.begin("s-1").await;
    store.durable.send_replace(false);
    let agents = bench.runtime.agent_handle();
    let asking = tokio::spawn(async move {
        let read = request("s-1", "note.read", json!({}));
        agents.request_action(read).await
    });
    settle().await;
    assert!(!asking.is_finished());
    store.durable.send_replace(true);
    asking.await.unwrap().unwrap();
}
