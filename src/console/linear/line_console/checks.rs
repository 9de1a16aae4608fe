//! Commands that start, query and stop a check of the record.

use super::{LineConsole, LineEffect};
use crate::trace::verification::VerificationProgress;

impl LineConsole {
    /// Starts a check of the record, or prints the progress of the running one.
    pub(super) fn start_check(&mut self) -> Vec<LineEffect> {
        if let Some(progress) = &self.checking {
            let message = match (progress.percent(), progress.checked_and_total()) {
                (Some(percent), Some((done, all))) => {
                    format!("Verifying the record: {percent} %, {done} of {all} records.")
                }
                (..) => "Verifying the record.".to_owned(),
            };
            self.print_line(&message);
            return Vec::new();
        }
        self.print_line("Verifying the record. Type verify to show the progress, stop to stop.");
        let progress = VerificationProgress::default();
        self.checking = Some(progress.clone());
        vec![LineEffect::Verify(progress)]
    }

    /// Stops the running check.
    pub(super) fn stop_check(&mut self) {
        match self.checking.take() {
            Some(progress) => {
                progress.cancel();
                self.print_line("Verification stopped, without a result.");
            }
            None => self.print_line("No verification is running."),
        }
    }
}
