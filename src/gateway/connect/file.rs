//! Settings files: read as they are, written as a whole.

use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use crate::base::atomic_file::{self, FileAccess};

/// Largest settings file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// Most backups that are kept next to a file. No backup is ever overwritten.
const MAX_BACKUPS: u32 = 1000;

/// Handling of the old content of a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// The old content is kept in a file next to it.
    Keep,
    /// The old content came from `cra` alone and is not kept.
    Skip,
}

/// A settings file as it was read.
#[derive(Clone, Debug)]
pub struct SettingsFile {
    /// Real path, with links resolved.
    pub path: PathBuf,
    /// Content; `None` if the file does not exist.
    pub text: Option<String>,
    mode: Option<Permissions>,
}

impl SettingsFile {
    /// Reads a file and follows links, as an editor would.
    ///
    /// # Errors
    /// Fails when the file exists but cannot be read or is not text, or when a link is broken.
    pub fn read(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(Self {
                path: path.to_owned(),
                text: None,
                mode: None,
            });
        }
        let path = fs::canonicalize(path)?;
        let found = fs::metadata(&path)?;
        if !found.is_file() || found.len() > MAX_BYTES {
            return Err(io::Error::other("not a settings file"));
        }
        Ok(Self {
            text: Some(fs::read_to_string(&path)?),
            mode: Some(found.permissions()),
            path,
        })
    }

    /// Returns the content.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Replaces the text of the file, or removes the file. Keeps the old content in a backup next to the
    /// file, unless nothing in it is the user's, and returns the path of that backup.
    ///
    /// # Errors
    /// Fails when the file cannot be written, or when another process changed it since it was read. The file is
    /// unchanged then.
    pub fn replace_text(&self, new: Option<&str>, backup: Backup) -> io::Result<Option<PathBuf>> {
        if Self::read(&self.path)?.text != self.text {
            return Err(io::Error::other(
                "another process changed the file meanwhile",
            ));
        }
        let backup = match (&self.text, backup) {
            (Some(text), Backup::Keep) => Some(self.write_backup(text)?),
            (Some(_), Backup::Skip) | (None, _) => None,
        };
        match new {
            Some(new) => replace(&self.path, new, self.mode.clone())?,
            None if self.text.is_some() => fs::remove_file(&self.path)?,
            None => {}
        }
        Ok(backup)
    }

    fn write_backup(&self, text: &str) -> io::Result<PathBuf> {
        for number in 1..=MAX_BACKUPS {
            let mut name = self.path.as_os_str().to_owned();
            name.push(".cra-backup");
            if number > 1 {
                name.push(format!("-{number}"));
            }
            match atomic_file::create(Path::new(&name), access(self.mode.clone()), text.as_bytes())
            {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                written => return written.map(|()| name.into()),
            }
        }
        Err(io::Error::other("too many backups next to the file"))
    }
}

/// Replaces a file, and creates its folder if that is missing.
///
/// # Errors
/// Fails when it cannot be written. The old file is unchanged then.
pub(super) fn replace(path: &Path, text: &str, mode: Option<Permissions>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    atomic_file::replace(path, access(mode), text.as_bytes())
}

fn access(mode: Option<Permissions>) -> FileAccess {
    mode.map_or(FileAccess::Default, FileAccess::Exactly)
}
