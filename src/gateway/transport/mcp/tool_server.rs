//! MCP server with tools for an agent that asks before it acts.
//!
//! Each tool is one call at the console, in one session of this process. The tools decide nothing and run
//! nothing: an agent that does not ask is not held by them. A refusal is a tool result with an error, so
//! that the model reads the reason.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::strict_transport::StrictTransport;
use crate::gateway::protocol::call::CallError;
use crate::gateway::protocol::questions;
use crate::gateway::protocol::wording::{KeyRemedy, denial_text};
use crate::gateway::transport::console_session::{ConsoleIdentity, ConsoleSession};
use crate::gateway::transport::stdio::END_TIMEOUT;

/// Requests context that the stewards wrote for agents: rules, procedures, facts.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RequestContextTool {
    /// Text to search for, in your own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    /// Identifiers of contexts, if you know them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
    /// Name of a checkpoint that should ask its questions now.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
}

/// Previews the decision about actions: allowed, denied, or held for an operator. Nothing is requested and
/// nothing runs. The preview is not a permission: request one with `ask_permission`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckAction {
    /// Actions, each with the parameters for its run. If empty, all known actions.
    #[serde(default)]
    actions: Vec<Considered>,
    /// The task that you were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<String>,
}

/// An action to preview.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Considered {
    /// Name of the action, such as `shell.run`.
    action: String,
    /// Parameters of the action.
    #[serde(default)]
    params: Map<String, Value>,
}

/// Answers the questions that a checkpoint asks you, and returns the decision about the held request: if it has
/// an `execution`, you may run the action once. Only an operator can approve a request; you cannot.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerCheckpoint {
    /// The held request, such as `c-12`.
    gate: String,
    /// Answers by checkpoint, then by question.
    answers: Map<String, Value>,
}

/// Reports whether a context that you were given helped.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GiveFeedback {
    /// Identifier of the context.
    context_id: String,
    /// True if the context helped.
    helpful: bool,
    /// Reason for the feedback.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Requests permission to run one action, and waits for the decision. An operator may take some time. Run the
/// action only if the result has an `execution`, exactly as requested, and once. Then report the outcome with
/// `report_result`. If the result has questions instead, answer them with `answer_checkpoint`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskPermission {
    /// Name of the action, such as `shell.run`.
    action: String,
    /// Parameters of the action, exactly as for the run.
    #[serde(default)]
    params: Map<String, Value>,
}

/// Reports the outcome of an action that you were allowed to run: a result or an error.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportResult {
    /// The `execution` from `ask_permission`.
    execution: String,
    /// Short description of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// Error, if the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failed>,
}

/// Error of a failed run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Failed {
    /// Error code for programs.
    code: String,
    /// Error message for people.
    message: String,
}

/// Reports one turn of your conversation. The result shows whether its summary is frozen for now, and which
/// questions are closed. It does not permit any action.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TellTurn {
    /// The turn.
    turn: ToldTurn,
}

/// A turn of a conversation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToldTurn {
    /// Your name for the turn; a turn that is sent twice under one name counts once.
    message_id: String,
    /// Text of the turn.
    message: String,
    /// Author of the turn, such as `user`.
    author: String,
}

/// Describes your wrapper: the program between you and your tools, if there is one. The result lists its
/// faults.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportWrapper {
    /// Version of the wrapper.
    wrapper_version: String,
    /// Parts of the wrapper.
    components: Vec<String>,
    /// Plugins of the wrapper.
    #[serde(default)]
    plugins: Vec<String>,
    /// Transport: `mcp`, `rest` or `direct`.
    transport: String,
    /// Place of its cache, such as `memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_backend: Option<String>,
    /// Kinds of events that the wrapper intercepts.
    capabilities: Intercepts,
    /// SHA-256, in lower-case hexadecimal, of the canonical JSON (RFC 8785) of all other fields.
    construction_hash: String,
}

/// Kinds of events that a wrapper intercepts.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Intercepts {
    /// Input to the agent.
    intercept_input: bool,
    /// Output of the agent.
    intercept_output: bool,
    /// Actions of the agent.
    intercept_actions: bool,
}

/// Reports the result of a check of your wrapper.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportWrapperCheck {
    /// True if every test passed.
    verification_passed: bool,
    /// Names of the tests.
    tests_run: Vec<String>,
    /// Descriptions of the failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
}

/// A tool: its name, its call at the console, its schema, and the reader of its arguments.
struct McpTool {
    name: &'static str,
    call: &'static str,
    schema: fn() -> schemars::Schema,
    read: fn(Value) -> Result<Value, String>,
}

