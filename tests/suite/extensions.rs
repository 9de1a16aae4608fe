//! Extensions of every kind, asked by the whole runtime.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::diagnostic::ReportColour;
use cra_core::atlas::document::{CheckpointConfig, InjectMode};
use cra_core::atlas::{Atlas, load_str, load_str_with};
use cra_core::base::clock::Boxed;
use cra_core::engine::command::{
    AgentAnswer, DenyCode, HeldOutcome, InputReport, InputSource, OperatorReply, Ruling,
};
use cra_core::engine::extensions::{
    CheckpointContext, CheckpointResult, ExtensionCall, PolicyDecisionKind, YesNo,
};
use cra_core::runtime::extension::{
    AnswerValidator, CheckpointHandler, CheckpointPlugin, CheckpointTypeDefinition, Client,
    Extension, HandlerContext, HandlerFn, RegisterError, Registry, Role,
};
use cra_core::runtime::{AnswerReply, RequestReply};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use serde_json::{Value, json};

use super::support::{Bench, clock, decide, request};

const HEAD: &str = "atlas_version: '1.0'\natlas_id: test\nversion: '1'\nname: Test\n";

const SUPPORT: &str = "\
actions: [{action_id: reply, risk_tier: low}, {action_id: wipe, risk_tier: low}]
context_blocks:
  - {context_id: handling-negative-feedback, content: stay calm, inject_mode: on_demand}
  - {context_id: basics, content: be polite, inject_mode: always}
policies: [{policy_id: never, type: deny, actions: [wipe], reason: too much}]
checkpoints:
  - checkpoint_id: mood
    trigger: {type: custom, trigger_id: sentiment_negative, params: {threshold: -0.5}, on: [input]}
  - checkpoint_id: before
    trigger: {type: action_pre, patterns: ['*']}
    mode: blocking
    questions:
      - {question_id: ticket, question: Which ticket?, validation: {custom_validator: is-ticket}}
";

fn atlas(body: &str) -> Atlas {
    load_str("test.yaml", &format!("{HEAD}{body}"))
        .unwrap()
        .atlas
}

async fn bench(atlas: Atlas, registry: Registry) -> (Bench, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let bench = Bench::with_extensions(vec![atlas], registry, Arc::clone(&store), clock()).await;
    bench.begin("s-1").await;
    (bench, store)
}

fn input(text: &str) -> InputReport {
    InputReport {
        session: "s-1".parse().unwrap(),
        text: text.to_owned(),
        source: InputSource::User,
        reaches_asked_agent: false,
        waits_for_start: false,
        deadline: None,
    }
}

/// Sentiment of a text: minus one for each unkind word, divided by the number of words.
fn score(text: &str) -> f64 {
    let words: Vec<_> = text.split_whitespace().collect();
    let unkind = words.iter().filter(|word| ["awful", "hate"].contains(word));
    let count = |number: usize| f64::from(u32::try_from(number).unwrap());
    -count(unkind.count()) / count(words.len().max(1))
}

fn sentiment() -> CheckpointTypeDefinition {
    CheckpointTypeDefinition {
        name: "sentiment_negative".to_owned(),
        description: "input that sounds negative".to_owned(),
        evaluator: Arc::new(|context: &CheckpointContext| {
            let input = context.input.as_ref();
            input.is_some_and(|input| score(&input.content) < -0.5)
        }),
        default_handler: Some(Arc::new(HandlerFn(|_: &CheckpointContext| {
            CheckpointResult {
                inject_context: vec!["handling-negative-feedback".to_owned()],
                ..CheckpointResult::proceed()
            }
        }))),
        default_priority: Some(650),
    }
}

struct Tickets;

impl AnswerValidator for Tickets {
    fn validate<'a>(
        &'a self,
        _: &'a str,
        answer: &'a Value,
        _: &'a CheckpointContext,
    ) -> Boxed<'a, Result<YesNo, String>> {
        let yes = answer.as_str().is_some_and(|text| text.starts_with("T-"));
        let reason = Some("a ticket begins with T-".to_owned());
        Box::pin(async move { Ok(YesNo { yes, reason }) })
    }
}

/// A handler that asks back before it answers.
struct AsksBack;

