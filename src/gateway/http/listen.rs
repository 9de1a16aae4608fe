//! Connections: how many there may be, and how long each may take to say what it wants.
//!
//! A connection too many is not cut off in silence. Its request is read and answered that there are too many:
//! with 503, and at a hook with words that stop the agent, which would go on after a 503.

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

use crate::base::limits::{ACCEPT_PAUSE, HEADER_TIME};
use crate::engine::command::Caller;
use crate::gateway::admission::{Admission, Connections, OpenConnection};
use crate::gateway::hall::{Crowd, Hall};

/// Connections too many that are told so at a time; what comes beyond them is closed.
const MAX_TURNED_AWAY: usize = 64;

/// The other side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    address: SocketAddr,
    pub(super) room: Room,
}

impl Peer {
    pub(super) fn caller(self) -> Caller {
        Caller::Http(self.address.to_string())
    }
}

/// Whether there is room for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is.
    Enough,
    /// It is one too many.
    Full,
}

/// Takes connections for as long as this is not dropped. None of them outlives it.
pub(super) async fn listen(listener: TcpListener, router: Router, hall: Hall, most: usize) {
    let connections = Connections::new(most);
    let away = Arc::new(Semaphore::new(MAX_TURNED_AWAY));
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let (stream, address) = match listener.accept().await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                // Most likely there are too many open files: some have to close first, here or elsewhere.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let admission = connections.admit(None);
        if admission != Admission::Admit {
            hall.note_crowd(Crowd::new("HTTP door", &connections, most, admission));
        }
        if admission == Admission::Refuse {
            let Ok(held) = Arc::clone(&away).try_acquire_owned() else {
                continue;
            };
            let room = Room::Full;
            let peer = Peer { address, room };
            let router = router.clone().layer(Extension(peer));
            open.spawn(async move {
                let _held = held;
                serve(stream, router, room, std::future::pending()).await;
            });
            continue;
        }
        let room = Room::Enough;
        let peer = Peer { address, room };
        let entered = Arc::new(connections.enter(None));
        let counted = from_fn_with_state(Arc::clone(&entered), count_call);
        let router = router.clone().layer(Extension(peer)).layer(counted);
        open.spawn(async move { serve(stream, router, room, entered.closed()).await });
    }
}

/// Notes that a request waits for its answer: its connection is not closed to make room.
async fn count_call(
    State(entered): State<Arc<OpenConnection>>,
    request: Request,
    next: Next,
) -> Response {
    // Without a place among the others, hyper closes the connection after this answer.
    let _waiting = entered.begin_call();
    next.run(request).await
}

/// Serves a connection until it ends. When it has to make room, what is under way is still answered.
async fn serve(stream: TcpStream, router: Router, room: Room, make_room: impl Future<Output = ()>) {
    // Answers are small and whole.
    let _ = stream.set_nodelay(true);
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .keep_alive(room == Room::Enough);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // Whatever goes wrong there, the other side sees it.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = make_room => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
