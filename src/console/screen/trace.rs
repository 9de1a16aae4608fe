//! The record: sessions on the left, the events of one of them on the right.
//!
//! Contract: events are read in pages around the view, never all at once, and pages far from it are
//! forgotten. What is shown of a chain's soundness is what the last check found, never a guess.

use std::collections::BTreeMap;

use ratatui::layout::Rect;

use self::pages::Pages;
use super::super::keymap::{Action, Motion};
use super::super::request::Request;
use crate::base::id::SessionId;
use crate::runtime::RecordedSession;
use crate::trace::event::Event;
use crate::trace::verify::{Checked, Report};

mod pages;
mod show;
mod view;

pub(crate) use view::draw;

/// Rows taken as visible before anything was painted.
const ROWS: u64 = 40;

/// The view state of the record.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    sessions: Vec<RecordedSession>,
    listing: Listing,
    verifying: Verifying,
    problem: Option<String>,
    selected: Option<SessionId>,
    pane: Pane,
    pages: Pages,
    /// Sequence of the chosen event.
    place: u64,
    follow: Follow,
    /// First row of the event's content on screen.
    top: usize,
    checked: BTreeMap<SessionId, Checked>,
    area: Rect,
}

/// How far reading the list of sessions is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Listing {
    /// Never asked for.
    #[default]
    Never,
    /// Asked for.
    Asked,
    /// Asked for, and more has happened since: it will be asked for again.
    Outdated,
    /// Here.
    Here,
}

/// Whether the chains are being checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verifying {
    /// They are not.
    #[default]
    Idle,
    /// They are.
    Running,
}

/// Which pane has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pane {
    #[default]
    Sessions,
    Events,
    Detail,
}

/// Whether the view stays at the end as events come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Follow {
    #[default]
    Still,
    Tail,
}

impl Trace {
    /// Asks for the list of sessions, once at a time.
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

    /// The list of sessions is here.
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
        let is_there = |id: &SessionId| self.sessions.iter().any(|it| it.session == *id);
        if !self.selected.as_ref().is_some_and(is_there) {
            self.choose(0);
        }
        let mut requests = self.wanted();
        if outdated {
            requests.extend(self.reload());
        }
        requests
    }

    /// Some events are here.
    pub(crate) fn on_events(
        &mut self,
        session: &SessionId,
        from: u64,
        events: Result<Vec<Event>, String>,
    ) -> Vec<Request> {
        if self.selected.as_ref() != Some(session) {
            return Vec::new();
        }
        if let Err(problem) = &events {
            self.problem = Some(problem.clone());
        }
        self.pages.arrive(from, events.unwrap_or_default());
        self.wanted()
    }

    /// The check is done.
    pub(crate) fn on_verified(&mut self, checked: Result<Report, String>) {
        self.verifying = Verifying::Idle;
        match checked {
            Ok(report) => {
                let found = report.chains.into_iter().map(|it| (it.session.clone(), it));
                self.checked = found.collect();
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// It was painted there.
    pub(crate) fn on_drawn(&mut self, area: Rect) {
        self.area = area;
    }

    /// An action of this screen.
    pub(crate) fn act(&mut self, action: Action) -> Vec<Request> {
        match action {
            Action::Next | Action::Open => self.pane = self.pane.next(),
            Action::Previous => self.pane = self.pane.next().next(),
            Action::Verify => {
                if self.verifying == Verifying::Running {
                    return Vec::new();
                }
                self.verifying = Verifying::Running;
                return vec![Request::Verify];
            }
            Action::Reload => {
                self.pages.forget();
                return self.reload();
            }
            Action::Back => self.pane = self.pane.back(),
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
            | Action::Palette
            | Action::Mouse
            | Action::Press => {}
        }
        self.wanted()
    }

    fn go(&mut self, motion: Motion) {
        match self.pane {
            Pane::Sessions => {
                let at = self.session_place();
                let to = motion.from(at, self.sessions.len());
                if to != at {
                    self.choose(to);
                }
            }
            Pane::Events => {
                let row = |sequence: u64| usize::try_from(sequence).unwrap_or(usize::MAX);
                self.place = motion.from(row(self.place), row(self.total())) as u64;
                self.follow = if motion == Motion::Last {
                    Follow::Tail
                } else {
                    Follow::Still
                };
                self.top = 0;
            }
            Pane::Detail => self.top = motion.from(self.top, view::detail_rows(self)),
        }
    }

    fn choose(&mut self, at: usize) {
        self.selected = self.sessions.get(at).map(|it| it.session.clone());
        self.pages.forget();
        self.place = 0;
        self.top = 0;
        self.follow = Follow::Still;
    }

    /// Asks for the pages the view needs.
    fn wanted(&mut self) -> Vec<Request> {
        let total = self.total();
        if self.follow == Follow::Tail {
            self.place = total.saturating_sub(1);
        }
        let Some(session) = self.selected.clone() else {
            return Vec::new();
        };
        let around = self.place.saturating_sub(ROWS)..(self.place + ROWS).min(total);
        let asked = self.pages.ask(around, total).into_iter();
        asked
            .map(|from| Request::LoadEvents {
                session: session.clone(),
                from,
                limit: pages::LENGTH,
            })
            .collect()
    }

    /// Events the chosen session has on record.
    fn total(&self) -> u64 {
        self.session().map_or(0, |it| it.events)
    }

    fn session(&self) -> Option<&RecordedSession> {
        self.sessions.get(self.session_place())
    }

    fn session_place(&self) -> usize {
        let selected = self.selected.as_ref();
        let mut sessions = self.sessions.iter();
        selected
            .and_then(|id| sessions.position(|it| it.session == *id))
            .unwrap_or(0)
    }

    fn event(&self) -> Option<&Event> {
        self.pages.get(self.place)
    }
}

impl Pane {
    fn next(self) -> Self {
        match self {
            Self::Sessions => Self::Events,
            Self::Events => Self::Detail,
            Self::Detail => Self::Sessions,
        }
    }

    fn back(self) -> Self {
        match self {
            Self::Sessions | Self::Events => Self::Sessions,
            Self::Detail => Self::Events,
        }
    }
}