impl CheckpointHandler for AsksBack {
    fn handle(&self, context: HandlerContext) -> Boxed<'_, Result<CheckpointResult, String>> {
        Box::pin(async move {
            let client = &context.client;
            let always = client
                .request_context("", Some(InjectMode::Always), &[])
                .await;
            let named = client.get_contexts(&["handling-negative-feedback"]).await;
            let policy = client.check_policy("wipe", &json!({})).await;
            let policy = policy.ok_or("nobody can tell")?;
            let about = &context.checkpoint;
            assert_eq!(about.checkpoint_type, "action_pre");
            assert!(about.trigger.ends_with("matches the rule `*`"));
            assert!(about.input.is_none());
            assert_eq!(about.session.agent, "bot");
            assert!(about.cache.contains("basics"), "{:?}", about.cache);
            let wiping = about
                .action
                .as_ref()
                .is_some_and(|value| value.action_type == "wipe");
            let complete = always.len() == 1
                && named.len() == 1
                && policy.decision == PolicyDecisionKind::Deny
                && !wiping;
            Ok(CheckpointResult {
                proceed: complete,
                ..CheckpointResult::proceed()
            })
        })
    }
}

struct Plugin;

impl CheckpointPlugin for Plugin {
    fn name(&self) -> &'static str {
        "support"
    }

    fn version(&self) -> &'static str {
        "1.0"
    }

    fn checkpoint_types(&self) -> Vec<CheckpointTypeDefinition> {
        vec![sentiment()]
    }

    fn handlers(&self) -> Vec<(String, Arc<dyn CheckpointHandler>)> {
        vec![("action_pre".to_owned(), Arc::new(AsksBack))]
    }

    fn validators(&self) -> Vec<(String, Arc<dyn AnswerValidator>)> {
        vec![("is-ticket".to_owned(), Arc::new(Tickets))]
    }

    fn configure_checkpoints(&self, mut config: CheckpointConfig) -> CheckpointConfig {
        let start = config.session_start.get_or_insert_default();
        start
            .inject_contexts
            .push("handling-negative-feedback".to_owned());
        config
    }
}

fn plugin() -> Registry {
    let mut registry = Registry::default();
    registry.register_plugin(Arc::new(Plugin)).unwrap();
    registry
}

// covers A2, A32, A33
#[tokio::test]
async fn custom_checkpoint_type_fires_on_its_condition_and_applies_its_handler() {
    let mut registry = Registry::default();
    registry.register_checkpoint_type(sentiment()).unwrap();
    let text = format!("{HEAD}{SUPPORT}");
    let configured = load_str_with("test.yaml", &text, |item| registry.configure(item)).unwrap();
    let mood = configured
        .atlas
        .checkpoints
        .iter()
        .find(|checkpoint| checkpoint.id == "mood");
    assert_eq!(mood.unwrap().priority, 650);
    let (bench, _) = bench(configured.atlas, registry).await;
    let agents = bench.runtime.agent_handle();
    let calm = agents.input(input("thank you very much")).await.unwrap();
    assert_eq!(calm.injected.contexts.len(), 0);
    let angry = agents.input(input("awful awful hate")).await.unwrap();
    assert_eq!(angry.injected.contexts[0].content, "stay calm");
}

// covers A13, A14, A34
#[tokio::test]
async fn plugin_registers_types_handlers_validators_and_changes_the_configuration() {
    let registry = plugin();
    let text = format!("{HEAD}{SUPPORT}");
    let written = load_str("test.yaml", &text).unwrap().atlas;
    let atlas = load_str_with("test.yaml", &text, |item| registry.configure(item))
        .unwrap()
        .atlas;
    assert_ne!(
        written.hash, atlas.hash,
        "it is not the Atlas as written any more"
    );
    assert!(
        atlas
            .checkpoints
            .iter()
            .any(|checkpoint| checkpoint.id == "config.session_start")
    );
    let (bench, _) = bench(atlas, registry).await;
    let agents = bench.runtime.agent_handle();
    let pending = tokio::spawn(async move {
        agents
            .request_action(request("s-1", "reply", json!({})))
            .await
    });
    let held = bench
        .wait_until(|snapshot| !snapshot.held.is_empty())
        .await
        .held[0]
        .clone();
    let answer = |text: &str| Ruling::Pass {
        answers: vec![[("ticket".to_owned(), json!(text))].into()],
    };
    let wrong = bench
        .runtime
        .operator_handle()
        .decide(decide(&held, answer("X-1")))
        .await;
    let OperatorReply::Invalid(invalid) = wrong else {
        panic!("{wrong:?}")
    };
    assert!(invalid.problems[0].rules[0].contains("begins with T-"));
    let right = bench
        .runtime
        .operator_handle()
        .decide(decide(&held, answer("T-1")))
        .await;
    assert!(
        matches!(right, OperatorReply::Decided(decided) if decided.outcome == HeldOutcome::Passed)
    );
    assert!(matches!(
        pending.await.unwrap(),
        Ok(RequestReply::Allowed(_))
    ));
}

