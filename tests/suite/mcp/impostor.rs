//! A process in the console's place at its socket: the proxy passes nothing on that it allows.

use super::*;
use crate::impostor::{Impostor, Trick};

/// The text of a result that is an error.
fn error_text(result: &CallToolResult) -> String {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    serde_json::to_string(&result.content).unwrap()
}

#[tokio::test]
async fn a_call_that_another_process_at_the_socket_allows_never_reaches_the_server() {
    for trick in [Trick::Allow, Trick::AllowWithProof] {
        let desk = Desk::new().await;
        let _impostor = Impostor::at(&desk.house.path(), trick);
        let told = error_text(&desk.call("write").await.unwrap());
        assert!(told.contains("not given by the console"), "{told}");
        assert_eq!(desk.reached(), [""; 0], "{trick:?}");
    }
}

#[tokio::test]
async fn a_denial_that_is_changed_into_a_yes_never_reaches_the_server() {
    let desk = Desk::new().await;
    let _impostor = Impostor::at(&desk.house.path(), Trick::Change);
    let (told, ()) = tokio::join!(desk.call("write"), desk.house.deny("no"));
    let told = error_text(&told.unwrap());
    assert!(told.contains("not given by the console"), "{told}");
    assert_eq!(desk.reached(), [""; 0]);
}

#[tokio::test]
async fn an_earlier_yes_that_is_repeated_never_reaches_the_server() {
    let desk = Desk::new().await;
    let _impostor = Impostor::at(&desk.house.path(), Trick::Replay);
    desk.call("echo").await.unwrap();
    assert_eq!(desk.reached().len(), 1);
    let told = error_text(&desk.call("write").await.unwrap());
    assert!(told.contains("not given by the console"), "{told}");
    assert_eq!(desk.reached().len(), 1);
}

#[tokio::test]
async fn a_proxy_without_a_key_denies_and_says_how_to_get_one() {
    let house = House::under(ATLAS).await;
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let mut command = proxy_without_key(&house, &["--server", "tools"]);
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
    let told = timeout(WAIT, agent.call_tool(asked("echo"))).await;
    let told = error_text(&told.unwrap().unwrap());
    assert!(told.contains("cra trace key --answers"), "{told}");
    assert!(!calls.exists() || std::fs::read_to_string(calls).unwrap().is_empty());
}
