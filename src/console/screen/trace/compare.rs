//! Comparison of two sessions: the first difference, and the differences after it.

use super::{Ask, Meaning, Pane, Request, Trace};
use crate::base::id::SessionId;
use crate::console::keymap::Motion;
use crate::trace::diff::Difference;

/// Comparison that is pending or loaded.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) sessions: (SessionId, SessionId),
    ticket: u64,
    pub(super) difference: Option<Result<Box<Difference>, String>>,
    /// Index of the selected difference.
    pub(super) at: usize,
}

impl Compared {
    pub(super) fn go(&mut self, motion: Motion) {
        if let Some(Ok(difference)) = &self.difference {
            self.at = motion.from(self.at, difference.changes.len());
        }
    }
}

impl Trace {
    /// Starts the selection of the other session.
    pub(super) fn compare(&mut self) -> Vec<Request> {
        let first = match (self.pane, &self.opened) {
            (Pane::Spans | Pane::Event, Some(opened)) => Some(opened.id().clone()),
            (Pane::Sessions | Pane::Compared, _) | (_, None) => self.selected.clone(),
        };
        if self.sessions.len() < 2 {
            self.said = Some((Meaning::Hint, "there is no other session".to_owned()));
            return Vec::new();
        }
        self.comparing = first;
        self.pane = Pane::Sessions;
        Vec::new()
    }

    /// Compares with the selected session.
    pub(super) fn compare_with(&mut self, first: SessionId) -> Vec<Request> {
        let Some(second) = self.selected.clone() else {
            return Vec::new();
        };
        if second == first {
            self.said = Some((Meaning::Hint, "that is the same session".to_owned()));
            self.comparing = Some(first);
            return Vec::new();
        }
        let ticket = self.ticket();
        let sessions = (first, second);
        self.compared = Some(Compared {
            sessions: sessions.clone(),
            ticket,
            difference: None,
            at: 0,
        });
        self.pane = Pane::Compared;
        vec![Request::Read(Ask::Compare { ticket, sessions })]
    }

    pub(super) fn on_compared(&mut self, ticket: u64, found: Result<Box<Difference>, String>) {
        if let Some(compared) = self
            .compared
            .as_mut()
            .filter(|compared| compared.ticket == ticket)
        {
            compared.difference = Some(found);
        }
    }
}
