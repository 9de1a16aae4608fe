//! `--http`: the door for programs that speak HTTP.

use std::net::SocketAddr;
use std::path::Path;

use super::error::Failure;
use crate::base::files::may_be_open;
use crate::base::limits::MAX_HTTP_CONNECTIONS;
use crate::gateway::hall::Hall;
use crate::gateway::http::{Behind, Door, forget_address};
use crate::runtime::Runtime;

/// Opens the door, if somebody wants it.
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

/// Where agents come in, for people.
pub(super) fn greeting(door: &Door) -> String {
    let address = door.address();
    format!("agents come in at http://{address}")
}
