//! Comparison of two sessions: the first difference, and the differences after it.

use super::{ConsoleRequest, Meaning, TracePane, TraceRead, TraceScreen};
use crate::base::id::SessionId;
use crate::console::keymap::Motion;
use crate::trace::diff::SessionDiff;

/// Comparison that is pending or loaded.
#[derive(Debug)]
pub(super) struct SessionComparison {
    pub(super) sessions: (SessionId, SessionId),
    ticket: u64,
    pub(super) difference: Option<Result<Box<SessionDiff>, String>>,
    /// Index of the selected difference.
    pub(super) at: usize,
}

impl SessionComparison {
    pub(super) fn move_cursor(&mut self, motion: Motion) {
        if let Some(Ok(difference)) = &self.difference {
            self.at = motion.target_row(self.at, difference.changes.len());
        }
    }
}

impl TraceScreen {
    /// Starts the selection of the other session.
    pub(super) fn compare(&mut self) -> Vec<ConsoleRequest> {
        let first = match (self.pane, &self.opened) {
            (TracePane::Spans | TracePane::Event, Some(opened)) => Some(opened.id().clone()),
            (TracePane::Sessions | TracePane::Compared, _) | (_, None) => self.selected.clone(),
        };
        if self.sessions.len() < 2 {
            self.message = Some((Meaning::Hint, "no other session to compare".to_owned()));
            return Vec::new();
        }
        self.comparing = first;
        self.pane = TracePane::Sessions;
        Vec::new()
    }

    /// Compares with the selected session.
    pub(super) fn compare_with(&mut self, first: SessionId) -> Vec<ConsoleRequest> {
        let Some(second) = self.selected.clone() else {
            return Vec::new();
        };
        if second == first {
            self.message = Some((Meaning::Hint, "choose another session".to_owned()));
            self.comparing = Some(first);
            return Vec::new();
        }
        let ticket = self.next_ticket();
        let sessions = (first, second);
        self.compared = Some(SessionComparison {
            sessions: sessions.clone(),
            ticket,
            difference: None,
            at: 0,
        });
        self.pane = TracePane::Compared;
        vec![ConsoleRequest::Read(TraceRead::Compare {
            ticket,
            sessions,
        })]
    }

    pub(super) fn on_compared(&mut self, ticket: u64, found: Result<Box<SessionDiff>, String>) {
        if let Some(compared) = self
            .compared
            .as_mut()
            .filter(|compared| compared.ticket == ticket)
        {
            compared.difference = Some(found);
        }
    }
}
