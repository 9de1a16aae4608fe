//! Registered event types, plugins on record, and what agents report: at work in the whole runtime.

use std::sync::{Arc, Mutex};

use cra_core::atlas::load_str;
use cra_core::base::id::SessionId;
use cra_core::engine::command::{ErrorReport, OutputReport, Recovery, Wrapper};
use cra_core::engine::extensions::{CheckpointContext, CheckpointResult, TraceNote};
use cra_core::runtime::extension::{
    CheckpointPlugin, EventHook, EventTypeDefinition, HandlerFn, RegisterError, Registry,
};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::trace::event::{Event, OutputType, WrapperCapabilities};
use cra_core::trace::verification::TrustAnchors;
use serde_json::{Map, Value, json};

use super::support::{Bench, clock, request};

const ATLAS: &str = "atlas_version: '1.0'\natlas_id: test\nversion: '1'\nname: Test\n\
actions: [{action_id: pay, risk_tier: low}]\n\
trace_config: {custom_events: [custom_analysis], redact: [{params: [pin]}]}\n\
checkpoints: [{checkpoint_id: look, trigger: {type: action_pre, patterns: [pay]}, handler: scorer}]\n";

/// As the specification registers it.
fn custom_analysis(sync: bool) -> EventTypeDefinition {
    let field = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
    EventTypeDefinition {
        name: "custom_analysis".to_owned(),
        description: "Custom analysis event".to_owned(),
        sync,
        schema: vec![
            field("analysis_type", "string"),
            field("score", "number"),
            field("details", "object"),
        ],
        validate: Some(Arc::new(|payload| {
            let score = payload["score"].as_f64().expect("it is a number");
            assert!(score < 100.0, "it does not like those");
            (0.0..=1.0).contains(&score)
        })),
    }
}

/// A handler that wants recorded what the request says.
fn scorer(registry: &mut Registry) {
    let handler = HandlerFn(|context: &CheckpointContext| {
        let params = &context
            .action
            .as_ref()
            .expect("it is about an action")
            .params;
        let note = |event_type: &str, payload: &Value| TraceNote {
            event_type: event_type.to_owned(),
            payload: payload.as_object().cloned().unwrap_or_default(),
            fault: None,
        };
        CheckpointResult {
            trace_events: vec![
                note("custom_analysis", &params["event"]),
                note("something_else", &json!({"seen": params["pin"]})),
            ],
            ..CheckpointResult::proceed()
        }
    });
    registry
        .register_handler("scorer", Arc::new(handler))
        .unwrap();
}

async fn recorded(registry: Registry, requests: &[Value]) -> Vec<Event> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let atlas = load_str("test.yaml", ATLAS).unwrap().atlas;
    let bench = Bench::with_extensions(vec![atlas], registry, Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    for params in requests {
        let pay = request("s-1", "pay", params.clone());
        bench
            .runtime
            .agent_handle()
            .request_action(pay)
            .await
            .unwrap();
    }
    bench.runtime.stop().await;
    let report = store.verify(TrustAnchors::nothing()).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    let session: SessionId = "s-1".parse().unwrap();
    store.events(session, 0, 1000).await.unwrap()
}

fn of<'e>(events: &'e [Event], event_type: &str) -> Vec<&'e Event> {
    let own = events.iter().filter(|event| event.event_type == event_type);
    own.collect()
}

