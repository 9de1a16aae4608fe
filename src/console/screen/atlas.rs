//! The Atlases: what is in them, what holds for a session, what they made of what just happened, and
//! what is wrong with their files.
//!
//! Contract: nothing here changes an Atlas, a session or a decision. Files are read by the driver, every
//! few seconds while this screen is shown, and never while painting.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::layout::Rect;

use self::problems::Problem;
use self::tree::Row;
use super::super::keymap::{Action, Browse, Motion};
use super::super::request::Request;
use super::super::theme::Meaning;
use crate::atlas::Diagnostic;
use crate::atlas::origin::Part;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{FILE_LOOK, MAX_COPY_BYTES};
use crate::engine::explain::CheckpointOutcome;
use crate::runtime::Watch;
use crate::runtime::snapshot::{Evaluated, Snapshot};

mod item;
mod problems;
mod session;
mod tree;
mod view;

pub(crate) use view::draw;

/// The view state of the Atlases.
#[derive(Debug, Default)]
pub(crate) struct Atlases {
    pane: Pane,
    /// Whether the keys move what is looked at instead of the list.
    deep: Depth,
    row: Row,
    folded: BTreeSet<(usize, Option<Part>)>,
    session: Option<SessionId>,
    /// The chosen evaluation, by its number; the newest one when absent.
    evaluation: Option<u64>,
    problem: usize,
    /// First row of the part that is looked at.
    top: usize,
    files: BTreeMap<usize, FileState>,
    glancing: Glancing,
    /// How often a checkpoint fired in what is kept of evaluations.
    fired: BTreeMap<(String, String), usize>,
    counted: u64,
    said: Option<(Meaning, String)>,
    area: Rect,
}

/// Which list has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pane {
    #[default]
    Tree,
    Session,
    Stream,
    Problems,
}

impl Pane {
    const ALL: [Self; 4] = [Self::Tree, Self::Session, Self::Stream, Self::Problems];

    fn step(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|it| *it == self).unwrap_or(0);
        let next = (at + steps) % Self::ALL.len();
        Self::ALL.get(next).copied().unwrap_or_default()
    }
}

/// Whether a list has the keys, or what is chosen in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Depth {
    #[default]
    List,
    Chosen,
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
    /// What was last found in it, where that is something else.
    pub(crate) seen: Option<Digest>,
}

/// What a file has become since it was loaded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FileState {
    /// It says the same.
    Same,
    /// It says what it said when it was last looked at.
    AsBefore,
    /// It says something else.
    Newer(Newer),
    /// It cannot be read.
    Unreadable(String),
}

/// What a file says now.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Newer {
    pub(crate) digest: Digest,
    pub(crate) text: Arc<str>,
    pub(crate) problems: Vec<Diagnostic>,
    /// Whether it could be loaded.
    pub(crate) loads: bool,
}

impl Atlases {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<Request> {
        self.sync(snapshot);
        let mut requests = vec![Request::Watch(Watch::On)];
        requests.extend(self.glance(snapshot, now));
        requests
    }

    /// A newer picture.
    pub(crate) fn sync(&mut self, snapshot: &Snapshot) {
        let is_there = |id: &SessionId| snapshot.sessions.iter().any(|it| it.id == *id);
        if !self.session.as_ref().is_some_and(is_there) {
            self.session = snapshot.sessions.first().map(|it| it.id.clone());
        }
        if self.counted != snapshot.watched.total {
            self.counted = snapshot.watched.total;
            self.fired = fired(&snapshot.watched.evaluations);
        }
        let last = self.problems(snapshot).len().saturating_sub(1);
        self.problem = self.problem.min(last);
    }

