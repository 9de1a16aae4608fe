//! Other Atlases while agents are at work: recorded first, in force after, and nothing opened by it.

use std::sync::Arc;

use cra_core::atlas::{Atlas, load_str};
use cra_core::base::digest::Digest;
use cra_core::engine::command::{DecisionRefusal, OperatorReply};
use cra_core::engine::reload::hash_of_atlases;
use cra_core::runtime::snapshot::{ConsoleAccess, StoreState};
use cra_core::runtime::{AtlasLoad, LoadRefusal, Runtime, RuntimeParts};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::event::Event;
use cra_core::trace::verification::TrustAnchors;
use serde_json::json;

use super::runtime::SlowStore;
use super::support::{ACME, Bench, acme, clock, parts, request, settle};

fn stricter() -> Arc<[Atlas]> {
    let text = ACME.replace("min_length: 20", "min_length: 30");
    let text = text.replacen("version: \"2.1.0\"", "version: \"2.2.0\"", 1);
    vec![load_str("acme.yaml", &text).unwrap().atlas].into()
}

fn load(atlases: Arc<[Atlas]>) -> AtlasLoad {
    instead_of(hash_of_atlases(&acme()), atlases)
}

fn instead_of(before: Digest, atlases: Arc<[Atlas]>) -> AtlasLoad {
    AtlasLoad {
        atlases,
        expected_hash: before,
        operator: "op-1".to_owned(),
    }
}

/// Log entries about loaded Atlases.
async fn loads(memory: &MemoryStore) -> Vec<Event> {
    let log = memory.log().await.unwrap().log;
    let mut entries = memory.events(log, 0, 100).await.unwrap();
    entries.retain(|entry| entry.event_type == "atlas_loaded");
    entries
}

// covers B2
#[tokio::test]
async fn atlas_load_is_recorded_with_its_text_and_held_requests_stay_held() {
    let memory = MemoryStore::default();
    let bench = Bench::start(Arc::new(memory.clone()), clock()).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    let operator = bench.runtime.operator_handle();
    operator.load_atlases(load(stricter())).await.unwrap();
    let snapshot = bench
        .wait_until(|s| s.atlases.iter().any(|atlas| atlas.version == "2.2.0"))
        .await;
    assert_eq!(snapshot.held[0], held);
    assert_eq!(snapshot.load_info.hash, Some(hash_of_atlases(&stricter())));
    let reply = bench.pass(&held).await;
    assert_eq!(reply, OperatorReply::Refused(DecisionRefusal::AtlasChanged));

    let entries = loads(&memory).await;
    let newest = &entries.last().unwrap().payload;
    assert_eq!(
        (&newest["loaded_by"], &newest["version"]),
        (&json!("op-1"), &json!("2.2.0"))
    );
    assert_eq!(newest["replaces"], json!(acme()[0].hash.to_string()));
    let text = memory.atlas(stricter()[0].hash.to_string()).await.unwrap();
    assert_eq!(text.unwrap().text, &*stricter()[0].text);

    // Back to the one before: that is a load of its own, and what it judged can be passed again.
    let back = snapshot.load_info.before.clone().unwrap();
    let undo = instead_of(hash_of_atlases(&stricter()), back);
    operator.load_atlases(undo).await.unwrap();
    assert_eq!(loads(&memory).await.len(), 3);
    assert!(matches!(bench.pass(&held).await, OperatorReply::Decided(_)));
    bench.runtime.stop().await;
    assert!(
        memory
            .verify(TrustAnchors::nothing())
            .await
            .unwrap()
            .is_sound()
    );
}

#[tokio::test]
async fn unreviewed_unchanged_duplicate_or_empty_atlases_are_not_loaded() {
    let memory = MemoryStore::default();
    let bench = Bench::start(Arc::new(memory.clone()), clock()).await;
    let operator = bench.runtime.operator_handle();
    let unseen = instead_of(hash_of_atlases(&stricter()), stricter());
    assert_eq!(
        operator.load_atlases(unseen).await,
        Err(LoadRefusal::Changed)
    );
    assert_eq!(
        operator.load_atlases(load(acme().into())).await,
        Err(LoadRefusal::AlreadyLoaded)
    );
    let twice: Vec<_> = stricter().iter().cloned().chain(acme()).collect();
    assert_eq!(
        operator.load_atlases(load(twice.into())).await,
        Err(LoadRefusal::DuplicateId("com.acme.support".to_owned()))
    );
    assert_eq!(
        operator.load_atlases(load(Arc::new([]))).await,
        Err(LoadRefusal::NoAtlas)
    );
    assert_eq!(loads(&memory).await.len(), 1, "that of the start");
    assert_eq!(
        bench.snapshot().load_info.hash,
        Some(hash_of_atlases(&acme()))
    );
}

