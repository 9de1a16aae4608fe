//! HTTP handlers of calls, and their answers.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::time::timeout;

use super::HttpState;
use super::listener::HttpPeer;
use crate::base::json::{self, StrictJsonError};
use crate::base::limits::{LARGE_MESSAGE, MAX_MESSAGE_BYTES, MESSAGE_TIMEOUT};
use crate::engine::command::DenyCode;
use crate::gateway::protocol::call::{AuthenticatedCall, CallFault};
use crate::gateway::transport::agent_connection::AgentConnection;

/// `POST /v1/CALL`
pub(super) async fn handle_call(
    State(shared): State<Arc<HttpState>>,
    Extension(peer): Extension<HttpPeer>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let Ok(_room) = shared.calls.try_acquire() else {
        return fault_response(&CallFault::new(
            CallFault::BUSY,
            "too many calls; try again later",
        ));
    };
    let body = match read_body(&shared, request).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let params = match json::read::<Value>(&body) {
        Ok(params) => params,
        Err(StrictJsonError::Ambiguous(refused)) => {
            return fault_response(&CallFault::ambiguous(&refused, ""));
        }
        Err(error) => return fault_response(&CallFault::new(CallFault::PARSE, error.to_string())),
    };
    let result = match AuthenticatedCall::read_params(&name.replace('/', "."), params) {
        Ok(authenticated) => {
            let connection = AgentConnection::new(shared.resources.gateway.clone(), peer.caller());
            connection.execute_call(authenticated).await
        }
        Err(fault) => Err(fault),
    };
    match result {
        Ok(result) => json_response(StatusCode::OK, &result),
        Err(refused) => fault_response(&refused),
    }
}

/// Answers a request for an unknown path.
pub(super) async fn not_found() -> Response {
    refusal_response(
        StatusCode::NOT_FOUND,
        "not found; GET /v1/openapi.json lists all paths",
    )
}

/// Reads the body of a request, with a limit of size and time.
pub(super) async fn read_body(shared: &HttpState, request: Request) -> Result<Vec<u8>, Response> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let reading = async {
        let _room = match length {
            Some(length) if length <= LARGE_MESSAGE => None,
            Some(_) | None => shared.large.acquire().await.ok(),
        };
        read(request.into_body()).await
    };
    match timeout(MESSAGE_TIMEOUT, reading).await {
        Ok(Some(body)) => Ok(body),
        Ok(None) => Err(refusal_response(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("a message must have at most {MAX_MESSAGE_BYTES} bytes"),
        )),
        Err(_) => Err(refusal_response(
            StatusCode::REQUEST_TIMEOUT,
            &format!(
                "a message must be complete within {} seconds",
                MESSAGE_TIMEOUT.as_secs()
            ),
        )),
    }
}

/// Reads a body if it is not too large. A body that is too large is still read to its end: a client that is
/// writing when the connection closes never reads the answer.
async fn read(body: Body) -> Option<Vec<u8>> {
    let mut parts = body.into_data_stream();
    let mut whole = Some(Vec::new());
    while let Some(part) = parts.next().await {
        let part = part.ok()?;
        let kept = whole.take();
        whole = kept.filter(|bytes| bytes.len() + part.len() <= MAX_MESSAGE_BYTES);
        if let Some(whole) = &mut whole {
            whole.extend_from_slice(&part);
        }
    }
    whole
}

/// Builds the response for a fault.
pub(super) fn fault_response(fault: &CallFault) -> Response {
    let value = serde_json::to_value(fault).unwrap_or_default();
    json_response(status(fault), &value)
}

/// Builds the response for a request that is not a call.
pub(super) fn refusal_response(status: StatusCode, why: &str) -> Response {
    let fault = CallFault::new(CallFault::REQUEST, why);
    json_response(status, &serde_json::to_value(fault).unwrap_or_default())
}

pub(super) fn json_response(status: StatusCode, value: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, Body::from(value.to_string())).into_response()
}

fn status(fault: &CallFault) -> StatusCode {
    match fault.deny_code() {
        Some(code) => denied(code),
        None => match fault.code {
            CallFault::METHOD => StatusCode::NOT_FOUND,
            CallFault::ANSWER_FIRST => StatusCode::CONFLICT,
            CallFault::INVALID_ANSWERS => StatusCode::UNPROCESSABLE_ENTITY,
            CallFault::BUSY => StatusCode::SERVICE_UNAVAILABLE,
            CallFault::DENIED => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        },
    }
}

fn denied(code: DenyCode) -> StatusCode {
    match code {
        DenyCode::BadRequest | DenyCode::Parameters => StatusCode::BAD_REQUEST,
        DenyCode::Ended => StatusCode::GONE,
        DenyCode::Limit => StatusCode::TOO_MANY_REQUESTS,
        DenyCode::Overload | DenyCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        DenyCode::Session
        | DenyCode::Thread
        | DenyCode::Unauthorized
        | DenyCode::UnknownAction
        | DenyCode::Policy
        | DenyCode::Extension
        | DenyCode::Resolution
        | DenyCode::DeniedAction
        | DenyCode::CapabilityLocked
        | DenyCode::Refused
        | DenyCode::InvalidAnswer
        | DenyCode::Expired
        | DenyCode::Withdrawn
        | DenyCode::Changed => StatusCode::FORBIDDEN,
    }
}
