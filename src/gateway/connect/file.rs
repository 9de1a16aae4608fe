//! Settings files: read as they are, written as a whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Largest settings file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// How many backups are kept beside a file, at most: none is ever written over.
const MAX_BACKUPS: u32 = 1000;

/// A settings file as it was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it really is: behind links.
    pub path: PathBuf,
    /// What is in it; nothing if there is no such file.
    pub text: Option<String>,
    mode: Option<Permissions>,
}

impl Found {
    /// Reads a file, through links, as an editor would.
    ///
    /// # Errors
    /// When it is there and cannot be read, or is no text, or a link that leads nowhere.
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
            return Err(io::Error::other("it is no file of settings"));
        }
        Ok(Self {
            text: Some(fs::read_to_string(&path)?),
            mode: Some(found.permissions()),
            path,
        })
    }

    /// What is in it.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Puts another text into the file, or takes it away. What was there is kept beside it, and named.
    ///
    /// # Errors
    /// When it cannot be written, or somebody else has changed it since it was read. Then it is as it was.
    pub fn change(&self, new: Option<&str>) -> io::Result<Option<PathBuf>> {
        if Self::read(&self.path)?.text != self.text {
            return Err(io::Error::other("somebody else has changed it meanwhile"));
        }
        let backup = match &self.text {
            Some(text) => Some(self.keep(text)?),
            None => None,
        };
        match new {
            Some(new) => replace(&self.path, new, self.mode.clone())?,
            None => fs::remove_file(&self.path)?,
        }
        Ok(backup)
    }

    fn keep(&self, text: &str) -> io::Result<PathBuf> {
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
        Err(io::Error::other("there are too many backups beside it"))
    }
}

/// Writes a file that is there as a whole, or as it was.
///
/// # Errors
/// When it cannot be written.
pub(super) fn replace(path: &Path, text: &str, mode: Option<Permissions>) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".cra-new-{}", std::process::id()));
    let new = PathBuf::from(name);
    let written = create(&new, text, mode).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // What is half written is of no use; what was there is untouched.
        let _ = fs::remove_file(&new);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn create(path: &Path, text: &str, mode: Option<Permissions>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if mode.is_some() {
        // Until it has the mode of the other one, nobody else may read it.
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    if let Some(mode) = mode {
        file.set_permissions(mode)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
