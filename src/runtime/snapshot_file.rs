//! Snapshot files on disk: read, looked into, and written.
//!
//! Contract: an artifact is read only where it lies beside its snapshot file, and a file that is there is
//! replaced only for somebody who was asked.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use super::file::{There, write_whole_as};
use crate::base::limits::MAX_SNAPSHOT_BYTES;
use crate::reconstruct::{Account, Artifact, Snapshot, SnapshotError, written};

/// Why nothing came of a snapshot file.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotFileError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// What it says cannot be used.
    #[error("`{}` cannot be reconstructed from: {}", .0.display(), .1)]
    Unusable(PathBuf, SnapshotError),
    /// An artifact lies elsewhere.
    #[error("an artifact is kept beside its snapshot file, and `{}` is elsewhere", .0.display())]
    Elsewhere(PathBuf),
    /// A file cannot be written.
    #[error("cannot write `{}`: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
}

impl SnapshotFileError {
    /// The way out, where there is one.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Unusable(_, error) => Some(error.help()),
            Self::Elsewhere(_) => Some("nothing was read; open it yourself if you trust the file"),
            Self::Read(..) | Self::Write(..) => None,
        }
    }

    /// Whether a file is in the way of what was to be written.
    #[must_use]
    pub fn is_there_already(&self) -> bool {
        match self {
            Self::Write(_, error) => error.kind() == io::ErrorKind::AlreadyExists,
            Self::Read(..) | Self::Unusable(..) | Self::Elsewhere(_) => false,
        }
    }
}

/// Reads a snapshot file.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn read_snapshot(file: &Path) -> Result<Snapshot, SnapshotFileError> {
    let text = read(file).map_err(|error| SnapshotFileError::Read(file.to_owned(), error))?;
    of_text(file, &text)
}

/// The snapshot that the text of a file says.
///
/// # Errors
/// When it is none.
pub fn of_text(file: &Path, text: &[u8]) -> Result<Snapshot, SnapshotFileError> {
    Snapshot::read(text).map_err(|error| SnapshotFileError::Unusable(file.to_owned(), error))
}

/// What an artifact says: in the file, or in another one beside it. A path leads nowhere else, not by a
/// link either.
///
/// # Errors
/// When it lies elsewhere, or cannot be read.
pub fn artifact_content(
    file: &Path,
    artifact: &Artifact,
) -> Result<Option<String>, SnapshotFileError> {
    if let Some(content) = &artifact.content {
        return Ok(Some(content.clone()));
    }
    let Some(path) = artifact.path.as_ref().map(PathBuf::from) else {
        return Ok(None);
    };
    let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !path.components().all(normal) {
        return Err(SnapshotFileError::Elsewhere(path));
    }
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    let place = folder.join(&path);
    let failed = |error| SnapshotFileError::Read(place.clone(), error);
    let real = fs::canonicalize(&place).map_err(failed)?;
    if !real.starts_with(fs::canonicalize(folder).map_err(failed)?) {
        return Err(SnapshotFileError::Elsewhere(path));
    }
    let text = read(&real).map_err(failed)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// No more of a file than a snapshot may have, and one byte to tell. What is no file could keep whoever
/// reads waiting for ever.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let mut text = Vec::new();
    let limit = MAX_SNAPSHOT_BYTES as u64 + 1;
    fs::File::open(file)?.take(limit).read_to_end(&mut text)?;
    Ok(text)
}

/// The text of a session's snapshot file.
#[must_use]
pub fn snapshot_text(account: &Account) -> String {
    let mut text = serde_json::to_string_pretty(&written(account)).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes the snapshot file of a session.
///
/// # Errors
/// When it cannot be written, or is there already and stays.
pub fn write_snapshot(
    path: &Path,
    account: &Account,
    there: There,
) -> Result<(), SnapshotFileError> {
    let failed = |error| SnapshotFileError::Write(path.to_owned(), error);
    write_whole_as(path, there, failed, |out| {
        let text = snapshot_text(account);
        out.write_all(text.as_bytes()).map_err(failed)
    })
}