/// An Atlas that lets everything run that ACME's holds.
fn open() -> Arc<[Atlas]> {
    let text = "atlas_version: '1.0'\natlas_id: com.acme.support\nversion: '9'\nname: Open\n\
        actions: [{action_id: ticket.delete, name: Delete, risk_tier: low}]\n";
    vec![load_str("open.yaml", text).unwrap().atlas].into()
}

#[tokio::test]
async fn atlas_is_not_used_before_its_load_is_durable() {
    let store = SlowStore::new();
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, clock()).await;
    bench.begin("s-1").await;
    bench.wait_until(|s| s.held.len() == 1).await;
    store.durable.send_replace(false);
    let operator = bench.runtime.operator_handle();
    let loading = tokio::spawn(async move { operator.load_atlases(load(open())).await });
    settle().await;
    let agents = bench.runtime.agent_handle();
    let delete = request("s-1", "ticket.delete", json!({}));
    let pending = tokio::spawn(async move { agents.request_action(delete).await });
    settle().await;
    assert!(!loading.is_finished() && !pending.is_finished());
    assert_eq!(bench.snapshot().atlases[0].version, "2.1.0");
    store.durable.send_replace(true);
    loading.await.unwrap().unwrap();
    pending.await.unwrap().unwrap();
}

#[tokio::test]
async fn atlas_load_that_cannot_be_recorded_changes_nothing_and_passes_no_gate() {
    let memory = MemoryStore::default();
    let bench = Bench::start(Arc::new(memory.clone()), clock()).await;
    memory.fail_after(0);
    let refused = bench
        .runtime
        .operator_handle()
        .load_atlases(load(open()))
        .await;
    assert!(
        matches!(refused, Err(LoadRefusal::Unavailable(_))),
        "{refused:?}"
    );
    let snapshot = bench.wait_until(|s| s.store != StoreState::Ready).await;
    assert_eq!(snapshot.atlases[0].version, "2.1.0");
    let agents = bench.runtime.agent_handle();
    let delete = agents.request_action(request("s-1", "ticket.delete", json!({})));
    assert!(delete.await.is_err());
}

#[tokio::test]
async fn read_only_console_loads_no_atlas() {
    let store = Arc::new(MemoryStore::default());
    let read_only = RuntimeParts {
        access: ConsoleAccess::ReadOnly,
        ..parts(store).await
    };
    let runtime = Runtime::start(read_only).await.unwrap();
    let refused = runtime
        .operator_handle()
        .load_atlases(load(stricter()))
        .await;
    assert_eq!(refused, Err(LoadRefusal::ReadOnly));
}

const MORE: &str = "atlas_version: '1.0'\natlas_id: com.acme.more\nversion: '1'\nname: More\n\
    actions: [{action_id: report.send, name: Send, risk_tier: low}]\n\
    checkpoints:\n  - checkpoint_id: reports\n    mode: blocking\n    \
    trigger: {type: action_pre, patterns: [report.send]}\n    \
    questions: [{question_id: ack, question: Seen?, response_type: acknowledgment}]\n";

fn with_more() -> Arc<[Atlas]> {
    let more = load_str("more.yaml", MORE).unwrap().atlas;
    acme().into_iter().chain([more]).collect()
}

// covers B2
#[tokio::test]
async fn atlas_is_added_and_removed_without_a_restart_and_held_requests_stay_held() {
    let memory = MemoryStore::default();
    let bench = Bench::start(Arc::new(memory.clone()), clock()).await;
    let operator = bench.runtime.operator_handle();
    operator.load_atlases(load(with_more())).await.unwrap();
    let entries = loads(&memory).await;
    assert_eq!(entries.len(), 2, "what was in force is not told again");
    let newest = &entries.last().unwrap().payload;
    assert_eq!(newest["atlas_id"], json!("com.acme.more"));
    assert_eq!(
        (newest.get("replaces"), newest.get("removes")),
        (None, None)
    );
    let text = memory.atlas(with_more()[1].hash.to_string()).await.unwrap();
    assert_eq!(text.unwrap().text, MORE);

    bench.begin("s-1").await;
    let gate = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    assert!(matches!(bench.pass(&gate).await, OperatorReply::Decided(_)));
    let agents = bench.runtime.agent_handle();
    let report = || request("s-1", "report.send", json!({}));
    let pending = tokio::spawn(async move { agents.request_action(report()).await });
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    assert_eq!(held.gates[0].origin.id(), "reports");

    // The Atlas that holds it goes away: it stays held, under the rules that it was held by.
    let gone = instead_of(hash_of_atlases(&with_more()), acme().into());
    operator.load_atlases(gone).await.unwrap();
    let snapshot = bench.wait_until(|s| s.atlases.len() == 1).await;
    assert_eq!(snapshot.held, [Arc::clone(&held)]);
    assert!(!pending.is_finished());
    let reply = bench.pass(&held).await;
    assert_eq!(reply, OperatorReply::Refused(DecisionRefusal::AtlasChanged));
    let entries = loads(&memory).await;
    let newest = &entries.last().unwrap().payload;
    assert_eq!(newest["removes"], json!([with_more()[1].hash.to_string()]));
    assert_eq!(newest["atlas_id"], json!("com.acme.support"));

    // It comes back, and what it held can be passed.
    let back = snapshot.load_info.before.clone().unwrap();
    operator
        .load_atlases(instead_of(hash_of_atlases(&acme()), back))
        .await
        .unwrap();
    bench.wait_until(|s| s.atlases.len() == 2).await;
    assert!(matches!(bench.pass(&held).await, OperatorReply::Decided(_)));
    pending.await.unwrap().unwrap();
    bench.runtime.stop().await;
    assert!(
        memory
            .verify(TrustAnchors::nothing())
            .await
            .unwrap()
            .is_sound()
    );
}

