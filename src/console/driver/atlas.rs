//! Background work for the Atlas screen: explanations, the stream of evaluations, and reading Atlas
//! files.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::atlas::load::load_if_changed;
use crate::atlas::{Configure, LoadError};
use crate::console::Shelf;
use crate::console::request::{Message, Ticket};
use crate::console::screen::atlas::{FileState, Glance, Listed, Listing, Looked, Newer, Stamp};
use crate::engine::explain::Question;
use crate::runtime::Desk;

/// Requests explanations, one after another.
pub(super) async fn explain(desk: &Desk, ticket: Ticket, questions: Vec<Question>) -> Message {
    let mut accounts = Vec::new();
    for question in questions {
        accounts.push(desk.explain(question).await.map(Box::new));
    }
    Message::Explained(ticket, accounts)
}

/// Checks the files on a blocking thread. Returns `None` if that thread was lost.
pub(super) async fn glance(glances: Vec<Glance>, configure: Configure) -> Option<Message> {
    let look = move || {
        let looked = glances.iter().map(|glance| look(glance, &configure));
        looked.collect()
    };
    let looked = tokio::task::spawn_blocking(look).await.ok()?;
    Some(Message::Glanced(looked))
}

/// Compares a file with its loaded version. The file is read only if its stamp changed since the last
/// check.
pub(in crate::console) fn look(glance: &Glance, configure: &Configure) -> Looked {
    // Taken before reading: a write during the read is found by the next check.
    let stamp = stamp(&glance.file);
    let state = match (stamp, glance.stamp) {
        (Some(now), Some(before)) if now == before => FileState::AsBefore,
        (Some(_) | None, _) => read(glance, configure),
    };
    Looked {
        atlas: glance.atlas,
        stamp,
        against: Arc::clone(&glance.text),
        state,
    }
}

/// Checks the Atlas folder on a blocking thread. Returns `None` if that thread was lost.
pub(super) async fn list(listing: Listing, shelf: Shelf, configure: Configure) -> Option<Message> {
    let look = move || look_at_folder(&listing, (shelf.0)(), &configure);
    let listed = tokio::task::spawn_blocking(look).await.ok()?;
    Some(Message::Listed(listed))
}

/// Compares a folder with the loaded files. Only files that are not loaded are checked, and read only
/// if their stamp changed since the last check.
pub(in crate::console) fn look_at_folder(
    listing: &Listing,
    files: Result<Vec<PathBuf>, String>,
    configure: &Configure,
) -> Listed {
    let found = files.iter().flatten();
    let added = found.filter(|file| !listing.known.contains(file));
    let added = added.map(|file| {
        let before = listing.added.iter().find(|(path, _)| path == file);
        let glance = Glance {
            atlas: 0,
            file: file.clone(),
            // An empty file is never an Atlas, so any content counts as changed.
            text: Arc::from(""),
            stamp: before.and_then(|(_, stamp)| *stamp),
        };
        let looked = look(&glance, configure);
        (file.clone(), looked.stamp, looked.state)
    });
    let added = added.collect();
    Listed {
        files,
        added,
        against: listing.against,
    }
}

fn stamp(file: &Path) -> Option<Stamp> {
    let known = fs::metadata(file).ok()?;
    let nanoseconds = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    Some(Stamp {
        inode: known.ino(),
        bytes: known.len(),
        modified: nanoseconds(known.mtime(), known.mtime_nsec()),
        changed: nanoseconds(known.ctime(), known.ctime_nsec()),
    })
}

fn read(glance: &Glance, configure: &Configure) -> FileState {
    match load_if_changed(&glance.file, &glance.text, configure) {
        Ok(None) => FileState::Same,
        Ok(Some(loaded)) => FileState::Newer(Newer {
            text: loaded.source.into(),
            problems: loaded.warnings,
            atlas: Some(Arc::new(loaded.atlas)),
        }),
        Err(LoadError::Invalid {
            diagnostics,
            source_text,
        }) => FileState::Newer(Newer {
            text: source_text.into(),
            problems: diagnostics,
            atlas: None,
        }),
        Err(
            error @ (LoadError::Io { .. } | LoadError::TooLarge { .. } | LoadError::NotUtf8 { .. }),
        ) => FileState::Unreadable(error.to_string()),
    }
}
