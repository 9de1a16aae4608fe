//! Numbers and keys in what MCP clients send: what is judged is what reaches the server.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::super::socket::numbers::INEXACT;
use super::*;

/// A program that is spoken to in lines.
struct RawProxy {
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl RawProxy {
    fn new(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            _child: child,
        }
    }

    /// The program in front of a server that is this command.
    fn proxy(console: &TestConsole, server: &[&str]) -> Self {
        let mut command = proxy(console, &["--server", "tools"]);
        command.env("PATH", "/usr/bin:/bin").arg("--").args(server);
        Self::new(command)
    }

    async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stdin.write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> String {
        let mut line = String::new();
        let read = timeout(WAIT, self.stdout.read_line(&mut line));
        read.await.expect("nothing came").unwrap();
        line.strip_suffix('\n').unwrap_or(&line).to_owned()
    }

    async fn receive_json(&mut self) -> Value {
        serde_json::from_str(&self.receive().await).unwrap()
    }
}

/// Odd ways of writing numbers that are carried exactly.
const ODD: [&str; 8] = [
    "1.0",
    "1e2",
    "10E-1",
    "0.1",
    "-0.0",
    "18446744073709551615",
    "9007199254740993",
    "1.50000",
];

#[tokio::test]
async fn call_reaches_the_server_byte_for_byte_as_it_was_evaluated() {
    let console = TestConsole::with_atlas(ATLAS).await;
    // The server sends back what reaches it.
    let mut talk = RawProxy::proxy(&console, &["cat"]);
    for (id, token) in ODD.iter().enumerate() {
        let line = format!(
            r#"{{"method":"tools/call", "jsonrpc":"2.0","params":{{"name":"echo","arguments":{{"z": {token},"a":"\u0061"}}}},"id":{id}}}"#
        );
        talk.send(&line).await;
        assert_eq!(talk.receive().await, line);
    }
}

#[tokio::test]
async fn server_response_reaches_the_agent_byte_for_byte() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let answer = r#"{"id":1 ,"jsonrpc":"2.0","result":{"structuredContent":{"id":123456789012345678901234567890,"x":1e400},"content":[{"type":"text","text":"a\u0062"}]}}"#;
    let script = format!("read line; printf '%s\\n' '{answer}'; cat");
    let mut talk = RawProxy::proxy(&console, &["sh", "-c", &script]);
    talk.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#)
        .await;
    assert_eq!(talk.receive().await, answer);
}

#[tokio::test]
async fn call_with_an_inexact_number_or_duplicate_key_never_reaches_the_server() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut talk = RawProxy::proxy(&console, &["cat"]);
    let twice = r#"1,"to":2"#;
    for value in INEXACT.into_iter().chain([twice]) {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"echo","arguments":{{"to":{value}}}}}}}"#
        );
        talk.send(&line).await;
        let reply = talk.receive_json().await;
        assert_eq!(reply["id"], 5, "{value}: {reply}");
        assert!(
            reply.get("method").is_none(),
            "{value} reached the server: {reply}"
        );
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains("`arguments.to`"), "{value}: {message}");
    }
    // A message with two `method` fields is neither a call nor a harmless query.
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"write"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"\u0061":2}}"#,
    ] {
        talk.send(line).await;
        let reply = talk.receive_json().await;
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains("duplicate key"), "{reply}");
    }
    assert!(console.bench.snapshot().held.is_empty());
}

#[tokio::test]
async fn call_with_an_ambiguous_field_name_never_reaches_the_server() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut talk = RawProxy::proxy(&console, &["cat"]);
    // Readers that ignore case take the Kelvin sign for k, the long s for s and the dotless i for i.
    let other = r#"{"name":"echo","arguments":{"to":"mallory"}}"#;
    for name in [
        "Params",
        "param\u{17f}",
        "PARAM\u{17f}",
        "\u{131}d",
        "\u{130}d",
        "Method",
        "Result",
        "result",
        "error",
        "extra",
    ] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"to":"alice"}}}},"{name}":{other}}}"#
        );
        talk.send(&line).await;
        let reply = talk.receive_json().await;
        assert!(
            reply.get("method").is_none(),
            "`{name}` reached the server: {reply}"
        );
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains("is not a field"), "{name}: {message}");
    }
    for name in ["Arguments", "argument\u{17f}", "Name", "_Meta"] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{{"name":"echo","arguments":{{"to":"alice"}},"{name}":{other}}}}}"#
        );
        talk.send(&line).await;
        let reply = talk.receive_json().await;
        assert!(
            reply.get("method").is_none(),
            "`{name}` reached the server: {reply}"
        );
    }
    // Other messages may carry fields of their own, but none that is read as a known one.
    let line = r#"{"jsonrpc":"2.0","method":"ping","id":9,"extra":1}"#;
    talk.send(line).await;
    assert_eq!(talk.receive().await, line);
    talk.send(r#"{"jsonrpc":"2.0","method":"ping","id":9,"ſ":1,"paramſ":{}}"#)
        .await;
    let reply = talk.receive_json().await;
    assert!(reply.get("method").is_none(), "{reply}");
}

#[tokio::test]
async fn a_carriage_return_hides_no_second_message_from_the_gate() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut talk = RawProxy::proxy(&console, &["cat"]);
    // Some servers end a line at a carriage return: to them the call in the middle is a line of its own.
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write"}}"#;
    let hidden = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"hello\",\"params\":\r{call}\r}}");
    talk.send(&hidden).await;
    let reached = talk.receive().await;
    assert_eq!(reached, hidden.replace('\r', " "));
}

#[tokio::test]
async fn messages_that_are_not_tool_calls_keep_their_numbers() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut talk = RawProxy::proxy(&console, &["cat"]);
    let line = r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"n":123456789012345678901234567890}}"#;
    talk.send(line).await;
    assert_eq!(talk.receive().await, line);
}

#[tokio::test]
async fn own_tools_refuse_inexact_numbers_and_duplicate_keys() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
    command
        .env_clear()
        .args(["mcp", "--agent", "bot", "--data-dir"])
        .arg(console.folder())
        .arg("--socket")
        .arg(console.path())
        .arg("--key")
        .arg(console.key());
    let mut talk = RawProxy::new(command);
    talk.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#).await;
    let begun = talk.receive_json().await;
    assert_eq!(begun["id"], 0, "{begun}");
    talk.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    let twice = r#"1,"to":2"#;
    for value in INEXACT.into_iter().chain([twice]) {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"ask_permission","arguments":{{"action":"mcp.tools.echo","params":{{"to":{value}}}}}}}}}"#
        );
        talk.send(&line).await;
        let reply = talk.receive_json().await;
        assert_eq!(reply["id"], 5, "{value}: {reply}");
        let message = reply["error"]["message"].as_str();
        let message = message.unwrap_or_else(|| panic!("{value} was taken: {reply}"));
        assert!(
            message.contains("`arguments.params.to`"),
            "{value}: {message}"
        );
    }
    // An exact one is asked about as before.
    talk.send(r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"ask_permission","arguments":{"action":"mcp.tools.echo","params":{"to":18446744073709551615}}}}"#).await;
    let reply = talk.receive_json().await;
    assert!(
        reply["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("execution"),
        "{reply}"
    );
}
