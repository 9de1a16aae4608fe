//! Verification of every chain, and its effect on events that were read before.

use super::opened::Opened;
use super::{Trace, Verifying};
use crate::base::id::SessionId;
use crate::console::request::Request;
use crate::trace::verify::{Checked, Progress, Report, Verdict};

impl Trace {
    /// Takes in the result of the check.
    pub(crate) fn on_verified(&mut self, checked: Result<Report, String>) -> Vec<Request> {
        self.verifying = Verifying::Idle;
        match checked {
            Ok(report) => {
                let of = |chain: &Checked| report.of_session(&chain.session);
                let found = report.chains.iter().filter_map(of);
                let log = report.log.as_ref().map(Checked::from);
                let found = found.chain(log);
                self.checked = found
                    .map(|checked| (checked.session.clone(), checked))
                    .collect();
                self.log = report.log;
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
        let opened = self.opened.as_ref().map(Opened::id);
        if opened.is_some_and(|id| self.broken_at(id).is_some())
            && let Some(opened) = &mut self.opened
        {
            // Events that were read while the chain was sound may differ from the events on disk.
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

    /// Returns the sequence number at which the last check found a session's chain broken.
    pub(super) fn broken_at(&self, session: &SessionId) -> Option<u64> {
        match self.checked.get(session)?.verdict {
            Verdict::Holds(_) => None,
            Verdict::Diverged { sequence, .. } | Verdict::Broken { sequence, .. } => Some(sequence),
            Verdict::Truncated { found, .. } => Some(found.saturating_sub(1)),
        }
    }
}
