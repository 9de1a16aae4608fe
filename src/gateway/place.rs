//! Where the console listens.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Longest path of a socket: the system has no room for more.
const MAX_PATH: usize = 107;

/// Why nobody can listen there.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The path is too long.
    #[error("`{}` is too long for a socket: {MAX_PATH} bytes at most", .0.display())]
    TooLong(PathBuf),
    /// Somebody else could put another socket there.
    #[error("`{}` is not only ours: its mode is {mode:o}, and has to be 700", folder.display())]
    Open {
        /// The folder.
        folder: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Another console listens there.
    #[error("another console listens at `{}`", .0.display())]
    Taken(PathBuf),
    /// Something that is no socket lies there.
    #[error("`{}` is not a socket", .0.display())]
    NoSocket(PathBuf),
    /// The system says no.
    #[error("cannot listen at `{}`: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl PlaceError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "name a shorter path with --socket",
            Self::Open { .. } => "chmod 700 it, or name another path with --socket",
            Self::Taken(_) => "close that console, or give this one a --socket of its own",
            Self::NoSocket(_) => "move that file away, or name another path with --socket",
            Self::Io { .. } => "name another path with --socket",
        }
    }
}

/// A place where nobody listens but us, for as long as this lives.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Held while the place is ours. It goes with the process, however that ends.
    _lock: File,
    uid: u32,
}

impl Place {
    /// Takes a place: makes its folder for us alone, and takes away what a console left that is gone.
    ///
    /// # Errors
    /// When it is somebody else's, or cannot be made safe.
    pub fn take(path: &Path) -> Result<Self, PlaceError> {
        if path.as_os_str().len() > MAX_PATH {
            return Err(PlaceError::TooLong(path.to_owned()));
        }
        let failed = |error| PlaceError::Io {
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
            Err(fs::TryLockError::WouldBlock) => return Err(PlaceError::Taken(path.to_owned())),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        clear(path)?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
            uid,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose process this is.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays is taken away by the next console.
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

/// Whether nobody else can put something into the folder. One that others may write to with the sticky bit
/// set, as `/tmp` is, would let them listen there before us.
fn check_folder(folder: &Path, uid: u32) -> io::Result<Result<(), PlaceError>> {
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
    Ok(Err(PlaceError::Open {
        folder: folder.to_owned(),
        mode,
    }))
}

/// Takes away a socket behind which nobody is.
fn clear(path: &Path) -> Result<(), PlaceError> {
    let failed = |error| PlaceError::Io {
        path: path.to_owned(),
        error,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) => {
            use std::os::unix::fs::FileTypeExt;
            if !found.file_type().is_socket() {
                return Err(PlaceError::NoSocket(path.to_owned()));
            }
        }
    }
    if UnixStream::connect(path).is_ok() {
        return Err(PlaceError::Taken(path.to_owned()));
    }
    fs::remove_file(path).map_err(failed)
}
