//! Screen of the conversations: the direction of each, its intensity, the summaries held back, and the
//! reason.
//!
//! Contract: nothing is decided here. The data is in the snapshot; this is only the view of it. A
//! conversation is selected by its name and a turn by its message. Visible rows keep their places, however
//! fast turns arrive.

use std::collections::{BTreeMap, BTreeSet};

use ratatui::layout::{Position, Rect};
use serde::{Deserialize, Serialize};

use super::super::keymap::{KeyAction, Motion};
use super::super::request::ConsoleRequest;
use crate::base::clock::Timestamp;
use crate::memento::{ExternalName, ProcessedTurn, Thread};
use crate::runtime::ThreadDrafts;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

mod commands;
mod keys;
mod legend;
mod search;
pub(crate) mod summary_text;
mod view;

pub(crate) use self::keys::{DEFINITION, ThreadKey};
use self::legend::lines as legend;

/// View state of the conversations screen.
#[derive(Debug, Default)]
pub(crate) struct ThreadsScreen {
    /// Rows of the list, in display order.
    order: Vec<ExternalName>,
    selected: Option<ExternalName>,
    pane: ThreadsPane,
    showing: MementoContent,
    /// First visible row of the memento.
    top: usize,
    /// Selected turn. `None` selects the newest.
    turn: Option<(Timestamp, ExternalName)>,
    /// Summaries that operators typed and the runtime did not accept, with the reason.
    typed: BTreeMap<ExternalName, RejectedEdit>,
    search: search::ThreadSearch,
    area: Rect,
}

/// Summary that an operator typed and the runtime has not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RejectedEdit {
    /// The typed text.
    pub(crate) text: String,
    /// Reason for the rejection.
    #[serde(rename = "why")]
    pub(crate) reason: String,
}

/// Pane that has the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThreadsPane {
    #[default]
    List,
    Memento,
    History,
}

/// Content of the memento pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MementoContent {
    /// The stored summary, and the changes of the newest proposal.
    #[default]
    Kept,
    /// All proposals held back, compared with the stored summary line by line.
    Proposed,
}

/// Result of pressing Enter.
#[derive(Debug, PartialEq)]
pub(crate) enum EnterResult {
    /// The focus moved to another pane.
    Pane,
    /// The record of a turn is to be shown.
    Turn(Box<ProcessedTurn>),
}

impl ThreadsScreen {
    /// Updates the view from a newer snapshot. Existing rows keep their places; new ones are added below.
    pub(crate) fn sync(&mut self, snapshot: &RuntimeSnapshot) {
        let there: BTreeSet<&ExternalName> =
            snapshot.threads.iter().map(|thread| &thread.id).collect();
        self.order.retain(|name| there.contains(name));
        let known: BTreeSet<ExternalName> = self.order.iter().cloned().collect();
        let new = snapshot
            .threads
            .iter()
            .filter(|thread| !known.contains(&thread.id));
        self.order.extend(new.map(|thread| thread.id.clone()));
        self.typed.retain(|name, _| there.contains(name));
        if !self
            .selected
            .as_ref()
            .is_some_and(|name| there.contains(name))
        {
            self.select_thread(self.order.first().cloned());
        }
    }

    /// Prepares the screen for display and sorts the newest conversations first.
    pub(crate) fn enter(&mut self, snapshot: &RuntimeSnapshot) {
        self.order.clear();
        self.sync(snapshot);
    }

