//! State of the Atlas files at the last check.
//!
//! A check queries only the file metadata. The content is read only if the metadata shows another file than
//! last time, or that the file was written since.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::AtlasScreen;
use super::folder::AtlasFolder;
use crate::atlas::{Atlas, Diagnostic};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::limits::ATLAS_FILE_CHECK_INTERVAL;
use crate::console::request::ConsoleRequest;
use crate::runtime::snapshot::RuntimeSnapshot;

/// State of the Atlas files.
#[derive(Debug, Default)]
pub(super) struct AtlasFileStates {
    pub(super) states: BTreeMap<usize, FileState>,
    stamps: BTreeMap<usize, FileStamp>,
    check_state: FileCheckState,
    /// Files that appeared in the folder or are missing from it.
    pub(super) folder: AtlasFolder,
    /// Hash of the Atlases that the files were compared with.
    against: Option<Digest>,
}

/// Progress of checking the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FileCheckState {
    /// Not checked yet.
    #[default]
    Never,
    /// The check runs since this time.
    Now(Timestamp),
    /// The next check is due at this time.
    Next(Timestamp),
}

/// Request to check one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileCheck {
    /// Index of the Atlas.
    pub(crate) atlas: usize,
    /// Path of the Atlas file.
    pub(crate) file: PathBuf,
    /// Text that was loaded from the file.
    pub(crate) text: Arc<str>,
    /// Metadata found at the last check.
    pub(crate) stamp: Option<FileStamp>,
}

/// File metadata that shows, without reading the file, that it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    /// Inode number.
    pub(crate) inode: u64,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// Time of the last change of the content, in nanoseconds.
    pub(crate) modified: i128,
    /// Time of the last change of content or metadata, in nanoseconds.
    pub(crate) changed: i128,
}

impl FileStamp {
    /// Returns the time of the last change of the content.
    pub(crate) fn modified_at(self) -> Timestamp {
        let micros = i64::try_from(self.modified / 1000).unwrap_or_default();
        Timestamp::from_micros(micros)
    }
}

/// Result of checking one file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileCheckResult {
    /// Index of the Atlas.
    pub(crate) atlas: usize,
    /// Metadata found by this check.
    pub(crate) stamp: Option<FileStamp>,
    /// Loaded text that the file was compared with.
    pub(crate) against: Arc<str>,
    /// Comparison of the file with the loaded text.
    pub(crate) state: FileState,
}

/// State of a file compared with the loaded Atlas.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FileState {
    /// The file has the loaded text.
    Same,
    /// The file is unchanged since the last check.
    AsBefore,
    /// The file has another text.
    Newer(ChangedFile),
    /// The file cannot be read.
    Unreadable(String),
}

/// Text of a changed file, and its validation result.
#[derive(Clone, Debug)]
pub(crate) struct ChangedFile {
    pub(crate) text: Arc<str>,
    pub(crate) problems: Vec<Diagnostic>,
    /// Atlas built from the text, if the text is valid.
    pub(crate) atlas: Option<Arc<Atlas>>,
}

impl ChangedFile {
    /// Returns true if the text can be loaded.
    pub(crate) fn is_loadable(&self) -> bool {
        self.atlas.is_some()
    }
}

impl PartialEq for ChangedFile {
    fn eq(&self, other: &Self) -> bool {
        // All other fields derive from the text.
        self.text == other.text
    }
}

impl AtlasFileStates {
    /// Clears the results after other Atlases were loaded: the results came from a comparison with the
    /// previous ones.
    pub(super) fn sync(&mut self, snapshot: &RuntimeSnapshot) {
        if self.against == snapshot.load_info.hash {
            return;
        }
        self.against = snapshot.load_info.hash;
        self.states.clear();
        self.stamps.clear();
        self.folder = AtlasFolder::default();
        if self.check_state != FileCheckState::Never {
            self.check_state = FileCheckState::Next(Timestamp::from_micros(0));
        }
    }

