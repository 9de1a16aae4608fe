//! External copy of the log's head: on another disk, in a repository, on a colleague's machine.

use std::fs;
use std::io;
use std::path::Path;

use crate::base::atomic_file::{self, FileAccess};
use crate::trace::head::KnownHead;

/// Reads the head from a file, if the file exists.
///
/// # Errors
/// Fails with a message when the file holds something else or cannot be read.
pub fn read_head(path: &Path) -> Result<Option<KnownHead>, String> {
    let failed = |what: String| format!("`{}`: {what}", path.display());
    match fs::read_to_string(path) {
        Ok(text) => {
            let head = KnownHead::read(&text).map_err(|error| failed(error.to_string()))?;
            Ok(Some(head))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Writes a signed head to a file. A reader of the file finds the old head or the new one, never a partial
/// one.
///
/// # Errors
/// Fails with a message when the file cannot be written.
pub fn write_head(path: &Path, note: &str) -> Result<(), String> {
    atomic_file::replace(path, FileAccess::Default, note.as_bytes())
        .map_err(|error| format!("`{}`: {error}", path.display()))
}
