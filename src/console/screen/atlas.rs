//! Screen of the Atlases: their parts, the state of a session, the latest evaluations, and the problems of
//! their files.
//!
//! Contract: nothing here changes an Atlas, a session or a decision. A separate dialog loads files. The
//! driver checks the files every few seconds, never during painting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ratatui::layout::Rect;

use self::files::AtlasFileStates;
use self::problems::AtlasProblem;
use self::tree::TreeRow;
use super::super::keymap::{KeyAction, Motion};
use super::super::request::ConsoleRequest;
use super::super::theme::Meaning;
use super::trace::TraceKey;
use crate::atlas::origin::PartKind;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::limits::MAX_COPY_BYTES;
use crate::engine::explanation::CheckpointOutcome;
use crate::runtime::snapshot::{RuntimeSnapshot, WatchedEvaluation};

mod commands;
mod files;
mod folder;
mod keys;
mod notices;
mod part_details;
mod problems;
mod session;
mod steward;
mod tree;
mod view;

pub(crate) use files::{ChangedFile, FileCheck, FileCheckResult, FileStamp, FileState};
pub(crate) use folder::{FolderCheck, FolderListing};
pub(crate) use keys::{DEFINITION, StewardKey};

/// View state of the Atlas screen.
#[derive(Debug, Default)]
pub(crate) struct AtlasScreen {
    pane: AtlasPane,
    /// Focus depth: the list, or the details of its selected row.
    focus_depth: FocusDepth,
    row: TreeRow,
    folded: BTreeSet<(usize, Option<PartKind>)>,
    session: Option<SessionId>,
    /// Number of the selected evaluation. `None` selects the newest.
    evaluation: Option<u64>,
    problem: usize,
    /// First visible row of the details.
    top: usize,
    files: AtlasFileStates,
    /// Results of the tests and of the rehearsal of past requests.
    totals: StudyTotals,
    /// Times each checkpoint fired in the stored evaluations, by Atlas id and checkpoint id.
    fired: BTreeMap<(String, String), usize>,
    counted: u64,
    message: Option<(Meaning, String)>,
    area: Rect,
}

/// Pane that has the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AtlasPane {
    #[default]
    Tree,
    Session,
    Stream,
    Problems,
}

impl AtlasPane {
    const ALL: [Self; 4] = [Self::Tree, Self::Session, Self::Stream, Self::Problems];

    fn neighbour(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|pane| *pane == self).unwrap_or(0);
        let next = (at + steps) % Self::ALL.len();
        Self::ALL.get(next).copied().unwrap_or_default()
    }
}

/// Last results computed from the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StudyTotals {
    /// Number of passed tests, and number of all tests.
    tests: Option<(usize, usize)>,
    /// Number of verdicts that would change, and number of all verdicts.
    past: Option<(usize, usize)>,
}

/// Focus depth: the list, or the details of its selected row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FocusDepth {
    #[default]
    List,
    Chosen,
}

impl AtlasScreen {
    /// Updates the view state from a newer snapshot.
    pub(crate) fn sync(&mut self, snapshot: &RuntimeSnapshot) {
        let is_there = |id: &SessionId| snapshot.sessions.iter().any(|session| session.id == *id);
        if !self.session.as_ref().is_some_and(is_there) {
            self.session = snapshot.sessions.first().map(|session| session.id.clone());
        }
        if self.counted != snapshot.watched.total {
            self.counted = snapshot.watched.total;
            self.fired = count_fired(&snapshot.watched.evaluations);
        }
        self.files.sync(snapshot);
        let last = self.problem_count(snapshot).saturating_sub(1);
        self.problem = self.problem.min(last);
    }

