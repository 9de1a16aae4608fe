//! A console that answers without naming a run: no caller treats that as an approval.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cra_core::gateway::protocol::call::{AgentCall, AuthenticatedCall};
use cra_core::gateway::protocol::proof::AnswerSigner;
use cra_core::gateway::protocol::rpc;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::Command;
use tokio::time::timeout;

use super::support::signer_with_seed;

const WAIT: Duration = Duration::from_secs(20);

/// Answers to `action.request` that allow nothing.
fn empty_answers() -> Vec<Value> {
    vec![
        json!({}),
        json!({"given": {"contexts": [], "guidance": []}}),
        json!({"execution": null}),
        json!({"execution": 7}),
        json!({"execution": ["e-1"]}),
        json!({"allowed": true, "approved_by": "op-1"}),
        json!(true),
        json!("allowed"),
        json!([]),
    ]
}

/// A console that starts every session and answers every request for an action with `answer`.
fn listen(socket: &Path, answer: Value) {
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answer.clone()));
        }
    });
}

/// The key that the console answers with.
fn signer() -> AnswerSigner {
    AnswerSigner::derive(&signer_with_seed(&"log-1".parse().unwrap(), 7))
}

async fn serve(stream: UnixStream, answer: Value) {
    let signer = signer();
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let pending = rpc::RpcRequest::read(line.as_bytes());
        let result = match pending.call {
            Ok(AuthenticatedCall {
                call: AgentCall::Request(_),
                ..
            }) => answer.clone(),
            Ok(_) | Err(_) => json!({}),
        };
        let challenged = pending.challenged.unwrap();
        let reply = rpc::proven_answer(pending.id.as_ref(), Ok(result), &challenged, &signer);
        let _ = writer.write_all(reply.as_bytes()).await;
    }
}

#[tokio::test]
async fn a_hook_denies_when_an_answer_names_no_execution() {
    for answer in empty_answers() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("console.sock");
        listen(&socket, answer.clone());
        let payload = json!({
            "session_id": "s-1", "cwd": "/src", "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t-1",
        });
        let mut child = Command::new(env!("CARGO_BIN_EXE_cra"))
            .env_clear()
            .args(["hook", "claude-code", "--data-dir"])
            .arg(folder.path())
            .arg("--socket")
            .arg(&socket)
            .arg("--key")
            .arg(signer().verifier().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(payload.to_string().as_bytes())
            .await
            .unwrap();
        drop(stdin);
        let output = timeout(WAIT, child.wait_with_output())
            .await
            .unwrap()
            .unwrap();
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        let decision = &reply["hookSpecificOutput"]["permissionDecision"];
        assert_eq!(decision, "deny", "{answer}: {reply}");
        let reason = reply["hookSpecificOutput"]["permissionDecisionReason"].as_str();
        let reason = reason.unwrap();
        assert!(
            reason.contains("`execution` is missing or not a string"),
            "{answer}: {reason}"
        );
    }
}

#[tokio::test]
async fn the_mcp_proxy_denies_when_an_answer_names_no_execution() {
    for answer in empty_answers() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("console.sock");
        listen(&socket, answer.clone());
        // The server sends back what reaches it.
        let mut child = Command::new(env!("CARGO_BIN_EXE_cra"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .args(["mcp-proxy", "--server", "tools", "--data-dir"])
            .arg(folder.path())
            .arg("--socket")
            .arg(&socket)
            .arg("--key")
            .arg(signer().verifier().to_string())
            .args(["--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "write", "arguments": {}},
        });
        stdin
            .write_all(format!("{call}\n").as_bytes())
            .await
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(WAIT, lines.next_line()).await.unwrap().unwrap();
        let reply: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!(reply["id"], 1);
        assert_eq!(reply["result"]["isError"], true, "{answer}: {reply}");
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("`execution` is missing or not a string"),
            "{answer}: {text}"
        );
        drop(stdin);
        timeout(WAIT, child.wait()).await.unwrap().unwrap();
    }
}
