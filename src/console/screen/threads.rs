//! The screen of the conversations: where each is going, how heated it is, what is held back, and why.
//!
//! Contract: nothing is decided here. What is true is in the snapshot; this is how it is looked at. A
//! conversation is chosen by its name and a turn by its message, and rows keep their places while they are
//! looked at, however fast turns come in.

use std::collections::{BTreeMap, BTreeSet};

use ratatui::layout::{Position, Rect};
use serde::{Deserialize, Serialize};

use super::super::keymap::{Action, Motion, ThreadKey};
use super::super::request::Request;
use crate::base::clock::Timestamp;
use crate::memento::{Name, Thread, Turned};
use crate::runtime::ThreadDrafts;
use crate::runtime::snapshot::{Access, Snapshot};

pub(crate) mod edit;
mod legend;
mod search;
mod view;

pub(crate) use self::legend::lines as legend;
pub(crate) use self::view::draw;

/// How the conversations are looked at.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The rows of the list, in the order they are shown in.
    order: Vec<Name>,
    selected: Option<Name>,
    pane: Pane,
    showing: Showing,
    /// The first row of the memento on screen.
    top: usize,
    /// The chosen turn; the newest when there is none.
    turn: Option<(Timestamp, Name)>,
    /// What was typed and not taken, with why.
    typed: BTreeMap<Name, Typed>,
    search: search::Search,
    area: Rect,
}

/// What an operator typed and the runtime has not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Typed {
    /// The text.
    pub(crate) text: String,
    /// Why it was not taken.
    pub(crate) why: String,
}

/// Which pane has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pane {
    #[default]
    List,
    Memento,
    History,
}

/// What the memento's pane shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Showing {
    /// What is kept, and what the newest proposal would change.
    #[default]
    Kept,
    /// Every proposal that was held back, line by line against what is kept.
    Proposed,
}

/// What Enter leads to.
#[derive(Debug, PartialEq)]
pub(crate) enum Opened {
    /// Another pane.
    Pane,
    /// The record of a turn.
    Turn(Box<Turned>),
}

impl Threads {
    /// Takes in a newer picture. Rows that are there stay where they are; new ones come below them.
    pub(crate) fn sync(&mut self, snapshot: &Snapshot) {
        let there: BTreeSet<&Name> = snapshot.threads.iter().map(|it| &it.id).collect();
        self.order.retain(|name| there.contains(name));
        let known: BTreeSet<Name> = self.order.iter().cloned().collect();
        let new = snapshot.threads.iter().filter(|it| !known.contains(&it.id));
        self.order.extend(new.map(|it| it.id.clone()));
        self.typed.retain(|name, _| there.contains(name));
        if !self.selected.as_ref().is_some_and(|it| there.contains(it)) {
            self.choose(self.order.first().cloned());
        }
    }

    /// The screen is shown: the newest come first from now on.
    pub(crate) fn enter(&mut self, snapshot: &Snapshot) {
        self.order.clear();
        self.sync(snapshot);
    }

    /// It was painted there.
    pub(crate) fn on_drawn(&mut self, area: Rect) {
        self.area = area;
    }

    /// The chosen conversation.
    pub(crate) fn chosen<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s Thread> {
        let name = self.selected.as_ref()?;
        find(snapshot, name)
    }

