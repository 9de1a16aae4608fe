//! Check of every request before it leaves the console.

use super::App;
use crate::console::request::ConsoleRequest;
use crate::runtime::snapshot::ConsoleAccess;

impl App {
    /// Last check before a request leaves. A read-only console, or one too small to show the question,
    /// never decides, no matter which dialog sent the request.
    pub(in crate::console) fn may_send(&self, request: &ConsoleRequest) -> bool {
        match request {
            ConsoleRequest::Decide(_) | ConsoleRequest::Load(_) => {
                let sound = self.decision_context().trouble.is_none();
                self.snapshot.access == ConsoleAccess::Write && sound && !self.is_too_small()
            }
            ConsoleRequest::Edit(_) | ConsoleRequest::EditFile(..) => !self.is_too_small(),
            ConsoleRequest::EditThread(_) | ConsoleRequest::ActOnThread(..) => {
                self.snapshot.access == ConsoleAccess::Write && !self.is_too_small()
            }
            ConsoleRequest::KeepDraft(..)
            | ConsoleRequest::KeepThreadDraft(..)
            | ConsoleRequest::Operate(_) => self.snapshot.access == ConsoleAccess::Write,
            ConsoleRequest::LoadSessions
            | ConsoleRequest::LoadTrail { .. }
            | ConsoleRequest::Read(_)
            | ConsoleRequest::Snapshot(..)
            | ConsoleRequest::FindEvent(..)
            | ConsoleRequest::LayOut(_)
            | ConsoleRequest::Verify(_)
            | ConsoleRequest::Explain(..)
            | ConsoleRequest::Watch(_)
            | ConsoleRequest::Shadow(_)
            | ConsoleRequest::CheckFiles(_)
            | ConsoleRequest::CheckFolder(_)
            | ConsoleRequest::Study(..)
            | ConsoleRequest::Notify(_)
            | ConsoleRequest::Copy(_)
            | ConsoleRequest::Mouse(_)
            | ConsoleRequest::Redraw
            | ConsoleRequest::Suspend
            | ConsoleRequest::Quit => true,
        }
    }
}
