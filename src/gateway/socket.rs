//! The door for everybody on this machine who is us: a Unix socket.
//!
//! Whoever is another user is turned away. A connection that breaks the protocol is told so and goes on where
//! that is possible; one that sends too much, or never finishes, is closed. None of them can hold up another. When
//! all connections are in use, an idle one makes room for the next.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::admission::{Admission, Connections, PeerProcess, check_peer};
use super::call::Fault;
use super::hall::{Crowd, Hall};
use super::place::{Place, PlaceError};
use super::rpc;
use crate::base::files::may_be_open;
use crate::base::limits::{ACCEPT_PAUSE, MAX_CONNECTIONS, MAX_LARGE_MESSAGES};

mod connection;
pub(super) mod lines;

/// The socket, open until this is dropped.
#[derive(Debug)]
pub struct Door {
    bound: Bound,
    place: Place,
    visitors: watch::Receiver<usize>,
    listening: JoinHandle<()>,
}

impl Door {
    /// Listens at a place.
    ///
    /// # Errors
    /// When nobody can listen there.
    pub fn open(place: Place, hall: Hall) -> Result<Self, PlaceError> {
        let most = MAX_CONNECTIONS.min(may_be_open() / 2);
        Self::open_for(most, place, hall)
    }

    /// The same, for so many at a time.
    ///
    /// # Errors
    /// When nobody can listen there.
    pub fn open_for(most: usize, place: Place, hall: Hall) -> Result<Self, PlaceError> {
        let failed = |error| PlaceError::Io {
            path: place.path().to_owned(),
            error,
        };
        let listener = UnixListener::bind(place.path()).map_err(failed)?;
        let ours = fs::Permissions::from_mode(0o600);
        fs::set_permissions(place.path(), ours).map_err(failed)?;
        let (counted, visitors) = watch::channel(0);
        let shared = Shared {
            hall,
            large: Arc::new(Semaphore::new(MAX_LARGE_MESSAGES)),
            visitors: counted,
        };
        let bound = Bound::at(place.path()).map_err(failed)?;
        let listening = tokio::spawn(listen(listener, shared, place.uid(), most));
        Ok(Self {
            bound,
            place,
            visitors,
            listening,
        })
    }

    /// How many are there.
    #[must_use]
    pub fn visitors(&self) -> watch::Receiver<usize> {
        self.visitors.clone()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// By what it can be told whether agents that go there still find us.
    #[must_use]
    pub fn bound(&self) -> Bound {
        self.bound.clone()
    }
}

/// A socket as it was when it was bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Bound {
    fn at(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// What is wrong with it now, in words; nothing if it is still the same.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let path = self.path.display();
        match Self::at(&self.path) {
            Ok(now) if now == *self => None,
            Ok(_) => Some(format!(
                "SOMEBODY ELSE listens at {path}: agents ask them, not this console; stop the agents and look who it is"
            )),
            Err(_) => Some(format!(
                "{path} is gone: agents cannot ask, and are denied; start cra again"
            )),
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // Everybody who waits hears nothing more; to them that is a denial.
        self.listening.abort();
    }
}

/// What all connections share.
#[derive(Clone, Debug)]
struct Shared {
    hall: Hall,
    /// Room for messages that are larger than most.
    large: Arc<Semaphore>,
    visitors: watch::Sender<usize>,
}

/// Somebody is there, for as long as this lives.
struct Present(watch::Sender<usize>);

impl Present {
    fn among(visitors: &watch::Sender<usize>) -> Self {
        visitors.send_modify(|there| *there += 1);
        Self(visitors.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.send_modify(|there| *there -= 1);
    }
}

async fn listen(listener: UnixListener, shared: Shared, uid: u32, most: usize) {
    // Dropped with this future: no connection outlives the door.
    let mut connections = JoinSet::new();
    let open = Connections::new(most);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                // Most likely there are too many open files: some have to close first, here or elsewhere.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let peer = PeerProcess::of(&stream);
        let pid = peer.as_ref().ok().and_then(|peer| peer.pid);
        let from = match check_peer(peer, uid) {
            Ok(from) => from,
            Err(refusal) => {
                tracing::warn!(%refusal, "a process was turned away at the socket");
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let admission = open.admit(pid);
        if admission != Admission::Admit {
            shared
                .hall
                .note_crowd(Crowd::new("socket", &open, most, admission));
        }
        if admission == Admission::Refuse {
            connections.spawn(turn_away(stream, most));
            continue;
        }
        let entered = open.enter(pid);
        connections.spawn(connection::serve(stream, from, shared.clone(), entered));
    }
}

async fn turn_away(mut stream: UnixStream, most: usize) {
    use tokio::io::AsyncWriteExt;
    let why = format!("no connection is free, of {most} in all; try again later");
    let line = rpc::answer(None, Err(Fault::new(Fault::BUSY, why)));
    // Who does not read it sees that the connection is closed.
    let _ = stream.try_write(line.as_bytes());
    let _ = stream.shutdown().await;
}
