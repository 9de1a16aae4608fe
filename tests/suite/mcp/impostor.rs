//! A process in the console's place at its socket: the proxy passes nothing on that it allows.

use super::*;
use crate::impostor::{Impostor, Trick};

/// The text of a result that is an error.
fn error_text(result: &CallToolResult) -> String {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    serde_json::to_string(&result.content).unwrap()
}

#[tokio::test]
async fn call_allowed_by_another_process_never_reaches_the_server() {
    for trick in [Trick::Allow, Trick::AllowWithProof] {
        let fixture = ProxyFixture::new().await;
        let _impostor = Impostor::at(&fixture.console.path(), trick);
        let reply = error_text(&fixture.call("write").await.unwrap());
        assert!(reply.contains("did not come from the console"), "{reply}");
        assert_eq!(fixture.reached(), [""; 0], "{trick:?}");
    }
}

#[tokio::test]
async fn denial_changed_into_an_approval_never_reaches_the_server() {
    let fixture = ProxyFixture::new().await;
    let _impostor = Impostor::at(&fixture.console.path(), Trick::Change);
    let (reply, ()) = tokio::join!(fixture.call("write"), fixture.console.deny("no"));
    let reply = error_text(&reply.unwrap());
    assert!(reply.contains("did not come from the console"), "{reply}");
    assert_eq!(fixture.reached(), [""; 0]);
}

#[tokio::test]
async fn replayed_approval_never_reaches_the_server() {
    let fixture = ProxyFixture::new().await;
    let _impostor = Impostor::at(&fixture.console.path(), Trick::Replay);
    fixture.call("echo").await.unwrap();
    assert_eq!(fixture.reached().len(), 1);
    let reply = error_text(&fixture.call("write").await.unwrap());
    assert!(reply.contains("did not come from the console"), "{reply}");
    assert_eq!(fixture.reached().len(), 1);
}

#[tokio::test]
async fn a_proxy_without_a_key_denies_and_says_how_to_get_one() {
    let console = TestConsole::with_atlas(ATLAS).await;
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let mut command = proxy_without_key(&console, &["--server", "tools"]);
    server::command(&calls, |program, arguments| {
        command.arg("--").arg(program).args(arguments);
    });
    server::environment(&mut command, &calls);
    let (sender, _progress) = mpsc::unbounded_channel();
    let (child, _) = TokioChildProcess::builder(command)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let agent = timeout(WAIT, Agent(sender).serve(child)).await;
    let agent = agent.unwrap().unwrap();
    let reply = timeout(WAIT, agent.call_tool(tool_call("echo"))).await;
    let reply = error_text(&reply.unwrap().unwrap());
    assert!(reply.contains("cra trace key --answers"), "{reply}");
    assert!(!calls.exists() || std::fs::read_to_string(calls).unwrap().is_empty());
}
