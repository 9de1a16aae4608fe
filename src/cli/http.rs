//! `--http`: the HTTP server for agents.

use std::net::SocketAddr;
use std::path::Path;

use super::error::Failure;
use crate::base::limits::MAX_HTTP_CONNECTIONS;
use crate::base::open_files::raise_open_file_limit;
use crate::gateway::transport::gateway_state::GatewayState;
use crate::gateway::transport::http::{HttpResources, HttpServer, remove_address_file};
use crate::runtime::Runtime;

/// Starts the server, if it is enabled.
pub(super) async fn start_server(
    wanted: Option<SocketAddr>,
    runtime: &Runtime,
    gateway: GatewayState,
    (folder, socket): (&Path, &Path),
) -> Result<Option<HttpServer>, Failure> {
    let Some(address) = wanted else {
        remove_address_file(folder);
        return Ok(None);
    };
    let resources = HttpResources {
        gateway,
        records: runtime.record_stream(),
        folder: folder.to_owned(),
        socket: socket.to_owned(),
        connections: MAX_HTTP_CONNECTIONS.min(raise_open_file_limit() / 4),
    };
    Ok(Some(HttpServer::start(address, resources).await?))
}

/// Message with the address for agents.
pub(super) fn address_message(server: &HttpServer) -> String {
    let address = server.address();
    format!("agents can connect at http://{address}")
}
