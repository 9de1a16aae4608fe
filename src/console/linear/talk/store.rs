//! The state of the store: announced at once when it changes, and said again wherever it matters.

use super::{Doing, Talk};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::runtime::snapshot::{Snapshot, StoreState};

impl Talk {
    /// Announces that recording stopped or goes on, whatever is being asked.
    pub(super) fn tell_store(&mut self, before: &Snapshot, now: Timestamp) {
        if before.store == self.snapshot.store {
            return;
        }
        self.out.push_str("\u{7}\n");
        match self.store_line() {
            Some(line) => self.say(&line),
            None => self.say("Recording goes on."),
        }
        match self.doing {
            // The prompt stands below it again, and tells it too.
            Doing::Nothing => self.prompt(now),
            Doing::Passing(_) | Doing::Denying(..) | Doing::Writing(_) => {}
        }
    }

    /// The reason why nothing is recorded, and the way out, if there is one.
    pub(super) fn store_line(&self) -> Option<String> {
        let what = one_line(self.snapshot.store.problem()?);
        Some(match self.snapshot.store {
            StoreState::Ready => return None,
            StoreState::Stalled { .. } => {
                format!("NOT RECORDING: {what}. Agents are denied until it does. Look at the disk.")
            }
            StoreState::Poisoned { .. } => format!(
                "NOT RECORDING: {what}. Every agent is denied. Look at the disk, then restart cra."
            ),
        })
    }

    /// The mark before the prompt.
    pub(super) fn prompt_text(&self) -> &'static str {
        match self.snapshot.store {
            StoreState::Ready => "> ",
            StoreState::Stalled { .. } | StoreState::Poisoned { .. } => "NOT RECORDING> ",
        }
    }
}
