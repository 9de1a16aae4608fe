//! What the keys of sessions are made from that hooks speak for.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::base::digest::Digest;

/// The file, beside the store.
const FILE_NAME: &str = "hook.key";

/// The secret of a folder: the one that is there, or a new one.
///
/// # Errors
/// When the folder cannot be read or written, or what is there is no secret.
pub fn secret(folder: &Path) -> io::Result<Digest> {
    secret_named(folder, FILE_NAME)
}

/// A secret of a folder by the name of its file: the one that is there, or a new one.
///
/// # Errors
/// When the folder cannot be read or written, or what is there is no secret.
pub(in crate::gateway) fn secret_named(folder: &Path, name: &str) -> io::Result<Digest> {
    let path = folder.join(name);
    if let Some(known) = read(&path)? {
        return Ok(known);
    }
    fs::create_dir_all(folder)?;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let new = Digest::of(bytes);
    // Whole or not at all, and whoever is first wins: hooks run side by side.
    let draft = folder.join(format!("{name}.{}", std::process::id()));
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(new.to_string().as_bytes())?;
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

fn read(path: &Path) -> io::Result<Option<Digest>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let secret = text.trim().parse();
    secret
        .map(Some)
        .map_err(|_| io::Error::other(format!("`{}` is no secret", path.display())))
}
