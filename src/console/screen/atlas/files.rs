//! The files of the Atlases, as they were last looked at.
//!
//! A look is a question to the file system and no more: a file is read only when it is another than the
//! last time, or was written since.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Atlases;
use super::folder::Folder;
use crate::atlas::{Atlas, Diagnostic};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::limits::FILE_LOOK;
use crate::console::request::Request;
use crate::runtime::snapshot::Snapshot;

/// What is known of the files.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) states: BTreeMap<usize, FileState>,
    stamps: BTreeMap<usize, Stamp>,
    glancing: Glancing,
    /// What else lies where they are, or no longer does.
    pub(super) folder: Folder,
    /// The Atlases they were held against.
    against: Option<Digest>,
}

/// Whether the files are being looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Glancing {
    /// They never were.
    #[default]
    Never,
    /// They are, since then.
    Now(Timestamp),
    /// They were, and are again from then on.
    Next(Timestamp),
}

/// A file to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glance {
    /// Which Atlas.
    pub(crate) atlas: usize,
    /// Its file.
    pub(crate) file: PathBuf,
    /// What was loaded from it.
    pub(crate) text: Arc<str>,
    /// How it was found the last time.
    pub(crate) stamp: Option<Stamp>,
}

/// By what a file is known to be unchanged without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Which file it is.
    pub(crate) inode: u64,
    /// How long it is.
    pub(crate) bytes: u64,
    /// When its text was changed, in nanoseconds.
    pub(crate) modified: i128,
    /// When anything about it was.
    pub(crate) changed: i128,
}

impl Stamp {
    /// When its text was changed.
    pub(crate) fn at(self) -> Timestamp {
        let micros = i64::try_from(self.modified / 1000).unwrap_or_default();
        Timestamp::from_micros(micros)
    }
}

/// A file that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Looked {
    /// Which Atlas.
    pub(crate) atlas: usize,
    /// How it was found.
    pub(crate) stamp: Option<Stamp>,
    /// The text that it was held against.
    pub(crate) against: Arc<str>,
    /// What it is.
    pub(crate) state: FileState,
}

/// What a file has become since it was loaded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FileState {
    /// It says the same.
    Same,
    /// It is as it was when it was last looked at.
    AsBefore,
    /// It says something else.
    Newer(Newer),
    /// It cannot be read.
    Unreadable(String),
}

/// What a file says now.
#[derive(Clone, Debug)]
pub(crate) struct Newer {
    pub(crate) text: Arc<str>,
    pub(crate) problems: Vec<Diagnostic>,
    /// What it would be, where it could be loaded.
    pub(crate) atlas: Option<Arc<Atlas>>,
}

impl Newer {
    /// Whether it could be loaded.
    pub(crate) fn loads(&self) -> bool {
        self.atlas.is_some()
    }
}

impl PartialEq for Newer {
    fn eq(&self, other: &Self) -> bool {
        // Everything else follows from the text.
        self.text == other.text
    }
}

impl Files {
    /// Forgets what was found when other Atlases are in force: it was held against those before.
    pub(super) fn sync(&mut self, snapshot: &Snapshot) {
        if self.against == snapshot.in_force.hash {
            return;
        }
        self.against = snapshot.in_force.hash;
        self.states.clear();
        self.stamps.clear();
        self.folder = Folder::default();
        if self.glancing != Glancing::Never {
            self.glancing = Glancing::Next(Timestamp::from_micros(0));
        }
    }

    /// Asks for the files to be looked at, once at a time.
    pub(super) fn glance(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<Request> {
        if matches!(self.glancing, Glancing::Now(_)) {
            return Vec::new();
        }
        let atlases = snapshot.loaded.iter().enumerate();
        let glances = atlases.filter_map(|(atlas, it)| {
            Some(Glance {
                atlas,
                file: it.origin.file.clone()?,
                text: Arc::clone(&it.text),
                stamp: self.stamps.get(&atlas).copied(),
            })
        });
        let glances: Vec<Glance> = glances.collect();
        if !has_files(snapshot) {
            self.glancing = Glancing::Never;
            return Vec::new();
        }
        self.glancing = Glancing::Now(now);
        vec![Request::Glance(glances), self.folder.list(snapshot)]
    }

    /// When the text of a file was changed.
    pub(super) fn changed_at(&self, atlas: usize) -> Option<Timestamp> {
        self.stamps.get(&atlas).map(|stamp| stamp.at())
    }

    /// What the files say now, with which Atlas each would replace.
    pub(super) fn newer(&self) -> impl Iterator<Item = (usize, &Newer)> {
        self.states.iter().filter_map(|(at, state)| match state {
            FileState::Newer(newer) => Some((*at, newer)),
            FileState::Same | FileState::AsBefore | FileState::Unreadable(_) => None,
        })
    }
}

/// Whether files can come and go: not where everything in force comes with the program. Where nothing is,
/// the first file may come.
fn has_files(snapshot: &Snapshot) -> bool {
    let loaded = &snapshot.loaded;
    loaded.is_empty() || loaded.iter().any(|it| it.origin.file.is_some())
}

impl Atlases {
    /// The files were looked at.
    pub(crate) fn on_glanced(&mut self, looked: Vec<Looked>, snapshot: &Snapshot) {
        self.said = None;
        for Looked {
            atlas,
            stamp,
            against,
            state,
        } in looked
        {
            let loaded = snapshot.loaded.get(atlas);
            if loaded.is_none_or(|it| !Arc::ptr_eq(&it.text, &against)) {
                // Held against what is no longer in force.
                continue;
            }
            match stamp {
                Some(stamp) => drop(self.files.stamps.insert(atlas, stamp)),
                None => drop(self.files.stamps.remove(&atlas)),
            }
            if state != FileState::AsBefore {
                if self.files.states.get(&atlas) != Some(&state) {
                    // What was worked out was about another text.
                    self.sums = super::Sums::default();
                }
                self.files.states.insert(atlas, state);
            }
        }
        if let Glancing::Now(since) = self.files.glancing {
            self.files.glancing = Glancing::Next(since.plus(FILE_LOOK));
        }
        self.sync(snapshot);
    }

    /// When the files are looked at next.
    pub(crate) fn glances_at(&self) -> Option<Timestamp> {
        match self.files.glancing {
            Glancing::Next(at) => Some(at),
            Glancing::Never | Glancing::Now(_) => None,
        }
    }

    /// The files are looked at as soon as time passes: for the first time, or now instead of later.
    pub(crate) fn look_soon(&mut self, snapshot: &Snapshot) {
        match self.files.glancing {
            Glancing::Now(_) => {}
            Glancing::Never | Glancing::Next(_) if !has_files(snapshot) => {}
            Glancing::Never | Glancing::Next(_) => {
                self.files.glancing = Glancing::Next(Timestamp::from_micros(0));
            }
        }
    }

    /// Time passed.
    pub(crate) fn on_tick(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<Request> {
        match self.files.glancing {
            Glancing::Next(at) if at <= now => self.files.glance(snapshot, now),
            Glancing::Next(_) | Glancing::Never | Glancing::Now(_) => Vec::new(),
        }
    }
}
