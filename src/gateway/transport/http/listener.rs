//! Connections of the HTTP server: their number, and the time for a request.
//!
//! A connection that exceeds the limit is not closed silently. Its request is read and refused: with status
//! 503, and at a hook with a body that stops the agent, which would continue after a 503.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::base::limits::{ACCEPT_PAUSE, HEADER_TIMEOUT};
use crate::engine::command::Caller;
use crate::gateway::transport::admission::{Admission, Connections, OpenConnection};
use crate::gateway::transport::gateway_state::{ConnectionShortage, GatewayState};

/// Most refused connections that get an answer at a time; further ones are closed.
const MAX_REFUSED_CONNECTIONS: usize = 64;

/// The other side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HttpPeer {
    address: SocketAddr,
    pub(super) slot: ConnectionSlot,
}

impl HttpPeer {
    pub(super) fn caller(self) -> Caller {
        Caller::Http(self.address.to_string())
    }
}

/// Tells whether a connection is within the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionSlot {
    /// The connection is within the limit.
    Free,
    /// The connection exceeds the limit.
    Full,
}

/// Accepts connections until this future is dropped. All connections end with it.
pub(super) async fn accept_connections(
    listener: TcpListener,
    router: Router,
    gateway: GatewayState,
    most: usize,
) {
    let connections = Connections::new(most);
    let away = Arc::new(Semaphore::new(MAX_REFUSED_CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let (stream, address) = match listener.accept().await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Probably too many files are open: some have to be closed first, by this process or
                // another.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let admission = connections.admit(None);
        if admission != Admission::Admit {
            gateway.note_shortage(ConnectionShortage::new(
                "HTTP server",
                &connections,
                most,
                admission,
            ));
        }
        if admission == Admission::Refuse {
            let Ok(held) = Arc::clone(&away).try_acquire_owned() else {
                continue;
            };
            let room = ConnectionSlot::Full;
            let peer = HttpPeer {
                address,
                slot: room,
            };
            let router = router.clone().layer(Extension(peer));
            open.spawn(async move {
                let _held = held;
                serve_connection(stream, router, room, std::future::pending()).await;
            });
            continue;
        }
        let room = ConnectionSlot::Free;
        let peer = HttpPeer {
            address,
            slot: room,
        };
        let entered = Arc::new(connections.add(None));
        let counted = from_fn_with_state(Arc::clone(&entered), count_call);
        let router = router.clone().layer(Extension(peer)).layer(counted);
        open.spawn(async move {
            serve_connection(stream, router, room, entered.wait_for_close()).await;
        });
    }
}

/// Marks a request as waiting for its answer, so that its connection is not closed to make room.
async fn count_call(
    State(entered): State<Arc<OpenConnection>>,
    request: Request,
    next: Next,
) -> Response {
    // If the connection was told to make room, hyper closes it after this answer.
    let _waiting = entered.begin_call();
    next.run(request).await
}

/// Serves a connection until it ends. If it has to make room, running requests are still answered.
async fn serve_connection(
    stream: TcpStream,
    router: Router,
    room: ConnectionSlot,
    make_room: impl Future<Output = ()>,
) {
    // Answers are small and written in one piece.
    let _ = stream.set_nodelay(true);
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .keep_alive(room == ConnectionSlot::Free);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // The client sees errors of the connection; the server ignores them.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = make_room => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
