//! Hooks that come by HTTP. Whatever is wrong, the answer is 200 and stops the agent: it goes on after
//! anything else.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::Shared;
use super::guard::{TOO_MANY, admit, is_too_many};
use super::serve;
use crate::gateway::client::Leash;
use crate::gateway::hook::{self, Host, Offline, Options};

/// `POST /v1/hook/claude-code`
pub(super) async fn serve(
    State(shared): State<Arc<Shared>>,
    Path(host): Path<String>,
    request: Request,
) -> Response {
    let answer = match answer(&shared, &host, request).await {
        Ok(answer) => answer,
        Err(why) => stop(&why),
    };
    serve::json(StatusCode::OK, &answer)
}

async fn answer(shared: &Shared, host: &str, request: Request) -> Result<Value, String> {
    let admitted = admit(request.headers(), &shared.token);
    admitted.map_err(|stranger| format!("cra: nothing is allowed: {}", stranger.words()))?;
    if is_too_many(&request) {
        return Err(format!("cra: {TOO_MANY}"));
    }
    if host != Host::ClaudeCode.as_str() {
        return Err("cra: only hooks of claude-code come by HTTP".to_owned());
    }
    let unread = |_| "cra: the hook cannot be read, so nothing goes on".to_owned();
    let body = serve::body(shared, request).await.map_err(unread)?;
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
        timer: None,
        offline: Offline::Deny,
        socket: shared.behind.socket.clone(),
        secret: secret.map_err(|error| format!("cra: there is no secret: {error}"))?,
        api_key: None,
        leash: leash.clone(),
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

/// Words that stop the agent, whatever it was about to do.
fn stop(why: &str) -> Value {
    json!({
        "continue": false,
        "stopReason": why,
        "decision": "block",
        "reason": why,
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": why,
        },
    })
}
