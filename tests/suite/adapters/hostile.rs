//! Agents that do not say what they do, or do not finish saying it, and consoles that do not listen.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use cra_core::runtime::snapshot::RuntimeSnapshot;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixSocket;

use super::agent_formats::{claude, recorded};
use super::{
    AGENTS, HARMFUL, HARMLESS, HookFixture, HookOutput, all_hear_that_it_is_late, before, denial,
};

async fn ended(child: tokio::process::Child) -> HookOutput {
    let output = tokio::time::timeout(Duration::from_secs(20), child.wait_with_output());
    let output = output.await.expect("the hook never answered").unwrap();
    HookOutput {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_payload_is_denied_before_the_agents_timeout() {
    let fixture = HookFixture::new().await;
    for agent in AGENTS {
        let mut child = fixture.command(agent, &["--timer", "1"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"{\"session_id\": \"s\"").await.unwrap();
        let reply = ended(child).await;
        assert_eq!((reply.code, reply.out.as_str()), (2, ""), "{agent}");
        assert!(reply.err.contains("in time"), "{agent}: {}", reply.err);
        drop(stdin);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn console_at_its_connection_limit_denies_the_hook_before_its_timeout() {
    let mut fixture = HookFixture::new().await;
    let path = fixture.console.path().clone();
    drop(fixture.console.server.take());
    let crowded = UnixSocket::new_stream().unwrap();
    crowded.bind(&path).unwrap();
    let _crowded = crowded.listen(1).unwrap();
    let _waiting = [(); 2].map(|()| UnixStream::connect(&path).unwrap());
    all_hear_that_it_is_late(&fixture, HARMLESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_event_that_names_a_tool_is_denied() {
    let fixture = HookFixture::new().await;
    for (agent, known, unknown) in [
        ("claude-code", "PreToolUse", "PreToolCall"),
        ("codex", "PreToolUse", "PreToolCall"),
        ("gemini", "BeforeTool", "BeforeToolCall"),
        ("cursor", "preToolUse", "beforeToolUse"),
    ] {
        let payload = before(agent, HARMFUL).to_string();
        let payload = payload.replace(known, unknown);
        let reply = fixture.hook(agent, &[], payload.as_bytes()).await;
        let reason = denial(agent, &reply).unwrap_or_else(|| panic!("{agent}: {}", reply.out));
        assert!(
            reason.contains(&format!("the event `{unknown}` is unknown")),
            "{reason}"
        );
    }
    // Events that start no tool are ignored.
    for event in ["PermissionRequest", "PostToolBatch", "Notification"] {
        let payload = before("claude-code", HARMFUL).to_string();
        let payload = payload.replace("PreToolUse", event);
        let reply = fixture.hook("claude-code", &[], payload.as_bytes()).await;
        let quiet = event != "Notification";
        assert_eq!(reply.json() == json!({}), quiet, "{event}: {}", reply.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prompt_in_parts_is_read_and_an_unreadable_prompt_is_stopped() {
    let fixture = HookFixture::new().await;
    let parts = json!({"prompt": [{"type": "text", "text": "rotate the keys"}, "now"]});
    let reply = fixture
        .run_hook("claude-code", &claude("UserPromptSubmit", &parts))
        .await;
    assert_ne!(reply.json()["decision"], "block");
    let events = recorded(&fixture, "claude-code.s").await;
    let heard = events.iter().find(|(kind, _)| kind == "input_received");
    assert_eq!(
        heard.unwrap().1["input_size_bytes"],
        "rotate the keys\nnow".len()
    );
    for prompt in [
        json!({}),
        json!({"prompt": null}),
        json!({"prompt": [{"type": "image"}]}),
    ] {
        let reply = fixture
            .run_hook("claude-code", &claude("UserPromptSubmit", &prompt))
            .await;
        assert_eq!(reply.json()["decision"], "block", "{prompt}: {}", reply.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_use_that_ran_without_a_request_is_recorded() {
    let fixture = HookFixture::new().await;
    let used = json!({"tool_name": "Bash", "tool_input": {"command": HARMFUL},
        "tool_response": "done", "tool_use_id": "never-asked"});
    let reply = fixture
        .run_hook("claude-code", &claude("PostToolUse", &used))
        .await;
    assert_eq!(reply.json(), json!({}));
    let reply =
        |snapshot: &RuntimeSnapshot| snapshot.sessions.iter().any(|session| session.events >= 2);
    fixture.console.bench.wait_until(reply).await;
    let events = recorded(&fixture, "claude-code.s").await;
    let found = events.iter().find(|(kind, _)| kind == "error_occurred");
    let (_, error) = found.unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(error["error_type"], "ran_unasked");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("`Bash` ran without a request (never-asked)"),
        "{error}"
    );
    assert!(message.contains(HARMFUL), "{error}");
    // The operator is alarmed, and the log has it.
    let shown = fixture
        .console
        .bench
        .snapshot()
        .ran_unasked
        .clone()
        .unwrap();
    assert!(shown.what.contains(HARMFUL), "{shown:?}");
    let operator = fixture.console.bench.runtime.operator_handle();
    let log = operator.sessions_and_log().await.unwrap().pop().unwrap();
    let entries = operator.events(log.session, 0, 1000).await.unwrap();
    let alarm = entries
        .iter()
        .find(|entry| entry.event_type == "alarm_raised");
    let what = alarm.unwrap().payload["what"].as_str().unwrap();
    assert!(
        what.contains("claude-code.s") && what.contains(HARMFUL),
        "{what}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_to_agent_settings_are_held_on_every_path() {
    let fixture = HookFixture::new().await;
    let ways = [
        json!({"file_path": "/src/.claude/./settings.json", "content": "{}"}),
        json!({"file_path": ".claude//settings.json", "content": "{}"}),
        json!({"file_path": "/src/x/../.claude/settings.json", "content": "{}"}),
    ];
    for input in ways {
        let used = json!({"tool_name": "Write", "tool_input": input, "tool_use_id": "t"});
        let payload: Value = claude("PreToolUse", &used);
        let (reply, ()) = tokio::join!(fixture.run_hook("claude-code", &payload), async {
            fixture
                .console
                .bench
                .wait_until(|snapshot| snapshot.held.len() == 1)
                .await;
            fixture.console.deny("not the settings").await;
        });
        assert!(denial("claude-code", &reply).is_some(), "{}", reply.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_reported_twice_is_recorded_once() {
    let fixture = HookFixture::new().await;
    let mut payload = before("claude-code", HARMLESS);
    fixture.run_hook("claude-code", &payload).await;
    payload["hook_event_name"] = json!("PostToolUse");
    payload["tool_response"] = json!("done");
    for _ in 0..2 {
        fixture.run_hook("claude-code", &payload).await;
    }
    payload["hook_event_name"] = json!("SessionEnd");
    fixture.run_hook("claude-code", &payload).await;
    let events = recorded(&fixture, "claude-code.6bd73c2b-1").await;
    let count = |kind: &str| events.iter().filter(|(found, _)| found == kind).count();
    assert_eq!(
        (count("action_completed"), count("error_occurred")),
        (1, 0),
        "{events:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn approving_one_file_of_a_patch_does_not_allow_the_others() {
    let fixture = HookFixture::new().await;
    let patch = |files: [&str; 2]| {
        let lines = files.map(|file| format!("*** Update File: {file}\n"));
        let args = json!({"input": lines.concat()}).to_string();
        json!({"sessionId": "p-1", "timestamp": 1_790_000_000_000_u64, "cwd": "/src",
            "toolName": "apply_patch", "toolArgs": args})
    };
    let payload = patch(["src/a.rs", ".claude/settings.json"]);
    let (reply, ()) = tokio::join!(
        fixture.run_hook("copilot", &payload),
        fixture.console.pass()
    );
    assert_eq!(reply.json(), json!({}), "its own rules stay in force");
}
