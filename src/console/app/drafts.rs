//! Drafts: answers typed but not yet sent, in memory while the console runs and on disk for the next
//! run.

use std::collections::BTreeSet;

use super::App;
use crate::base::id::HeldRequestId;
use crate::console::dialog::gate::{Draft, GateDialog};
use crate::console::request::ConsoleRequest;
use crate::engine::held::Held;

impl App {
    /// Requests that the draft of the open dialog be kept, if it changed.
    pub(super) fn save_open_draft(&mut self) -> Option<ConsoleRequest> {
        self.layers
            .last_mut()?
            .get_mut::<GateDialog>()?
            .save_draft()
    }

    /// Closes the topmost layer and keeps its draft.
    pub(super) fn close(&mut self) -> Option<ConsoleRequest> {
        let dialog = self.layers.pop()?.into_dialog()?;
        self.keep_draft(*dialog)
    }

    /// Keeps the draft of a dialog that closes.
    pub(super) fn keep_draft(&mut self, dialog: GateDialog) -> Option<ConsoleRequest> {
        let gate = dialog.gate().clone();
        if self.screens.queue.get(&gate).is_none() {
            self.drafts.remove(&gate);
            self.dialog_history.keep_late_draft(dialog);
            return None;
        }
        let forget = dialog.has_stale_stored_draft();
        self.drafts.insert(gate.clone(), dialog.into_draft());
        forget.then_some(ConsoleRequest::KeepDraft(gate, None))
    }

    /// Returns the draft for a request, typed in this console or before it was started.
    pub(super) fn draft_of(&self, held: &Held) -> Option<Draft> {
        match self.drafts.get(&held.id) {
            // A draft discarded here stays discarded, even if the disk still has it.
            Some(here) => here.clone(),
            None => match self.snapshot.drafts.get(&held.id) {
                Some(kept) => Draft::from_stored(held, kept),
                None => self.dialog_history.late_draft(held),
            },
        }
    }

    /// Lists the requests that have a draft.
    pub(in crate::console) fn gates_with_draft(&self) -> BTreeSet<HeldRequestId> {
        let here = self.drafts.iter().filter(|(_, draft)| draft.is_some());
        let kept = self.snapshot.drafts.keys().filter(|gate| {
            let held = self.screens.queue.get(gate);
            held.is_some_and(|held| self.draft_of(held).is_some())
        });
        let minimised = self
            .dialog_history
            .minimised
            .iter()
            .map(|dialog| dialog.gate());
        let known = here.map(|(gate, _)| gate).chain(kept);
        known.chain(minimised).cloned().collect()
    }
}
