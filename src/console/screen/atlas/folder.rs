//! The files that Atlases are loaded from, as their folder has them now: more of them, or fewer.
//!
//! What the folder says is offered and never taken: what is in force stays so until somebody loads it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Atlases, FileState, Newer, Stamp};
use crate::atlas::Atlas;
use crate::base::digest::Digest;
use crate::base::text::one_line;
use crate::console::cells::counted;
use crate::console::request::Request;
use crate::console::theme::Meaning;
use crate::runtime::snapshot::Snapshot;

/// What is known of the folder.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// The files in it, in the order in which they are loaded; nothing where nobody has looked.
    files: Option<Result<Vec<PathBuf>, String>>,
    /// Those of them that nothing was loaded from.
    added: BTreeMap<PathBuf, (Option<Stamp>, FileState)>,
}

/// A folder to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Files that something in force was loaded from.
    pub(crate) known: Vec<PathBuf>,
    /// Others, and how they were found the last time.
    pub(crate) added: Vec<(PathBuf, Option<Stamp>)>,
    /// The Atlases that it is held against.
    pub(crate) against: Option<Digest>,
}

/// A folder that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    /// The files in it, in the order in which they are loaded.
    pub(crate) files: Result<Vec<PathBuf>, String>,
    /// Those of them that nothing was loaded from.
    pub(crate) added: Vec<(PathBuf, Option<Stamp>, FileState)>,
    /// The Atlases that it was held against.
    pub(crate) against: Option<Digest>,
}

/// What the folder is, beside what is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Names of files that nothing was loaded from.
    pub(super) added: Vec<String>,
    /// Atlases whose files are gone.
    pub(super) gone: Vec<usize>,
    /// Why it cannot be loaded, if so.
    pub(super) bar: Option<String>,
}

impl Folder {
    /// Has the folder looked at.
    pub(super) fn list(&self, snapshot: &Snapshot) -> Request {
        let known = snapshot.loaded.iter();
        let added = self.added.iter();
        let added = added.map(|(path, (stamp, _))| (path.clone(), *stamp));
        Request::List(Listing {
            known: known.filter_map(|it| it.origin.file.clone()).collect(),
            added: added.collect(),
            against: snapshot.in_force.hash,
        })
    }

    fn find(&self, path: &PathBuf) -> Option<&FileState> {
        self.added.get(path).map(|(_, state)| state)
    }

    /// How the folder differs from what is in force, if it does.
    pub(super) fn change(&self, snapshot: &Snapshot) -> Option<Change> {
        let files = match self.files.as_ref()? {
            Ok(files) => files,
            Err(what) => {
                return Some(Change {
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
            let name = one_line(&name(path));
            match self.find(path) {
                Some(FileState::Newer(newer)) if newer.loads() => {}
                Some(FileState::Newer(_)) => bar = Some(format!("errors in {name}")),
                Some(FileState::Unreadable(_) | FileState::Same | FileState::AsBefore) | None => {
                    bar = Some(format!("{name} cannot be read"));
                }
            }
            added.push(name);
        }
        let differs = !(added.is_empty() && gone.is_empty());
        differs.then_some(Change { added, gone, bar })
    }

    /// Whether the file of an Atlas is gone.
    pub(super) fn is_gone(&self, atlas: usize, snapshot: &Snapshot) -> bool {
        let change = self.change(snapshot);
        change.is_some_and(|it| it.gone.contains(&atlas))
    }

    /// All Atlases as the folder has them, in its order. `current` are those in force, each as its
    /// file has it.
    pub(super) fn arranged(&self, current: Vec<Atlas>) -> Vec<Atlas> {
        let Some(Ok(files)) = &self.files else {
            return current;
        };
        let of = |atlas: &Atlas, path: &PathBuf| atlas.origin.file.as_ref() == Some(path);
        // What has no file comes with the program: it stays, and stays first.
        let mut arranged = current.clone();
        arranged.retain(|atlas| atlas.origin.file.is_none());
        for path in files {
            let known = current.iter().find(|atlas| of(atlas, path)).cloned();
            let added = || match self.find(path)? {
                FileState::Newer(newer) => newer.atlas.as_deref().cloned(),
                FileState::Same | FileState::AsBefore | FileState::Unreadable(_) => None,
            };
            arranged.extend(known.or_else(added));
        }
        arranged
    }

    /// Files that nothing was loaded from.
    pub(super) fn added(&self) -> impl Iterator<Item = (&Path, &FileState)> {
        let added = self.added.iter();
        added.map(|(path, (_, state))| (path.as_path(), state))
    }

    /// What is new in it, with the name of each.
    pub(super) fn newer(&self) -> impl Iterator<Item = (String, &Newer)> {
        self.added().filter_map(|(path, state)| match state {
            FileState::Newer(newer) => Some((name(path), newer)),
            FileState::Same | FileState::AsBefore | FileState::Unreadable(_) => None,
        })
    }
}

/// What a file is called.
pub(super) fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Change {
    /// In words, and how much they weigh.
    pub(super) fn words(&self) -> (String, Meaning) {
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
            1 => parts.push("1 file is gone".to_owned()),
            more => parts.push(format!("{more} files are gone")),
        }
        let words = format!("FILE NEWER: {}: L loads that", parts.join(", "));
        (words, Meaning::Warning)
    }
}

impl Atlases {
    /// The folder was looked at.
    pub(crate) fn on_listed(&mut self, listed: Listed, snapshot: &Snapshot) {
        if listed.against != snapshot.in_force.hash {
            // Held against what is no longer in force.
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
            // What was worked out was about another folder.
            self.sums = super::Sums::default();
            self.files.folder.files = files;
        }
        self.sync(snapshot);
    }
}
