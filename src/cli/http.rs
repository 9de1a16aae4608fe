//! `--http`: the door for programs that speak HTTP.

use std::net::SocketAddr;
use std::path::Path;

use super::error::Failure;
use crate::gateway::hall::Hall;
use crate::gateway::http::{Behind, Door};
use crate::runtime::Runtime;

/// Opens the door, if somebody wants it.
pub(super) async fn open(
    wanted: Option<SocketAddr>,
    runtime: &Runtime,
    hall: Hall,
    (folder, socket): (&Path, &Path),
) -> Result<Option<Door>, Failure> {
    let Some(address) = wanted else {
        return Ok(None);
    };
    let behind = Behind {
        hall,
        records: runtime.records(),
        folder: folder.to_owned(),
        socket: socket.to_owned(),
    };
    Ok(Some(Door::open(address, behind).await?))
}
