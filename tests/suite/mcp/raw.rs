//! What the official client never says. The server here repeats whatever reaches it.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::*;

/// An agent that writes lines, and a server that sends them back.
struct Lines {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Lines {
    fn new(house: &House, server: &[&str]) -> Self {
        let mut child = proxy(house, &["--server", "tools"])
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

    async fn say(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.stdin.write_all(line.as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line);
        let read = timeout(WAIT, read).await.expect("nothing came").unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// What comes back after this was said, and a mark behind it.
    async fn back(&mut self, line: &str) -> Vec<Value> {
        self.say(line).await;
        let mark = json!({"jsonrpc": "2.0", "method": "mark"});
        self.say(&mark.to_string()).await;
        let mut back = Vec::new();
        loop {
            let heard = self.hear().await.unwrap();
            if heard == mark {
                return back;
            }
            back.push(heard);
        }
    }
}

#[tokio::test]
async fn methods_that_nobody_knows_and_answers_go_by_as_they_are() {
    let house = House::under(ATLAS).await;
    let mut lines = Lines::new(&house, &["cat"]);
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {"a": [1.5, null]}, "more": true}),
        json!({"jsonrpc": "2.0", "id": "two", "method": "initialize", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/unheard-of", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}),
    ] {
        assert_eq!(lines.back(&message.to_string()).await, [message]);
    }
}

#[tokio::test]
async fn no_way_of_writing_a_use_of_a_tool_gets_past_the_gate() {
    let house = House::under(ATLAS).await;
    let mut lines = Lines::new(&house, &["cat"]);
    let wrong = [
        // Nobody could be told that it is denied.
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
        let back = lines.back(line).await;
        assert_eq!(back.len(), 1, "{line}: {back:?}");
        assert!(back[0]["error"]["message"].is_string(), "{line}: {back:?}");
    }
    // Two readers could take these for two things: they are refused.
    for twice in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"write"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"write"}}"#,
    ] {
        let back = lines.back(twice).await;
        assert_eq!(back.len(), 1, "{back:?}");
        let message = back[0]["error"]["message"].as_str().unwrap();
        assert!(message.contains("`method`"), "{message}");
    }
    assert!(house.bench.snapshot().held.is_empty());
}

#[tokio::test]
async fn a_tool_is_asked_for_by_its_own_name_whatever_is_in_it() {
    let house = House::under(ATLAS).await;
    let mut lines = Lines::new(&house, &["cat"]);
    // Not a tool that an Atlas lets pass, only because it looks like one.
    for name in ["ech/o", "echo ", "ECHO", "../echo"] {
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}});
        lines.say(&call.to_string()).await;
        let told = lines.hear().await.unwrap();
        assert_eq!(told["result"]["isError"], true, "{name}: {told}");
    }
}

#[tokio::test]
async fn two_requests_by_one_name_are_not_both_taken() {
    let house = House::under(ATLAS).await;
    let mut lines = Lines::new(&house, &["cat"]);
    let held = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}"#;
    lines.say(held).await;
    house.bench.until(|it| it.held.len() == 1).await;
    let other = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;
    let back = lines.back(other).await;
    assert_eq!(back.len(), 1, "{back:?}");
    assert!(back[0]["error"].is_object(), "{back:?}");
    house.pass().await;
    assert_eq!(lines.hear().await.unwrap()["params"]["name"], "write");
}

#[tokio::test]
async fn a_server_cannot_answer_what_is_held_and_says_nothing_but_messages() {
    let house = House::under(ATLAS).await;
    let script = r#"
        echo "Starting up..."
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false}}'
        echo '{"jsonrpc":"2.0","method":"mark"}'
        read -r line
        echo '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
        cat
    "#;
    let mut lines = Lines::new(&house, &["sh", "-c", script]);
    let held = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}"#;
    lines.say(held).await;
    house.bench.until(|it| it.held.len() == 1).await;
    lines.say(r#"{"jsonrpc":"2.0","method":"go"}"#).await;
    assert_eq!(lines.hear().await.unwrap()["method"], "mark");
    house.pass().await;
    let told = lines.hear().await.unwrap();
    assert_eq!(told["result"], json!({"content": []}));
}

#[tokio::test]
async fn an_agent_that_leaves_takes_the_server_with_it_and_ends_its_session() {
    let house = House::under(ATLAS).await;
    let mut lines = Lines::new(&house, &["cat"]);
    let held = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}"#;
    lines.say(held).await;
    house.bench.until(|it| it.held.len() == 1).await;
    drop(lines.stdin);
    let status = timeout(WAIT, lines.child.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
    let mut visitors = house.door.as_ref().unwrap().connections();
    let gone = visitors.wait_for(|there| *there == 0);
    timeout(WAIT, gone).await.unwrap().unwrap();
    recorded(&house, "session_ended").await;
}

#[tokio::test]
async fn a_server_that_does_not_start_or_ends_is_told() {
    let house = House::under(ATLAS).await;
    for (server, told) in [
        (
            "/no/such/server",
            "the MCP server `/no/such/server` does not start",
        ),
        ("false", "the MCP server ended: exit status: 1"),
    ] {
        let lines = Lines::new(&house, &[server]);
        // Open until it is over: it is not the agent that leaves.
        let _stdin = lines.stdin;
        let output = timeout(WAIT, lines.child.wait_with_output());
        let output = output.await.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(told), "{said}");
    }
}
