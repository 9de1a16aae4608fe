//! The key that signs the log's heads: a file beside the store, for its owner alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::head::LogHead;
use crate::trace::note::{NoteError, Signer, Verifier};

/// The key's name in the folder of its store.
pub const FILE_NAME: &str = "cra.key";

/// A key that is to take the place of the one in use, and has not yet.
const NEXT: &str = "cra.key.next";

/// Characters of a key's digest in the name of the file that keeps it.
const KEPT_ID_CHARS: usize = 12;

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("cannot use the key `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// What is in the file is no key.
    #[error("`{}` does not hold a key: {source}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: NoteError,
    },
    /// Others can read it.
    #[error("`{}` can be read by others: whoever reads it can sign in this console's name", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// It is the key of another log.
    #[error("`{}` is the key of another log, not of `{log}`", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The log.
        log: SessionId,
    },
    /// The log names a key that was in use before, and is kept beside.
    #[error("`{}` is not the key that the log names; that one is kept as `{}`", path.display(), kept.display())]
    Kept {
        /// The file.
        path: PathBuf,
        /// The file that keeps the key of the log.
        kept: PathBuf,
    },
    /// The log was signed, and the key is gone.
    #[error("the key `{}` is gone, and the log was signed with it", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
}

impl KeyError {
    /// What can be done about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the folder and its permissions",
            Self::Kept { .. } => {
                "nothing was changed; if an older record was restored, rename the kept key to cra.key"
            }
            Self::Form { .. } | Self::Other { .. } => {
                "nothing was changed; put the key back from a backup, or begin a new one with \
                 cra trace key --new"
            }
            Self::Open { .. } => {
                "chmod 600 it; if somebody may have read it, change it with cra trace key --rotate"
            }
            Self::Gone { .. } => {
                "put it back from a backup; or begin a new one with cra trace key --new, which those \
                 who know the old key cannot verify by it"
            }
        }
    }
}

/// Whether a log has been signed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// It has not: a key is made.
    Unsigned,
    /// It has: its key must be there.
    Signed,
}

/// The key of the log in `folder`. Where nothing was signed yet, it is made.
///
/// `current` is the key that the log itself names as the one in use.
///
/// # Errors
/// When there is none that can be used.
pub fn load(
    folder: &Path,
    log: &SessionId,
    history: History,
    current: Option<&Verifier>,
) -> Result<Signer, KeyError> {
    let path = folder.join(FILE_NAME);
    finish_rotation(folder, current)?;
    if !path.exists() {
        return match history {
            History::Signed => Err(KeyError::Gone { path }),
            History::Unsigned => {
                let signer = generate(&path, log)?;
                write_private(&path, &signer)?;
                Ok(signer)
            }
        };
    }
    let signer = read(&path)?;
    let ours = signer.verifier().name() == LogHead::origin(log);
    if !ours || current.is_some_and(|current| *current != signer.verifier()) {
        if let Some(kept) = current.and_then(|current| kept_path(folder, current)) {
            return Err(KeyError::Kept { path, kept });
        }
        let log = log.clone();
        return Err(KeyError::Other { path, log });
    }
    Ok(signer)
}

/// Makes a key that is to take the place of the one in use, and keeps it beside that one.
///
/// # Errors
/// When it cannot be written.
pub fn prepare_next(folder: &Path, log: &SessionId) -> Result<Signer, KeyError> {
    let path = folder.join(NEXT);
    let signer = generate(&path, log)?;
    // An earlier one that never came into use goes.
    write_private(&path, &signer)?;
    Ok(signer)
}

/// Puts the prepared key in the place of the one in use, if the log says that it is the one in use now.
///
/// # Errors
/// When the files cannot be moved.
pub fn finish_rotation(folder: &Path, current: Option<&Verifier>) -> Result<(), KeyError> {
    let (path, next) = (folder.join(FILE_NAME), folder.join(NEXT));
    let Some(current) = current.filter(|_| next.exists()) else {
        return Ok(());
    };
    // One that cannot be read was cut short before anything named it.
    if !read(&next).is_ok_and(|next| next.verifier() == *current) {
        return Ok(());
    }
    keep_old(&path)
        .and_then(|()| fs::rename(&next, &path))
        .and_then(|()| File::open(folder)?.sync_all())
        .map_err(|source| io_error(&path, source))
}

/// Reads the key in `folder`, where there is one.
///
/// # Errors
/// When it is there and cannot be used.
pub fn existing(folder: &Path) -> Result<Option<Signer>, KeyError> {
    let path = folder.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    read(&path).map(Some)
}