/// Checks arguments, and converts them for the call.
fn read<T: for<'a> Deserialize<'a> + Serialize>(arguments: Value) -> Result<Value, String> {
    let read: T = serde_json::from_value(arguments).map_err(|error| error.to_string())?;
    serde_json::to_value(read).map_err(|error| error.to_string())
}

macro_rules! offer {
    ($name:literal, $call:literal, $of:ty) => {
        McpTool {
            name: $name,
            call: $call,
            schema: || schema_for!($of),
            read: read::<$of>,
        }
    };
}

const TOOLS: [McpTool; 9] = [
    offer!("request_context", "context.request", RequestContextTool),
    offer!("check_action", "resolve", CheckAction),
    offer!("answer_checkpoint", "checkpoint.answer", AnswerCheckpoint),
    offer!("give_feedback", "context.feedback", GiveFeedback),
    offer!("ask_permission", "action.request", AskPermission),
    offer!("report_result", "action.completed", ReportResult),
    offer!("tell_turn", "turn", TellTurn),
    offer!("report_wrapper", "wrapper.constructed", ReportWrapper),
    offer!(
        "report_wrapper_check",
        "wrapper.verified",
        ReportWrapperCheck
    ),
];

impl McpTool {
    fn tool(&self) -> Tool {
        let mut schema = (self.schema)().to_value();
        let fields = schema.as_object_mut().map(std::mem::take);
        let mut fields = fields.unwrap_or_default();
        let words = fields.remove("description");
        let words = words.as_ref().and_then(Value::as_str).unwrap_or_default();
        Tool::new(self.name, words.to_owned(), fields)
    }
}

/// The MCP server.
#[derive(Clone, Debug)]
struct ToolServer {
    gate: Arc<ConsoleSession>,
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("cra", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Before an action that cannot be undone, call ask_permission and wait. Do not run an action that \
                 was not allowed.",
            )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.iter().map(McpTool::tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(offer) = TOOLS.iter().find(|offer| offer.name == call.name) else {
            let why = format!("unknown tool `{}`", call.name);
            return Err(ErrorData::invalid_params(why, None));
        };
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        let params = match (offer.read)(arguments) {
            Ok(params) => params,
            Err(why) => return Ok(error_result(&format!("cra: wrong arguments: {why}"))),
        };
        tokio::select! {
            result = self.gate.call(offer.call, params) => Ok(match result {
                Ok(result) => CallToolResult::success(vec![ContentBlock::text(result.to_string())]).into(),
                Err(error) => not_done(&error),
            }),
            // A cancelled call withdraws its request at the console.
            () = context.ct.cancelled() => Ok(error_result("cra: cancelled")),
        }
    }
}

/// Builds the result of a failed call. Questions to the agent are sent as text and as data.
fn not_done(error: &CallError) -> CallToolResponse {
    let Some(asked) = questions::agent_questions(error) else {
        return error_result(&denial_text(error, KeyRemedy::Key));
    };
    let gate = &asked.gate;
    let described = questions::describe(&asked);
    let arguments = json!({"gate": gate, "answers": questions::template(&asked)});
    let words = format!(
        "cra: held at {gate}. You must answer its questions.\n{described}\nAnswer with the tool `answer_checkpoint` \
         and these arguments, with your answers filled in:\n{arguments}\nThe result is the decision about this \
         request. If it has an `execution`, run the action once, and do not ask again. After any other \
         result, ask again."
    );
    let mut result = CallToolResult::error(vec![ContentBlock::text(words)]);
    result.structured_content = Some(json!({"asked": asked}));
    result.into()
}

fn error_result(why: &str) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(why)]).into()
}

/// Reason why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ToolServerError {
    /// The secret of the session could not be created.
    #[error("cra could not create a secret: {0}")]
    Secret(#[from] getrandom::Error),
    /// The agent does not follow MCP.
    #[error("the agent did not complete the MCP handshake: {0}")]
    Begin(String),
}

/// Serves an agent until it disconnects.
///
/// # Errors
/// Fails when the agent does not complete the MCP handshake.
pub async fn serve(
    identity: ConsoleIdentity,
    agent: (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ),
) -> Result<(), ToolServerError> {
    let gate = Arc::new(ConsoleSession::new(identity)?);
    let tools = ToolServer {
        gate: Arc::clone(&gate),
    };
    let serving = tools.serve(StrictTransport::new(agent)).await;
    let serving = serving.map_err(|error| ToolServerError::Begin(error.to_string()))?;
    // The session ends, no matter how the connection ended.
    let _ = serving.waiting().await;
    let _ = timeout(END_TIMEOUT, gate.end()).await;
    Ok(())
}