    /// The chosen turn of the chosen conversation.
    fn turn<'t>(&self, thread: &'t Thread) -> Option<&'t Turned> {
        thread.turns.get(self.turn_place(thread))
    }

    fn turn_place(&self, thread: &Thread) -> usize {
        let Some((at, message)) = &self.turn else {
            return 0;
        };
        let mut turns = thread.turns.iter();
        let place = turns.position(|it| it.at == *at && it.message_id == *message);
        place.unwrap_or(0)
    }

    fn choose(&mut self, name: Option<Name>) {
        if self.selected != name {
            self.selected = name;
            self.top = 0;
            self.turn = None;
            self.showing = Showing::Kept;
        }
    }

    fn place(&self) -> usize {
        let selected = self.selected.as_ref();
        let place = selected.and_then(|name| self.order.iter().position(|it| it == name));
        place.unwrap_or(0)
    }

    /// To another conversation.
    pub(crate) fn step(&mut self, motion: Motion) {
        let to = motion.from(self.place(), self.order.len());
        self.choose(self.order.get(to).cloned());
    }

    /// A move in the pane that has the keys.
    pub(crate) fn go(&mut self, motion: Motion, snapshot: &Snapshot) {
        match self.pane() {
            Pane::List => self.step(motion),
            Pane::Memento => {
                let most = self.chosen(snapshot).map(|it| view::most(self, it));
                self.top = motion.from(self.top, most.unwrap_or(0) + 1);
            }
            Pane::History => {
                let turned = self.chosen(snapshot).and_then(|thread| {
                    let to = motion.from(self.turn_place(thread), thread.turns.len());
                    thread.turns.get(to)
                });
                self.turn = turned.map(|it| (it.at, it.message_id.clone()));
            }
        }
    }

    /// The pane that has the keys. Where there is no room for the list, the memento has them instead.
    fn pane(&self) -> Pane {
        match self.pane {
            Pane::List if !view::has_list(self.area) => Pane::Memento,
            pane => pane,
        }
    }

    /// To the next pane, or the one before.
    pub(crate) fn turn_to_pane(&mut self, action: Action) {
        let all = [Pane::List, Pane::Memento, Pane::History];
        let hidden = usize::from(!view::has_list(self.area));
        let panes: Vec<Pane> = all.into_iter().skip(hidden).collect();
        let at = panes.iter().position(|it| *it == self.pane()).unwrap_or(0);
        let way = if action == Action::Next {
            1
        } else {
            panes.len() - 1
        };
        let to = panes.into_iter().cycle().nth(at + way);
        self.pane = to.unwrap_or_default();
    }

    /// To the turns, and back.
    pub(crate) fn turn_to_history(&mut self) {
        self.pane = match self.pane {
            Pane::History => Pane::List,
            Pane::List | Pane::Memento => Pane::History,
        };
    }

    /// Shows the whole difference, or the memento again.
    pub(crate) fn turn_difference(&mut self) {
        self.top = 0;
        self.showing = match self.showing {
            Showing::Kept => Showing::Proposed,
            Showing::Proposed => Showing::Kept,
        };
        if self.showing == Showing::Proposed {
            self.pane = Pane::Memento;
        }
    }

    /// One level back.
    pub(crate) fn back(&mut self) {
        if self.showing == Showing::Proposed {
            self.turn_difference();
        } else if !self.stop_search() {
            self.pane = Pane::List;
        }
    }

    /// Whether there is a level to go back to.
    pub(crate) fn is_inside(&self) -> bool {
        self.showing == Showing::Proposed || self.pane() == Pane::History
    }

    /// Enter: one step closer.
    pub(crate) fn open(&mut self, snapshot: &Snapshot) -> Option<Opened> {
        match self.pane() {
            Pane::List => self.pane = Pane::Memento,
            Pane::Memento => self.pane = Pane::History,
            Pane::History => {
                let turned = self.chosen(snapshot).and_then(|it| self.turn(it))?;
                return Some(Opened::Turn(Box::new(turned.clone())));
            }
        }
        Some(Opened::Pane)
    }

    /// A click chooses a row of the list.
    pub(crate) fn click(&mut self, area: Rect, at: Position) {
        if let Some(row) = view::row_at(self, area, at) {
            self.pane = Pane::List;
            self.choose(self.order.get(row).cloned());
        }
    }

    /// Whether an action has anything to act on.
    pub(crate) fn can(&self, action: Action, snapshot: &Snapshot) -> bool {
        let Some(thread) = self.chosen(snapshot) else {
            let always = [ThreadKey::Legend, ThreadKey::OpenSnapshot];
            return always.into_iter().any(|key| action == Action::Thread(key));
        };
        let Action::Thread(key) = action else {
            return true;
        };
        let writes = snapshot.access == Access::Write;
        match key {
            ThreadKey::Next | ThreadKey::Previous => self.order.len() > 1,
            ThreadKey::Differ => !thread.held_back.is_empty(),
            ThreadKey::Copy => thread.latest.is_some(),
            ThreadKey::Edit => writes && thread.latest.is_some(),
            ThreadKey::Drift => writes,
            ThreadKey::NextMatch | ThreadKey::PreviousMatch => !self.searched().is_empty(),
            ThreadKey::History
            | ThreadKey::InTrace
            | ThreadKey::Legend
            | ThreadKey::OpenSnapshot
            | ThreadKey::WriteSnapshot
            | ThreadKey::Search => true,
        }
    }

    /// What was typed for a conversation and not taken.
    pub(crate) fn typed(&self, thread: &Name) -> Option<&Typed> {
        self.typed.get(thread)
    }

    /// What was typed before the console was started comes back.
    pub(crate) fn resume(&mut self, drafts: &ThreadDrafts) {
        let drafts = drafts.iter().filter_map(|(name, draft)| {
            let typed = serde_json::from_value(draft.clone()).ok()?;
            Some((name.clone(), typed))
        });
        self.typed.extend(drafts);
    }

    /// Keeps what was typed: nobody types it twice, not after a restart either.
    pub(crate) fn keep_typed(&mut self, thread: Name, text: String, why: String) -> Request {
        let typed = Typed { text, why };
        let draft = serde_json::to_value(&typed).ok();
        self.typed.insert(thread.clone(), typed);
        Request::KeepThreadDraft(thread, draft)
    }

    /// Says why what was typed was not taken.
    pub(crate) fn refused(&mut self, thread: &Name, why: &str) -> Option<Request> {
        let typed = self.typed.remove(thread)?;
        Some(self.keep_typed(thread.clone(), typed.text, why.to_owned()))
    }

    /// It was taken, or there is nothing in it.
    pub(crate) fn drop_typed(&mut self, thread: &Name) -> Option<Request> {
        let typed = self.typed.remove(thread);
        typed.map(|_| Request::KeepThreadDraft(thread.clone(), None))
    }
}

/// The conversation of that name.
pub(crate) fn find<'s>(snapshot: &'s Snapshot, name: &Name) -> Option<&'s Thread> {
    let mut threads = snapshot.threads.iter();
    threads.find(|it| it.id == *name).map(AsRef::as_ref)
}