#[test]
fn extension_name_can_be_registered_only_once() {
    let mut registry = plugin();
    let again = registry.register_validator("is-ticket", Arc::new(Tickets));
    let taken = RegisterError::Taken {
        role: Role::Validator,
        name: "is-ticket".to_owned(),
    };
    assert_eq!(again, Err(taken));
}

struct Never;

impl CheckpointHandler for Never {
    fn handle(&self, _: HandlerContext) -> Boxed<'_, Result<CheckpointResult, String>> {
        Box::pin(std::future::pending())
    }
}

struct Breaks;

impl CheckpointHandler for Breaks {
    fn handle(&self, _: HandlerContext) -> Boxed<'_, Result<CheckpointResult, String>> {
        panic!("it was not written well")
    }
}

const HANDLED: &str = "\
actions: [{action_id: a, risk_tier: low}, {action_id: b, risk_tier: low}]
checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: [a]}, handler: outside}]
";

#[tokio::test]
async fn hanging_or_failing_extension_denies_and_delays_no_other_session() {
    for handler in [
        Arc::new(Never) as Arc<dyn CheckpointHandler>,
        Arc::new(Breaks),
    ] {
        let mut registry = Registry::default();
        registry.register_handler("outside", handler).unwrap();
        let (bench, store) = bench(atlas(HANDLED), registry).await;
        bench.begin("s-2").await;
        let agents = bench.runtime.agent_handle();
        let hanging = tokio::spawn({
            let agents = agents.clone();
            async move { agents.request_action(request("s-1", "a", json!({}))).await }
        });
        // Another session's request is answered while the first still waits.
        let other = agents.request_action(request("s-2", "b", json!({}))).await;
        assert!(matches!(other, Ok(RequestReply::Allowed(_))));
        let denied = hanging.await.unwrap().unwrap_err();
        assert_eq!(denied.code, DenyCode::Extension);
        bench.runtime.stop().await;
        let events = store.events("s-1".parse().unwrap(), 0, 100).await.unwrap();
        assert!(
            events
                .iter()
                .any(|event| event.event_type == "action_blocked")
        );
    }
}

fn list(folder: &Path, text: &str) -> Result<Registry, String> {
    let file = folder.join("extensions.yaml");
    std::fs::write(&file, text).unwrap();
    Registry::load(&file).map_err(|error| error.report(ReportColour::None))
}

#[tokio::test]
async fn modules_and_programs_run_only_when_listed_by_exact_name() {
    let folder = tempfile::tempdir().unwrap();
    let module = wat::parse_str(
        r#"(module (memory (export "memory") 1) (data (i32.const 0) "true")
            (func (export "alloc") (param i32) (result i32) (i32.const 1024))
            (func (export "answer") (param i32 i32) (result i64) (i64.const 4)))"#,
    );
    std::fs::write(folder.path().join("always.wasm"), module.unwrap()).unwrap();
    let script = r#"grep -q '"type":"b"' && echo '{"continue":true}' || echo '{"continue":false,"block_reason":"only b"}'"#;
    let text = json!({"extensions": [
        {"name": "always", "answers": ["trigger"], "wasm": "always.wasm", "fuel": 100_000},
        {"name": "outside", "answers": ["handler"], "command": ["/bin/sh", "-c", script], "timeout_ms": 20_000},
    ]});
    let registry = list(folder.path(), &text.to_string()).unwrap();
    let body = "\
actions: [{action_id: a, risk_tier: low}, {action_id: b, risk_tier: low}]
checkpoints:
  - checkpoint_id: g
    trigger: {type: custom, trigger_id: always, on: [action]}
    handler: outside
    guidance: {content: the module fired}
";
    let (bench, _) = bench(atlas(body), registry).await;
    let agents = bench.runtime.agent_handle();
    let denied = agents
        .request_action(request("s-1", "a", json!({})))
        .await
        .unwrap_err();
    assert!(denied.reason.contains("only b"), "{}", denied.reason);
    let allowed = agents
        .request_action(request("s-1", "b", json!({})))
        .await
        .unwrap();
    let RequestReply::Allowed(allowed) = allowed else {
        panic!("{allowed:?}")
    };
    assert_eq!(
        allowed.injected.guidance[0].block.content,
        "the module fired"
    );
}

