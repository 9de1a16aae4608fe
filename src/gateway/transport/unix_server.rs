//! Unix socket server for processes of this user.
//!
//! Processes of other users are refused. A connection that breaks the protocol gets an error and continues
//! if possible; one that sends too much, or never finishes a message, is closed. No connection can delay
//! another. When all connections are in use, an idle one makes room for the next.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::admission::{Admission, Connections, PeerProcess, check_peer};
use super::gateway_state::{ConnectionShortage, GatewayState};
use super::socket_lock::{SocketError, SocketLock};
use crate::base::limits::{ACCEPT_PAUSE, MAX_CONNECTIONS, MAX_LARGE_MESSAGES};
use crate::base::open_files::raise_open_file_limit;
use crate::gateway::protocol::call::CallFault;
use crate::gateway::protocol::rpc;

mod connection;
pub(super) mod lines;

/// The socket server. It runs until this is dropped.
#[derive(Debug)]
pub struct UnixServer {
    bound: BoundSocket,
    lock: SocketLock,
    connections: watch::Receiver<usize>,
    listening: JoinHandle<()>,
}

impl UnixServer {
    /// Starts to listen at a path.
    ///
    /// # Errors
    /// Fails when the path cannot be used.
    pub fn start(place: SocketLock, gateway: GatewayState) -> Result<Self, SocketError> {
        let most = MAX_CONNECTIONS.min(raise_open_file_limit() / 2);
        Self::open_for(most, place, gateway)
    }

    /// Starts to listen at a path, with a limit of connections.
    ///
    /// # Errors
    /// Fails when the path cannot be used.
    pub fn open_for(
        most: usize,
        place: SocketLock,
        gateway: GatewayState,
    ) -> Result<Self, SocketError> {
        let failed = |error| SocketError::Io {
            path: place.path().to_owned(),
            error,
        };
        let listener = UnixListener::bind(place.path()).map_err(failed)?;
        let ours = fs::Permissions::from_mode(0o600);
        fs::set_permissions(place.path(), ours).map_err(failed)?;
        let (counted, connections) = watch::channel(0);
        let shared = SocketState {
            gateway,
            large: Arc::new(Semaphore::new(MAX_LARGE_MESSAGES)),
            connections: counted,
        };
        let bound = BoundSocket::identify(place.path()).map_err(failed)?;
        let listening = tokio::spawn(accept_connections(listener, shared, place.uid(), most));
        Ok(Self {
            bound,
            lock: place,
            connections,
            listening,
        })
    }

    /// Returns the number of connections, as a watch channel.
    #[must_use]
    pub fn connections(&self) -> watch::Receiver<usize> {
        self.connections.clone()
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.lock.path()
    }

    /// Returns the identity of the bound socket, to check whether agents still reach this console there.
    #[must_use]
    pub fn bound(&self) -> BoundSocket {
        self.bound.clone()
    }
}

/// Identity of a socket file when it was bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundSocket {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl BoundSocket {
    fn identify(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Describes the current problem of the socket; `None` if it is unchanged.
    #[must_use]
    pub fn find_problem(&self) -> Option<String> {
        let path = self.path.display();
        match Self::identify(&self.path) {
            Ok(now) if now == *self => None,
            Ok(_) => Some(format!(
                "ANOTHER PROCESS listens at {path}: agents ask it, not this console; stop the agents and find that process"
            )),
            Err(_) => Some(format!(
                "{path} is gone: agents cannot connect and are denied; restart cra"
            )),
        }
    }
}

impl Drop for UnixServer {
    fn drop(&mut self) {
        // All waiting callers lose their connection, which is a denial for them.
        self.listening.abort();
    }
}

/// State shared by all connections.
#[derive(Clone, Debug)]
struct SocketState {
    gateway: GatewayState,
    /// Permits for large messages.
    large: Arc<Semaphore>,
    connections: watch::Sender<usize>,
}

/// An open connection, counted while this value lives.
struct CountedConnection(watch::Sender<usize>);

impl CountedConnection {
    fn among(connections: &watch::Sender<usize>) -> Self {
        connections.send_modify(|there| *there += 1);
        Self(connections.clone())
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.send_modify(|there| *there -= 1);
    }
}

async fn accept_connections(listener: UnixListener, shared: SocketState, uid: u32, most: usize) {
    // Dropped with this future, so that all connections end with the server.
    let mut connections = JoinSet::new();
    let open = Connections::new(most);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Probably too many files are open: some have to be closed first, by this process or
                // another.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let peer = PeerProcess::from_stream(&stream);
        let pid = peer.as_ref().ok().and_then(|peer| peer.pid);
        let from = match check_peer(peer, uid) {
            Ok(from) => from,
            Err(refusal) => {
                tracing::warn!(%refusal, "a process was refused at the socket");
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let admission = open.admit(pid);
        if admission != Admission::Admit {
            shared
                .gateway
                .note_shortage(ConnectionShortage::new("socket", &open, most, admission));
        }
        if admission == Admission::Refuse {
            connections.spawn(refuse_connection(stream, most));
            continue;
        }
        let entered = open.add(pid);
        connections.spawn(connection::serve(stream, from, shared.clone(), entered));
    }
}

async fn refuse_connection(mut stream: UnixStream, most: usize) {
    use tokio::io::AsyncWriteExt;
    let why = format!("all {most} connections are in use; try again later");
    let line = rpc::answer(None, Err(CallFault::new(CallFault::BUSY, why)));
    // A client that does not read the line sees that the connection is closed.
    let _ = stream.try_write(line.as_bytes());
    let _ = stream.shutdown().await;
}
