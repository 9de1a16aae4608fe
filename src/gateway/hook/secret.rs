//! Secret from which the session keys of hooks are derived.

use std::io;
use std::path::Path;

use crate::base::digest::Digest;
use crate::runtime::private_file::read_or_create;

/// File name, in the folder of the store.
const FILE_NAME: &str = "hook.key";

/// Returns the secret of a folder, and creates it if it is missing.
///
/// # Errors
/// Fails when the folder cannot be read or written, or the file holds no secret.
pub fn secret(folder: &Path) -> io::Result<Digest> {
    secret_named(folder, FILE_NAME)
}

/// Returns a secret of a folder by its file name, and creates it if it is missing.
///
/// # Errors
/// Fails when the folder cannot be read or written, or the file holds no secret.
pub(in crate::gateway) fn secret_named(folder: &Path, name: &str) -> io::Result<Digest> {
    // Hooks run concurrently: the first one that needs the secret creates it for all.
    let text = read_or_create(folder, name, || {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Digest::of(bytes).to_string())
    })?;
    let secret = text.trim().parse();
    secret.map_err(|_| {
        let path = folder.join(name);
        io::Error::other(format!(
            "`{}` has no valid secret: remove the file, and start new sessions in the agents",
            path.display()
        ))
    })
}
