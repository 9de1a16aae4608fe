//! Settings files: read as they are, written as a whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Largest settings file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// Most backups that are kept next to a file. No backup is ever overwritten.
const MAX_BACKUPS: u32 = 1000;

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
    /// file, and returns the path of that backup.
    ///
    /// # Errors
    /// Fails when the file cannot be written, or when another process changed it since it was read. The file is
    /// unchanged then.
    pub fn replace_text(&self, new: Option<&str>) -> io::Result<Option<PathBuf>> {
        if Self::read(&self.path)?.text != self.text {
            return Err(io::Error::other(
                "another process changed the file meanwhile",
            ));
        }
        let backup = match &self.text {
            Some(text) => Some(self.write_backup(text)?),
            None => None,
        };
        match new {
            Some(new) => replace(&self.path, new, self.mode.clone())?,
            None => fs::remove_file(&self.path)?,
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
            match create(Path::new(&name), text, self.mode.clone()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                written => return written.map(|()| name.into()),
            }
        }
        Err(io::Error::other("too many backups next to the file"))
    }
}

/// Writes a file atomically: it holds the whole new text or the old one.
///
/// # Errors
/// Fails when it cannot be written.
pub(super) fn replace(path: &Path, text: &str, mode: Option<Permissions>) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".cra-new-{}", std::process::id()));
    let new = PathBuf::from(name);
    let written = create(&new, text, mode).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // Remove the partial file. The old file is untouched.
        let _ = fs::remove_file(&new);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn create(path: &Path, text: &str, mode: Option<Permissions>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if mode.is_some() {
        // Until the file has the mode of the old one, only this user may read it.
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    if let Some(mode) = mode {
        file.set_permissions(mode)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
