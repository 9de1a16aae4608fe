//! Atlas files in the folder compared with the loaded Atlases: files added and files missing.
//!
//! Changes in the folder are offered, never applied automatically: the loaded Atlases stay until the operator
//! loads the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{AtlasScreen, ChangedFile, FileStamp, FileState};
use crate::atlas::Atlas;
use crate::base::digest::Digest;
use crate::base::text::one_line;
use crate::console::request::ConsoleRequest;
use crate::console::text_cells::counted;
use crate::console::theme::Meaning;
use crate::runtime::snapshot::RuntimeSnapshot;

/// State of the folder at the last check.
#[derive(Debug, Default)]
pub(super) struct AtlasFolder {
    /// Files in the folder, in load order. `None` before the first check.
    files: Option<Result<Vec<PathBuf>, String>>,
    /// Files in the folder that no Atlas was loaded from.
    added: BTreeMap<PathBuf, (Option<FileStamp>, FileState)>,
}

/// Request to list the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderCheck {
    /// Files of the loaded Atlases.
    pub(crate) known: Vec<PathBuf>,
    /// Other files, with the metadata found at the last check.
    pub(crate) added: Vec<(PathBuf, Option<FileStamp>)>,
    /// Hash of the Atlases that the folder is compared with.
    pub(crate) against: Option<Digest>,
}

/// Result of listing the folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FolderListing {
    /// Files in the folder, in load order.
    pub(crate) files: Result<Vec<PathBuf>, String>,
    /// Files in the folder that no Atlas was loaded from.
    pub(crate) added: Vec<(PathBuf, Option<FileStamp>, FileState)>,
    /// Hash of the Atlases that the folder was compared with.
    pub(crate) against: Option<Digest>,
}

/// Difference between the folder and the loaded Atlases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FolderChange {
    /// Names of the files that no Atlas was loaded from.
    pub(super) added: Vec<String>,
    /// Indices of the Atlases whose files are missing.
    pub(super) gone: Vec<usize>,
    /// Reason why the folder cannot be loaded.
    pub(super) bar: Option<String>,
}

impl AtlasFolder {
    /// Builds the request that lists the folder.
    pub(super) fn check_request(&self, snapshot: &RuntimeSnapshot) -> ConsoleRequest {
        let known = snapshot.loaded.iter();
        let added = self.added.iter();
        let added = added.map(|(path, (stamp, _))| (path.clone(), *stamp));
        ConsoleRequest::CheckFolder(FolderCheck {
            known: known
                .filter_map(|atlas| atlas.origin.file.clone())
                .collect(),
            added: added.collect(),
            against: snapshot.load_info.hash,
        })
    }

    fn added_file_state(&self, path: &PathBuf) -> Option<&FileState> {
        self.added.get(path).map(|(_, state)| state)
    }

    /// Returns the difference between the folder and the loaded Atlases, if there is one.
    pub(super) fn difference(&self, snapshot: &RuntimeSnapshot) -> Option<FolderChange> {
        let files = match self.files.as_ref()? {
            Ok(files) => files,
            Err(what) => {
                return Some(FolderChange {
                    added: Vec::new(),
                    gone: Vec::new(),
                    bar: Some(one_line(what)),
                });
            }
        };
        let loaded = snapshot.loaded.iter().enumerate();
        let gone = loaded.filter_map(|(at, atlas)| {
            let file = atlas.origin.file.as_ref()?;
            (!files.contains(file)).then_some(at)
        });
        let gone: Vec<usize> = gone.collect();
        let new = self.added.keys().filter(|path| files.contains(path));
        let mut bar = None;
        let mut added = Vec::new();
        for path in new {
            let name = one_line(&file_name(path));
            match self.added_file_state(path) {
                Some(FileState::Newer(newer)) if newer.is_loadable() => {}
                Some(FileState::Newer(_)) => bar = Some(format!("errors in {name}")),
                Some(FileState::Unreadable(_) | FileState::Same | FileState::AsBefore) | None => {
                    bar = Some(format!("{name} cannot be read"));
                }
            }
            added.push(name);
        }
        let differs = !(added.is_empty() && gone.is_empty());
        differs.then_some(FolderChange { added, gone, bar })
    }

