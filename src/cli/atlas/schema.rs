//! `cra atlas schema`: the format, for editors with completion and checks.

use std::io::{self, Write};

use crate::atlas::document::AtlasManifest;
use crate::cli::error::{Failure, verdict};
use crate::cli::exit;

/// Prints the JSON Schema of an Atlas.
pub(in crate::cli) fn schema() -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    let written = serde_json::to_writer_pretty(&mut out, &AtlasManifest::json_schema())
        .map_err(io::Error::from)
        .and_then(|()| writeln!(out));
    verdict(exit::OK, written)
}
