//! Conversations that go on after their session has ended: they still owe every gate that was not passed.

use serde_json::json;

use super::dialects::{claude, recorded};
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

async fn desk(rules_text: &str) -> Desk {
    Desk {
        house: House::under(&rules(rules_text)).await,
    }
}

impl Desk {
    async fn moment(&self, event: &str, more: serde_json::Value) -> Told {
        let payload = claude(event, &more).to_string();
        self.hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await
    }

    async fn begins(&self) {
        let told = self
            .moment("SessionStart", json!({"source": "startup"}))
            .await;
        assert_eq!(told.code, 0, "{}", told.err);
    }

    /// The agent's user leaves the conversation and takes it up again.
    async fn resumes(&self) {
        self.moment("SessionEnd", json!({"reason": "other"})).await;
        self.moment("SessionStart", json!({"source": "resume"}))
            .await;
    }

    async fn uses_tool(&self, id: &str) -> Told {
        self.moment("PreToolUse", tool(id)).await
    }

    async fn used_tool(&self, id: &str) {
        let mut after = tool(id);
        after["tool_response"] = json!({"stdout": "ok", "stderr": "", "interrupted": false});
        self.moment("PostToolUse", after).await;
    }

    /// Uses a tool that a gate stands before, which an operator refuses or passes.
    async fn held_tool(&self, id: &str, passes: bool) -> Told {
        let decided = async {
            if passes {
                self.house.pass().await;
            } else {
                self.house.deny("not yet").await;
            }
        };
        tokio::join!(self.uses_tool(id), decided).0
    }
}

fn tool(id: &str) -> serde_json::Value {
    json!({"tool_name": "Bash", "tool_input": {"command": HARMLESS}, "tool_use_id": id})
}

fn denied(told: &Told) -> String {
    denial("claude-code", told).unwrap_or_else(|| panic!("it went on: {:?}", told.out))
}

fn passes(told: &Told) {
    assert_eq!(denial("claude-code", told), None, "{}", told.out);
}

const AFTER: &str = "checkpoints:
  - {checkpoint_id: look, trigger: {type: action_post, patterns: [shell.run]}, mode: blocking}
";

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn a_gate_after_an_action_is_owed_by_the_resumed_conversation() {
    let desk = desk(AFTER).await;
    desk.begins().await;
    passes(&desk.uses_tool("t1").await);
    desk.used_tool("t1").await;
    desk.resumes().await;
    denied(&desk.held_tool("t2", false).await);
    // Leaving again pays nothing either.
    desk.resumes().await;
    passes(&desk.held_tool("t3", true).await);
    passes(&desk.uses_tool("t4").await);
    desk.resumes().await;
    passes(&desk.uses_tool("t5").await);
    let started = &recorded(&desk, "claude-code.s.2").await[0];
    assert_eq!(started.1["continues"], "claude-code.s.1");
    let ended = recorded(&desk, "claude-code.s").await;
    let (kind, ended) = ended.last().unwrap();
    assert_eq!(kind, "session_ended");
    assert_eq!(ended["owed"]["gates"][0]["checkpoints"], json!(["look"]));
}

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_start_gate_refuses_the_resumed_conversation() {
    let desk =
        desk("checkpoints:\n  - {checkpoint_id: terms, trigger: {type: session_start}, mode: blocking}\n")
            .await;
    desk.begins().await;
    desk.house.deny("no agents today").await;
    desk.resumes().await;
    let told = denied(&desk.uses_tool("t1").await);
    assert!(told.contains("no agents today"), "{told}");
}

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn denials_and_locks_hold_for_the_resumed_conversation() {
    for effect in ["deny_actions: [shell.run]", "lock_capabilities: [shell]"] {
        let desk = desk(&format!(
            "checkpoints:\n  - {{checkpoint_id: freeze, trigger: {{type: keyword, patterns: [freeze]}}, {effect}}}\n"
        ))
        .await;
        desk.begins().await;
        desk.moment("UserPromptSubmit", json!({"prompt": "freeze now"}))
            .await;
        let before = denied(&desk.uses_tool("t1").await);
        desk.resumes().await;
        assert_eq!(denied(&desk.uses_tool("t2").await), before, "{effect}");
    }
}

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_session_count_on_in_the_resumed_conversation() {
    for limit in [
        "type: rate_limit, max_calls: 1, window_seconds: 3600",
        "type: budget, limit: 1",
    ] {
        let desk = desk(&format!(
            "policies:\n  - {{policy_id: once, {limit}, actions: [shell.run]}}\n"
        ))
        .await;
        desk.begins().await;
        passes(&desk.uses_tool("t1").await);
        for id in ["t2", "t3"] {
            desk.resumes().await;
            let told = denied(&desk.uses_tool(id).await);
            assert!(told.contains("once"), "{limit}: {told}");
        }
    }
}

// covers B28
#[tokio::test(flavor = "multi_thread")]
async fn intervals_count_on_in_the_resumed_conversation() {
    let desk = desk(
        "checkpoints:\n  - {checkpoint_id: often, trigger: {type: count_interval, actions: 2}, mode: blocking}\n",
    )
    .await;
    desk.begins().await;
    passes(&desk.uses_tool("t1").await);
    desk.resumes().await;
    passes(&desk.uses_tool("t2").await);
    desk.resumes().await;
    denied(&desk.held_tool("t3", false).await);
    passes(&desk.held_tool("t4", true).await);
    desk.resumes().await;
    passes(&desk.uses_tool("t5").await);
    denied(&desk.held_tool("t6", false).await);
}