/// Keeps the key in use under a name of its own, before another takes its place. A record that is
/// restored from a backup may need it.
fn keep_old(path: &Path) -> io::Result<()> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // What is no key is kept too, under the digest of what it is.
    let id = match Signer::from_secret(&text) {
        Ok(signer) => Digest::of(signer.verifier().to_string()).to_string(),
        Err(_) => Digest::of(&text).to_string(),
    };
    let id = id.get(..KEPT_ID_CHARS).unwrap_or(&id);
    let kept = path.with_file_name(format!("{FILE_NAME}.{id}"));
    match fs::hard_link(path, &kept) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems have no second names.
        Err(_) => fs::copy(path, &kept).map(drop),
        Ok(()) => Ok(()),
    }
}

/// The file that keeps a key which was in use before, if it is there.
fn kept_path(folder: &Path, key: &Verifier) -> Option<PathBuf> {
    let id = Digest::of(key.to_string()).to_string();
    let kept = folder.join(format!("{FILE_NAME}.{}", id.get(..KEPT_ID_CHARS)?));
    kept.exists().then_some(kept)
}

/// The public half of the key in `folder`, where there is one that can be read.
#[must_use]
pub fn verifier(folder: &Path) -> Option<Verifier> {
    let text = fs::read_to_string(folder.join(FILE_NAME)).ok()?;
    Some(Signer::from_secret(&text).ok()?.verifier())
}

fn generate(path: &Path, log: &SessionId) -> Result<Signer, KeyError> {
    Signer::generate(&LogHead::origin(log)).map_err(|source| KeyError::Form {
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Signer, KeyError> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |source| io_error(path, source);
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(KeyError::Open {
            path: path.to_owned(),
        });
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    Signer::from_secret(&text).map_err(|source| KeyError::Form {
        path: path.to_owned(),
        source,
    })
}

fn write_private(path: &Path, signer: &Signer) -> Result<(), KeyError> {
    use std::os::unix::fs::OpenOptionsExt;
    let write = || {
        // Under another name first: whoever finds the key finds all of it.
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        // One that was left by a crash may be somebody else's to read.
        match fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&name)?;
        writeln!(file, "{}", signer.secret())?;
        file.sync_all()?;
        fs::rename(&name, path)?;
        let folder = path.parent().filter(|above| !above.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|source| io_error(path, source))
}

fn io_error(path: &Path, source: io::Error) -> KeyError {
    KeyError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn log() -> SessionId {
        "log-1".parse().unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_alone_and_is_not_made_anew_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        // Left by a crash, for everybody to read.
        fs::write(folder.path().join("cra.key.new"), "half a k").unwrap();
        let made = load(folder.path(), &log(), History::Unsigned, None).unwrap();
        assert_eq!(mode(&path), 0o600);
        let again = load(folder.path(), &log(), History::Signed, None).unwrap();
        assert_eq!(again.verifier(), made.verifier());
        assert_eq!(verifier(folder.path()), Some(made.verifier()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let told = load(folder.path(), &log(), History::Signed, None).unwrap_err();
        assert!(matches!(told, KeyError::Open { .. }), "{told}");
        fs::remove_file(&path).unwrap();
        let told = load(folder.path(), &log(), History::Signed, None).unwrap_err();
        assert!(matches!(told, KeyError::Gone { .. }), "{told}");
        assert!(!path.exists());
    }

    #[test]
    fn a_key_of_another_log_or_one_that_was_replaced_is_not_signed_with() {
        let folder = tempfile::tempdir().unwrap();
        let made = load(folder.path(), &log(), History::Unsigned, None).unwrap();
        let other = "log-2".parse().unwrap();
        let told = load(folder.path(), &other, History::Signed, None).unwrap_err();
        assert!(matches!(told, KeyError::Other { .. }), "{told}");
        let newer = Signer::generate("cra/log-1").unwrap().verifier();
        let told = load(folder.path(), &log(), History::Signed, Some(&newer)).unwrap_err();
        assert!(matches!(told, KeyError::Other { .. }), "{told}");
        let current = made.verifier();
        load(folder.path(), &log(), History::Signed, Some(&current)).unwrap();
    }

    #[test]
    fn a_next_key_comes_into_use_when_the_log_names_it_and_a_torn_one_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let first = load(folder.path(), &log(), History::Unsigned, None).unwrap();
        let (first, next_path) = (first.verifier(), folder.path().join(NEXT));
        fs::write(&next_path, "PRIVATE+KEY+cra/lo").unwrap();
        let used = load(folder.path(), &log(), History::Signed, Some(&first)).unwrap();
        assert_eq!(used.verifier(), first);
        let next = prepare_next(folder.path(), &log()).unwrap().verifier();
        assert_eq!(mode(&next_path), 0o600);
        let used = load(folder.path(), &log(), History::Signed, Some(&first)).unwrap();
        assert_eq!(
            used.verifier(),
            first,
            "the log does not name the next one yet"
        );
        let used = load(folder.path(), &log(), History::Signed, Some(&next)).unwrap();
        assert_eq!(used.verifier(), next);
        assert!(!next_path.exists());
    }
}
