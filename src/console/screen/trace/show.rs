//! The record as other screens point at it.

use super::{Pane, Trace};
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
}