/// The example without its gate before deletions, with one before comments, and another length.
fn otherwise() -> Arc<[Atlas]> {
    let text = ACME.replace("patterns: [\"*.delete\"", "patterns: [\"*.get\"");
    assert_ne!(text, ACME);
    vec![load_str("acme.yaml", &text).unwrap().atlas].into()
}

/// Records and replies of a console, optionally with shadow Atlases.
async fn played(shadow: Option<AtlasLoad>) -> (Vec<String>, Bench) {
    let memory = MemoryStore::default();
    let bench = Bench::start(Arc::new(memory.clone()), clock()).await;
    bench.runtime.operator_handle().set_shadow(shadow).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&held).await;
    let agents = bench.runtime.agent_handle();
    let read = request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    let read = agents.request_action(read).await;
    let asked_request = request(
        "s-1",
        "ticket.delete",
        json!({"ticket_ids": ["T-1"], "cascade": false}),
    );
    let (deleted, ()) = tokio::join!(agents.request_action(asked_request), async {
        let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
        bench.pass(&held).await;
    });
    let mut reply = vec![format!("{read:?}"), format!("{deleted:?}")];
    let events = memory.events("s-1".parse().unwrap(), 0, 100).await.unwrap();
    reply.extend(
        events
            .iter()
            .map(|event| format!("{} {}", event.event_type, event.hash)),
    );
    (reply, bench)
}

#[tokio::test]
async fn shadow_atlas_changes_nothing_and_reports_its_hypothetical_decisions() {
    let (alone, _) = played(None).await;
    let (watched, bench) = played(Some(load(otherwise()))).await;
    assert_eq!(watched, alone, "answers or records differ");
    let snapshot = bench
        .wait_until(|s| {
            s.watched
                .shadow
                .as_ref()
                .is_some_and(|value| value.different == 2)
        })
        .await;
    let shadow = snapshot.watched.shadow.clone().unwrap();
    assert_eq!(shadow.hash, hash_of_atlases(&otherwise()));
    let reply: Vec<_> = shadow
        .newest
        .iter()
        .map(|value| {
            (
                value.subject.as_str(),
                value.live.as_str(),
                value.shadow.as_str(),
            )
        })
        .collect();
    assert_eq!(reply[1].0, "ticket.get");
    assert_eq!(
        (reply[1].1, reply[1].2),
        ("passes", "held at delete-confirm")
    );
    assert_eq!(reply[0].0, "ticket.delete");
    assert!(
        reply[0].1.starts_with("held at admin-gate, delete-confirm"),
        "{reply:?}"
    );
    assert!(!reply[0].2.contains("delete-confirm"), "{reply:?}");
    assert_eq!(snapshot.load_info.hash, Some(hash_of_atlases(&acme())));

    bench.runtime.operator_handle().set_shadow(None).await;
    bench.wait_until(|s| s.watched.shadow.is_none()).await;
}

#[tokio::test]
async fn atlas_load_ends_its_shadow_and_a_loaded_atlas_cannot_be_shadowed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::start(store, clock()).await;
    let operator = bench.runtime.operator_handle();
    operator.set_shadow(Some(load(acme().into()))).await;
    operator.set_shadow(Some(load(otherwise()))).await;
    let snapshot = bench.wait_until(|s| s.watched.shadow.is_some()).await;
    assert_eq!(
        snapshot.watched.shadow.as_ref().unwrap().hash,
        hash_of_atlases(&otherwise())
    );
    operator.load_atlases(load(stricter())).await.unwrap();
    bench.wait_until(|s| s.watched.shadow.is_none()).await;
}
