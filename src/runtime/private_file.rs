//! Small files for their owner alone: made once, whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The text of a file that is made when it is not there. Whoever is first wins: others may need it at the
/// same time.
///
/// # Errors
/// When it cannot be read, made or written.
pub fn read_or_make(
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
    // An empty one after a power cut would be nobody's secret.
    file.sync_all()?;
    let linked = fs::hard_link(&draft, &path);
    fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(new),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(&path)?.ok_or_else(|| io::Error::other("it went away"))
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