    /// Returns the selected conversation.
    pub(crate) fn selected_thread<'s>(&self, snapshot: &'s RuntimeSnapshot) -> Option<&'s Thread> {
        let name = self.selected.as_ref()?;
        find(snapshot, name)
    }

    /// Returns the selected turn of a conversation.
    fn selected_turn<'t>(&self, thread: &'t Thread) -> Option<&'t ProcessedTurn> {
        thread.turns.get(self.turn_index(thread))
    }

    fn turn_index(&self, thread: &Thread) -> usize {
        let Some((at, message)) = &self.turn else {
            return 0;
        };
        let mut turns = thread.turns.iter();
        let place = turns.position(|turn| turn.at == *at && turn.message_id == *message);
        place.unwrap_or(0)
    }

    fn select_thread(&mut self, name: Option<ExternalName>) {
        if self.selected != name {
            self.selected = name;
            self.top = 0;
            self.turn = None;
            self.showing = MementoContent::Kept;
        }
    }

    fn selected_index(&self) -> usize {
        let selected = self.selected.as_ref();
        let place = selected.and_then(|name| self.order.iter().position(|row| row == name));
        place.unwrap_or(0)
    }

    /// Selects another conversation.
    pub(crate) fn select_neighbour(&mut self, motion: Motion) {
        let to = motion.target_row(self.selected_index(), self.order.len());
        self.select_thread(self.order.get(to).cloned());
    }

    /// Moves the cursor in the pane that has the focus.
    pub(crate) fn move_cursor(&mut self, motion: Motion, snapshot: &RuntimeSnapshot) {
        match self.pane() {
            ThreadsPane::List => self.select_neighbour(motion),
            ThreadsPane::Memento => {
                let most = self
                    .selected_thread(snapshot)
                    .map(|thread| view::max_scroll(self, thread));
                self.top = motion.target_row(self.top, most.unwrap_or(0) + 1);
            }
            ThreadsPane::History => {
                let turn = self.selected_thread(snapshot).and_then(|thread| {
                    let to = motion.target_row(self.turn_index(thread), thread.turns.len());
                    thread.turns.get(to)
                });
                self.turn = turn.map(|turn| (turn.at, turn.message_id.clone()));
            }
        }
    }

    /// Returns the pane that has the focus. If there is no room for the list, the memento has the focus
    /// instead.
    fn pane(&self) -> ThreadsPane {
        match self.pane {
            ThreadsPane::List if !view::has_list(self.area) => ThreadsPane::Memento,
            pane => pane,
        }
    }

    /// Moves the focus to the next or the previous pane.
    pub(crate) fn cycle_pane(&mut self, action: KeyAction) {
        let all = [
            ThreadsPane::List,
            ThreadsPane::Memento,
            ThreadsPane::History,
        ];
        let hidden = usize::from(!view::has_list(self.area));
        let panes: Vec<ThreadsPane> = all.into_iter().skip(hidden).collect();
        let at = panes
            .iter()
            .position(|pane| *pane == self.pane())
            .unwrap_or(0);
        let steps = if action == KeyAction::Next {
            1
        } else {
            panes.len() - 1
        };
        let to = panes.into_iter().cycle().nth(at + steps);
        self.pane = to.unwrap_or_default();
    }

    /// Moves the focus to the turns, or back.
    pub(crate) fn toggle_history(&mut self) {
        self.pane = match self.pane {
            ThreadsPane::History => ThreadsPane::List,
            ThreadsPane::List | ThreadsPane::Memento => ThreadsPane::History,
        };
    }

    /// Switches between the full difference and the memento.
    pub(crate) fn toggle_proposals(&mut self) {
        self.top = 0;
        self.showing = match self.showing {
            MementoContent::Kept => MementoContent::Proposed,
            MementoContent::Proposed => MementoContent::Kept,
        };
        if self.showing == MementoContent::Proposed {
            self.pane = ThreadsPane::Memento;
        }
    }

    /// Goes one level back.
    pub(crate) fn go_back(&mut self) {
        if self.showing == MementoContent::Proposed {
            self.toggle_proposals();
        } else if !self.stop_search() {
            self.pane = ThreadsPane::List;
        }
    }

    /// Returns true if there is a level to go back to.
    pub(crate) fn is_inside(&self) -> bool {
        self.showing == MementoContent::Proposed || self.pane() == ThreadsPane::History
    }

    /// Handles Enter: opens the selected element.
    pub(crate) fn open(&mut self, snapshot: &RuntimeSnapshot) -> Option<EnterResult> {
        match self.pane() {
            ThreadsPane::List => self.pane = ThreadsPane::Memento,
            ThreadsPane::Memento => self.pane = ThreadsPane::History,
            ThreadsPane::History => {
                let turn = self
                    .selected_thread(snapshot)
                    .and_then(|thread| self.selected_turn(thread))?;
                return Some(EnterResult::Turn(Box::new(turn.clone())));
            }
        }
        Some(EnterResult::Pane)
    }

    /// Selects the row of the list that was clicked.
    pub(crate) fn click(&mut self, area: Rect, at: Position) {
        if let Some(row) = view::row_at(self, area, at) {
            self.pane = ThreadsPane::List;
            self.select_thread(self.order.get(row).cloned());
        }
    }

    /// Returns true if the action has something to act on.
    pub(crate) fn can(&self, action: KeyAction, snapshot: &RuntimeSnapshot) -> bool {
        let Some(thread) = self.selected_thread(snapshot) else {
            let always = [ThreadKey::Legend, ThreadKey::OpenSnapshot];
            return always
                .into_iter()
                .any(|key| action == KeyAction::Thread(key));
        };
        let KeyAction::Thread(key) = action else {
            return true;
        };
        let writes = snapshot.access == ConsoleAccess::Write;
        match key {
            ThreadKey::Next | ThreadKey::Previous => self.order.len() > 1,
            ThreadKey::Differ => !thread.held_back.is_empty(),
            ThreadKey::Copy => thread.latest.is_some(),
            ThreadKey::Edit => writes && thread.latest.is_some(),
            ThreadKey::Drift => writes,
            ThreadKey::NextMatch | ThreadKey::PreviousMatch => !self.search_text().is_empty(),
            ThreadKey::History
            | ThreadKey::InTrace
            | ThreadKey::Legend
            | ThreadKey::OpenSnapshot
            | ThreadKey::WriteSnapshot
            | ThreadKey::Search => true,
        }
    }

    /// Returns the rejected text of a conversation.
    pub(crate) fn rejected_edit(&self, thread: &ExternalName) -> Option<&RejectedEdit> {
        self.typed.get(thread)
    }

    /// Restores texts that operators typed before the console started.
    pub(crate) fn restore_drafts(&mut self, drafts: &ThreadDrafts) {
        let drafts = drafts.iter().filter_map(|(name, draft)| {
            let typed = serde_json::from_value(draft.clone()).ok()?;
            Some((name.clone(), typed))
        });
        self.typed.extend(drafts);
    }

    /// Stores a typed text, so that the operator need not type it again, not even after a restart.
    pub(crate) fn keep_rejected_edit(
        &mut self,
        thread: ExternalName,
        text: String,
        reason: String,
    ) -> ConsoleRequest {
        let typed = RejectedEdit { text, reason };
        let draft = serde_json::to_value(&typed).ok();
        self.typed.insert(thread.clone(), typed);
        ConsoleRequest::KeepThreadDraft(thread, draft)
    }

    /// Sets the reason why a typed text was rejected.
    pub(crate) fn on_edit_refused(
        &mut self,
        thread: &ExternalName,
        reason: &str,
    ) -> Option<ConsoleRequest> {
        let typed = self.typed.remove(thread)?;
        Some(self.keep_rejected_edit(thread.clone(), typed.text, reason.to_owned()))
    }

    /// Discards a typed text that was accepted or is empty.
    pub(crate) fn discard_rejected_edit(
        &mut self,
        thread: &ExternalName,
    ) -> Option<ConsoleRequest> {
        let typed = self.typed.remove(thread);
        typed.map(|_| ConsoleRequest::KeepThreadDraft(thread.clone(), None))
    }
}

/// Finds a conversation by its name.
pub(crate) fn find<'s>(snapshot: &'s RuntimeSnapshot, name: &ExternalName) -> Option<&'s Thread> {
    let mut threads = snapshot.threads.iter();
    threads.find(|thread| thread.id == *name).map(AsRef::as_ref)
}
