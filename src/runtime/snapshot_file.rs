//! Snapshot files on disk: read, inspected and written.
//!
//! Contract: an artifact is read only if it lies in the folder of its snapshot file. An existing file is
//! replaced only after the user agreed.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use crate::base::atomic_file::{ExistingFile, write_with};
use crate::base::limits::MAX_SNAPSHOT_BYTES;
use crate::reconstruct::{
    Artifact, ConversationSnapshot, SessionAccount, SnapshotError, snapshot_json,
};

/// Reason why a snapshot file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotFileError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// The content cannot be used.
    #[error("`{}` cannot be used for a reconstruction: {}", .0.display(), .1)]
    Unusable(PathBuf, SnapshotError),
    /// An artifact lies in another folder.
    #[error("the artifact `{}` is not in the folder of its snapshot file", .0.display())]
    OutsideFolder(PathBuf),
    /// A file cannot be written.
    #[error("cannot write `{}`: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
}

impl SnapshotFileError {
    /// Returns advice on the error, if there is any.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Unusable(_, error) => Some(error.help()),
            Self::OutsideFolder(_) => {
                Some("nothing was read; open the artifact yourself if you trust it")
            }
            Self::Read(..) | Self::Write(..) => None,
        }
    }

    /// Returns true if an existing file prevents the write.
    #[must_use]
    pub fn is_existing_file(&self) -> bool {
        match self {
            Self::Write(_, error) => error.kind() == io::ErrorKind::AlreadyExists,
            Self::Read(..) | Self::Unusable(..) | Self::OutsideFolder(_) => false,
        }
    }
}

/// Reads a snapshot file.
///
/// # Errors
/// Fails when the file cannot be read, or is not a snapshot.
pub fn read_snapshot(file: &Path) -> Result<ConversationSnapshot, SnapshotFileError> {
    let text = read(file).map_err(|error| SnapshotFileError::Read(file.to_owned(), error))?;
    parse_snapshot(file, &text)
}

/// Parses the text of a snapshot file.
///
/// # Errors
/// Fails when the text is not a snapshot.
pub fn parse_snapshot(file: &Path, text: &[u8]) -> Result<ConversationSnapshot, SnapshotFileError> {
    ConversationSnapshot::read(text)
        .map_err(|error| SnapshotFileError::Unusable(file.to_owned(), error))
}

/// Returns the content of an artifact: from the snapshot file, or from a file in its folder. A path or a
/// link to another folder is refused.
///
/// # Errors
/// Fails when the artifact lies in another folder, or cannot be read.
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
        return Err(SnapshotFileError::OutsideFolder(path));
    }
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    let place = folder.join(&path);
    let failed = |error| SnapshotFileError::Read(place.clone(), error);
    let real = fs::canonicalize(&place).map_err(failed)?;
    if !real.starts_with(fs::canonicalize(folder).map_err(failed)?) {
        return Err(SnapshotFileError::OutsideFolder(path));
    }
    let text = read(&real).map_err(failed)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// Reads a file up to the limit and one byte more, so that the caller can detect an excess. Anything but a
/// regular file is refused: reading a pipe could block forever.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut text = Vec::new();
    let limit = MAX_SNAPSHOT_BYTES as u64 + 1;
    fs::File::open(file)?.take(limit).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the text of a session's snapshot file.
#[must_use]
pub fn snapshot_text(account: &SessionAccount) -> String {
    let mut text = serde_json::to_string_pretty(&snapshot_json(account)).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes the snapshot file of a session.
///
/// # Errors
/// Fails when the file cannot be written, or exists and must stay.
pub fn write_snapshot(
    path: &Path,
    account: &SessionAccount,
    there: ExistingFile,
) -> Result<(), SnapshotFileError> {
    let failed = |error| SnapshotFileError::Write(path.to_owned(), error);
    write_with(path, there, failed, |out| {
        let text = snapshot_text(account);
        out.write_all(text.as_bytes()).map_err(failed)
    })
}
