//! Hooks of real agents, answered by the real program: payloads as each agent documents them.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::socket::TestConsole;

mod agent_answers;
mod agent_formats;
mod gates;
mod hostile;
mod impostor;
mod numbers;
mod resumed_conversations;

/// The Atlas for coding agents, in force.
const CODING: &str = include_str!("../../assets/atlas/coding-agents.yaml");

/// A console, and agents whose hooks ask it.
struct HookFixture {
    console: TestConsole,
}

/// Output of a hook process.
struct HookOutput {
    out: String,
    err: String,
    code: i32,
}

impl HookOutput {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.out, self.err))
    }
}

impl HookFixture {
    async fn new() -> Self {
        let console = TestConsole::with_atlas(CODING).await;
        // Hooks tell the time of day, and a console on another day finds all of them late.
        Self { console }
    }

    fn command(&self, agent: &str, more: &[&str]) -> Command {
        let mut command = self.command_without_key(agent, more);
        command.arg("--key").arg(self.console.key());
        command
    }

    fn command_without_key(&self, agent: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
        command
            .env_clear()
            .arg("hook")
            .arg(agent)
            .args(more)
            .arg("--data-dir")
            .arg(self.console.folder())
            .arg("--socket")
            .arg(self.console.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn hook(&self, agent: &str, more: &[&str], payload: &[u8]) -> HookOutput {
        Self::answered(self.command(agent, more), payload).await
    }

    async fn answered(mut command: Command, payload: &[u8]) -> HookOutput {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A hook that has made up its mind may not read all of it.
        let _ = stdin.write_all(payload).await;
        drop(stdin);
        let Output {
            status,
            stdout,
            stderr,
        } = tokio::time::timeout(Duration::from_secs(20), child.wait_with_output())
            .await
            .expect("the hook never answered")
            .unwrap();
        HookOutput {
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
            code: status.code().unwrap(),
        }
    }

    async fn run_hook(&self, agent: &str, payload: &Value) -> HookOutput {
        self.hook(agent, &[], payload.to_string().as_bytes()).await
    }
}

/// A use of a tool as each agent tells it: the name of its command line, a harmless one and a harmful one.
fn before(agent: &str, command: &str) -> Value {
    match agent {
        "claude-code" => json!({
            "session_id": "6bd73c2b-1", "transcript_path": "/t.jsonl", "cwd": "/src",
            "permission_mode": "default", "effort": {"level": "high"}, "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": command, "description": "d"},
            "tool_use_id": "toolu_1",
        }),
        "codex" => json!({
            "session_id": "019f0634-1", "turn_id": "t-1", "transcript_path": null, "cwd": "/src",
            "hook_event_name": "PreToolUse", "model": "gpt-5.5", "permission_mode": "default",
            "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "call_1",
        }),
        "gemini" => json!({
            "session_id": "g-1", "transcript_path": "/t.json", "cwd": "/src",
            "timestamp": "2026-08-20T10:00:00Z", "hook_event_name": "BeforeTool",
            "tool_name": "run_shell_command", "tool_input": {"command": command},
        }),
        "cursor" => json!({
            "conversation_id": "c-1", "generation_id": "g", "model": "m", "hook_event_name": "preToolUse",
            "cursor_version": "3.9.16", "workspace_roots": ["/src"], "user_email": null,
            "transcript_path": null, "tool_name": "Shell", "tool_input": {"command": command, "cwd": "/src"},
            "tool_use_id": "u-1", "cwd": "/src",
        }),
        "qwen" => json!({
            "session_id": "q-1", "transcript_path": "/t.jsonl", "cwd": "/src", "permission_mode": "yolo",
            "timestamp": "2026-08-20T10:00:00Z", "hook_event_name": "PreToolUse",
            "tool_name": "run_shell_command", "tool_input": {"command": command}, "tool_use_id": "toolu_1",
        }),
        "opencode" => json!({
            "hook_event_name": "tool.execute.before", "cwd": "/src", "session_id": "o-1",
            "input": {"tool": "bash", "sessionID": "o-1", "callID": "call_1"},
            "output": {"args": {"command": command, "description": "d"}},
        }),
        "copilot" => json!({
            "sessionId": "p-1", "timestamp": 1_790_000_000_000_u64, "cwd": "/src", "toolName": "bash",
            "toolArgs": json!({"command": command}).to_string(),
        }),
        other => panic!("{other}"),
    }
}

const AGENTS: [&str; 7] = [
    "claude-code",
    "codex",
    "gemini",
    "cursor",
    "qwen",
    "copilot",
    "opencode",
];
const HARMLESS: &str = "cargo test";
const HARMFUL: &str = "git push --force origin main";

/// Reason of a denial in the format of its agent, or `None` if the output does not deny.
fn denial(agent: &str, reply: &HookOutput) -> Option<String> {
    if reply.code == 2 {
        return Some(reply.err.clone());
    }
    if reply.out.trim().is_empty() {
        return None;
    }
    let output = reply.json();
    let (word, reason) = match agent {
        "claude-code" | "codex" | "qwen" => {
            let output = &output["hookSpecificOutput"];
            (
                &output["permissionDecision"],
                &output["permissionDecisionReason"],
            )
        }
        "gemini" | "opencode" => (&output["decision"], &output["reason"]),
        "cursor" => (&output["permission"], &output["user_message"]),
        "copilot" => (
            &output["permissionDecision"],
            &output["permissionDecisionReason"],
        ),
        other => panic!("{other}"),
    };
    (word == "deny").then(|| reason.as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn ungated_tool_use_leaves_the_agents_own_permission_rules_in_force() {
    let fixture = HookFixture::new().await;
    for agent in AGENTS {
        let reply = fixture.run_hook(agent, &before(agent, HARMLESS)).await;
        assert_eq!((reply.code, reply.err.as_str()), (0, ""), "{agent}");
        let wanted = match agent {
            "codex" => "",
            "gemini" | "opencode" => "{\"decision\":\"allow\"}\n",
            "cursor" => "{\"permission\":\"allow\"}\n",
            _ => "{}\n",
        };
        assert_eq!(reply.out, wanted, "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn held_tool_use_waits_and_continues_when_an_operator_passes_it() {
    let fixture = HookFixture::new().await;
    for agent in AGENTS {
        let payload = before(agent, HARMFUL);
        let (reply, ()) = tokio::join!(fixture.run_hook(agent, &payload), fixture.console.pass());
        assert_eq!(reply.code, 0, "{agent}: {}", reply.err);
        assert_eq!(denial(agent, &reply), None, "{agent}: {}", reply.out);
        let wanted = match agent {
            "codex" => String::new(),
            "gemini" | "opencode" => json!({"decision": "allow"}).to_string(),
            "cursor" => json!({"permission": "allow"}).to_string(),
            "copilot" => json!({"permissionDecision": "allow",
                "permissionDecisionReason": "cra: approved by op-1"})
            .to_string(),
            _ => json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
                "permissionDecision": "allow", "permissionDecisionReason": "cra: approved by op-1"}})
            .to_string(),
        };
        assert_eq!(reply.out.trim(), wanted, "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn held_tool_use_is_denied_with_the_operators_reason() {
    let fixture = HookFixture::new().await;
    for agent in AGENTS {
        let payload = before(agent, HARMFUL);
        let (reply, ()) = tokio::join!(
            fixture.run_hook(agent, &payload),
            fixture.console.deny("not on main")
        );
        let reason = denial(agent, &reply).unwrap_or_else(|| panic!("{agent}: {}", reply.out));
        assert!(reason.contains("not on main"), "{agent}: {reason}");
        assert_eq!(reply.code, 0, "{agent}");
    }
}

/// Every agent hears before its own timer that no answer came.
async fn all_hear_that_it_is_late(fixture: &HookFixture, command: &str) {
    for agent in AGENTS {
        let payload = before(agent, command).to_string();
        let reply = fixture
            .hook(agent, &["--timer", "1"], payload.as_bytes())
            .await;
        let reason = denial(agent, &reply).unwrap_or_else(|| panic!("{agent}: {}", reply.out));
        assert!(
            reason.contains("did not answer in time"),
            "{agent}: {reason}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_hook_denies_before_the_agents_own_timeout() {
    all_hear_that_it_is_late(&HookFixture::new().await, HARMFUL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hook_without_a_console_denies_and_says_how_to_start_one() {
    let mut fixture = HookFixture::new().await;
    drop(fixture.console.server.take());
    for agent in AGENTS {
        let reply = fixture.run_hook(agent, &before(agent, HARMLESS)).await;
        let reason = denial(agent, &reply).unwrap_or_else(|| panic!("{agent}: {}", reply.out));
        assert!(reason.contains("no console listens"), "{agent}: {reason}");
        assert!(
            reason.contains("Start the console with `cra`"),
            "{agent}: {reason}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hook_without_a_console_asks_the_agents_user_where_configured_and_supported() {
    let mut fixture = HookFixture::new().await;
    drop(fixture.console.server.take());
    for agent in AGENTS {
        let payload = before(agent, HARMLESS).to_string();
        let reply = fixture
            .hook(agent, &["--offline", "ask"], payload.as_bytes())
            .await;
        match agent {
            "codex" | "cursor" | "opencode" => {
                assert!(denial(agent, &reply).is_some(), "{agent}: {}", reply.out);
            }
            _ => assert!(reply.out.contains("\"ask\""), "{agent}: {}", reply.out),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn console_that_stops_while_a_hook_waits_denies_it() {
    for agent in AGENTS {
        let mut fixture = HookFixture::new().await;
        let payload = before(agent, HARMFUL).to_string();
        let mut child = fixture.command(agent, &[]).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(payload.as_bytes())
            .await
            .unwrap();
        fixture
            .console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        drop(fixture.console.server.take());
        let output = child.wait_with_output().await.unwrap();
        let reply = HookOutput {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        };
        let reason = denial(agent, &reply).unwrap_or_else(|| panic!("{agent}: {}", reply.out));
        assert!(
            reason.contains("the console closed the connection"),
            "{agent}: {reason}"
        );
    }
}
