//! The door for programs that would rather speak HTTP: on this machine only, with a token.
//!
//! `POST /v1/CALL` takes the parameters of a [`super::call::Call`] as a JSON object, with the `key` of the
//! session in it, and answers with its result or with what is wrong. Dots in a call's name may be written as
//! slashes. `POST /v1/hook/claude-code` is a hook; `GET /v1/events` tells what is recorded of a session, as it
//! is; `GET /v1/openapi.json` describes all of it.
//!
//! Contracts:
//! - Nobody who does not show the token is answered anything but that. Web pages are not served, whatever
//!   they show: a browser sends what its user did not ask for.
//! - A hook is always answered with 200 and words that stop the agent, or let it go on: it takes every other
//!   status for leave to go on.
//! - Who closes the connection leaves the gate.
//! - A session's record is told to its agent as far as the agent may know it, and no further.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::hall::Hall;
use super::hook::secret_named;
use crate::base::digest::Digest;
use crate::base::limits::{MAX_CALLS_AT_ONCE, MAX_LARGE_MESSAGES};
use crate::runtime::Records;

mod events;
mod guard;
mod hook;
mod known;
mod listen;
mod openapi;
mod serve;

pub use openapi::document;

/// The file of the token, beside the store.
pub const TOKEN_FILE: &str = "http.token";

/// The file that says where the door is, beside the store, for as long as it is open.
pub const ADDRESS_FILE: &str = "http.address";

/// Calls that wait for an answer at a time; further ones are told to come again.
const MAX_CALLS: usize = 16 * MAX_CALLS_AT_ONCE;

/// Hooks that are answered at a time: each waits on a thread of its own.
const MAX_HOOKS: usize = 128;

/// Streams of events at a time.
const MAX_STREAMS: usize = 64;

/// Why nobody can listen there.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Everybody could come.
    #[error("`{0}` is not on this machine alone")]
    NotLoopback(SocketAddr),
    /// The system says no.
    #[error("cannot listen at `{0}`: {1}")]
    Io(SocketAddr, io::Error),
    /// Nobody could find it.
    #[error("`{}` cannot be written: {}", .0.display(), .1)]
    Address(PathBuf, io::Error),
    /// There is no token.
    #[error("the token in `{}` cannot be used: {}", .0.display(), .1)]
    Token(PathBuf, io::Error),
}

impl HttpError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotLoopback(_) => "name an address such as 127.0.0.1:8377",
            Self::Io(..) => "name another port",
            Self::Address(..) => "make room in that folder, or name another with --data-dir",
            Self::Token(..) => "chmod 600 it, or take it away: another one is made",
        }
    }
}

/// What stands behind the door.
#[derive(Debug)]
pub struct Behind {
    /// The way to the runtime.
    pub hall: Hall,
    /// The record.
    pub records: Records,
    /// The folder of the store, where the token is kept.
    pub folder: PathBuf,
    /// Where the console listens otherwise: hooks ask there.
    pub socket: PathBuf,
    /// Connections at a time; others are told to come again.
    pub connections: usize,
}

/// The door, open until this is dropped.
#[derive(Debug)]
pub struct Door {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
    _known: Known,
}

/// The file that says where the door is. It goes with it.
#[derive(Debug)]
struct Known(PathBuf);

impl Known {
    fn write(folder: &Path, address: SocketAddr) -> Result<Self, HttpError> {
        let path = folder.join(ADDRESS_FILE);
        let written = std::fs::write(&path, format!("{address}\n"));
        written.map_err(|error| HttpError::Address(path.clone(), error))?;
        Ok(Self(path))
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        // What stays says where nobody is any more; the next console takes it away.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Where a folder's console listens by HTTP, if one does that was not cut off.
#[must_use]
pub fn address_in(folder: &Path) -> Option<SocketAddr> {
    let text = std::fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?;
    text.trim().parse().ok()
}

/// Takes away what a console left behind that was cut off.
pub fn forget_address(folder: &Path) {
    // Where there is none, there is nothing to forget.
    let _ = std::fs::remove_file(folder.join(ADDRESS_FILE));
}

impl Door {
    /// Listens at an address.
    ///
    /// # Errors
    /// When it is not on this machine alone, is taken, or there is no token.
    pub async fn open(address: SocketAddr, behind: Behind) -> Result<Self, HttpError> {
        if !address.ip().is_loopback() {
            return Err(HttpError::NotLoopback(address));
        }
        let token = token(&behind.folder)?;
        let failed = |error| HttpError::Io(address, error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let known = Known::write(&behind.folder, address)?;
        let most = behind.connections;
        let shared = Arc::new(Shared {
            behind,
            token,
            calls: Semaphore::new(MAX_CALLS),
            large: Semaphore::new(MAX_LARGE_MESSAGES),
            hooks: Arc::new(Semaphore::new(MAX_HOOKS)),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        });
        let router = Router::new()
            .route("/v1/openapi.json", get(openapi::serve))
            .route("/v1/events", get(events::serve))
            .route("/v1/{*call}", post(serve::call))
            .fallback(serve::nothing)
            .layer(axum::middleware::from_fn_with_state(
                Arc::clone(&shared),
                guard::check,
            ))
            // Before the guard, which would answer with another status.
            .route("/v1/hook/{host}", post(hook::serve))
            .with_state(Arc::clone(&shared));
        let hall = shared.behind.hall.clone();
        let listening = tokio::spawn(listen::listen(listener, router, hall, most));
        Ok(Self {
            address,
            shared,
            listening,
            _known: known,
        })
    }

    /// How many calls have no answer yet.
    #[must_use]
    pub fn under_way(&self) -> usize {
        MAX_CALLS.saturating_sub(self.shared.calls.available_permits())
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// What all requests share.
#[derive(Debug)]
struct Shared {
    behind: Behind,
    token: Digest,
    calls: Semaphore,
    large: Semaphore,
    hooks: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// The token of a folder: the one that is there, or a new one. One that others may read is none.
fn token(folder: &Path) -> Result<Digest, HttpError> {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(TOKEN_FILE);
    let failed = |error| HttpError::Token(path.clone(), error);
    let token = secret_named(folder, TOKEN_FILE).map_err(failed)?;
    let found = std::fs::metadata(&path).map_err(failed)?;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(failed(io::Error::other(format!(
            "others may read it: its mode is {mode:o}, and has to be 600"
        ))));
    }
    Ok(token)
}
