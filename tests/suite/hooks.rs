//! Event hooks, at work in the whole runtime.

use std::sync::Arc;

use cra_core::atlas::load_str;
use cra_core::base::id::SessionId;
use cra_core::engine::command::{InputReport, InputSource};
use cra_core::runtime::extension::{EventHook, Registry};
use cra_core::runtime::snapshot::UndeliveredCounts;
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::event::Event;
use cra_core::trace::verification::TrustAnchors;
use futures_util::FutureExt as _;
use serde_json::{Map, Value, json};

use super::support::{Bench, clock, request};

const ATLAS: &str = "atlas_version: '1.0'\natlas_id: test\nversion: '1'\nname: Test\n\
actions: [{action_id: wipe, risk_tier: low}]\n\
policies: [{policy_id: never, type: deny, actions: [wipe]}]\n";

/// Hides an answer, counts the events it receives, and panics on `policy_checked`.
#[derive(Default)]
struct HookArgs(std::sync::Mutex<Vec<String>>);

impl EventHook for HookArgs {
    fn before_event(
        &self,
        event_type: &str,
        mut details: Map<String, Value>,
    ) -> Map<String, Value> {
        match event_type {
            "action_attempted" => {
                details.insert("action_params".to_owned(), json!({"hidden": true}));
            }
            "policy_checked" => panic!("it does not like those"),
            "action_blocked" => drop(details.insert("more".to_owned(), json!(1))),
            _ => {}
        }
        details
    }

    fn on_event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.event_type.clone());
    }
}

// covers T34, T35
#[tokio::test]
async fn event_hook_changes_details_before_sealing_and_receives_durable_events() {
    let hook = Arc::new(HookArgs::default());
    let mut registry = Registry::default();
    registry.register_hook("*", Arc::clone(&hook) as Arc<dyn EventHook>);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let atlas = load_str("test.yaml", ATLAS).unwrap().atlas;
    let bench = Bench::with_extensions(vec![atlas], registry, Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    let agents = bench.runtime.agent_handle();
    let wipe = request("s-1", "wipe", json!({"secret": "hunter2"}));
    agents.request_action(wipe).await.unwrap_err();
    bench.runtime.stop().await;
    let session: SessionId = "s-1".parse().unwrap();
    let events = store.events(session, 0, 100).await.unwrap();
    let of = |kind: &str| {
        events
            .iter()
            .find(|event| event.event_type == kind)
            .unwrap()
    };
    assert_eq!(
        of("action_attempted").payload["action_params"],
        json!({"hidden": true})
    );
    // What broke, or left what the event does not have, changed nothing.
    assert_eq!(of("policy_checked").payload["decision"], json!("deny"));
    assert!(!of("action_blocked").payload.contains_key("more"));
    let report = store.verify(TrustAnchors::nothing()).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    let wanted: Vec<_> = events
        .iter()
        .map(|event| event.event_type.clone())
        .collect();
    let heard = || hook.0.lock().unwrap().clone();
    while heard().len() < wanted.len() {
        tokio::task::yield_now().await;
    }
    assert_eq!(heard(), wanted);
}

const BUDGET: &str = "atlas_version: '1.0'\natlas_id: test\nversion: '1'\nname: Test\n\
default_decision: allow\n\
checkpoint_config: {budget: {max_checkpoints_per_input: 1}}\n\
checkpoints:\n\
  - {checkpoint_id: one, trigger: {type: keyword, patterns: [x]}, priority: 2}\n\
  - {checkpoint_id: two, trigger: {type: keyword, patterns: [x]}, priority: 1}\n";

#[tokio::test]
async fn undelivered_hook_events_are_counted() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let atlas = load_str("test.yaml", BUDGET).unwrap().atlas;
    let bench = Bench::with_atlases(vec![atlas], store, clock()).await;
    bench.begin("s-1").await;
    let agents = bench.runtime.agent_handle();
    let input = |text: &str| InputReport {
        session: "s-1".parse().unwrap(),
        text: text.to_owned(),
        source: InputSource::User,
        reaches_asked_agent: false,
        waits_for_start: false,
        deadline: None,
    };
    agents.input(input("y")).await.unwrap();
    assert_eq!(bench.snapshot().undelivered, UndeliveredCounts::default());
    agents.input(input("x")).await.unwrap();
    let advice = UndeliveredCounts {
        advice: 1,
        ..UndeliveredCounts::default()
    };
    bench
        .wait_until(|snapshot| snapshot.undelivered == advice)
        .await;

    // A caller that disconnects at once does not receive the outcome.
    let gone = agents.input(input("y")).now_or_never();
    assert_eq!(gone, None);
    bench
        .wait_until(|snapshot| snapshot.undelivered.answers == 1)
        .await;
}