    /// Returns true if the action has something to act on.
    fn can(&self, action: KeyAction, snapshot: &RuntimeSnapshot) -> bool {
        match action {
            KeyAction::NextProblem | KeyAction::PreviousProblem => self.problem_count(snapshot) > 0,
            KeyAction::NextSession | KeyAction::PreviousSession => snapshot.sessions.len() > 1,
            KeyAction::Explain => {
                self.selected_evaluation(snapshot).is_some()
                    || self.selected_action(snapshot).is_some()
            }
            KeyAction::Steward(key) => self.is_steward_key_enabled(key, snapshot),
            KeyAction::Browse(TraceKey::Fold | TraceKey::Unfold | TraceKey::FoldLevel) => {
                self.pane == AtlasPane::Tree
            }
            // The other actions are always possible.
            other => other != KeyAction::Deny,
        }
    }

    /// Returns the selected evaluation if the evaluations pane has the focus.
    fn selected_evaluation<'s>(
        &self,
        snapshot: &'s RuntimeSnapshot,
    ) -> Option<&'s Arc<WatchedEvaluation>> {
        let own = self.evaluation_index(snapshot);
        let evaluations = &snapshot.watched.evaluations;
        evaluations
            .get(own)
            .filter(|_| self.pane == AtlasPane::Stream)
    }

    /// Returns the id of the Atlas action at the cursor of the tree.
    fn selected_action<'s>(&self, snapshot: &'s RuntimeSnapshot) -> Option<&'s str> {
        let atlas = snapshot.loaded.get(self.row.atlas)?;
        match (self.pane, self.row.part, self.row.item) {
            (AtlasPane::Tree, Some(PartKind::Action), Some(at)) => {
                atlas.actions.keys().nth(at).map(String::as_str)
            }
            (
                AtlasPane::Tree | AtlasPane::Session | AtlasPane::Stream | AtlasPane::Problems,
                _,
                _,
            ) => None,
        }
    }

    /// Carries out an action of this screen.
    fn act(
        &mut self,
        action: KeyAction,
        snapshot: &RuntimeSnapshot,
        now: Timestamp,
    ) -> Vec<ConsoleRequest> {
        self.message = None;
        match action {
            KeyAction::Next => self.focus(self.pane.neighbour(1)),
            KeyAction::Previous => self.focus(self.pane.neighbour(AtlasPane::ALL.len() - 1)),
            KeyAction::Open => self.open_selected(snapshot),
            KeyAction::Back => self.go_back(),
            KeyAction::Reload => {
                self.message = Some((Meaning::Hint, "checking the files".to_owned()));
                return self.files.request_check(snapshot, now);
            }
            KeyAction::NextProblem => self.go_to_problem(snapshot, 1),
            KeyAction::PreviousProblem => {
                let count = self.problem_count(snapshot);
                self.go_to_problem(snapshot, count.saturating_sub(1));
            }
            KeyAction::NextSession => self.switch_session(snapshot, 1),
            KeyAction::PreviousSession => {
                self.switch_session(snapshot, snapshot.sessions.len().saturating_sub(1));
            }
            KeyAction::Browse(TraceKey::Fold) => self.fold(),
            KeyAction::Browse(TraceKey::Unfold) => self.unfold(),
            KeyAction::Browse(TraceKey::FoldLevel) => self.fold_level(snapshot),
            KeyAction::Browse(TraceKey::Copy) => return self.copy_details(snapshot),
            other => {
                if let Some(motion) = other.motion() {
                    self.move_cursor(motion, snapshot);
                }
            }
        }
        Vec::new()
    }

    fn focus(&mut self, pane: AtlasPane) {
        self.pane = pane;
        self.focus_depth = FocusDepth::List;
        self.top = 0;
    }

    fn open_selected(&mut self, snapshot: &RuntimeSnapshot) {
        if self.pane == AtlasPane::Tree && self.row.item.is_none() {
            if self.is_folded(self.row) {
                self.unfold();
            } else {
                self.fold();
            }
            return;
        }
        // A row without details cannot be opened.
        if self.pane != AtlasPane::Session && !view::detail_lines(self, snapshot, 80).is_empty() {
            self.focus_depth = FocusDepth::Chosen;
        }
    }

    fn go_back(&mut self) {
        if self.focus_depth == FocusDepth::Chosen {
            self.focus_depth = FocusDepth::List;
        } else if self.pane != AtlasPane::Tree {
            self.focus(AtlasPane::Tree);
        }
    }

    fn move_cursor(&mut self, motion: Motion, snapshot: &RuntimeSnapshot) {
        if self.focus_depth == FocusDepth::Chosen || self.pane == AtlasPane::Session {
            let most = view::max_scroll(self, snapshot);
            self.top = motion.target_row(self.top.min(most), most + 1);
            return;
        }
        self.top = 0;
        match self.pane {
            AtlasPane::Tree => {
                let rows = self.rows(snapshot);
                let at = rows.iter().position(|row| *row == self.row).unwrap_or(0);
                let to = motion.target_row(at, rows.len());
                self.row = rows.get(to).copied().unwrap_or_default();
            }
            AtlasPane::Stream => {
                let evaluations = &snapshot.watched.evaluations;
                let to = motion.target_row(self.evaluation_index(snapshot), evaluations.len());
                // In the first row the selection stays on the newest evaluation.
                let to = Some(to).filter(|to| *to > 0);
                self.evaluation = to
                    .and_then(|to| evaluations.get(to))
                    .map(|evaluation| evaluation.number);
            }
            AtlasPane::Problems => {
                self.problem = motion.target_row(self.problem, self.problem_count(snapshot));
            }
            AtlasPane::Session => {}
        }
    }

    fn evaluation_index(&self, snapshot: &RuntimeSnapshot) -> usize {
        let mut evaluations = snapshot.watched.evaluations.iter();
        self.evaluation
            .and_then(|number| evaluations.position(|evaluation| evaluation.number == number))
            .unwrap_or(0)
    }

    fn go_to_problem(&mut self, snapshot: &RuntimeSnapshot, steps: usize) {
        let count = self.problem_count(snapshot);
        if count == 0 {
            self.message = Some((Meaning::Passed, "no problems".to_owned()));
            return;
        }
        // The first key press shows the first problem.
        let steps = if self.pane == AtlasPane::Problems {
            steps
        } else {
            0
        };
        self.focus(AtlasPane::Problems);
        self.problem = (self.problem + steps) % count;
    }

    fn switch_session(&mut self, snapshot: &RuntimeSnapshot, steps: usize) {
        let sessions = &snapshot.sessions;
        let own = |id: &SessionId| sessions.iter().position(|session| session.id == *id);
        let at = self.session.as_ref().and_then(own).unwrap_or(0);
        let to = (at + steps) % sessions.len().max(1);
        self.session = sessions.get(to).map(|session| session.id.clone());
        self.top = 0;
    }

    /// Returns the number of problems.
    pub(crate) fn problem_count(&self, snapshot: &RuntimeSnapshot) -> usize {
        self.problems(snapshot).len()
    }

    fn problems<'s>(&'s self, snapshot: &'s RuntimeSnapshot) -> Vec<AtlasProblem<'s>> {
        problems::find_problems(&self.files, snapshot)
    }

    fn copy_details(&mut self, snapshot: &RuntimeSnapshot) -> Vec<ConsoleRequest> {
        let lines = view::detail_lines(self, snapshot, 120);
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let mut text = text.join("\n");
        text.truncate(text.floor_char_boundary(MAX_COPY_BYTES));
        if text.is_empty() {
            self.message = Some((Meaning::Hint, "nothing to copy yet".to_owned()));
            return Vec::new();
        }
        self.message = Some((Meaning::Passed, "copied the shown text".to_owned()));
        vec![ConsoleRequest::Copy(text)]
    }
}

/// Counts how often each checkpoint fired.
fn count_fired(evaluations: &[Arc<WatchedEvaluation>]) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    let evidence = evaluations
        .iter()
        .flat_map(|evaluation| &evaluation.account.checkpoints);
    for evidence in evidence {
        if matches!(evidence.outcome, CheckpointOutcome::Fired { .. }) {
            let key = (evidence.atlas_id.clone(), evidence.checkpoint_id.clone());
            *counts.entry(key).or_default() += 1;
        }
    }
    counts
}
