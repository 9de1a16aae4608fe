//! Checkpoints whose questions are the agent's, over MCP.

use super::tools::ToolClient;
use super::*;

const ASKS: &str = r#"
atlas_version: "1.0"
atlas_id: "org.test.asks"
version: "1.0.0"
name: "Asks"
description: "Questions for the agent"
default_decision: allow
actions:
  - { action_id: "mcp.tools.echo", name: "Echo", risk_tier: low }
  - { action_id: "mcp.tools.write", name: "Write", risk_tier: high }
checkpoints:
  - checkpoint_id: "write-gate"
    name: "Writes"
    trigger: { type: action_pre, patterns: ["mcp.tools.write"] }
    mode: blocking
    respondent: agent
    questions:
      - { question_id: "why", question: "Why is it written?", response_type: text, hint: "name the task", validation: { min_length: 5 } }
"#;

fn write() -> Value {
    json!({"action": "mcp.tools.write", "params": {"text": "hello"}})
}

// covers B15
#[tokio::test]
async fn permission_with_questions_is_decided_by_the_answer_tool() {
    let client = ToolClient::with_atlas(ASKS).await;
    let held = client.call("ask_permission", write()).await;
    assert_eq!(held.is_error, Some(true));
    let reply = words(&held);
    for part in [
        "held at c-1",
        "`answer_checkpoint`",
        "`why` (text, required): Why is it written? Hint: name the task. Rules: at least 5 characters.",
    ] {
        assert!(reply.contains(part), "{part}\n{reply}");
    }
    let data = held.structured_content.unwrap();
    assert_eq!(
        data["asked"]["gates"][0]["questions"][0]["question_id"],
        "why"
    );
    // Asked again it is the same gate.
    let again = client.call("ask_permission", write()).await;
    assert!(words(&again).contains("held at c-1"), "{}", words(&again));

    let answer = |why: &str| json!({"gate": "c-1", "answers": {"write-gate": {"why": why}}});
    let short = client.call("answer_checkpoint", answer("x")).await;
    assert_eq!(short.is_error, Some(true));
    assert!(
        words(&short).contains("`why` of `write-gate`"),
        "{}",
        words(&short)
    );
    let allowed = client.call_ok("answer_checkpoint", answer("task 7")).await;
    let execution = allowed["execution"].as_str().unwrap();
    let report = json!({"execution": execution, "result": "written"});
    client.call_ok("report_result", report).await;
    // One answer is one run.
    let later = client.call("ask_permission", write()).await;
    assert!(words(&later).contains("held at c-2"), "{}", words(&later));
}

// covers T5, T6
#[tokio::test]
async fn an_agent_reports_its_wrapper_over_mcp() {
    let client = ToolClient::with_atlas(ASKS).await;
    let wrapper = json!({
        "wrapper_version": "1.0", "components": ["gate"], "transport": "mcp",
        "capabilities": {"intercept_input": false, "intercept_output": false, "intercept_actions": true},
        "construction_hash": "00",
    });
    let noted = client.call_ok("report_wrapper", wrapper).await;
    assert_eq!(noted["failures"].as_array().unwrap().len(), 1, "{noted}");
    let check = json!({"verification_passed": true, "tests_run": ["loop"]});
    assert_eq!(
        client.call_ok("report_wrapper_check", check).await,
        json!({})
    );
}

// covers B15
#[tokio::test]
async fn call_with_questions_is_answered_with_the_proxy_tool_and_repeated() {
    let fixture = ProxyFixture::with_atlas(ASKS).await;
    let tools = fixture.agent.list_all_tools().await.unwrap();
    let own = tools.last().unwrap();
    assert_eq!(own.name, "cra_answer_checkpoint");
    let schema = Value::Object(own.input_schema.as_ref().clone());
    jsonschema::draft202012::meta::validate(&schema).unwrap();

    let held = fixture.call("write").await.unwrap();
    assert_eq!(held.is_error, Some(true));
    let reply = words(&held);
    assert!(
        reply.contains("held at c-1") && reply.contains("`cra_answer_checkpoint`"),
        "{reply}"
    );
    assert!(reply.contains("Why is it written?"), "{reply}");
    let again = fixture.call("write").await.unwrap();
    assert!(words(&again).contains("held at c-1"), "{}", words(&again));
    assert_eq!(fixture.reached(), Vec::<String>::new());

    let answer = async |answers: Value| {
        let arguments = answers.as_object().unwrap().clone();
        let call = CallToolRequestParams::new("cra_answer_checkpoint").with_arguments(arguments);
        let answered = timeout(WAIT, fixture.agent.call_tool(call)).await.unwrap();
        answered.unwrap()
    };
    let wrong = answer(json!({"gate": "c-1"})).await;
    assert!(
        words(&wrong).contains("wrong arguments"),
        "{}",
        words(&wrong)
    );
    let short = answer(json!({"gate": "c-1", "answers": {"write-gate": {"why": "x"}}})).await;
    assert_eq!(short.is_error, Some(true));
    let taken = answer(json!({"gate": "c-1", "answers": {"write-gate": {"why": "task 7"}}})).await;
    assert_ne!(taken.is_error, Some(true), "{}", words(&taken));
    assert!(words(&taken).contains("allowed once"), "{}", words(&taken));
    assert_eq!(
        fixture.reached(),
        Vec::<String>::new(),
        "an answer runs nothing"
    );

    let done = fixture.call("write").await.unwrap();
    assert_ne!(done.is_error, Some(true), "{}", words(&done));
    assert_eq!(fixture.reached().len(), 1);
    let later = fixture.call("write").await.unwrap();
    assert!(words(&later).contains("held at c-2"), "{}", words(&later));
    assert_eq!(fixture.reached().len(), 1);
}
