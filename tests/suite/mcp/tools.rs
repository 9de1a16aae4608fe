//! An agent that asks by itself, with the tools of the program.

use super::*;
use crate::socket::bypass::{ASKED, check_found};

pub(super) struct Asking {
    house: House,
    agent: RunningService<RoleClient, ()>,
}

impl Asking {
    async fn new() -> Self {
        Self::under(ATLAS).await
    }

    pub(super) async fn under(atlas: &str) -> Self {
        let house = House::under(atlas).await;
        let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
        command
            .env_clear()
            .args(["mcp", "--agent", "bot", "--data-dir"])
            .arg(house.folder())
            .arg("--socket")
            .arg(house.path())
            .arg("--key")
            .arg(house.key());
        let child = TokioChildProcess::new(command).unwrap();
        let agent = timeout(WAIT, ().serve(child)).await.unwrap().unwrap();
        Self { house, agent }
    }

    pub(super) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let arguments = arguments.as_object().unwrap().clone();
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        timeout(WAIT, self.agent.call_tool(call))
            .await
            .expect("it was never answered")
            .unwrap()
    }

    pub(super) async fn said(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_ne!(result.is_error, Some(true), "{result:?}");
        serde_json::from_str(&words(&result)).unwrap()
    }
}

#[tokio::test]
async fn every_tool_says_what_it_is_for_and_what_it_takes() {
    let asking = Asking::new().await;
    let tools = asking.agent.list_all_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|it| it.name.as_ref()).collect();
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
            fields.values().all(|it| it["description"].is_string()),
            "{schema}"
        );
        // Who it is, and its secret, are not the model's to say.
        assert!(!fields.contains_key("session") && !fields.contains_key("key"));
    }
}

#[tokio::test]
async fn an_agent_checks_asks_and_reports() {
    let asking = Asking::new().await;
    let checked = json!({"actions": [{"action": "mcp.tools.write", "params": {}}]});
    let checked = asking.said("check_action", checked).await;
    assert!(checked.to_string().contains("write-gate"), "{checked}");
    assert!(asking.house.bench.snapshot().held.is_empty());
    let permission = json!({"action": "mcp.tools.write", "params": {"text": "x"}});
    let asked = asking.said("ask_permission", permission.clone());
    let (allowed, ()) = tokio::join!(asked, asking.house.pass());
    let done = json!({"execution": allowed["execution"], "result": "wrote x"});
    assert_eq!(asking.said("report_result", done).await, json!({}));
    let completed = recorded(&asking.house, "action_completed").await;
    assert_eq!(completed["result_summary"], "wrote x");
    let asked = asking.call("ask_permission", permission);
    let (refused, ()) = tokio::join!(asked, asking.house.deny("not again"));
    let told = denial(Ok(refused));
    assert!(told.contains("not again"), "{told}");
    asking
        .said("request_context", json!({"query": "rules"}))
        .await;
    let turn = json!({"message_id": "m-1", "message": "write the notes", "author": "user"});
    let told = asking.said("tell_turn", json!({"turn": turn})).await;
    assert_eq!((&told["frozen"], &told["rule"]), (&json!(false), &json!(6)));
    let decided = recorded(&asking.house, "breakpoint_decided").await;
    assert_eq!(decided["metadata"]["decision"], "should", "{decided}");
}

#[tokio::test]
async fn no_tool_answers_for_an_operator_or_as_somebody_else() {
    let asking = Asking::new().await;
    let permission = json!({"action": "mcp.tools.write"});
    let asked = asking.call("ask_permission", permission);
    let (refused, ()) = tokio::join!(asked, async {
        asking.house.bench.until(|it| it.held.len() == 1).await;
        let answer = json!({"gate": "c-1", "answers": {"write-gate": {"why": "because"}}});
        let told = asking.call("answer_checkpoint", answer).await;
        denial(Ok(told));
        asking.house.deny("no").await;
    });
    denial(Ok(refused));
    let other = json!({"action": "mcp.tools.echo", "session": "s-2", "key": "0123456789abcdef"});
    let told = denial(Ok(asking.call("ask_permission", other).await));
    assert!(told.contains("unknown field"), "{told}");
    let mut asking = asking;
    drop(asking.house.door.take());
    let echo = json!({"action": "mcp.tools.echo"});
    let told = denial(Ok(asking.call("ask_permission", echo).await));
    assert!(told.contains("no console listens"), "{told}");
}

// covers A20
#[tokio::test]
async fn a_query_finds_contexts_over_mcp_and_unknown_hints_are_told() {
    let asking = Asking::under(ASKED).await;
    let request = json!({"query": "when does the courier come?", "hints": ["no-such", "secret"]});
    check_found(&asking.said("request_context", request).await);
}
