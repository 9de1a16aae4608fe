//! Stream of a session's records, as they are written.
//!
//! The stream has only durable records, and only what the session's agent may know: see [`super::event_filter`].
//! Redacted values are not in it. A reader that does not read is disconnected; it reconnects with the
//! number of the last event that it received.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::HttpState;
use super::call_handler::{fault_response, refusal_response};
use super::event_filter::filter_event;
use super::listener::HttpPeer;
use crate::base::id::SessionId;
use crate::base::limits::MESSAGE_TIMEOUT;
use crate::gateway::protocol::call::{CallFault, SessionKey};
use crate::runtime::RecordStream;
use crate::trace::event::Event;

/// Most events that are read at a time.
const PAGE_EVENTS: usize = 100;

/// Most pages in the queue to a reader.
const MAX_QUEUED_PAGES: usize = 4;

/// Interval of keep-alive messages. They also show the server whether the reader is still connected.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Header with the secret of the session.
const SESSION_KEY_HEADER: &str = "cra-session-key";

/// Query of the request.
#[derive(Debug, Deserialize)]
pub(super) struct EventQuery {
    session: SessionId,
    /// Sequence number of the first event.
    #[serde(default)]
    from: u64,
}

/// `GET /v1/events?session=ID`
pub(super) async fn serve(
    State(shared): State<Arc<HttpState>>,
    Extension(peer): Extension<HttpPeer>,
    wanted: Result<Query<EventQuery>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let wanted = match wanted {
        Ok(Query(wanted)) => wanted,
        Err(error) => return fault_response(&CallFault::wrong_params("", error.body_text())),
    };
    let key = headers
        .get(SESSION_KEY_HEADER)
        .and_then(|value| value.to_str().ok());
    let key = key.and_then(|text| SessionKey::try_from(Value::from(text)).ok());
    let shown = key.map(|key| key.digest());
    let agents = &shared.resources.gateway.agents;
    let owns = agents.check_owner(wanted.session.clone(), shown, Some(peer.caller()));
    match (owns.await, shown) {
        (Ok(()), _) => {}
        (Err(denied), Some(_)) => return fault_response(&CallFault::from(denied)),
        (Err(_), None) => {
            let why = "send the session's `key` in the header Cra-Session-Key";
            return refusal_response(StatusCode::FORBIDDEN, why);
        }
    }
    let Ok(room) = Arc::clone(&shared.streams).try_acquire_owned() else {
        return fault_response(&CallFault::new(
            CallFault::BUSY,
            "too many event streams; try again later",
        ));
    };
    let last = headers.get("last-event-id");
    let last = last.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let from = last.map_or(wanted.from, |last| last.saturating_add(1));
    let (sender, pages) = mpsc::channel(MAX_QUEUED_PAGES);
    let records = shared.resources.records.clone();
    tokio::spawn(stream_events(records, wanted.session, from, sender, room));
    let pages = futures_util::stream::unfold(pages, |mut pages| async {
        let page: Bytes = pages.recv().await?;
        Some((Ok::<_, Infallible>(page), pages))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from_stream(pages)).into_response()
}

/// Streams records to one reader, until it disconnects or stops reading.
async fn stream_events(
    mut records: RecordStream,
    session: SessionId,
    mut from: u64,
    reader: mpsc::Sender<Bytes>,
    _room: OwnedSemaphorePermit,
) {
    loop {
        let page = match timeout(
            KEEP_ALIVE_INTERVAL,
            records.next_events(&session, from, PAGE_EVENTS),
        )
        .await
        {
            Ok(Ok(events)) => {
                from = events
                    .last()
                    .map_or(from, |event| event.sequence.saturating_add(1));
                events.into_iter().map(format_event).collect()
            }
            Ok(Err(_)) => return,
            Err(_) => ": nothing new\n\n".to_owned(),
        };
        match timeout(MESSAGE_TIMEOUT, reader.send(Bytes::from(page))).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

fn format_event(event: Event) -> String {
    let event = filter_event(event);
    let data = serde_json::to_string(&event).unwrap_or_default();
    let (id, kind) = (event.sequence, &event.event_type);
    format!("id: {id}\nevent: {kind}\ndata: {data}\n\n")
}
