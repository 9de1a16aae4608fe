//! Hooks of real agents, answered by the real program: payloads as each agent documents them.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::socket::House;

mod answering;
mod dialects;
mod gates;
mod hostile;
mod impostor;
mod numbers;
mod resumed;

/// The Atlas for coding agents, in force.
const CODING: &str = include_str!("../../assets/atlas/coding-agents.yaml");

/// A console, and agents that run hooks beside it.
struct Desk {
    house: House,
}

/// What a hook printed.
struct Told {
    out: String,
    err: String,
    code: i32,
}

impl Told {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.out, self.err))
    }
}

impl Desk {
    async fn new() -> Self {
        let house = House::under(CODING).await;
        // Hooks tell the time of day, and a console on another day finds all of them late.
        Self { house }
    }

    fn command(&self, agent: &str, more: &[&str]) -> Command {
        let mut command = self.command_without_key(agent, more);
        command.arg("--key").arg(self.house.key());
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
            .arg(self.house.folder())
            .arg("--socket")
            .arg(self.house.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn hook(&self, agent: &str, more: &[&str], payload: &[u8]) -> Told {
        Self::answered(self.command(agent, more), payload).await
    }

    async fn answered(mut command: Command, payload: &[u8]) -> Told {
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
        Told {
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
            code: status.code().unwrap(),
        }
    }

    async fn says(&self, agent: &str, payload: &Value) -> Told {
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
        "copilot" => json!({
            "sessionId": "p-1", "timestamp": 1_790_000_000_000_u64, "cwd": "/src", "toolName": "bash",
            "toolArgs": json!({"command": command}).to_string(),
        }),
        other => panic!("{other}"),
    }
}

const AGENTS: [&str; 5] = ["claude-code", "codex", "gemini", "cursor", "copilot"];
const HARMLESS: &str = "cargo test";
const HARMFUL: &str = "git push --force origin main";

/// Whether an answer denies, in the words of its agent; and why.
fn denial(agent: &str, told: &Told) -> Option<String> {
    if told.code == 2 {
        return Some(told.err.clone());
    }
    if told.out.trim().is_empty() {
        return None;
    }
    let said = told.json();
    let (word, reason) = match agent {
        "claude-code" | "codex" => {
            let said = &said["hookSpecificOutput"];
            (
                &said["permissionDecision"],
                &said["permissionDecisionReason"],
            )
        }
        "gemini" => (&said["decision"], &said["reason"]),
        "cursor" => (&said["permission"], &said["user_message"]),
        "copilot" => (
            &said["permissionDecision"],
            &said["permissionDecisionReason"],
        ),
        other => panic!("{other}"),
    };
    (word == "deny").then(|| reason.as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_no_gate_stands_before_leaves_the_agents_own_rules_in_force() {
    let desk = Desk::new().await;
    for agent in AGENTS {
        let told = desk.says(agent, &before(agent, HARMLESS)).await;
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{agent}");
        let wanted = match agent {
            "codex" => "",
            "gemini" => "{\"decision\":\"allow\"}\n",
            "cursor" => "{\"permission\":\"allow\"}\n",
            _ => "{}\n",
        };
        assert_eq!(told.out, wanted, "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_step_waits_and_goes_on_when_an_operator_lets_it_pass() {
    let desk = Desk::new().await;
    for agent in AGENTS {
        let payload = before(agent, HARMFUL);
        let (told, ()) = tokio::join!(desk.says(agent, &payload), desk.house.pass());
        assert_eq!(told.code, 0, "{agent}: {}", told.err);
        assert_eq!(denial(agent, &told), None, "{agent}: {}", told.out);
        let wanted = match agent {
            "codex" => String::new(),
            "gemini" => json!({"decision": "allow"}).to_string(),
            "cursor" => json!({"permission": "allow"}).to_string(),
            "copilot" => json!({"permissionDecision": "allow",
                "permissionDecisionReason": "cra: approved by op-1"})
            .to_string(),
            _ => json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
                "permissionDecision": "allow", "permissionDecisionReason": "cra: approved by op-1"}})
            .to_string(),
        };
        assert_eq!(told.out.trim(), wanted, "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_step_that_is_refused_is_denied_with_the_operators_reason() {
    let desk = Desk::new().await;
    for agent in AGENTS {
        let payload = before(agent, HARMFUL);
        let (told, ()) = tokio::join!(desk.says(agent, &payload), desk.house.deny("not on main"));
        let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
        assert!(reason.contains("not on main"), "{agent}: {reason}");
        assert_eq!(told.code, 0, "{agent}");
    }
}

/// Every agent hears before its own timer that no answer came.
async fn all_hear_that_it_is_late(desk: &Desk, command: &str) {
    for agent in AGENTS {
        let payload = before(agent, command).to_string();
        let told = desk
            .hook(agent, &["--timer", "1"], payload.as_bytes())
            .await;
        let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
        assert!(
            reason.contains("did not answer in time"),
            "{agent}: {reason}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_a_denial_before_the_agents_own_timer() {
    all_hear_that_it_is_late(&Desk::new().await, HARMFUL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_console_is_a_denial_that_says_how_to_start_one() {
    let mut desk = Desk::new().await;
    drop(desk.house.door.take());
    for agent in AGENTS {
        let told = desk.says(agent, &before(agent, HARMLESS)).await;
        let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
        assert!(reason.contains("no console listens"), "{agent}: {reason}");
        assert!(reason.contains("Start it with `cra`"), "{agent}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_console_the_agent_asks_its_own_user_where_that_is_wanted_and_it_can() {
    let mut desk = Desk::new().await;
    drop(desk.house.door.take());
    for agent in AGENTS {
        let payload = before(agent, HARMLESS).to_string();
        let told = desk
            .hook(agent, &["--offline", "ask"], payload.as_bytes())
            .await;
        match agent {
            "codex" | "cursor" => assert!(denial(agent, &told).is_some(), "{agent}: {}", told.out),
            _ => assert!(told.out.contains("\"ask\""), "{agent}: {}", told.out),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_goes_away_while_a_hook_waits_is_a_denial() {
    for agent in AGENTS {
        let mut desk = Desk::new().await;
        let payload = before(agent, HARMFUL).to_string();
        let mut child = desk.command(agent, &[]).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(payload.as_bytes())
            .await
            .unwrap();
        desk.house.bench.until(|it| it.held.len() == 1).await;
        drop(desk.house.door.take());
        let output = child.wait_with_output().await.unwrap();
        let told = Told {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap(),
        };
        let reason = denial(agent, &told).unwrap_or_else(|| panic!("{agent}: {}", told.out));
        assert!(reason.contains("went away"), "{agent}: {reason}");
    }
}
