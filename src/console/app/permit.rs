//! Check of every request before it leaves the console.

use super::App;
use crate::console::request::Request;
use crate::runtime::snapshot::Access;

impl App {
    /// Last check before a request leaves. A read-only console, or one too small to show the question,
    /// never decides, no matter which dialog sent the request.
    pub(in crate::console) fn permits(&self, request: &Request) -> bool {
        match request {
            Request::Decide(_) | Request::Load(_) => {
                let sound = self.around().trouble.is_none();
                self.snapshot.access == Access::Write && sound && !self.is_small()
            }
            Request::Edit(_) | Request::EditFile(..) => !self.is_small(),
            Request::EditThread(_) | Request::ActOnThread(..) => {
                self.snapshot.access == Access::Write && !self.is_small()
            }
            Request::KeepDraft(..) | Request::KeepThreadDraft(..) | Request::Operate(_) => {
                self.snapshot.access == Access::Write
            }
            Request::LoadSessions
            | Request::LoadTrail { .. }
            | Request::Read(_)
            | Request::Snapshot(..)
            | Request::FindEvent(..)
            | Request::LayOut(_)
            | Request::Verify(_)
            | Request::Explain(..)
            | Request::Watch(_)
            | Request::Shadow(_)
            | Request::Glance(_)
            | Request::List(_)
            | Request::Study(..)
            | Request::Notify(_)
            | Request::Copy(_)
            | Request::Mouse(_)
            | Request::Redraw
            | Request::Suspend
            | Request::Quit => true,
        }
    }
}
