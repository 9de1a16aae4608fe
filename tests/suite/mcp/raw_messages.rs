//! Messages that the official client never sends. The server here repeats every message.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::*;

/// An agent that writes lines, and a server that sends them back.
struct ProxyLines {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl ProxyLines {
    fn new(console: &TestConsole, server: &[&str]) -> Self {
        let mut child = proxy(console, &["--server", "tools"])
            .env("PATH", "/usr/bin:/bin")
            .arg("--")
            .args(server)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stdin.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        let read = timeout(WAIT, read).await.expect("nothing came").unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Sends a line and a marker, and returns the replies up to the marker.
    async fn exchange(&mut self, line: &str) -> Vec<Value> {
        self.send(line).await;
        let mark = json!({"jsonrpc": "2.0", "method": "mark"});
        self.send(&mark.to_string()).await;
        let mut back = Vec::new();
        loop {
            let heard = self.receive().await.unwrap();
            if heard == mark {
                return back;
            }
            back.push(heard);
        }
    }
}

#[tokio::test]
async fn unknown_methods_and_responses_are_forwarded_unchanged() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut lines = ProxyLines::new(&console, &["cat"]);
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {"a": [1.5, null]}, "more": true}),
        json!({"jsonrpc": "2.0", "id": "two", "method": "initialize", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/unheard-of", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}),
    ] {
        assert_eq!(lines.exchange(&message.to_string()).await, [message]);
    }
}

#[tokio::test]
async fn no_spelling_of_a_tool_call_bypasses_the_gate() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut lines = ProxyLines::new(&console, &["cat"]);
    let wrong = [
        // There is no id to send the denial to.
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"write"}}"#,
        r#"{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call","params":{"name":"write"}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}]"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"write"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"write"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"write"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["write"]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        "tools/call",
    ];
    for line in wrong {
        let back = lines.exchange(line).await;
        assert_eq!(back.len(), 1, "{line}: {back:?}");
        assert!(back[0]["error"]["message"].is_string(), "{line}: {back:?}");
    }
    // Two readers could take these for two things: they are refused.
    for twice in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"write"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"write"}}"#,
    ] {
        let back = lines.exchange(twice).await;
        assert_eq!(back.len(), 1, "{back:?}");
        let message = back[0]["error"]["message"].as_str().unwrap();
        assert!(message.contains("`method`"), "{message}");
    }
    assert!(console.bench.snapshot().held.is_empty());
}

#[tokio::test]
async fn tool_name_with_any_characters_is_requested_unchanged() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut lines = ProxyLines::new(&console, &["cat"]);
    // Not a tool that an Atlas lets pass, only because it looks like one.
    for name in ["ech/o", "echo ", "ECHO", "../echo"] {
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}});
        lines.send(&call.to_string()).await;
        let reply = lines.receive().await.unwrap();
        assert_eq!(reply["result"]["isError"], true, "{name}: {reply}");
    }
}

#[tokio::test]
async fn second_request_with_the_same_id_is_refused() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut lines = ProxyLines::new(&console, &["cat"]);
    let held = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}"#;
    lines.send(held).await;
    console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    let other = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
    let back = lines.exchange(other).await;
    assert_eq!(back.len(), 1, "{back:?}");
    assert!(back[0]["error"].is_object(), "{back:?}");
    console.pass().await;
    assert_eq!(lines.receive().await.unwrap()["params"]["name"], "write");
}

#[tokio::test]
async fn server_cannot_answer_held_calls_and_may_only_send_messages() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let script = r#"
        echo "Starting up..."
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false}}'
        echo '{"jsonrpc":"2.0","method":"mark"}'
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
        cat
    "#;
    let mut lines = ProxyLines::new(&console, &["sh", "-c", script]);
    let held = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}"#;
    lines.send(held).await;
    console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    lines.send(r#"{"jsonrpc":"2.0","method":"go"}"#).await;
    assert_eq!(lines.receive().await.unwrap()["method"], "mark");
    console.pass().await;
    let reply = lines.receive().await.unwrap();
    assert_eq!(reply["result"], json!({"content": []}));
}

#[tokio::test]
async fn agent_disconnect_stops_the_server_and_ends_the_session() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut lines = ProxyLines::new(&console, &["cat"]);
    let held = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}"#;
    lines.send(held).await;
    console
        .bench
        .wait_until(|snapshot| snapshot.held.len() == 1)
        .await;
    drop(lines.stdin);
    let status = timeout(WAIT, lines.child.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
    let mut connections = console.server.as_ref().unwrap().connections();
    let gone = connections.wait_for(|there| *there == 0);
    timeout(WAIT, gone).await.unwrap().unwrap();
    recorded(&console, "session_ended").await;
}

#[tokio::test]
async fn server_that_does_not_start_or_exits_is_reported() {
    let console = TestConsole::with_atlas(ATLAS).await;
    for (server, reply) in [
        (
            "/no/such/server",
            "the MCP server `/no/such/server` does not start",
        ),
        ("false", "the MCP server ended: exit status: 1"),
    ] {
        let lines = ProxyLines::new(&console, &[server]);
        // Open until it is over: it is not the agent that leaves.
        let _stdin = lines.stdin;
        let output = timeout(WAIT, lines.child.wait_with_output());
        let output = output.await.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(reply), "{text}");
    }
}
