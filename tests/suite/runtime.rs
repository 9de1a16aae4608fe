//! The runtime: replies after durability, deadlines, restarts, failures.

use std::sync::Arc;
use std::time::Duration;

use cra_core::base::clock::Boxed;
use cra_core::base::digest::Digest;
use cra_core::base::id::SessionId;
use cra_core::engine::command::{DecisionRefusal, DenyCode, HeldOutcome, OperatorReply, Ruling};
use cra_core::runtime::snapshot::ConsoleAccess;
use cra_core::runtime::snapshot::{ChainVerdict, StoreState};
use cra_core::runtime::{RecordedSession, Runtime, RuntimeParts, StartError};
use cra_core::store::memory::MemoryStore;
use cra_core::store::{Ack, AtlasText, Batch, LogState, StateRow, Store, StoreError};
use cra_core::trace::record::Record;
use cra_core::trace::verification::{ChainHead, TrustAnchors, VerificationReport};
use serde_json::json;
use tokio::sync::watch;

use super::support::{Bench, acme, clock, decide, good_answers, parts, request, settle};

/// A store whose writes are durable only once it is let go.
#[derive(Debug)]
pub(crate) struct SlowStore {
    inner: MemoryStore,
    pub(crate) durable: watch::Sender<bool>,
}

impl SlowStore {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::default(),
            durable: watch::Sender::new(true),
        })
    }
}

impl Store for SlowStore {
    fn append(&self, batch: Batch) -> Boxed<'_, Result<Ack, StoreError>> {
        let mut durable = self.durable.subscribe();
        Box::pin(async move {
            let ack = self.inner.append(batch).await?;
            let ack: Ack = Box::pin(async move {
                let _ = durable.wait_for(|durable| *durable).await;
                ack.await
            });
            Ok(ack)
        })
    }

    fn state(&self) -> Boxed<'_, Result<Vec<StateRow>, StoreError>> {
        self.inner.state()
    }

    fn heads(&self) -> Boxed<'_, Result<Vec<ChainHead>, StoreError>> {
        self.inner.heads()
    }

    fn head(&self, session: SessionId) -> Boxed<'_, Result<Option<ChainHead>, StoreError>> {
        self.inner.head(session)
    }

    fn sessions(&self) -> Boxed<'_, Result<Vec<RecordedSession>, StoreError>> {
        self.inner.sessions()
    }

    fn session_records(
        &self,
        session: SessionId,
        from: u64,
        limit: usize,
    ) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.inner.session_records(session, from, limit)
    }

    fn log(&self) -> Boxed<'_, Result<LogState, StoreError>> {
        self.inner.log()
    }

    fn records(&self, from: u64, limit: usize) -> Boxed<'_, Result<Vec<Record>, StoreError>> {
        self.inner.records(from, limit)
    }

    fn hashes(&self, session: SessionId) -> Boxed<'_, Result<Vec<Digest>, StoreError>> {
        self.inner.hashes(session)
    }

    fn atlas(&self, hash: String) -> Boxed<'_, Result<Option<AtlasText>, StoreError>> {
        self.inner.atlas(hash)
    }

    fn verify(&self, trust: TrustAnchors) -> Boxed<'_, Result<VerificationReport, StoreError>> {
        self.inner.verify(trust)
    }
}

fn store() -> (MemoryStore, Arc<dyn Store>) {
    let store = MemoryStore::default();
    (store.clone(), Arc::new(store))
}

#[tokio::test]
async fn a_held_action_is_released_by_its_decision_and_not_before() {
    let (memory, store) = store();
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    bench.pass(&snapshot.held[0]).await;
    let agents = bench.runtime.agent_handle();
    let delete = request("s-1", "ticket.delete", json!({"id": 1}));
    let pending = tokio::spawn(async move { agents.request_action(delete).await });
    let snapshot = bench
        .wait_until(|s| s.held.iter().any(|h| h.action() == "ticket.delete"))
        .await;
    assert!(!pending.is_finished());
    let reply = bench.pass(&snapshot.held[0]).await;
    assert!(
        matches!(reply, OperatorReply::Decided(decided) if decided.outcome == HeldOutcome::Passed)
    );
    // By the time the agent hears of it, the records are there.
    pending.await.unwrap().unwrap();
    let events = memory.events("s-1".parse().unwrap(), 0, 100).await.unwrap();
    let written = |name: &str| events.iter().any(|event| event.event_type == name);
    assert!(written("policy_override") && written("risk_verified"));
    assert!(
        memory
            .verify(TrustAnchors::nothing())
            .await
            .unwrap()
            .is_sound()
    );
}

