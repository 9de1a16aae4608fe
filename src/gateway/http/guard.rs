//! Checks on each HTTP request: origin, host name and token.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::HttpState;
use super::call_handler::{fault, refusal};
use super::listener::{ConnectionSlot, HttpPeer};
use crate::base::digest::Digest;
use crate::gateway::call::CallFault;

/// Reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestRefusal {
    /// The request comes from a web page.
    Page,
    /// The request names a host that is not this machine.
    Elsewhere,
    /// The token is missing or wrong.
    Token,
}

impl RequestRefusal {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Page => "web pages are not served",
            Self::Elsewhere => "ask for 127.0.0.1, localhost or [::1]",
            Self::Token => {
                "show the token: `Authorization: Bearer TOKEN`; `cra paths` says where it is"
            }
        }
    }
}

/// Passes only admitted requests on to their handler.
pub(super) async fn check(
    State(shared): State<Arc<HttpState>>,
    request: Request,
    next: Next,
) -> Response {
    match admit(request.headers(), &shared.token) {
        Ok(()) if exceeds_limit(&request) => {
            fault(&CallFault::new(CallFault::BUSY, TOO_MANY_CONNECTIONS))
        }
        Ok(()) => next.run(request).await,
        Err(RequestRefusal::Token) => {
            let told = refusal(StatusCode::UNAUTHORIZED, RequestRefusal::Token.words());
            ([(header::WWW_AUTHENTICATE, "Bearer")], told).into_response()
        }
        Err(stranger @ (RequestRefusal::Page | RequestRefusal::Elsewhere)) => {
            refusal(StatusCode::FORBIDDEN, stranger.words())
        }
    }
}

/// Message for a connection that exceeds the limit.
pub(super) const TOO_MANY_CONNECTIONS: &str = "there are too many connections; try again later";

/// Returns true if a request comes on a connection that exceeds the limit.
pub(super) fn exceeds_limit(request: &Request) -> bool {
    let peer = request.extensions().get::<HttpPeer>();
    peer.is_none_or(|peer| peer.room == ConnectionSlot::Full)
}

/// Checks the headers of a request.
pub(super) fn admit(headers: &HeaderMap, token: &Digest) -> Result<(), RequestRefusal> {
    if headers.contains_key(header::ORIGIN) {
        return Err(RequestRefusal::Page);
    }
    let host = headers
        .get(header::HOST)
        .and_then(|value| value.to_str().ok());
    if !host.is_some_and(is_here) {
        return Err(RequestRefusal::Elsewhere);
    }
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    match shown {
        Some(shown) if same(shown.trim(), token) => Ok(()),
        Some(_) | None => Err(RequestRefusal::Token),
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
fn same(shown: &str, token: &Digest) -> bool {
    let (shown, token) = (Digest::of(shown), Digest::of(token.to_string()));
    let pairs = shown.as_bytes().iter().zip(token.as_bytes());
    pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
