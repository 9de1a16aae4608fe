//! Counts of limits, removed from the file while no console is open: a spent limit stays spent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::ManualClock;
use cra_core::engine::reload::hash_of_atlases;
use cra_core::runtime::{AtlasLoad, RequestReply};
use cra_core::store::Store;
use cra_core::store::sqlite::FILE_NAME;
use rusqlite::Connection;
use serde_json::json;

use super::super::support::{Bench, clock, close, reopen_store, request};

const WINDOW: Duration = Duration::from_hours(1);

fn limited(version: &str) -> Vec<Atlas> {
    let text = format!(
        "atlas_version: \"1.0\"
atlas_id: t.limited
version: {version}
name: limited
default_decision: allow
actions: [{{action_id: mail, risk_tier: low}}, {{action_id: pay, risk_tier: low}}, {{action_id: note, risk_tier: low}}]
policies:
  - {{policy_id: mails, type: rate_limit, actions: [mail], max_calls: 1, window_seconds: 3600, scope: all}}
  - {{policy_id: money, type: budget, actions: [pay], limit: 1, scope: all}}
  - {{policy_id: notes, type: rate_limit, actions: [note], max_calls: 1, window_seconds: 3600}}
"
    );
    vec![load_str("limited.yaml", &text).unwrap().atlas]
}

async fn console(folder: &Path, clock: &Arc<ManualClock>, version: &str) -> Bench {
    let store: Arc<dyn Store> = Arc::new(reopen_store(folder));
    Bench::with_atlases(limited(version), store, Arc::clone(clock)).await
}

/// Asks to run an action in a session of its own. Gives the reason of a denial.
async fn denied(bench: &Bench, session: &str, action: &str) -> Option<String> {
    bench.begin(session).await;
    let agents = bench.runtime.agent_handle();
    let asked_request = agents.request_action(request(session, action, json!({})));
    match asked_request.await {
        Ok(RequestReply::Allowed(_)) => None,
        Ok(RequestReply::Asked(asked_request)) => panic!("{asked_request:?}"),
        Err(denied) => Some(denied.reason),
    }
}

/// A console that stops with everything spent; then the counts are removed from its file.
async fn spent_and_removed(folder: &Path, clock: &Arc<ManualClock>) {
    let store = Arc::new(reopen_store(folder));
    let kept = Arc::clone(&store) as Arc<dyn Store>;
    let bench = Bench::with_atlases(limited("1.0.0"), kept, Arc::clone(clock)).await;
    for action in ["mail", "pay"] {
        assert_eq!(denied(&bench, &format!("s-{action}"), action).await, None);
    }
    bench.runtime.stop().await;
    close(store, folder).await;
    let file = Connection::open(folder.join(FILE_NAME)).unwrap();
    let gone = file.execute("DELETE FROM state WHERE kind = 'usage'", []);
    assert_eq!(gone.unwrap(), 2);
}

#[tokio::test]
async fn limit_with_a_removed_count_is_exhausted_also_after_another_restart() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    spent_and_removed(folder.path(), &clock).await;
    for start in 1..=2 {
        clock.advance(Duration::from_secs(10));
        let bench = console(folder.path(), &clock, "1.0.0").await;
        let mail = denied(&bench, &format!("m-{start}"), "mail").await.unwrap();
        assert!(mail.contains("counts as used up for 3600 s"), "{mail}");
        let pay = denied(&bench, &format!("p-{start}"), "pay").await.unwrap();
        assert!(
            pay.contains("until an operator loads another version"),
            "{pay}"
        );
        // No other session has used what counts for each alone.
        assert_eq!(denied(&bench, &format!("n-{start}"), "note").await, None);
        bench.runtime.stop().await;
    }
    clock.advance(WINDOW);
    let bench = console(folder.path(), &clock, "1.0.0").await;
    assert_eq!(denied(&bench, "m-3", "mail").await, None);
    assert!(denied(&bench, "p-3", "pay").await.is_some());
    bench.runtime.stop().await;
}

#[tokio::test]
async fn budget_with_a_removed_count_restarts_when_an_operator_loads_another_atlas() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    spent_and_removed(folder.path(), &clock).await;
    let bench = console(folder.path(), &clock, "1.0.0").await;
    let reply = bench.snapshot().distrusted.clone().unwrap();
    assert!(reply.contains("count as used up"), "{reply}");
    let load = AtlasLoad {
        atlases: limited("1.0.1").into(),
        expected_hash: hash_of_atlases(&limited("1.0.0")),
        operator: "op-1".to_owned(),
    };
    bench
        .runtime
        .operator_handle()
        .load_atlases(load)
        .await
        .unwrap();
    bench.runtime.stop().await;
    let bench = console(folder.path(), &clock, "1.0.1").await;
    assert_eq!(bench.snapshot().distrusted, None);
    assert_eq!(denied(&bench, "p-1", "pay").await, None);
    let again = denied(&bench, "p-2", "pay").await.unwrap();
    assert!(again.contains("0 of 1 are left"), "{again}");
    let mail = denied(&bench, "m-1", "mail").await.unwrap();
    assert!(mail.contains("counts as used up"), "{mail}");
    bench.runtime.stop().await;
}