#[tokio::test]
async fn unanswered_request_is_denied_at_its_deadline() {
    let (_, store) = store();
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    bench.pass(&snapshot.held[0]).await;
    let agents = bench.runtime.agent_handle();
    let ban = request("s-1", "user.ban", json!({"user": "x"}));
    let pending = tokio::spawn(async move { agents.request_action(ban).await });
    bench.wait_until(|s| s.held.len() == 1).await;
    bench.clock.advance(Duration::from_secs(301));
    let snapshot = bench.wait_until(|s| s.held.is_empty()).await;
    assert_eq!(snapshot.decided[0].outcome, HeldOutcome::Expired);
    assert_eq!(pending.await.unwrap().unwrap_err().code, DenyCode::Expired);
}

#[tokio::test]
async fn restart_restores_held_requests() {
    let (_, store) = store();
    let clock = clock();
    let bench = Bench::start(Arc::clone(&store), Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    let before = bench.wait_until(|s| s.held.len() == 1).await;
    bench.runtime.stop().await;
    let bench = Bench::start(store, clock).await;
    let after = bench.wait_until(|s| s.held.len() == 1).await;
    assert_eq!(before.held, after.held);
    assert!(matches!(
        bench.pass(&after.held[0]).await,
        OperatorReply::Decided(_)
    ));
    bench
        .wait_until(|s| matches!(s.chain.verdict, ChainVerdict::Verified { .. }))
        .await;
}

#[tokio::test]
async fn disconnected_request_is_not_released_but_its_retry_is() {
    let (_, store) = store();
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    bench.pass(&snapshot.held[0]).await;
    let agents = bench.runtime.agent_handle();
    let ban = || request("s-1", "user.ban", json!({"user": "x"}));
    let pending = tokio::spawn({
        let agents = agents.clone();
        async move { agents.request_action(ban()).await }
    });
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    pending.abort();
    assert!(pending.await.unwrap_err().is_cancelled());
    bench.pass(&snapshot.held[0]).await;
    agents.request_action(ban()).await.unwrap();
}

#[tokio::test]
async fn failed_write_blocks_every_agent_and_decides_nothing() {
    let (memory, store) = store();
    let clock = clock();
    let bench = Bench::start(Arc::clone(&store), Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    let agents = bench.runtime.agent_handle();
    let get = request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    let waiting = tokio::spawn(async move { agents.request_action(get).await });
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    memory.fail_after(0);
    let reply = bench.pass(&snapshot.held[0]).await;
    assert!(
        matches!(
            reply,
            OperatorReply::Refused(DecisionRefusal::Unavailable(_))
        ),
        "{reply:?}"
    );
    assert_eq!(
        waiting.await.unwrap().unwrap_err().code,
        DenyCode::Unavailable
    );
    let poisoned = bench.wait_until(|s| s.store != StoreState::Ready).await;
    assert_eq!(poisoned.held, snapshot.held, "shown as it is on disk");
    let again = bench.pass(&snapshot.held[0]).await;
    assert!(matches!(
        again,
        OperatorReply::Refused(DecisionRefusal::Unavailable(_))
    ));

    // A new process finds the gate as it was.
    let memory = memory.reopen();
    let bench = Bench::start(Arc::new(memory.clone()), clock).await;
    assert_eq!(bench.snapshot().held, snapshot.held);
    assert!(
        memory
            .verify(TrustAnchors::nothing())
            .await
            .unwrap()
            .is_sound()
    );
}

#[tokio::test]
async fn agents_of_a_stopped_runtime_are_denied() {
    let (_, store) = store();
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let agents = bench.runtime.agent_handle();
    let operator = bench.runtime.operator_handle();
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    let get = || request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    let waiting = tokio::spawn({
        let agents = agents.clone();
        let get = get();
        async move { agents.request_action(get).await }
    });
    bench.runtime.stop().await;
    assert_eq!(
        waiting.await.unwrap().unwrap_err().code,
        DenyCode::Unavailable
    );
    assert_eq!(
        agents.request_action(get()).await.unwrap_err().code,
        DenyCode::Unavailable
    );
    let deny = decide(
        &held,
        Ruling::Deny {
            reason: "x".to_owned(),
        },
    );
    assert!(matches!(
        operator.decide(deny).await,
        OperatorReply::Refused(DecisionRefusal::Unavailable(_))
    ));
}

#[tokio::test]
async fn waiting_agents_do_not_block_each_other() {
    let (_, store) = store();
    let bench = Bench::start(store, clock()).await;
    for n in 0..50 {
        bench.begin(&format!("s-{n}")).await;
    }
    let snapshot = bench.wait_until(|s| s.held.len() == 50).await;
    for held in &snapshot.held {
        assert!(matches!(bench.pass(held).await, OperatorReply::Decided(_)));
    }
    let agents = bench.runtime.agent_handle();
    for n in 0..50 {
        let get = request(&format!("s-{n}"), "ticket.get", json!({"ticket_id": "x"}));
        agents.request_action(get).await.unwrap();
    }
    let snapshot = bench
        .wait_until(|s| s.held.is_empty() && s.decided.len() == 50)
        .await;
    assert_eq!(snapshot.sessions.len(), 50);
}

/// Parameters of this depth.
fn nested(depth: usize) -> serde_json::Value {
    (1..depth).fold(json!({}), |inner, _| json!({ "x": inner }))
}

#[tokio::test]
async fn deeply_nested_parameters_do_not_prevent_the_next_start() {
    let (memory, store) = store();
    let clock = clock();
    let bench = Bench::start(Arc::clone(&store), Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    bench.pass(&snapshot.held[0]).await;
    for depth in [65, 120, 127, 300] {
        let agents = bench.runtime.agent_handle();
        let denied = agents.request_action(request("s-1", "user.ban", nested(depth)));
        assert_eq!(denied.await.unwrap_err().code, DenyCode::BadRequest);
    }
    let agents = bench.runtime.agent_handle();
    let deep = request("s-1", "user.ban", nested(64));
    tokio::spawn(async move { agents.request_action(deep).await });
    bench.wait_until(|s| s.held.len() == 1).await;
    bench.runtime.stop().await;
    let bench = Bench::start(store, clock).await;
    bench.wait_until(|s| s.held.len() == 1).await;
    let report = memory.verify(TrustAnchors::nothing()).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[tokio::test]
async fn events_are_neither_answered_nor_shown_before_they_are_durable() {
    let store = SlowStore::new();
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();

    store.durable.send_replace(false);
    let agents = bench.runtime.agent_handle();
    let get = request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    let pending = tokio::spawn(async move { agents.request_action(get).await });
    settle().await;
    let operator = bench.runtime.operator_handle();
    let pass = decide(
        &held,
        Ruling::Pass {
            answers: good_answers(&held),
        },
    );
    let decided = tokio::spawn(async move { operator.decide(pass).await });
    settle().await;
    // Something that wants a new picture while the write is under way.
    bench.runtime.operator_handle().verify().await.unwrap();
    settle().await;
    assert!(!pending.is_finished() && !decided.is_finished());
    assert_eq!(bench.snapshot().held.len(), 1);
    assert!(bench.snapshot().decided.is_empty());

    store.durable.send_replace(true);
    assert!(matches!(decided.await.unwrap(), OperatorReply::Decided(_)));
    pending.await.unwrap().unwrap();
    bench.wait_until(|s| s.held.is_empty()).await;
}

#[tokio::test]
async fn request_is_held_only_after_the_hold_is_durable() {
    let store = SlowStore::new();
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    store.durable.send_replace(false);
    let agents = bench.runtime.agent_handle();
    let start = cra_core::engine::command::StartSession {
        delivery: cra_core::engine::command::DeliveryTime::Now,
        session: "s-1".parse().unwrap(),
        agent: "bot".to_owned(),
        agent_version: None,
        intent: None,
        owner: None,
    };
    let started = tokio::spawn(async move { agents.start_session(start).await });
    settle().await;
    // It names the gate, and a restart must find a gate of that name.
    assert!(!started.is_finished());
    store.durable.send_replace(true);
    assert_eq!(started.await.unwrap().unwrap().held.len(), 1);
}

#[tokio::test]
async fn failed_write_is_reported_to_callers_that_wait_for_other_requests() {
    let (memory, store) = store();
    let bench = Bench::start(store, clock()).await;
    bench.begin("s-1").await;
    let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
    bench.pass(&snapshot.held[0]).await;
    let agents = bench.runtime.agent_handle();
    let ban = request("s-1", "user.ban", json!({}));
    let waiting = tokio::spawn(async move { agents.request_action(ban).await });
    bench.wait_until(|s| s.held.len() == 1).await;
    memory.fail_after(0);
    let unknown = request("s-1", "no.such", json!({}));
    let denied = bench.runtime.agent_handle().request_action(unknown).await;
    assert_eq!(denied.unwrap_err().code, DenyCode::Unavailable);
    let reply = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    let reply = reply.expect("no denial was received").unwrap().unwrap_err();
    assert_eq!(reply.code, DenyCode::Unavailable);
}

#[tokio::test]
async fn read_only_console_cannot_decide() {
    let (_, store) = store();
    let bench = Bench::start(Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    bench.runtime.stop().await;
    let looking = Runtime::start(RuntimeParts {
        access: ConsoleAccess::ReadOnly,
        ..parts(store).await
    });
    let looking = looking.await.unwrap();
    let answers = good_answers(&held);
    let operator = looking.operator_handle();
    let reply = operator
        .decide(decide(&held, Ruling::Pass { answers }))
        .await;
    assert!(
        matches!(&reply, OperatorReply::Refused(DecisionRefusal::Unavailable(what)) if what.contains("read-only")),
        "{reply:?}"
    );
}

#[tokio::test]
async fn two_atlases_with_the_same_id_are_refused() {
    let (_, store) = store();
    let started = Runtime::start(RuntimeParts {
        atlases: [acme(), acme()].concat(),
        ..parts(store).await
    });
    assert!(matches!(started.await, Err(StartError::SameAtlas(_))));
}
