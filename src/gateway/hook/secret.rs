//! What the keys of sessions are made from that hooks speak for.

use std::io;
use std::path::Path;

use crate::base::digest::Digest;
use crate::runtime::private_file::read_or_make;

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
    // Hooks run side by side: the first that needs it makes it for all.
    let text = read_or_make(folder, name, || {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Digest::of(bytes).to_string())
    })?;
    let secret = text.trim().parse();
    secret.map_err(|_| {
        let path = folder.join(name);
        io::Error::other(format!(
            "`{}` is no secret: take it away, and begin new sessions in the agents",
            path.display()
        ))
    })
}