    /// Returns true if the file of an Atlas is missing.
    pub(super) fn is_missing(&self, atlas: usize, snapshot: &RuntimeSnapshot) -> bool {
        let change = self.difference(snapshot);
        change.is_some_and(|change| change.gone.contains(&atlas))
    }

    /// Returns all Atlases of the folder, in its order. `current` are the loaded Atlases, each with the
    /// content of its file.
    pub(super) fn merge_atlases(&self, current: Vec<Atlas>) -> Vec<Atlas> {
        let Some(Ok(files)) = &self.files else {
            return current;
        };
        let is_from = |atlas: &Atlas, path: &PathBuf| atlas.origin.file.as_ref() == Some(path);
        // An Atlas without a file is built into the program. It stays first.
        let mut arranged = current.clone();
        arranged.retain(|atlas| atlas.origin.file.is_none());
        for path in files {
            let known = current.iter().find(|atlas| is_from(atlas, path)).cloned();
            let added = || match self.added_file_state(path)? {
                FileState::Newer(newer) => newer.atlas.as_deref().cloned(),
                FileState::Same | FileState::AsBefore | FileState::Unreadable(_) => None,
            };
            arranged.extend(known.or_else(added));
        }
        arranged
    }

    /// Returns the files that no Atlas was loaded from.
    pub(super) fn added_files(&self) -> impl Iterator<Item = (&Path, &FileState)> {
        let added = self.added.iter();
        added.map(|(path, (_, state))| (path.as_path(), state))
    }

    /// Returns the added files that were read, each with its name.
    pub(super) fn changed_added_files(&self) -> impl Iterator<Item = (String, &ChangedFile)> {
        self.added_files().filter_map(|(path, state)| match state {
            FileState::Newer(newer) => Some((file_name(path), newer)),
            FileState::Same | FileState::AsBefore | FileState::Unreadable(_) => None,
        })
    }
}

/// Returns the name of a file without its folder.
pub(super) fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl FolderChange {
    /// Describes the difference, with the style of the text.
    pub(super) fn description(&self) -> (String, Meaning) {
        if let Some(bar) = &self.bar {
            return (format!("KEPT OLD: {bar}"), Meaning::Error);
        }
        let mut parts = Vec::new();
        match self.added.as_slice() {
            [] => {}
            [one] => parts.push(format!("{one} is new")),
            more => parts.push(format!("{} are new", counted(more.len(), "file"))),
        }
        match self.gone.len() {
            0 => {}
            1 => parts.push("1 file is missing".to_owned()),
            more => parts.push(format!("{more} files are missing")),
        }
        let words = format!("FILE NEWER: {}: L to load", parts.join(", "));
        (words, Meaning::Warning)
    }
}

impl AtlasScreen {
    /// Takes in the listing of the folder.
    pub(crate) fn on_folder_listed(&mut self, listed: FolderListing, snapshot: &RuntimeSnapshot) {
        if listed.against != snapshot.load_info.hash {
            // The folder was compared with Atlases that are no longer loaded.
            return;
        }
        let mut before = std::mem::take(&mut self.files.folder.added);
        for (path, stamp, state) in listed.added {
            let state = match state {
                FileState::AsBefore => before.remove(&path).map(|(_, state)| state),
                FileState::Same | FileState::Newer(_) | FileState::Unreadable(_) => Some(state),
            };
            if let Some(state) = state {
                self.files.folder.added.insert(path, (stamp, state));
            }
        }
        let files = Some(listed.files);
        if self.files.folder.files != files {
            // The computed results belong to another state of the folder.
            self.totals = super::StudyTotals::default();
            self.files.folder.files = files;
        }
        self.sync(snapshot);
    }
}
