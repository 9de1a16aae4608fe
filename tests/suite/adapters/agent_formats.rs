//! Each agent's own events and answers, and what one of them tells in another's place.

use cra_core::gateway::agents::CodingAgent;
use cra_core::gateway::hook::HookEvent;
use serde_json::{Value, json};

use super::{HARMFUL, HARMLESS, HookFixture, before, denial};

/// Recorded events of a session.
pub(super) async fn recorded(fixture: &HookFixture, session: &str) -> Vec<(String, Value)> {
    let session = session.parse().unwrap();
    let events = fixture
        .console
        .bench
        .runtime
        .operator_handle()
        .events(session, 0, 1000)
        .await
        .unwrap();
    let reply = events
        .iter()
        .map(|event| (event.event_type.clone(), event.payload.clone().into()));
    reply.collect()
}

pub(super) fn claude(event: &str, more: &Value) -> Value {
    let mut payload = json!({"session_id": "s", "transcript_path": "/t", "cwd": "/src",
        "hook_event_name": event});
    let fields = payload.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    payload
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_session_of_claude_code_is_recorded() {
    let fixture = HookFixture::new().await;
    let says = async |event: &str, more: Value| {
        let payload = claude(event, &more).to_string();
        let reply = fixture
            .hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await;
        assert_eq!((reply.code, reply.err.as_str()), (0, ""), "{event}");
        reply.json()
    };
    let nothing = json!({});
    assert_eq!(
        says("SessionStart", json!({"source": "startup", "model": "m"})).await,
        nothing
    );
    assert_eq!(
        says("UserPromptSubmit", json!({"prompt": "fix the build"})).await,
        nothing
    );
    let tool =
        json!({"tool_name": "Bash", "tool_input": {"command": HARMLESS}, "tool_use_id": "t1"});
    assert_eq!(says("PreToolUse", tool.clone()).await, nothing);
    let mut after = tool.clone();
    after["tool_response"] = json!({"stdout": "ok", "stderr": "", "interrupted": false});
    assert_eq!(says("PostToolUse", after).await, nothing);
    let mut second = tool.clone();
    second["tool_use_id"] = json!("t2");
    says("PreToolUse", second.clone()).await;
    second["error"] = json!("exit code 1");
    assert_eq!(says("PostToolUseFailure", second).await, nothing);
    let stop = json!({"stop_hook_active": false, "last_assistant_message": "done"});
    assert_eq!(says("Stop", stop).await, nothing);
    assert_eq!(
        says("StopFailure", json!({"error": "overloaded"})).await,
        nothing
    );
    assert_eq!(
        says("SessionEnd", json!({"reason": "other"})).await,
        nothing
    );

    let events = recorded(&fixture, "claude-code.s").await;
    let types: Vec<_> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    for wanted in [
        "session_started",
        "input_received",
        "breakpoint_decided",
        "action_completed",
        "output_produced",
        "error_occurred",
        "session_ended",
    ] {
        assert!(types.contains(&wanted), "{wanted}: {types:?}");
    }
    let failed = events
        .iter()
        .filter(|(_, payload)| payload.to_string().contains("exit code 1"));
    assert_eq!(failed.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_that_continues_after_its_end_is_recorded_as_another_session() {
    let fixture = HookFixture::new().await;
    let tool =
        json!({"tool_name": "Bash", "tool_input": {"command": HARMLESS}, "tool_use_id": "t1"});
    for (event, more) in [
        ("SessionStart", json!({"source": "startup"})),
        ("SessionEnd", json!({"reason": "other"})),
        ("SessionStart", json!({"source": "resume"})),
        ("PreToolUse", tool),
    ] {
        let payload = claude(event, &more).to_string();
        // The default timeout at the end of a session is too short for a busy machine.
        let reply = fixture
            .hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await;
        assert_eq!(reply.json(), json!({}), "{event}");
    }
    let snapshot = fixture
        .console
        .bench
        .wait_until(|snapshot| snapshot.sessions.len() == 1)
        .await;
    assert_eq!(
        snapshot.sessions.first().unwrap().id.as_str(),
        "claude-code.s.1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_that_resumes_an_ended_session_continues_in_the_same_thread() {
    let fixture = HookFixture::new().await;
    let prompt = |text: &str| json!({"prompt": text});
    for (event, more) in [
        ("SessionStart", json!({"source": "startup"})),
        ("UserPromptSubmit", prompt("clean up the tickets")),
        ("SessionEnd", json!({"reason": "other"})),
        ("SessionStart", json!({"source": "resume"})),
        ("UserPromptSubmit", prompt("and now the rest")),
    ] {
        let payload = claude(event, &more).to_string();
        let reply = fixture
            .hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await;
        assert_eq!(reply.code, 0, "{event}: {}", reply.err);
    }
    let turns = |threads: &[std::sync::Arc<cra_core::memento::Thread>]| {
        threads.first().map_or(0, |thread| thread.turns.len())
    };
    let snapshot = fixture
        .console
        .bench
        .wait_until(|snapshot| turns(&snapshot.threads) == 2)
        .await;
    assert_eq!(snapshot.threads.len(), 1);
    let thread = &snapshot.threads[0];
    assert_eq!(thread.id.as_str(), "claude-code.s");
    let sessions: Vec<_> = thread
        .turns
        .iter()
        .map(|turn| turn.session.as_str())
        .collect();
    assert_eq!(sessions, ["claude-code.s.1", "claude-code.s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hook_run_by_another_agent_answers_in_the_format_of_that_agent() {
    let fixture = HookFixture::new().await;
    let mut by_cursor = before("claude-code", HARMFUL);
    by_cursor["cursor_version"] = json!("3.9.16");
    let (reply, ()) = tokio::join!(
        fixture.run_hook("claude-code", &by_cursor),
        fixture.console.deny("no")
    );
    assert!(denial("cursor", &reply).is_some(), "{}", reply.out);
    // Copilot reads what is written down for Claude Code, and its payloads tell the time.
    let mut by_copilot = before("claude-code", HARMFUL);
    by_copilot["timestamp"] = json!("2026-08-20T10:00:00Z");
    by_copilot
        .as_object_mut()
        .unwrap()
        .remove("permission_mode");
    let (reply, ()) = tokio::join!(
        fixture.run_hook("claude-code", &by_copilot),
        fixture.console.deny("no")
    );
    assert!(denial("copilot", &reply).is_some(), "{}", reply.out);
    assert!(denial("claude-code", &reply).is_some(), "{}", reply.out);
}

#[test]
fn payload_of_qwen_code_is_not_recorded_as_copilots() {
    let configured = CodingAgent::from_name("claude-code").unwrap();
    let sender = |payload: &Value| {
        let event = HookEvent::read(configured, payload.to_string().as_bytes());
        event.unwrap().agent.as_str()
    };
    let mut payload = before("qwen", HARMFUL);
    assert_eq!(sender(&payload), "qwen");
    payload["timestamp"] = json!(1_790_000_000_000_u64);
    assert_eq!(sender(&payload), "copilot");
    let configured = CodingAgent::from_name("qwen").unwrap();
    let event = HookEvent::read(configured, before("qwen", HARMFUL).to_string().as_bytes());
    assert_eq!(event.unwrap().agent, configured);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_payload_is_denied_and_unknown_event_is_ignored() {
    let fixture = HookFixture::new().await;
    for agent in super::AGENTS {
        for payload in [
            &b""[..],
            b"{",
            b"[]",
            b"null",
            b"{}",
            b"\xff\xfe",
            b"{\"hook_event_name\": 4}",
        ] {
            let reply = fixture.hook(agent, &[], payload).await;
            let shown = String::from_utf8_lossy(payload);
            assert_eq!((reply.code, reply.out.as_str()), (2, ""), "{agent} {shown}");
            assert!(
                reply.err.contains("so it is denied"),
                "{agent} {shown}: {}",
                reply.err
            );
        }
    }
    let unknown = claude("TeammateIdle", &json!({"whatever": [1, 2]}));
    let reply = fixture.run_hook("claude-code", &unknown).await;
    assert_eq!((reply.code, reply.out.as_str()), (0, "{}\n"));
    let mut more = before("claude-code", HARMLESS);
    more["from_the_future"] = json!({"deep": [null]});
    assert_eq!(
        fixture.run_hook("claude-code", &more).await.json(),
        json!({})
    );

    let reply = fixture
        .hook(
            "cursor",
            &[],
            &[
                b"\xef\xbb\xbf",
                before("cursor", HARMLESS).to_string().as_bytes(),
            ]
            .concat(),
        )
        .await;
    assert_eq!(reply.json(), json!({"permission": "allow"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_use_without_its_arguments_is_denied() {
    let fixture = HookFixture::new().await;
    for (tool, input) in [
        ("Bash", json!({})),
        ("Bash", json!({"command": 4})),
        ("Write", json!({"content": "x"})),
        ("apply_patch", json!({"command": "no file at all"})),
        ("WebFetch", json!({})),
    ] {
        let tool = json!({"tool_name": tool, "tool_input": input, "tool_use_id": "t1"});
        let reply = fixture
            .run_hook("claude-code", &claude("PreToolUse", &tool))
            .await;
        let reason =
            denial("claude-code", &reply).unwrap_or_else(|| panic!("{tool}: {}", reply.out));
        assert!(reason.contains("this call cannot be evaluated"), "{reason}");
    }
    let mut nameless = before("claude-code", HARMLESS);
    nameless.as_object_mut().unwrap().remove("session_id");
    let reply = fixture.run_hook("claude-code", &nameless).await;
    assert!(
        denial("claude-code", &reply)
            .unwrap()
            .contains("names no session")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_of_a_patch_is_gated() {
    let fixture = HookFixture::new().await;
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** Add File: .claude/settings.json\n+{}\n*** End Patch";
    let mut payload = before("codex", HARMLESS);
    payload["tool_name"] = json!("apply_patch");
    payload["tool_input"] = json!({"command": patch});
    let (reply, ()) = tokio::join!(fixture.run_hook("codex", &payload), async {
        let snapshot = fixture
            .console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        let held = serde_json::to_value(&*snapshot.held[0])
            .unwrap()
            .to_string();
        assert!(
            held.contains("\"path\":\"/src/.claude/settings.json\""),
            "{held}"
        );
        fixture.console.deny("not the settings").await;
    });
    assert!(
        denial("codex", &reply)
            .unwrap()
            .contains("not the settings")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_mcp_servers_are_named_by_their_server() {
    let fixture = HookFixture::new().await;
    let request = [
        (
            "claude-code",
            claude(
                "PreToolUse",
                &json!({"tool_name": "mcp__github__create_issue",
            "tool_input": {"title": "x"}, "tool_use_id": "t"}),
            ),
            "mcp.github.create_issue",
        ),
        (
            "gemini",
            json!({"session_id": "g", "cwd": "/", "timestamp": "2026-01-01T00:00:00Z",
            "hook_event_name": "BeforeTool", "tool_name": "mcp_github_create_issue", "tool_input": {"title": "x"},
            "mcp_context": {"server_name": "github", "tool_name": "create_issue"}}),
            "mcp.github.create_issue",
        ),
        (
            "cursor",
            json!({"conversation_id": "c", "cursor_version": "3", "hook_event_name": "beforeMCPExecution",
            "tool_name": "create_issue", "tool_input": "{\"title\":\"x\"}", "command": "srv"}),
            "mcp.unknown.create_issue",
        ),
    ];
    for (agent, payload, action) in request {
        let (reply, ()) = tokio::join!(fixture.run_hook(agent, &payload), async {
            let snapshot = fixture
                .console
                .bench
                .wait_until(|snapshot| snapshot.held.len() == 1)
                .await;
            let held = serde_json::to_value(&*snapshot.held[0])
                .unwrap()
                .to_string();
            assert!(held.contains(&format!("\"action\":\"{action}\"")), "{held}");
            assert!(held.contains("\"title\":\"x\""), "{held}");
            fixture.console.deny("no").await;
        });
        assert!(denial(agent, &reply).is_some(), "{agent}: {}", reply.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_processes_cannot_act_for_the_session_of_a_hook() {
    let fixture = HookFixture::new().await;
    fixture
        .run_hook("claude-code", &before("claude-code", HARMLESS))
        .await;
    let mut stranger = fixture.console.agent().await;
    let session = "claude-code.6bd73c2b-1";
    let start = json!({"session": session, "agent": "claude-code"});
    let reply = stranger.call_err("session.start", start).await;
    assert!(reply.contains("belongs to another agent"), "{reply}");
}

/// An Atlas whose checkpoint helps after failures.
const FAILURES: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.failures
version: "1"
name: Failures
default_decision: allow
unknown_actions: allow
context_blocks: [{context_id: help, content: Read the log first., inject_mode: on_demand}]
checkpoints:
- {checkpoint_id: failed, trigger: {type: error_occurred}, inject_contexts: [help]}
"#;

// covers A1, B7
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_tool_of_claude_code_fires_the_checkpoints_of_errors() {
    let console = crate::socket::TestConsole::with_atlas(FAILURES).await;
    let fixture = HookFixture { console };
    let says = async |event: &str, more: Value| {
        let payload = claude(event, &more).to_string();
        let reply = fixture
            .hook("claude-code", &["--timer", "60"], payload.as_bytes())
            .await;
        assert_eq!((reply.code, reply.err.as_str()), (0, ""), "{event}");
        reply.out
    };
    says("SessionStart", json!({"source": "startup", "model": "m"})).await;
    let mut tool =
        json!({"tool_name": "Bash", "tool_input": {"command": HARMLESS}, "tool_use_id": "t1"});
    says("PreToolUse", tool.clone()).await;
    tool["error"] = json!("exit code 1");
    let after = says("PostToolUseFailure", tool.clone()).await;
    assert!(after.contains("Read the log first."), "{after}");
    let events = recorded(&fixture, "claude-code.s").await;
    let fired: Vec<_> = events
        .iter()
        .filter(|(kind, _)| kind == "checkpoint_triggered")
        .map(|(_, payload)| payload["checkpoint_id"].clone())
        .collect();
    assert_eq!(fired, ["failed"]);
}
