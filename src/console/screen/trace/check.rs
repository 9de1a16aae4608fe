//! The check of every chain, and what it means for what was read before it.

use super::opened::Opened;
use super::{Trace, Verifying};
use crate::base::id::SessionId;
use crate::console::request::Request;
use crate::trace::verify::{Checked, Progress, Report, Verdict};

impl Trace {
    /// The check is done.
    pub(crate) fn on_verified(&mut self, checked: Result<Report, String>) -> Vec<Request> {
        self.verifying = Verifying::Idle;
        match checked {
            Ok(report) => {
                let of = |chain: &Checked| report.of_session(&chain.session);
                let found = report.chains.iter().filter_map(of);
                let log = report.log.as_ref().map(Checked::from);
                let found = found.chain(log);
                self.checked = found.map(|it| (it.session.clone(), it)).collect();
                self.log = report.log;
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
        let opened = self.opened.as_ref().map(Opened::id);
        if opened.is_some_and(|id| self.broken_at(id).is_some())
            && let Some(opened) = &mut self.opened
        {
            // What was read while it was sound is not what is on disk.
            opened.forget();
        }
        self.settle()
    }

    pub(super) fn verify(&mut self) -> Vec<Request> {
        match self.verifying {
            Verifying::Idle => {
                let progress = Progress::default();
                self.verifying = Verifying::Running(progress.clone());
                vec![Request::Verify(progress)]
            }
            Verifying::Running(_) => Vec::new(),
        }
    }

    /// Where a session's chain breaks, as the last check found.
    pub(super) fn broken_at(&self, session: &SessionId) -> Option<u64> {
        match self.checked.get(session)?.verdict {
            Verdict::Holds(_) => None,
            Verdict::Diverged { sequence, .. } | Verdict::Broken { sequence, .. } => Some(sequence),
            Verdict::Truncated { found, .. } => Some(found.saturating_sub(1)),
        }
    }
}
