//! A small MCP server, written with the official library. The test program itself is its process: a test that
//! is told so by its environment serves.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{from_value, json};

/// Environment variable with the file for the names of used tools; it makes the process a server.
const CALLS: &str = "CRA_TEST_MCP_CALLS";

/// The command that starts one.
pub(super) fn command(calls: &Path, started: impl FnOnce(OsString, [&str; 4])) {
    assert!(calls.is_absolute());
    let name = "mcp::server::test_server_answers_without_the_proxy";
    let program = std::env::current_exe().unwrap().into_os_string();
    started(program, [name, "--exact", "--nocapture", "-q"]);
}

pub(super) fn environment(command: &mut tokio::process::Command, calls: &Path) {
    command.env(CALLS, calls);
}

struct Server {
    calls: PathBuf,
}

impl Server {
    fn note(&self, what: impl AsRef<OsStr>) {
        let mut file = std::fs::File::options();
        let file = file.append(true).create(true).open(&self.calls);
        let line = format!("{}\n", what.as_ref().to_str().unwrap());
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

fn tool(name: &'static str) -> Tool {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    Tool::new(name, "a tool", schema.as_object().unwrap().clone())
}

fn text(words: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(words)]).into()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        from_value(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
            "serverInfo": {"name": "a test server", "version": "1"},
        }))
        .unwrap()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ["echo", "write", "wait", "crash"].map(tool);
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.note(&*call.name);
        let output = call.arguments.unwrap_or_default();
        let output = output["text"].as_str().unwrap().to_owned();
        Ok(match &*call.name {
            "echo" => text(output),
            "write" => text(format!("wrote {output}")),
            "wait" => {
                let token = context.meta.get_progress_token().unwrap();
                let reply = ProgressNotificationParam::new(token, 1.0).with_message("at work");
                context.peer.notify_progress(reply).await.unwrap();
                context.ct.cancelled().await;
                self.note("wait cancelled");
                text("cancelled")
            }
            "crash" => std::process::exit(7),
            other => panic!("{other}"),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = json!({"resources": [{"uri": "note://1", "name": "note"}]});
        Ok(from_value(listed).unwrap())
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = json!({"contents": [{"uri": read.uri, "text": "a note"}]});
        Ok(ReadResourceResponse::Complete(
            from_value(contents).unwrap(),
        ))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(from_value(json!({"prompts": [{"name": "greet"}]})).unwrap())
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt: GetPromptResult =
            from_value(json!({"description": "greets", "messages": []})).unwrap();
        Ok(GetPromptResponse::Complete(prompt))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(from_value(json!({"completion": {"values": ["world"]}})).unwrap())
    }
}

/// Serves, where that is wanted; otherwise starts one that does.
#[tokio::test]
async fn test_server_answers_without_the_proxy() {
    if let Some(calls) = std::env::var_os(CALLS) {
        let calls = calls.into();
        let serving = Server { calls }.serve(rmcp::transport::stdio());
        serving.await.unwrap().waiting().await.unwrap();
        // Output of the test harness would go to the agent.
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let mut started = None;
    command(&calls, |program, arguments| {
        let mut command = tokio::process::Command::new(program);
        command.args(arguments);
        started = Some(command);
    });
    let mut started = started.unwrap();
    environment(&mut started, &calls);
    let child = rmcp::transport::TokioChildProcess::new(started).unwrap();
    let agent = ().serve(child).await.unwrap();
    assert_eq!(agent.list_all_tools().await.unwrap().len(), 4);
}