// covers T33
#[tokio::test]
async fn event_of_a_registered_type_is_validated_and_recorded_with_its_type() {
    let mut registry = Registry::default();
    registry
        .register_event_type(custom_analysis(false))
        .unwrap();
    scorer(&mut registry);
    let good = json!({"analysis_type": "tone", "score": 0.5, "details": {"who": "1234567"}});
    let events = [
        good.clone(),
        json!({"analysis_type": "tone", "score": 2, "details": {}}),
        json!({"analysis_type": "tone", "score": 1000, "details": {}}),
        json!({"analysis_type": "tone", "details": {}}),
        json!({"analysis_type": "tone", "score": 1, "details": {}, "extra": 1}),
    ];
    let requests: Vec<_> = events
        .iter()
        .map(|event| json!({"event": event, "pin": 1_234_567}))
        .collect();
    let recorded = recorded(registry, &requests).await;
    let own = of(&recorded, "custom_analysis");
    assert_eq!(own.len(), 1);
    // An extension's events tell no secrets either, and say so.
    assert_eq!(own[0].payload["details"], json!({"who": "[redacted]"}));
    assert_eq!(own[0].payload["score"], json!(0.5));
    assert_eq!(
        own[0].payload["redacted"][0]["paths"],
        json!(["details.who"])
    );
    // What is not as its type says is refused, and not lost.
    let refused: Vec<_> = of(&recorded, "plugin_event")
        .into_iter()
        .filter(|item| item.payload["custom_type"] == "custom_analysis")
        .map(|value| {
            value.payload["data"]["refused"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(
        refused,
        [
            "its validation rejected the event",
            "its validation crashed",
            "field `score` is missing",
            "field `extra` is not declared"
        ]
    );
    // An event of an unregistered type is recorded as a plugin event.
    let others = of(&recorded, "plugin_event");
    let other = others
        .iter()
        .find(|other| other.payload["custom_type"] == "something_else");
    assert_eq!(
        other.unwrap().payload["data"],
        json!({"seen": "[redacted]"})
    );
}

// covers T33
#[test]
fn event_type_cannot_be_registered_twice_or_replace_a_built_in() {
    let mut registry = Registry::default();
    registry
        .register_event_type(custom_analysis(false))
        .unwrap();
    let mut refused = |definition: EventTypeDefinition| {
        let error = registry.register_event_type(definition).unwrap_err();
        let RegisterError::Event { what, .. } = error else {
            panic!("{error}");
        };
        what
    };
    assert_eq!(
        refused(custom_analysis(true)),
        "the name is already registered"
    );
    for name in [
        "action_blocked",
        "checkpoint_passed",
        "risk_checkpoint",
        "a b",
        "a:b",
        "",
    ] {
        let what = refused(EventTypeDefinition {
            name: name.to_owned(),
            ..custom_analysis(false)
        });
        assert!(
            what.contains("must not be one of cra's own types"),
            "{name}: {what}"
        );
    }
    let what = refused(EventTypeDefinition {
        name: "x".to_owned(),
        schema: vec![("f".to_owned(), "text".to_owned())],
        ..custom_analysis(false)
    });
    assert!(what.starts_with("field `f`"), "{what}");
}

/// Counts the events it receives, and changes what it can.
#[derive(Default)]
struct HookArgs(Mutex<Vec<String>>);

impl EventHook for HookArgs {
    fn before_event(&self, _: &str, mut details: Map<String, Value>) -> Map<String, Value> {
        // Once as the type has it, once not.
        if details["score"] == 0.25 {
            details.insert("score".to_owned(), json!(0.75));
        } else {
            details.insert("score".to_owned(), json!("high"));
        }
        details
    }

    fn on_event(&self, event: &Event) {
        self.0
            .lock()
            .unwrap()
            .push(event.payload["score"].to_string());
    }
}

// covers T34, T35
#[tokio::test]
async fn hooks_see_registered_types_and_cannot_change_the_type() {
    let hook = Arc::new(HookArgs::default());
    let mut registry = Registry::default();
    registry.register_event_type(custom_analysis(true)).unwrap();
    registry.register_hook("custom_*", Arc::clone(&hook) as Arc<dyn EventHook>);
    scorer(&mut registry);
    let event =
        |score: f64| json!({"event": {"analysis_type": "t", "score": score, "details": {}}});
    let events = recorded(registry, &[event(0.25), event(0.5)]).await;
    let scores = of(&events, "custom_analysis").into_iter();
    let scores: Vec<_> = scores
        .map(|value| value.payload["score"].to_string())
        .collect();
    assert_eq!(scores, ["0.75", "0.5"]);
    while hook.0.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*hook.0.lock().unwrap(), scores);
}

struct Analyst;

impl CheckpointPlugin for Analyst {
    fn name(&self) -> &'static str {
        "analyst"
    }

    fn version(&self) -> &'static str {
        "2.1"
    }

    fn event_types(&self) -> Vec<EventTypeDefinition> {
        vec![custom_analysis(false)]
    }
}

