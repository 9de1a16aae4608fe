//! An agent that uses the tools of the program.

use super::*;
use crate::socket::bypass::{ASKED, check_found};

pub(super) struct ToolClient {
    console: TestConsole,
    agent: RunningService<RoleClient, ()>,
}

impl ToolClient {
    async fn new() -> Self {
        Self::with_atlas(ATLAS).await
    }

    pub(super) async fn with_atlas(atlas: &str) -> Self {
        let console = TestConsole::with_atlas(atlas).await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
        command
            .env_clear()
            .args(["mcp", "--agent", "bot", "--data-dir"])
            .arg(console.folder())
            .arg("--socket")
            .arg(console.path())
            .arg("--key")
            .arg(console.key());
        let child = TokioChildProcess::new(command).unwrap();
        let agent = timeout(WAIT, ().serve(child)).await.unwrap().unwrap();
        Self { console, agent }
    }

    pub(super) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().unwrap().clone();
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        timeout(WAIT, self.agent.call_tool(call))
            .await
            .expect("it was never answered")
            .unwrap()
    }

    pub(super) async fn call_ok(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{result:?}");
        serde_json::from_str(&words(&result)).unwrap()
    }
}

#[tokio::test]
async fn every_tool_has_a_description_and_an_input_schema() {
    let client = ToolClient::new().await;
    let tools = client.agent.list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(
        names,
        [
            "request_context",
            "check_action",
            "answer_checkpoint",
            "give_feedback",
            "ask_permission",
            "report_result",
            "tell_turn",
            "report_wrapper",
            "report_wrapper_check"
        ]
    );
    for tool in tools {
        assert!(tool.description.as_ref().unwrap().len() > 40, "{tool:?}");
        let schema = Value::Object(tool.input_schema.as_ref().clone());
        jsonschema::draft202012::meta::validate(&schema).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{tool:?}");
        let fields = schema["properties"].as_object().unwrap();
        assert!(
            fields
                .values()
                .all(|field| field["description"].is_string()),
            "{schema}"
        );
        // Who it is, and its secret, are not the model's to say.
        assert!(!fields.contains_key("session") && !fields.contains_key("key"));
    }
}

#[tokio::test]
async fn agent_checks_requests_and_reports_with_tools() {
    let client = ToolClient::new().await;
    let checked = json!({"actions": [{"action": "mcp.tools.write", "params": {}}]});
    let checked = client.call_ok("check_action", checked).await;
    assert!(checked.to_string().contains("write-gate"), "{checked}");
    assert!(client.console.bench.snapshot().held.is_empty());
    let permission = json!({"action": "mcp.tools.write", "params": {"text": "x"}});
    let pending = client.call_ok("ask_permission", permission.clone());
    let (allowed, ()) = tokio::join!(pending, client.console.pass());
    let done = json!({"execution": allowed["execution"], "result": "wrote x"});
    assert_eq!(client.call_ok("report_result", done).await, json!({}));
    let completed = recorded(&client.console, "action_completed").await;
    assert_eq!(completed["result_summary"], "wrote x");
    let pending = client.call("ask_permission", permission);
    let (refused, ()) = tokio::join!(pending, client.console.deny("not again"));
    let reply = denial(Ok(refused));
    assert!(reply.contains("not again"), "{reply}");
    client
        .call_ok("request_context", json!({"query": "rules"}))
        .await;
    let turn = json!({"message_id": "m-1", "message": "write the notes", "author": "user"});
    let reply = client.call_ok("tell_turn", json!({"turn": turn})).await;
    assert_eq!(
        (&reply["frozen"], &reply["rule"]),
        (&json!(false), &json!(6))
    );
    let decided = recorded(&client.console, "breakpoint_decided").await;
    assert_eq!(decided["metadata"]["decision"], "should", "{decided}");
}

#[tokio::test]
async fn no_tool_answers_for_an_operator_or_another_agent() {
    let client = ToolClient::new().await;
    let permission = json!({"action": "mcp.tools.write"});
    let pending = client.call("ask_permission", permission);
    let (refused, ()) = tokio::join!(pending, async {
        client
            .console
            .bench
            .wait_until(|snapshot| snapshot.held.len() == 1)
            .await;
        let answer = json!({"gate": "c-1", "answers": {"write-gate": {"why": "because"}}});
        let reply = client.call("answer_checkpoint", answer).await;
        denial(Ok(reply));
        client.console.deny("no").await;
    });
    denial(Ok(refused));
    let other = json!({"action": "mcp.tools.echo", "session": "s-2", "key": "0123456789abcdef"});
    let reply = denial(Ok(client.call("ask_permission", other).await));
    assert!(reply.contains("unknown field"), "{reply}");
    let mut client = client;
    drop(client.console.server.take());
    let echo = json!({"action": "mcp.tools.echo"});
    let reply = denial(Ok(client.call("ask_permission", echo).await));
    assert!(reply.contains("no console listens"), "{reply}");
}

// covers A20
#[tokio::test]
async fn query_over_mcp_finds_contexts_and_reports_unknown_hints() {
    let client = ToolClient::with_atlas(ASKED).await;
    let request = json!({"query": "when does the courier come?", "hints": ["no-such", "secret"]});
    check_found(&client.call_ok("request_context", request).await);
}
