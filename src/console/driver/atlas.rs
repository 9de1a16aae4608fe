//! Explanations, the stream of evaluations, and the files of Atlases: asked for and read beside the
//! screen.

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

/// Has things explained, one after the other.
pub(super) async fn explain(desk: &Desk, ticket: Ticket, questions: Vec<Question>) -> Message {
    let mut accounts = Vec::new();
    for question in questions {
        accounts.push(desk.explain(question).await.map(Box::new));
    }
    Message::Explained(ticket, accounts)
}

/// Looks at the files on a thread that may wait; nothing when that thread was lost.
pub(super) async fn glance(glances: Vec<Glance>, configure: Configure) -> Option<Message> {
    let look = move || {
        let looked = glances.iter().map(|glance| look(glance, &configure));
        looked.collect()
    };
    let looked = tokio::task::spawn_blocking(look).await.ok()?;
    Some(Message::Glanced(looked))
}

/// What a file has become since it was loaded. It is read only when it is not as it was the last time.
pub(in crate::console) fn look(glance: &Glance, configure: &Configure) -> Looked {
    // Taken before reading: what is written while it is read is found the next time.
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

/// Looks at the folder of Atlases on a thread that may wait; nothing when that thread was lost.
pub(super) async fn list(listing: Listing, shelf: Shelf, configure: Configure) -> Option<Message> {
    let look = move || look_at_folder(&listing, (shelf.0)(), &configure);
    let listed = tokio::task::spawn_blocking(look).await.ok()?;
    Some(Message::Listed(listed))
}

/// What a folder has become. Only files that nothing was loaded from are looked at, and read when they
/// are not as they were the last time.
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
            // No file that says nothing is an Atlas: it is read as one that says something else.
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
