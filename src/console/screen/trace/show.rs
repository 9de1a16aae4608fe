//! The record as other screens point at it.

use super::{Follow, Pane, Trace};
use crate::base::id::SessionId;
use crate::console::request::Request;

impl Trace {
    /// Shows the events of a session, once the list of sessions has it.
    pub(crate) fn show_session(&mut self, session: &SessionId) -> Vec<Request> {
        if self.selected.as_ref() != Some(session) {
            let at = self.sessions.iter().position(|it| it.session == *session);
            self.choose(at.unwrap_or(self.sessions.len()));
            self.selected = Some(session.clone());
        }
        self.pane = Pane::Events;
        let mut requests = self.reload();
        requests.extend(self.wanted());
        requests
    }

    /// Goes to an event of the chosen session by its number, or to the last one.
    pub(crate) fn seek(&mut self, number: u64) -> Vec<Request> {
        self.pane = Pane::Events;
        self.follow = Follow::Still;
        self.top = 0;
        self.place = number.min(self.total().saturating_sub(1));
        let mut requests = self.reload();
        requests.extend(self.wanted());
        requests
    }
}