    /// Asks for the files to be looked at, once at a time.
    fn glance(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<Request> {
        if matches!(self.glancing, Glancing::Now(_)) {
            return Vec::new();
        }
        let glances: Vec<Glance> = snapshot
            .loaded
            .iter()
            .enumerate()
            .filter_map(|(atlas, it)| {
                let seen = match self.files.get(&atlas) {
                    Some(FileState::Newer(newer)) => Some(newer.digest),
                    Some(FileState::Same | FileState::AsBefore | FileState::Unreadable(_))
                    | None => None,
                };
                Some(Glance {
                    atlas,
                    file: it.origin.file.clone()?,
                    text: Arc::clone(&it.text),
                    seen,
                })
            })
            .collect();
        if glances.is_empty() {
            self.glancing = Glancing::Next(now.plus(FILE_LOOK));
            return Vec::new();
        }
        self.glancing = Glancing::Now(now);
        vec![Request::Glance(glances)]
    }

    /// The files were looked at.
    pub(crate) fn on_glanced(&mut self, states: Vec<(usize, FileState)>, snapshot: &Snapshot) {
        self.said = None;
        for (atlas, state) in states {
            if state != FileState::AsBefore {
                self.files.insert(atlas, state);
            }
        }
        if let Glancing::Now(since) = self.glancing {
            self.glancing = Glancing::Next(since.plus(FILE_LOOK));
        }
        self.sync(snapshot);
    }

    /// When the files are looked at next.
    pub(crate) fn glances_at(&self) -> Option<Timestamp> {
        match self.glancing {
            Glancing::Next(at) => Some(at),
            Glancing::Never | Glancing::Now(_) => None,
        }
    }

    /// Time passed.
    pub(crate) fn on_tick(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<Request> {
        match self.glancing {
            Glancing::Next(at) if at <= now => self.glance(snapshot, now),
            Glancing::Next(_) | Glancing::Never | Glancing::Now(_) => Vec::new(),
        }
    }

    /// It was painted there.
    pub(crate) fn on_drawn(&mut self, area: Rect) {
        self.area = area;
    }

    /// How many problems there are.
    pub(crate) fn count(&self, snapshot: &Snapshot) -> usize {
        let of_files = |state: &FileState| match state {
            FileState::Newer(newer) => newer.problems.len(),
            FileState::Unreadable(_) => 1,
            FileState::Same | FileState::AsBefore => 0,
        };
        let warnings = snapshot.loaded.iter().map(|it| it.origin.warnings.len());
        warnings.sum::<usize>() + self.files.values().map(of_files).sum::<usize>()
    }

    /// Whether an action has anything to act on.
    pub(crate) fn can(&self, action: Action, snapshot: &Snapshot) -> bool {
        match action {
            Action::NextProblem | Action::PreviousProblem => self.count(snapshot) > 0,
            Action::NextSession | Action::PreviousSession => snapshot.sessions.len() > 1,
            Action::Explain => self.chosen(snapshot).is_some() || self.action(snapshot).is_some(),
            Action::Browse(Browse::Fold | Browse::Unfold | Browse::FoldLevel) => {
                self.pane == Pane::Tree
            }
            // The rest can be done at any time.
            other => other != Action::Deny,
        }
    }

    /// The chosen evaluation, where evaluations are looked at.
    pub(crate) fn chosen<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s Arc<Evaluated>> {
        let own = self.evaluation_place(snapshot);
        let evaluations = &snapshot.watched.evaluations;
        evaluations.get(own).filter(|_| self.pane == Pane::Stream)
    }

    /// The action that the tree's cursor is on.
    pub(crate) fn action<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s str> {
        let atlas = snapshot.loaded.get(self.row.atlas)?;
        match (self.pane, self.row.part, self.row.item) {
            (Pane::Tree, Some(Part::Action), Some(at)) => {
                atlas.actions.keys().nth(at).map(String::as_str)
            }
            (Pane::Tree | Pane::Session | Pane::Stream | Pane::Problems, _, _) => None,
        }
    }

    /// The chosen session.
    pub(crate) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// An action of this screen.
    pub(crate) fn act(
        &mut self,
        action: Action,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Vec<Request> {
        self.said = None;
        match action {
            Action::Next => self.focus(self.pane.step(1)),
            Action::Previous => self.focus(self.pane.step(Pane::ALL.len() - 1)),
            Action::Open => self.open(snapshot),
            Action::Back => self.back(),
            Action::Reload => {
                self.said = Some((Meaning::Hint, "looking at the files".to_owned()));
                return self.glance(snapshot, now);
            }
            Action::NextProblem => self.go_to_problem(snapshot, 1),
            Action::PreviousProblem => {
                let count = self.count(snapshot);
                self.go_to_problem(snapshot, count.saturating_sub(1));
            }
            Action::NextSession => self.switch_session(snapshot, 1),
            Action::PreviousSession => {
                self.switch_session(snapshot, snapshot.sessions.len().saturating_sub(1));
            }
            Action::Browse(Browse::Fold) => self.fold(),
            Action::Browse(Browse::Unfold) => self.unfold(),
            Action::Browse(Browse::FoldLevel) => self.fold_level(snapshot),
            Action::Browse(Browse::Copy) => return self.copy(snapshot),
            other => {
                if let Some(motion) = other.motion() {
                    self.go(motion, snapshot);
                }
            }
        }
        Vec::new()
    }

    fn focus(&mut self, pane: Pane) {
        self.pane = pane;
        self.deep = Depth::List;
        self.top = 0;
    }

    fn open(&mut self, snapshot: &Snapshot) {
        if self.pane == Pane::Tree && self.row.item.is_none() {
            if self.is_folded(self.row) {
                self.unfold();
            } else {
                self.fold();
            }
            return;
        }
        // What has nothing to show is not gone into.
        if self.pane != Pane::Session && !view::chosen_lines(self, snapshot, 80).is_empty() {
            self.deep = Depth::Chosen;
        }
    }

    fn back(&mut self) {
        if self.deep == Depth::Chosen {
            self.deep = Depth::List;
        } else if self.pane != Pane::Tree {
            self.focus(Pane::Tree);
        }
    }

    fn go(&mut self, motion: Motion, snapshot: &Snapshot) {
        if self.deep == Depth::Chosen || self.pane == Pane::Session {
            let most = view::most_top(self, snapshot);
            self.top = motion.from(self.top.min(most), most + 1);
            return;
        }
        self.top = 0;
        match self.pane {
            Pane::Tree => {
                let rows = self.rows(snapshot);
                let at = rows.iter().position(|row| *row == self.row).unwrap_or(0);
                let to = motion.from(at, rows.len());
                self.row = rows.get(to).copied().unwrap_or_default();
            }
            Pane::Stream => {
                let evaluations = &snapshot.watched.evaluations;
                let to = motion.from(self.evaluation_place(snapshot), evaluations.len());
                // At the top it stays with the newest.
                let to = Some(to).filter(|to| *to > 0);
                self.evaluation = to.and_then(|to| evaluations.get(to)).map(|it| it.number);
            }
            Pane::Problems => {
                self.problem = motion.from(self.problem, self.count(snapshot));
            }
            Pane::Session => {}
        }
    }

    fn evaluation_place(&self, snapshot: &Snapshot) -> usize {
        let mut evaluations = snapshot.watched.evaluations.iter();
        self.evaluation
            .and_then(|number| evaluations.position(|it| it.number == number))
            .unwrap_or(0)
    }

    fn go_to_problem(&mut self, snapshot: &Snapshot, steps: usize) {
        let count = self.count(snapshot);
        if count == 0 {
            self.said = Some((Meaning::Passed, "no problems".to_owned()));
            return;
        }
        // The first press shows the first one.
        let steps = if self.pane == Pane::Problems {
            steps
        } else {
            0
        };
        self.focus(Pane::Problems);
        self.problem = (self.problem + steps) % count;
    }

    fn switch_session(&mut self, snapshot: &Snapshot, steps: usize) {
        let sessions = &snapshot.sessions;
        let own = |id: &SessionId| sessions.iter().position(|it| it.id == *id);
        let at = self.session.as_ref().and_then(own).unwrap_or(0);
        let to = (at + steps) % sessions.len().max(1);
        self.session = sessions.get(to).map(|it| it.id.clone());
        self.top = 0;
    }

    fn problems<'s>(&'s self, snapshot: &'s Snapshot) -> Vec<Problem<'s>> {
        problems::of(&self.files, snapshot)
    }

    fn copy(&mut self, snapshot: &Snapshot) -> Vec<Request> {
        let lines = view::chosen_lines(self, snapshot, 120);
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let mut text = text.join("\n");
        text.truncate(text.floor_char_boundary(MAX_COPY_BYTES));
        if text.is_empty() {
            self.said = Some((Meaning::Hint, "nothing to copy yet".to_owned()));
            return Vec::new();
        }
        self.said = Some((Meaning::Passed, "copied what is shown".to_owned()));
        vec![Request::Copy(text)]
    }
}

/// How often each checkpoint fired.
fn fired(evaluations: &[Arc<Evaluated>]) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    let evidence = evaluations.iter().flat_map(|it| &it.account.checkpoints);
    for evidence in evidence {
        if matches!(evidence.outcome, CheckpointOutcome::Fired { .. }) {
            let key = (evidence.atlas_id.clone(), evidence.checkpoint_id.clone());
            *counts.entry(key).or_default() += 1;
        }
    }
    counts
}
