//! Agents that speak MCP: the official client, the real program between, a real server behind it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use cra_core::engine::command::HeldOutcome;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, CompleteRequestParams,
    GetPromptRequestParams, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, Reference, Request,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, RoleClient, ServiceError, ServiceExt};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::socket::TestConsole;

mod agent_answers;
mod impostor;
mod numbers;
mod raw_messages;
mod server;
mod tools;

/// Lets `echo` pass, asks about everything else, and knows no further tool.
const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: "org.test.mcp"
version: "1.0.0"
name: "MCP"
description: "Tools of a server"
default_decision: allow
actions:
  - { action_id: "mcp.tools.echo", name: "Echo", risk_tier: low }
  - { action_id: "mcp.tools.write", name: "Write", risk_tier: high }
  - { action_id: "mcp.tools.wait", name: "Wait", risk_tier: low }
  - { action_id: "mcp.tools.crash", name: "Crash", risk_tier: low }
checkpoints:
  - checkpoint_id: "write-gate"
    name: "Writes"
    trigger: { type: action_pre, patterns: ["mcp.tools.write"] }
    mode: blocking
    timeout_seconds: 60
    questions:
      - { question_id: "why", question: "Why?", response_type: text }
"#;

const WAIT: Duration = Duration::from_secs(20);

/// An agent that hears how its calls get on.
struct Agent(mpsc::UnboundedSender<ProgressNotificationParam>);

impl ClientHandler for Agent {
    async fn on_progress(
        &self,
        reply: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(reply);
    }
}

/// A console, and an agent at a server behind the program.
struct ProxyFixture {
    console: TestConsole,
    agent: RunningService<RoleClient, Agent>,
    progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    folder: TempDir,
}

impl ProxyFixture {
    async fn new() -> Self {
        Self::with_atlas(ATLAS).await
    }

    async fn with_atlas(atlas: &str) -> Self {
        let console = TestConsole::with_atlas(atlas).await;
        let folder = tempfile::tempdir().unwrap();
        let mut command = proxy(&console, &["--server", "tools", "--agent", "bot"]);
        server::command(&folder.path().join("calls"), |program, arguments| {
            command.arg("--").arg(program).args(arguments);
        });
        server::environment(&mut command, &folder.path().join("calls"));
        let (sender, progress) = mpsc::unbounded_channel();
        let child = TokioChildProcess::builder(command);
        let (child, _) = child.stderr(Stdio::null()).spawn().unwrap();
        let agent = timeout(WAIT, Agent(sender).serve(child));
        Self {
            console,
            agent: agent.await.unwrap().unwrap(),
            progress,
            folder,
        }
    }

    async fn call(&self, tool: &'static str) -> Result<CallToolResult, ServiceError> {
        let call = self.agent.call_tool(tool_call(tool));
        timeout(WAIT, call).await.expect("it was never answered")
    }

