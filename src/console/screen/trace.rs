//! Screen of the record: the list of sessions, and the events of one session over time. It also shows one
//! full event, the session state at that event, and the verification result.
//!
//! Contract: events are read in windows, never all at once, and events far from the view are dropped. The
//! soundness shown for a chain is the result of the last check, never a guess. Nothing here decides, and only
//! `y` writes to the clipboard.

use std::collections::BTreeMap;
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;

use self::compare::Compared;
use self::opened::{Follow, Opened, Play, Towards};
use self::prompt::{Past, Prompt, Purpose, Typed};
use super::super::keymap::{Action, Browse, Motion};
use super::super::request::Request;
use super::super::theme::Meaning;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::runtime::RecordedSession;
use crate::trace::outline::Fold;
use crate::trace::verify::{Checked, LogChecked, Progress};

mod ask;
mod check;
mod click;
mod commands;
mod compare;
mod detail;
mod opened;
mod pages;
mod prompt;
mod rows;
mod scan;
mod view;
mod why;

pub(crate) use ask::{Ask, Found, Proof, Query, Row, Told, Whole};
pub(crate) use view::draw;
pub(crate) use why::AS_HELD;

/// Interval at which the progress of a running check is shown.
const LOOKED_AT: Duration = Duration::from_millis(200);

/// View state of the record screen.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    sessions: Vec<RecordedSession>,
    listing: Listing,
    verifying: Verifying,
    problem: Option<String>,
    /// Session and event that another screen asked for, shown as soon as the session is listed.
    awaited: Option<(SessionId, u64)>,
    selected: Option<SessionId>,
    pane: Pane,
    opened: Option<Opened>,
    /// First session of a comparison, while the operator selects the second.
    comparing: Option<SessionId>,
    compared: Option<Compared>,
    prompt: Option<Prompt>,
    past: Past,
    letter: Option<Letter>,
    bookmarks: BTreeMap<char, (SessionId, u64)>,
    /// Message about the last key.
    said: Option<(Meaning, String)>,
    checked: BTreeMap<SessionId, Checked>,
    log: Option<LogChecked>,
    /// Counter of requests. A response with an older number is outdated and is dropped.
    tickets: u64,
    area: Rect,
}

/// State of reading the list of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Listing {
    /// Not requested yet.
    #[default]
    Never,
    /// Requested.
    Asked,
    /// Requested, but outdated by newer events: it will be requested again.
    Outdated,
    /// Loaded.
    Here,
}

/// State of verifying the chains.
#[derive(Debug, Default)]
enum Verifying {
    /// No check runs.
    #[default]
    Idle,
    /// A check runs, with its progress.
    Running(Progress),
}

/// Pane that has the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pane {
    #[default]
    Sessions,
    Spans,
    Event,
    Compared,
}

/// Command that waits for a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letter {
    Mark,
    Jump,
}

impl Trace {
    /// Requests the list of sessions, unless a request is pending.
    pub(crate) fn reload(&mut self) -> Vec<Request> {
        match self.listing {
            Listing::Never | Listing::Here => {
                self.listing = Listing::Asked;
                vec![Request::LoadSessions]
            }
            Listing::Asked | Listing::Outdated => {
                self.listing = Listing::Outdated;
                Vec::new()
            }
        }
    }

