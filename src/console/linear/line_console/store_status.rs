//! Output about the state of the store: announced at once when it changes, and repeated wherever it matters.

use super::{LineConsole, LineState};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::runtime::snapshot::{RuntimeSnapshot, StoreState};

impl LineConsole {
    /// Announces that recording stopped or resumed, or that the record is broken, even while a question is
    /// open.
    pub(super) fn announce_store_change(&mut self, before: &RuntimeSnapshot, now: Timestamp) {
        // While nothing is recorded, an acknowledgement does not help.
        let ready = self.snapshot.store == StoreState::Ready;
        let fault = self.snapshot.unacknowledged_fault().filter(|_| ready);
        let is_new = before.store != self.snapshot.store;
        let fault = fault.filter(|fault| before.unacknowledged_fault().as_ref() != Some(fault));
        if !is_new && fault.is_none() {
            return;
        }
        self.out.push_str("\u{7}\n");
        match self.store_problem_line() {
            _ if !is_new => {}
            Some(line) => self.print_line(&line),
            None => self.print_line("Recording resumed."),
        }
        if let Some(fault) = fault {
            let what = one_line(&fault.what);
            self.print_line(&format!(
                "AGENTS ARE DENIED: {what}. Type ack-broken-chain to acknowledge."
            ));
        }
        match self.doing {
            // The prompt is printed again below the message.
            LineState::Nothing => self.print_prompt(now),
            LineState::Passing(_)
            | LineState::Denying(..)
            | LineState::Writing(_)
            | LineState::Recording(_) => {}
        }
    }

    /// Returns the reason why nothing is recorded, and what to do, if recording is stopped.
    pub(super) fn store_problem_line(&self) -> Option<String> {
        let what = one_line(self.snapshot.store.problem()?);
        Some(match self.snapshot.store {
            StoreState::Ready => return None,
            StoreState::Stalled { .. } => {
                format!(
                    "NOT RECORDING: {what}. cra denies new requests until recording resumes; requests that are being \
                     recorded wait. Check the disk."
                )
            }
            StoreState::Poisoned { .. } => format!(
                "NOT RECORDING: {what}. cra denies every request. Check the disk, then restart cra."
            ),
        })
    }

    /// Text of the prompt.
    pub(super) fn prompt_text(&self) -> &'static str {
        match self.snapshot.store {
            StoreState::Ready => "> ",
            StoreState::Stalled { .. } | StoreState::Poisoned { .. } => "NOT RECORDING> ",
        }
    }
}