    /// Tools that reached the server.
    fn reached(&self) -> Vec<String> {
        let path: PathBuf = self.folder.path().join("calls");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The program in front of a server.
fn proxy(console: &TestConsole, more: &[&str]) -> Command {
    let mut command = proxy_without_key(console, more);
    command.arg("--key").arg(console.key());
    command
}

fn proxy_without_key(console: &TestConsole, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
    command
        .env_clear()
        .arg("mcp-proxy")
        .args(more)
        .arg("--data-dir")
        .arg(console.folder())
        .arg("--socket")
        .arg(console.path())
        .kill_on_drop(true);
    command
}

fn tool_call(tool: &'static str) -> CallToolRequestParams {
    let arguments = Map::from_iter([("text".to_owned(), json!("hello"))]);
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn words(result: &CallToolResult) -> String {
    let result = serde_json::to_value(result).unwrap();
    let content = result["content"].as_array().unwrap().clone();
    let texts = content.iter().map(|value| value["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

/// Text of the result of a denied tool call.
fn denial(result: Result<CallToolResult, ServiceError>) -> String {
    let result = result.unwrap();
    assert_eq!(result.is_error, Some(true), "{result:?}");
    words(&result)
}

async fn kinds(console: &TestConsole) -> Vec<(String, Value)> {
    let fixture = console.bench.runtime.operator_handle();
    let sessions = fixture.sessions().await.unwrap();
    let mut kinds = Vec::new();
    for session in sessions {
        let events = fixture.events(session.session, 0, 1000).await.unwrap();
        for event in events {
            kinds.push((
                event.event_type.clone(),
                Value::Object(event.payload.clone()),
            ));
        }
    }
    kinds
}

/// The newest record of a kind, when it is there: what no gate stood before is answered before it is written.
pub(crate) async fn recorded(console: &TestConsole, kind: &str) -> Value {
    let mut pictures = console.bench.runtime.operator_handle().snapshots();
    loop {
        let found = kinds(console).await;
        if let Some((_, payload)) = found.into_iter().rev().find(|(found, _)| found == kind) {
            return payload;
        }
        let changed = timeout(WAIT, pictures.changed()).await;
        changed.expect("it was never recorded").unwrap();
    }
}

#[tokio::test]
async fn proxy_lists_and_reads_the_servers_tools_and_resources_unchanged() {
    let fixture = ProxyFixture::new().await;
    let tools = fixture.agent.list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    // The proxy adds one tool of its own, behind those of the server.
    let own = "cra_answer_checkpoint";
    assert_eq!(names, ["echo", "write", "wait", "crash", own]);
    let server = fixture.agent.peer_info().unwrap();
    assert!(
        format!("{server:?}").contains("a test server"),
        "{server:?}"
    );
    let page = Some(PaginatedRequestParams::default());
    let resources = fixture.agent.list_resources(page.clone()).await.unwrap();
    assert_eq!(resources.resources[0].uri, "note://1");
    let read = ReadResourceRequestParams::new("note://1");
    let read = fixture.agent.read_resource(read).await.unwrap();
    let read = serde_json::to_value(read).unwrap();
    assert_eq!(read["contents"][0]["text"], "a note");
    let prompts = fixture.agent.list_prompts(page).await.unwrap();
    assert_eq!(prompts.prompts[0].name, "greet");
    let prompt = GetPromptRequestParams::new("greet");
    let prompt = fixture.agent.get_prompt(prompt).await.unwrap();
    assert_eq!(prompt.description.as_deref(), Some("greets"));
    let complete: CompleteRequestParams = serde_json::from_value(json!({
        "ref": Reference::for_prompt("greet"), "argument": {"name": "who", "value": "w"},
    }))
    .unwrap();
    let completed = fixture.agent.complete(complete).await.unwrap();
    assert_eq!(completed.completion.values, ["world"]);
    // No tool was used, so the console was not asked and there is no session.
    assert_eq!(fixture.console.bench.snapshot().sessions.len(), 0);
}

#[tokio::test]
async fn ungated_call_runs_and_its_outcome_is_recorded() {
    let fixture = ProxyFixture::new().await;
    let result = fixture.call("echo").await.unwrap();
    assert_eq!(
        (result.is_error, words(&result)),
        (Some(false), "hello".to_owned())
    );
    assert_eq!(fixture.reached(), ["echo"]);
    let completed = recorded(&fixture.console, "action_completed").await;
    assert_eq!(completed["result_summary"], "hello");
    let attempted = recorded(&fixture.console, "action_attempted").await;
    assert_eq!(attempted["action_type"], "mcp.tools.echo");
    assert_eq!(attempted["action_params"], json!({"text": "hello"}));
    // A second call, in the same session.
    fixture.call("echo").await.unwrap();
    let fixture = fixture
        .console
        .bench
        .wait_until(|snapshot| snapshot.sessions.len() == 1)
        .await;
    assert_eq!(fixture.sessions.len(), 1);
}

#[tokio::test]
async fn held_call_reports_progress_and_reaches_the_server_when_passed() {
    let mut fixture = ProxyFixture::new().await;
    let call = ClientRequest::CallToolRequest(Request::new(tool_call("write")));
    let options = PeerRequestOptions::no_options();
    let handle = fixture.agent.send_cancellable_request(call, options);
    let handle = handle.await.unwrap();
    let reply = timeout(WAIT, fixture.progress.recv())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(reply.progress_token, handle.progress_token);
    let message = reply.message.unwrap();
    assert!(message.contains("waiting for an operator"), "{message}");
    assert!(fixture.reached().is_empty());
    fixture.console.pass().await;
    let result = timeout(WAIT, handle.await_response()).await.unwrap();
    let result = serde_json::to_value(result.unwrap()).unwrap();
    assert_eq!(result["content"][0]["text"], "wrote hello");
    assert_eq!(fixture.reached(), ["write"]);
}

#[tokio::test]
async fn denied_call_never_reaches_the_server_and_returns_the_reason() {
    let fixture = ProxyFixture::new().await;
    let (result, ()) = tokio::join!(
        fixture.call("write"),
        fixture.console.deny("not on a Friday")
    );
    let reply = denial(result);
    assert!(
        reply.contains("not on a Friday") && reply.contains("c-1"),
        "{reply}"
    );
    assert!(fixture.reached().is_empty());
}

#[tokio::test]
async fn unanswered_gate_denies_the_call() {
    let fixture = ProxyFixture::new().await;
    let (result, ()) = tokio::join!(fixture.call("write"), async {
        fixture
            .console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        fixture.console.bench.clock.advance(Duration::from_secs(61));
    });
    let reply = denial(result);
    assert!(reply.contains("no answer within"), "{reply}");
    assert!(fixture.reached().is_empty());
}

#[tokio::test]
async fn console_that_stops_before_or_during_a_held_call_denies_it() {
    let mut fixture = ProxyFixture::new().await;
    let server = fixture.console.server.take();
    let (result, ()) = tokio::join!(fixture.call("write"), async {
        fixture
            .console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        drop(server);
    });
    let reply = denial(result);
    assert!(
        reply.contains("the console closed the connection"),
        "{reply}"
    );
    // Also for what would have been let pass.
    let reply = denial(fixture.call("echo").await);
    assert!(reply.contains("no console listens at"), "{reply}");
    assert!(reply.contains("Start the console with `cra`"), "{reply}");
    assert!(fixture.reached().is_empty());
}

#[tokio::test]
async fn call_cancelled_by_the_agent_never_reaches_the_server_when_passed_later() {
    let fixture = ProxyFixture::new().await;
    let call = ClientRequest::CallToolRequest(Request::new(tool_call("write")));
    let options = PeerRequestOptions::no_options();
    let handle = fixture.agent.send_cancellable_request(call, options);
    let handle = handle.await.unwrap();
    let snapshot = fixture
        .console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    assert_eq!(snapshot.held[0].action(), "mcp.tools.write");
    handle.cancel(None).await.unwrap();
    let mut connections = fixture.console.server.as_ref().unwrap().connections();
    let gone = connections.wait_for(|there| *there == 0);
    timeout(WAIT, gone).await.unwrap().unwrap();
    // Passing it now has no effect: the call never reaches the server.
    fixture.console.pass().await;
    fixture.call("echo").await.unwrap();
    assert_eq!(fixture.reached(), ["echo"]);
    let decided = fixture.console.bench.snapshot();
    assert!(
        decided
            .decided
            .iter()
            .any(|decided| decided.outcome == HeldOutcome::Passed)
    );
}

#[tokio::test]
async fn running_call_cancelled_by_the_agent_is_cancelled_at_the_server() {
    let mut fixture = ProxyFixture::new().await;
    let call = ClientRequest::CallToolRequest(Request::new(tool_call("wait")));
    let options = PeerRequestOptions::no_options();
    let handle = fixture.agent.send_cancellable_request(call, options);
    let handle = handle.await.unwrap();
    // The server's own progress comes through as well.
    loop {
        let reply = timeout(WAIT, fixture.progress.recv())
            .await
            .unwrap()
            .unwrap();
        if reply.message.as_deref() == Some("at work") {
            break;
        }
    }
    handle.cancel(None).await.unwrap();
    // The crash is reported soon, but there is no event to wait for.
    while !fixture.reached().contains(&"wait cancelled".to_owned()) {
        fixture.call("echo").await.unwrap();
    }
}

#[tokio::test]
async fn server_crash_is_reported_to_waiting_callers() {
    let fixture = ProxyFixture::new().await;
    let reply = denial(fixture.call("crash").await);
    assert!(
        reply.contains("the MCP server `tools` ended (exit status: 7)"),
        "{reply}"
    );
    let failed = recorded(&fixture.console, "action_completed").await;
    assert_eq!(failed["error"]["code"], "lost");
}
