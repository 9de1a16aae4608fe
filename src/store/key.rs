//! The key that signs the log's heads: a file next to the store, readable by its owner only.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::base::atomic_file::{self, FileAccess};
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::head::LogHead;
use crate::trace::note::{NoteError, Signer, Verifier};

/// Name of the key file in the folder of its store.
pub const FILE_NAME: &str = "cra.key";

/// Name of the file with the prepared next key, before it replaces the current one.
const NEXT_FILE_NAME: &str = "cra.key.next";

/// Number of characters of a key's digest in the name of its backup file.
const BACKUP_ID_CHARS: usize = 12;

/// Reason why no key can sign.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("cannot use the key `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The file does not contain a key.
    #[error("`{}` does not contain a key: {source}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        source: NoteError,
    },
    /// Other users can read the file.
    #[error("other users can read `{}` and could sign as this console", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The key belongs to another log.
    #[error("`{}` is the key of another log, not of `{log}`", path.display())]
    OtherLog {
        /// The file.
        path: PathBuf,
        /// The log.
        log: SessionId,
    },
    /// The log names an earlier key, of which a backup file exists.
    #[error("`{}` is not the key of the log; the key of the log is kept as `{}`", path.display(), backup_path.display())]
    Replaced {
        /// The file.
        path: PathBuf,
        /// Backup file with the key of the log.
        backup_path: PathBuf,
    },
    /// The log was signed, and its key is missing.
    #[error("the key `{}`, which signed the log, is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
}

impl KeyError {
    /// Help for the operator: how to resolve the error.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the folder and its permissions",
            Self::Replaced { .. } => {
                "nothing was changed; if an older record was restored, rename the kept key to cra.key"
            }
            Self::Form { .. } | Self::OtherLog { .. } => {
                "nothing was changed; restore the key from a backup, or start a new one with \
                 cra trace key --new"
            }
            Self::Open { .. } => {
                "run chmod 600 on the file; if another user may have read it, run cra trace key --rotate"
            }
            Self::Missing { .. } => {
                "restore the key from a backup; or start a new one with cra trace key --new: the old public \
                 key then does not verify new records"
            }
        }
    }
}

/// Signing history of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningHistory {
    /// The log was never signed: a key is created.
    Unsigned,
    /// The log was signed: its key must exist.
    Signed,
}

/// Loads the key of the log in `folder`. If nothing was signed yet, creates it.
///
/// `current` is the key that the log itself names as current.
///
/// # Errors
/// When no usable key exists.
pub fn load_or_create(
    folder: &Path,
    log: &SessionId,
    history: SigningHistory,
    current: Option<&Verifier>,
) -> Result<Signer, KeyError> {
    let path = folder.join(FILE_NAME);
    finish_rotation(folder, current)?;
    if !path.exists() {
        return match history {
            SigningHistory::Signed => Err(KeyError::Missing { path }),
            SigningHistory::Unsigned => {
                let signer = generate(&path, log)?;
                write_private(&path, &signer)?;
                Ok(signer)
            }
        };
    }
    let signer = read(&path)?;
    let ours = signer.verifier().name() == LogHead::origin(log);
    if !ours || current.is_some_and(|current| *current != signer.verifier()) {
        if let Some(backup_path) = current.and_then(|current| kept_path(folder, current)) {
            return Err(KeyError::Replaced { path, backup_path });
        }
        let log = log.clone();
        return Err(KeyError::OtherLog { path, log });
    }
    Ok(signer)
}

/// Creates the next key and stores it next to the current one.
///
/// # Errors
/// When it cannot be written.
pub fn prepare_next(folder: &Path, log: &SessionId) -> Result<Signer, KeyError> {
    let path = folder.join(NEXT_FILE_NAME);
    let signer = generate(&path, log)?;
    // Replaces an earlier next key that never came into use.
    write_private(&path, &signer)?;
    Ok(signer)
}

/// Replaces the current key by the prepared one, if the log names the prepared one as current.
///
/// # Errors
/// When the files cannot be moved.
pub fn finish_rotation(folder: &Path, current: Option<&Verifier>) -> Result<(), KeyError> {
    let (path, next) = (folder.join(FILE_NAME), folder.join(NEXT_FILE_NAME));
    let Some(current) = current.filter(|_| next.exists()) else {
        return Ok(());
    };
    // An unreadable next key was truncated before any log entry named it.
    if !read(&next).is_ok_and(|next| next.verifier() == *current) {
        return Ok(());
    }
    keep_old(&path)
        .and_then(|()| fs::rename(&next, &path))
        .and_then(|()| File::open(folder)?.sync_all())
        .map_err(|source| io_error(&path, source))
}

