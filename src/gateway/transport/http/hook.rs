//! Hooks over HTTP. On any failure the answer is status 200 with a body that stops the agent: the agent
//! continues after every other status.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::FutureExt;
use serde_json::Value;

use super::HttpState;
use super::call_handler;
use super::guard::{TOO_MANY_CONNECTIONS, check_headers, exceeds_limit};
use super::listener::HttpPeer;
use crate::base::json::read_with_inexact_as_text;
use crate::gateway::agents::CodingAgent;
use crate::gateway::hook::{
    self, AnswerCommand, HookEvent, HookOptions, HookOutput, OfflineBehavior,
};
use crate::gateway::transport::agent_connection::AgentConnection;

/// `POST /v1/hook/claude-code`
pub(super) async fn serve(
    State(shared): State<Arc<HttpState>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let mut event = None;
    let answering = AssertUnwindSafe(answer(&shared, &name, request, &mut event)).catch_unwind();
    let answered = answering.await.unwrap_or_else(|_| {
        // Without an answer the agent would continue.
        Err("cra: internal error, so this is denied".to_owned())
    });
    let body = answered.unwrap_or_else(|why| stop_body(&name, &why, event.as_deref()));
    call_handler::json_response(StatusCode::OK, &body)
}

/// Returns the answer. Sets `event` as soon as the event is known. A caller that closes the connection drops
/// this future, which withdraws its held request.
async fn answer(
    shared: &HttpState,
    name: &str,
    request: Request,
    event: &mut Option<String>,
) -> Result<Value, String> {
    let admitted = check_headers(request.headers(), &shared.token);
    admitted.map_err(|stranger| format!("cra: this is denied: {}", stranger.message()))?;
    let peer = request.extensions().get::<HttpPeer>().copied();
    let peer = peer.filter(|_| !exceeds_limit(&request));
    let peer = peer.ok_or_else(|| format!("cra: {TOO_MANY_CONNECTIONS}"))?;
    let agent = http_agent(name);
    let agent = agent.ok_or_else(|| "cra: only claude-code can send hooks over HTTP".to_owned())?;
    let api_key = request.headers().get(API_KEY_HEADER);
    let api_key = api_key
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let timer = timeout(request.uri().query().unwrap_or_default());
    let unread = |_| "cra: the hook cannot be read, so it is denied".to_owned();
    let body = call_handler::read_body(shared, request)
        .await
        .map_err(unread)?;
    *event = event_of(&body);
    let busy = |_| "cra: too many hooks are waiting; try again later".to_owned();
    let _waiting = shared.hooks.try_acquire().map_err(busy)?;
    let secret = hook::secret(&shared.resources.folder);
    let options = HookOptions {
        agent,
        started_at: Instant::now(),
        timeout: Some(timer),
        offline: OfflineBehavior::Deny,
        secret: secret.map_err(|error| format!("cra: the secret cannot be read: {error}"))?,
        api_key,
        answer_command: shared.answer_command()?,
    };
    let output = match HookEvent::read(agent, &body) {
        Ok(event) => {
            let caller = AgentConnection::new(shared.resources.gateway.clone(), peer.caller());
            hook::answer_event_here(&event, &options, caller).await
        }
        Err(unreadable) => HookOutput::unreadable(agent, &unreadable),
    };
    match serde_json::from_str::<Value>(&output.out) {
        Ok(answer) if output.code == 0 && answer.is_object() => Ok(answer),
        // The exit code of a hook cannot be sent over HTTP, so the text has to say it.
        Ok(_) | Err(_) => Err(output.err.trim().to_owned()),
    }
}

impl HttpState {
    /// Returns the command with which an agent on this machine answers a checkpoint from its shell.
    fn answer_command(&self) -> Result<AnswerCommand, String> {
        let unknown = |error| format!("cra: the path of the program is unknown: {error}");
        let named = [
            ("--data-dir", &self.resources.folder),
            ("--socket", &self.resources.socket),
        ];
        let place =
            named.map(|(name, path)| [name.to_owned(), path.to_string_lossy().into_owned()]);
        Ok(AnswerCommand {
            program: std::env::current_exe().map_err(unknown)?,
            location_args: place.into_iter().flatten().collect(),
        })
    }
}

/// Header with the key that the agent presents, if an Atlas requires one.
const API_KEY_HEADER: &str = "x-api-key";

/// Returns the agent's timeout from the address of the hook. The request does not contain it otherwise, and
/// after a late answer the agent continues.
fn timeout(query: &str) -> Duration {
    let seconds = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("timer="))
        .and_then(|text| text.parse().ok());
    seconds.map_or(MIN_TIMEOUT, Duration::from_secs)
}

/// Shortest default timeout of Claude Code's hooks.
const MIN_TIMEOUT: Duration = Duration::from_secs(30);

fn event_of(body: &[u8]) -> Option<String> {
    // Numbers decide nothing here, and an event that is named twice counts as unknown.
    let body = read_with_inexact_as_text(body).ok()?;
    let event = body.get("hook_event_name")?.as_str()?;
    Some(event.to_owned())
}

/// Finds an agent whose hooks come over HTTP.
fn http_agent(name: &str) -> Option<CodingAgent> {
    let agent = CodingAgent::from_name(name)?;
    agent.adapter().http_stop_body("", None)?;
    Some(agent)
}

/// Builds a body that stops the agent at any event. A caller that names another agent gets the format of
/// the first agent whose hooks come over HTTP.
fn stop_body(name: &str, why: &str, event: Option<&str>) -> Value {
    let named = CodingAgent::from_name(name).into_iter();
    let mut agents = named.chain(CodingAgent::ALL);
    let body = agents.find_map(|agent| agent.adapter().http_stop_body(why, event));
    body.unwrap_or_default()
}
