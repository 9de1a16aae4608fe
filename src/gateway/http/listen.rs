//! Connections: how many there may be, and how long each may take to say what it wants.
//!
//! A connection too many is not cut off in silence. Its request is read and answered that there are too many:
//! with 503, and at a hook with words that stop the agent, which would go on after a 503.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::base::limits::{ACCEPT_PAUSE, HEADER_TIME};
use crate::engine::command::Caller;

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
pub(super) async fn listen(listener: TcpListener, router: Router, most: usize) {
    let rooms = Arc::new(Semaphore::new(most));
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
        let (room, held) = match Arc::clone(&rooms).try_acquire_owned() {
            Ok(held) => (Room::Enough, held),
            Err(_) => match Arc::clone(&away).try_acquire_owned() {
                Ok(held) => (Room::Full, held),
                Err(_) => continue,
            },
        };
        let peer = Peer { address, room };
        open.spawn(serve(stream, router.clone(), peer, held));
    }
}

async fn serve(stream: TcpStream, router: Router, peer: Peer, _held: OwnedSemaphorePermit) {
    // Answers are small and whole.
    let _ = stream.set_nodelay(true);
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .keep_alive(peer.room == Room::Enough);
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    // Whatever goes wrong there, whoever is at the other end sees it.
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
