//! Explanations and the stream of evaluations: they show what is, and change nothing.

use std::sync::Arc;

use cra_core::atlas::{Atlas, load_str};
use cra_core::engine::command::{InputReport, InputSource};
use cra_core::engine::explanation::{
    CheckpointOutcome, ExplainQuestion, ExplainedSession, ExplainedVerdict, FullExplanation,
    HypotheticalSession, explain_under,
};
use cra_core::runtime::snapshot::{
    ChainVerdict, ConsoleAccess, EvaluationOutcome, RuntimeSnapshot, WatchedEvaluation,
};
use cra_core::runtime::{Runtime, RuntimeParts, WatchSetting};
use cra_core::store::memory::MemoryStore;
use cra_core::store::{StateRow, Store};
use serde_json::json;

use super::support::{ACME, Bench, clock, parts, request};

const KEYWORDS: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.words
version: "1"
name: Words
default_decision: allow
unknown_actions: allow
checkpoints:
  - checkpoint_id: refunds
    trigger: { type: keyword, patterns: [refund] }
    mode: blocking
  - checkpoint_id: deletions
    trigger: { type: keyword, patterns: [delete] }
    mode: blocking
  - checkpoint_id: large
    trigger: { type: action_pre, patterns: ["payment.*"] }
    mode: blocking
    when: { path: params.amount, gt: 1000 }
policies:
  - policy_id: few
    type: rate_limit
    actions: ["payment.*"]
    max_calls: 5
    window_seconds: 60
    reason: slow down
"#;

fn words() -> Vec<Atlas> {
    vec![load_str("words.yaml", KEYWORDS).unwrap().atlas]
}

/// Everything that is kept.
async fn kept(store: &Arc<dyn Store>) -> (Vec<StateRow>, Vec<(String, u64)>) {
    let sessions = store.sessions().await.unwrap().into_iter();
    let sessions = sessions.map(|value| (value.session.to_string(), value.events));
    (store.state().await.unwrap(), sessions.collect())
}

fn outcome<'a>(account: &'a FullExplanation, id: &str) -> &'a CheckpointOutcome {
    let mut all = account.checkpoints.iter();
    &all.find(|checkpoint| checkpoint.checkpoint_id == id)
        .unwrap()
        .outcome
}

fn newest(snapshot: &RuntimeSnapshot) -> &WatchedEvaluation {
    &snapshot.watched.evaluations[0]
}

/// A store under a runtime with one held `ticket.delete`.
async fn held_delete(store: &Arc<dyn Store>) -> Bench {
    let bench = Bench::start(Arc::clone(store), clock()).await;
    bench.begin("s-1").await;
    let start = bench.wait_until(|s| s.held.len() == 1).await;
    bench.pass(&start.held[0]).await;
    let agents = bench.runtime.agent_handle();
    let delete = request("s-1", "ticket.delete", json!({"ticket_id": "1"}));
    tokio::spawn(async move { agents.request_action(delete).await });
    bench.wait_until(|s| s.held.len() == 1).await;
    bench
        .wait_until(|s| matches!(s.chain.verdict, ChainVerdict::Verified { .. }))
        .await;
    bench
}

#[tokio::test]
async fn explaining_changes_neither_store_nor_state() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = held_delete(&store).await;
    let operator = bench.runtime.operator_handle();
    let (before, snapshot) = (kept(&store).await, bench.snapshot());
    let asker = ExplainedSession::Session("s-1".parse().unwrap());
    let imagined = ExplainedSession::Imagined(HypotheticalSession::default());
    let action = |asker: &ExplainedSession| ExplainQuestion::Action {
        action: "user.ban".to_owned(),
        params: json!({"user": "x"}),
        asker: asker.clone(),
    };
    let input = |asker: &ExplainedSession| ExplainQuestion::Input {
        text: "please delete it".to_owned(),
        asker: asker.clone(),
    };
    let held = ExplainQuestion::Held(snapshot.held[0].id.clone());
    let reply = operator.explain(held).await.unwrap();
    for question in [
        action(&asker),
        action(&imagined),
        input(&asker),
        input(&imagined),
    ] {
        operator.explain(question).await.unwrap();
    }
    assert_eq!(kept(&store).await, before);
    let after = bench.snapshot();
    assert_eq!(after.held, snapshot.held);
    assert_eq!(after.sessions, snapshot.sessions);
    assert_eq!(after.chain.events, snapshot.chain.events);

    // What holds it is what the queue shows.
    let gates: Vec<_> = snapshot.held[0].gates.iter().collect();
    let own: Vec<_> = gates
        .iter()
        .map(|gate| gate.origin.id().to_owned())
        .collect();
    assert!(matches!(&reply.verdict, ExplainedVerdict::Held { gates } if *gates == own));
    let CheckpointOutcome::Fired { why } = outcome(&reply, own[0].as_str()) else {
        panic!("{reply:?}");
    };
    assert_eq!(*why, gates[0].why);
    let decisive = reply
        .checkpoints
        .iter()
        .filter(|checkpoint| reply.is_deciding_checkpoint(checkpoint));
    let ruling = reply
        .policies
        .iter()
        .filter(|policy| reply.ruled_by(policy));
    assert_eq!(decisive.count() + ruling.count(), own.len());
}

#[tokio::test]
async fn unknown_session_or_request_cannot_be_explained() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = held_delete(&store).await;
    let operator = bench.runtime.operator_handle();
    let unknown_session = ExplainQuestion::Input {
        text: "x".to_owned(),
        asker: ExplainedSession::Session("s-9".parse().unwrap()),
    };
    let output = operator.explain(unknown_session).await.unwrap_err();
    assert_eq!(output, "session `s-9` no longer exists");
    let gone = ExplainQuestion::Held("c-99".parse().unwrap());
    let output = operator.explain(gone).await.unwrap_err();
    assert_eq!(output, "`c-99` is no longer held");
}

