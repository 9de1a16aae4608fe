//! Hooks at gates before a whole session, and hooks of identical uses.

use serde_json::json;

use super::dialects::{claude, recorded};
use super::*;

const GATED: &str = "atlas_version: '1.0'
atlas_id: gated
version: '1'
name: Gated
unknown_actions: allow
context_blocks:
  - {context_id: house, content: the house rules, inject_mode: always}
  - {context_id: price, content: the price list, keywords: [price]}
checkpoints:
  - {checkpoint_id: terms, trigger: {type: session_start}, mode: blocking}
";

#[tokio::test(flavor = "multi_thread")]
async fn hooks_print_no_context_before_the_start_gate_is_passed() {
    let house = House::under(GATED).await;
    let desk = Desk { house };
    let start = claude("SessionStart", &json!({"source": "startup"}));
    let told = desk.says("claude-code", &start).await;
    assert_eq!(told.out, "{}\n");
    let prompt = claude("UserPromptSubmit", &json!({"prompt": "the price?"}));
    let told = desk.says("claude-code", &prompt).await;
    assert_eq!(told.out, "{}\n");
    desk.house.pass().await;
    let told = desk.says("claude-code", &start).await;
    assert!(told.out.contains("the house rules"), "{}", told.out);
    assert!(told.out.contains("the price list"), "{}", told.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_identical_uses_without_an_identifier_need_two_decisions() {
    let desk = Desk::new().await;
    let payload = before("gemini", HARMFUL);
    let decided = async {
        let picture = desk.house.bench.until(|it| it.held.len() == 2).await;
        desk.house.bench.pass(&picture.held[0]).await;
        desk.house.deny("once is enough").await;
    };
    let (one, two, ()) = tokio::join!(
        desk.says("gemini", &payload),
        desk.says("gemini", &payload),
        decided
    );
    let denied = [&one, &two].map(|told| denial("gemini", told).is_some());
    assert_eq!(denied.iter().filter(|it| **it).count(), 1, "{denied:?}");
    let picture = desk.house.bench.until(|it| it.held.is_empty()).await;
    assert_eq!(picture.sessions.first().unwrap().actions, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_two_identical_uses_reports_its_own_run() {
    let desk = Desk::new().await;
    for _ in 0..2 {
        desk.says("gemini", &before("gemini", HARMLESS)).await;
    }
    let mut after = before("gemini", HARMLESS);
    after["hook_event_name"] = json!("AfterTool");
    after["tool_response"] = json!({"llmContent": "ok"});
    for runs in [1, 2] {
        desk.says("gemini", &after).await;
        let completed = async || {
            let all = recorded(&desk, "gemini.g-1").await;
            let completed = all.iter().filter(|(kind, _)| kind == "action_completed");
            completed.count()
        };
        // The report is answered before its record is on disk.
        while completed().await < runs {
            tokio::task::yield_now().await;
        }
        assert_eq!(completed().await, runs, "one report is of one run");
    }
}
