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

use super::socket::House;

mod answering;
mod impostor;
mod numbers;
mod raw;
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
        told: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(told);
    }
}

/// A console, and an agent at a server behind the program.
struct Desk {
    house: House,
    agent: RunningService<RoleClient, Agent>,
    progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    folder: TempDir,
}

impl Desk {
    async fn new() -> Self {
        Self::under(ATLAS).await
    }

    async fn under(atlas: &str) -> Self {
        let house = House::under(atlas).await;
        let folder = tempfile::tempdir().unwrap();
        let mut command = proxy(&house, &["--server", "tools", "--agent", "bot"]);
        server::command(&folder.path().join("calls"), |program, arguments| {
            command.arg("--").arg(program).args(arguments);
        });
        server::environment(&mut command, &folder.path().join("calls"));
        let (sender, progress) = mpsc::unbounded_channel();
        let child = TokioChildProcess::builder(command);
        let (child, _) = child.stderr(Stdio::null()).spawn().unwrap();
        let agent = timeout(WAIT, Agent(sender).serve(child));
        Self {
            house,
            agent: agent.await.unwrap().unwrap(),
            progress,
            folder,
        }
    }

    async fn call(&self, tool: &'static str) -> Result<CallToolResult, ServiceError> {
        let call = self.agent.call_tool(asked(tool));
        timeout(WAIT, call).await.expect("it was never answered")
    }

