//! Socket path of the console, and the lock that keeps other consoles off it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Longest path of a socket in bytes: the system accepts no more.
const MAX_PATH: usize = 107;

/// Reason why the console cannot listen there.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path is too long.
    #[error("`{}` is too long for a socket path (at most {MAX_PATH} bytes)", .0.display())]
    TooLong(PathBuf),
    /// Another user could put another socket there.
    #[error("`{}` must have mode 0700 (is 0{mode:o})", folder.display())]
    SharedFolder {
        /// The folder.
        folder: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Another console listens there.
    #[error("another console listens at `{}`", .0.display())]
    InUse(PathBuf),
    /// The file there is not a socket.
    #[error("`{}` is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// The system refuses.
    #[error("cannot listen at `{}`: {error}", path.display())]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}

impl SocketError {
    /// Returns advice on the error.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "use a shorter path with --socket",
            Self::SharedFolder { .. } => "run chmod 700 on it, or use another path with --socket",
            Self::InUse(_) => "close that console, or use another path with --socket",
            Self::NotASocket(_) => "move that file away, or use another path with --socket",
            Self::Io { .. } => "use another path with --socket",
        }
    }
}

/// A socket path that is reserved for this console while this value lives.
#[derive(Debug)]
pub struct SocketLock {
    path: PathBuf,
    /// Locked while the path is reserved. The system unlocks it when the process ends, even after a crash.
    _lock: File,
    uid: u32,
}

impl SocketLock {
    /// Reserves a path: creates its folder for this user alone, and removes the socket of an ended console.
    ///
    /// # Errors
    /// Fails when another console uses the path, or when it cannot be made safe.
    pub fn acquire(path: &Path) -> Result<Self, SocketError> {
        if path.as_os_str().len() > MAX_PATH {
            return Err(SocketError::TooLong(path.to_owned()));
        }
        let failed = |error| SocketError::Io {
            path: path.to_owned(),
            error,
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        make_folder(folder).map_err(failed)?;
        let lock = open_lock(path).map_err(failed)?;
        let uid = lock.metadata().map_err(failed)?.uid();
        check_folder(folder, uid).map_err(failed)??;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(SocketError::InUse(path.to_owned())),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        remove_stale_socket(path)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
            uid,
        })
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the user of this process.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }
}

impl Drop for SocketLock {
    fn drop(&mut self) {
        // If the removal fails, the next console removes the file.
        let _ = fs::remove_file(&self.path);
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn open_lock(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(name)
}

/// Checks that only this user can create files in the folder. In a folder that others may write to with the
/// sticky bit set, such as `/tmp`, another user could listen there first.
fn check_folder(folder: &Path, uid: u32) -> io::Result<Result<(), SocketError>> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let found = fs::metadata(folder)?;
    let mode = found.permissions().mode() & 0o7777;
    let others = mode & 0o077;
    if found.uid() == uid && others == 0 {
        return Ok(Ok(()));
    }
    Ok(Err(SocketError::SharedFolder {
        folder: folder.to_owned(),
        mode,
    }))
}

/// Removes a socket on which no process listens.
fn remove_stale_socket(path: &Path) -> Result<(), SocketError> {
    let failed = |error| SocketError::Io {
        path: path.to_owned(),
        error,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) => {
            use std::os::unix::fs::FileTypeExt;
            if !found.file_type().is_socket() {
                return Err(SocketError::NotASocket(path.to_owned()));
            }
        }
    }
    if UnixStream::connect(path).is_ok() {
        return Err(SocketError::InUse(path.to_owned()));
    }
    fs::remove_file(path).map_err(failed)
}
