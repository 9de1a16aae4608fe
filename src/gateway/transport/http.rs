//! HTTP server for programs on this machine, protected by a token.
//!
//! `POST /v1/CALL` takes the parameters of a [`crate::gateway::protocol::call::AgentCall`] as a JSON object that includes the `key`
//! of the session. It answers with a result or a fault. Dots in a call's name may be written as slashes.
//! `POST /v1/hook/claude-code` is a hook; `GET /v1/events` streams a session's records as they are written;
//! `GET /v1/openapi.json` describes the interface.
//!
//! Contracts:
//! - A request without the token gets only a refusal. Web pages are not served, even with the token: a
//!   browser sends requests that its user did not make.
//! - A hook is always answered with status 200 and a body that stops the agent or lets it continue: the
//!   agent treats every other status as permission.
//! - A caller that closes the connection withdraws its held request.
//! - An agent sees only those parts of its session's record that it may know.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::gateway_state::GatewayState;
use crate::base::digest::Digest;
use crate::base::limits::{MAX_LARGE_MESSAGES, MAX_PENDING_CALLS};
use crate::gateway::hook::{secret, secret_named};
use crate::runtime::RecordStream;

mod call_handler;
mod event_filter;
mod event_stream;
mod guard;
mod hook;
mod listener;
mod openapi;

pub use openapi::document;

/// File name of the token, in the folder of the store.
pub const TOKEN_FILE: &str = "http.token";

/// File name of the server's address, in the folder of the store. The file exists while the server runs.
pub const ADDRESS_FILE: &str = "http.address";

/// Most calls that wait for an answer at a time; further ones are refused as busy.
const MAX_CALLS: usize = 16 * MAX_PENDING_CALLS;

/// Most event streams at a time.
const MAX_STREAMS: usize = 64;

/// Reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Other machines could connect.
    #[error("`{0}` is not a loopback address")]
    NotLoopback(SocketAddr),
    /// The system refuses to listen.
    #[error("cannot listen at `{0}`: {1}")]
    Io(SocketAddr, io::Error),
    /// The address file cannot be written, so clients could not find the server.
    #[error("`{}` cannot be written: {}", .0.display(), .1)]
    Address(PathBuf, io::Error),
    /// The token is missing or unusable.
    #[error("the token in `{}` cannot be used: {}", .0.display(), .1)]
    Token(PathBuf, io::Error),
}

impl HttpError {
    /// Returns advice on the error.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotLoopback(_) => "use an address such as 127.0.0.1:8377",
            Self::Io(..) => "use another port",
            Self::Address(..) => "free space in that folder, or use another with --data-dir",
            Self::Token(..) => "run chmod 600 on it, or remove it: cra creates another",
        }
    }
}

/// Resources of the HTTP server.
#[derive(Debug)]
pub struct HttpResources {
    /// State shared with the other servers.
    pub gateway: GatewayState,
    /// The record.
    pub records: RecordStream,
    /// Folder of the store, where the token is kept.
    pub folder: PathBuf,
    /// Unix socket of the console: the command with which an agent answers a checkpoint names it.
    pub socket: PathBuf,
    /// Most connections at a time; further ones are refused as busy.
    pub connections: usize,
}

/// The HTTP server. It runs until this is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    shared: Arc<HttpState>,
    listening: JoinHandle<()>,
    _known: AddressFile,
}

/// File with the server's address. It is removed when the server stops.
#[derive(Debug)]
struct AddressFile(PathBuf);

impl AddressFile {
    fn write(folder: &Path, address: SocketAddr) -> Result<Self, HttpError> {
        let path = folder.join(ADDRESS_FILE);
        let written = std::fs::write(&path, format!("{address}\n"));
        written.map_err(|error| HttpError::Address(path.clone(), error))?;
        Ok(Self(path))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // A file that stays behind names a server that has stopped; the next console removes it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the HTTP address of a folder's console, if its file is there.
#[must_use]
pub fn read_address(folder: &Path) -> Option<SocketAddr> {
    let text = std::fs::read_to_string(folder.join(ADDRESS_FILE)).ok()?;
    text.trim().parse().ok()
}

/// Removes the address file of a console that was killed.
pub fn remove_address_file(folder: &Path) {
    // A missing file needs no removal.
    let _ = std::fs::remove_file(folder.join(ADDRESS_FILE));
}

impl HttpServer {
    /// Starts a server at an address.
    ///
    /// # Errors
    /// Fails when the address is not a loopback address or is in use, or when the token is unusable.
    pub async fn start(address: SocketAddr, behind: HttpResources) -> Result<Self, HttpError> {
        if !address.ip().is_loopback() {
            return Err(HttpError::NotLoopback(address));
        }
        let token = token(&behind.folder)?;
        // Concurrent first hooks would race to create the secret. If this fails, each hook is denied with the
        // reason.
        let _ = secret(&behind.folder);
        let failed = |error| HttpError::Io(address, error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let known = AddressFile::write(&behind.folder, address)?;
        let most = behind.connections;
        let shared = Arc::new(HttpState {
            resources: behind,
            token,
            calls: Semaphore::new(MAX_CALLS),
            large: Semaphore::new(MAX_LARGE_MESSAGES),
            hooks: Semaphore::new(most),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        });
        let router = Router::new()
            .route("/v1/openapi.json", get(openapi::serve))
            .route("/v1/events", get(event_stream::serve))
            .route("/v1/{*call}", post(call_handler::handle_call))
            .fallback(call_handler::not_found)
            .layer(axum::middleware::from_fn_with_state(
                Arc::clone(&shared),
                guard::check_request,
            ))
            // The hook route has no guard layer, which would answer with another status.
            .route("/v1/hook/{host}", post(hook::serve))
            .with_state(Arc::clone(&shared));
        let gateway = shared.resources.gateway.clone();
        let listening = tokio::spawn(listener::accept_connections(
            listener, router, gateway, most,
        ));
        Ok(Self {
            address,
            shared,
            listening,
            _known: known,
        })
    }

    /// Returns the number of calls without an answer.
    #[must_use]
    pub fn pending_calls(&self) -> usize {
        MAX_CALLS.saturating_sub(self.shared.calls.available_permits())
    }

    /// Returns the number of hooks without an answer.
    #[must_use]
    pub fn pending_hooks(&self) -> usize {
        let most = self.shared.resources.connections;
        most.saturating_sub(self.shared.hooks.available_permits())
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// State shared by all requests.
#[derive(Debug)]
struct HttpState {
    resources: HttpResources,
    token: Digest,
    calls: Semaphore,
    large: Semaphore,
    /// Permits for hooks: one for each connection, which has one request at a time.
    hooks: Semaphore,
    streams: Arc<Semaphore>,
}

/// Returns the token of a folder, and creates it if it is missing. A token that other users may read is
/// refused.
fn token(folder: &Path) -> Result<Digest, HttpError> {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(TOKEN_FILE);
    let failed = |error| HttpError::Token(path.clone(), error);
    let token = secret_named(folder, TOKEN_FILE).map_err(failed)?;
    let found = std::fs::metadata(&path).map_err(failed)?;
    let mode = found.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(failed(io::Error::other(format!(
            "the file must have mode 0600 (is 0{mode:o})"
        ))));
    }
    Ok(token)
}