    /// What reached the server.
    fn reached(&self) -> Vec<String> {
        let path: PathBuf = self.folder.path().join("calls");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The program in front of a server.
fn proxy(house: &House, more: &[&str]) -> Command {
    let mut command = proxy_without_key(house, more);
    command.arg("--key").arg(house.key());
    command
}

fn proxy_without_key(house: &House, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
    command
        .env_clear()
        .arg("mcp-proxy")
        .args(more)
        .arg("--data-dir")
        .arg(house.folder())
        .arg("--socket")
        .arg(house.path())
        .kill_on_drop(true);
    command
}

fn asked(tool: &'static str) -> CallToolRequestParams {
    let arguments = Map::from_iter([("text".to_owned(), json!("hello"))]);
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn words(result: &CallToolResult) -> String {
    let result = serde_json::to_value(result).unwrap();
    let content = result["content"].as_array().unwrap().clone();
    let texts = content.iter().map(|it| it["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

/// What a tool that was not used is answered with.
fn denial(result: Result<CallToolResult, ServiceError>) -> String {
    let result = result.unwrap();
    assert_eq!(result.is_error, Some(true), "{result:?}");
    words(&result)
}

async fn kinds(house: &House) -> Vec<(String, Value)> {
    let desk = house.bench.runtime.operator_handle();
    let sessions = desk.sessions().await.unwrap();
    let mut kinds = Vec::new();
    for session in sessions {
        let events = desk.events(session.session, 0, 1000).await.unwrap();
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
async fn recorded(house: &House, kind: &str) -> Value {
    let mut pictures = house.bench.runtime.operator_handle().snapshots();
    loop {
        let found = kinds(house).await;
        if let Some((_, payload)) = found.into_iter().rev().find(|(it, _)| it == kind) {
            return payload;
        }
        let changed = timeout(WAIT, pictures.changed()).await;
        changed.expect("it was never recorded").unwrap();
    }
}

#[tokio::test]
async fn what_the_server_offers_is_listed_and_read_as_if_nobody_stood_between() {
    let desk = Desk::new().await;
    let tools = desk.agent.list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|it| it.name.as_ref()).collect();
    // The proxy adds one tool of its own, behind those of the server.
    let own = "cra_answer_checkpoint";
    assert_eq!(names, ["echo", "write", "wait", "crash", own]);
    let server = desk.agent.peer_info().unwrap();
    assert!(
        format!("{server:?}").contains("a test server"),
        "{server:?}"
    );
    let page = Some(PaginatedRequestParams::default());
    let resources = desk.agent.list_resources(page.clone()).await.unwrap();
    assert_eq!(resources.resources[0].uri, "note://1");
    let read = ReadResourceRequestParams::new("note://1");
    let read = desk.agent.read_resource(read).await.unwrap();
    let read = serde_json::to_value(read).unwrap();
    assert_eq!(read["contents"][0]["text"], "a note");
    let prompts = desk.agent.list_prompts(page).await.unwrap();
    assert_eq!(prompts.prompts[0].name, "greet");
    let prompt = GetPromptRequestParams::new("greet");
    let prompt = desk.agent.get_prompt(prompt).await.unwrap();
    assert_eq!(prompt.description.as_deref(), Some("greets"));
    let complete: CompleteRequestParams = serde_json::from_value(json!({
        "ref": Reference::for_prompt("greet"), "argument": {"name": "who", "value": "w"},
    }))
    .unwrap();
    let completed = desk.agent.complete(complete).await.unwrap();
    assert_eq!(completed.completion.values, ["world"]);
    // No tool was used, so nobody was asked and there is no session.
    assert_eq!(desk.house.bench.snapshot().sessions.len(), 0);
}

#[tokio::test]
async fn a_call_that_no_gate_stands_before_runs_and_what_came_of_it_is_recorded() {
    let desk = Desk::new().await;
    let result = desk.call("echo").await.unwrap();
    assert_eq!(
        (result.is_error, words(&result)),
        (Some(false), "hello".to_owned())
    );
    assert_eq!(desk.reached(), ["echo"]);
    let completed = recorded(&desk.house, "action_completed").await;
    assert_eq!(completed["result_summary"], "hello");
    let attempted = recorded(&desk.house, "action_attempted").await;
    assert_eq!(attempted["action_type"], "mcp.tools.echo");
    assert_eq!(attempted["action_params"], json!({"text": "hello"}));
    // A second call, in the same session.
    desk.call("echo").await.unwrap();
    let desk = desk.house.bench.until(|it| it.sessions.len() == 1).await;
    assert_eq!(desk.sessions.len(), 1);
}

#[tokio::test]
async fn a_held_call_reaches_the_server_when_it_is_passed_and_the_agent_hears_that_it_waits() {
    let mut desk = Desk::new().await;
    let call = ClientRequest::CallToolRequest(Request::new(asked("write")));
    let options = PeerRequestOptions::no_options();
    let handle = desk.agent.send_cancellable_request(call, options);
    let handle = handle.await.unwrap();
    let told = timeout(WAIT, desk.progress.recv()).await.unwrap().unwrap();
    assert_eq!(told.progress_token, handle.progress_token);
    let message = told.message.unwrap();
    assert!(message.contains("waiting for an operator"), "{message}");
    assert!(desk.reached().is_empty());
    desk.house.pass().await;
    let result = timeout(WAIT, handle.await_response()).await.unwrap();
    let result = serde_json::to_value(result.unwrap()).unwrap();
    assert_eq!(result["content"][0]["text"], "wrote hello");
    assert_eq!(desk.reached(), ["write"]);
}

#[tokio::test]
async fn a_refused_call_never_reaches_the_server_and_the_model_reads_why() {
    let desk = Desk::new().await;
    let (result, ()) = tokio::join!(desk.call("write"), desk.house.deny("not on a Friday"));
    let told = denial(result);
    assert!(
        told.contains("not on a Friday") && told.contains("c-1"),
        "{told}"
    );
    assert!(desk.reached().is_empty());
}

#[tokio::test]
async fn silence_at_the_gate_is_a_denial() {
    let desk = Desk::new().await;
    let (result, ()) = tokio::join!(desk.call("write"), async {
        desk.house.bench.until(|it| it.held.len() == 1).await;
        desk.house.bench.clock.advance(Duration::from_secs(61));
    });
    let told = denial(result);
    assert!(told.contains("no answer within"), "{told}");
    assert!(desk.reached().is_empty());
}

#[tokio::test]
async fn a_console_that_goes_while_a_call_is_held_or_before_it_is_a_denial() {
    let mut desk = Desk::new().await;
    let door = desk.house.door.take();
    let (result, ()) = tokio::join!(desk.call("write"), async {
        desk.house.bench.until(|it| it.held.len() == 1).await;
        drop(door);
    });
    let told = denial(result);
    assert!(told.contains("the console closed the connection"), "{told}");
    // Also for what would have been let pass.
    let told = denial(desk.call("echo").await);
    assert!(told.contains("no console listens at"), "{told}");
    assert!(told.contains("Start it with `cra`"), "{told}");
    assert!(desk.reached().is_empty());
}

#[tokio::test]
async fn a_call_that_the_agent_cancels_leaves_the_gate() {
    let desk = Desk::new().await;
    let call = ClientRequest::CallToolRequest(Request::new(asked("write")));
    let options = PeerRequestOptions::no_options();
    let handle = desk.agent.send_cancellable_request(call, options);
    let handle = handle.await.unwrap();
    let picture = desk.house.bench.until(|it| it.held.len() == 1).await;
    assert_eq!(picture.held[0].action(), "mcp.tools.write");
    handle.cancel(None).await.unwrap();
    let mut visitors = desk.house.door.as_ref().unwrap().connections();
    let gone = visitors.wait_for(|there| *there == 0);
    timeout(WAIT, gone).await.unwrap().unwrap();
    // Passing it now brings nobody back: the server never hears of it.
    desk.house.pass().await;
    desk.call("echo").await.unwrap();
    assert_eq!(desk.reached(), ["echo"]);
    let decided = desk.house.bench.snapshot();
    assert!(
        decided
            .decided
            .iter()
            .any(|it| it.outcome == HeldOutcome::Passed)
    );
}

#[tokio::test]
async fn a_call_that_the_agent_cancels_while_it_runs_is_cancelled_at_the_server() {
    let mut desk = Desk::new().await;
    let call = ClientRequest::CallToolRequest(Request::new(asked("wait")));
    let options = PeerRequestOptions::no_options();
    let handle = desk.agent.send_cancellable_request(call, options);
    let handle = handle.await.unwrap();
    // The server's own progress comes through as well.
    loop {
        let told = timeout(WAIT, desk.progress.recv()).await.unwrap().unwrap();
        if told.message.as_deref() == Some("at work") {
            break;
        }
    }
    handle.cancel(None).await.unwrap();
    // It is told in no time, but by nobody that could be waited for.
    while !desk.reached().contains(&"wait cancelled".to_owned()) {
        desk.call("echo").await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_crashes_is_told_to_whoever_waits() {
    let desk = Desk::new().await;
    let told = denial(desk.call("crash").await);
    assert!(
        told.contains("the MCP server `tools` ended (exit status: 7)"),
        "{told}"
    );
    let failed = recorded(&desk.house, "action_completed").await;
    assert_eq!(failed["error"]["code"], "lost");
}
