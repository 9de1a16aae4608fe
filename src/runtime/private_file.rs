//! Small private files: created once, completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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
    let draft = folder.join(format!("{name}.{}", std::process::id()));
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(new.as_bytes())?;
    // Without this, a power failure could leave an empty secret.
    file.sync_all()?;
    let linked = fs::hard_link(&draft, &path);
    fs::remove_file(&draft)?;
    match linked {
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
