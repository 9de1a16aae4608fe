//! Agents that editors run: an editor's messages, the real program between, a scripted agent behind it.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::socket::TestConsole;
use super::support::root;

const ATLAS: &str = r#"
atlas_version: "1.0"
atlas_id: "org.test.acp"
version: "1.0.0"
name: "Editor"
description: "An agent of an editor"
default_decision: allow
actions:
  - { action_id: "shell.run", name: "Run", risk_tier: low }
  - { action_id: "file.read", name: "Read", risk_tier: low }
  - { action_id: "file.write", name: "Write", risk_tier: low }
  - { action_id: "acp.think", name: "Think", risk_tier: low }
checkpoints:
  - checkpoint_id: "dangerous"
    name: "Deletes"
    trigger: { type: action_pre, patterns: ["shell.run"] }
    when: { path: params.command, contains: "rm " }
    mode: blocking
    questions:
      - { question_id: "why", question: "Why?", response_type: text }
  - checkpoint_id: "secrets"
    name: "Reads or writes secrets"
    trigger: { type: action_pre, patterns: ["file.*"] }
    when: { path: params.path, contains: "secret" }
    mode: blocking
  - checkpoint_id: "prompts"
    name: "Prompts about production"
    trigger: { type: keyword_match, keywords: ["production"] }
    mode: blocking
"#;

const WAIT: Duration = Duration::from_secs(20);

