//! Hooks at gates before a whole session, and hooks of identical uses.

use serde_json::json;

use super::agent_formats::{claude, recorded};
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
    let console = TestConsole::with_atlas(GATED).await;
    let fixture = HookFixture { console };
    let start = claude("SessionStart", &json!({"source": "startup"}));
    let reply = fixture.run_hook("claude-code", &start).await;
    assert_eq!(reply.out, "{}\n");
    let prompt = claude("UserPromptSubmit", &json!({"prompt": "the price?"}));
    let (reply, ()) = tokio::join!(
        fixture.run_hook("claude-code", &prompt),
        fixture.console.pass()
    );
    assert!(reply.out.contains("the house rules"), "{}", reply.out);
    assert!(reply.out.contains("the price list"), "{}", reply.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_identical_uses_without_an_identifier_need_two_decisions() {
    let fixture = HookFixture::new().await;
    let payload = before("gemini", HARMFUL);
    let decided = async {
        let snapshot = fixture
            .console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 2)
            .await;
        fixture.console.bench.pass(&snapshot.held[0]).await;
        fixture.console.deny("once is enough").await;
    };
    let (one, two, ()) = tokio::join!(
        fixture.run_hook("gemini", &payload),
        fixture.run_hook("gemini", &payload),
        decided
    );
    let denied = [&one, &two].map(|reply| denial("gemini", reply).is_some());
    assert_eq!(denied.iter().filter(|item| **item).count(), 1, "{denied:?}");
    let snapshot = fixture
        .console
        .bench
        .wait_until(|snapshot| snapshot.held.is_empty())
        .await;
    assert_eq!(snapshot.sessions.first().unwrap().actions, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_two_identical_uses_reports_its_own_run() {
    let fixture = HookFixture::new().await;
    for _ in 0..2 {
        fixture
            .run_hook("gemini", &before("gemini", HARMLESS))
            .await;
    }
    let mut after = before("gemini", HARMLESS);
    after["hook_event_name"] = json!("AfterTool");
    after["tool_response"] = json!({"llmContent": "ok"});
    for runs in [1, 2] {
        fixture.run_hook("gemini", &after).await;
        let completed = async || {
            let all = recorded(&fixture, "gemini.g-1").await;
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
