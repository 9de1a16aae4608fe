//! Small private files: created once, completely or not at all.

use std::fs;
use std::io;
use std::path::Path;

use crate::base::atomic_file::{self, FileAccess};

/// Reads a file, and creates it if it is missing. If several processes create it at once, the first one
/// wins.
///
/// # Errors
/// Fails when the file cannot be read, created or written.
pub fn read_or_create(
    folder: &Path,
    name: &str,
    make: impl FnOnce() -> io::Result<String>,
) -> io::Result<String> {
    let path = folder.join(name);
    if let Some(known) = read(&path)? {
        return Ok(known);
    }
    fs::create_dir_all(folder)?;
    let new = make()?;
    match atomic_file::create(&path, FileAccess::Owner, new.as_bytes()) {
        Ok(()) => Ok(new),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(&path)?.ok_or_else(|| io::Error::other("the file was removed"))
        }
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