    /// Takes in the list of sessions.
    pub(crate) fn on_sessions(
        &mut self,
        sessions: Result<Vec<RecordedSession>, String>,
    ) -> Vec<Request> {
        let outdated = self.listing == Listing::Outdated;
        self.listing = Listing::Here;
        match sessions {
            Ok(sessions) => {
                self.sessions = sessions;
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
        let is_there =
            |id: &SessionId| self.sessions.iter().any(|recorded| recorded.session == *id);
        if !self.selected.as_ref().is_some_and(is_there) {
            self.selected = self
                .sessions
                .first()
                .map(|recorded| recorded.session.clone());
        }
        if let Some(opened) = &mut self.opened {
            let mut sessions = self.sessions.iter();
            if let Some(known) = sessions.find(|recorded| recorded.session == *opened.id()) {
                opened.grew(known);
            }
        }
        if let Some((awaited, at)) = self.awaited.take() {
            self.show(&awaited, at);
        }
        let mut requests = self.settle();
        if outdated {
            requests.extend(self.reload());
        }
        requests
    }

    /// Takes in the response to a read.
    pub(crate) fn on_told(&mut self, told: Told) -> Vec<Request> {
        match told {
            Told::Compare { ticket, difference } => self.on_compared(ticket, difference),
            Told::Exported { path, bytes } => self.on_exported(&path, bytes),
            Told::Rows { ref session, .. }
            | Told::Event { ref session, .. }
            | Told::Outline { ref session, .. }
            | Told::Fold { ref session, .. }
            | Told::Scan { ref session, .. } => {
                let opened = self.opened.as_mut();
                if let Some(opened) = opened.filter(|opened| opened.id() == session) {
                    opened.on_told(told);
                }
            }
        }
        self.settle()
    }

    /// Stores the area in which the screen was painted.
    pub(crate) fn on_drawn(&mut self, area: Rect) {
        self.area = area;
        let (visible, cells) = view::room(self, area);
        if let Some(opened) = &mut self.opened {
            opened.on_drawn(visible, cells);
        }
    }

    /// Handles a key if a prompt or a letter command waits for it.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Option<Vec<Request>> {
        self.said = None;
        if let Some(letter) = self.letter.take() {
            if let KeyCode::Char(c) = key.code {
                self.on_letter(letter, c);
            }
            return Some(self.settle());
        }
        let prompt = self.prompt.as_mut()?;
        match prompt.on_key(key, self.past.of(prompt.purpose)) {
            Typed::Stays => {}
            Typed::Closed => self.prompt = None,
            Typed::Done(text) => return Some(self.typed(&text)),
        }
        Some(Vec::new())
    }

    /// Handles Ctrl-C: goes one level back, even if a prompt or a letter command waits for a key.
    pub(crate) fn cancel(&mut self, now: Timestamp) -> Vec<Request> {
        if self.prompt.take().is_some() || self.letter.take().is_some() {
            return Vec::new();
        }
        self.act(Action::Back, now)
    }

    /// Inserts pasted text into the prompt. Without a prompt the text is dropped.
    pub(crate) fn on_paste(&mut self, text: &str) {
        if let Some(prompt) = &mut self.prompt {
            prompt.insert(text);
        }
    }

    /// Returns true if a prompt is open.
    pub(crate) fn is_typing(&self) -> bool {
        self.prompt.is_some()
    }

    /// Returns the time of the next change without input: a playback step, or the progress of a check.
    pub(crate) fn changes_at(&self, now: Timestamp) -> Option<Timestamp> {
        let played = self.opened.as_ref().and_then(|opened| match opened.play {
            Play::Playing(due) => Some(due),
            Play::Paused => None,
        });
        let checked = match self.verifying {
            Verifying::Running(_) => Some(now.plus(LOOKED_AT)),
            Verifying::Idle => None,
        };
        played.into_iter().chain(checked).min()
    }

    /// Advances the playback.
    pub(crate) fn on_tick(&mut self, now: Timestamp) -> Vec<Request> {
        if let Some(opened) = &mut self.opened {
            opened.on_tick(now);
        }
        self.settle()
    }

    /// Returns true if the action has something to act on.
    pub(crate) fn can(&self, action: Action) -> bool {
        let of_any = [Browse::Compare, Browse::Export, Browse::Copy].map(Action::Browse);
        if action == Action::Open || of_any.contains(&action) {
            return self.selected.is_some();
        }
        let of_one = matches!(action, Action::Browse(_));
        !of_one || matches!(self.pane, Pane::Spans | Pane::Event)
    }

    /// Returns true if there is a level to go back to.
    pub(crate) fn is_inside(&self) -> bool {
        self.pane != Pane::Sessions || self.comparing.is_some()
    }

    /// Carries out an action of this screen.
    pub(crate) fn act(&mut self, action: Action, now: Timestamp) -> Vec<Request> {
        self.said = None;
        match action {
            Action::Open => return self.open_here(),
            Action::Next | Action::Previous => self.pane = self.pane.other(),
            Action::Verify => return self.verify(),
            Action::Reload => {
                if let Some(opened) = &mut self.opened {
                    opened.forget();
                    opened.problem = None;
                    opened.go_on();
                }
                let mut requests = self.reload();
                requests.extend(self.settle());
                return requests;
            }
            Action::Back => self.back(),
            Action::Browse(browse) => return self.browse(browse, now),
            Action::Up
            | Action::Down
            | Action::First
            | Action::Last
            | Action::PageUp
            | Action::PageDown => {
                if let Some(motion) = action.motion() {
                    self.go(motion);
                }
            }
            Action::ShowQueue
            | Action::ShowTrace
            | Action::ShowThreads
            | Action::ShowAtlas
            | Action::Explain
            | Action::WhatIf
            | Action::NextProblem
            | Action::PreviousProblem
            | Action::NextSession
            | Action::PreviousSession
            | Action::Help
            | Action::Quit
            | Action::Cancel
            | Action::Redraw
            | Action::Suspend
            | Action::Deny
            | Action::Merge
            | Action::Review
            | Action::SwitchPane
            | Action::Choose
            | Action::Undo
            | Action::Redo
            | Action::EditOutside
            | Action::Skeleton
            | Action::Minimise
            | Action::Restore
            | Action::SearchRequest
            | Action::NextMatch
            | Action::PreviousMatch
            | Action::Queue(_)
            | Action::Steward(_)
            | Action::Thread(_)
            | Action::Snapshot(_)
            | Action::Palette
            | Action::Mouse
            | Action::KnowAlarms
            | Action::Press => {}
        }
        self.settle()
    }

    fn go(&mut self, motion: Motion) {
        match (self.pane, &mut self.opened) {
            (Pane::Sessions, _) => {
                let to = motion.from(self.session_place(), self.sessions.len());
                self.selected = self
                    .sessions
                    .get(to)
                    .map(|recorded| recorded.session.clone());
            }
            (Pane::Spans, Some(opened)) => opened.go(motion),
            (Pane::Event, Some(opened)) => opened.detail.go(motion),
            (Pane::Compared, _) => {
                if let Some(compared) = &mut self.compared {
                    compared.go(motion);
                }
            }
            (Pane::Spans | Pane::Event, None) => {}
        }
    }

    /// Handles Enter: opens the selected element.
    fn open_here(&mut self) -> Vec<Request> {
        if self.pane == Pane::Sessions {
            if let Some(first) = self.comparing.take() {
                return self.compare_with(first);
            }
            if let Some(session) = self.selected.clone() {
                self.show(&session, 0);
            }
        } else if self.pane == Pane::Spans {
            self.pane = Pane::Event;
        } else if self.pane == Pane::Event {
            self.turn_fold();
        }
        self.settle()
    }

    /// Shows a session from its first event, as soon as the list of sessions has it. For other screens.
    pub(crate) fn show_session(&mut self, session: &SessionId) -> Vec<Request> {
        self.show_event(session, 0)
    }

    /// Shows a session at one of its events, as soon as the list of sessions has it. For other screens.
    pub(crate) fn show_event(&mut self, session: &SessionId, at: u64) -> Vec<Request> {
        self.show(session, at);
        if self
            .opened
            .as_ref()
            .is_none_or(|opened| opened.id() != session)
        {
            self.awaited = Some((session.clone(), at));
        }
        let mut requests = self.reload();
        requests.extend(self.settle());
        requests
    }

    /// Shows a listed session at one of its events.
    fn show(&mut self, session: &SessionId, at: u64) {
        let mut sessions = self.sessions.iter();
        let Some(known) = sessions.find(|recorded| recorded.session == *session) else {
            return;
        };
        let stays = self
            .opened
            .as_ref()
            .is_some_and(|opened| opened.id() == session);
        if !stays {
            self.opened = Some(Opened::new(known.clone(), at));
        } else if let Some(opened) = self.opened.as_mut().filter(|_| at > 0) {
            opened.seek(at);
        }
        self.selected = Some(session.clone());
        self.pane = Pane::Spans;
        self.on_drawn(self.area);
    }

    /// Goes one level back: stops running work first, then clears search and filter, then leaves the pane.
    fn back(&mut self) {
        if self.comparing.take().is_some() {
            return;
        }
        if let Verifying::Running(progress) = std::mem::take(&mut self.verifying) {
            progress.stop();
            let words = "the check was stopped: nothing was proven";
            self.said = Some((Meaning::Warning, words.to_owned()));
            return;
        }
        if self.pane == Pane::Compared {
            self.compared = None;
            self.pane = Pane::Sessions;
            return;
        }
        let Some(opened) = &mut self.opened else {
            return;
        };
        if self.pane == Pane::Sessions {
            return;
        }
        if opened.play != Play::Paused {
            opened.play = Play::Paused;
        } else if opened.stop() {
            let words = "stopped; r goes on";
            self.said = Some((Meaning::Warning, words.to_owned()));
        } else if self.pane == Pane::Event {
            self.pane = Pane::Spans;
        } else if opened.search.is_some() {
            opened.search = None;
        } else if opened.filter.is_some() {
            opened.filter = None;
        } else {
            self.pane = Pane::Sessions;
        }
    }

    /// Requests the data that the view needs.
    fn settle(&mut self) -> Vec<Request> {
        // The list of sessions needs no events. A pending read continues when the session is opened again.
        let Some(opened) = self.opened.as_mut().filter(|_| self.pane != Pane::Sessions) else {
            return Vec::new();
        };
        opened.settle().into_iter().map(Request::Read).collect()
    }

    fn session_place(&self) -> usize {
        let selected = self.selected.as_ref();
        let mut sessions = self.sessions.iter();
        selected
            .and_then(|id| sessions.position(|recorded| recorded.session == *id))
            .unwrap_or(0)
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }
}

impl Pane {
    /// Returns the other one of the two panes of a session.
    fn other(self) -> Self {
        match self {
            Self::Spans => Self::Event,
            Self::Event => Self::Spans,
            Self::Sessions => Self::Sessions,
            Self::Compared => Self::Compared,
        }
    }
}
