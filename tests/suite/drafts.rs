//! Drafts of operators: stored, restored, and removed when the request is decided.

use std::sync::Arc;

use cra_core::base::limits::MAX_SESSION_THREADS;
use cra_core::engine::command::OperatorReply;
use cra_core::memento::ExternalName;
use cra_core::runtime::snapshot::{ChainVerdict, ConsoleAccess, RuntimeSnapshot};
use cra_core::runtime::{Runtime, RuntimeParts, SessionTurn};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use serde_json::{Value, json};

use super::support::{Bench, clock, parts};

/// The drafts that a restart would find.
async fn on_disk(store: &Arc<dyn Store>) -> Vec<(String, Option<Value>)> {
    let rows = store.state().await.unwrap().into_iter();
    let drafts = rows.filter(|row| row.kind.ends_with("draft"));
    let body = |body: Option<String>| body.map(|body| serde_json::from_str(&body).unwrap());
    drafts.map(|row| (row.key, body(row.body))).collect()
}

#[tokio::test]
async fn draft_survives_a_restart_and_is_removed_when_the_request_is_decided() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let clock = clock();
    let bench = Bench::start(Arc::clone(&store), Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    let held = Arc::clone(&bench.wait_until(|s| s.held.len() == 1).await.held[0]);
    let operator = bench.runtime.operator_handle();
    for text in ["underst", "understood"] {
        let draft = json!({ "text": text });
        operator
            .store_draft(held.id.clone(), Some(draft.clone()))
            .await;
        bench
            .wait_until(|s| s.drafts.get(&held.id) == Some(&draft))
            .await;
    }
    bench.runtime.stop().await;
    let kept = json!({ "text": "understood" });
    assert_eq!(
        on_disk(&store).await,
        [(held.id.to_string(), Some(kept.clone()))]
    );

    let bench = Bench::start(Arc::clone(&store), clock).await;
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    assert_eq!(snapshot.drafts.get(&held.id), Some(&kept));
    assert!(matches!(bench.pass(&held).await, OperatorReply::Decided(_)));
    bench
        .wait_until(|s| s.held.is_empty() && s.drafts.is_empty())
        .await;
    // A draft that comes too late is dropped.
    let operator = bench.runtime.operator_handle();
    operator.store_draft(held.id.clone(), Some(kept)).await;
    bench.runtime.stop().await;
    assert_eq!(on_disk(&store).await, []);
}

#[tokio::test]
async fn discarded_draft_is_removed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::start(Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    let held = Arc::clone(&bench.wait_until(|s| s.held.len() == 1).await.held[0]);
    let operator = bench.runtime.operator_handle();
    operator
        .store_draft(held.id.clone(), Some(json!("x")))
        .await;
    bench.wait_until(|s| !s.drafts.is_empty()).await;
    operator.store_draft(held.id.clone(), None).await;
    bench.wait_until(|s| s.drafts.is_empty()).await;
    bench.runtime.stop().await;
    assert_eq!(on_disk(&store).await, []);
}

#[tokio::test]
async fn conversation_draft_is_kept_while_the_conversation_exists() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::start(Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    let turn = json!({"session": "s-1", "message_id": "m-1", "message": "go"}).to_string();
    for take in SessionTurn::read_all(turn.as_bytes()).unwrap() {
        bench.runtime.agent_handle().turn(take).await.unwrap();
    }
    let operator = bench.runtime.operator_handle();
    let (there, nowhere): (ExternalName, ExternalName) =
        ("s-1".parse().unwrap(), "s-9".parse().unwrap());
    operator.store_draft(nowhere, Some(json!("x"))).await;
    operator
        .store_draft(there.clone(), Some(json!("mine")))
        .await;
    bench
        .wait_until(|s| s.thread_drafts.get(&there) == Some(&json!("mine")))
        .await;
    bench.runtime.stop().await;
    let kept = [("s-1".to_owned(), Some(json!("mine")))];
    assert_eq!(on_disk(&store).await, kept);

    let bench = Bench::start(Arc::clone(&store), clock()).await;
    let snapshot = bench.wait_until(|s| !s.threads.is_empty()).await;
    assert_eq!(snapshot.thread_drafts.get(&there), Some(&json!("mine")));
    bench
        .runtime
        .operator_handle()
        .store_draft(there, None)
        .await;
    bench.wait_until(|s| s.thread_drafts.is_empty()).await;
    bench.runtime.stop().await;
    assert_eq!(on_disk(&store).await, []);
}

#[tokio::test]
async fn conversation_with_a_draft_is_not_evicted() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let clock = clock();
    let bench = Bench::start(Arc::clone(&store), Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    let [first, second]: [ExternalName; 2] = ["t-0", "t-1"].map(|name| name.parse().unwrap());
    for number in 0..=MAX_SESSION_THREADS {
        clock.advance(std::time::Duration::from_secs(1));
        let turn = json!({
            "session": "s-1", "thread": format!("t-{number}"), "message_id": "m-1", "message": "go",
        });
        for take in SessionTurn::read_all(turn.to_string().as_bytes()).unwrap() {
            bench.runtime.agent_handle().turn(take).await.unwrap();
        }
        if number == 0 {
            let operator = bench.runtime.operator_handle();
            operator
                .store_draft(first.clone(), Some(json!("mine")))
                .await;
            bench
                .wait_until(|s| s.thread_drafts.contains_key(&first))
                .await;
        }
    }
    let gone = |s: &RuntimeSnapshot| s.threads.iter().all(|thread| thread.id != second);
    let snapshot = bench.wait_until(gone).await;
    assert_eq!(snapshot.threads.len(), MAX_SESSION_THREADS);
    assert!(snapshot.thread_drafts.contains_key(&first));
    bench.runtime.stop().await;
    let kept = [("t-0".to_owned(), Some(json!("mine")))];
    assert_eq!(on_disk(&store).await, kept);
}

#[tokio::test]
async fn read_only_console_stores_no_draft() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::start(Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    let held = Arc::clone(&bench.wait_until(|s| s.held.len() == 1).await.held[0]);
    bench.runtime.stop().await;
    let looking = RuntimeParts {
        access: ConsoleAccess::ReadOnly,
        ..parts(Arc::clone(&store)).await
    };
    let runtime = Runtime::start(looking).await.unwrap();
    let operator = runtime.operator_handle();
    operator
        .store_draft(held.id.clone(), Some(json!("x")))
        .await;
    runtime.stop().await;
    assert_eq!(on_disk(&store).await, []);
}

#[tokio::test]
async fn events_after_the_last_signed_head_are_counted() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::start(store, clock()).await;
    let verified = |events, unsealed| ChainVerdict::Verified { events, unsealed };
    bench
        .wait_until(|s| s.chain.verdict == verified(0, 0))
        .await;
    bench.begin("s-1").await;
    let events = bench.wait_until(|s| s.held.len() == 1).await.chain.events;
    assert!(events > 0);
    // The clock stands still, so that sealing by time never comes.
    bench.runtime.operator_handle().verify().await.unwrap();
    bench
        .wait_until(|s| s.chain.verdict == verified(events, events))
        .await;
}