// covers T23
#[tokio::test]
async fn each_session_records_the_loaded_plugins() {
    let mut registry = Registry::default();
    registry.register_plugin(Arc::new(Analyst)).unwrap();
    scorer(&mut registry);
    let events = recorded(registry, &[]).await;
    let loaded: Vec<_> = of(&events, "plugin_loaded")
        .into_iter()
        .map(|value| Value::from(value.payload.clone()))
        .collect();
    assert_eq!(
        loaded,
        [
            json!({"plugin_name": "analyst", "plugin_version": "2.1",
                "capabilities": ["event_type custom_analysis"]}),
            json!({"plugin_name": "scorer", "plugin_version": "unversioned",
                "capabilities": ["handler"]}),
        ]
    );
    let parent = of(&events, "session_started")[0].span_id.clone();
    assert!(
        of(&events, "plugin_loaded")
            .iter()
            .all(|item| item.parent_span_id == Some(parent.clone()))
    );
}

// covers T33
#[test]
fn extension_list_registers_event_types_and_reports_invalid_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.yaml");
    let list = |events: &str| {
        let text = format!(
            "extensions: [{{name: b, version: '3', answers: [handler], http: 'http://127.0.0.1:9/'}}]\nevents: {events}\n"
        );
        std::fs::write(&path, text).unwrap();
        Registry::load(&path)
    };
    let table =
        list("[{name: score, description: d, sync: true, schema: {n: number, why: string?}}]")
            .unwrap()
            .table();
    let score = &table.events["score"];
    assert!(score.sync && score.description == "d");
    let details = |value: Value| value.as_object().unwrap().clone();
    assert_eq!(score.schema.first_mismatch(&details(json!({"n": 1}))), None);
    assert!(
        score
            .schema
            .first_mismatch(&details(json!({"why": "x"})))
            .is_some()
    );
    assert_eq!(table.plugins[0].version, "3");
    let wrong = list(
        "[{name: action_blocked, schema: {}}, {name: a, schema: {n: text}}, {name: b, schema: [n]}, \
         {name: c, scheme: {}}, {name: d, sync: maybe, schema: {}}]",
    );
    let error = wrong.unwrap_err();
    let reply: Vec<_> = error
        .diagnostics()
        .iter()
        .map(|diagnostic| diagnostic.path.as_str())
        .collect();
    assert_eq!(
        reply,
        [
            "events[0].name",
            "events[1].name",
            "events[2].schema",
            "events[3].schema",
            "events[3].scheme",
            "events[4].sync"
        ]
    );
}

// covers T5, T20, T22
#[tokio::test]
async fn agent_reports_are_recorded() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::start(Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    let agents = bench.runtime.agent_handle();
    let session: SessionId = "s-1".parse().unwrap();
    let wrapper = Wrapper {
        session: session.clone(),
        wrapper_version: "1".to_owned(),
        components: vec!["hooks".to_owned()],
        plugins: Vec::new(),
        transport: "direct".to_owned(),
        cache_backend: "memory".to_owned(),
        capabilities: WrapperCapabilities {
            intercept_input: true,
            intercept_output: true,
            intercept_actions: true,
        },
        construction_hash: "made up".to_owned(),
    };
    let noted = agents.report_wrapper(wrapper).await.unwrap();
    assert_eq!(noted.failures.len(), 1);
    let report = ErrorReport {
        session: session.clone(),
        error_type: "io".to_owned(),
        error_code: None,
        message: "disk full".to_owned(),
        recoverable: true,
        stack_trace: None,
    };
    let error = agents.report_error(report).await.unwrap().error.unwrap();
    let recovery = Recovery {
        session: session.clone(),
        error: error.clone(),
        method: "made room".to_owned(),
        success: true,
    };
    agents.error_recovered(recovery).await.unwrap();
    let output = OutputReport {
        session: session.clone(),
        text: "done".to_owned(),
        output_type: OutputType::Text,
        contains_action: false,
    };
    agents.output(output).await.unwrap();
    bench.runtime.stop().await;
    let events = store.events(session, 0, 100).await.unwrap();
    assert_eq!(
        of(&events, "wrapper_verified")[0].payload["verification_passed"],
        json!(false)
    );
    assert_eq!(of(&events, "error_occurred")[0].event_id, error);
    assert_eq!(
        of(&events, "error_recovered")[0].payload["original_error_id"],
        json!(error)
    );
    assert_eq!(of(&events, "output_produced").len(), 1);
}