/// Loads the key in `folder`, if there is one.
///
/// # Errors
/// When the key exists and cannot be used.
pub fn existing(folder: &Path) -> Result<Option<Signer>, KeyError> {
    let path = folder.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    read(&path).map(Some)
}

/// Backs up the current key before another replaces it. A record restored from a backup may need it.
fn keep_old(path: &Path) -> io::Result<()> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // Content that is not a key is backed up too, under its digest.
    let id = match Signer::from_secret(&text) {
        Ok(signer) => Digest::of(signer.verifier().to_string()).to_string(),
        Err(_) => Digest::of(&text).to_string(),
    };
    let id = id.get(..BACKUP_ID_CHARS).unwrap_or(&id);
    let backup_path = path.with_file_name(format!("{FILE_NAME}.{id}"));
    match fs::hard_link(path, &backup_path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems have no hard links.
        Err(_) => fs::copy(path, &backup_path).map(drop),
        Ok(()) => Ok(()),
    }
}

/// Backup file of an earlier key, if it exists.
fn kept_path(folder: &Path, key: &Verifier) -> Option<PathBuf> {
    let id = Digest::of(key.to_string()).to_string();
    let backup_path = folder.join(format!("{FILE_NAME}.{}", id.get(..BACKUP_ID_CHARS)?));
    backup_path.exists().then_some(backup_path)
}

/// Public key of the log in `folder`, if it can be read.
#[must_use]
pub fn load_verifier(folder: &Path) -> Option<Verifier> {
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
    let text = format!("{}\n", signer.secret());
    atomic_file::replace(path, FileAccess::Owner, text.as_bytes())
        .map_err(|source| io_error(path, source))
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
    fn a_key_is_created_once_with_owner_access_only_and_never_recreated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        // Left by a crash, readable by all users.
        fs::write(folder.path().join("cra.key.new"), "half a k").unwrap();
        let made = load_or_create(folder.path(), &log(), SigningHistory::Unsigned, None).unwrap();
        assert_eq!(mode(&path), 0o600);
        let again = load_or_create(folder.path(), &log(), SigningHistory::Signed, None).unwrap();
        assert_eq!(again.verifier(), made.verifier());
        assert_eq!(load_verifier(folder.path()), Some(made.verifier()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error =
            load_or_create(folder.path(), &log(), SigningHistory::Signed, None).unwrap_err();
        assert!(matches!(error, KeyError::Open { .. }), "{error}");
        fs::remove_file(&path).unwrap();
        let error =
            load_or_create(folder.path(), &log(), SigningHistory::Signed, None).unwrap_err();
        assert!(matches!(error, KeyError::Missing { .. }), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn keys_of_another_log_and_replaced_keys_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let made = load_or_create(folder.path(), &log(), SigningHistory::Unsigned, None).unwrap();
        let other = "log-2".parse().unwrap();
        let error =
            load_or_create(folder.path(), &other, SigningHistory::Signed, None).unwrap_err();
        assert!(matches!(error, KeyError::OtherLog { .. }), "{error}");
        let newer = Signer::generate("cra/log-1").unwrap().verifier();
        let error = load_or_create(folder.path(), &log(), SigningHistory::Signed, Some(&newer))
            .unwrap_err();
        assert!(matches!(error, KeyError::OtherLog { .. }), "{error}");
        let current = made.verifier();
        load_or_create(
            folder.path(),
            &log(),
            SigningHistory::Signed,
            Some(&current),
        )
        .unwrap();
    }

    #[test]
    fn a_next_key_is_used_when_the_log_names_it_and_a_torn_one_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let first = load_or_create(folder.path(), &log(), SigningHistory::Unsigned, None).unwrap();
        let (first, next_path) = (first.verifier(), folder.path().join(NEXT_FILE_NAME));
        fs::write(&next_path, "PRIVATE+KEY+cra/lo").unwrap();
        let used =
            load_or_create(folder.path(), &log(), SigningHistory::Signed, Some(&first)).unwrap();
        assert_eq!(used.verifier(), first);
        let next = prepare_next(folder.path(), &log()).unwrap().verifier();
        assert_eq!(mode(&next_path), 0o600);
        let used =
            load_or_create(folder.path(), &log(), SigningHistory::Signed, Some(&first)).unwrap();
        assert_eq!(
            used.verifier(),
            first,
            "the log does not name the next one yet"
        );
        let used =
            load_or_create(folder.path(), &log(), SigningHistory::Signed, Some(&next)).unwrap();
        assert_eq!(used.verifier(), next);
        assert!(!next_path.exists());
    }
}
