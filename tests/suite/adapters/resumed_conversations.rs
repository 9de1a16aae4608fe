//! Conversations that go on after their session has ended: they still owe every gate that was not passed.

use serde_json::json;

use super::agent_formats::{claude, recorded};
use super::*;

/// Atlas with one rule of each kind that a conversation must not shed.
const RULES: &str = "atlas_version: '1.0'
atlas_id: own
version: '1'
name: Own
unknown_actions: allow
default_decision: allow
actions:
  - {action_id: shell.run, name: Run, description: d, risk_tier: low}
  - {action_id: file.read, name: Read, description: d, risk_tier: low}
capabilities:
  - {capability_id: shell, name: Shell, actions: [shell.run]}
";

fn rules(more: &str) -> String {
    format!("{RULES}{more}")
}

async fn start_fixture(rules_text: &str) -> HookFixture {
    HookFixture {
        console: TestConsole::with_atlas(&rules(rules_text)).await,
    }
}

impl HookFixture {
    async fn moment(&self, event: &str, more: serde_json::Value) -> HookOutput {
        let payload = claude(event, &more).to_string();
        self.hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await
    }

    async fn begins(&self) {
        let reply = self
            .moment("SessionStart", json!({"source": "startup"}))
            .await;
        assert_eq!(reply.code, 0, "{}", reply.err);
    }

    /// The agent's user leaves the conversation and takes it up again.
    async fn resumes(&self) {
        self.moment("SessionEnd", json!({"reason": "other"})).await;
        self.moment("SessionStart", json!({"source": "resume"}))
            .await;
    }

    async fn uses_tool(&self, id: &str) -> HookOutput {
        self.moment("PreToolUse", tool(id)).await
    }

    async fn used_tool(&self, id: &str) {
        let mut after = tool(id);
        after["tool_response"] = json!({"stdout": "ok", "stderr": "", "interrupted": false});
        self.moment("PostToolUse", after).await;
    }

    /// Uses a tool that a gate stands before, which an operator refuses or passes.
    async fn held_tool(&self, id: &str, passes: bool) -> HookOutput {
        let decided = async {
            if passes {
                self.console.pass().await;
            } else {
                self.console.deny("not yet").await;
            }
        };
        tokio::join!(self.uses_tool(id), decided).0
    }
}

fn tool(id: &str) -> serde_json::Value {
    json!({"tool_name": "Bash", "tool_input": {"command": HARMLESS}, "tool_use_id": id})
}

fn denied(reply: &HookOutput) -> String {
    denial("claude-code", reply).unwrap_or_else(|| panic!("it went on: {:?}", reply.out))
}

fn passes(reply: &HookOutput) {
    assert_eq!(denial("claude-code", reply), None, "{}", reply.out);
}

const AFTER: &str = "checkpoints:
  - {checkpoint_id: look, trigger: {type: action_post, patterns: [shell.run]}, mode: blocking}
";

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn gate_after_an_action_still_applies_to_the_resumed_conversation() {
    let fixture = start_fixture(AFTER).await;
    fixture.begins().await;
    passes(&fixture.uses_tool("t1").await);
    fixture.used_tool("t1").await;
    fixture.resumes().await;
    denied(&fixture.held_tool("t2", false).await);
    // Leaving again pays nothing either.
    fixture.resumes().await;
    passes(&fixture.held_tool("t3", true).await);
    passes(&fixture.uses_tool("t4").await);
    fixture.resumes().await;
    passes(&fixture.uses_tool("t5").await);
    let started = &recorded(&fixture, "claude-code.s.2").await[0];
    assert_eq!(started.1["continues"], "claude-code.s.1");
    let ended = recorded(&fixture, "claude-code.s").await;
    let (kind, ended) = ended.last().unwrap();
    assert_eq!(kind, "session_ended");
    assert_eq!(ended["owed"]["gates"][0]["checkpoints"], json!(["look"]));
}

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn denied_start_gate_denies_the_resumed_conversation() {
    let fixture =
        start_fixture("checkpoints:\n  - {checkpoint_id: terms, trigger: {type: session_start}, mode: blocking}\n")
            .await;
    fixture.begins().await;
    fixture.console.deny("no agents today").await;
    fixture.resumes().await;
    let reply = denied(&fixture.uses_tool("t1").await);
    assert!(reply.contains("no agents today"), "{reply}");
}

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn denials_and_locks_hold_for_the_resumed_conversation() {
    for effect in ["deny_actions: [shell.run]", "lock_capabilities: [shell]"] {
        let fixture = start_fixture(&format!(
            "checkpoints:\n  - {{checkpoint_id: freeze, trigger: {{type: keyword, patterns: [freeze]}}, {effect}}}\n"
        ))
        .await;
        fixture.begins().await;
        fixture
            .moment("UserPromptSubmit", json!({"prompt": "freeze now"}))
            .await;
        let before = denied(&fixture.uses_tool("t1").await);
        fixture.resumes().await;
        assert_eq!(denied(&fixture.uses_tool("t2").await), before, "{effect}");
    }
}

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn session_limits_keep_their_counts_in_the_resumed_conversation() {
    for limit in [
        "type: rate_limit, max_calls: 1, window_seconds: 3600",
        "type: budget, limit: 1",
    ] {
        let fixture = start_fixture(&format!(
            "policies:\n  - {{policy_id: once, {limit}, actions: [shell.run]}}\n"
        ))
        .await;
        fixture.begins().await;
        passes(&fixture.uses_tool("t1").await);
        for id in ["t2", "t3"] {
            fixture.resumes().await;
            let reply = denied(&fixture.uses_tool(id).await);
            assert!(reply.contains("once"), "{limit}: {reply}");
        }
    }
}

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn intervals_keep_their_counts_in_the_resumed_conversation() {
    let fixture = start_fixture(
        "checkpoints:\n  - {checkpoint_id: often, trigger: {type: count_interval, actions: 2}, mode: blocking}\n",
    )
    .await;
    fixture.begins().await;
    passes(&fixture.uses_tool("t1").await);
    fixture.resumes().await;
    passes(&fixture.uses_tool("t2").await);
    fixture.resumes().await;
    denied(&fixture.held_tool("t3", false).await);
    passes(&fixture.held_tool("t4", true).await);
    fixture.resumes().await;
    passes(&fixture.uses_tool("t5").await);
    denied(&fixture.held_tool("t6", false).await);
}
