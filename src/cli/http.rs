//! `--http`: the HTTP server for agents.

use std::net::SocketAddr;
use std::path::Path;

use super::error::Failure;
use crate::base::files::may_be_open;
use crate::base::limits::MAX_HTTP_CONNECTIONS;
use crate::gateway::hall::Hall;
use crate::gateway::http::{Behind, Door, forget_address};
use crate::runtime::Runtime;

/// Starts the server, if it is enabled.
pub(super) async fn open(
    wanted: Option<SocketAddr>,
    runtime: &Runtime,
    hall: Hall,
    (folder, socket): (&Path, &Path),
) -> Result<Option<Door>, Failure> {
    let Some(address) = wanted else {
        forget_address(folder);
        return Ok(None);
    };
    let behind = Behind {
        hall,
        records: runtime.records(),
        folder: folder.to_owned(),
        socket: socket.to_owned(),
        connections: MAX_HTTP_CONNECTIONS.min(may_be_open() / 4),
    };
    Ok(Some(Door::open(address, behind).await?))
}

/// Message with the address for agents.
pub(super) fn greeting(door: &Door) -> String {
    let address = door.address();
    format!("agents come in at http://{address}")
}
