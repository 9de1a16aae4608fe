//! Commands that start, query and stop a check of the record.

use super::{LineConsole, LineEffect};
use crate::trace::verification::VerificationProgress;

impl LineConsole {
    /// Starts a check of the record, or prints the progress of the running one.
    pub(super) fn check(&mut self) -> Vec<LineEffect> {
        if let Some(progress) = &self.checking {
            let told = match (progress.percent(), progress.so_far()) {
                (Some(percent), Some((done, all))) => {
                    format!("The record is being checked: {percent} %, {done} of {all} records.")
                }
                (..) => "The record is being checked.".to_owned(),
            };
            self.say(&told);
            return Vec::new();
        }
        self.say("The record is being checked. Type verify to hear how far, stop to stop it.");
        let progress = VerificationProgress::default();
        self.checking = Some(progress.clone());
        vec![LineEffect::Verify(progress)]
    }

    /// Stops the running check.
    pub(super) fn stop_check(&mut self) {
        match self.checking.take() {
            Some(progress) => {
                progress.stop();
                self.say("The check was stopped: nothing was proven.");
            }
            None => self.say("Nothing is being checked."),
        }
    }
}
