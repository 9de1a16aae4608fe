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

use self::comparison::SessionComparison;
use self::open_session::{EventDirection, FollowMode, OpenSession, Playback};
use self::prompt::{PromptHistory, PromptResult, TracePrompt, TracePromptPurpose};
use super::super::keymap::{KeyAction, Motion};
use super::super::request::ConsoleRequest;
use super::super::theme::Meaning;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::runtime::RecordedSession;
use crate::trace::outline::FoldState;
use crate::trace::verification::{ChainVerification, LogVerification, VerificationProgress};

mod commands;
mod comparison;
mod event_condition;
mod event_detail;
mod explanation_request;
mod keys;
mod open_session;
mod pages;
mod prompt;
mod reads;
mod rows;
mod scan;
mod verification;
mod view;

pub(crate) use explanation_request::HELD_NOTE;
pub(crate) use keys::{DEFINITION, TraceKey};
pub(crate) use reads::{
    EventRow, FullEvent, HashProof, TraceQuery, TraceRead, TraceReadResult, WindowMatches,
};

/// Interval at which the progress of a running check is shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// View state of the record screen.
#[derive(Debug, Default)]
pub(crate) struct TraceScreen {
    sessions: Vec<RecordedSession>,
    list_state: SessionListState,
    verifying: VerificationState,
    problem: Option<String>,
    /// Session and event that another screen asked for, shown as soon as the session is listed.
    pending_event: Option<(SessionId, u64)>,
    selected: Option<SessionId>,
    pane: TracePane,
    opened: Option<OpenSession>,
    /// First session of a comparison, while the operator selects the second.
    comparing: Option<SessionId>,
    compared: Option<SessionComparison>,
    prompt: Option<TracePrompt>,
    prompt_history: PromptHistory,
    letter: Option<LetterCommand>,
    bookmarks: BTreeMap<char, (SessionId, u64)>,
    /// Message about the last key.
    message: Option<(Meaning, String)>,
    checked: BTreeMap<SessionId, ChainVerification>,
    log: Option<LogVerification>,
    /// Counter of requests. A response with an older number is outdated and is dropped.
    last_ticket: u64,
    area: Rect,
}

/// State of reading the list of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SessionListState {
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
enum VerificationState {
    /// No check runs.
    #[default]
    Idle,
    /// A check runs, with its progress.
    Running(VerificationProgress),
}

/// Pane that has the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TracePane {
    #[default]
    Sessions,
    Spans,
    Event,
    Compared,
}

/// Command that waits for a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LetterCommand {
    Mark,
    Jump,
}

impl TraceScreen {
    /// Requests the list of sessions, unless a request is pending.
    pub(crate) fn reload(&mut self) -> Vec<ConsoleRequest> {
        match self.list_state {
            SessionListState::Never | SessionListState::Here => {
                self.list_state = SessionListState::Asked;
                vec![ConsoleRequest::LoadSessions]
            }
            SessionListState::Asked | SessionListState::Outdated => {
                self.list_state = SessionListState::Outdated;
                Vec::new()
            }
        }
    }

