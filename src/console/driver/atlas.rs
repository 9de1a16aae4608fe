//! Background work for the Atlas screen: explanations, the stream of evaluations, and reading Atlas
//! files.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::atlas::loader::load_if_changed;
use crate::atlas::{LoadError, ManifestTransform};
use crate::console::AtlasFileSource;
use crate::console::request::{ConsoleMessage, Ticket};
use crate::console::screen::atlas::{
    ChangedFile, FileCheck, FileCheckResult, FileStamp, FileState, FolderCheck, FolderListing,
};
use crate::engine::explanation::ExplainQuestion;
use crate::runtime::OperatorHandle;

/// Requests explanations, one after another.
pub(super) async fn explain(
    operator_handle: &OperatorHandle,
    ticket: Ticket,
    questions: Vec<ExplainQuestion>,
) -> ConsoleMessage {
    let mut accounts = Vec::new();
    for question in questions {
        accounts.push(operator_handle.explain(question).await.map(Box::new));
    }
    ConsoleMessage::Explained(ticket, accounts)
}

/// Checks the files on a blocking thread. Returns `None` if that thread was lost.
pub(super) async fn check_files(
    glances: Vec<FileCheck>,
    configure: ManifestTransform,
) -> Option<ConsoleMessage> {
    let appearance = move || {
        let looked = glances.iter().map(|check| check_file(check, &configure));
        looked.collect()
    };
    let looked = tokio::task::spawn_blocking(appearance).await.ok()?;
    Some(ConsoleMessage::FilesChecked(looked))
}

/// Compares a file with its loaded version. The file is read only if its stamp changed since the last
/// check.
pub(in crate::console) fn check_file(
    check: &FileCheck,
    configure: &ManifestTransform,
) -> FileCheckResult {
    // Taken before reading: a write during the read is found by the next check.
    let stamp = file_stamp(&check.file);
    let state = match (stamp, check.stamp) {
        (Some(now), Some(before)) if now == before => FileState::AsBefore,
        (Some(_) | None, _) => read_file_state(check, configure),
    };
    FileCheckResult {
        atlas: check.atlas,
        stamp,
        against: Arc::clone(&check.text),
        state,
    }
}

/// Checks the Atlas folder on a blocking thread. Returns `None` if that thread was lost.
pub(super) async fn check_folder(
    listing: FolderCheck,
    atlas_files: AtlasFileSource,
    configure: ManifestTransform,
) -> Option<ConsoleMessage> {
    let appearance = move || compare_folder(&listing, (atlas_files.0)(), &configure);
    let listed = tokio::task::spawn_blocking(appearance).await.ok()?;
    Some(ConsoleMessage::FolderChecked(listed))
}

/// Compares a folder with the loaded files. Only files that are not loaded are checked, and read only
/// if their stamp changed since the last check.
pub(in crate::console) fn compare_folder(
    listing: &FolderCheck,
    files: Result<Vec<PathBuf>, String>,
    configure: &ManifestTransform,
) -> FolderListing {
    let found = files.iter().flatten();
    let added = found.filter(|file| !listing.known.contains(file));
    let added = added.map(|file| {
        let before = listing.added.iter().find(|(path, _)| path == file);
        let check = FileCheck {
            atlas: 0,
            file: file.clone(),
            // An empty file is never an Atlas, so any content counts as changed.
            text: Arc::from(""),
            stamp: before.and_then(|(_, stamp)| *stamp),
        };
        let looked = check_file(&check, configure);
        (file.clone(), looked.stamp, looked.state)
    });
    let added = added.collect();
    FolderListing {
        files,
        added,
        against: listing.against,
    }
}

fn file_stamp(file: &Path) -> Option<FileStamp> {
    let known = fs::metadata(file).ok()?;
    let nanoseconds = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    Some(FileStamp {
        inode: known.ino(),
        bytes: known.len(),
        modified: nanoseconds(known.mtime(), known.mtime_nsec()),
        changed: nanoseconds(known.ctime(), known.ctime_nsec()),
    })
}

fn read_file_state(check: &FileCheck, configure: &ManifestTransform) -> FileState {
    match load_if_changed(&check.file, &check.text, configure) {
        Ok(None) => FileState::Same,
        Ok(Some(loaded)) => FileState::Newer(ChangedFile {
            text: loaded.source.into(),
            problems: loaded.warnings,
            atlas: Some(Arc::new(loaded.atlas)),
        }),
        Err(LoadError::Invalid {
            diagnostics,
            source_text,
        }) => FileState::Newer(ChangedFile {
            text: source_text.into(),
            problems: diagnostics,
            atlas: None,
        }),
        Err(
            error @ (LoadError::Io { .. } | LoadError::TooLarge { .. } | LoadError::NotUtf8 { .. }),
        ) => FileState::Unreadable(error.to_string()),
    }
}
