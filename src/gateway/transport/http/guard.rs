//! Checks on each HTTP request: origin, host name and token.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::HttpState;
use super::call_handler::{fault_response, refusal_response};
use super::listener::{ConnectionSlot, HttpPeer};
use crate::base::digest::Digest;
use crate::gateway::protocol::call::CallFault;

/// Reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestRefusal {
    /// The request comes from a web page.
    WebPage,
    /// The request names a host that is not this machine.
    ForeignHost,
    /// The token is missing or wrong.
    BadToken,
}

impl RequestRefusal {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::WebPage => "requests from web pages are not allowed",
            Self::ForeignHost => "the host must be 127.0.0.1, localhost or [::1]",
            Self::BadToken => {
                "send the token as `Authorization: Bearer TOKEN`; `cra paths` shows its file"
            }
        }
    }
}

/// Passes only admitted requests on to their handler.
pub(super) async fn check_request(
    State(shared): State<Arc<HttpState>>,
    request: Request,
    next: Next,
) -> Response {
    match check_headers(request.headers(), &shared.token) {
        Ok(()) if exceeds_limit(&request) => {
            fault_response(&CallFault::new(CallFault::BUSY, TOO_MANY_CONNECTIONS))
        }
        Ok(()) => next.run(request).await,
        Err(RequestRefusal::BadToken) => {
            let message =
                refusal_response(StatusCode::UNAUTHORIZED, RequestRefusal::BadToken.message());
            ([(header::WWW_AUTHENTICATE, "Bearer")], message).into_response()
        }
        Err(stranger @ (RequestRefusal::WebPage | RequestRefusal::ForeignHost)) => {
            refusal_response(StatusCode::FORBIDDEN, stranger.message())
        }
    }
}

/// Message for a connection that exceeds the limit.
pub(super) const TOO_MANY_CONNECTIONS: &str = "too many connections; try again later";

/// Returns true if a request comes on a connection that exceeds the limit.
pub(super) fn exceeds_limit(request: &Request) -> bool {
    let peer = request.extensions().get::<HttpPeer>();
    peer.is_none_or(|peer| peer.slot == ConnectionSlot::Full)
}

/// Checks the headers of a request.
pub(super) fn check_headers(headers: &HeaderMap, token: &Digest) -> Result<(), RequestRefusal> {
    if headers.contains_key(header::ORIGIN) {
        return Err(RequestRefusal::WebPage);
    }
    let host = headers
        .get(header::HOST)
        .and_then(|value| value.to_str().ok());
    if !host.is_some_and(is_here) {
        return Err(RequestRefusal::ForeignHost);
    }
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    match shown {
        Some(shown) if secrets_match(shown.trim(), token) => Ok(()),
        Some(_) | None => Err(RequestRefusal::BadToken),
    }
}

/// Returns true if a host name means this machine. A web page whose own name resolves to this machine sends
/// that name.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Compares two secrets in constant time, so that timing reveals nothing about where they differ.
fn secrets_match(shown: &str, token: &Digest) -> bool {
    let (shown, token) = (Digest::of(shown), Digest::of(token.to_string()));
    let pairs = shown.as_bytes().iter().zip(token.as_bytes());
    pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
