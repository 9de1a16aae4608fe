//! Input of a command: a file, or standard input.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use super::error::Failure;

/// Reads a file, or standard input for `-`: at most `most` bytes plus one, which shows that there is
/// more.
pub(super) fn read(file: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::Read(file.to_owned(), error);
    let mut text = Vec::new();
    let limit = most as u64 + 1;
    let read = if file == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut text)
    } else {
        let opened = fs::File::open(file).map_err(failed)?;
        opened.take(limit).read_to_end(&mut text)
    };
    read.map_err(failed)?;
    Ok(text)
}