    /// Takes in the list of sessions.
    pub(crate) fn on_sessions(
        &mut self,
        sessions: Result<Vec<RecordedSession>, String>,
    ) -> Vec<ConsoleRequest> {
        let outdated = self.list_state == SessionListState::Outdated;
        self.list_state = SessionListState::Here;
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
                opened.on_session_grown(known);
            }
        }
        if let Some((pending_event, at)) = self.pending_event.take() {
            self.open_listed(&pending_event, at);
        }
        let mut requests = self.request_missing_data();
        if outdated {
            requests.extend(self.reload());
        }
        requests
    }

    /// Takes in the response to a read.
    pub(crate) fn on_read_result(&mut self, result: TraceReadResult) -> Vec<ConsoleRequest> {
        match result {
            TraceReadResult::Compare { ticket, difference } => self.on_compared(ticket, difference),
            TraceReadResult::Exported { path, bytes } => self.on_exported(&path, bytes),
            TraceReadResult::Rows { ref session, .. }
            | TraceReadResult::Event { ref session, .. }
            | TraceReadResult::Outline { ref session, .. }
            | TraceReadResult::Fold { ref session, .. }
            | TraceReadResult::Scan { ref session, .. } => {
                let opened = self.opened.as_mut();
                if let Some(opened) = opened.filter(|opened| opened.id() == session) {
                    opened.on_read_result(result);
                }
            }
        }
        self.request_missing_data()
    }

    /// Stores the area in which the screen was painted.
    fn set_area(&mut self, area: Rect) {
        self.area = area;
        let (visible, cells) = view::room(self, area);
        if let Some(opened) = &mut self.opened {
            opened.on_drawn(visible, cells);
        }
    }

    /// Handles a key if a prompt or a letter command waits for it.
    fn type_key(&mut self, key: KeyEvent) -> Option<Vec<ConsoleRequest>> {
        self.message = None;
        if let Some(letter) = self.letter.take() {
            if let KeyCode::Char(c) = key.code {
                self.on_letter(letter, c);
            }
            return Some(self.request_missing_data());
        }
        let prompt = self.prompt.as_mut()?;
        match prompt.on_key(key, self.prompt_history.of(prompt.purpose)) {
            PromptResult::Stays => {}
            PromptResult::Closed => self.prompt = None,
            PromptResult::Done(text) => return Some(self.submit_prompt(&text)),
        }
        Some(Vec::new())
    }

    /// Returns true if a prompt is open.
    fn is_typing(&self) -> bool {
        self.prompt.is_some()
    }

    /// Returns the time of the next change without input: a playback step, or the progress of a check.
    fn changes_at(&self, now: Timestamp) -> Option<Timestamp> {
        let played = self.opened.as_ref().and_then(|opened| match opened.play {
            Playback::Playing(due) => Some(due),
            Playback::Paused => None,
        });
        let checked = match self.verifying {
            VerificationState::Running(_) => Some(now.plus(PROGRESS_INTERVAL)),
            VerificationState::Idle => None,
        };
        played.into_iter().chain(checked).min()
    }

    /// Returns true if the action has something to act on.
    fn can(&self, action: KeyAction) -> bool {
        let of_any = [TraceKey::Compare, TraceKey::Export, TraceKey::Copy].map(KeyAction::Browse);
        if action == KeyAction::Open || of_any.contains(&action) {
            return self.selected.is_some();
        }
        let of_one = matches!(action, KeyAction::Browse(_));
        !of_one || matches!(self.pane, TracePane::Spans | TracePane::Event)
    }

    /// Carries out an action of this screen.
    fn act(&mut self, action: KeyAction, now: Timestamp) -> Vec<ConsoleRequest> {
        self.message = None;
        match action {
            KeyAction::Open => return self.open_selected(),
            KeyAction::Next | KeyAction::Previous => self.pane = self.pane.other_pane(),
            KeyAction::Verify => return self.verify(),
            KeyAction::Reload => {
                if let Some(opened) = &mut self.opened {
                    opened.drop_events();
                    opened.problem = None;
                    opened.resume();
                }
                let mut requests = self.reload();
                requests.extend(self.request_missing_data());
                return requests;
            }
            KeyAction::Back => self.back(),
            KeyAction::Browse(key) => return self.run_command(key, now),
            other => {
                if let Some(motion) = other.motion() {
                    self.move_cursor(motion);
                }
            }
        }
        self.request_missing_data()
    }

    fn move_cursor(&mut self, motion: Motion) {
        match (self.pane, &mut self.opened) {
            (TracePane::Sessions, _) => {
                let to = motion.target_row(self.selected_index(), self.sessions.len());
                self.selected = self
                    .sessions
                    .get(to)
                    .map(|recorded| recorded.session.clone());
            }
            (TracePane::Spans, Some(opened)) => opened.move_cursor(motion),
            (TracePane::Event, Some(opened)) => opened.detail.move_cursor(motion),
            (TracePane::Compared, _) => {
                if let Some(compared) = &mut self.compared {
                    compared.move_cursor(motion);
                }
            }
            (TracePane::Spans | TracePane::Event, None) => {}
        }
    }

    /// Handles Enter: opens the selected element.
    fn open_selected(&mut self) -> Vec<ConsoleRequest> {
        if self.pane == TracePane::Sessions {
            if let Some(first) = self.comparing.take() {
                return self.compare_with(first);
            }
            if let Some(session) = self.selected.clone() {
                self.open_listed(&session, 0);
            }
        } else if self.pane == TracePane::Spans {
            self.pane = TracePane::Event;
        } else if self.pane == TracePane::Event {
            self.toggle_fold();
        }
        self.request_missing_data()
    }

    /// Shows a session at one of its events, as soon as the list of sessions has it. For other screens.
    pub(crate) fn show_event(&mut self, session: &SessionId, at: u64) -> Vec<ConsoleRequest> {
        self.open_listed(session, at);
        if self
            .opened
            .as_ref()
            .is_none_or(|opened| opened.id() != session)
        {
            self.pending_event = Some((session.clone(), at));
        }
        let mut requests = self.reload();
        requests.extend(self.request_missing_data());
        requests
    }

    /// Shows a listed session at one of its events.
    fn open_listed(&mut self, session: &SessionId, at: u64) {
        let mut sessions = self.sessions.iter();
        let Some(known) = sessions.find(|recorded| recorded.session == *session) else {
            return;
        };
        let stays = self
            .opened
            .as_ref()
            .is_some_and(|opened| opened.id() == session);
        if !stays {
            self.opened = Some(OpenSession::new(known.clone(), at));
        } else if let Some(opened) = self.opened.as_mut().filter(|_| at > 0) {
            opened.seek(at);
        }
        self.selected = Some(session.clone());
        self.pane = TracePane::Spans;
        self.set_area(self.area);
    }

    /// Goes one level back: stops running work first, then clears search and filter, then leaves the pane.
    fn back(&mut self) {
        if self.comparing.take().is_some() {
            return;
        }
        if let VerificationState::Running(progress) = std::mem::take(&mut self.verifying) {
            progress.cancel();
            let words = "verification stopped: nothing is proven";
            self.message = Some((Meaning::Warning, words.to_owned()));
            return;
        }
        if self.pane == TracePane::Compared {
            self.compared = None;
            self.pane = TracePane::Sessions;
            return;
        }
        let Some(opened) = &mut self.opened else {
            return;
        };
        if self.pane == TracePane::Sessions {
            return;
        }
        if opened.play != Playback::Paused {
            opened.play = Playback::Paused;
        } else if opened.stop() {
            let words = "stopped; r to resume";
            self.message = Some((Meaning::Warning, words.to_owned()));
        } else if self.pane == TracePane::Event {
            self.pane = TracePane::Spans;
        } else if opened.search.is_some() {
            opened.search = None;
        } else if opened.filter.is_some() {
            opened.filter = None;
        } else {
            self.pane = TracePane::Sessions;
        }
    }

    /// Requests the data that the view needs.
    fn request_missing_data(&mut self) -> Vec<ConsoleRequest> {
        // The list of sessions needs no events. A pending read continues when the session is opened again.
        let Some(opened) = self
            .opened
            .as_mut()
            .filter(|_| self.pane != TracePane::Sessions)
        else {
            return Vec::new();
        };
        opened
            .request_missing_data()
            .into_iter()
            .map(ConsoleRequest::Read)
            .collect()
    }

    fn selected_index(&self) -> usize {
        let selected = self.selected.as_ref();
        let mut sessions = self.sessions.iter();
        selected
            .and_then(|id| sessions.position(|recorded| recorded.session == *id))
            .unwrap_or(0)
    }

    fn next_ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }
}

impl TracePane {
    /// Returns the other one of the two panes of a session.
    fn other_pane(self) -> Self {
        match self {
            Self::Spans => Self::Event,
            Self::Event => Self::Spans,
            Self::Sessions => Self::Sessions,
            Self::Compared => Self::Compared,
        }
    }
}
