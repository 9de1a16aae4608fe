//! Verification of every chain, and its effect on events that were read before.

use super::open_session::OpenSession;
use super::{TraceScreen, VerificationState};
use crate::base::id::SessionId;
use crate::console::request::ConsoleRequest;
use crate::trace::verification::{
    ChainVerification, VerificationProgress, VerificationReport, VerificationVerdict,
};

impl TraceScreen {
    /// Takes in the result of the check.
    pub(crate) fn on_verified(
        &mut self,
        checked: Result<VerificationReport, String>,
    ) -> Vec<ConsoleRequest> {
        self.verifying = VerificationState::Idle;
        match checked {
            Ok(report) => {
                let verification_of = |chain: &ChainVerification| report.of_session(&chain.session);
                let found = report.chains.iter().filter_map(verification_of);
                let log = report.log.as_ref().map(ChainVerification::from);
                let found = found.chain(log);
                self.checked = found
                    .map(|checked| (checked.session.clone(), checked))
                    .collect();
                self.log = report.log;
                self.problem = None;
            }
            Err(problem) => self.problem = Some(problem),
        }
        let opened = self.opened.as_ref().map(OpenSession::id);
        if opened.is_some_and(|id| self.broken_at(id).is_some())
            && let Some(opened) = &mut self.opened
        {
            // Events that were read while the chain was sound may differ from the events on disk.
            opened.drop_events();
        }
        self.request_missing_data()
    }

    pub(super) fn verify(&mut self) -> Vec<ConsoleRequest> {
        match self.verifying {
            VerificationState::Idle => {
                let progress = VerificationProgress::default();
                self.verifying = VerificationState::Running(progress.clone());
                vec![ConsoleRequest::Verify(progress)]
            }
            VerificationState::Running(_) => Vec::new(),
        }
    }

    /// Returns the sequence number at which the last check found a session's chain broken.
    pub(super) fn broken_at(&self, session: &SessionId) -> Option<u64> {
        match self.checked.get(session)?.verdict {
            VerificationVerdict::Holds(_) => None,
            VerificationVerdict::Diverged { sequence, .. }
            | VerificationVerdict::Broken { sequence, .. } => Some(sequence),
            VerificationVerdict::Truncated { found, .. } => Some(found.saturating_sub(1)),
        }
    }
}