/// An editor in front of the proxy.
struct Editor {
    console: TestConsole,
    folder: TempDir,
    _proxy: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl Editor {
    /// Starts the proxy with an agent in that mode, and opens a session.
    async fn start(mode: Option<&str>, files: bool) -> (Self, Value) {
        let console = TestConsole::with_atlas(ATLAS).await;
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .args(["acp-proxy", "--agent", "bot", "--key", &console.key()])
            .arg("--data-dir")
            .arg(console.folder())
            .arg("--socket")
            .arg(console.path())
            .arg("--")
            .arg("python3")
            .arg(root().join("tests/data/acp_agent.py"))
            .args(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut proxy = command.spawn().unwrap();
        let output = BufReader::new(proxy.stdout.take().unwrap()).lines();
        let mut editor = Self {
            console,
            folder,
            input: proxy.stdin.take().unwrap(),
            _proxy: proxy,
            output,
            last_id: 0,
        };
        let capabilities = json!({"fs": {"readTextFile": files, "writeTextFile": files}});
        let asked = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let initialized = editor.call("initialize", asked).await;
        let told = &initialized["result"]["told"]["fs"];
        assert_eq!(*told, json!({"readTextFile": true, "writeTextFile": true}));
        let cwd = editor.folder.path().to_str().unwrap().to_owned();
        let opened = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
        let opened = opened.await;
        (editor, opened)
    }

    async fn new() -> Self {
        Self::start(None, true).await.0
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = timeout(WAIT, self.output.next_line()).await;
        let line = line.expect("the proxy sent nothing").unwrap();
        serde_json::from_str(&line.expect("the proxy ended")).unwrap()
    }

    /// Sends a request, and returns its response. Updates in between are dropped.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = 1000 + self.last_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    async fn prompt(&mut self, script: &[Value]) -> u64 {
        let text = Value::from(script.to_vec()).to_string();
        let blocks = json!([{"type": "text", "text": text}]);
        self.request(
            "session/prompt",
            json!({"sessionId": "s-1", "prompt": blocks}),
        )
        .await
    }

    /// Waits for a request of the agent.
    async fn asked(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    async fn answer(&mut self, asked: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
            .await;
    }

    /// Returns the responses that the agent got, when its turn has ended.
    async fn finished(&mut self) -> Vec<Value> {
        self.finished_with_texts().await.0
    }

    async fn finished_with_texts(&mut self) -> (Vec<Value>, Vec<String>) {
        loop {
            let message = self.next().await;
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "agent_message_chunk" {
                let text = update["content"]["text"].as_str().unwrap();
                return serde_json::from_str(text).unwrap();
            }
        }
    }

    async fn wait_held(&self) {
        self.console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
    }

    /// Payload of the newest event of a type.
    async fn recorded(&self, event_type: &str) -> Value {
        super::mcp::recorded(&self.console, event_type).await
    }
}

fn permission(call: &Value) -> Value {
    json!({"method": "session/request_permission", "params": {"toolCall": call, "options": [
        {"optionId": "forever", "name": "Always", "kind": "allow_always"},
        {"optionId": "once", "name": "Once", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"}]}})
}

fn shell(command: &str) -> Value {
    permission(&json!({"toolCallId": "t-1", "kind": "execute", "title": command}))
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

fn ended(status: &str) -> Value {
    json!({"method": "session/update", "params": {"update":
        {"sessionUpdate": "tool_call_update", "toolCallId": "t-1", "status": status,
         "content": [{"type": "content", "content": {"type": "text", "text": "3 files"}}]}}})
}

#[tokio::test]
async fn a_call_that_no_gate_holds_is_asked_of_the_editors_user_for_one_time_only() {
    let mut editor = Editor::new().await;
    editor.prompt(&[shell("ls"), ended("completed")]).await;
    let asked = editor.asked("session/request_permission").await;
    let options = asked["params"]["options"].as_array().unwrap();
    let options: Vec<_> = options.iter().map(|option| &option["optionId"]).collect();
    assert_eq!(options, ["once", "no"]);
    editor.answer(&asked, selected("once")).await;
    assert_eq!(
        editor.finished().await,
        [json!({"result": selected("once")})]
    );
    let completed = editor.recorded("action_completed").await;
    assert_eq!(completed["result_summary"], "3 files");
}

#[tokio::test]
async fn an_option_that_was_not_offered_is_a_rejection() {
    let mut editor = Editor::new().await;
    editor.prompt(&[shell("ls")]).await;
    let asked = editor.asked("session/request_permission").await;
    editor.answer(&asked, selected("forever")).await;
    assert_eq!(editor.finished().await, [json!({"result": selected("no")})]);
}

#[tokio::test]
async fn a_held_call_runs_when_an_operator_approves_it_and_the_editor_is_not_asked() {
    let mut editor = Editor::new().await;
    editor
        .prompt(&[shell("rm -rf x"), ended("completed")])
        .await;
    editor.console.pass().await;
    assert_eq!(
        editor.finished().await,
        [json!({"result": selected("once")})]
    );
    let attempted = editor.recorded("action_attempted").await;
    assert_eq!(attempted["action_params"]["command"], "rm -rf x");
}

#[tokio::test]
async fn a_denied_call_is_rejected_and_the_editor_shows_the_reason() {
    let mut editor = Editor::new().await;
    editor.prompt(&[shell("rm -rf x")]).await;
    editor.console.deny("not on a Friday").await;
    let shown = editor.asked("session/update").await;
    let update = &shown["params"]["update"];
    assert_eq!(update["status"], "failed");
    assert!(update.to_string().contains("not on a Friday"), "{update}");
    assert_eq!(editor.finished().await, [json!({"result": selected("no")})]);
}

#[tokio::test]
async fn a_held_call_is_answered_as_cancelled_when_the_user_cancels_the_turn() {
    let mut editor = Editor::new().await;
    editor.prompt(&[shell("rm -rf x")]).await;
    editor.wait_held().await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s-1"}});
    editor.send(cancel).await;
    let cancelled = json!({"result": {"outcome": {"outcome": "cancelled"}}});
    assert!(editor.finished().await.contains(&cancelled));
    // A late approval reaches nothing.
    editor.console.pass().await;
    editor.prompt(&[shell("ls")]).await;
    let asked = editor.asked("session/request_permission").await;
    assert_eq!(asked["params"]["toolCall"]["title"], "ls");
}

#[tokio::test]
async fn files_and_terminals_reach_the_editor_only_after_a_permission() {
    let mut editor = Editor::new().await;
    let read = json!({"method": "fs/read_text_file", "params": {"path": "/p/secret"}});
    let open =
        json!({"method": "terminal/create", "params": {"command": "rm", "args": ["-r", "a b"]}});
    let odd = json!({"method": "terminal/type", "params": {"text": "x"}});
    editor.prompt(&[read, open, odd]).await;
    editor.console.deny("a secret").await;
    editor.console.pass().await;
    let asked = editor.asked("terminal/create").await;
    let attempted = editor.recorded("action_attempted").await;
    assert_eq!(attempted["action_params"]["command"], "rm -r 'a b'");
    editor.answer(&asked, json!({"terminalId": "1"})).await;
    let got = editor.finished().await;
    let denied = got[0]["error"]["message"].as_str().unwrap();
    assert!(denied.contains("a secret"), "{denied}");
    assert_eq!(got[1]["result"]["terminalId"], "1");
    let unknown = got[2]["error"]["message"].as_str().unwrap();
    assert!(unknown.contains("acp.other"), "{unknown}");
}

#[tokio::test]
async fn the_proxy_reads_and_writes_files_for_an_editor_that_does_not() {
    let (mut editor, _) = Editor::start(None, false).await;
    let path = editor.folder.path().join("a.txt");
    let write =
        json!({"method": "fs/write_text_file", "params": {"path": path, "content": "1\n2\n"}});
    let read = json!({"method": "fs/read_text_file", "params": {"path": path, "line": 2}});
    let gone = json!({"method": "fs/read_text_file", "params": {"path": "/p/none"}});
    editor.prompt(&[write, read, gone]).await;
    let got = editor.finished().await;
    assert_eq!(got[1]["result"]["content"], "2\n");
    assert!(got[2]["error"].is_object(), "{got:?}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "1\n2\n");
}

#[tokio::test]
async fn a_change_that_was_shown_and_permitted_is_written_without_a_second_question() {
    let (mut editor, _) = Editor::start(None, false).await;
    let path = editor.folder.path().join("secret.txt");
    let shown = json!({"toolCallId": "t-1", "kind": "edit", "title": "edit",
        "content": [{"type": "diff", "path": path, "oldText": null, "newText": "shown"}]});
    let write = |text: &str| json!({"method": "fs/write_text_file", "params": {"path": path, "content": text}});
    editor
        .prompt(&[permission(&shown), write("shown"), write("other")])
        .await;
    editor.console.pass().await;
    // The second change was not shown, so it is held.
    editor.wait_held().await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "shown");
    editor.console.deny("not shown").await;
    let got = editor.finished().await;
    assert!(got[2]["error"].is_object(), "{got:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "shown");
}

#[tokio::test]
async fn a_prompt_that_a_gate_holds_reaches_the_agent_only_when_it_is_passed() {
    let mut editor = Editor::new().await;
    let think =
        |text: &str| permission(&json!({"toolCallId": "t-2", "kind": "think", "title": text}));
    let id = editor.prompt(&[think("look at production")]).await;
    editor.console.deny("no").await;
    let shown = editor.asked("session/update").await;
    assert!(shown.to_string().contains("no"), "{shown}");
    let refused = editor.next().await;
    assert_eq!(refused["id"], id);
    assert_eq!(refused["result"]["stopReason"], "refusal");
}

#[tokio::test]
async fn a_mode_in_which_the_agent_asks_for_nothing_needs_a_permission() {
    let (mut editor, opened) = Editor::start(None, true).await;
    assert_eq!(opened["result"]["sessionId"], "s-1");
    let set = |mode: &str| json!({"sessionId": "s-1", "modeId": mode});
    let plan = editor.call("session/set_mode", set("plan")).await;
    assert_eq!(plan["result"]["took"], "session/set_mode");
    let yolo = editor.call("session/set_mode", set("yolo")).await;
    let why = yolo["error"]["message"].as_str().unwrap();
    assert!(why.contains("acp.permissive_mode"), "{why}");
    let (_editor, opened) = Editor::start(Some("bypassPermissions"), true).await;
    assert!(opened["error"]["message"].is_string(), "{opened}");
}

#[tokio::test]
async fn a_tool_that_ran_without_asking_is_on_record() {
    let mut editor = Editor::new().await;
    let ran = json!({"method": "session/update", "params": {"update":
        {"sessionUpdate": "tool_call", "toolCallId": "t-1", "kind": "execute", "title": "rm x", "status": "pending"}}});
    editor.prompt(&[ran, ended("completed")]).await;
    editor.finished().await;
    let error = editor.recorded("error_occurred").await;
    assert_eq!(error["error_type"], "ran_unasked");
    assert!(error["message"].as_str().unwrap().contains("rm x"));
}

#[tokio::test]
async fn without_a_console_nothing_runs() {
    let mut editor = Editor::new().await;
    drop(editor.console.server.take());
    let id = editor.prompt(&[shell("ls")]).await;
    let shown = editor.asked("session/update").await;
    assert!(shown.to_string().contains("no console listens"), "{shown}");
    let refused = editor.next().await;
    assert_eq!(
        (refused["id"].as_u64(), &refused["result"]["stopReason"]),
        (Some(id), &json!("refusal"))
    );
}

#[tokio::test]
async fn ambiguous_and_repeated_requests_are_refused() {
    let mut editor = Editor::new().await;
    let line = r#"{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s-1","modeId":"plan","modeId":"yolo"}}"#;
    editor
        .input
        .write_all(format!("{line}\n").as_bytes())
        .await
        .unwrap();
    let refused = editor.next().await;
    assert_eq!(refused["id"], 5);
    assert!(refused["error"].is_object(), "{refused}");
}
