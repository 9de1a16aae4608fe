//! Hooks that come by HTTP. Whatever is wrong, the answer is 200 and stops the agent: it goes on after
//! anything else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::guard::{TOO_MANY, admit, is_too_many};
use super::serve;
use crate::base::json::read_with_inexact_as_text;
use crate::gateway::client::Leash;
use crate::gateway::hook::{self, AnswerCommand, Host, Offline, Options, Transport};

/// `POST /v1/hook/claude-code`
pub(super) async fn serve(
    State(shared): State<Arc<Shared>>,
    Path(host): Path<String>,
    request: Request,
) -> Response {
    let mut event = None;
    let answer = match answer(&shared, &host, request, &mut event).await {
        Ok(answer) => answer,
        Err(why) => stop(&why, event.as_deref()),
    };
    serve::json(StatusCode::OK, &answer)
}

/// The answer; as soon as it is known, the event that it answers is told too.
async fn answer(
    shared: &Shared,
    host: &str,
    request: Request,
    event: &mut Option<String>,
) -> Result<Value, String> {
    let admitted = admit(request.headers(), &shared.token);
    admitted.map_err(|stranger| format!("cra: nothing is allowed: {}", stranger.words()))?;
    if is_too_many(&request) {
        return Err(format!("cra: {TOO_MANY}"));
    }
    if host != Host::ClaudeCode.as_str() {
        return Err("cra: only hooks of claude-code come by HTTP".to_owned());
    }
    let api_key = request.headers().get(API_KEY);
    let api_key = api_key.and_then(|it| it.to_str().ok()).map(str::to_owned);
    let timer = timer(request.uri().query().unwrap_or_default());
    let unread = |_| "cra: the hook cannot be read, so nothing goes on".to_owned();
    let body = serve::body(shared, request).await.map_err(unread)?;
    *event = event_of(&body);
    let busy = |_| "cra: too many hooks wait already; try again later".to_owned();
    let room = Arc::clone(&shared.hooks)
        .try_acquire_owned()
        .map_err(busy)?;
    let leash = Leash::default();
    // Who closes the connection leaves the gate, also one at which a thread waits.
    let _cut = leash.cut_when_dropped();
    let secret = hook::secret(&shared.behind.folder);
    let options = Options {
        host: Host::ClaudeCode,
        begun: Instant::now(),
        timer: Some(timer),
        offline: Offline::Deny,
        socket: shared.behind.socket.clone(),
        key: Ok(shared.behind.hall.signer.verifier()),
        folder: shared.behind.folder.clone(),
        secret: secret.map_err(|error| format!("cra: there is no secret: {error}"))?,
        api_key,
        leash: leash.clone(),
        answer_command: shared.answer_command()?,
        transport: Transport::Rest,
    };
    let answered = tokio::task::spawn_blocking(move || {
        let _room = room;
        hook::run(&body, &options)
    });
    let printed = answered
        .await
        .map_err(|_| "cra: something went wrong, so nothing goes on".to_owned())?;
    match serde_json::from_str::<Value>(&printed.out) {
        Ok(said) if printed.code == 0 && said.is_object() => Ok(said),
        // What a hook's exit code would say has to be said in words here.
        Ok(_) | Err(_) => Err(printed.err.trim().to_owned()),
    }
}

impl Shared {
    /// Command by which an agent on this machine answers a checkpoint from its shell.
    fn answer_command(&self) -> Result<AnswerCommand, String> {
        let unknown = |error| format!("cra: the program's own place is not known: {error}");
        let named = [
            ("--data-dir", &self.behind.folder),
            ("--socket", &self.behind.socket),
        ];
        let place =
            named.map(|(name, path)| [name.to_owned(), path.to_string_lossy().into_owned()]);
        Ok(AnswerCommand {
            program: std::env::current_exe().map_err(unknown)?,
            place: place.into_iter().flatten().collect(),
        })
    }
}

/// What an agent shows to be let in, where an Atlas wants to see something.
const API_KEY: &str = "x-api-key";

/// How long the agent waits, as the address of the hook says it. Nothing in a request does, and an answer that
/// comes too late lets the agent go on.
fn timer(query: &str) -> Duration {
    let said = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("timer="))
        .and_then(|it| it.parse().ok());
    said.map_or(SHORTEST, Duration::from_secs)
}

/// The shortest time that Claude Code waits for any hook, where nobody says otherwise.
const SHORTEST: Duration = Duration::from_secs(30);

fn event_of(body: &[u8]) -> Option<String> {
    // Numbers decide nothing here, and an event that is named twice is not known.
    let body = read_with_inexact_as_text(body).ok()?;
    let event = body.get("hook_event_name")?.as_str()?;
    Some(event.to_owned())
}

/// Words that stop the agent, whatever it was about to do. An answer that names another event than the one that
/// was asked about is thrown away whole, so only one that is known to come before a tool is named.
fn stop(why: &str, event: Option<&str>) -> Value {
    let mut said = json!({
        "continue": false,
        "stopReason": why,
        "decision": "block",
        "reason": why,
    });
    if let (Some("PreToolUse"), Some(fields)) = (event, said.as_object_mut()) {
        let specific = json!({
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": why,
        });
        fields.insert("hookSpecificOutput".to_owned(), specific);
    }
    said
}
