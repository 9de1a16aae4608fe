//! A copy of the log's head, kept elsewhere: on another disk, in a repository, on a colleague's machine.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::trace::head::KnownHead;

/// The head that is kept in a file, if there is one.
///
/// # Errors
/// In words, when there is something else in it, or it cannot be read.
pub fn read(path: &Path) -> Result<Option<KnownHead>, String> {
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

/// Keeps a signed head in a file. Whoever reads the file finds the head before or this one, never a
/// part of one.
///
/// # Errors
/// In words, when it cannot be written.
pub fn keep(path: &Path, note: &str) -> Result<(), String> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(note.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(|error| format!("`{}`: {error}", path.display()))
}