#[tokio::test]
async fn read_only_console_can_explain_requests() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let runtime = Runtime::start(RuntimeParts {
        access: ConsoleAccess::ReadOnly,
        ..parts(store).await
    });
    let runtime = runtime.await.unwrap();
    let question = ExplainQuestion::Action {
        action: "ticket.delete".to_owned(),
        params: json!({}),
        asker: ExplainedSession::Imagined(HypotheticalSession::default()),
    };
    let reply = runtime.operator_handle().explain(question).await.unwrap();
    // The same as the command line tells.
    let atlas = load_str("acme.yaml", ACME).unwrap().atlas;
    let what_if = cra_core::engine::explanation::HypotheticalRequest {
        action: "ticket.delete".to_owned(),
        params: json!({}),
        session: HypotheticalSession::default(),
    };
    let now = "2026-01-01T00:00:00.000000Z".parse().unwrap();
    let printed = explain_under(&[atlas], &what_if, now);
    assert_eq!(json!(reply.verdict), json!(printed.verdict));
    assert_eq!(json!(reply.checkpoints), json!(printed.checkpoints));
    assert_eq!(json!(reply.policies), json!(printed.policies));
}

#[tokio::test]
async fn stream_shows_fired_and_unfired_checkpoints_while_watching_is_on() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::with_atlases(words(), Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    assert!(
        bench.snapshot().watched.evaluations.is_empty(),
        "watching is off"
    );
    let operator = bench.runtime.operator_handle();
    operator.set_watch(WatchSetting::On).await;
    let pay = |amount: u64| request("s-1", "payment.send", json!({ "amount": amount }));
    let agents = bench.runtime.agent_handle();
    agents.request_action(pay(10)).await.unwrap();
    let shown = bench.wait_until(|s| s.watched.total == 1).await;
    let seen = newest(&shown);
    assert_eq!(
        (seen.account.subject.as_str(), &seen.outcome),
        ("payment.send", &EvaluationOutcome::Allowed)
    );
    assert_eq!(seen.counts, (0, 1, 2));
    assert!(matches!(
        outcome(&seen.account, "large"),
        CheckpointOutcome::NotFired { wanted, .. } if wanted == "when"
    ));
    let large = seen
        .account
        .checkpoints
        .iter()
        .find(|checkpoint| checkpoint.checkpoint_id == "large");
    let leaf = &large.unwrap().conditions[0];
    assert_eq!(
        (leaf.wanted.as_str(), leaf.actual.clone()),
        ("gt 1000", Some(json!(10)))
    );
    let used = &shown.watched.limits[&"s-1".parse().unwrap()][0];
    assert_eq!(
        (used.policy_id.as_str(), used.used, used.allowed),
        ("few", 1.0, 5.0)
    );

    let input = InputReport {
        session: "s-1".parse().unwrap(),
        text: "a refund please".to_owned(),
        source: InputSource::User,
        reaches_asked_agent: false,
        waits_for_start: false,
        deadline: None,
    };
    let others = agents.clone();
    tokio::spawn(async move { others.input(input).await });
    let shown = bench
        .wait_until(|s| s.watched.total == 2 && s.held.len() == 1)
        .await;
    let seen = newest(&shown);
    assert_eq!(
        seen.outcome,
        EvaluationOutcome::Held(vec![shown.held[0].id.clone()])
    );
    assert!(matches!(
        outcome(&seen.account, "refunds"),
        CheckpointOutcome::Fired { .. }
    ));
    assert!(matches!(
        outcome(&seen.account, "deletions"),
        CheckpointOutcome::NotFired { .. }
    ));
    assert!(matches!(
        outcome(&seen.account, "large"),
        CheckpointOutcome::Skipped { .. }
    ));

    operator.set_watch(WatchSetting::Off).await;
    bench
        .wait_until(|s| s.watched.watch == WatchSetting::Off)
        .await;
    let read = request("s-1", "ticket.get", json!({}));
    tokio::spawn(async move { agents.request_action(read).await });
    bench.pass(&shown.held[0]).await;
    let shown = bench.wait_until(|s| s.held.is_empty()).await;
    assert_eq!(shown.watched.evaluations.len(), 2, "what was seen stays");
}

/// State and sessions that a run leaves in a store, with or without watching.
async fn run_watched(watch: WatchSetting) -> (Vec<StateRow>, Vec<(String, u64)>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::with_atlases(words(), Arc::clone(&store), clock()).await;
    bench.runtime.operator_handle().set_watch(watch).await;
    bench.begin("s-1").await;
    let agents = bench.runtime.agent_handle();
    for amount in 0..250_u64 {
        // The limit denies most of them.
        let pay = request("s-1", "payment.send", json!({ "amount": amount }));
        let _ = agents.request_action(pay).await;
    }
    let most = bench.snapshot().watched.evaluations.len();
    assert_eq!(most, if watch == WatchSetting::On { 200 } else { 0 });
    bench.runtime.stop().await;
    kept(&store).await
}

#[tokio::test]
async fn watching_changes_no_record_and_keeps_a_bounded_number_of_events() {
    let (state, sessions) = run_watched(WatchSetting::On).await;
    let (other, unwatched) = run_watched(WatchSetting::Off).await;
    assert_eq!(state, other);
    assert_eq!(sessions, unwatched);
}