    /// Requests a check of the files, unless one is running.
    pub(super) fn request_check(
        &mut self,
        snapshot: &RuntimeSnapshot,
        now: Timestamp,
    ) -> Vec<ConsoleRequest> {
        if matches!(self.check_state, FileCheckState::Now(_)) {
            return Vec::new();
        }
        let atlases = snapshot.loaded.iter().enumerate();
        let glances = atlases.filter_map(|(atlas, loaded)| {
            Some(FileCheck {
                atlas,
                file: loaded.origin.file.clone()?,
                text: Arc::clone(&loaded.text),
                stamp: self.stamps.get(&atlas).copied(),
            })
        });
        let glances: Vec<FileCheck> = glances.collect();
        if !has_files(snapshot) {
            self.check_state = FileCheckState::Never;
            return Vec::new();
        }
        self.check_state = FileCheckState::Now(now);
        vec![
            ConsoleRequest::CheckFiles(glances),
            self.folder.check_request(snapshot),
        ]
    }

    /// Returns the time of the last content change of an Atlas file.
    pub(super) fn changed_at(&self, atlas: usize) -> Option<Timestamp> {
        self.stamps.get(&atlas).map(|stamp| stamp.modified_at())
    }

    /// Returns the changed files, each with the index of the Atlas that it would replace.
    pub(super) fn changed_files(&self) -> impl Iterator<Item = (usize, &ChangedFile)> {
        self.states.iter().filter_map(|(at, state)| match state {
            FileState::Newer(newer) => Some((*at, newer)),
            FileState::Same | FileState::AsBefore | FileState::Unreadable(_) => None,
        })
    }
}

/// Returns true if Atlas files can appear or disappear. They cannot if all loaded Atlases are built into the
/// program. If no Atlas is loaded, the first file may appear.
fn has_files(snapshot: &RuntimeSnapshot) -> bool {
    let loaded = &snapshot.loaded;
    loaded.is_empty() || loaded.iter().any(|atlas| atlas.origin.file.is_some())
}

impl AtlasScreen {
    /// Takes in the results of checking the files.
    pub(crate) fn on_files_checked(
        &mut self,
        looked: Vec<FileCheckResult>,
        snapshot: &RuntimeSnapshot,
    ) {
        self.message = None;
        for FileCheckResult {
            atlas,
            stamp,
            against,
            state,
        } in looked
        {
            let loaded = snapshot.loaded.get(atlas);
            if loaded.is_none_or(|current| !Arc::ptr_eq(&current.text, &against)) {
                // The file was compared with an Atlas that is no longer loaded.
                continue;
            }
            match stamp {
                Some(stamp) => drop(self.files.stamps.insert(atlas, stamp)),
                None => drop(self.files.stamps.remove(&atlas)),
            }
            if state != FileState::AsBefore {
                if self.files.states.get(&atlas) != Some(&state) {
                    // The computed results belong to another text.
                    self.totals = super::StudyTotals::default();
                }
                self.files.states.insert(atlas, state);
            }
        }
        if let FileCheckState::Now(since) = self.files.check_state {
            self.files.check_state = FileCheckState::Next(since.plus(ATLAS_FILE_CHECK_INTERVAL));
        }
        self.sync(snapshot);
    }

    /// Returns the time of the next check of the files.
    pub(crate) fn next_check_at(&self) -> Option<Timestamp> {
        match self.files.check_state {
            FileCheckState::Next(at) => Some(at),
            FileCheckState::Never | FileCheckState::Now(_) => None,
        }
    }

    /// Schedules a check of the files for the next tick: the first check, or one before the scheduled time.
    pub(crate) fn schedule_check(&mut self, snapshot: &RuntimeSnapshot) {
        match self.files.check_state {
            FileCheckState::Now(_) => {}
            FileCheckState::Never | FileCheckState::Next(_) if !has_files(snapshot) => {}
            FileCheckState::Never | FileCheckState::Next(_) => {
                self.files.check_state = FileCheckState::Next(Timestamp::from_micros(0));
            }
        }
    }

    /// Requests a check of the files if it is due.
    pub(super) fn check_if_due(
        &mut self,
        snapshot: &RuntimeSnapshot,
        now: Timestamp,
    ) -> Vec<ConsoleRequest> {
        match self.files.check_state {
            FileCheckState::Next(at) if at <= now => self.files.request_check(snapshot, now),
            FileCheckState::Next(_) | FileCheckState::Never | FileCheckState::Now(_) => Vec::new(),
        }
    }
}