#[test]
fn invalid_extension_list_is_refused_as_a_whole_with_the_location() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (
            "extensions: [{name: a, answers: [handler]}]",
            "exactly one of",
        ),
        (
            "extensions: [{name: a, answers: [handler], http: 'http://example.com/'}]",
            "not encrypted",
        ),
        (
            "extensions: [{name: a, answers: [handler], command: [sh]}]",
            "must be absolute",
        ),
        (
            "extensions: [{name: a, answers: [handler], command: []}]",
            "must be absolute",
        ),
        (
            "extensions: [{name: a, answers: [handler], wasm: none.wasm}]",
            "cannot be used",
        ),
        (
            "extensions: [{name: a, answers: [handlr], command: [/bin/sh]}]",
            "did you mean `handler`",
        ),
        (
            "extensions: [{name: a, answers: [], command: [/bin/sh]}]",
            "at least one kind of question",
        ),
        (
            "extensions: [{name: a b, answers: [handler], command: [/bin/sh]}]",
            "letters",
        ),
        (
            "extensions: [{name: a, answers: [handler], command: [/bin/sh], timeout_ms: 0}]",
            "between 1",
        ),
        (
            "extensions: [{name: a, answers: [handler], command: [/bin/sh], fuel: 1}]",
            "is allowed only with `wasm`",
        ),
        (
            "extensions: [{name: a, answers: [trigger], command: [/bin/sh], handles: [action_pre]}]",
            "the role `handler`",
        ),
        (
            "extensions: [{name: a, answers: [handler], command: [/bin/sh]}, {name: a, answers: [handler], command: [/bin/sh]}]",
            "already",
        ),
        ("extension: []", "did you mean `extensions`"),
    ];
    let two = "extensions: [{name: a, answers: [handlr], command: [sh], timeout_ms: 0}]";
    let report = list(folder.path(), two).unwrap_err();
    assert_eq!(report.matches("error[").count(), 3, "{report}");
    for (text, reply) in cases {
        let report = list(folder.path(), text).unwrap_err();
        assert!(report.contains(reply), "{text}\n{report}");
        assert!(report.contains("extensions.yaml:1:"), "{report}");
    }
}

#[tokio::test]
async fn agent_receives_its_questions_and_continues_by_answering() {
    let own = "checkpoints:
  - {checkpoint_id: own, trigger: {type: keyword, patterns: [refund]}, mode: blocking, respondent: agent,
     questions: [{question_id: ticket, question: Which ticket?, validation: {custom_validator: is-ticket}}]}
  - {checkpoint_id: too, trigger: {type: keyword, patterns: [refund]}, mode: blocking, respondent: agent}
";
    let mut registry = Registry::default();
    registry
        .register_validator("is-ticket", Arc::new(Tickets))
        .unwrap();
    let (bench, _) = bench(atlas(own), registry).await;
    let agents = bench.runtime.agent_handle();
    let denied = agents.input(input("a refund")).await.unwrap_err();
    assert!(denied.reason.contains("Which ticket?"), "{}", denied.reason);
    let gate = denied.gate.unwrap();
    let answer = |answers: Value| AgentAnswer {
        session: "s-1".parse().unwrap(),
        gate: gate.clone(),
        answers: serde_json::from_value(answers).unwrap(),
        release: cra_core::engine::command::ReleaseTo::default(),
    };
    let bad = agents.answer(answer(json!({"own": {"ticket": "7"}}))).await;
    assert!(matches!(bad, Ok(AnswerReply::Invalid(_))), "{bad:?}");
    let half = agents
        .answer(answer(json!({"own": {"ticket": "T-7"}})))
        .await;
    assert!(matches!(half, Ok(AnswerReply::Asked(_))), "{half:?}");
    let rest = json!({"too": {"acknowledge": "understood"}});
    let whole = agents.answer(answer(rest)).await;
    assert!(matches!(whole, Ok(AnswerReply::Accepted(_))), "{whole:?}");
}

struct Late;
impl Extension for Late {
    fn call<'a>(&'a self, _: &'a ExtensionCall, _: Client) -> Boxed<'a, Result<Value, String>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn late_extension_answer_is_a_denial() {
    let mut registry = Registry::default();
    let soon = Duration::from_millis(1);
    registry
        .register(Role::Handler, "outside", Arc::new(Late), soon)
        .unwrap();
    let (bench, _) = bench(atlas(HANDLED), registry).await;
    let agents = bench.runtime.agent_handle();
    let denied = agents
        .request_action(request("s-1", "a", json!({})))
        .await
        .unwrap_err();
    assert!(
        denied.reason.contains("no answer within 1 ms"),
        "{}",
        denied.reason
    );
}
