//! The shipped list of extensions is one that works.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use cra_core::atlas::load_file;
use cra_core::engine::command::{DenyCode, InputReport, InputSource, OperatorReply, Ruling};
use cra_core::runtime::RequestReply;
use cra_core::runtime::extension::Registry;
use cra_core::store::memory::MemoryStore;
use serde_json::json;

use super::support::{Bench, clock, decide, request, root};

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

async fn bench() -> Bench {
    let folder = root().join("assets/extensions");
    let registry = Registry::load(&folder.join("example.yaml")).unwrap();
    let atlas = load_file(folder.join("atlas/extended.yaml")).unwrap().atlas;
    let bench = Bench::with_extensions(
        vec![atlas],
        registry,
        Arc::new(MemoryStore::default()),
        clock(),
    )
    .await;
    bench.begin("s-1").await;
    bench
}

#[test]
fn committed_module_matches_its_source() {
    let folder = root().join("assets/extensions");
    let module = wat::parse_file(folder.join("shouting.wat")).unwrap();
    let file = folder.join("shouting.wasm");
    if std::env::var_os("UPDATE_MODULE").is_some() {
        fs::write(&file, &module).unwrap();
    } else {
        let same = fs::read(&file).unwrap() == module;
        assert!(same, "run the tests with UPDATE_MODULE=1");
    }
}

#[tokio::test]
async fn the_example_extensions_answer() {
    let bench = bench().await;
    let agents = bench.runtime.agent_handle();
    let quiet = agents.input(input("good morning!")).await.unwrap();
    assert!(quiet.injected.guidance.is_empty(), "{quiet:?}");
    let loud = agents.input(input("where is my money!!")).await.unwrap();
    assert_eq!(loud.injected.guidance[0].checkpoint_id, "shouting");

    let restart = request("s-1", "service.restart", json!({}));
    let allowed = agents.request_action(restart).await.unwrap();
    assert!(matches!(allowed, RequestReply::Allowed(_)), "{allowed:?}");
    let drop = request("s-1", "database.drop", json!({}));
    let denied = agents.request_action(drop).await.unwrap_err();
    assert_eq!(denied.code, DenyCode::Extension);
    assert!(denied.reason.contains("before Monday"), "{denied:?}");
}

#[tokio::test]
async fn unreachable_validator_accepts_no_answer() {
    let bench = bench().await;
    let agents = bench.runtime.agent_handle();
    let waiting = tokio::spawn(async move {
        let pay = request("s-1", "refund.pay", json!({}));
        agents.request_action(pay).await
    });
    let snapshot = bench.wait_until(|snapshot| snapshot.held.len() == 1).await;
    let answers = vec![[("ticket".to_owned(), json!("T-1"))].into()];
    let ruling = Ruling::Pass { answers };
    let operator = bench.runtime.operator_handle();
    let reply = operator.decide(decide(&snapshot.held[0], ruling)).await;
    assert!(matches!(reply, OperatorReply::Invalid(_)), "{reply:?}");
    waiting.abort();
}

#[test]
fn example_atlas_and_its_extension_list_agree() {
    let folder = root().join("assets/extensions");
    let lint = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_cra"))
            .env_clear()
            .env("HOME", "/nowhere")
            .args(["atlas", "lint"])
            .arg(folder.join("atlas/extended.yaml"))
            .args(more)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let example = folder.join("example.yaml");
    let reply = lint(&["--extensions", example.to_str().unwrap()]);
    assert!(reply.ends_with("no problems\n"), "{reply}");
    assert_eq!(lint(&[]).matches("W013").count(), 3);
}
