//! Commands that start, query and stop a check of the record.

use super::{LineConsole, LineEffect};
use crate::trace::verification::VerificationProgress;

impl LineConsole {
    /// Starts a check of the record, or prints the progress of the running one.
    pub(super) fn start_check(&mut self) -> Vec<LineEffect> {
        if let Some(progress) = &self.checking {
            let told = match (progress.percent(), progress.checked_and_total()) {
                (Some(percent), Some((done, all))) => {
                    format!("The record is being checked: {percent} %, {done} of {all} records.")
                }
                (..) => "The record is being checked.".to_owned(),
            };
            self.print_line(&told);
            return Vec::new();
        }
        self.print_line(
            "The record is being checked. Type verify to hear how far, stop to stop it.",
        );
        let progress = VerificationProgress::default();
        self.checking = Some(progress.clone());
        vec![LineEffect::Verify(progress)]
    }

    /// Stops the running check.
    pub(super) fn stop_check(&mut self) {
        match self.checking.take() {
            Some(progress) => {
                progress.cancel();
                self.print_line("The check was stopped: nothing was proven.");
            }
            None => self.print_line("Nothing is being checked."),
        }
    }
}
